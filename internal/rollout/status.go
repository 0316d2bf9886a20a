package rollout

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/drover-project/drover/internal/deploy/course"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/state"
)

// Tasks returns the tasks of a deployment as they are now, in the order of its plan.
func (e *Reader) Tasks(ctx context.Context, id int64) ([]course.Task, error) {
	now := e.cfg.Picture.Load()
	d, err := deploymentOf(now.Deployments, id)
	if err != nil {
		return nil, err
	}
	return e.tasks(ctx, now, d)
}

// Outline returns the tasks of a deployment with what came of each so far, and which comes after which.
func (e *Reader) Outline(ctx context.Context, id int64) (*course.Outline, error) {
	now := e.cfg.Picture.Load()
	d, err := deploymentOf(now.Deployments, id)
	if err != nil {
		return nil, err
	}
	tasks, err := e.tasks(ctx, now, d)
	if err != nil {
		return nil, err
	}
	c, err := e.Plans.Course(ctx, d)
	if err != nil {
		return nil, err
	}
	return course.OutlineOf(c, tasks), nil
}

// tasks returns the tasks of a deployment, with what jobs tell of them.
func (e *Reader) tasks(ctx context.Context, now *state.State, d *course.Deployment) ([]course.Task, error) {
	tasks, err := e.Plans.Tasks(ctx, now.Deployments, d)
	if err != nil {
		return nil, err
	}
	var waits map[int64]*course.Wait // asked for once, if there is somebody who may wait
	for i := range tasks {
		t := &tasks[i]
		if t.State != course.Given {
			continue
		}
		withJob(t, now)
		switch {
		case t.Running:
			continue
		case e.cfg.Leads != nil: // which rule holds it, or who has its locks, is in no other picture
			return nil, ErrLed
		case t.Held != "":
			continue
		}
		if waits == nil {
			waits = waitsOf(now)
		}
		t.Wait = waits[t.Job]
	}
	return tasks, nil
}

// waitsOf tells for what jobs wait that others have.
func waitsOf(now *state.State) map[int64]*course.Wait {
	waits := map[int64]*course.Wait{}
	for s := range now.Locks.All() {
		if len(s.Pending) == 0 {
			continue
		}
		w := &course.Wait{Lock: now.Inventory.LockName(s.Name)}
		for o := range s.Holders.All() {
			w.Job = int64(o)
			break
		}
		if j := now.Jobs.Get(job.ID(w.Job)); j != nil {
			w.What, w.Since = purpose(j), int64(j.Started)*int64(time.Microsecond)
		}
		for _, p := range s.Pending {
			waits[int64(p.Owner)] = w
		}
	}
	return waits
}

// purpose says for people what a job does.
func purpose(j *job.Job) string {
	if k, ok := course.KnownOf(j); ok {
		return fmt.Sprintf("task %s on node %s of deployment %d", j.Ops[0].Input.Str("task"), j.Ops[0].Input.Str("node"), k.Deployment)
	}
	return strings.Join(j.Summary(), ", ")
}

// Explain tells all about a task of a deployment on a node; NotFound if its plan has no such task there.
func (e *Reader) Explain(ctx context.Context, id int64, task, node string) (*course.Explanation, error) {
	now := e.cfg.Picture.Load()
	d, err := deploymentOf(now.Deployments, id)
	if err != nil {
		return nil, err
	}
	tasks, err := e.tasks(ctx, now, d)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(tasks, func(t course.Task) bool { return t.Task == task && t.Node == node })
	if i < 0 {
		return nil, fault.New(fault.NotFound, "the plan of deployment %d has no task %q on node %q", id, task, node)
	}
	c, err := e.Plans.Course(ctx, d)
	if err != nil {
		return nil, err
	}
	return c.Explain(d, tasks[i].Step, tasks)
}

// withJob tells about the job of a task that has not ended.
func withJob(t *course.Task, now *state.State) {
	j := now.Jobs.Get(job.ID(t.Job))
	if j == nil {
		return
	}
	if j.Hold != nil && j.Hold.Rule != "" {
		t.Held = j.Hold.Rule
		for _, r := range now.Rules {
			if r.UUID == t.Held {
				t.HeldWhy = r.Describe()
			}
		}
	}
	t.Running = j.Status() == job.Running
}

// Progress returns how far a deployment is.
func (e *Reader) Progress(ctx context.Context, id int64) (*course.Progress, error) {
	now := e.cfg.Picture.Load()
	known, err := deploymentOf(now.Deployments, id)
	if err != nil {
		return nil, err
	}
	tasks, err := e.tasks(ctx, now, known)
	if err != nil {
		return nil, err
	}
	d, err := e.whole(ctx, known)
	if err != nil {
		return nil, err
	}
	c, err := e.Plans.Course(ctx, d)
	if err != nil {
		return nil, err
	}
	p := course.ProgressOf(d.Shown(), c, tasks)
	p.Moved, err = e.moved(ctx, now.Deployments, d)
	return p, err
}

// moved says what changed of what a deployment was planned from, as long as that could matter: it may be begun, or go on. It
// goes on as it was planned.
func (e *Reader) moved(ctx context.Context, t *course.Table, d *course.Deployment) (string, error) {
	env := t.Environment(d.Environment)
	if env == nil || d.Status != course.Planned && d.Status != course.Halted && d.Status != course.Broken {
		return "", nil
	}
	if err := e.asLeader(ctx); err != nil {
		return "", err
	}
	now := t.BasisOf(env, d.Graphs, e.functions)
	if d.Status != course.Planned && now.Latest == d.ID {
		now.Latest, now.LatestEnded = d.Basis.Latest, d.Basis.LatestEnded
	}
	if now.Equal(d.Basis) {
		return "", nil
	}
	return moved(d.Basis, now), nil
}
