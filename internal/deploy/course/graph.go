package course

import (
	"cmp"
	"slices"
)

// TaskGraph is the plan by its tasks, whatever the nodes: their ids in the order of the plan, and which comes after which, [before, after] by their
// places in that order, sorted.
func (c *Course) TaskGraph() (tasks []string, lines [][2]int) {
	at := map[string]int{}
	for i := range c.Steps {
		if id := c.Steps[i].Task; !has(at, id) {
			at[id] = len(tasks)
			tasks = append(tasks, id)
		}
	}
	of := func(i int32) int { return at[c.Steps[i].Task] }
	points := make([]map[int]bool, len(c.After)) // the tasks before each point in time
	var before func(int32) map[int]bool
	before = func(i int32) map[int]bool {
		if points[i] == nil {
			points[i] = map[int]bool{} // a point comes after no point that comes after it
			for _, a := range c.After[i] {
				if int(a) < len(c.Steps) {
					points[i][of(a)] = true
					continue
				}
				for t := range before(a) {
					points[i][t] = true
				}
			}
		}
		return points[i]
	}
	seen := map[[2]int]bool{}
	for i := range c.Steps {
		for t := range before(int32(i)) { // a plan has not so many
			l := [2]int{t, of(int32(i))}
			if t != l[1] && !seen[l] {
				seen[l] = true
				lines = append(lines, l)
			}
		}
	}
	slices.SortFunc(lines, func(a, b [2]int) int { return cmp.Or(a[0]-b[0], a[1]-b[1]) })
	return tasks, lines
}

func has(m map[string]int, key string) bool {
	_, ok := m[key]
	return ok
}

// Sum is how far a task is on all its nodes.
type Sum struct {
	Task string `json:"task"`
	// State is the one that tells most: of tasks that failed somewhere error, then running, held, stopped, blocked, given (a job waits somewhere), begun (it has passed on
	// some nodes), ready, waiting; skipped where it runs nowhere.
	State string `json:"state"`
	Nodes int    `json:"nodes"`
	Runs  int    `json:"runs"`
	// Passed, Failed and Running are the nodes on which it has, and on which it runs.
	Passed  int `json:"passed"`
	Failed  int `json:"failed"`
	Running int `json:"running"`
	// Begun and Ended are when its first node began, and its last one that ended did, in nanoseconds since the epoch; 0 for not.
	Begun int64 `json:"begun,omitempty"`
	Ended int64 `json:"ended,omitempty"`
}

// Sums tells of each task of a deployment, in the order of TaskGraph.
func Sums(tasks []Task) []Sum {
	out, at := []Sum{}, map[string]int{}
	counts := []map[string]int{}
	for i := range tasks {
		t := &tasks[i]
		n, known := at[t.Task]
		if !known {
			n = len(out)
			at[t.Task] = n
			out = append(out, Sum{Task: t.Task})
			counts = append(counts, map[string]int{})
		}
		x := &out[n]
		x.Nodes++
		counts[n][situation(t)]++
		if t.State == Skipped {
			continue
		}
		x.Runs++
		if t.Begun != 0 && (x.Begun == 0 || t.Begun < x.Begun) {
			x.Begun = t.Begun
		}
		x.Ended = max(x.Ended, t.Ended)
	}
	for i := range out {
		x := &out[i]
		x.Passed, x.Failed, x.Running = counts[i]["ready"], counts[i]["error"], counts[i]["running"]
		x.State = telling(x, counts[i])
	}
	return out
}

// Outline is a deployment by its tasks, whatever their nodes.
type Outline struct {
	Tasks []Sum `json:"tasks"`
	// After are pairs of places in Tasks: the second one comes after the first.
	After [][2]int `json:"after"`
}

// OutlineOf is the outline of a plan, whose tasks are as they are now.
func OutlineOf(c *Course, tasks []Task) *Outline {
	_, after := c.TaskGraph()
	return &Outline{Tasks: Sums(tasks), After: append([][2]int{}, after...)}
}

// situation is the state of a task on a node, with what its job tells.
func situation(t *Task) string {
	switch {
	case t.State != Skipped && t.State.Passed():
		return string(Ready)
	case t.State == Given && t.Running:
		return "running"
	case t.State == Given && t.Held != "":
		return "held"
	}
	return string(t.State)
}

// telling is the state of a task that tells most.
func telling(x *Sum, counts map[string]int) string {
	for _, s := range []string{"error", "running", "held", "stopped", "blocked", "given"} {
		if counts[s] > 0 {
			return s
		}
	}
	switch {
	case x.Runs == 0:
		return "skipped"
	case x.Passed == x.Runs:
		return "ready"
	case x.Passed > 0:
		return "begun"
	}
	return "waiting"
}
