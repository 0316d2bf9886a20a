package queue_test

import (
	"slices"
	"testing"

	"github.com/drover-project/drover/internal/audit"
	"github.com/drover-project/drover/internal/queue"
	"github.com/drover-project/drover/internal/store"
)

// TestOldEventsGo: the newest 100,000 are kept (docs/operations.md), and with each further one the oldest goes.
func TestOldEventsGo(t *testing.T) {
	const kept = 100_000
	r := newRig(t, 1)
	var tx store.Tx
	for _, id := range []int64{1, 2, 3, kept} {
		e := audit.Event{ID: id, Time: id, What: audit.QueueDrain}
		tx.Put = append(tx.Put, store.Put{Key: store.Key{Kind: queue.KindEvent, ID: e.Key()}, Value: e.Encode()})
	}
	_, err := store.Commit(ctx, r.store, tx)
	r.check(err)
	r.crash()
	for i, want := range [][]int64{{2, 3, kept, kept + 1}, {3, kept, kept + 1, kept + 2}} {
		r.check(r.q.SetDrained(ctx, i == 0, alice("the next one")))
		var ids []int64
		for _, e := range r.events() {
			ids = append(ids, e.ID)
		}
		if !slices.Equal(ids, want) {
			t.Errorf("behind event %d there are %d, want %d", kept+i, ids, want)
		}
	}
}
