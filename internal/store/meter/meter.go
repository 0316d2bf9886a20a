// Package meter wraps a store and keeps account of it: how long commits take,
// how many fail, and whether the store works at this moment.
//
// Invariants:
//   - The wrapper keeps the whole contract of package store.
//   - A store is in trouble from the first failure of its own until the next
//     success of the same kind, a read or a write. A refusal on the request's account
//     (Conflict, Fenced, Invalid, NotFound, ...) is no failure of the store.
//   - Trouble with reading ends by itself when the store can be read again, while
//     Retry runs. Who is sent no requests while it is in trouble would otherwise
//     stay in it.
package meter

import (
	"context"
	"iter"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/metrics"
	"github.com/drover-project/drover/internal/store"
)

// Store is a store that is kept account of. What it does not count goes straight
// to the embedded one.
type Store struct {
	store.Store
	log     *slog.Logger
	commits *prometheus.CounterVec
	latency prometheus.Observer
	reads   *prometheus.CounterVec

	mu      sync.Mutex
	trouble [2]*Trouble // of reading and of writing
}

var _ store.Store = (*Store)(nil)

// Trouble is what is wrong with a store.
type Trouble struct {
	Since time.Time
	Err   error
}

const (
	reading = 0
	writing = 1
)

var doing = [2]string{"read", "written"}

// New wraps a store. Its figures are registered, and trouble and the end of it
// are logged.
func New(s store.Store, figures prometheus.Registerer, log *slog.Logger) *Store {
	m := &Store{
		Store: s, log: log,
		commits: metrics.NewCounter("drover_store_transactions_total"),
		reads:   metrics.NewCounter("drover_store_reads_total"),
	}
	latency := metrics.NewHistogram("drover_store_commit_seconds")
	m.latency = latency.WithLabelValues()
	figures.MustRegister(m.commits, latency, m.reads)
	return m
}

// Trouble returns what is wrong, nil when nothing is. A store that cannot write
// counts before one that cannot read.
func (m *Store) Trouble() *Trouble {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.trouble[writing] != nil {
		return m.trouble[writing]
	}
	return m.trouble[reading]
}

// failed tells failures of the store from refusals of a request, and from
// requests that were given up.
func failed(err error) bool {
	switch fault.CodeOf(err) {
	case fault.Unavailable, fault.Exhausted, fault.Environment, fault.Internal:
		return true
	}
	return false
}

// note remembers how a call ended, and logs what is new about it.
func (m *Store) note(kind int, err error) {
	m.mu.Lock()
	before := m.trouble[kind]
	switch {
	case !failed(err):
		m.trouble[kind] = nil
	case before == nil:
		m.trouble[kind] = &Trouble{Since: time.Now(), Err: err}
	default:
		m.trouble[kind] = &Trouble{Since: before.Since, Err: err}
	}
	now := m.trouble[kind]
	m.mu.Unlock()
	switch {
	case before == nil && now != nil:
		m.log.Warn("the store cannot be "+doing[kind], "error", err)
	case before != nil && now == nil:
		m.log.Info("the store can be "+doing[kind]+" again", "after", time.Since(before.Since).Round(time.Millisecond))
	}
}

// Retry reads each second while there is trouble with reading, until ctx ends.
func (m *Store) Retry(ctx context.Context) {
	again := time.NewTicker(time.Second)
	defer again.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-again.C:
		}
		m.mu.Lock()
		trouble := m.trouble[reading] != nil
		m.mu.Unlock()
		if trouble {
			_, _ = m.Revision(ctx) // which keeps account
		}
	}
}

// Enqueue implements store.Store.
func (m *Store) Enqueue(tx store.Tx, done func(store.Revision, error)) {
	begun := time.Now()
	m.Store.Enqueue(tx, func(rev store.Revision, err error) {
		m.latency.Observe(time.Since(begun).Seconds())
		switch {
		case err == nil:
			m.commits.WithLabelValues("committed").Inc()
		case failed(err):
			m.commits.WithLabelValues("failed").Inc()
		default:
			m.commits.WithLabelValues("refused").Inc()
		}
		m.note(writing, err)
		if done != nil {
			done(rev, err)
		}
	})
}

// RenewLease implements store.Store.
func (m *Store) RenewLease(ctx context.Context, lease store.Lease, ttl time.Duration) (store.Lease, error) {
	l, err := m.Store.RenewLease(ctx, lease, ttl)
	if ctx.Err() == nil {
		m.note(writing, err)
	}
	return l, err
}

// read counts a read that nobody gave up.
func (m *Store) read(ctx context.Context, err error) {
	if ctx.Err() != nil {
		return
	}
	outcome := "done"
	if failed(err) {
		outcome = "failed"
	}
	m.reads.WithLabelValues(outcome).Inc()
	m.note(reading, err)
}

// Get implements store.Store.
func (m *Store) Get(ctx context.Context, key store.Key) (store.Object, error) {
	o, err := m.Store.Get(ctx, key)
	m.read(ctx, err)
	return o, err
}

// Revision implements store.Store.
func (m *Store) Revision(ctx context.Context) (store.Revision, error) {
	rev, err := m.Store.Revision(ctx)
	m.read(ctx, err)
	return rev, err
}

// List implements store.Store.
func (m *Store) List(ctx context.Context, kind store.Kind, opts store.Options) iter.Seq2[store.Object, error] {
	return func(yield func(store.Object, error) bool) {
		for o, err := range m.Store.List(ctx, kind, opts) {
			if err != nil {
				m.read(ctx, err)
			}
			if !yield(o, err) {
				return
			}
		}
	}
}
