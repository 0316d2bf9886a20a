package items

import (
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/query"
)

// Step is one of the things that an opcode does, as clients see it.
type Step struct {
	// Step is its number, from 1.
	Step int `json:"step"`
	// Node is the name of the node that does it; empty for a change of the inventory.
	Node string `json:"node"`
	// Of is the UUID of what it is done to.
	Of string `json:"of"`
	// State is planned, running, done, undone or left; From is when it began, To when it came to that, as pairs of seconds and microseconds
	// or null.
	State job.StepState `json:"state"`
	From  any           `json:"from"`
	To    any           `json:"to"`
	Text  string        `json:"text"`
}

// StepsOf are steps as clients see them.
func StepsOf(steps []job.Step) []Step {
	out := make([]Step, len(steps))
	for i, s := range steps {
		out[i] = Step{Step: i + 1, Node: s.Node, Of: s.Of, State: s.State, From: s.From.Pair(), To: s.To.Pair(), Text: s.Text}
	}
	return out
}

// jobStepFields are fields of our own: what its opcodes do, step by step.
func jobStepFields() []query.Field[jobRow] {
	return []query.Field[jobRow]{
		{Def: def("opsteps", "OpCode_steps", query.KindOther, "What each opcode does and did, if that is several things: step, node, of, state, from, to, text"), From: query.InMemory, Led: true,
			Get: ofWhole(eachOp(func(op *job.Op) []Step { return StepsOf(op.Steps) }))},
	}
}
