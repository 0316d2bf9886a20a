package app

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/store"
	"github.com/drover-project/drover/internal/store/sqlite"
)

// refusing is a store that refuses the first changes that it is told to.
type refusing struct {
	store.Store

	why  error
	left atomic.Int32
}

func (s *refusing) Enqueue(tx store.Tx, done func(store.Revision, error)) {
	if s.left.Add(-1) >= 0 {
		done(0, s.why)
		return
	}
	s.Store.Enqueue(tx, done)
}

// TestWhoLeadsIsToldWhenTheStoreCan: one that fails for a time ends no term, and one that says that another leads does. Who is asked to give the lead up is told so.
func TestWhoLeadsIsToldWhenTheStoreCan(t *testing.T) {
	for _, why := range []error{
		fault.New(fault.Unavailable, "the database is away"), fault.New(fault.Exhausted, "the disk of the store is full"), fault.New(fault.Fenced, "another leads"),
	} {
		opened, err := sqlite.Open(t.TempDir(), sqlite.Options{})
		if err != nil {
			t.Fatal(err)
		}
		s := &refusing{Store: opened, why: why}
		s.left.Store(1)
		g := &group{m: &member{store: s, log: slog.New(slog.DiscardHandler)}, resigning: make(chan resignation)}
		ctx, cancel := context.WithCancel(t.Context())
		type end struct {
			asked *resignation
			err   error
		}
		ended := make(chan end, 1)
		go func() {
			asked, err := g.keepTelling(ctx, store.Tx{Put: []store.Put{{Key: leaderKey, Value: []byte("{}")}}})
			ended <- end{asked, err}
		}()
		if passes(why) {
			for _, err := range s.Watch(ctx, 0) {
				if err != nil {
					t.Error(err)
				}
				break // it is told
			}
			g.resigning <- resignation{successor: "c2"}
		}
		switch e := <-ended; {
		case passes(why) && (e.err != nil || e.asked == nil || e.asked.successor != "c2"):
			t.Errorf("%v: it ended with %+v, %v", why, e.asked, e.err)
		case !passes(why) && !fault.Is(e.err, fault.Fenced):
			t.Errorf("%v: it ended with %+v, %v", why, e.asked, e.err)
		}
		cancel()
		if err := opened.Close(); err != nil {
			t.Error(err)
		}
	}
}
