package luxi

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/audit"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/reason"
)

// TestConsoles: what is asked about the console of an instance that has none, or badly, is answered in words.
func TestConsoles(t *testing.T) {
	r := newRig(t)
	r.furnish()
	client := r.client()
	name := r.query("instance", []string{"name"}, nil).Data[0][0][1]
	for _, tc := range []struct {
		method string
		args   []any
		code   fault.Code
		text   string
	}{
		{"ReadConsole", []any{name, 0, 0}, fault.Unsupported, "only pretends"},
		{"TypeConsole", []any{name, []byte("x")}, fault.Unsupported, "only pretends"},
		{"ReadConsole", []any{"nosuch", 0, 0}, fault.NotFound, "nosuch"},
		{"TypeConsole", []any{"nosuch", []byte("x")}, fault.NotFound, "nosuch"},
		{"ReadConsole", []any{name, -1, 0}, fault.Invalid, "negative"},
		{"ReadConsole", []any{name, 0, -1}, fault.Invalid, "negative"},
		{"ReadConsole", []any{name, "x", 0}, fault.Invalid, "Int"},
		{"TypeConsole", []any{name, "not Base64!"}, fault.Invalid, "Bytes"},
		{"TypeConsole", []any{name, nil}, fault.Invalid, "Bytes"},
	} {
		err := client.Call(t.Context(), tc.method, tc.args, nil)
		if !fault.Is(err, tc.code) || !strings.Contains(err.Error(), tc.text) {
			t.Errorf("%s %v: %v", tc.method, tc.args, err)
		}
		if tc.code == fault.Invalid {
			client = r.client() // the connection is closed
		}
	}
}

// TestWhoTypesIsTold: the first keys that somebody types on an instance's serial line are told of by an event, before they are typed.
func TestWhoTypesIsTold(t *testing.T) {
	r := newRig(t)
	r.furnish()
	client := r.client()
	name := r.query("instance", []string{"name"}, nil).Data[0][0][1]
	for range 2 {
		if err := client.Call(t.Context(), "TypeConsole", []any{name, []byte("secret")}, nil); !fault.Is(err, fault.Unsupported) {
			t.Fatal(err) // what is pretended has no console, and somebody tried
		}
	}
	var told []string
	for _, row := range r.query("event", []string{"what", "name", "after"}, nil).Data {
		if row[0][1] == string(audit.ConsoleType) {
			told = append(told, fmt.Sprint(row))
		}
	}
	if len(told) != 1 || !strings.Contains(told[0], fmt.Sprint(name)) || strings.Contains(told[0], "secret") {
		t.Errorf("told is %v", told)
	}
}

// TestNobodyTypesUntold: where it cannot be made durable that somebody types, no key is typed.
func TestNobodyTypesUntold(t *testing.T) {
	r := newRig(t)
	r.furnish()
	client := r.client()
	name := r.query("instance", []string{"name"}, nil).Data[0][0][1]
	r.queue.Close()
	if err := client.Call(t.Context(), "TypeConsole", []any{name, []byte("x")}, nil); err == nil || fault.Is(err, fault.Unsupported) {
		t.Errorf("it came to the node: %v", err)
	}
}

// TestTypistsComeAndGo: who comes back is told of anew, everybody for himself; where it cannot be told, nobody types.
func TestTypistsComeAndGo(t *testing.T) {
	typing, events := &typists{last: map[typist]time.Time{}}, 0
	tell := func() error { events++; return nil }
	alice, bob := typist{"web1", reason.Account{Name: "alice"}}, typist{"web1", reason.Account{Name: "bob"}}
	at := time.Unix(0, 0)
	lost := errors.New("the store is away")
	if err := typing.seat(alice, at, func() error { return lost }); !errors.Is(err, lost) {
		t.Errorf("what could not be told of: %v", err)
	}
	for i, step := range []struct {
		who   typist
		after time.Duration
		want  int
	}{{alice, 0, 1}, {bob, 0, 2}, {alice, leftAfter, 2}, {alice, leftAfter, 2}, {bob, 0, 3}, {alice, leftAfter + 1, 4}} {
		at = at.Add(step.after)
		if err := typing.seat(step.who, at, tell); err != nil || events != step.want {
			t.Errorf("step %d: %d events, want %d; %v", i, events, step.want, err)
		}
	}
	if len(typing.last) != 1 {
		t.Errorf("who has left is kept: %v", typing.last)
	}
}
