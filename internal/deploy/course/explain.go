package course

import (
	"encoding/json"
	"slices"

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
}

// Explain tells about a task of the course, without secrets.
func (c *Course) Explain(t Task) (*Explanation, error) {
	next := make([][]int32, len(c.After))
	for i, list := range c.After {
		for _, a := range list {
			next[a] = append(next[a], int32(i))
		}
	}
	parameters, err := c.ShownParameters(t.Step)
	return &Explanation{Task: t, Parameters: parameters, Requires: c.names(t.Step, c.After), RequiredFor: c.names(t.Step, next)}, err
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
