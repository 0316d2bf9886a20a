package queue_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/audit"
	"github.com/drover-project/drover/internal/queue"
	"github.com/drover-project/drover/internal/reason"
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

// TestEventsGoByTheirAge holds the pruning of events against a model, wherever it was interrupted and begun again: those of before a moment go, up to the first that
// is not, and nothing else; the newest stays, and numbers go on behind it.
func TestEventsGoByTheirAge(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	r := newRig(t, 1)
	const events = 2600
	begun := time.Unix(1_700_000_000, 0)
	model, last := map[int64]time.Time{}, begun
	tx := store.Tx{}
	for id := int64(1); id <= events; id++ {
		at := begun.Add(time.Duration(id) * time.Second)
		value := (&audit.Event{ID: id, Time: at.UnixNano(), What: audit.QueueDrain}).Encode()
		if random.IntN(100) == 0 { // it is as old as the one before it
			value, at = []byte("{\"time\":"), last
		}
		model[id], last = at, at
		tx.Put = append(tx.Put, store.Put{Key: store.Key{Kind: queue.KindEvent, ID: strconv.FormatInt(id, 10)}, Value: value})
	}
	_, err := store.Commit(ctx, r.store, tx)
	r.check(err)
	r.crash()
	before := begun
	for range 6 {
		before = before.Add(time.Duration(random.IntN(events/4)) * time.Second)
		foreseen, err := r.q.PrunableEvents(ctx, before)
		r.check(err)
		some, stop := context.WithTimeout(ctx, time.Duration(random.IntN(3000))*time.Microsecond)
		_, _ = r.q.PruneEvents(some, before, time.Hour, nil) // its outcome is not known
		stop()
		if random.IntN(2) == 0 {
			r.crash()
		}
		p, err := r.q.PruneEvents(ctx, before, time.Hour, nil)
		if err != nil || p.More || p.Events > foreseen.Events {
			t.Fatalf("%+v, %v; foreseen were %+v", p, err, foreseen)
		}
		due := 0
		for id, at := range model {
			if at.Before(before) && id < events {
				delete(model, id)
				due++
			}
		}
		if foreseen.Events != due || due > 0 && (foreseen.Bytes == 0 || foreseen.Last.Before(foreseen.First)) {
			t.Errorf("%+v were foreseen, %d are due", foreseen, due)
		}
		left := map[int64]bool{}
		for e, err := range r.q.Events(ctx) {
			r.check(err)
			left[e.ID] = true
		}
		for id := int64(1); id <= events; id++ {
			if _, stays := model[id]; stays != left[id] {
				t.Fatalf("before %v event %d is there: %v", before, id, left[id])
			}
		}
	}
	n, oldest, err := r.q.EventSpan(ctx)
	if err != nil || n != int64(len(model)) || oldest.Before(before) && len(model) > 1 {
		t.Errorf("%d events from %v, %v; there are %d", n, oldest, err, len(model))
	}
	_, err = r.q.PruneEvents(ctx, time.Now(), time.Hour, &queue.By{Account: reason.Account{Name: "op"}})
	r.check(err)
	r.crash()
	all := r.events()
	if len(all) != 2 || all[0].ID != events || all[1].ID != events+1 || all[1].What != audit.EventPrune || all[1].Who != "op" {
		t.Errorf("the newest event and that of the removal are %+v", all)
	}
}

// TestEventsOfATimeOfAgesGo: with an age there is no bound, and where none is said any more, what is beyond the bound goes by itself.
func TestEventsOfATimeOfAgesGo(t *testing.T) {
	const kept = 100_000
	r := newRig(t, 1)
	var tx store.Tx
	for _, id := range []int64{1, 2, 3, kept, kept + 2} {
		e := audit.Event{ID: id, Time: id, What: audit.QueueDrain}
		tx.Put = append(tx.Put, store.Put{Key: store.Key{Kind: queue.KindEvent, ID: e.Key()}, Value: e.Encode()})
	}
	_, err := store.Commit(ctx, r.store, tx)
	r.check(err)
	for byAge, want := range map[bool]int{true: 0, false: 2} { // 1 and 2 are beyond 100,000
		r.eventsByAge = byAge
		r.crash()
		if p, err := r.q.PrunableEvents(ctx, time.Time{}); err != nil || p.Events != want {
			t.Errorf("by age %v: %+v, %v", byAge, p, err)
		}
	}
	r.eventsByAge = true
	r.crash()
	r.check(r.q.SetDrained(ctx, true, alice("no event goes")))
	if got := len(r.events()); got != 6 {
		t.Errorf("of six events there are %d", got)
	}
}
