package agentwire

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/exec/nodetest"
	"github.com/drover-project/drover/internal/fault"
)

// ends waits for what a call comes to.
func (x *execution) ends() *end {
	for {
		frames, more := x.since(0)
		if n := len(frames); n > 0 && frames[n-1].End != nil {
			return frames[n-1].End
		}
		<-more
	}
}

// TestACallIsNotedBeforeItIsTold: an agent that ends at any moment leaves word of each call that it began, and of the end of each of which
// anybody was told.
func TestACallIsNotedBeforeItIsTold(t *testing.T) {
	h, err := NewHandler(silent{}, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	for range 10 {
		id := newID()
		x, err := h.calls.begin(&request{ID: id}, "reboot-soft", true, func(context.Context, Served, func(string)) (any, error) {
			if came, begun, err := h.calls.journal.find(id); came != nil || !begun || err != nil {
				t.Errorf("in its midst it is noted with %v, %v, %v", came, begun, err)
			}
			return none{}, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		x.ends()
		if came, begun, err := h.calls.journal.find(id); came == nil || !begun || err != nil {
			t.Errorf("behind its end it is noted with %v, %v, %v", came, begun, err)
		}
	}
}

// TestACallThatGoesOnIsNotForgotten, whoever says that its answer has come: it can still be joined, and be ended.
func TestACallThatGoesOnIsNotForgotten(t *testing.T) {
	h := newHandler(t, silent{})
	defer h.Close()
	id, goesOn := newID(), func(ctx context.Context, _ Served, _ func(string)) (any, error) {
		<-ctx.Done()
		return nil, context.Cause(ctx)
	}
	x, err := h.calls.begin(&request{ID: id}, "reboot-soft", true, goesOn)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := h.calls.begin(&request{ID: id, Repeat: true, Had: []string{id}}, "reboot-soft", true, goesOn); err != nil || again != x {
		t.Errorf("it is not joined: %v", err)
	}
	if !h.calls.cancelCall(id, fault.New(fault.Canceled, "enough")) {
		t.Fatal("it is not known any more")
	}
	if e := x.ends(); e.Error == nil || e.Error.Code != fault.Canceled {
		t.Errorf("it ends with %+v", e)
	}
}

// trips is a connection that answers as a function does.
type trips func(*http.Request) (*http.Response, error)

func (f trips) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestWhatWasHadIsSaidUntilItArrives: a call says which answers have come, so that the agent need not keep them; what was lost with
// one is said with the next.
func TestWhatWasHadIsSaidUntilItArrives(t *testing.T) {
	var asked []request
	conn := trips(func(r *http.Request) (*http.Response, error) {
		var q request
		if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
			t.Error(err)
		}
		if asked = append(asked, q); len(asked) == 2 {
			return nil, errors.New("the wire is cut")
		}
		return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(`{"end":{"result":{}}}` + "\n"))}, nil
	})
	c := NewClient("node1", func(context.Context) (http.RoundTripper, error) { return conn, nil }, 0)
	for n := range 3 {
		if err := c.Remove(t.Context(), nodetest.Order(n+1, 1), nodetest.One); err != nil {
			t.Fatal(err)
		}
	}
	if len(asked) != 4 || asked[1].ID != asked[2].ID {
		t.Fatalf("it is asked %+v", asked)
	}
	for i, want := range [][]string{nil, {asked[0].ID}, {asked[0].ID}, {asked[2].ID}} {
		if !slices.Equal(asked[i].Had, want) {
			t.Errorf("request %d says that %v were had, want %v", i+1, asked[i].Had, want)
		}
	}
}

// TestANoteThatCannotBeReadIsNoLeave to carry a call out again: nobody knows what came of it.
func TestANoteThatCannotBeReadIsNoLeave(t *testing.T) {
	dir := t.TempDir()
	h, err := NewHandler(silent{}, dir)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	for what, text := range map[string]string{"nothing": "", "half an end": `{"result":`, "something else": `"x"`} {
		id := newID()
		if err := os.WriteFile(filepath.Join(dir, id), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := h.calls.begin(&request{ID: id, Repeat: true}, "reboot-soft", true, func(context.Context, Served, func(string)) (any, error) {
			t.Errorf("a call of which %s is noted is carried out", what)
			return none{}, nil
		})
		if !fault.Is(err, fault.Unavailable) {
			t.Errorf("a call of which %s is noted: %v", what, err)
		}
	}
}

// TestWhatMayHaveChangedANodeIsCounted: whoever keeps what a node told last sees that it may be otherwise by now, also behind a call of which
// nobody knows what became; a question changes nothing.
func TestWhatMayHaveChangedANodeIsCounted(t *testing.T) {
	lost := false
	conn := trips(func(*http.Request) (*http.Response, error) {
		if lost {
			return nil, errors.New("the wire is cut")
		}
		return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(`{"end":{"result":{}}}` + "\n"))}, nil
	})
	c := NewClient("node1", func(context.Context) (http.RoundTripper, error) { return conn, nil }, time.Millisecond)
	if _, err := c.Info(t.Context()); err != nil || c.Changes() != 0 {
		t.Errorf("behind a question: %d changes, %v", c.Changes(), err)
	}
	if err := c.Remove(t.Context(), nodetest.Order(1, 1), nodetest.One); err != nil || c.Changes() != 1 {
		t.Errorf("behind an order: %d changes, %v", c.Changes(), err)
	}
	lost = true
	if err := c.Remove(t.Context(), nodetest.Order(2, 1), nodetest.One); !fault.Is(err, fault.Unavailable) || c.Changes() != 2 {
		t.Errorf("behind one whose answer is lost: %d changes, %v", c.Changes(), err)
	}
}
