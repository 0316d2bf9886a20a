package readlease

import (
	"context"
	"sync"
	"time"
)

// Lessor is the leader's side, for one term. A nil Lessor grants nothing.
type Lessor struct {
	right   func() time.Time
	publish func()

	mu   sync.Mutex
	book book
	// changed is closed and replaced when those who wait are to look again.
	changed chan struct{}
}

// NewLessor returns a lessor that has granted nothing. right tells when the leader's
// right ends to answer from its own picture; publish makes the leader show all that is
// committed. Neither may call the lessor.
func NewLessor(right func() time.Time, publish func()) *Lessor {
	return &Lessor{right: right, publish: publish, book: book{holders: map[string]*holder{}}, changed: make(chan struct{})}
}

func (l *Lessor) wake() {
	close(l.changed)
	l.changed = make(chan struct{})
}

// Answer answers a request when there is something to be said, or ctx ends.
func (l *Lessor) Answer(ctx context.Context, r Request) Answer {
	came := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.book.ask(r) {
		return Answer{}
	}
	l.wake()
	for ctx.Err() == nil {
		a, again, done := l.book.answer(r, came, time.Now(), l.right())
		if a.For > 0 {
			l.publish() // all of it: no batch is on its way, nor can one begin meanwhile
		}
		if done {
			return a
		}
		l.wait(ctx.Done(), again)
	}
	return Answer{}
}

// wait waits without the mutex until something changes, a time has come, or who asked
// has given up.
func (l *Lessor) wait(given <-chan struct{}, until time.Time) {
	changed := l.changed
	l.mu.Unlock()
	defer l.mu.Lock()
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	select {
	case <-changed:
	case <-timer.C:
	case <-given:
	}
}

// Begin is to be called before a batch is decided, and begins to call off what was
// granted.
func (l *Lessor) Begin() {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.book.begin(time.Now()) {
		l.wake()
	}
}

// Await returns when no lease is in use any more, which takes Time at the most. It is
// to be called after Begin and before the batch is committed.
func (l *Lessor) Await() {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for {
		until, out := l.book.out(time.Now())
		if !out {
			return
		}
		l.wait(nil, until)
	}
}

// End is to be called when a batch was answered. revision is the newest of the store
// that the leader knows of; known is false when nobody can tell whether the batch took
// effect.
func (l *Lessor) End(revision int64, known bool) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.book.end(time.Now(), revision, known)
}

// Close grants nothing from now on, and begins to call off what was granted.
func (l *Lessor) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.book.closed = true
	l.wake()
}
