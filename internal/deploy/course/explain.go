package course

import (
	"encoding/json"
	"slices"
)

// Explanation is all that a stored plan knows of a task on a node, and what has become of it.
type Explanation struct {
	Task

	Parameters json.RawMessage `json:"parameters,omitempty"`
	// Requires and RequiredFor are the steps that it comes after, and those that come after it, as NODE/TASK.
	Requires    []string `json:"requires"`
	RequiredFor []string `json:"required_for"`
}

// Explain tells about a task of the course.
func (c *Course) Explain(t Task) *Explanation {
	next := make([][]int32, len(c.After))
	for i, list := range c.After {
		for _, a := range list {
			next[a] = append(next[a], int32(i))
		}
	}
	return &Explanation{Task: t, Parameters: c.Steps[t.Step].Parameters, Requires: c.names(t.Step, c.After), RequiredFor: c.names(t.Step, next)}
}

// names are the steps that can be reached from a step through points in time alone, sorted.
func (c *Course) names(step int32, relations [][]int32) []string {
	out, seen, work := []string{}, map[int32]bool{}, []int32{step}
	for len(work) > 0 {
		at := work[len(work)-1]
		work = work[:len(work)-1]
		for _, other := range relations[at] {
			switch {
			case seen[other]:
				continue
			case int(other) >= len(c.Steps):
				work = append(work, other)
			case other != step: // a point may be of all steps of a task, of which this is one
				out = append(out, c.Steps[other].Node+"/"+c.Steps[other].Task)
			}
			seen[other] = true
		}
	}
	slices.Sort(out)
	return out
}
