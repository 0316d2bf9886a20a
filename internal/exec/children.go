package exec

import (
	"context"

	"github.com/drover-project/drover/internal/opcode"
)

// submitChildren submits jobs on behalf of the running one and returns what
// its result shows: [true, id] or [false, message] for each.
func (e *Env) submitChildren(ctx context.Context, jobs [][]*opcode.Opcode) ([][2]any, error) {
	outcomes, err := e.Submit(ctx, jobs)
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
