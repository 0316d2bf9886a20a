package exec

import (
	"context"

	"github.com/drover-project/drover/internal/opcode"
)

// submitChildren submits jobs on behalf of the running one and returns what
// its result shows: [true, id] or [false, message] for each.
func (e *Env) submitChildren(ctx context.Context, jobs [][]*opcode.Opcode) ([][2]any, error) {
	own := make([][]*opcode.Opcode, len(jobs))
	for i, ops := range jobs {
		own[i] = make([]*opcode.Opcode, len(ops))
		for n, op := range ops {
			own[i][n] = inherit(e.Op, op)
		}
	}
	outcomes, err := e.Submit(ctx, own)
	if err != nil {
		return nil, failed(err, "Could not submit jobs")
	}
	result := make([][2]any, len(outcomes))
	for i, o := range outcomes {
		result[i] = [2]any{true, o.ID}
		if o.Err != nil {
			result[i] = [2]any{false, o.Err.Error()}
		}
	}
	return result, nil
}

// inherit returns the child opcode with what it takes over from its parent:
// the trail behind its own entries, the urgency, and a comment that names the
// parent where it has none.
func inherit(parent, child *opcode.Opcode) *opcode.Opcode {
	c := child.WithReason(child.Reason.Append(parent.Reason...))
	c.Priority = parent.Priority
	c.DebugLevel = parent.DebugLevel
	if c.Comment == nil {
		text := "Submitted by " + parent.ID
		c.Comment = &text
	}
	return c
}
