package course

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/drover-project/drover/internal/deploy/plan"
	"github.com/drover-project/drover/internal/deploy/secret"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/yaql/yaqljson"
)

// Explanation is all that a stored plan knows of a task on a node, and what has become of it.
type Explanation struct {
	Task

	Parameters json.RawMessage `json:"parameters,omitempty"`
	// Requires and RequiredFor are the steps that it comes after, and those that come after it, as NODE/TASK.
	Requires    []string `json:"requires"`
	RequiredFor []string `json:"required_for"`
	// Requirements are the steps that it comes after with what has become of them, in the order of Requires. Roots are those that it
	// cannot run for, however many others are between: they failed, or were cancelled.
	Requirements []Task `json:"requirements"`
	Roots        []Task `json:"roots"`
	// Status is that of the deployment, Over why it ended so.
	Status Status `json:"status"`
	Over   string `json:"over,omitempty"`
}

// Explain tells about a step of a deployment, of whose tasks it is given all, without secrets.
func (c *Course) Explain(d *Deployment, step int32, tasks []Task) (*Explanation, error) {
	parameters, err := c.ShownParameters(step)
	x := &Explanation{Task: tasks[step], Parameters: parameters, Requires: []string{}, RequiredFor: []string{}, Requirements: []Task{}, Roots: []Task{},
		Status: d.Status, Over: d.Why}
	for _, s := range c.neighbours(step, c.After) {
		x.Requires = append(x.Requires, c.name(s))
		x.Requirements = append(x.Requirements, tasks[s])
	}
	for _, s := range c.neighbours(step, reversed(c.After)) {
		x.RequiredFor = append(x.RequiredFor, c.name(s))
	}
	for _, s := range c.roots(step, tasks) {
		x.Roots = append(x.Roots, tasks[s])
	}
	return x, err
}

// reversed tells for each step, and each point in time, what comes after it, by what each comes after.
func reversed(after [][]int32) [][]int32 {
	next := make([][]int32, len(after))
	for i, list := range after {
		for _, a := range list {
			next[a] = append(next[a], int32(i))
		}
	}
	return next
}

// roots are the steps that did not succeed and that a step, which has not run, waits for in the end.
func (c *Course) roots(step int32, tasks []Task) (roots []int32) {
	if s := tasks[step].State; s != Waiting && s != Blocked && s != Given {
		return nil
	}
	c.reach([]int32{step}, c.needs(), func(at int32) (further bool) {
		if int(at) >= len(tasks) {
			return true
		}
		switch s := tasks[at].State; {
		case s == Failed || s == Stopped:
			roots = append(roots, at)
			return false
		default:
			return s == Skipped || !s.Passed()
		}
	})
	slices.Sort(roots)
	return roots
}

// reach visits what can be reached through relations, each step and point once, and goes on where visit says so.
func (c *Course) reach(work []int32, relations [][]int32, visit func(int32) (further bool)) {
	seen := map[int32]bool{}
	for len(work) > 0 {
		at := work[len(work)-1]
		work = work[:len(work)-1]
		for _, other := range relations[at] {
			if seen[other] {
				continue
			}
			seen[other] = true
			if visit(other) {
				work = append(work, other)
			}
		}
	}
}

// ShownParameters are the parameters of a step without secrets: those of the environment, and what usual keys of secrets have.
func (c *Course) ShownParameters(step int32) (json.RawMessage, error) {
	text := c.Steps[step].Parameters
	if text == nil {
		return nil, nil
	}
	usual, err := secret.NewRules(nil)
	if err != nil {
		return nil, err
	}
	v, err := yaqljson.Decode(text)
	if err != nil {
		return nil, fault.New(fault.Internal, "the parameters of a stored task cannot be read: %w", err)
	}
	return plan.AppendCanonical(nil, secret.NewVeil(usual, c.Hidden).Value(nil, v)), nil
}

// neighbours are the steps that can be reached from a step through points in time alone, sorted by name.
func (c *Course) neighbours(step int32, relations [][]int32) (out []int32) {
	c.reach([]int32{step}, relations, func(other int32) (further bool) {
		if int(other) >= len(c.Steps) {
			return true
		}
		if other != step { // a point may be of all steps of a task, of which this is one
			out = append(out, other)
		}
		return false
	})
	slices.SortFunc(out, func(a, b int32) int { return strings.Compare(c.name(a), c.name(b)) })
	return out
}

func (c *Course) name(step int32) string { return c.Steps[step].Node + "/" + c.Steps[step].Task }
