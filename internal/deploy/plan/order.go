package plan

import (
	"math"

	"github.com/drover-project/drover/internal/deploy/graph"
)

// fewMembers is the size up to which a relation is spelt out.
const fewMembers = 4

// network is a plan's order as a graph: its steps, and points in time that stand for "all of these tasks on all of these
// nodes are done" or "may begin". Such points keep relations between many nodes from being spelt out.
type network struct {
	plan   *Plan
	next   [][]int32 // what comes after each step and point
	waits  []int32   // for how many others
	points map[point]int32
	edges  int
}

type point struct {
	begin bool
	steps *stepSet
}

// network spells the relations out, as long as they are not more than so many.
func (p *Plan) network(most int) (*network, error) {
	n := &network{plan: p, next: make([][]int32, len(p.Steps)), waits: make([]int32, len(p.Steps)), points: map[point]int32{}}
	for i := range p.Steps {
		for _, r := range p.Steps[i].requires {
			n.relate(int32(i), r, false)
		}
		for _, r := range p.Steps[i].requiredFor {
			n.relate(int32(i), r, true)
		}
		if n.edges > most {
			return nil, tooLarge(most, "relations")
		}
	}
	return n, nil
}

func (n *network) edge(from, to int32) {
	n.next[from] = append(n.next[from], to)
	n.waits[to]++
	n.edges++
}

// relate enters one relation of a step; before says that the step comes before the others.
func (n *network) relate(step int32, r relation, before bool) {
	if r.steps == nil || len(r.steps.steps) <= fewMembers || r.steps.has(step) {
		n.plan.members(r, n.plan.Steps[step].Node, func(other int32) {
			if other != step || r.self {
				n.join(step, other, before)
			}
		})
		return
	}
	p, ok := n.points[point{before, r.steps}]
	if !ok {
		p = int32(len(n.next))
		n.next, n.waits = append(n.next, nil), append(n.waits, 0)
		n.points[point{before, r.steps}] = p
		for _, other := range r.steps.steps {
			if before {
				n.edge(p, other)
			} else {
				n.edge(other, p)
			}
		}
	}
	n.join(step, p, before)
}

func (n *network) join(step, other int32, before bool) {
	if before {
		n.edge(step, other)
	} else {
		n.edge(other, step)
	}
}

// Order returns the steps in an order in which each comes after all that it depends on, always the same for a plan.
// Steps that depend on one another in a circle are an error that names them.
func (p *Plan) Order() ([]int32, error) {
	n, err := p.network(p.mostRelations)
	if err != nil {
		return nil, err
	}
	waits := n.waits
	var ready, order []int32
	for i, w := range waits {
		if w == 0 {
			ready = append(ready, int32(i))
		}
	}
	for len(ready) > 0 {
		v := ready[0]
		ready = ready[1:]
		if int(v) < len(p.Steps) {
			order = append(order, v)
		}
		for _, to := range n.next[v] {
			if waits[to]--; waits[to] == 0 {
				ready = append(ready, to)
			}
		}
	}
	if len(order) == len(p.Steps) {
		return order, nil
	}
	return nil, p.circle(n, waits)
}

// circle names the steps of one circle among those that still wait.
func (p *Plan) circle(n *network, waits []int32) error {
	before := make([]int32, len(n.next)) // one that each waits for
	for v := range n.next {
		if waits[v] == 0 {
			continue
		}
		for _, to := range n.next[v] {
			if waits[to] > 0 {
				before[to] = int32(v) + 1
			}
		}
	}
	at := int32(0)
	for v, w := range waits {
		if w > 0 {
			at = int32(v)
		}
	}
	seen := map[int32]bool{}
	for !seen[at] { // walks back until it meets itself
		seen[at] = true
		at = before[at] - 1
	}
	var steps []int32
	for v := at; ; {
		if int(v) < len(p.Steps) {
			steps = append(steps, v)
		}
		if v = before[v] - 1; v == at {
			break
		}
	}
	names := make([]string, 0, len(steps)+1)
	for _, s := range steps {
		names = append(names, p.Name(s))
	}
	names = append(names, names[0])
	more := 0
	for i := range p.Steps {
		if waits[i] > 0 {
			more++
		}
	}
	return graph.Circle(p.Steps[steps[0]].Task.Position, names, more-len(steps))
}

// After returns for each step, and then for points in time that keep relations between many steps short, which of them
// it comes after. Order tells of a plan that has too many.
func (p *Plan) After() [][]int32 {
	n, _ := p.network(math.MaxInt)
	after := make([][]int32, len(n.next))
	for from, list := range n.next {
		for _, to := range list {
			after[to] = append(after[to], int32(from))
		}
	}
	return after
}
