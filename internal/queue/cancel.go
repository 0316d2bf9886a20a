package queue

import (
	"container/heap"
	"context"
	"fmt"

	"github.com/drover-project/drover/internal/job"
)

// Answer is how the queue answers a request about one job: whether it did what
// was asked, and a sentence for a person in the words that clients know.
type Answer struct {
	OK      bool
	Message string
}

// Cancel ends a job. What no opcode has begun is cancelled at once; of a
// running job the present opcode completes and the rest is cancelled, unless
// kill asks to end that opcode too. The error is for a queue that has stopped
// or a cancel that could not be stored; a job that is not there is an answer.
func (q *Queue) Cancel(ctx context.Context, id job.ID, kill bool) (Answer, error) {
	return q.ask(ctx, func() Answer {
		e := q.entries[id]
		switch {
		case e == nil:
			return Answer{false, fmt.Sprintf("Job %d not found in queue", id)}
		case e.place == inRunner && kill:
			return q.kill(e)
		case e.place == inRunner:
			e.job = e.job.RequestCancel(job.ByRequest)
			q.changed(e)
			return Answer{false, "Job no longer waiting, can't cancel (informed it anyway)"}
		case e.place == inLocks || e.place == inGranted:
			q.end(e, e.job.Cancel(job.ByRequest, q.now()))
			return Answer{true, "Job successfully cancelled"}
		case e.job.Started != 0:
			q.end(e, e.job.Cancel(job.ByRequest, q.now()))
		default:
			q.end(e, e.job.Dequeue(q.now()))
		}
		return Answer{true, fmt.Sprintf("Dequeued job %d", id)}
	})
}

func (q *Queue) kill(e *entry) Answer {
	e.job = e.job.RequestCancel(job.ByRequest)
	q.changed(e)
	e.kill(errKilled)
	return Answer{true, "The running opcode was told to end"}
}

// ask carries out a request about a job and answers when it is durable.
func (q *Queue) ask(ctx context.Context, f func() Answer) (Answer, error) {
	var a Answer
	err := q.change(ctx, func() error {
		a = f()
		return nil
	})
	return a, err
}

// change carries out a request that changes the queue, and returns when that is
// durable. What f refuses changes nothing.
func (q *Queue) change(ctx context.Context, f func() error) error {
	var durable <-chan error
	var refused error
	q.update(func() {
		if refused = q.usable(); refused != nil {
			return
		}
		if refused = f(); refused == nil && len(q.work.keys) > 0 {
			durable = q.work.answer()
		}
	})
	if refused != nil || durable == nil {
		return refused
	}
	select {
	case err := <-durable:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// ChangePriority changes how urgent the opcodes are that have not ended. The
// priority is one of -20 (most urgent) to 19.
func (q *Queue) ChangePriority(ctx context.Context, id job.ID, priority int) (Answer, error) {
	return q.ask(ctx, func() Answer {
		e := q.entries[id]
		if e == nil {
			return Answer{false, fmt.Sprintf("Job %d not found in queue", id)}
		}
		if priority < minPriority || priority > maxPriority {
			return Answer{false, fmt.Sprintf("Priority %d is not between %d and %d", priority, minPriority, maxPriority)}
		}
		e.job = e.job.SetPriority(priority)
		q.changed(e)
		if e.heap != nil {
			heap.Fix(e.heap, e.index)
		}
		if e.place == inLocks {
			q.serve(q.locks.SetPriority(e.owner(), priority))
		}
		return Answer{true, fmt.Sprintf("Priorities of pending opcodes for job %d have been changed to %d", id, priority)}
	})
}

// The range of priorities.
const (
	minPriority = -20
	maxPriority = 19
)
