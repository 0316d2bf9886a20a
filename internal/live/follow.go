package live

import (
	"context"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/qlang"
	"github.com/drover-project/drover/internal/query"
	"github.com/drover-project/drover/internal/query/items"
	"github.com/drover-project/drover/internal/queue"
	"github.com/drover-project/drover/internal/store"
	"github.com/drover-project/drover/internal/tagsync"
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

// news reports whether there is anything in the update.
func (u *Update) news() bool { return u.Reset || len(u.Events) > 0 }

// follower is one client's way along a watch.
type follower struct {
	*shared
	place int // in the log: what it was told up to
}

// Follow yields what is new in the answer of a query: first the state as it is
// (or, with a revision of an earlier update, what is new since), then each
// change as it becomes durable, until ctx ends, which is no error. Values that
// only nodes know are asked again when anything changes that may concern them, and when a node tells something new.
func (q *Querier) Follow(ctx context.Context, r query.Request, since store.Revision) iter.Seq2[*Update, error] {
	return func(yield func(*Update, error) bool) {
		s, err := q.open(ctx, r)
		if err != nil {
			yield(nil, err)
			return
		}
		defer q.release(s)
		f := &follower{shared: s}
		u, err := f.resume(ctx, since)
		for err == nil {
			if u.news() && !yield(u, nil) {
				return
			}
			u, err = f.wait(ctx)
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
	s, err := q.open(ctx, r)
	if err != nil {
		return nil, err
	}
	defer q.release(s)
	f := &follower{shared: s}
	u, err := f.resume(ctx, since)
	if err == nil && !u.news() {
		u, err = f.wait(ctx)
	}
	return u, err
}

// wait returns the next update that says anything.
func (f *follower) wait(ctx context.Context) (*Update, error) {
	for {
		changed := f.q.Picture.Changed()
		u, again, err := f.news(ctx)
		if err != nil || u.news() {
			return u, err
		}
		if err := pause(ctx, changed, again); err != nil {
			return nil, err
		}
	}
}

// news carries the watch on and returns what the client was not told yet. again
// is when it is to be looked at even if nothing changes, zero for never.
func (f *follower) news(ctx context.Context) (u *Update, again time.Time, err error) {
	if err := f.resting(ctx); err != nil {
		return nil, again, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.advance(ctx); err != nil {
		return nil, again, err
	}
	events, ok := f.from(f.place)
	u = f.update(events)
	if !ok {
		u = f.everything()
	}
	return u, f.look, nil
}

// update makes an update of events up to the state that the watch is at. The
// caller holds mu.
func (f *follower) update(events []query.Event) *Update {
	f.place = f.end()
	if events == nil {
		events = []query.Event{}
	}
	return &Update{Revision: store.Revision(f.revision), Fields: f.watch.Fields(), Events: events}
}

func (f *follower) everything() *Update {
	u := f.update(f.watch.Rows())
	u.Reset = true
	return u
}

// resting waits until the watch may look at changes again.
func (s *shared) resting(ctx context.Context) error {
	s.mu.Lock()
	left := time.Until(s.rest)
	s.mu.Unlock()
	if left <= 0 {
		return ctx.Err()
	}
	return pause(ctx, nil, time.Now().Add(left))
}

// pause waits for a signal, for a moment (zero for none), or for the end of ctx.
func pause(ctx context.Context, signal <-chan struct{}, until time.Time) error {
	var moment <-chan time.Time
	if !until.IsZero() {
		timer := time.NewTimer(time.Until(until))
		defer timer.Stop()
		moment = timer.C
	}
	select {
	case <-signal:
		return nil
	case <-moment:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// resume tells what is new since a revision, or everything when that cannot be
// told.
func (f *follower) resume(ctx context.Context, since store.Revision) (*Update, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.advance(ctx); err != nil {
		return nil, err
	}
	if since == 0 {
		return f.everything(), nil
	}
	if place, ok := f.placeOf(int64(since)); ok {
		events, _ := f.from(place)
		return f.update(events), nil
	}
	touched, ok, err := f.touched(ctx, since)
	if err != nil {
		return nil, err
	}
	if !ok {
		return f.everything(), nil
	}
	// Rows of objects that changed are news; objects that have no row any more
	// may have left.
	news := []query.Event{}
	for _, e := range f.watch.Rows() {
		if touched[e.ID] {
			delete(touched, e.ID)
			e.Type = "change"
			news = append(news, e)
		}
	}
	for id := range touched {
		news = append(news, query.Event{Type: "leave", ID: id})
	}
	return f.update(news), nil
}

// maxResume is how many changes are read to go on from a revision; with more, all
// rows are sent instead.
const maxResume = 5000

// dependence says which kinds of stored objects the rows of an item depend on:
// each row on one object of its own, and all on the others.
type dependence struct {
	own    store.Kind
	others []store.Kind
	// timed are fields that change with the time.
	timed []string
}

var inventoryKinds = []store.Kind{
	store.Kind(cluster.KindCluster), store.Kind(cluster.KindGroup), store.Kind(cluster.KindNode),
	store.Kind(cluster.KindInstance), store.Kind(cluster.KindNetwork), store.Kind(cluster.KindImage), store.Kind(cluster.KindDisk),
}

// dependences serve clients that come back when the watch that told them is
// gone: then the store's feed says what changed.
var dependences = map[string]dependence{
	"job":      {own: queue.KindJob},
	"filter":   {own: queue.KindFilter},
	"instance": {own: store.Kind(cluster.KindInstance), others: inventoryKinds},
	"node":     {own: store.Kind(cluster.KindNode), others: inventoryKinds},
	"group":    {own: store.Kind(cluster.KindGroup), others: inventoryKinds},
	"network":  {own: store.Kind(cluster.KindNetwork), others: inventoryKinds},
	"image":    {own: store.Kind(cluster.KindImage), others: inventoryKinds},
	"disk":     {own: store.Kind(cluster.KindDisk), others: inventoryKinds},
	"server":   {own: tagsync.KindServer, timed: []string{"pending_age"}},
}

// touched returns the objects whose rows may be new since a revision; ok is
// false when all may be, or some whose number is not known.
func (f *follower) touched(ctx context.Context, since store.Revision) (ids map[string]bool, ok bool, err error) {
	on := dependences[f.r.What]
	timed := func(name string) bool { return slices.Contains(on.timed, name) }
	derived, err := items.All.Derived(f.r, time.Now())
	if err != nil {
		return nil, false, err
	}
	if on.own == "" || derived || f.watch.Live() || f.r.Limit > 0 || slices.ContainsFunc(f.r.Fields, timed) ||
		f.r.Filter != nil && slices.ContainsFunc(qlang.Fields(f.r.Filter), timed) {
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
		case c.Kind == on.own, c.Kind == queue.KindArchived && on.own == queue.KindJob:
			ids[c.ID] = true
		case c.Kind == queue.KindPart && on.own == queue.KindJob:
			id, _, _ := strings.Cut(c.ID, "/")
			ids[id] = true
		case slices.Contains(on.others, c.Kind):
			return nil, false, nil
		}
	}
	return ids, true, nil
}
