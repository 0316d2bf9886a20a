package tagsync_test

import (
	"bytes"
	"context"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/server"
	"github.com/drover-project/drover/internal/store"
	"github.com/drover-project/drover/internal/store/faultstore"
	"github.com/drover-project/drover/internal/tagsync"
	"github.com/drover-project/drover/internal/testkit"
)

// makesServer is true of what makes a server: that is given a number, by which it is told from what the engine writes of a server by itself.
func makesServer(tx store.Tx) bool {
	return slices.ContainsFunc(tx.Put, func(p store.Put) bool { return p.Key == tagsync.NumberKey })
}

// writes returns what is true of each write of a server that has a word: a tag, or the name of a size. A server that is at rest may still be written down by the
// engine, which is no answer to anybody.
func writes(word string) func(store.Tx) bool {
	return func(tx store.Tx) bool {
		return len(tx.Put) > 0 && tx.Put[0].Kind == tagsync.KindServer && bytes.Contains(tx.Put[0].Value, []byte(strconv.Quote(word)))
	}
}

// TestAServerIsMadeThatNobodyWasToldOf: the store has it, so the next leader would make it, whenever that comes.
func TestAServerIsMadeThatNobodyWasToldOf(t *testing.T) {
	r := newRig(t)
	create := func(do faultstore.Effect) {
		r.store.Inject(faultstore.Fault{Do: do, When: makesServer})
		if s, err := r.engine.Create(r.ctx, &tagsync.Wish{Name: "web", Project: "p", User: "u", Flavor: server.DefaultFlavors()[3], Image: r.engine.Images()[0], Asked: r.asked()}); err == nil {
			t.Fatalf("it is acknowledged as %s", s.ID)
		}
	}
	create(faultstore.FailBefore)
	create(faultstore.FailAfter)
	var id string
	testkit.Until(r, "the leader shows it", r.shown.Changed, func() bool {
		for s := range r.engine.Servers().All() {
			id = s.ID
		}
		return id != ""
	}, func() any { return r.engine.Servers().Len() })
	r.until(id, "is active and at rest", func(s *server.Server) bool { return s.Status() == server.Active && atRest(s) })
	if n := r.engine.Servers().Len(); n != 1 {
		t.Errorf("there are %d servers", n)
	}
}

// TestAWishIsFulfilledThatNobodyWasToldOf, without anybody asking for anything else.
func TestAWishIsFulfilledThatNobodyWasToldOf(t *testing.T) {
	r := newRig(t)
	s := r.create()
	r.store.Inject(faultstore.Fault{Do: faultstore.FailAfter, When: writes("wished")})
	if _, err := r.engine.Want(s.ID, user, []string{"wished"}, r.asked()); err == nil {
		t.Fatal("it is acknowledged")
	}
	r.until(s.ID, "has its tag", func(s *server.Server) bool { return s.Tags.Has(user, "wished") && atRest(s) })
}

// TestAServerIsMadeWhoseUserLeft before its store had answered; a stop meanwhile does not wait for that answer.
func TestAServerIsMadeWhoseUserLeft(t *testing.T) {
	r := newRig(t)
	leave := func() (answer func()) {
		gate := make(chan struct{})
		held := r.store.Inject(faultstore.Fault{Do: faultstore.Hold, Gate: gate, When: makesServer})
		ctx, cancel := context.WithCancel(r.ctx)
		left := make(chan error, 1)
		go func() {
			_, err := r.engine.Create(ctx, &tagsync.Wish{Name: "web", Project: "p", User: "u", Flavor: server.DefaultFlavors()[3], Image: r.engine.Images()[0], Asked: r.asked()})
			left <- err
		}()
		<-held
		cancel()
		if err := <-left; err == nil {
			t.Error("who left was told")
		}
		return sync.OnceFunc(func() { close(gate) })
	}
	leave()()
	testkit.Until(r, "the leader shows it", r.shown.Changed, func() bool { return r.engine.Servers().Len() == 1 }, func() any { return r.engine.Servers().Len() })
	for s := range r.engine.Servers().All() {
		r.until(s.ID, "is active and at rest", func(s *server.Server) bool { return s.Status() == server.Active && atRest(s) })
	}
	answer := leave()
	t.Cleanup(answer)
	stopped := make(chan struct{})
	go func() { r.engine.Close(); close(stopped) }()
	select {
	case <-stopped:
	case <-time.After(testkit.Patience()):
		t.Error("the stop waits for a store that does not answer")
	}
	answer()
}
