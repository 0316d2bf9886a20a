package luxi

import (
	"fmt"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/audit"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/luxiwire"
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
		{"ReadConsole", []any{name, 0, 0, map[string]any{"id": "a"}}, fault.Unsupported, "only pretends"},
		{"ReadConsole", []any{name, 0, 0, map[string]any{"seat": "a"}}, fault.Invalid, "seat"},
		{"ReadConsole", []any{name, 0, 0, "a"}, fault.Invalid, "JSObject"},
		{"ReadConsole", []any{name, 0, 0, map[string]any{"id": strings.Repeat("a", maxSitting+1)}}, fault.TooLarge, "64"},
		{"TypeConsole", []any{name, []byte("x"), 1}, fault.Invalid, "String"},
		{"TypeConsole", []any{name, []byte("x"), "a", "yes"}, fault.Invalid, "Bool"},
		{"LeaveConsole", []any{"nosuch", "a"}, fault.NotFound, "nosuch"},
	} {
		err := client.Call(t.Context(), tc.method, tc.args, nil)
		if !fault.Is(err, tc.code) || !strings.Contains(err.Error(), tc.text) {
			t.Errorf("%s %v: %v", tc.method, tc.args, err)
		}
		if tc.code == fault.Invalid || tc.code == fault.TooLarge {
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

// TestOneTypes has two sit before one console: the second is told that he looks, takes over, and the first is told at once.
func TestOneTypes(t *testing.T) {
	r := newRig(t)
	r.furnish()
	name := r.query("instance", []string{"name"}, nil).Data[0][0][1]
	first, second := r.client(), r.client()
	types := func(c *luxiwire.Client, id string, over bool) error {
		return c.Call(t.Context(), "TypeConsole", []any{name, []byte{}, id, over}, nil)
	}
	if err := types(first, "one", false); err != nil {
		t.Fatal(err)
	}
	if err := types(second, "two", false); !fault.Is(err, fault.Conflict) {
		t.Errorf("two type: %v", err)
	}
	if err := types(second, "two", true); err != nil {
		t.Errorf("taking over: %v", err)
	}
	if err := types(first, "one", false); !fault.Is(err, fault.Conflict) {
		t.Errorf("who lost the keyboard types on: %v", err)
	}
	if err := first.Call(t.Context(), "LeaveConsole", []any{name, "one"}, nil); err != nil {
		t.Error(err)
	}
	if err := types(first, "one", false); !fault.Is(err, fault.Conflict) {
		t.Errorf("who lost the keyboard gave it back: %v", err)
	}
	if err := second.Call(t.Context(), "LeaveConsole", []any{name, "two"}, nil); err != nil {
		t.Error(err)
	}
	if err := types(first, "one", false); err != nil {
		t.Errorf("who is alone looks: %v", err)
	}
	var told []string
	for _, row := range r.query("event", []string{"what", "before", "after"}, nil).Data {
		if row[0][1] == string(audit.ConsoleTake) {
			told = append(told, fmt.Sprint(row))
		}
	}
	if len(told) != 1 || !strings.Contains(told[0], "luxi") {
		t.Errorf("told is %v", told)
	}
}
