// Package readlease lets controllers that stand by answer as the leader would,
// without asking it: the leader grants them read leases, and calls them off before it
// commits.
//
// A read lease of revision N says: until it ends, the store holds nothing of the
// leader's that is newer than N, and the leader shows all of its own up to N. So a
// state that was read from the store, is not older than N, and was there before the
// lease was looked at and found to run, is what the leader shows at that moment:
// whoever reads it, after whatever was shown or acknowledged to anybody, reads
// nothing older.
//
// Leases are asked for over requests that wait at the leader. An answer is a lease, or
// says that there is none, which also calls off what was granted before; the
// next request tells that it was taken in.
//
// Invariants:
//   - No batch of the leader is committed while a lease runs: its end is awaited, or the
//     word of its holder that it was dropped. A holder that is gone delays one batch, for
//     no longer than the time of a lease.
//   - A holder counts from when it sent its request, the leader from when it came,
//     which is later. Both use clocks that nobody sets, and that run at the same pace.
//   - No lease outlasts the leader's right to answer from its own picture. A successor
//     that outwaits that right need not know of any lease.
//   - When it is not certain what was committed no lease is granted any more.
package readlease

import "time"

// Request asks for a lease.
type Request struct {
	// Holder is the life of the controller that asks.
	Holder string `json:"holder"`
	// Serial grows with each request of a holder.
	Serial int64 `json:"serial"`
	// Holds tells that an earlier answer's lease may still be in use.
	Holds bool `json:"holds"`
	// Last tells that no lease is wanted any more.
	Last bool `json:"last,omitempty"`
}

// Answer grants a lease, or calls off the one before.
type Answer struct {
	// Revision is that of the lease.
	Revision int64 `json:"revision"`
	// For is how long the lease runs, from when its request was sent; zero for none.
	For time.Duration `json:"for"`
}

const (
	// Time is how long a lease runs.
	Time = 200 * time.Millisecond
	// renewal is how long before its end a lease is renewed.
	renewal = 2 * Time / 3
	// quiet is how long the leader must have committed nothing before it grants leases:
	// while much is written each would only be called off.
	quiet = 10 * time.Millisecond
	// longest is how long a request waits that gets no lease.
	longest = time.Second
)

// book is what a leader has granted. Its methods are told the time.
type book struct {
	// busy: a batch is being committed. since is when the last one was.
	busy  bool
	since time.Time
	// revision is the newest of the leader's in the store; zero while that is not known.
	revision int64
	// closed: the term is over. doubted: nobody can tell what the store holds. Nothing is
	// granted any more.
	closed, doubted bool
	holders         map[string]*holder
}

type holder struct {
	serial int64
	// until is when the last lease ends that the holder may use.
	until time.Time
}

// ask takes in a request; false for one that came later than its successor.
func (b *book) ask(r Request) bool {
	h := b.holders[r.Holder]
	if h == nil {
		h = &holder{}
		b.holders[r.Holder] = h
	}
	if r.Serial <= h.serial {
		return false
	}
	h.serial = r.Serial
	if !r.Holds {
		h.until = time.Time{}
	}
	return true
}

// answer tells what a request is to be answered that came at a time; done is false
// while it is to wait, until something happens or a time has come. right is when the
// leader's own right ends to answer from its picture.
func (b *book) answer(r Request, came, now, right time.Time) (a Answer, again time.Time, done bool) {
	h := b.holders[r.Holder]
	may := !b.busy && !b.doubted && b.revision > 0
	switch {
	case h.serial != r.Serial, r.Last, b.closed, now.Sub(came) >= longest, r.Holds && !may:
		return Answer{}, now, true
	case !may:
		return Answer{}, now.Add(quiet), false
	}
	from := b.since.Add(quiet)
	if r.Holds {
		from = later(came.Add(quiet), h.until.Add(-renewal))
	}
	until := now.Add(Time)
	if right.Before(until) {
		until = right
	}
	switch {
	case now.Before(from):
		return Answer{}, from, false
	case !until.After(now):
		return Answer{}, now.Add(quiet), false // until it has heard again that it leads
	}
	if until.After(h.until) {
		h.until = until
	}
	return Answer{Revision: b.revision, For: until.Sub(came)}, now, true
}

// begin says that a batch is to be committed. It reports whether leases have to be
// called off.
func (b *book) begin(now time.Time) (out bool) {
	b.busy = true
	_, out = b.out(now)
	return out
}

// end says that the batch was answered. known is false when nobody can tell whether it
// took effect; then the store may hold what the leader does not show.
func (b *book) end(now time.Time, revision int64, known bool) {
	b.busy, b.since, b.revision = false, now, revision
	b.doubted = b.doubted || !known
}

// out tells until when leases may be in use, if there are any.
func (b *book) out(now time.Time) (until time.Time, out bool) {
	for _, h := range b.holders {
		if h.until.After(now) && h.until.After(until) {
			until, out = h.until, true
		}
	}
	return until, out
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
