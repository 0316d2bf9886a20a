package queue

import (
	"context"
	"strconv"

	"github.com/drover-project/drover/internal/audit"
	"github.com/drover-project/drover/internal/store"
)

// By is who asks for something that is no job, and why.
type By = audit.By

// keptEvents is how many events are kept; older ones go as new ones come.
const keptEvents = 100_000

// record has an event made durable with the work.
func (q *Queue) record(w *work, e audit.Event) { w.events = append(w.events, q.numbered(e)) }

// numbered gives an event its number and time. The caller holds mu.
func (q *Queue) numbered(e audit.Event) *audit.Event {
	q.lastEvent++
	e.ID, e.Time = q.lastEvent, q.cfg.Now().UnixNano()
	return &e
}

// Note adds an event of another engine to the transaction of the change that it tells of. Whoever commits that shows
// the event once it is durable; the number of one that is refused stays unused.
func (q *Queue) Note(tx *store.Tx, e audit.Event) *audit.Event {
	q.mu.Lock()
	defer q.mu.Unlock()
	made := q.numbered(e)
	putEvents(tx, []*audit.Event{made})
	return made
}

// Record makes an event durable that tells of something besides the store, which is done when it is.
func (q *Queue) Record(ctx context.Context, e audit.Event) error {
	return q.change(ctx, func(w *work) error {
		q.record(w, e)
		return nil
	})
}

// putEvents adds a work's events to its transaction. They never change, so to
// write them again repeats what is true.
func putEvents(tx *store.Tx, events []*audit.Event) {
	for _, e := range events {
		tx.Put = append(tx.Put, store.Put{Key: store.Key{Kind: KindEvent, ID: e.Key()}, Value: e.Encode()})
		if old := (audit.Event{ID: e.ID - keptEvents}); old.ID > 0 {
			tx.Delete = append(tx.Delete, store.Key{Kind: KindEvent, ID: old.Key()})
		}
	}
}

// loadEvents finds the number of the newest event.
func (q *Queue) loadEvents(ctx context.Context) error {
	for o, err := range q.cfg.Store.List(ctx, KindEvent, store.Options{Desc: true}) {
		if err != nil {
			return err
		}
		if n, err := strconv.ParseInt(o.ID, 10, 64); err == nil {
			q.lastEvent = n
			break
		}
	}
	return nil
}
