package queue

import (
	"context"
	"strconv"
	"time"

	"github.com/drover-project/drover/internal/audit"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/store"
)

// By is who asks for something that is no job, and why.
type By = audit.By

// keptEvents is how many events are kept where no age says which: older ones go as new ones come.
const keptEvents = 100_000

// eventsBatch is how many events go in one transaction.
const eventsBatch = 1000

// EventPruning is which events went, or would go.
type EventPruning struct {
	Events int
	// First and Last are when they were, zero if there are none.
	First, Last time.Time
	// Bytes is the size of their values in the store.
	Bytes int64
	// More says that there was no time for all.
	More bool
}

func (p *EventPruning) add(old *agedEvents) {
	if p.Events == 0 {
		p.First = old.first
	}
	p.Events += len(old.keys)
	p.Last, p.Bytes = old.last, p.Bytes+old.bytes
}

// agedEvents are events that follow each other, and go together.
type agedEvents struct {
	keys        []store.Key
	first, last time.Time
	bytes       int64
}

// PrunableEvents tells what PruneEvents would remove now.
func (q *Queue) PrunableEvents(ctx context.Context, before time.Time) (p EventPruning, err error) {
	err = q.eachAged(ctx, before, func(old *agedEvents) (bool, error) {
		p.add(old)
		return true, nil
	})
	return p, err
}

// PruneEvents removes the events of before a moment, and those of which there are too many where no age says which stay, until the limit is over; the newest event stays, above which numbers are given. Somebody
// who asks for it leaves an event; what goes by its age alone does not, or there would always be one more to go.
func (q *Queue) PruneEvents(ctx context.Context, before time.Time, limit time.Duration, by *By) (p EventPruning, err error) {
	if !q.prunes.TryLock() {
		return p, fault.New(fault.Busy, "the archive is being pruned at the moment").WithHint("try again when that is over")
	}
	defer q.prunes.Unlock()
	begun := q.cfg.Now()
	err = q.eachAged(ctx, before, func(old *agedEvents) (bool, error) {
		now := q.cfg.Now()
		if p.More = now.Sub(begun) >= limit; p.More {
			return false, nil
		}
		if err := q.pruneEvents(ctx, old, by); err != nil {
			return false, err
		}
		p.add(old)
		return true, rest(ctx, min(q.cfg.Now().Sub(now), longestRest))
	})
	return p, err
}

func (q *Queue) pruneEvents(ctx context.Context, old *agedEvents, by *By) error {
	return q.change(ctx, func(w *work) error {
		w.pruned = &pruned{gone: old.keys}
		w.touch(PrunedKey)
		if by != nil {
			e := audit.New(audit.EventPrune, "", *by)
			e.After = encode(map[string]any{"events": len(old.keys), "first": old.keys[0].ID, "last": old.keys[len(old.keys)-1].ID})
			q.record(w, e)
		}
		return nil
	})
}

// eachAged hands over the events of before a moment, oldest first, a portion at a time, until it is told to stop. One that cannot be read is as old as
// the one before it: it must not keep those behind it.
func (q *Queue) eachAged(ctx context.Context, before time.Time, do func(*agedEvents) (bool, error)) error {
	newest := q.newestEvent()
	beyond := newest - keptEvents // what is left of a time in which an age was said
	if q.cfg.EventsByAge {
		beyond = 0
	}
	after := ""
	for {
		old, ended := &agedEvents{}, true
		for o, err := range q.cfg.Store.List(ctx, KindEvent, store.Options{After: after, Limit: eventsBatch}) {
			if err != nil {
				return err
			}
			if ended = !old.take(o, before, newest, beyond); ended {
				break
			}
			after = o.ID
		}
		if len(old.keys) == 0 {
			return nil
		}
		if goOn, err := do(old); err != nil || !goOn || ended {
			return err
		}
	}
}

// newestEvent is the number of the newest event.
func (q *Queue) newestEvent() int64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.lastEvent
}

// take takes an event that goes, and tells whether it does.
func (p *agedEvents) take(o store.Object, before time.Time, newest, beyond int64) bool {
	n, bad := strconv.ParseInt(o.ID, 10, 64)
	if bad != nil || n >= newest {
		return false
	}
	at := p.last
	if e, err := audit.Decode(o.Value); err == nil {
		at = time.Unix(0, e.Time)
	}
	if n > beyond && !at.Before(before) {
		return false
	}
	if len(p.keys) == 0 {
		p.first = at
	}
	p.keys, p.last, p.bytes = append(p.keys, o.Key), at, p.bytes+int64(len(o.Value))
	return true
}

// EventSpan tells about how many events there are, and when the oldest was; zero if there is none.
func (q *Queue) EventSpan(ctx context.Context) (n int64, oldest time.Time, err error) {
	for o, err := range q.cfg.Store.List(ctx, KindEvent, store.Options{Limit: 1}) {
		if err != nil {
			return 0, oldest, err
		}
		if first, bad := strconv.ParseInt(o.ID, 10, 64); bad == nil {
			n = q.newestEvent() - first + 1
		}
		if e, bad := audit.Decode(o.Value); bad == nil {
			oldest = time.Unix(0, e.Time)
		}
	}
	return n, oldest, nil
}

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
	q.putEvents(tx, []*audit.Event{made})
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
func (q *Queue) putEvents(tx *store.Tx, events []*audit.Event) {
	for _, e := range events {
		tx.Put = append(tx.Put, store.Put{Key: store.Key{Kind: KindEvent, ID: e.Key()}, Value: e.Encode()})
		if old := (audit.Event{ID: e.ID - keptEvents}); old.ID > 0 && !q.cfg.EventsByAge {
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
