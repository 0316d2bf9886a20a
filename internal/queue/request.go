package queue

import (
	"context"

	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/queue/machine"
)

// Answer is how the queue answers a request about one job: whether it did what
// was asked, and a sentence for a person in the words that clients know.
type Answer = machine.Answer

// Cancel ends a job. What no opcode has begun is cancelled at once; of a
// running job the present opcode completes and the rest is cancelled, unless
// kill asks to end that opcode too. The error is for a queue that has stopped
// or a cancel that could not be stored; a job that is not there is an answer.
func (q *Queue) Cancel(ctx context.Context, id job.ID, kill bool) (Answer, error) {
	r, err := q.request(ctx, machine.Cancel{Job: id, Kill: kill})
	return r.Answer, err
}

// ChangePriority changes how urgent the opcodes are that have not ended. The
// priority is one of -20 (most urgent) to 19.
func (q *Queue) ChangePriority(ctx context.Context, id job.ID, priority int) (Answer, error) {
	r, err := q.request(ctx, machine.ChangePriority{Job: id, Priority: priority})
	return r.Answer, err
}

// SetDrained makes the queue refuse new jobs, or take them again.
func (q *Queue) SetDrained(ctx context.Context, drained bool) error {
	_, err := q.request(ctx, machine.SetDrained(drained))
	return err
}

// SetWatcherPause asks watchers to do nothing until a time, in seconds since
// the epoch; nil ends the pause.
func (q *Queue) SetWatcherPause(ctx context.Context, until *float64) error {
	_, err := q.request(ctx, machine.SetWatcherPause{Until: until})
	return err
}

// request carries an event out that somebody asks for, and returns when that is
// durable.
func (q *Queue) request(ctx context.Context, e machine.Event) (*machine.Ready, error) {
	r := &machine.Ready{}
	err := q.change(ctx, func(w *work) error {
		r = q.apply(w, e)
		return r.Refused
	})
	return r, err
}

// change carries out a request that changes the queue, and returns when that is
// durable. What f refuses changes nothing.
func (q *Queue) change(ctx context.Context, f func(*work) error) error {
	var durable <-chan error
	var refused error
	q.update(func(w *work) {
		if refused = q.usable(); refused != nil {
			return
		}
		if refused = f(w); refused == nil && len(w.keys) > 0 {
			durable = w.answer()
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
