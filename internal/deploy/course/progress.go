package course

import (
	"fmt"
	"slices"
)

// Progress is how far a deployment is.
type Progress struct {
	*Deployment

	States map[State]int    `json:"states"`
	ByNode map[string]Tally `json:"by_node"`
	// ByTask tells of each task that runs somewhere, in the order of the plan.
	ByTask []TaskTally `json:"by_task"`
	// Running, Held, Queued, Unsuccessful and Stopped are the tasks that run, whose jobs a filter rule holds, whose jobs wait for what
	// others have, that failed, and whose jobs were cancelled.
	Running      []Task `json:"running"`
	Held         []Task `json:"held"`
	Queued       []Task `json:"queued"`
	Unsuccessful []Task `json:"unsuccessful"`
	Stopped      []Task `json:"stopped"`
	// Longest is the longest chain of tasks that wait for one another, from one that could go on now: what the
	// deployment waits for most.
	Longest []string `json:"longest"`
	// Moved says what has changed of what a deployment was planned from that may be begun, or go on; empty if nothing has.
	Moved string `json:"moved,omitempty"`
}

// Tally counts the tasks of a node.
type Tally struct {
	Runs   int `json:"runs"`
	Passed int `json:"passed"`
	Failed int `json:"failed"`
}

// TaskTally counts the nodes of a task.
type TaskTally struct {
	Task string `json:"task"`
	Tally
	// Running are those on which it runs, Ended those on which nothing becomes of it any more in this attempt.
	Running int `json:"running"`
	Ended   int `json:"ended"`
}

// named bounds the tasks that a progress names in each of its lists.
const named = 100

// ProgressOf sums up the tasks of a deployment, by its course.
func ProgressOf(d *Deployment, c *Course, tasks []Task) *Progress {
	p := &Progress{Deployment: d, States: map[State]int{}, ByNode: map[string]Tally{}, ByTask: tallies(tasks), Running: []Task{}, Held: []Task{}, Queued: []Task{},
		Unsuccessful: []Task{}, Stopped: []Task{}, Longest: []string{}}
	for i := range tasks {
		p.count(&tasks[i])
	}
	if d.Status.Active() {
		p.Longest = longest(c, tasks)
	}
	for _, list := range [][]Task{p.Unsuccessful, p.Stopped} {
		if len(list) == 0 {
			continue
		}
		before := reversed(c.needs())
		for i := range list {
			list[i].Blocks = c.blockedBy(list[i].Step, before, tasks)
		}
	}
	return p
}

// tallies counts the nodes of each task that runs somewhere.
func tallies(tasks []Task) []TaskTally {
	out, at := []TaskTally{}, map[string]int{}
	for i := range tasks {
		t := &tasks[i]
		if t.State == Skipped {
			continue
		}
		n, known := at[t.Task]
		if !known {
			n = len(out)
			at[t.Task] = n
			out = append(out, TaskTally{Task: t.Task})
		}
		x := &out[n]
		x.Runs++
		switch {
		case t.State.Passed():
			x.Passed++
		case t.State == Failed:
			x.Failed++
		}
		if t.State.Final() {
			x.Ended++
		}
		if t.Running {
			x.Running++
		}
	}
	return out
}

// blockedBy is how many tasks cannot run since one did not succeed.
func (c *Course) blockedBy(step int32, before [][]int32, tasks []Task) (n int) {
	c.reach([]int32{step}, before, func(at int32) (further bool) {
		if int(at) < len(tasks) {
			switch tasks[at].State {
			case Waiting, Blocked, Given:
				n++
			case Skipped:
			default:
				return false
			}
		}
		return true
	})
	return n
}

// count adds a task.
func (p *Progress) count(t *Task) {
	p.States[t.State]++
	if t.State == Skipped {
		return
	}
	n := p.ByNode[t.Node]
	n.Runs++
	var list *[]Task
	switch {
	case t.State.Passed():
		n.Passed++
	case t.State == Failed:
		n.Failed++
		list = &p.Unsuccessful
	case t.State == Stopped:
		list = &p.Stopped
	case t.Running:
		list = &p.Running
	case t.Held != "":
		list = &p.Held
	case t.Wait != nil:
		list = &p.Queued
	}
	if list != nil && len(*list) < named {
		*list = append(*list, *t)
	}
	p.ByNode[t.Node] = n
}

// Next is what somebody may want to do now, as a command; empty for nothing.
func (p *Progress) Next() string {
	anew := fmt.Sprintf("drover deploy run %s plans anew", p.Environment)
	switch {
	case p.Moved != "":
		return anew
	case p.Status == Planned:
		return fmt.Sprintf("drover deploy run --plan %d", p.ID)
	case p.Status == Halted:
		return fmt.Sprintf("drover deploy resume %d", p.ID)
	case p.Status == Broken:
		return fmt.Sprintf("mend what is wrong, then drover deploy retry %d; or %s", p.ID, anew)
	}
	return ""
}

// Act is something that may be done to a deployment.
type Act string

// What may be done to deployments.
const (
	Begin  Act = "begin"  // the plan is carried out
	Stop   Act = "stop"   // nothing more begins, and what runs comes to its end
	Resume Act = "resume" // what is left begins, and what failed stays so
	Retry  Act = "retry"  // what failed begins again, and what is left
)

// Acts are what may be done to the deployment now, what is wanted most first. Latest is the latest deployment in earnest of its environment.
func (p *Progress) Acts(latest *Deployment) []Act {
	passed := p.Mode == Earnest && latest != nil && latest.ID != p.ID
	failed, left := p.States[Failed] > 0, p.States[Waiting]+p.States[Stopped] > 0
	switch {
	case p.Status == Running:
		return []Act{Stop}
	case p.Status == Planned && p.Moved == "":
		return []Act{Begin}
	case passed || p.Status != Halted && p.Status != Broken:
		return []Act{}
	case failed && left:
		return []Act{Retry, Resume}
	case failed:
		return []Act{Retry}
	}
	return []Act{Resume}
}

// Done is how many tasks have passed that were to run.
func (p *Progress) Done() int { return p.States[Ready] + p.States[Tolerated] }

// MarkBlocked tells which of the tasks of a deployment that is over did not run because of others: those that wait for one
// that failed, or was cancelled, become Blocked.
func (c *Course) MarkBlocked(tasks []Task) {
	blocked := make([]bool, len(c.After))
	next := reversed(c.needs())
	var work []int32
	for i := range tasks {
		if s := tasks[i].State; s == Failed || s == Stopped {
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
		if tasks[i].State == Waiting && blocked[i] {
			tasks[i].State = Blocked
		}
	}
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
func longest(c *Course, tasks []Task) []string {
	length, before := make([]int, len(c.After)), make([]int32, len(c.After))
	done := make([]bool, len(c.After))
	open := func(i int32) bool {
		return int(i) >= len(tasks) || !tasks[i].State.Final() || tasks[i].State == Skipped
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
			if int(v) < len(tasks) && open(v) && tasks[v].State != Skipped {
				length[v]++
				if best < 0 || length[v] > length[best] {
					best = v
				}
			}
		}
	}
	out := []string{}
	for v := best; v >= 0; v = before[v] {
		if int(v) < len(tasks) && open(v) && tasks[v].State != Skipped {
			out = append(out, tasks[v].Node+"/"+tasks[v].Task)
		}
	}
	slices.Reverse(out)
	return out
}
