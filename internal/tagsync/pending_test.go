package tagsync_test

import (
	"strconv"
	"testing"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/server"
	"github.com/drover-project/drover/internal/store"
	"github.com/drover-project/drover/internal/store/faultstore"
	"github.com/drover-project/drover/internal/tagsync"
)

// TestNothingIsToldUponWhatMayFail: who asks for what another request asked for
// already, and what is not durable yet, is not told that it is there. What comes
// behind a change that failed is made upon what the store has.
func TestNothingIsToldUponWhatMayFail(t *testing.T) {
	r := newRig(t)
	s := r.create()
	gate := make(chan struct{})
	held := r.store.Inject(faultstore.Fault{Do: faultstore.Hold, When: writes("first"), Gate: gate})
	type answer struct {
		created []string
		err     error
	}
	want := func(name string) <-chan answer {
		c := make(chan answer, 1)
		go func() {
			created, err := r.engine.Want(s.ID, user, []string{name}, r.asked())
			c <- answer{created, err}
		}()
		return c
	}
	first := want("first")
	<-held
	failed := r.store.Inject(faultstore.Fault{Do: faultstore.FailBefore, When: writes("second")})
	second := want("second")
	<-failed
	third := want("second")
	close(gate)
	if a := <-first; a.err != nil || len(a.created) != 1 {
		t.Errorf("the one before: %+v", a)
	}
	if a := <-second; a.err == nil {
		t.Errorf("the one that failed: %+v", a)
	}
	if a := <-third; a.err == nil && len(a.created) == 0 {
		t.Error("what failed is told to be there")
	}
	if _, err := r.engine.Want(s.ID, user, []string{"b"}, r.asked()); err != nil {
		t.Errorf("the one after: %v", err)
	}
	s = r.settled(s.ID)
	if !s.Tags.Has(user, "first") || !s.Tags.Has(user, "b") {
		t.Errorf("there are %q", s.Tags.Names(user))
	}
}

// TestNobodyIsToldToBeGoneUponWhatMayFail: a server is about to be removed, which the store does not take in the end. Nobody who asks for something of it
// meanwhile is told that it is not there.
func TestNobodyIsToldToBeGoneUponWhatMayFail(t *testing.T) {
	r := newRig(t)
	s := r.create()
	gate := make(chan struct{})
	held := r.store.Inject(faultstore.Fault{Do: faultstore.Hold, Gate: gate, When: func(tx store.Tx) bool { return len(tx.Put) == 1 && tx.Put[0].Kind == tagsync.KindServer }})
	failed := r.store.Inject(faultstore.Fault{Do: faultstore.FailBefore, When: func(tx store.Tx) bool { return len(tx.Delete) == 1 && tx.Delete[0].Kind == tagsync.KindServer }})
	const many = 20 // so that some come in time
	answers := make(chan error, many)
	ask := func(name string) {
		_, err := r.engine.Want(s.ID, user, []string{name}, r.asked())
		answers <- err
	}
	go ask("first")
	<-held
	removed := make(chan error, 1)
	go func() {
		_, err := r.engine.Change(s.ID, func(*server.Server) (*server.Server, error) { return nil, nil })
		removed <- err
	}()
	<-failed
	for i := range many - 1 {
		go ask("later-" + strconv.Itoa(i))
	}
	close(gate)
	if err := <-removed; err == nil {
		t.Error("what the store did not take is said to be done")
	}
	for range many {
		if err := <-answers; fault.Is(err, fault.NotFound) {
			t.Errorf("of a server that is there is told: %v", err)
		}
	}
}
