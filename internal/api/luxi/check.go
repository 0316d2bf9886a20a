package luxi

import (
	"context"

	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/luxiwire"
	"github.com/drover-project/drover/internal/query/items"
	"github.com/drover-project/drover/internal/queue"
)

// checked is what an opcode would come to, as clients read it.
type checked struct {
	OK     bool            `json:"ok"`
	Result raw             `json:"result,omitempty"`
	Error  *luxiwire.Error `json:"error,omitempty"`
	Fault  *luxiwire.Fault `json:"fault,omitempty"`
	// Steps are what an opcode would do that does several things.
	Steps []items.Step `json:"steps,omitempty"`
	// Placement is how the node of a new instance would be chosen, or why none would.
	Placement *items.Placement `json:"placement,omitempty"`
	// Rule says what a filter rule would do with a job of it, empty where none holds, limits or refuses it.
	Rule string   `json:"rule,omitempty"`
	Log  [][4]any `json:"log"`
	// Pending are jobs about the same things after which the answer may be another one.
	Pending []job.ID `json:"pending,omitempty"`
}

// checkJob tells of each opcode what it would come to, without a job.
func checkJob(ctx context.Context, d *Deps, a *arguments) (any, error) {
	texts := a.raws(0)
	if err := a.bad(); err != nil {
		return nil, err
	}
	ops, err := parseOps("CheckJob", texts)
	if err != nil {
		return nil, err
	}
	if err := checkOutside(ops); err != nil {
		return nil, err
	}
	found, err := d.Queue.Check(ctx, ops)
	if err != nil {
		return nil, err
	}
	out := make([]checked, len(found))
	for i, c := range found {
		out[i] = checkedOf(c)
	}
	return out, nil
}

func checkedOf(c queue.Checked) checked {
	out := checked{OK: c.Err == nil, Result: c.Result, Steps: items.StepsOf(c.Steps), Placement: items.PlacementOf(c.Placement), Log: logRows(c.Log), Pending: c.Pending}
	if c.Rule != nil {
		out.Rule = c.Rule.Would()
	}
	if c.Err != nil {
		pair := pairOf(c.Err)
		out.Error, out.Fault = &pair, luxiwire.FaultOf(c.Err)
	}
	return out
}
