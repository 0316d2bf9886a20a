// Package faultstore wraps a store and makes chosen transactions and reads fail, so that
// tests can show what the code above a store does when it lets them down: also in the
// way that is forgotten most easily, where the change was made and the caller is told that it
// was not.
//
// Invariants:
//   - Without faults the wrapper keeps the whole contract of package store.
//   - With faults the answers still come once each, in order, on the writer's goroutine.
//   - Nothing is left to chance or to time: a fault strikes the transaction it
//     was told to, and a test can wait for the moment.
package faultstore

import (
	"context"
	"sync"
	"time"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/store"
)

// Effect is what a fault does to the transaction it strikes.
type Effect int

// The effects.
const (
	// FailBefore refuses the transaction; nothing of it is stored.
	FailBefore Effect = iota
	// FailAfter stores the transaction and says that it failed.
	FailAfter
	// Hold keeps the answer, and all answers behind it, until the gate is closed. Close waits
	// for it too.
	Hold
	// CrashBefore is FailBefore, and from then on nothing is accepted: as if the
	// process had died just before the commit.
	CrashBefore
	// CrashAfter is FailAfter, and from then on nothing is accepted: as if the
	// process had died between the commit and its answer.
	CrashAfter
)

// Fault is one failure to come. It strikes once.
type Fault struct {
	Do Effect
	// When chooses transactions; nil chooses all.
	When func(store.Tx) bool
	// Skip is how many of the chosen ones pass before it strikes.
	Skip int
	// Err is what the caller is told, after a crash ever after; nil is a fault.Unavailable.
	Err error
	// Gate ends a Hold when it is closed.
	Gate <-chan struct{}
}

// Store is a store with faults. The embedded Store is the one beneath, which
// tests may read directly.
type Store struct {
	store.Store
	mu      sync.Mutex
	pending []*scheduled
	reads   []*ReadFault
	down    error // the answer to everything, nil while it works
}

type scheduled struct {
	Fault
	down   error // the answer to everything after a crash
	struck chan struct{}
}

var _ store.Store = (*Store)(nil)

// New wraps a store.
func New(s store.Store) *Store { return &Store{Store: s} }

// Inject schedules a fault. The channel is closed when it has struck: the transaction
// is enqueued beneath, and for Hold its answer is being kept.
func (s *Store) Inject(f Fault) (struck <-chan struct{}) {
	down := f.Err
	if f.Err == nil {
		f.Err, down = fault.New(fault.Unavailable, "injected failure"), errCrashed
	}
	p := &scheduled{Fault: f, down: down, struck: make(chan struct{})}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pending = append(s.pending, p)
	return p.struck
}

// match takes the fault for a transaction out of those that are scheduled; the
// one scheduled first counts. All faults that choose the transaction count it.
func (s *Store) match(tx store.Tx) *scheduled {
	var hit *scheduled
	var rest []*scheduled
	for _, p := range s.pending {
		chosen := p.When == nil || p.When(tx)
		switch {
		case !chosen || (hit != nil && p.Skip == 0):
		case p.Skip > 0:
			p.Skip--
		default:
			hit = p
			continue
		}
		rest = append(rest, p)
	}
	s.pending = rest
	return hit
}

var errCrashed error = fault.New(fault.Unavailable, "the store has crashed")

// Enqueue implements store.Store. The lock is held over the call beneath, so that
// transactions keep the order in which they were matched.
func (s *Store) Enqueue(tx store.Tx, done func(store.Revision, error)) {
	if done == nil {
		done = func(store.Revision, error) {}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.down != nil {
		s.refuse(s.down, done)
		return
	}
	p := s.match(tx)
	if p == nil {
		s.Store.Enqueue(tx, done)
		return
	}
	if p.Do == CrashBefore || p.Do == CrashAfter {
		s.down = p.down
	}
	switch p.Do {
	case FailBefore, CrashBefore:
		s.refuse(p.Err, done)
	case FailAfter, CrashAfter:
		s.Store.Enqueue(tx, func(store.Revision, error) { done(0, p.Err) })
	case Hold:
		s.Store.Enqueue(tx, func(rev store.Revision, err error) {
			close(p.struck)
			<-p.Gate
			done(rev, err)
		})
		return
	}
	close(p.struck)
}

// refuse answers in the transaction's turn: a transaction that changes nothing stands in for it.
func (s *Store) refuse(err error, done func(store.Revision, error)) {
	s.Store.Enqueue(store.Tx{}, func(store.Revision, error) { done(0, err) })
}

func (s *Store) alive() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.down
}

// Outage has everything that writes refused with an error, until it is over: a disk
// that is full, or a server that is away.
func (s *Store) Outage(err error) (over func()) {
	set := func(err error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.down = err
	}
	set(err)
	return func() { set(nil) }
}

// AcquireLease implements store.Store.
func (s *Store) AcquireLease(ctx context.Context, name, holder string, ttl time.Duration) (store.Lease, error) {
	if err := s.alive(); err != nil {
		return store.Lease{}, err
	}
	return s.Store.AcquireLease(ctx, name, holder, ttl)
}

// RenewLease implements store.Store.
func (s *Store) RenewLease(ctx context.Context, lease store.Lease, ttl time.Duration) (store.Lease, error) {
	if err := s.alive(); err != nil {
		return store.Lease{}, err
	}
	return s.Store.RenewLease(ctx, lease, ttl)
}

// ReleaseLease implements store.Store.
func (s *Store) ReleaseLease(ctx context.Context, lease store.Lease) error {
	if err := s.alive(); err != nil {
		return err
	}
	return s.Store.ReleaseLease(ctx, lease)
}
