package readlease

import (
	"sync/atomic"
	"time"
)

// Lessee is the side of a controller that stands by. Request and Take are for one
// goroutine, Covers is for any.
type Lessee struct {
	holder string
	serial int64
	lease  atomic.Pointer[lease]
}

type lease struct {
	revision int64
	until    time.Time
}

// NewLessee returns one that has no lease. The holder is the name of this life of the
// controller.
func NewLessee(holder string) *Lessee { return &Lessee{holder: holder} }

// Request returns the next request, sent at a time. Whatever an earlier one is answered
// by then must not be taken any more.
func (l *Lessee) Request(sent time.Time) Request {
	l.serial++
	have := l.lease.Load()
	return Request{Holder: l.holder, Serial: l.serial, Holds: have != nil && sent.Before(have.until)}
}

// Last is Request for a holder that gives up what it has; false if it has nothing.
func (l *Lessee) Last(now time.Time) (Request, bool) {
	r := l.Request(now)
	held := r.Holds
	l.lease.Store(nil)
	r.Holds, r.Last = false, true
	return r, held
}

// Take takes the answer to the last request, which was sent at a time.
func (l *Lessee) Take(a Answer, sent time.Time) {
	if a.For <= 0 {
		l.lease.Store(nil)
		return
	}
	l.lease.Store(&lease{revision: a.Revision, until: sent.Add(a.For)})
}

// Covers reports whether a state is what the leader shows, of which only the revision
// matters: it is one that the state is not older than. All that is to be covered must
// have been read before the call: what is read after the lease was looked at may know
// of what the leader committed meanwhile, and does not show yet.
func (l *Lessee) Covers(revision int64) bool { return l.covers(revision, time.Now) }

func (l *Lessee) covers(revision int64, now func() time.Time) bool {
	// In this order: at the moment of the load the lease is not called off, and what runs
	// later ran then.
	have := l.lease.Load()
	return have != nil && revision >= have.revision && now().Before(have.until)
}
