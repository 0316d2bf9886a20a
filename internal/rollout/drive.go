package rollout

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/drover-project/drover/internal/audit"
	"github.com/drover-project/drover/internal/deploy/course"
	"github.com/drover-project/drover/internal/deploy/secret"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/opcode"
	"github.com/drover-project/drover/internal/queue"
	"github.com/drover-project/drover/internal/reason"
	"github.com/drover-project/drover/internal/state"
	"github.com/drover-project/drover/internal/store"
)

// sourceDeploy marks the hop of a trail that tells for which deployment and task a job is.
const sourceDeploy = "gnt:deploy"

// run is a deployment that is under way. The deployment is guarded by Engine.mu; machine and jobs belong to the driving goroutine.
type run struct {
	d      *course.Deployment
	course *course.Course

	nodes   map[string]*course.Node // of the deployment, by UID
	machine *course.Machine
	jobs    map[int32]job.ID
	fresh   bool // no controller before this one made jobs in this attempt

	once   sync.Once
	values *secret.Values // what hidden returns
}

// Begin carries out a plan. Refused with fault.Conflict if what it was computed from is not what there is.
func (e *Engine) Begin(ctx context.Context, id int64, by By) (*course.Deployment, error) {
	return e.change(ctx, id, audit.DeploymentBegin, by, func(d *course.Deployment, now course.Basis) error {
		if d.Status != course.Planned {
			return fault.New(fault.WrongState, "deployment %d was begun already; it is %s", id, d.Status)
		}
		if !now.Equal(d.Basis) {
			return fault.New(fault.Conflict, "the plan of deployment %d was computed from a state that has moved on: %s", id, moved(d.Basis, now)).
				WithHint("plan again: drover deploy run %s", d.Environment)
		}
		d.Begun, d.Retried = e.cfg.Now().UnixNano(), 1
		return nil
	})
}

func moved(before, now course.Basis) string {
	switch {
	case now.Environment != before.Environment:
		return fmt.Sprintf("the environment is at generation %d, not %d", now.Environment, before.Environment)
	case now.Latest != before.Latest:
		return fmt.Sprintf("deployment %d ran since", now.Latest)
	case now.LatestEnded != before.LatestEnded:
		return fmt.Sprintf("deployment %d went on since", now.Latest)
	case !slices.Equal(now.Functions, before.Functions):
		return fmt.Sprintf("the functions of its expressions are %v, not %v", now.Functions, before.Functions)
	}
	return "a task graph was changed"
}

// Resume lets a deployment go on that was stopped or has failed, as its plan says. What failed stays so, unless it is to
// be tried again.
func (e *Engine) Resume(ctx context.Context, id int64, retry bool, by By) (*course.Deployment, error) {
	what := audit.DeploymentResume
	if retry {
		what = audit.DeploymentRetry
	}
	return e.change(ctx, id, what, by, func(d *course.Deployment, now course.Basis) error {
		if d.Status != course.Halted && d.Status != course.Broken {
			return fault.New(fault.WrongState, "deployment %d is %s; only one that was stopped, or failed, can go on", id, d.Status)
		}
		if d.Mode == course.Earnest && now.Latest != d.ID {
			return fault.New(fault.Conflict, "deployment %d can no longer go on: deployment %d ran since", id, now.Latest)
		}
		if retry {
			d.Retried = d.Attempt + 1
		}
		return nil
	})
}

// allowed says whether an attempt of a deployment may begin, with the basis that its plan would have now, and notes in the deployment what
// the attempt is.
type allowed func(d *course.Deployment, now course.Basis) error

// change begins an attempt of a deployment. Whether it may begin is decided, kept and acted upon by the driving goroutine in
// one go: a client that leaves finds it begun or untouched, never stored as running and driven by nobody.
func (e *Engine) change(ctx context.Context, id int64, what audit.Verb, by By, may allowed) (*course.Deployment, error) {
	known, err := deploymentOf(e.known(), id)
	if err != nil {
		return nil, err
	}
	old, err := e.whole(ctx, known)
	if err != nil {
		return nil, err
	}
	if _, err := e.attempt(known, old, by, may); err != nil {
		return nil, err
	}
	r, err := e.load(ctx, old) // may take long, and nobody waits for it
	if err != nil {
		return nil, err
	}
	r.fresh = true
	change := &state.Change{}
	if err := e.Plans.Records(ctx, id, func(x *course.Record) { change.Records = append(change.Records, x) }); err != nil {
		return nil, err
	}
	var next *course.Deployment
	keep := func() (err error) {
		e.changing.Lock()
		defer e.changing.Unlock()
		if next, err = e.attempt(known, old, by, may); err != nil {
			return err
		}
		change.Deployments = []*course.Deployment{next}
		return e.commit(store.Tx{Put: []store.Put{put(KindDeployment, next.Key(), next)}}, change, done(what, next, by))
	}
	err = e.act(ctx, func() error {
		if err := keep(); err != nil {
			return err
		}
		r.d = next
		e.mu.Lock()
		e.runs[id] = r
		e.mu.Unlock()
		e.begin(r)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return next.Shown(), nil
}

// attempt is a deployment with its next attempt begun, if it may begin. It is as the picture knew it, and must be so still.
func (e *Engine) attempt(known, old *course.Deployment, by By, may allowed) (*course.Deployment, error) {
	now := e.known()
	if now.Deployment(old.ID) != known {
		return nil, fault.New(fault.Conflict, "deployment %d was changed at this moment", old.ID).WithHint("look at it: drover deploy status %d", old.ID)
	}
	env, err := environmentOf(now, old.Environment)
	if err != nil {
		return nil, err
	}
	d := *old
	if err := may(&d, now.BasisOf(env, d.Graphs, e.functions)); err != nil {
		return nil, err
	}
	if other := now.ActiveIn(d.Environment); other != nil {
		return nil, underWay(other)
	}
	if err := stillThere(e.cfg.Picture.Load().Inventory, old); err != nil {
		return nil, err
	}
	d.Status, d.Why, d.Ended, d.Counts, d.Cancelled = course.Running, "", 0, nil, nil
	d.Attempt++
	d.By, d.Trail = who(by), by.Trail
	return &d, nil
}

// done is the event that tells what somebody did to a deployment.
func done(what audit.Verb, d *course.Deployment, by By) audit.Event {
	event := audit.New(what, d.Key(), by)
	event.Name = d.Environment
	return event
}

// keep stores what became of a deployment that is under way, and shows it.
func (e *Engine) keep(r *run, d *course.Deployment, told ...audit.Event) error {
	tx := store.Tx{Put: []store.Put{put(KindDeployment, d.Key(), d)}}
	err := e.commit(tx, &state.Change{Deployments: []*course.Deployment{d}}, told...)
	if err == nil {
		e.mu.Lock()
		r.d = d
		e.mu.Unlock()
	}
	return err
}

// Stop lets nothing more of a deployment begin. What runs comes to its end.
func (e *Engine) Stop(ctx context.Context, id int64, by By) (*course.Deployment, error) {
	known, err := deploymentOf(e.known(), id)
	if err != nil {
		return nil, err
	}
	if known.Status != course.Running {
		return nil, fault.New(fault.WrongState, "deployment %d is %s, not running", id, known.Status)
	}
	var next course.Deployment
	err = e.act(ctx, func() error {
		r := e.runOf(id)
		if r == nil {
			return fault.New(fault.WrongState, "deployment %d has just ended", id)
		}
		next = *r.d
		next.Status, next.Why = course.Stopping, "stopped by "+who(by)
		if err := e.keep(r, &next, done(audit.DeploymentStop, &next, by)); err != nil {
			return err
		}
		e.carryOut(r, r.machine.Stop(next.Why))
		return nil
	})
	if err != nil {
		return nil, err
	}
	return next.Shown(), nil
}

func (e *Engine) runOf(id int64) *run {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.runs[id]
}

// drive lets deployments go on, until ctx ends: first those that were under way, then as their jobs end.
func (e *Engine) drive(ctx context.Context) {
	defer close(e.done)
	follower, _ := e.cfg.Picture.Follow()
	defer follower.Close()
	e.mu.Lock()
	var found []*run
	for _, r := range e.runs {
		found = append(found, r)
	}
	e.mu.Unlock()
	slices.SortFunc(found, func(a, b *run) int { return int(a.d.ID - b.d.ID) })
	for _, r := range found {
		e.begin(r)
		if r.d.Status == course.Stopping {
			e.carryOut(r, r.machine.Stop(r.d.Why))
		}
	}
	for {
		changed := e.cfg.Picture.Changed()
		_, changes, complete := follower.Next()
		var ended []job.ID
		for _, c := range changes {
			for _, j := range c.Jobs {
				if j.Final() {
					ended = append(ended, j.ID)
				}
			}
		}
		if !complete {
			ended = e.outstanding()
		}
		e.jobsEnded(ctx, ended)
		select {
		case <-changed:
		case f := <-e.acts:
			f()
		case <-ctx.Done():
			return
		}
	}
}

// outstanding are the jobs whose end is awaited.
func (e *Engine) outstanding() []job.ID {
	var out []job.ID
	for id := range e.byJob {
		out = append(out, id)
	}
	return out
}

// begin lets an attempt of a deployment go on from what it has come to.
func (e *Engine) begin(r *run) {
	ended := map[int32]course.State{}
	for k := range e.known().Known(r.d.ID) {
		if k.Record != nil && k.Record.Counts(r.d) {
			ended[k.Step] = k.Record.State
		}
	}
	r.machine = course.NewMachine(r.course, ended)
	e.carryOut(r, r.machine.Begin())
}

// jobsEnded tells the machines how jobs ended, in the order in which these were made, and does what follows.
func (e *Engine) jobsEnded(ctx context.Context, ids []job.ID) {
	slices.Sort(ids)
	var order []*run
	follows := map[*run]course.Decision{}
	for _, id := range slices.Compact(ids) {
		from, ours := e.byJob[id]
		r := e.runOf(from.deployment)
		if !ours || r == nil {
			continue
		}
		s, why, over := e.outcome(ctx, r, from.step, id)
		if !over {
			continue
		}
		delete(e.byJob, id)
		if !slices.Contains(order, r) {
			order = append(order, r)
		}
		follows[r] = follows[r].Join(e.ended(r, from.step, id, s, why))
	}
	for _, r := range order {
		e.carryOut(r, follows[r])
	}
}

// outcome says how the job of a step ended, and why if it could not tell itself; over is false if it has not.
func (e *Engine) outcome(ctx context.Context, r *run, step int32, id job.ID) (s course.State, why string, over bool) {
	now := e.cfg.Picture.Load()
	j := now.Jobs.Get(id)
	if j != nil && !j.Final() {
		return "", "", false
	}
	x := now.Deployments.Task(r.d.ID, step).Record
	if x != nil && x.Counts(r.d) {
		return x.State, "", true
	}
	j, err := e.queue.Job(ctx, id) // what it failed with may be in the store alone, as is a job that was archived
	switch {
	case err != nil:
		return course.Failed, "the job of the task cannot be read: " + err.Error(), true
	case !j.Final():
		return "", "", false
	case j.Status() == job.Success:
		return course.Ready, "", true
	case j.Status() == job.Canceled || len(r.machine.Blocking(step)) > 0:
		return course.Stopped, "", true
	}
	return course.Failed, failureOf(j), true
}

// failureOf is what a job failed with, in words.
func failureOf(j *job.Job) string {
	for i := range j.Ops {
		if _, text, ok := job.DecodeError(j.Ops[i].Result); ok {
			return text
		}
	}
	return "the job failed"
}

// ended tells the machine of the end of a task, and keeps the end of one that could not tell itself.
func (e *Engine) ended(r *run, step int32, id job.ID, s course.State, why string) course.Decision {
	if s == course.Failed && why != "" {
		x := e.record(r, r.d, step, id)
		x.State, x.Error = s, why
		if err := e.keepRecord(e.ending, r.d, x, course.Identity{}); err != nil {
			e.cfg.Log.Error("the end of a task cannot be stored", "deployment", r.d.ID, "step", step, "error", err)
		}
	}
	return r.machine.Ended(step, s)
}

// carryOut does what the machine decided.
func (e *Engine) carryOut(r *run, d course.Decision) {
	for _, step := range d.Cancel {
		if id := r.jobs[step]; id != 0 {
			if _, err := e.queue.Cancel(context.Background(), id, false, e.byController(r)); err != nil {
				e.cfg.Log.Error("the job of a task cannot be cancelled", "job", id, "error", err)
			}
		}
	}
	if len(d.Start) > 0 {
		e.start(r, d.Start)
	}
	if d.Over {
		e.over(r, d)
	}
}

func (e *Engine) byController(r *run) By {
	return By{Account: reason.Account{Surface: "controller", Name: "deployment " + r.d.Key()}, Trail: r.d.Trail}
}

// start makes jobs of tasks.
func (e *Engine) start(r *run, starts []course.Start) {
	master := masterOf(e.inventory())
	subs := make([]queue.Submission, len(starts))
	at := map[int32]int{}
	for i, s := range starts {
		at[s.Step] = i
		op, err := e.opcode(r, s.Step, master)
		if err == nil {
			for _, a := range s.After {
				on := int64(r.jobs[a])
				if place, here := at[a]; here {
					on = int64(place - i)
				}
				op.Depends = append(op.Depends, opcode.Dependency{Job: on, Statuses: []string{string(job.Success)}})
			}
			subs[i].Ops = []*opcode.Opcode{op}
		}
		subs[i].Refused, subs[i].IgnoreDrain = err, true
		subs[i].Key = fmt.Sprintf("deployment-%d-%d-%d", r.d.ID, r.d.Attempt, s.Step)
	}
	outcomes, err := e.queue.SubmitMany(context.Background(), subs)
	if err != nil {
		// The queue does not take them: it has stopped, or could not read whether they were taken before, which their keys tell
		// when they are submitted again.
		e.cfg.Log.Error("the jobs of a deployment cannot be submitted; that is tried again", "deployment", r.d.ID, "error", err)
		e.later(func() { e.startAgain(r, starts) })
		return
	}
	for i, o := range outcomes {
		if o.Err == nil {
			r.jobs[starts[i].Step] = o.ID
			e.byJob[o.ID] = origin{r.d.ID, starts[i].Step}
		}
	}
	refused := course.Decision{}
	var before []job.ID
	for i, o := range outcomes {
		if o.Err != nil {
			refused = refused.Join(e.ended(r, starts[i].Step, 0, course.Failed, o.Err.Error()))
		} else if !r.fresh {
			before = append(before, o.ID) // it may have ended long ago
		}
	}
	e.carryOut(r, refused)
	e.jobsEnded(context.Background(), before)
}

// submitAgain is how long jobs wait that the queue did not take.
const submitAgain = time.Second

// later has something done by the goroutine that drives the deployments, after a while, unless it has ended by then.
func (e *Engine) later(f func()) {
	time.AfterFunc(submitAgain, func() {
		select {
		case e.acts <- f:
		case <-e.done:
		}
	})
}

// startAgain makes the jobs of tasks that could not be made before; of a deployment that was stopped meanwhile they count as cancelled.
func (e *Engine) startAgain(r *run, starts []course.Start) {
	r.fresh = false // the first attempt may have made them all the same, and they may have ended
	if r.machine.Stopping() == "" {
		e.start(r, starts)
		return
	}
	d := course.Decision{}
	for _, s := range starts {
		d = d.Join(r.machine.Ended(s.Step, course.Stopped))
	}
	e.carryOut(r, d)
}

// opcode makes the opcode of a step.
func (e *Engine) opcode(r *run, step int32, master string) (*opcode.Opcode, error) {
	s := &r.course.Steps[step]
	roles, node := []any{}, r.nodes[s.Node]
	if node != nil {
		for _, role := range node.Roles {
			roles = append(roles, role)
		}
	}
	op, err := opcode.FromMap(course.TaskOpcode, map[string]any{
		"deployment": r.d.ID, "step": int64(step), "attempt": int64(r.d.Attempt), "environment": r.d.Environment,
		"task": s.Task, "task_type": s.Type, "node": s.Node, "node_name": hostOf(node, s, master), "roles": roles,
	})
	if err != nil {
		return nil, err
	}
	hop := reason.Entry{Source: sourceDeploy, Time: e.cfg.Now().UnixNano(),
		Reason: "deployment " + strconv.FormatInt(r.d.ID, 10) + " of " + r.d.Environment + " by " + r.d.By + ": task " + s.Task + " on node " + s.Node + " (" + s.Why + ")"}
	return op.WithReason(r.d.Trail.Then(hop)), nil
}

// over ends a deployment.
func (e *Engine) over(r *run, d course.Decision) {
	next := *r.d
	next.Status, next.Why, next.Ended = d.Status, d.Why, e.cfg.Now().UnixNano()
	next.Counts, next.Cancelled = r.machine.Counts(), r.machine.Cancelled()
	if err := e.keep(r, &next); err != nil {
		e.cfg.Log.Error("the end of a deployment cannot be stored; that is tried again", "deployment", r.d.ID, "error", err)
		e.later(func() {
			if e.runOf(r.d.ID) == r {
				e.over(r, d)
			}
		})
		return
	}
	e.mu.Lock()
	delete(e.runs, r.d.ID)
	e.mu.Unlock()
	for _, id := range r.jobs {
		delete(e.byJob, id)
	}
}
