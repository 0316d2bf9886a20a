package groupcommit

import (
	"sync"
	"time"

	"github.com/drover-project/drover/internal/store"
)

// MaxBatch bounds how many requests are committed together: enough that the
// flush costs little beside them, few enough that the first is not kept waiting.
const MaxBatch = 512

// MaxBatchBytes bounds the values of a batch; one request may exceed it alone.
const MaxBatchBytes = 8 << 20

// Request is a transaction, or an operation on leases, that waits for its
// answer.
type Request struct {
	tx    store.Tx
	lease leaseOp // nil for a transaction
	done  func(store.Revision, error)
	// size is how many bytes the values have.
	size int
	// alone: it changes the schema, and shares a commit with no other. What fails it fails nobody else.
	alone bool
	// err is the answer if it is a refusal, rev or leased if it is not.
	err    error
	rev    store.Revision
	leased store.Lease
}

// Expected returns the keys on whose revisions the request depends.
func (r *Request) Expected() []store.Expect { return r.tx.Expect }

// Outcome is what Decide or Refuse set: a revision, if the request is a transaction that
// was accepted, made under an epoch; a lease, if it is an operation on one.
func (r *Request) Outcome() (rev store.Revision, epoch int64, leased store.Lease, err error) {
	return r.rev, r.tx.Epoch, r.leased, r.err
}

// Answer tells the one who asked what Decide or Refuse set.
func (r *Request) Answer() { r.done(r.rev, r.err) }

// Refuse sets the same answer for a whole batch that could not be committed.
// What was refused on its own account keeps that answer only if it did not
// depend on others; since it might, all get the same.
func Refuse(requests []*Request, err error) {
	for _, r := range requests {
		r.rev, r.err = 0, err
	}
}

// queue holds the requests that wait for the writer. It has no bound: callers
// answer for how much they have in flight.
type queue struct {
	mu      sync.Mutex
	waiting []*Request
	closed  bool
	// taken is when the batch before was taken, and how many it had.
	taken time.Time
	last  int
	// ready has a token when there may be something to take, or the queue was closed.
	ready chan struct{}
}

func newQueue() *queue { return &queue{ready: make(chan struct{}, 1)} }

func (q *queue) signal() {
	select {
	case q.ready <- struct{}{}:
	default:
	}
}

// add appends a request; false if the queue is closed.
func (q *queue) add(r *Request) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return false
	}
	q.waiting = append(q.waiting, r)
	q.signal()
	return true
}

func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.signal()
}

// take waits for requests and moves the next batch into buf; false when the
// queue is closed and empty.
func (q *queue) take(buf []*Request) ([]*Request, bool) {
	q.gather()
	for {
		if batch, more := q.next(buf[:0]); len(batch) > 0 || !more {
			return batch, more
		}
		<-q.ready
	}
}

// A large batch was asked for by many at once, and once it is answered they ask
// again. To wait a little for them, a part of the time that the batch took, makes one
// batch of two halves that would take turns.
const (
	largeBatch  = 8
	waitParts   = 4
	longestWait = time.Millisecond
)

// gather waits for as many requests as the batch before had, if that was large.
func (q *queue) gather() {
	if q.last < largeBatch {
		return
	}
	enough := time.NewTimer(min(time.Since(q.taken)/waitParts, longestWait))
	defer enough.Stop()
	for !q.has(q.last) {
		select {
		case <-q.ready:
		case <-enough.C:
			q.signal()
			return
		}
	}
	q.signal()
}

// has reports whether so many requests wait, or no more will come.
func (q *queue) has(n int) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.waiting) >= n || q.closed
}

func (q *queue) next(buf []*Request) (batch []*Request, more bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	bytes := 0
	for _, r := range q.waiting {
		if len(buf) == MaxBatch || len(buf) > 0 && (r.alone || bytes+r.size > MaxBatchBytes) {
			break
		}
		bytes += r.size
		buf = append(buf, r)
		if r.alone {
			break
		}
	}
	rest := copy(q.waiting, q.waiting[len(buf):])
	clear(q.waiting[rest:])
	q.waiting = q.waiting[:rest]
	q.taken, q.last = time.Now(), len(buf)
	return buf, len(buf) > 0 || !q.closed
}
