package job

import (
	"fmt"
	"slices"
	"strings"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/opcode"
)

// ResolveDependencies turns the relative job ids of a new job into absolute
// ones: the function tells which job is so many before this one (-1 is the job
// before), or 0 if that is before the first. A job that depends on itself is
// refused, since nothing could ever start it.
func ResolveDependencies(id ID, ops []*opcode.Opcode, relative func(int64) ID) ([]*opcode.Opcode, error) {
	out := slices.Clone(ops)
	for i, op := range ops {
		if len(op.Depends) == 0 {
			continue
		}
		deps, err := resolve(id, i, op.Depends, relative)
		if err != nil {
			return nil, err
		}
		c := *op
		c.Depends = deps
		out[i] = &c
	}
	return out, nil
}

func resolve(id ID, index int, deps []opcode.Dependency, relative func(int64) ID) ([]opcode.Dependency, error) {
	out := make([]opcode.Dependency, len(deps))
	field := func(i int) string { return fmt.Sprintf("ops[%d].depends[%d]", index, i) }
	for i, d := range deps {
		target := ID(d.Job)
		if d.Job < 0 {
			target = relative(d.Job)
		}
		if d.Job < 0 && target < 1 { // 0 itself is a job that there never is: the dependency fails
			return nil, fault.New(fault.Invalid, "Invalid value for job ID ' %d': %s points before the first job", d.Job, field(i)).At(field(i))
		}
		if target == id {
			return nil, fault.New(fault.Invalid, "%s: the job would depend on itself", field(i)).At(field(i)).
				WithHint("relative ids count from the job itself: -1 is the job before it")
		}
		out[i] = opcode.Dependency{Job: int64(target), Statuses: d.Statuses}
	}
	return out, nil
}

// Dependencies returns the ids that any opcode of the job depends on, each
// once, in order of appearance.
func (j *Job) Dependencies() []ID { return DependenciesOf(j.Inputs()) }

// DependenciesOf returns the ids that any of the opcodes depends on, each once,
// in order of appearance.
func DependenciesOf(ops []*opcode.Opcode) []ID {
	var out []ID
	var seen map[ID]bool // once there are many
	for _, op := range ops {
		for _, d := range op.Depends {
			id := ID(d.Job)
			if len(out) == fewDependencies && seen == nil {
				seen = make(map[ID]bool, 2*len(op.Depends))
				for _, o := range out {
					seen[o] = true
				}
			}
			if seen[id] || seen == nil && slices.Contains(out, id) {
				continue
			}
			if out = append(out, id); seen != nil {
				seen[id] = true
			}
		}
	}
	return out
}

// fewDependencies are so many that comparing with each is quicker than a map.
const fewDependencies = 8

// Circles finds the jobs that would wait for themselves. It gives for each of
// them all that wait for one another with it, itself included, by id. The
// graph tells what each of the jobs depends on; others it may name can close no
// circle. The work is that of looking at each dependency once.
func Circles(graph map[ID][]ID) map[ID][]ID {
	if len(graph) == 0 {
		return nil
	}
	c := circles{graph: graph, found: map[ID][]ID{}, order: make(map[ID]int, len(graph)), low: make(map[ID]int, len(graph))}
	for id := range graph {
		if c.order[id] == 0 {
			c.visit(id)
		}
	}
	return c.found
}

// circles is a search for strongly connected components (Tarjan 1972).
type circles struct {
	graph      map[ID][]ID
	order, low map[ID]int // order of first sight, from 1; the earliest that is within reach
	open       []ID       // seen, and not yet known to which component they belong
	found      map[ID][]ID
}

func (c *circles) visit(id ID) {
	c.order[id] = len(c.order) + 1
	c.low[id] = c.order[id]
	at := len(c.open)
	c.open = append(c.open, id)
	for _, d := range c.graph[id] {
		if _, ours := c.graph[d]; !ours {
			continue
		}
		if c.order[d] == 0 {
			c.visit(d)
		}
		if reach, undecided := c.low[d]; undecided {
			c.low[id] = min(c.low[id], reach)
		}
	}
	if c.low[id] < c.order[id] {
		return
	}
	members := slices.Sorted(slices.Values(c.open[at:]))
	c.open = c.open[:at]
	for _, m := range members {
		delete(c.low, m)
		if len(members) > 1 {
			c.found[m] = members
		}
	}
}

// DependencyState is what a dependency has come to, from best to worst.
type DependencyState int

// What a dependency means for the job that has it.
const (
	// DependencyMet: the job may go on as far as this one is concerned.
	DependencyMet DependencyState = iota
	// DependencyPending: the other job has not ended.
	DependencyPending
	// DependencyCanceled: the other job was cancelled, and so is this one.
	DependencyCanceled
	// DependencyFailed: the other job ended otherwise than required, or there
	// is no such job; this one fails.
	DependencyFailed
)

// CheckDependency decides what one dependency means, given the other job's
// status and whether it exists. The text says why in the reference's words.
func CheckDependency(d opcode.Dependency, status Status, exists bool) (DependencyState, string) {
	switch {
	case !exists:
		return DependencyFailed, fmt.Sprintf("Dependency error: Job %d not found", d.Job)
	case !status.Final():
		return DependencyPending, fmt.Sprintf("job %d is %s", d.Job, status)
	case slices.Contains(d.Statuses, string(status)):
		return DependencyMet, fmt.Sprintf("job %d ended as %s", d.Job, status)
	case status == Canceled:
		return DependencyCanceled, fmt.Sprintf("Dependency job %d was canceled", d.Job)
	case len(d.Statuses) == 0:
		return DependencyMet, fmt.Sprintf("job %d ended as %s", d.Job, status)
	}
	return DependencyFailed, fmt.Sprintf("Dependency job %d finished with status '%s', not one of '%s' as required",
		d.Job, status, strings.Join(d.Statuses, ", "))
}
