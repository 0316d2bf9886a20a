package rollout

import (
	"context"
	"slices"

	"github.com/drover-project/drover/internal/deploy/course"
	"github.com/drover-project/drover/internal/job"
)

// Progress is how far a deployment is.
type Progress struct {
	*course.Deployment

	States map[course.State]int `json:"states"`
	ByNode map[string]Tally     `json:"by_node"`
	// Running, Held and Unsuccessful are the tasks that run, whose jobs a filter rule holds, and that failed.
	Running      []course.Task `json:"running"`
	Held         []course.Task `json:"held"`
	Unsuccessful []course.Task `json:"unsuccessful"`
	// Longest is the longest chain of tasks that wait for one another, from one that could go on now: what the
	// deployment waits for most.
	Longest []string `json:"longest"`
}

// Tally counts the tasks of a node.
type Tally struct {
	Runs   int `json:"runs"`
	Passed int `json:"passed"`
	Failed int `json:"failed"`
}

// Tasks returns the tasks of a deployment as they are now, in the order of its plan.
func (e *Engine) Tasks(ctx context.Context, id int64) ([]course.Task, error) {
	d, err := e.Deployment(id)
	if err != nil {
		return nil, err
	}
	r := e.runOf(id)
	if r == nil {
		if r, err = e.load(ctx, d); err != nil {
			return nil, err
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.tasksOf(r), nil
}

// tasksOf describes the tasks of a run. The caller holds mu.
func (e *Engine) tasksOf(r *run) []course.Task {
	jobs := e.cfg.Picture.Load().Jobs
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
			withJob(&t, jobs.Get(id), id)
		}
		out[i] = t
	}
	if !r.d.Status.Active() && r.d.Status != course.Planned {
		markBlocked(r, out)
	}
	return out
}

// withJob tells about the job of a task that has not ended.
func withJob(t *course.Task, j *job.Job, id job.ID) {
	t.State, t.Job = course.Given, int64(id)
	if j == nil {
		return
	}
	if j.Hold != nil {
		t.Held = j.Hold.Rule
	}
	t.Running = j.Status() == job.Running
	if j.Status() == job.Canceled {
		t.State = course.Stopped
	}
}

// markBlocked tells which tasks of a deployment that is over did not run because of others.
func markBlocked(r *run, tasks []course.Task) {
	blocked := make([]bool, len(r.course.After))
	next := make([][]int32, len(r.course.After))
	for i, list := range r.course.After {
		for _, a := range list {
			next[a] = append(next[a], int32(i))
		}
	}
	var work []int32
	for i := range tasks {
		if tasks[i].State == course.Failed {
			work = append(work, int32(i))
		}
	}
	for len(work) > 0 {
		i := work[0]
		work = work[1:]
		for _, x := range next[i] {
			if blocked[x] {
				continue
			}
			blocked[x] = true
			work = append(work, x)
		}
	}
	for i := range tasks {
		if tasks[i].State == course.Waiting && blocked[i] {
			tasks[i].State = course.Blocked
		}
	}
}

// most bounds the tasks that a progress names in each of its lists.
const most = 100

// Progress returns how far a deployment is.
func (e *Engine) Progress(ctx context.Context, id int64) (*Progress, error) {
	tasks, err := e.Tasks(ctx, id)
	if err != nil {
		return nil, err
	}
	d, err := e.Deployment(id)
	if err != nil {
		return nil, err
	}
	p := &Progress{Deployment: d, States: map[course.State]int{}, ByNode: map[string]Tally{}, Running: []course.Task{}, Held: []course.Task{}, Unsuccessful: []course.Task{}, Longest: []string{}}
	add := func(list *[]course.Task, t *course.Task) {
		if len(*list) < most {
			*list = append(*list, *t)
		}
	}
	for i := range tasks {
		t := &tasks[i]
		p.States[t.State]++
		if t.State == course.Skipped {
			continue
		}
		n := p.ByNode[t.Node]
		n.Runs++
		switch {
		case t.State.Passed():
			n.Passed++
		case t.State == course.Failed:
			n.Failed++
			add(&p.Unsuccessful, t)
		case t.Running:
			add(&p.Running, t)
		case t.Held != "":
			add(&p.Held, t)
		}
		p.ByNode[t.Node] = n
	}
	if r := e.runOf(id); r != nil {
		p.Longest = longest(r.course, tasks)
	}
	return p, nil
}

// farthest returns the step at the end of the longest chain among those that are open; -1 if none is.
func farthest(steps []int32, length []int, open func(int32) bool) int32 {
	best := int32(-1)
	for _, a := range steps {
		if open(a) && (best < 0 || length[a] > length[best]) {
			best = a
		}
	}
	return best
}

// longest returns the longest chain of tasks that have not ended.
func longest(c *course.Course, tasks []course.Task) []string {
	length, before := make([]int, len(c.After)), make([]int32, len(c.After))
	done := make([]bool, len(c.After))
	open := func(i int32) bool {
		return int(i) >= len(tasks) || !tasks[i].State.Final() || tasks[i].State == course.Skipped
	}
	best := int32(-1)
	for i := range c.After {
		// The order of the steps is not that of their relations: each is visited after those before it.
		stack := []int32{int32(i)}
		for len(stack) > 0 {
			v := stack[len(stack)-1]
			ready := true
			for _, a := range c.After[v] {
				if open(a) && !done[a] {
					stack, ready = append(stack, a), false
				}
			}
			if !ready {
				continue
			}
			stack = stack[:len(stack)-1]
			if done[v] {
				continue
			}
			done[v], before[v] = true, farthest(c.After[v], length, open)
			if before[v] >= 0 {
				length[v] = length[before[v]]
			}
			if int(v) < len(tasks) && open(v) && tasks[v].State != course.Skipped {
				length[v]++
				if best < 0 || length[v] > length[best] {
					best = v
				}
			}
		}
	}
	out := []string{}
	for v := best; v >= 0; v = before[v] {
		if int(v) < len(tasks) && open(v) && tasks[v].State != course.Skipped {
			out = append(out, tasks[v].Node+"/"+tasks[v].Task)
		}
	}
	slices.Reverse(out)
	return out
}
