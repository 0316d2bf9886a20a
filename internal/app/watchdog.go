package app

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/drover-project/drover/internal/store"
	"github.com/drover-project/drover/internal/systemd"
)

// watchdog keeps the service manager's watchdog quiet for as long as the process lives and what it does at the moment moves: while another controller leads, in a term,
// and while one begins and ends, which may take longer than the service manager waits.
type watchdog struct {
	manager systemd.Manager
	log     *slog.Logger

	mu      sync.Mutex
	present *stage
	changed chan struct{} // closed when there is another stage
}

// stage is something that a controller does for a time.
type stage struct {
	// moves goes through what has to move meanwhile, and returns when it did. A store that answers with an error is no reason for a restart; one that never
	// answers is. Nil where nothing can be asked.
	moves func(ctx context.Context)
	// states say what is done.
	states func() []string
	// until is when it has to be over, zero for whenever it is: then nothing is told any more.
	until time.Time
}

func newWatchdog(o Options) *watchdog {
	return &watchdog{manager: o.Manager, log: o.Log, changed: make(chan struct{})}
}

// set has another stage begin.
func (w *watchdog) set(s *stage) {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	close(w.changed)
	w.present, w.changed = s, make(chan struct{})
}

func (w *watchdog) now() (s *stage, changed <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.present, w.changed
}

// keep tells the service manager until ctx ends: as often as its watchdog wants to hear of the process, and, while that has not begun yet, often enough that a
// start may take as long as it takes.
func (w *watchdog) keep(ctx context.Context) {
	if !w.manager.Present() {
		return
	}
	tick := time.NewTicker(cmp.Or(w.manager.WatchdogEvery(), startMore/2))
	defer tick.Stop()
	for ctx.Err() == nil {
		s, changed := w.now()
		if s != nil && s.moved(ctx, changed) {
			if err := w.manager.Tell(append(s.states(), systemd.StateAlive)...); err != nil {
				w.log.Warn("the service manager was not told", "error", err)
			}
		}
		select {
		case <-ctx.Done():
		case <-changed:
		case <-tick.C:
		}
	}
}

// moved goes through what has to move, and tells whether it did, and the stage lasts.
func (s *stage) moved(ctx context.Context, changed <-chan struct{}) bool {
	if !s.until.IsZero() && time.Now().After(s.until) {
		return false
	}
	lasting, end := context.WithCancel(ctx)
	defer end()
	over := make(chan struct{})
	go func() {
		defer close(over)
		if s.moves != nil {
			s.moves(lasting)
		}
	}()
	select {
	case <-over:
		return ctx.Err() == nil
	case <-changed: // what did not move may be over
		end()
		<-over
		return false
	}
}

// throughStore goes through the goroutine that writes to the store, with a lease that is nobody's: whatever the answer is, it gave it.
func (m *member) throughStore(ctx context.Context) {
	_, _ = m.store.RenewLease(ctx, store.Lease{Name: leaseName, Epoch: -1}, leaseTime)
}

// opensStore is a process that opens its store.
func opensStore() *stage {
	return &stage{states: func() []string { return []string{systemd.Status("opens its store"), systemd.MoreTime(startMore)} }}
}

// begins is a process that waits for its lead, or begins a term with it.
func (m *member) begins() *stage {
	return &stage{moves: m.throughStore, states: func() []string { return []string{systemd.Status("begins to lead"), systemd.MoreTime(startMore)} }}
}

// standsBy is a process while another leads.
func (m *member) standsBy() *stage {
	return &stage{moves: m.throughStore, states: func() []string { return []string{systemd.Status("stands by")} }}
}

// leadsOn is a process in a term: the queue and the store have to move.
func (c *controller) leadsOn() *stage {
	return &stage{moves: func(ctx context.Context) {
		_ = c.queue.Health() // whatever it says: it went through
		_, _ = c.store.RenewLease(ctx, c.lease, leaseTime)
	}, states: func() []string { return []string{c.status()} }}
}

// endsTerm bounds how long the end of a term may take, beside what running opcodes are given.
const endsTerm = time.Minute

// ends is a process whose term ends: what runs has its time for that, and then it has to be over.
func (c *controller) ends(grace time.Duration) *stage {
	return &stage{moves: c.throughStore, states: func() []string { return []string{systemd.Status("ends its term")} }, until: time.Now().Add(grace + endsTerm)}
}
