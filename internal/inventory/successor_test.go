package inventory

import (
	"context"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/store"
	"github.com/drover-project/drover/internal/store/faultstore"
)

// overtaken is a store that loses the answer of the next transaction, which it has made, and has something happen before
// anybody hears of that.
type overtaken struct {
	store.Store

	happens func()
}

func (s *overtaken) Enqueue(tx store.Tx, done func(store.Revision, error)) {
	happens := s.happens
	if happens == nil {
		s.Store.Enqueue(tx, done)
		return
	}
	s.happens = nil
	s.Store.Enqueue(tx, func(store.Revision, error) {
		go func() {
			happens()
			done(0, fault.New(fault.Unavailable, "the connection was lost at the commit"))
		}()
	})
}

// A change that was made, and that the next leader has made undone by the time at which it is looked for, is not said to have been refused:
// who looks has to find out first that another leads.
func TestWhatASuccessorWroteOverIsNotSaidToBeRefused(t *testing.T) {
	inBubble(t, func(t *testing.T, s *faultstore.Store, _ *Keeper) {
		lease, err := s.AcquireLease(t.Context(), "leader", "me", time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		slow := &overtaken{Store: s}
		k := open(t, slow, lease.Epoch)
		defer k.Close()
		slow.happens = func() {
			if err := s.ReleaseLease(context.Background(), lease); err != nil {
				t.Error(err)
			}
			now, err := s.AcquireLease(context.Background(), "leader", "another", time.Hour)
			if err != nil {
				t.Error(err)
			}
			next := open(t, s, now.Epoch)
			defer next.Close()
			if !next.Snapshot().Cluster().Tags.Has("a") {
				t.Error("it was not made")
			}
			if err := next.Update(context.Background(), func(snap *cluster.Snapshot) ([]cluster.Change, error) {
				c := snap.Cluster().Clone()
				c.Tags = nil
				return []cluster.Change{cluster.Put(c)}, nil
			}); err != nil {
				t.Error(err)
			}
		}
		if err := k.Update(t.Context(), addTag("a")); !fault.Is(err, fault.Unavailable) {
			t.Errorf("the update is answered %v", err)
		}
	})
}
