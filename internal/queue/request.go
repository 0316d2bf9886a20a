package queue

import (
	"bytes"
	"context"

	"github.com/drover-project/drover/internal/audit"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/queue/machine"
	"github.com/drover-project/drover/internal/state"
)

// Answer is how the queue answers a request about one job: whether it did what
// was asked, and a sentence for a person in the words that clients know.
type Answer = machine.Answer

// Cancel ends a job. What no opcode has begun is cancelled at once; of a
// running job the present opcode completes and the rest is cancelled, unless
// kill asks to end that opcode too. The error is for a queue that has stopped
// or a cancel that could not be stored; a job that is not there is an answer.
func (q *Queue) Cancel(ctx context.Context, id job.ID, kill bool, by By) (Answer, error) {
	what := audit.JobCancel
	if kill {
		what = audit.JobKill
	}
	r, err := q.request(ctx, machine.Cancel{Job: id, Kill: kill}, audit.New(what, id.String(), by))
	return r.Answer, err
}

// ChangePriority changes how urgent the opcodes are that have not ended. The
// priority is one of -20 (most urgent) to 19.
func (q *Queue) ChangePriority(ctx context.Context, id job.ID, priority int, by By) (Answer, error) {
	e := audit.New(audit.JobPriority, id.String(), by)
	if j := q.live(id); j != nil {
		e.Before, e.After = encode(j.Priority()), encode(priority)
	}
	r, err := q.request(ctx, machine.ChangePriority{Job: id, Priority: priority}, e)
	return r.Answer, err
}

// SetDrained makes the queue refuse new jobs, or take them again.
func (q *Queue) SetDrained(ctx context.Context, drained bool, by By) error {
	what := audit.QueueUndrain
	if drained {
		what = audit.QueueDrain
	}
	e := audit.New(what, "", by)
	set := machine.SetDrained{On: drained, By: &state.Drain{Who: by.Account.String(), Why: e.Why(), At: q.cfg.Now().UnixNano()}}
	return q.setFlag(ctx, set, e, func(f state.Flags) []byte { return encode(f.Drained) })
}

// SetWatcherPause asks watchers to do nothing until a time, in seconds since
// the epoch; nil ends the pause.
func (q *Queue) SetWatcherPause(ctx context.Context, until *float64, by By) error {
	e := audit.New(audit.WatcherGoOn, "", by)
	if until != nil {
		e.What = audit.WatcherPause
	}
	return q.setFlag(ctx, machine.SetWatcherPause{Until: until}, e, func(f state.Flags) []byte {
		if f.WatcherPause == nil {
			return nil
		}
		return encode(*f.WatcherPause)
	})
}

// setFlag has a flag of the queue set, and returns when that is durable. It is
// recorded with the flag before and after, unless those are the same.
func (q *Queue) setFlag(ctx context.Context, e machine.Event, done audit.Event, flag func(state.Flags) []byte) error {
	return q.change(ctx, func(w *work) error {
		done.Before = flag(q.m.Flags())
		r := q.apply(w, e)
		done.After = flag(q.m.Flags())
		if r.Refused == nil && !bytes.Equal(done.Before, done.After) {
			q.record(w, done)
		}
		return r.Refused
	})
}

// request carries an event out that somebody asks for, and returns when that is
// durable. What it did is recorded; what was refused, or found nothing to do it
// to, is not.
func (q *Queue) request(ctx context.Context, e machine.Event, done audit.Event) (*machine.Ready, error) {
	r := &machine.Ready{}
	err := q.change(ctx, func(w *work) error {
		if r = q.apply(w, e); r.Refused == nil && r.Durable() {
			q.record(w, done)
		}
		return r.Refused
	})
	return r, err
}

// change carries out a request that changes the queue, and returns when that is
// durable. What f refuses changes nothing. An answer that changes nothing rests upon what others
// have changed, and waits until that is durable: nobody is told what a crash could undo.
func (q *Queue) change(ctx context.Context, f func(*work) error) error {
	var durable <-chan error
	var refused error
	q.update(func(w *work) {
		if refused = q.usable(); refused != nil {
			return
		}
		if refused = f(w); refused == nil && len(w.keys)+len(w.events)+len(q.unsettled) > 0 {
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

// catchUp waits until what others have changed is durable: a refusal rests upon it.
func (q *Queue) catchUp(ctx context.Context) error {
	return q.change(ctx, func(*work) error { return nil })
}
