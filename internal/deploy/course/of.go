package course

import (
	"encoding/json"

	"github.com/drover-project/drover/internal/deploy/graph"
	"github.com/drover-project/drover/internal/deploy/legacy"
	"github.com/drover-project/drover/internal/deploy/plan"
	"github.com/drover-project/drover/yaql"
)

// Of returns the course of a plan whose order is known to be one: its relations, and those that strategies add.
func Of(p *plan.Plan, order []int32, why func(step int32) string) *Course {
	c := &Course{After: p.After()}
	for i := range p.Steps {
		s := &p.Steps[i]
		step := Step{Task: s.ID(), Node: p.Nodes[s.Node], Type: s.Type, Run: s.Run, Why: why(int32(i))}
		if s.Run {
			step.Tolerated = !legacy.Truth(s.FailOnError)
			step.Parameters = json.RawMessage(plan.Canonical(s.Parameters))
		}
		c.Steps = append(c.Steps, step)
	}
	for _, g := range p.Groups {
		c.Groups = append(c.Groups, Group{Name: g.Name, Nodes: g.Nodes, Tolerance: g.Tolerance})
	}
	c.lineUp(p, order)
	return c
}

// lineUp has tasks with a strategy take turns: of one_by_one a node comes after the one before, of parallel with an
// amount after the one that is so many before, when that has ended, however it did: how many may fail says the tolerance of groups. The nodes come in the order of the plan, so that no circle arises.
func (c *Course) lineUp(p *plan.Plan, order []int32) {
	lines := map[*graph.Task][]int32{}
	for _, i := range order {
		s := &p.Steps[i]
		amount := amountOf(s.Parameters)
		if !s.Run || amount == 0 {
			continue
		}
		line := lines[s.Task]
		if n := len(line); n >= amount {
			c.takesTurn(i, line[n-amount])
		}
		lines[s.Task] = append(line, i)
	}
}

// amountOf returns on how many nodes at a time a task may run, 0 for any number.
func amountOf(parameters any) int {
	m, ok := parameters.(yaql.Mapping)
	if !ok {
		return 0
	}
	v, _ := m.Get("strategy")
	strategy, ok := v.(yaql.Mapping)
	if !ok {
		return 0
	}
	if kind, _ := strategy.Get("type"); kind == "one_by_one" {
		return 1
	}
	amount, _ := strategy.Get("amount")
	n, _ := amount.(int64)
	return int(max(n, 0))
}
