package world

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"github.com/drover-project/drover/internal/agent"
	"github.com/drover-project/drover/internal/deploy/course"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/hypervisor"
	"github.com/drover-project/drover/internal/reason"
	"github.com/drover-project/drover/internal/rollout"
	"github.com/drover-project/drover/internal/sim/check"
	"github.com/drover-project/drover/internal/sim/memory"
	"github.com/drover-project/drover/internal/sim/plan"
	"github.com/drover-project/drover/internal/store"
)

// deployers is how many clients deploy, all of them one environment, which has so many
// nodes at the most.
const (
	deployers   = 2
	environment = "prod"
	deployedTo  = 3
)

// tasks is the graph that is deployed: on each node first, then what needs that; last what
// needs another node. needs says it for the check.
const tasks = `
- {id: base, type: shell, version: 2.1.0, role: '*', parameters: {cmd: base}}
- {id: app, type: shell, version: 2.1.0, role: [app], requires: [base], parameters: {cmd: app}}
- {id: late, type: shell, version: 2.1.0, role: [late], requires: [base], cross-depends: [{name: app, role: app}], parameters: {cmd: late}}
`

var needs = map[string][]string{"app": {"base"}, "late": {"base", "app"}}

// everywhere are tasks that others need on all nodes, and not on their own alone.
var everywhere = map[string]bool{"app": true}

// rollouts is what a history knows of its deployments.
type rollouts struct {
	mu sync.Mutex
	// put are changes of what plans are computed from: when each was asked for, and
	// acknowledged.
	put []span
	// passed are the tasks of which it is stored that they succeeded, by deployment and step,
	// and under which epoch that was.
	passed map[[2]int64]int64
	latest int64 // the deployment that was planned last
}

// span is a time.
type span struct{ from, to time.Duration }

// deployer deploys.
type deployer struct {
	*client

	n int // how many times it changed something
}

func (w *world) deploy(parts *sync.WaitGroup) {
	ready := make(chan struct{})
	for i := range deployers {
		d := &deployer{client: w.beside("deployer", i)}
		parts.Go(func() {
			if i == 0 {
				d.putGraph()
				d.putEnvironment()
				close(ready)
			}
			<-ready
			d.rounds(func(int) { d.something() })
		})
	}
}

// by is who deploys.
func (d *deployer) by() rollout.By {
	return rollout.By{Account: reason.Account{Surface: "simulated", Name: d.name}}
}

// something is one thing or another.
func (d *deployer) something() {
	switch d.draw.IntN(8) {
	case 0:
		d.putGraph()
	case 1:
		d.putEnvironment()
	case 2:
		d.change("stop", func(ctx context.Context, t *term, id int64) error {
			_, err := t.rollout.Stop(ctx, id, d.by())
			return err
		})
	case 3, 4:
		retry := d.draw.IntN(2) == 0
		d.change("resume", func(ctx context.Context, t *term, id int64) error {
			_, err := t.rollout.Resume(ctx, id, retry, d.by())
			return err
		})
	default:
		d.plan()
	}
}

// puts asks for a change of what plans are computed from, until it is acknowledged.
func (d *deployer) puts(what string, put func(context.Context, *term) error) {
	asked := d.w.since()
	if err := d.ask(func(ctx context.Context, t *term) error { return put(ctx, t) }); err != nil {
		panic(fmt.Sprintf("%s: %v", what, err)) // it is a good one
	}
	d.w.tellf(d.name, "puts %s", what)
	r := &d.w.rollouts
	r.mu.Lock()
	defer r.mu.Unlock()
	r.put = append(r.put, span{asked, d.w.since()})
}

func (d *deployer) putGraph() {
	d.puts("a graph", func(ctx context.Context, t *term) error {
		_, err := t.rollout.PutGraph(ctx, environment, []course.File{{Path: "tasks.yaml", Text: tasks}}, d.by())
		return err
	})
}

func (d *deployer) putEnvironment() {
	d.n++
	nodes, hosts := map[string]any{}, map[string]any{}
	for i := range min(deployedTo, len(d.w.nodes)) {
		uid := strconv.Itoa(i + 1)
		nodes[uid] = map[string]any{"uid": uid, "roles": []any{[]string{"app", "app", "late"}[i]}}
		hosts[uid] = d.w.nodes[i].full()
	}
	text, err := json.Marshal(map[string]any{"hosts": hosts, "common": map[string]any{"version": fmt.Sprintf("%s-%d", d.name, d.n)}, "nodes": nodes})
	if err != nil {
		panic(err) // it has nothing that could not be written
	}
	d.puts("the environment", func(ctx context.Context, t *term) error {
		_, err := t.rollout.PutEnvironment(ctx, environment, course.File{Path: "prod.json", Text: string(text)}, []string{environment}, d.by())
		return err
	})
}

// plan plans a deployment, and begins it if nothing was changed meanwhile.
func (d *deployer) plan() {
	var id int64
	switch err := d.ask(func(ctx context.Context, t *term) error {
		p, _, err := t.rollout.Plan(ctx, rollout.Wish{Environment: environment}, d.by())
		if err == nil {
			id = p.ID
		}
		return err
	}); {
	case fault.Is(err, fault.Conflict): // others were quicker each time
		d.w.tellf(d.name, "plans nothing: %v", err)
		return
	case err != nil:
		panic(err) // the environment is there
	}
	planned := d.w.since()
	d.w.tellf(d.name, "plans deployment %d", id)
	d.within(time.Duration(1+d.draw.IntN(8)) * time.Second)
	asked := d.w.since()
	err := d.ask(func(ctx context.Context, t *term) error {
		_, err := t.rollout.Begin(ctx, id, d.by())
		return err
	})
	d.w.tellf(d.name, "begins deployment %d: %v", id, fault.CodeOf(err))
	r := &d.w.rollouts
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		return
	}
	r.latest = id
	for _, put := range r.put {
		if put.from > planned && put.to < asked {
			d.w.verdict.Breakf(check.BasisMoved, "deployment %d was planned at %v and begun at %v, and at %v something was put", id, planned, asked, put.to)
		}
	}
}

// change asks for a change of the deployment that was begun last; it may be refused.
func (d *deployer) change(what string, do func(context.Context, *term, int64) error) {
	r := &d.w.rollouts
	r.mu.Lock()
	id := r.latest
	r.mu.Unlock()
	if id == 0 {
		return
	}
	err := d.ask(func(ctx context.Context, t *term) error { return do(ctx, t, id) })
	d.w.tellf(d.name, "has deployment %d %s: %v", id, what, fault.CodeOf(err))
}

// openRollout opens the engine of deployments in a term.
func (t *term) openRollout(ctx context.Context, s store.Store, log *slog.Logger) (err error) {
	if t.life.w.plan.Has(plan.Deployments) {
		t.rollout, err = rollout.Open(ctx, rollout.Config{Store: s, Epoch: t.lease.Epoch, Picture: t.shown, Now: time.Now, Log: log})
	}
	return err
}

// RunTask implements exec.Node.
func (s sender) RunTask(ctx context.Context, o agent.Order, task agent.Task, log func(string)) error {
	w := s.life.w
	w.rollouts.mu.Lock()
	passed := w.rollouts.passed[[2]int64{task.Deployment, int64(task.Step)}]
	w.rollouts.mu.Unlock()
	if passed > 0 && o.Epoch >= passed {
		w.verdict.Breakf(check.RunOnce, "%s is asked to run step %d of deployment %d, whose success is stored", s.Node(), task.Step, task.Deployment)
	}
	of := fmt.Sprintf("task %d/%d", task.Deployment, task.Step)
	return s.send(ctx, o, hypervisor.Thing{Name: of}, "run", func(ctx context.Context) error { return s.ordered.RunTask(ctx, o, task, log) })
}

// recorded takes in what is stored of tasks.
func (r *rollouts) recorded(c memory.Committed) {
	epoch := int64(0)
	for _, s := range c.Steps {
		epoch = max(epoch, s.Epoch)
	}
	for _, x := range c.Writes {
		if x.Key.Kind != rollout.KindRecord {
			continue
		}
		var record course.Record
		if json.Unmarshal(x.Value, &record) == nil && record.State == course.Ready {
			r.mu.Lock()
			r.passed[[2]int64{record.Deployment, int64(record.Step)}] = epoch
			r.mu.Unlock()
		}
	}
}

func (t *term) deploymentsUndone() string {
	for d := range t.shown.Load().Deployments.Active() {
		return fmt.Sprintf("deployment %d is %s: %s", d.ID, d.Status, d.Why)
	}
	return ""
}

// deploymentsAgree holds deployments to their plans.
func (t *term) deploymentsAgree() {
	for d := range t.shown.Load().Deployments.Deployments() {
		t.life.w.Reached.Add("deployments: " + string(d.Status))
		all, err := t.rollout.Tasks(context.Background(), d.ID)
		if err != nil {
			t.life.w.verdict.Breakf(check.PlanOutcome, "deployment %d cannot be read: %v", d.ID, err)
			continue
		}
		for i := range all {
			t.outcome(d, &all[i])
			t.stored(&all[i])
			for j := range all {
				t.inOrder(&all[i], &all[j])
			}
		}
	}
}

// outcome holds the end of a task against that of its deployment.
func (t *term) outcome(d *course.Deployment, x *course.Task) {
	if d.Status == course.Done && !x.State.Passed() {
		t.life.w.verdict.Breakf(check.PlanOutcome, "deployment %d is %s, and its task %s on %s %s", d.ID, d.Status, x.Task, x.Node, x.State)
	}
}

// stored: a task whose success is stored is shown as one, whatever became of the answer.
func (t *term) stored(x *course.Task) {
	r := &t.life.w.rollouts
	r.mu.Lock()
	passed := r.passed[[2]int64{x.Deployment, int64(x.Step)}]
	r.mu.Unlock()
	if passed > 0 && x.State != course.Ready {
		t.life.w.verdict.Breakf(check.PictureStored, "deployment %d shows its task %s on %s as %s, and its success is stored", x.Deployment, x.Task, x.Node, x.State)
	}
}

// inOrder: a task that succeeded began behind those that it needs.
func (t *term) inOrder(x, before *course.Task) {
	for _, need := range needs[x.Task] {
		if before.Task != need || before.Node != x.Node && !everywhere[need] || x.State != course.Ready {
			continue
		}
		if !before.State.Passed() || before.Ended > x.Begun {
			t.life.w.verdict.Breakf(check.TaskOrder, "%s on %s began at %d, and %s on %s is %s, ended at %d", x.Task, x.Node, x.Begun, before.Task, before.Node, before.State, before.Ended)
		}
	}
}
