package world

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/opcode"
	"github.com/drover-project/drover/internal/queue"
	"github.com/drover-project/drover/internal/reason"
	"github.com/drover-project/drover/internal/sim/check"
	"github.com/drover-project/drover/internal/sim/history"
	"github.com/drover-project/drover/internal/sim/plan"
)

// kind is a kind of work beside jobs about instances.
type kind struct {
	// begin has clients begin to ask for it.
	begin func(w *world, parts *sync.WaitGroup)
	// undone tells what a leader has not done yet of what was asked for, once all is healed;
	// empty when it has. Nil where nothing is left to do.
	undone func(t *term) string
	// check holds what there is then against what was wanted; nil for nothing.
	check func(t *term)
}

// kinds are all kinds of work.
var kinds = map[plan.Work]kind{
	plan.Rules:       {(*world).rule, nil, (*term).rulesAreOver},
	plan.Tags:        {(*world).tag, nil, nil},
	plan.Servers:     {(*world).serve, (*term).serversUndone, (*term).serversAgree},
	plan.Deployments: {(*world).deploy, (*term).deploymentsUndone, (*term).deploymentsAgree},
	plan.Events:      {(*world).hear, (*term).eventsUndone, (*term).eventsAgree},
	plan.Group:       {(*world).read, nil, (*term).groupAgrees},
	plan.Strangers:   {(*world).estrange, nil, (*term).strangersAgree},
	plan.Short:       {(*world).shorten, nil, nil},
	plan.Witness:     {(*world).witness, nil, nil},
}

// beside is a client that asks for another kind of work.
func (w *world) beside(what string, i int) *client {
	c := newClient(w, len(w.beings))
	c.name = fmt.Sprintf("%s%d", what, i+1)
	c.draw = w.streams.Of(c.name)
	w.beings = append(w.beings, c.name)
	return c
}

// rounds has something done as often as clients ask for jobs, over the same time.
func (c *client) rounds(do func(n int)) {
	c.within(2 * time.Second)
	for n := range c.w.plan.Size.Requests {
		do(n)
		c.within(2 * time.Duration(c.w.plan.Size.Trouble) / time.Duration(c.w.plan.Size.Requests+1))
	}
}

// once asks whoever leads one time, and notes for the model of the object what was
// answered, also if that is nothing. It reports whether it was answered.
func (c *client) once(in history.Input, question func(context.Context, *term) (history.Output, error)) (out history.Output, answered bool) {
	t := c.leader()
	call := c.w.since()
	ctx, cancel := context.WithTimeout(context.Background(), askTime)
	defer cancel()
	out, err := question(ctx, t)
	if err != nil && ctx.Err() == nil && !again(err) {
		c.w.verdict.Breakf(check.Refused, "%s: %s %s: %v", c.name, in.Do, in.Object, err)
	}
	if ctx.Err() != nil || err != nil || t.life.cross(plan.Told) != nil {
		out = history.Output{Unknown: true}
	}
	c.w.record.Told(c.id, in, call, c.w.since(), out)
	c.w.tellf(c.name, "%s %s %d: %s %d", in.Do, in.Object, in.Value, answer(out), out.Value)
	return out, !out.Unknown
}

func answer(out history.Output) string {
	if out.Unknown {
		return "?"
	}
	return out.Is
}

// leader waits for somebody who leads.
func (c *client) leader() *term {
	for {
		if t := c.w.leads(); t != nil && t.life.gate() == nil && !c.w.outdated(t) {
			return t
		}
		c.within(400 * time.Millisecond)
	}
}

// ended hands in a job under a key and waits for its end.
func (t *term) ended(ctx context.Context, key string, op *opcode.Opcode) (*job.Job, error) {
	id, err := t.queue.Submit(ctx, queue.Submission{Ops: []*opcode.Opcode{op}, Key: key})
	if err != nil {
		return nil, err
	}
	if _, err := t.queue.Wait(ctx, id, (*job.Job).Final); err != nil {
		return nil, fault.New(fault.Unavailable, "nobody told of the end: %w", err)
	}
	return t.queue.Job(ctx, id) // what it failed with may be in the store alone
}

// opcodeOf makes an opcode; reasons tell what it is about.
func opcodeOf(id string, params map[string]any, reasons ...string) *opcode.Opcode {
	op, err := opcode.FromMap(id, params)
	if err != nil {
		panic(err) // the parameters are wrong
	}
	var trail reason.Trail
	for _, text := range reasons {
		trail = append(trail, reason.Entry{Source: "user", Reason: text, Time: 1})
	}
	return op.WithReason(trail)
}
