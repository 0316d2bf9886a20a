package live

import (
	"context"
	"encoding/json"
	"sync"
	"sync/atomic"
	"time"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/picture"
	"github.com/drover-project/drover/internal/qlang"
	"github.com/drover-project/drover/internal/query"
	"github.com/drover-project/drover/internal/query/items"
	"github.com/drover-project/drover/internal/state"
)

const (
	// settle is when values that only nodes know are looked at once more after a
	// change: nodes report after it, and a report has no revision.
	settle = time.Second
	// restParts is how much longer than it worked a watch rests before it looks
	// at the next changes, which come together meanwhile: one watch takes a fifth of
	// a processor at most.
	restParts = 4
	// maxLog is how many events of a watch are kept for those who follow it. Who is
	// further behind gets all rows.
	maxLog = 20_000
	// A watch that nobody follows any more stays for a while, for clients that ask
	// again each time; but only so many of them.
	linger  = time.Minute
	maxIdle = 16
)

// watches are the queries that are followed now. Who follows the same query
// shares its watch.
type watches struct {
	mu   sync.Mutex
	open map[string]*shared
	idle int
}

// shared is a watch that any number of clients follow. Whoever of them wakes
// first carries it on to the newest state, for all of them.
type shared struct {
	q     *Querier
	r     query.Request
	key   string
	users int         // guarded by watches.mu, as is gone
	gone  *time.Timer // ends an idle one

	live atomic.Bool // it shows what only nodes know

	mu       sync.Mutex
	watch    *query.Watch
	gather   *picture.Follower
	revision int64 // of the state that the watch is at
	first    int64 // of the state before the first entry of log
	log      []entry
	dropped  int // entries that were in front of log
	events   int // in log
	failed   bool
	rest     time.Time // when the next changes are looked at
	look     time.Time // when nodes' values are looked at again; zero for not
	heard    uint64    // how often nodes had told something new when they were looked at last
}

// entry is what one step of a watch found.
type entry struct {
	revision int64
	events   []query.Event
}

// keyOf tells requests apart.
func keyOf(r query.Request) string {
	filter := ""
	if r.Filter != nil {
		filter = string(qlang.JSON(r.Filter))
	}
	key, err := json.Marshal([]any{r.What, r.Fields, filter, r.Options})
	if err != nil {
		panic(fault.New(fault.Internal, "live: a request that cannot be encoded: %w", err)) // texts and numbers
	}
	return string(key)
}

// open returns the watch of a query; whoever opened it releases it.
func (q *Querier) open(ctx context.Context, r query.Request) (*shared, error) {
	if q.Stored != nil {
		return nil, ErrLed
	}
	w := &q.watches
	key := keyOf(r)
	w.mu.Lock()
	s := w.open[key]
	if s == nil {
		s = &shared{q: q, r: r, key: key}
		if w.open == nil {
			w.open = map[string]*shared{}
		}
		w.open[key] = s
	}
	if s.gone != nil {
		s.gone.Stop()
		s.gone = nil
		w.idle--
	}
	s.users++
	w.mu.Unlock()
	if err := s.begin(ctx); err != nil {
		q.release(s)
		return nil, err
	}
	return s, nil
}

// begin runs the query for the first time.
func (s *shared) begin(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.watch != nil {
		return nil
	}
	heard, _ := s.q.nodes.heard()
	gather, now := s.q.Picture.Follow()
	watch, err := items.All.Watch(s.q.source(ctx, now), s.r)
	if err != nil {
		gather.Close()
		return err
	}
	s.watch, s.gather, s.heard = watch, gather, heard
	s.live.Store(watch.Live())
	s.revision, s.first = now.Revision, now.Revision
	if told, _ := s.q.nodes.heard(); watch.Live() && told != heard { // who hears the nodes found nobody who watches, perhaps
		s.q.nodes.ring()
	}
	return nil
}

// release gives a watch back. One that nobody follows is closed a little later.
func (q *Querier) release(s *shared) {
	w := &q.watches
	w.mu.Lock()
	defer w.mu.Unlock()
	if s.users--; s.users > 0 {
		return
	}
	if w.idle >= maxIdle || s.gather == nil {
		w.close(s)
		return
	}
	w.idle++
	s.gone = time.AfterFunc(linger, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if s.users == 0 && s.gone != nil {
			w.idle--
			s.gone = nil
			w.close(s)
		}
	})
}

// close forgets a watch that nobody uses. The caller holds w.mu.
func (w *watches) close(s *shared) {
	if w.open[s.key] == s {
		delete(w.open, s.key)
	}
	if s.gather != nil {
		s.gather.Close()
	}
}

// advance carries the watch on to the newest state. The caller holds s.mu.
func (s *shared) advance(ctx context.Context) error {
	begun := time.Now()
	now, changes, complete := s.gather.Next()
	heard, _ := s.q.nodes.heard()
	if now.Revision == s.revision { // what is new has a revision of its own, which comes
		heard = s.heard
	}
	again := s.failed || !complete || s.watch.Live() && heard != s.heard || !s.look.IsZero() && !begun.Before(s.look)
	if len(changes) == 0 && !again {
		return nil
	}
	events, err := s.step(s.q.source(ctx, now), changes, again)
	if s.failed = err != nil; err != nil {
		return err
	}
	s.revision, s.heard = now.Revision, heard
	s.look = time.Time{}
	if s.watch.Live() && len(changes) > 0 {
		s.look = begun.Add(settle)
	}
	s.note(events)
	s.rest = time.Now().Add(restParts * time.Since(begun))
	return nil
}

func (s *shared) step(src *query.Source, changes []*state.Change, again bool) ([]query.Event, error) {
	if again {
		return s.watch.Again(src)
	}
	return s.watch.Step(src, changes)
}

// note keeps events for those who follow.
func (s *shared) note(events []query.Event) {
	if len(events) == 0 {
		return
	}
	s.log = append(s.log, entry{s.revision, events})
	s.events += len(events)
	for s.events > maxLog && len(s.log) > 0 {
		s.first = s.log[0].revision
		s.events -= len(s.log[0].events)
		s.log = s.log[1:]
		s.dropped++
	}
}

// live reports whether anybody watches what only nodes know.
func (w *watches) live() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range w.open {
		if s.live.Load() {
			return true
		}
	}
	return false
}

// end is the place behind the last entry of the log.
func (s *shared) end() int { return s.dropped + len(s.log) }

// placeOf returns the place in the log behind a revision; ok is false when the
// log does not go back so far, or the revision has not been reached.
func (s *shared) placeOf(revision int64) (place int, ok bool) {
	if revision < s.first || revision > s.revision {
		return 0, false
	}
	place = s.end()
	for place > s.dropped && s.log[place-1-s.dropped].revision > revision {
		place--
	}
	return place, true
}

// from returns the events from a place in the log on; ok is false when they are
// not kept any more.
func (s *shared) from(place int) (events []query.Event, ok bool) {
	if place < s.dropped {
		return nil, false
	}
	for _, e := range s.log[place-s.dropped:] {
		events = append(events, e.events...)
	}
	return events, true
}
