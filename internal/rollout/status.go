package rollout

import (
	"context"
	"slices"

	"github.com/drover-project/drover/internal/deploy/course"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/state"
)

// Tasks returns the tasks of a deployment as they are now, in the order of its plan.
func (e *Engine) Tasks(ctx context.Context, id int64) ([]course.Task, error) {
	_, tasks, err := e.tasks(ctx, id)
	return tasks, err
}

// tasks returns the course of a deployment and its tasks.
func (e *Engine) tasks(ctx context.Context, id int64) (*course.Course, []course.Task, error) {
	d, err := e.Deployment(id)
	if err != nil {
		return nil, nil, err
	}
	r := e.runOf(id)
	if r == nil {
		if r, err = e.load(ctx, d); err != nil {
			return nil, nil, err
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return r.course, e.tasksOf(r), nil
}

// Explain tells all about a task of a deployment on a node; NotFound if its plan has no such task there.
func (e *Engine) Explain(ctx context.Context, id int64, task, node string) (*course.Explanation, error) {
	c, tasks, err := e.tasks(ctx, id)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(tasks, func(t course.Task) bool { return t.Task == task && t.Node == node })
	if i < 0 {
		return nil, fault.New(fault.NotFound, "the plan of deployment %d has no task %q on node %q", id, task, node)
	}
	return c.Explain(tasks[i])
}

// tasksOf describes the tasks of a run. The caller holds mu.
func (e *Engine) tasksOf(r *run) []course.Task {
	now := e.cfg.Picture.Load()
	out := make([]course.Task, len(r.course.Steps))
	for i := range r.course.Steps {
		s := &r.course.Steps[i]
		t := course.Task{Deployment: r.d.ID, Environment: r.d.Environment, Step: int32(i), Task: s.Task, Node: s.Node, Type: s.Type, State: course.Waiting, Why: s.Why}
		if !s.Run {
			t.State = course.Skipped
		}
		if x := r.records[t.Step]; x != nil && (x.Counts(r.d) || !r.d.Status.Active()) {
			t.State, t.Error, t.Job, t.Begun, t.Ended = x.State, x.Error, x.Job, x.Begun, x.Ended
		} else if id := r.jobs[t.Step]; id != 0 {
			withJob(&t, now, id)
		}
		out[i] = t
	}
	if !r.d.Status.Active() && r.d.Status != course.Planned {
		r.course.MarkBlocked(out)
	}
	return out
}

// withJob tells about the job of a task that has not ended.
func withJob(t *course.Task, now *state.State, id job.ID) {
	t.State, t.Job = course.Given, int64(id)
	j := now.Jobs.Get(id)
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
	if j.Status() == job.Canceled {
		t.State = course.Stopped
	}
}

// Progress returns how far a deployment is.
func (e *Engine) Progress(ctx context.Context, id int64) (*course.Progress, error) {
	tasks, err := e.Tasks(ctx, id)
	if err != nil {
		return nil, err
	}
	d, err := e.Deployment(id)
	if err != nil {
		return nil, err
	}
	var left *course.Course
	if r := e.runOf(id); r != nil {
		left = r.course
	}
	p := course.ProgressOf(d.Shown(), left, tasks)
	p.Moved = e.moved(d)
	return p, nil
}

// moved says what changed of what a deployment was planned from, as long as that could matter: it may be begun, or go on. It
// goes on as it was planned.
func (e *Engine) moved(d *course.Deployment) string {
	e.mu.Lock()
	defer e.mu.Unlock()
	env, err := e.environment(d.Environment)
	if err != nil || d.Status != course.Planned && d.Status != course.Halted && d.Status != course.Broken {
		return ""
	}
	now := e.basis(env, d.Graphs)
	if d.Status != course.Planned && now.Latest == d.ID {
		now.Latest, now.LatestEnded = d.Basis.Latest, d.Basis.LatestEnded
	}
	if now.Equal(d.Basis) {
		return ""
	}
	return moved(d.Basis, now)
}
