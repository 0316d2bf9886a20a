package queue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/drover-project/drover/internal/exec"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/lock"
	"github.com/drover-project/drover/internal/opcode"
)

// errKilled is the cause that ends an opcode whose job is killed.
var errKilled = fault.New(fault.Failed, "Job killed on request")

// start runs an opcode in a goroutine of its own. That it runs is durable.
func (q *Queue) start(ctx context.Context, e *entry, i int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closing || q.failed != nil {
		return
	}
	q.runners.Go(func() {
		result, err := q.execute(ctx, e, i)
		if err != nil && q.ctx.Err() != nil {
			return // interrupted by the end of the controller, not by itself
		}
		if err != nil && errors.Is(context.Cause(ctx), errKilled) {
			err = errKilled
		}
		q.update(func() { q.opDone(e, i, result, err) })
	})
}

// execute runs the opcode. A panic of an executor fails its job alone.
func (q *Queue) execute(ctx context.Context, e *entry, i int) (result json.RawMessage, err error) {
	defer func() {
		if p := recover(); p != nil {
			q.cfg.Log.Error("an executor panicked", "job", e.id(), "opcode", e.inputs[i].ID, "panic", p, "stack", string(debug.Stack()))
			err = fault.New(fault.Internal, "internal error in %s: %v", e.inputs[i].ID, p)
		}
	}()
	return q.cfg.Executors.Run(ctx, q.env(e, i))
}

// env is what the opcode sees of the system.
func (q *Queue) env(e *entry, i int) *exec.Env {
	return &exec.Env{
		Job:       e.id(),
		Index:     i,
		Epoch:     q.cfg.Epoch,
		Op:        e.inputs[i],
		Inventory: q.cfg.Inventory,
		Nodes:     q.cfg.Nodes,
		Now:       q.cfg.Now,
		NewUUID:   q.cfg.NewUUID,
		Log: func(kind string, payload any) {
			entry := encode(payload)
			q.whileRunning(e, i, func() {
				e.job = e.job.AddLog(i, kind, entry, q.now())
				q.writeSoon(e)
			})
		},
		Release: func(names ...lock.Name) {
			q.whileRunning(e, i, func() { q.serve(q.locks.ReleaseSome(e.owner(), names...)) })
		},
		Submit: func(ctx context.Context, jobs [][]*opcode.Opcode) ([]exec.Submitted, error) {
			return q.submitChildren(ctx, e.inputs[i], jobs)
		},
	}
}

// whileRunning applies an event of a running opcode. One that comes late, from
// something that an opcode left behind, has no effect.
func (q *Queue) whileRunning(e *entry, i int, event func()) {
	q.update(func() {
		if e.place == inRunner && e.job.Next() == i {
			event()
		}
	})
}

// logDelay is how long a log message may wait to be written together with
// others, or with the end of its opcode.
const logDelay = 5 * time.Millisecond

// writeSoon has the log of an entry written, a little later.
func (q *Queue) writeSoon(e *entry) {
	if len(q.unwritten) == 0 {
		time.AfterFunc(logDelay, q.writeLogs)
	}
	q.unwritten = append(q.unwritten, e)
}

// writeLogs writes the log messages that wait for it. Those of a job that has
// ended were written with its end.
func (q *Queue) writeLogs() {
	q.update(func() {
		for _, e := range q.unwritten {
			if q.entries[e.id()] == e {
				q.changed(e)
			}
		}
		q.unwritten = nil
	})
}

// opDone records how an opcode ended and lets the job go on, unless the job was
// given up meanwhile.
func (q *Queue) opDone(e *entry, i int, result json.RawMessage, err error) {
	if e.place != inRunner {
		return
	}
	e.kill(nil)
	e.kill = nil
	if err != nil {
		q.end(e, e.job.Fail(i, err, q.now()))
		return
	}
	done := e.job.Succeed(i, result, q.now())
	if i == len(done.Ops)-1 {
		q.end(e, done)
		return
	}
	q.settleOp(e)
	e.job = done
	q.changed(e)
	q.sort(e)
}

// submitChildren submits jobs on behalf of an opcode. They inherit its trail,
// its priority, and a comment that says where they come from.
func (q *Queue) submitChildren(ctx context.Context, parent *opcode.Opcode, jobs [][]*opcode.Opcode) ([]exec.Submitted, error) {
	subs := make([]Submission, len(jobs))
	for i, ops := range jobs {
		for _, op := range ops {
			subs[i].Ops = append(subs[i].Ops, inherit(parent, op))
		}
		subs[i].IgnoreDrain = true
	}
	outcomes, err := q.SubmitMany(ctx, subs)
	if err != nil {
		return nil, err
	}
	children := make([]exec.Submitted, len(outcomes))
	for i, o := range outcomes {
		children[i] = exec.Submitted{ID: o.ID, Err: o.Err}
	}
	return children, nil
}

func inherit(parent, child *opcode.Opcode) *opcode.Opcode {
	c := *child
	c.Reason = child.Reason.Append(parent.Reason...)
	c.Priority = parent.Priority
	if c.Comment == nil {
		text := fmt.Sprintf("Submitted by %s", parent.ID)
		c.Comment = &text
	}
	return &c
}

func notFound(id job.ID) error { return fault.New(fault.NotFound, "Job %d not found", id) }
