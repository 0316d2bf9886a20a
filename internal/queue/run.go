package queue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/drover-project/drover/internal/exec"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/lock"
	"github.com/drover-project/drover/internal/opcode"
	"github.com/drover-project/drover/internal/queue/machine"
	steps "github.com/drover-project/drover/internal/work"
)

// errKilled is the cause that ends an opcode whose job is killed.
var errKilled = fault.New(fault.Failed, job.Killed)

// start runs an opcode in a goroutine of its own. That it runs is durable. When
// the queue closes it does not begin: its job is queued as if nothing had been.
func (q *Queue) start(ctx context.Context, s machine.Start) {
	q.mu.Lock()
	givenUp := !q.m.Runs(s)
	begins := !givenUp && q.phase == open && !q.quiet && q.failed == nil
	if begins {
		q.runners.Add(1)
		q.opcodes.Add(1)
	}
	if givenUp {
		q.forgetKill(s.Job)
	}
	q.mu.Unlock()
	if givenUp {
		return
	}
	if !begins {
		q.update(func(w *work) { q.apply(w, machine.NotBegun(s)) })
		return
	}
	q.crew.do(q.ctx, func() {
		defer q.runners.Done()
		defer q.opcodes.Done()
		q.run(ctx, s)
	})
}

// crew are the goroutines that run opcodes. A few of them stay for the next one:
// their stacks have grown to what an opcode needs, which a new one pays for.
type crew struct {
	next  chan func()
	spare chan struct{} // a token for each that stays
}

// maxSpare is how many goroutines stay.
const maxSpare = 32

func newCrew() crew { return crew{make(chan func()), make(chan struct{}, maxSpare)} }

// do calls f in a goroutine; those that stay end with ctx.
func (c crew) do(ctx context.Context, f func()) {
	select {
	case c.next <- f:
	default:
		go c.work(ctx, f)
	}
}

func (c crew) work(ctx context.Context, f func()) {
	for {
		f()
		select {
		case c.spare <- struct{}{}:
		default:
			return
		}
		select {
		case f = <-c.next:
			<-c.spare
		case <-ctx.Done():
			return
		}
	}
}

// run runs an opcode and tells the machine how it ended.
func (q *Queue) run(ctx context.Context, s machine.Start) {
	r := &run{q: q, Start: s}
	env := q.env(r)
	result, err := q.carefully(env, func() (json.RawMessage, error) { return q.cfg.Executors.Run(ctx, env) })
	if err != nil && q.ctx.Err() != nil {
		r.writeLog() // interrupted by the end of the controller, not by itself
		return
	}
	if cause := context.Cause(ctx); err != nil && errors.Is(cause, errKilled) {
		err = errKilled
	}
	q.update(func(w *work) {
		q.forgetKill(s.Job)
		if env.Noted() {
			q.forgetWork(w, s)
		}
		if errors.Is(err, exec.ErrAskAgain) {
			q.apply(w, machine.AskAgain{Start: s, Entries: r.takeLog(true).Entries})
			return
		}
		q.apply(w, machine.Done{Log: r.takeLog(true), Nodes: env.Visited(), Result: result, Err: err})
	})
}

// forgetKill lets go of what would end an opcode.
func (q *Queue) forgetKill(id job.ID) {
	if kill := q.kills[id]; kill != nil {
		kill(nil)
		delete(q.kills, id)
	}
}

// carefully has an executor do something. Its panic is an error of that alone.
func (q *Queue) carefully(env *exec.Env, do func() (json.RawMessage, error)) (result json.RawMessage, err error) {
	defer func() {
		if p := recover(); p != nil {
			q.cfg.Log.Error("an executor panicked", "job", env.Job, "opcode", env.Op.ID, "panic", p, "stack", string(debug.Stack()))
			err = fault.New(fault.Internal, "internal error in %s: %v", env.Op.ID, p)
		}
	}()
	return do()
}

// env is what the opcode sees of the system.
func (q *Queue) env(r *run) *exec.Env {
	env := &exec.Env{
		Job:       r.Job,
		Index:     r.Index,
		Resumed:   r.Resumed,
		Unlocked:  r.Unlocked,
		Epoch:     q.cfg.Epoch,
		Life:      q.cfg.Life,
		Op:        r.Op,
		Inventory: q.cfg.Inventory,
		Nodes:     q.cfg.Nodes,
		Uploads:   q.cfg.Uploads,
		Now:       q.cfg.Now,
		NewUUID:   q.cfg.NewUUID,
		Log:       r.log,
		Show:      r.show,
		Placed:    r.place,
		Term:      q.ctx,
		Stepwise:  r.Stepwise,
		Format:    q.format(),
		Undo:      r.Undo,
		Locks:     r.Locks,
		Keep: func(ctx context.Context, w *steps.Work) error {
			return q.keepWork(ctx, r.Start, w)
		},
		Release: func(names ...lock.Name) {
			q.update(func(w *work) { q.apply(w, machine.Release{Job: r.Job, Index: r.Index, Names: names}) })
		},
		Submit: func(ctx context.Context, jobs [][]*opcode.Opcode) ([]exec.Submitted, error) {
			return q.submitChildren(ctx, r, jobs)
		},
	}
	if left := q.cfg.LeftBehind; left != nil {
		env.LeftBehind = func(what string, err error) { left(r.Job, what, err) }
	}
	if r.Began != 0 {
		env.Began = time.UnixMicro(int64(r.Began))
	}
	if r.Resumed {
		q.mu.Lock()
		env.Kept = q.found[r.Job]
		q.mu.Unlock()
	}
	return env
}

// run is an opcode that runs, with the log messages that are not handed over yet.
type run struct {
	machine.Start

	q       *Queue
	mu      sync.Mutex
	entries []job.LogEntry
	steps   []job.Step // nil if nothing is new
	// placement is how the node of a new instance was chosen; nil if nothing is new.
	placement json.RawMessage
	over      bool
}

// logDelay is how long a log message may wait to be written together with
// others, or with the end of its opcode.
const logDelay = 5 * time.Millisecond

// log takes a message of the opcode. What comes when it has ended, from something
// that it left behind, has no effect.
func (r *run) log(kind string, payload any) {
	entry := job.LogEntry{Time: job.At(r.q.cfg.Now()), Type: kind, Payload: encode(payload)}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over {
		return
	}
	if len(r.entries) == 0 {
		time.AfterFunc(logDelay, r.writeLog)
	}
	r.entries = append(r.entries, entry)
}

// stepDelay is how long it may take until it is shown how far an opcode came, if it leaves no message meanwhile: one that is
// over sooner costs nothing.
const stepDelay = 100 * time.Millisecond

// show takes how far the opcode came. It is handed over with the next messages, with the end, or after a while.
func (r *run) show(steps []job.Step) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over {
		return
	}
	if r.steps == nil {
		time.AfterFunc(stepDelay, r.writeLog)
	}
	r.steps = steps
}

// place takes how the node of a new instance was chosen. It is handed over with what comes next: messages, steps, or the end.
func (r *run) place(decision json.RawMessage) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.placement = decision
}

// takeLog returns the messages that are not handed over, and how far the opcode came; the last time when the
// opcode is over.
func (r *run) takeLog(over bool) machine.Log {
	r.mu.Lock()
	defer r.mu.Unlock()
	log := machine.Log{Job: r.Job, Index: r.Index, Entries: r.entries, Steps: r.steps, Placement: r.placement}
	r.entries, r.steps, r.placement, r.over = nil, nil, nil, r.over || over
	return log
}

// writeLog has the messages written that wait for it. They are taken where they are applied: between the two the opcode could
// end, and what comes behind its end has no effect.
func (r *run) writeLog() {
	if !r.waits() {
		return
	}
	r.q.update(func(w *work) {
		if r.waits() {
			r.q.apply(w, r.takeLog(false))
		}
	})
}

// waits reports whether there are messages, or steps, that are not handed over.
func (r *run) waits() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.entries) > 0 || r.steps != nil
}

// submitChildren submits jobs on behalf of an opcode, which may still run when
// the queue takes nothing else. They inherit its trail, its priority, and a
// comment that says where they come from. An opcode that goes on behind a restart finds those that it had submitted: each has a
// submission key with its place.
func (q *Queue) submitChildren(ctx context.Context, r *run, jobs [][]*opcode.Opcode) ([]exec.Submitted, error) {
	subs := make([]Submission, len(jobs))
	for i, ops := range jobs {
		for _, op := range ops {
			subs[i].Ops = append(subs[i].Ops, inherit(r.Op, op))
		}
		subs[i].IgnoreDrain = true
		if r.Stepwise && len(ops) > 0 {
			subs[i].Key = fmt.Sprintf("%s%s/%d", childKeys, exec.RecordID(r.Job, r.Index), i)
		}
	}
	outcomes, err := q.submit(ctx, subs, func() error { return q.failed })
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
