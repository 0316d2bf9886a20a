package qmp

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/drover-project/drover/internal/fault"
)

const greeting = `{"QMP": {"version": {"qemu": {"micro": 22, "minor": 2, "major": 7}, "package": ""}, "capabilities": ["oob"]}}` + "\n"

// qemu is the other end of a client.
type qemu struct {
	*testing.T
	conn net.Conn
	in   *bufio.Reader
}

type command struct {
	Execute   string          `json:"execute"`
	Arguments json.RawMessage `json:"arguments"`
	ID        string          `json:"id"`
}

func (q *qemu) sayf(format string, args ...any) {
	_, _ = fmt.Fprintf(q.conn, format+"\n", args...)
}

func (q *qemu) hear() (c command) {
	line, err := q.in.ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &c)
	}
	if err != nil {
		q.Errorf("QEMU hears %q: %v", line, err)
	}
	return c
}

// open connects a client to a QEMU that greets and opens the session.
func open(t *testing.T, events func(Event)) (*Client, *qemu) {
	ours, theirs := net.Pipe()
	q := &qemu{T: t, conn: theirs, in: bufio.NewReader(theirs)}
	t.Cleanup(func() { _ = theirs.Close() })
	go func() {
		_, _ = theirs.Write([]byte(greeting))
		q.sayf(`{"return": {}, "id": "%s"}`, q.hear().ID)
	}()
	if events == nil {
		events = func(Event) {}
	}
	c, err := Open(t.Context(), ours, events)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c, q
}

func TestAnswersFindTheirCommands(t *testing.T) {
	var told []string
	c, q := open(t, func(e Event) { told = append(told, e.Name) })
	if c.Version() != "7.2.22" {
		t.Errorf("the version is %q", c.Version())
	}
	go func() {
		first, second, third := q.hear(), q.hear(), q.hear()
		for _, one := range []command{third, first, second} { // in another order than they came
			q.sayf(`{"event": "E%s", "timestamp": {"seconds": 1, "microseconds": 2}}`, one.Execute)
			q.sayf(`{"return": {"of": "%s", "with": %s}, "id": "%s"}`, one.Execute, one.Arguments, one.ID)
		}
	}()
	var all sync.WaitGroup
	for _, name := range []string{"a", "b", "c"} {
		all.Go(func() {
			var got struct {
				Of   string
				With map[string]string
			}
			if err := c.Do(t.Context(), name, map[string]string{"x": name}, &got); err != nil || got.Of != name || got.With["x"] != name {
				t.Errorf("%s is answered with %+v, %v", name, got, err)
			}
		})
	}
	all.Wait()
	if len(told) != 3 {
		t.Errorf("the events were %v", told)
	}
}

func TestRefusals(t *testing.T) {
	c, q := open(t, nil)
	go func() {
		q.sayf(`{"error": {"class": "GenericError", "desc": "no medium"}, "id": "%s"}`, q.hear().ID)
		q.sayf(`{"error": {"class": "DeviceNotFound", "desc": "Device 'x' not found"}, "id": "%s"}`, q.hear().ID)
		q.sayf(`{"return": [1], "id": "%s"}`, q.hear().ID)
	}()
	if err := c.Do(t.Context(), "a", nil, nil); !fault.Is(err, fault.Failed) || !strings.Contains(err.Error(), "no medium") {
		t.Errorf("what is refused: %v", err)
	}
	if err := c.Do(t.Context(), "b", nil, nil); !fault.Is(err, fault.NotFound) {
		t.Errorf("what is not there: %v", err)
	}
	var out map[string]string
	if err := c.Do(t.Context(), "c", nil, &out); !fault.Is(err, fault.Failed) {
		t.Errorf("an answer of another shape: %v", err)
	}
}

func TestAllAreToldWhenQEMUGoes(t *testing.T) {
	c, q := open(t, nil)
	var all sync.WaitGroup
	for range 5 {
		all.Go(func() {
			if err := c.Do(t.Context(), "query-status", nil, nil); !fault.Is(err, fault.Unavailable) {
				t.Errorf("who waits is told %v", err)
			}
		})
	}
	for range 5 {
		q.hear()
	}
	_ = q.conn.Close()
	all.Wait()
	<-c.Done()
	if err := c.Do(t.Context(), "query-status", nil, nil); !fault.Is(err, fault.Unavailable) {
		t.Errorf("who asks later is told %v", err)
	}
}

// TestTheAnswerBeforeTheEnd: QEMU answers quit and goes.
func TestTheAnswerBeforeTheEnd(t *testing.T) {
	for range 50 {
		c, q := open(t, nil)
		go func() {
			q.sayf(`{"return": {}, "id": "%s"}`, q.hear().ID)
			_ = q.conn.Close()
		}()
		if err := c.Do(t.Context(), "quit", nil, nil); err != nil {
			t.Fatal(err)
		}
	}
}

func TestWhoWaitsNoLonger(t *testing.T) {
	c, q := open(t, nil)
	ctx, cancel := context.WithCancelCause(t.Context())
	go func() {
		late := q.hear()
		cancel(errors.New("nobody wants it"))
		next := q.hear()
		q.sayf(`{"return": 1, "id": "%s"}`, late.ID)
		q.sayf(`{"return": 2, "id": "%s"}`, next.ID)
	}()
	if err := c.Do(ctx, "slow", nil, nil); !fault.Is(err, fault.Unavailable) || !strings.Contains(err.Error(), "nobody wants it") {
		t.Errorf("%v", err)
	}
	var n int
	if err := c.Do(t.Context(), "next", nil, &n); err != nil || n != 2 {
		t.Errorf("the next is answered with %d, %v", n, err)
	}
	if err := c.Do(ctx, "none", nil, nil); !fault.Is(err, fault.Unavailable) { // nothing is sent: the pipe has no reader
		t.Errorf("%v", err)
	}
}

func TestLinesHaveAnEnd(t *testing.T) {
	for name, line := range map[string]string{"too long": `{"event": "` + strings.Repeat("x", MaxLine) + `"}`, "no JSON": "Segmentation fault"} {
		c, q := open(t, nil)
		go func() {
			q.hear()
			q.sayf("%s", line)
		}()
		if err := c.Do(t.Context(), "query-status", nil, nil); !fault.Is(err, fault.Unavailable) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestNoGreeting(t *testing.T) {
	ours, theirs := net.Pipe()
	defer func() { _ = theirs.Close() }()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Open(ctx, ours, nil); !fault.Is(err, fault.Unavailable) {
		t.Errorf("%v", err)
	}
	ours, theirs = net.Pipe()
	go func() { _ = theirs.Close() }()
	if _, err := Open(t.Context(), ours, nil); !fault.Is(err, fault.Unavailable) {
		t.Errorf("%v", err)
	}
}
