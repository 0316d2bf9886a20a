package live

import (
	"context"
	"iter"
	"slices"
	"time"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/query"
	"github.com/drover-project/drover/internal/queue"
	"github.com/drover-project/drover/internal/store"
)

// Update is what is new in the answer of a query that is followed.
type Update struct {
	// Revision is the state of the store up to which the update tells all; to
	// go on after a broken connection, give it to Follow or Next.
	Revision store.Revision `json:"revision"`
	// Reset: forget all rows known so far, Events are all there are.
	Reset  bool          `json:"reset"`
	Fields []query.Def   `json:"fields"`
	Events []query.Event `json:"events"`
}

// Pauses of a reader of the feed.
const (
	// gather lets the changes of a moment come together. It also lets the state
	// in memory, which a change reaches just after the feed, catch up.
	gather = 25 * time.Millisecond
	// settle is when the answer is looked at once more after the last change.
	settle = time.Second
	// maxResume is how many changes are read to go on from a revision; with
	// more, all rows are sent instead.
	maxResume = 5000
)

// dependence says which kinds of stored objects the rows of an item depend on:
// each row on one object of its own, and all on the others.
type dependence struct {
	own    store.Kind
	others []store.Kind
}

var inventoryKinds = []store.Kind{
	store.Kind(cluster.KindCluster), store.Kind(cluster.KindGroup), store.Kind(cluster.KindNode),
	store.Kind(cluster.KindInstance), store.Kind(cluster.KindNetwork),
}

var dependences = map[string]dependence{
	"job":      {own: queue.KindJob, others: []store.Kind{queue.KindFilter}},
	"filter":   {own: queue.KindFilter},
	"instance": {own: store.Kind(cluster.KindInstance), others: inventoryKinds},
	"node":     {own: store.Kind(cluster.KindNode), others: inventoryKinds},
	"group":    {own: store.Kind(cluster.KindGroup), others: inventoryKinds},
	"network":  {own: store.Kind(cluster.KindNetwork), others: inventoryKinds},
}

// followed is a query that is followed.
type followed struct {
	q     *Querier
	r     query.Request
	on    dependence
	known bool // on says what the rows depend on; else it may be anything
	live  bool // some values come from nodes, and jobs change those
	watch query.Watch
}

func (q *Querier) follow(ctx context.Context, r query.Request) (*followed, error) {
	plan, err := query.Prepare(q.Source(ctx), r)
	if err != nil {
		return nil, err
	}
	f := &followed{q: q, r: r, live: plan.Need != 0}
	f.on, f.known = dependences[r.What]
	return f, nil
}

// Follow yields what is new in the answer of a query: first the state as it is
// (or, with a revision of an earlier update, what is new since), then each
// change as it becomes durable, until ctx ends, which is no error. Values that
// only nodes know are asked again when anything changes that may concern them.
func (q *Querier) Follow(ctx context.Context, r query.Request, since store.Revision) iter.Seq2[*Update, error] {
	return func(yield func(*Update, error) bool) {
		f, err := q.follow(ctx, r)
		if err != nil {
			yield(nil, err)
			return
		}
		u, err := f.resume(ctx, since)
		for quiet := false; err == nil; {
			if (u.Reset || len(u.Events) > 0) && !yield(u, nil) {
				return
			}
			if quiet, err = f.await(ctx, u.Revision, quiet); err == nil {
				u, err = f.step(ctx)
			}
		}
		if ctx.Err() == nil {
			yield(nil, err)
		}
	}
}

// Next is one step of Follow for clients that ask again each time: it waits for
// something to be new after a revision, or for ctx to end, which gives an empty
// update. With revision 0 it answers at once.
func (q *Querier) Next(ctx context.Context, r query.Request, since store.Revision) (*Update, error) {
	u, err := q.next(ctx, r, since)
	if err != nil && since > 0 && ctx.Err() != nil {
		u, err = &Update{Revision: since, Events: []query.Event{}}, nil
	}
	return u, err
}

func (q *Querier) next(ctx context.Context, r query.Request, since store.Revision) (*Update, error) {
	f, err := q.follow(ctx, r)
	if err != nil {
		return nil, err
	}
	if since > 0 {
		if _, err := f.await(ctx, since, true); err != nil {
			return nil, err
		}
	}
	return f.resume(ctx, since)
}

// concerns reports whether a change may alter the answer.
func (f *followed) concerns(c store.Change) bool {
	return !f.known || c.Kind == f.on.own || slices.Contains(f.on.others, c.Kind) || f.live && c.Kind == queue.KindJob
}

// await returns when something that concerns the query changed after a
// revision, and a moment has passed. If the answer is not known to be quiet
// yet, it also returns after a while without changes: then it is.
func (f *followed) await(ctx context.Context, since store.Revision, quiet bool) (nowQuiet bool, err error) {
	waiting := ctx
	if !quiet {
		limited, cancel := context.WithTimeout(ctx, settle)
		defer cancel()
		waiting = limited
	}
	for changes, err := range f.q.Store.Watch(waiting, since) {
		switch {
		case ctx.Err() != nil:
			return false, ctx.Err()
		case waiting.Err() != nil:
			return true, nil
		case fault.Is(err, fault.Compacted):
			return false, nil
		case err != nil:
			return false, err
		}
		if slices.ContainsFunc(changes, f.concerns) {
			break
		}
	}
	timer := time.NewTimer(gather)
	defer timer.Stop()
	select {
	case <-timer.C:
		return false, nil
	case <-ctx.Done():
		return false, ctx.Err()
	}
}

// step looks at the answer again and tells what is different.
func (f *followed) step(ctx context.Context) (*Update, error) {
	revision, err := f.q.Store.Revision(ctx)
	if err != nil {
		return nil, err
	}
	res, err := f.q.Query(ctx, f.r)
	if err != nil {
		return nil, err
	}
	return &Update{Revision: revision, Fields: res.Fields, Events: f.watch.Step(res)}, nil
}

// resume tells what is new since a revision, or everything when that cannot be
// told.
func (f *followed) resume(ctx context.Context, since store.Revision) (*Update, error) {
	touched, ok, err := f.touched(ctx, since)
	if err != nil {
		return nil, err
	}
	u, err := f.step(ctx)
	if err != nil {
		return nil, err
	}
	if !ok {
		u.Reset = true
		return u, nil
	}
	// The rows are all entries to a watch that knew none. Those whose objects
	// changed are news; of objects that have no row any more, that they left.
	news := []query.Event{}
	for _, e := range u.Events {
		if touched[e.ID] {
			delete(touched, e.ID)
			e.Type = "change"
			news = append(news, e)
		}
	}
	for id := range touched {
		news = append(news, query.Event{Type: "leave", ID: id})
	}
	u.Events = news
	return u, nil
}

// touched returns the objects whose rows may be new since a revision; ok is
// false when all may be.
func (f *followed) touched(ctx context.Context, since store.Revision) (ids map[string]bool, ok bool, err error) {
	if since == 0 || f.on.own == "" {
		return nil, false, nil
	}
	changes, err := f.q.Store.Changes(ctx, since, maxResume)
	if fault.Is(err, fault.Compacted) || len(changes) >= maxResume {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	ids = map[string]bool{}
	for _, c := range changes {
		switch {
		case c.Kind == f.on.own:
			ids[c.ID] = true
		case f.concerns(c):
			return nil, false, nil
		}
	}
	return ids, true, nil
}
