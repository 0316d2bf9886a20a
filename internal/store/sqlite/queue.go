package sqlite

import (
	"sync"

	"github.com/drover-project/drover/internal/store"
)

// maxBatch bounds how many requests are committed together: enough that the
// fsync costs little beside them, few enough that the first is not kept waiting.
const maxBatch = 512

// maxBatchBytes bounds the values of a batch; one request may exceed it alone.
const maxBatchBytes = 8 << 20

// request is a transaction, or an operation on leases.
type request struct {
	tx    store.Tx
	lease func(*leases) error
	done  func(store.Revision, error)
	// size is how many bytes the values have.
	size int
	// err is the answer if it is a refusal, rev if it is not.
	err error
	rev store.Revision
}

// queue holds the requests that wait for the writer. It has no bound: callers
// answer for how much they have in flight.
type queue struct {
	mu      sync.Mutex
	waiting []*request
	closed  bool
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
func (q *queue) add(r *request) bool {
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
func (q *queue) take(buf []*request) ([]*request, bool) {
	for {
		if batch, more := q.next(buf[:0]); len(batch) > 0 || !more {
			return batch, more
		}
		<-q.ready
	}
}

func (q *queue) next(buf []*request) (batch []*request, more bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	bytes := 0
	for _, r := range q.waiting {
		if len(buf) == maxBatch || (len(buf) > 0 && bytes+r.size > maxBatchBytes) {
			break
		}
		bytes += r.size
		buf = append(buf, r)
	}
	rest := copy(q.waiting, q.waiting[len(buf):])
	clear(q.waiting[rest:])
	q.waiting = q.waiting[:rest]
	return buf, len(buf) > 0 || !q.closed
}
