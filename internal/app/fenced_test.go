package app

import (
	"context"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/store"
	"github.com/drover-project/drover/internal/store/sqlite"
)

// TestATermEndsWithTheFirstWriteThatIsRefused: whoever is told that another controller leads ends the term, and nothing else does.
func TestATermEndsWithTheFirstWriteThatIsRefused(t *testing.T) {
	opened, err := sqlite.Open(t.TempDir(), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = opened.Close() }()
	acquire := func() store.Lease {
		t.Helper()
		l, err := opened.AcquireLease(t.Context(), leaseName, "this machine", leaseTime)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	before := acquire()
	s := newTermStore(opened, acquire().Epoch)
	put := []store.Put{{Key: store.Key{Kind: "thing", ID: "1"}, Value: []byte("x")}}
	for _, tx := range []store.Tx{
		{Epoch: before.Epoch, Put: put}, // somebody else's
		{Epoch: s.epoch, Put: put},
		{Epoch: s.epoch, Put: put, Expect: []store.Expect{{Key: put[0].Key, Revision: 99}}},
	} {
		_, _ = store.Commit(t.Context(), s, tx)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.wait(over); err != nil {
		t.Errorf("the term ends although nobody else leads: %v", err)
	}
	acquire()
	for range 2 {
		if _, err := store.Commit(t.Context(), s, store.Tx{Epoch: s.epoch, Put: put}); !fault.Is(err, fault.Fenced) {
			t.Fatalf("a late write: %v", err)
		}
	}
	limit, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := s.wait(limit); !fault.Is(err, fault.Fenced) {
		t.Errorf("a late write was refused, and the term goes on: %v", err)
	}
}
