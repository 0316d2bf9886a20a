package plan

import "slices"

// Cut makes a plan that fails smaller, as long as it fails: it leaves out faults, then
// kinds of work, requests, clients and nodes. fails runs a plan. What is left out shifts the order of
// goroutines, so each is tried in so many orders before it counts as needed. Cut returns the
// smallest plan that it found, and how many it ran.
func Cut(p Plan, orders int, fails func(Plan) bool) (smallest Plan, runs int) {
	c := cutting{plan: p, orders: orders, fails: fails}
	for again := true; again; {
		again = false
		for i := 0; i < len(c.plan.Faults); {
			less := c.plan
			less.Faults = slices.Delete(slices.Clone(less.Faults), i, i+1)
			if !c.try(less) {
				i++
				continue
			}
			again = true
		}
	}
	for i := 0; i < len(c.plan.Work); {
		less := c.plan
		less.Work = slices.Delete(slices.Clone(less.Work), i, i+1)
		if !c.try(less) {
			i++
		}
	}
	c.shrink(func(p *Plan) *int { return &p.Size.Requests })
	c.shrink(func(p *Plan) *int { return &p.Size.Clients })
	c.shrink(func(p *Plan) *int { return &p.Size.Nodes })
	return c.plan, c.runs
}

type cutting struct {
	plan   Plan // the smallest that failed
	orders int
	fails  func(Plan) bool
	runs   int
}

// try takes a plan if it fails in one of several orders, first in that of the last.
func (c *cutting) try(p Plan) bool {
	for i := range uint64(c.orders) {
		p.Order = c.plan.Order + i
		c.runs++
		if c.fails(p) {
			c.plan = p
			return true
		}
	}
	return false
}

// shrink halves a size as long as the plan fails, and then takes one less.
func (c *cutting) shrink(size func(*Plan) *int) {
	for _, less := range []func(int) int{func(n int) int { return n / 2 }, func(n int) int { return n - 1 }} {
		for {
			p := c.plan
			n := size(&p)
			if *n = less(*n); *n < 1 || !c.try(p) {
				break
			}
		}
	}
}
