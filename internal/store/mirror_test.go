package store_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/store"
)

// answers is a store that knows no transaction, and answers as it is told to.
type answers struct {
	store.Store
	err error
}

func (a answers) Enqueue(_ store.Tx, done func(store.Revision, error)) { done(1, a.err) }

// TestMirror: what is in memory is read anew where the store could not say what became of a change, at the end of that change, and before the next one until
// that goes; a change that is stored is known, though who asked has left, and one that is refused leaves no doubt.
func TestMirror(t *testing.T) {
	lost := errors.New("the connection is lost")
	reads, broken, known := 0, error(nil), 0
	m := &store.Mirror{Read: func(context.Context) error { reads++; return broken }}
	change := func(answer error) error {
		t.Helper()
		ctx, leave := context.WithCancel(t.Context())
		defer leave()
		done, err := m.Change(ctx)
		if err != nil {
			return err
		}
		defer done()
		leave() // who asked does not wait
		return m.Commit(ctx, answers{err: answer}, store.Tx{}, func() { known++ })
	}
	for _, c := range []struct {
		name                string
		answer, broken, err error
		reads, known        int
		unsure              bool
	}{
		{name: "it is stored", known: 1},
		{name: "it is refused", answer: fault.New(fault.Conflict, "no"), err: fault.New(fault.Conflict, "no"), known: 1},
		{name: "nobody knows, and it is read", answer: lost, err: lost, reads: 1, known: 1},
		{name: "nobody knows, and it cannot be read", answer: lost, broken: lost, err: lost, reads: 2, known: 1, unsure: true},
		{name: "the next one finds it out in vain", broken: lost, err: lost, reads: 3, known: 1, unsure: true},
		{name: "and then it can", reads: 4, known: 2},
	} {
		broken = c.broken
		err := change(c.answer)
		if (err == nil) != (c.err == nil) || err != nil && err.Error() != c.err.Error() || reads != c.reads || known != c.known || m.Unsure() != c.unsure {
			t.Errorf("%s: %v, read %d times, known %d, unsure %v", c.name, err, reads, known, m.Unsure())
		}
	}
}

// TestWhoWaitsForAChangeMayLeave: the one before it waits for a store that does not answer. It is let in when that ends, and no other meanwhile.
func TestWhoWaitsForAChangeMayLeave(t *testing.T) {
	m := &store.Mirror{Read: func(context.Context) error { return nil }}
	done, err := m.Change(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, leave := context.WithCancel(t.Context())
	leave()
	if _, err := m.Change(ctx); !fault.Is(err, fault.Unavailable) || !errors.Is(err, context.Canceled) {
		t.Errorf("who left is told %v", err)
	}
	let := make(chan error, 1)
	var ended atomic.Bool
	go func() {
		done, err := m.Change(t.Context())
		if err == nil {
			defer done()
		}
		if err == nil && !ended.Load() {
			err = errors.New("it was let in before the first one had ended")
		}
		let <- err
	}()
	ended.Store(true)
	done()
	if err := <-let; err != nil {
		t.Error(err)
	}
}

// TestMirrorShares: who shares keeps a change away, and no other who does.
func TestMirrorShares(t *testing.T) {
	m := &store.Mirror{}
	first, second := m.Share(), m.Share()
	first()
	in := make(chan func(), 1)
	go func() {
		done, _ := m.Change(context.Background()) // nothing is to be read
		in <- done
	}()
	select {
	case <-in:
		t.Error("a change began while somebody relied upon what was known")
	default:
	}
	second()
	(<-in)()
}
