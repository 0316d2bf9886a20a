package queue

import (
	"context"
	"encoding/json"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/jobfilter"
	"github.com/drover-project/drover/internal/lock"
	"github.com/drover-project/drover/internal/opcode"
	"github.com/drover-project/drover/internal/queue/machine"
)

// Checked is what an opcode would come to.
type Checked struct {
	// Result is that of a dry run, and the answer of an opcode that only asks.
	Result json.RawMessage
	// Steps are what an opcode would do that does several things.
	Steps []job.Step
	// Placement is how the node of a new instance would be chosen, or why none would, as package placement keeps it; nil where none is to be.
	Placement json.RawMessage
	// Rule is the filter rule that would decide about a job of this opcode alone, as the rules are now; nil if none would.
	Rule *jobfilter.Rule
	// Err is why the opcode would be refused before it does anything.
	Err error
	// Log are the messages that it left.
	Log []job.LogEntry
	// Pending are the jobs that have not ended and are about the same things as an opcode
	// that would be refused: when they have, it may not be.
	Pending []job.ID
}

// Check tells what opcodes would come to, each by itself and as the cluster is now. No job
// is made, nothing changes: no rule holds it, though it is told which one would decide, and a drained queue is not asked. Errors:
// fault.TooLarge, fault.Unavailable.
func (q *Queue) Check(ctx context.Context, ops []*opcode.Opcode) ([]Checked, error) {
	subs := []machine.Submission{{Ops: ops}}
	if err := machine.CheckSubmissions(subs); err != nil {
		return nil, err
	}
	if err := subs[0].Refused; err != nil {
		return nil, err
	}
	if err := q.joins(); err != nil {
		return nil, err
	}
	defer q.runners.Done()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	defer context.AfterFunc(q.ctx, func() { stop(context.Cause(q.ctx)) })()
	out := make([]Checked, len(ops))
	for i, op := range ops {
		if ctx.Err() != nil {
			return nil, fault.New(fault.Unavailable, "the check was interrupted: %w", context.Cause(ctx))
		}
		out[i] = q.check(ctx, op)
	}
	return out, nil
}

// joins lets the caller work as a running opcode does, which Close waits for.
func (q *Queue) joins() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if err := q.usable(); err != nil {
		return err
	}
	q.runners.Add(1)
	return nil
}

// check tells what one opcode would come to.
func (q *Queue) check(ctx context.Context, op *opcode.Opcode) Checked {
	var c Checked
	env := q.env(&run{q: q, Start: machine.Start{Op: op}})
	env.Log = func(kind string, payload any) {
		c.Log = append(c.Log, job.LogEntry{Serial: int64(len(c.Log)) + 1, Time: job.At(q.cfg.Now()), Type: kind, Payload: encode(payload)})
	}
	env.Placed = func(decision json.RawMessage) { c.Placement = decision }
	env.Release = func(...lock.Name) {}
	c.Result, c.Err = q.carefully(env, func() (result json.RawMessage, err error) {
		result, c.Steps, err = q.cfg.Executors.Check(ctx, env)
		return result, err
	})
	m := q.look()
	c.Rule = m.Chain().Decide(int64(m.LastID())+1, []*opcode.Opcode{op}).Rule
	if c.Err != nil {
		c.Pending = m.About(op)
	}
	return c
}
