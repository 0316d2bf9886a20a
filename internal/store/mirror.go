package store

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/drover-project/drover/internal/fault"
)

// Mirror is for a service that has in memory what the store has of a kind: it lets changes in one at a time, each upon what is stored. A change of
// which the store cannot say what became of it leaves a doubt (Became); then all is read anew, at once if that goes, and before the next change in any case.
type Mirror struct {
	// Read has what is in memory be what the store has.
	Read func(ctx context.Context) error

	// turn is had by the change that is let in, or is about to be, and made when it is asked for first: who waits behind a store that does not answer may leave, which no
	// mutex lets it.
	turn     chan struct{}
	once     sync.Once
	changing sync.RWMutex
	unsure   atomic.Bool
}

// rereadTime is how long a store may take to tell what became of a change before the next one has to ask it.
const rereadTime = time.Second

// Change begins a change, when those before it are done. Who is let in calls done at its end. The error is why it cannot be told what is stored, or why whoever asks
// does not wait any longer.
func (m *Mirror) Change(ctx context.Context) (done func(), err error) {
	if err := m.await(ctx); err != nil {
		return nil, err
	}
	m.changing.Lock()
	end := func() {
		m.changing.Unlock()
		<-m.turn
	}
	if err := m.settle(ctx); err != nil {
		end()
		return nil, err
	}
	return func() {
		defer end()
		if m.unsure.Load() {
			soon, cancel := context.WithTimeout(context.WithoutCancel(ctx), rereadTime)
			defer cancel()
			_ = m.settle(soon) // or whoever comes next finds it out
		}
	}, nil
}

// await takes the turn. It goes to whoever asks where nobody has it, also to one whose context has ended.
func (m *Mirror) await(ctx context.Context) error {
	m.once.Do(func() { m.turn = make(chan struct{}, 1) })
	select {
	case m.turn <- struct{}{}:
		return nil
	default:
	}
	select {
	case m.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fault.New(fault.Unavailable, "a change before this one is not stored yet: %w", context.Cause(ctx)).WithHint("try again in a while")
	}
}

// Share keeps changes away until done is called, and nobody else who shares.
func (m *Mirror) Share() (done func()) {
	m.changing.RLock()
	return m.changing.RUnlock
}

// Unsure tells whether what is in memory may not be what is stored.
func (m *Mirror) Unsure() bool { return m.unsure.Load() }

// Became takes in what a store answered to a change.
func (m *Mirror) Became(err error) {
	if err != nil && !Refused(err) {
		m.unsure.Store(true)
	}
}

// Commit makes the transaction of a change durable and then known, whether or not who asked for it still waits.
func (m *Mirror) Commit(ctx context.Context, s Store, tx Tx, known func()) error {
	_, err := Commit(context.WithoutCancel(ctx), s, tx)
	if m.Became(err); err == nil {
		known()
	}
	return err
}

// settle ends a doubt. The caller has the change.
func (m *Mirror) settle(ctx context.Context) error {
	if !m.unsure.Load() {
		return nil
	}
	err := m.Read(ctx)
	if err == nil {
		m.unsure.Store(false)
	}
	return err
}
