package jobfilter

import (
	"slices"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/opcode"
)

// Chain is a set of rules, compiled and in order. It is immutable and may be
// used by several goroutines at once.
type Chain struct {
	rules []compiled
	// deciding are the rules that can decide: all but shadows and those that
	// CONTINUE.
	deciding []compiled
	// shadows are the shadows that would decide if they were in force, each with
	// how many of the deciding ones are asked before it.
	shadows []shadow
	strikes strikes
}

type shadow struct {
	compiled

	behind int
}

type compiled struct {
	rule  *Rule
	tests []costed
}

// costed is a test, and what it costs to ask it.
type costed struct {
	test test
	cost cost
}

// Decision is what the rules say of a job. Rule is the one that decided, nil
// if none applies; it belongs to the chain and must not be changed.
type Decision struct {
	Rule *Rule
	// Unsearched is set if searching the job's texts for the patterns of the rule
	// takes too long; it is then taken to apply: see MaxSteps.
	Unsearched bool
}

// Action is what happens to the job; without a rule it is accepted.
func (d Decision) Action() Action {
	if d.Rule == nil {
		return Action{Kind: Accept}
	}
	return d.Rule.Action
}

// String tells the decision to a person.
func (d Decision) String() string {
	if d.Rule == nil {
		return "no filter rule applies"
	}
	if d.Unsearched {
		return d.Rule.Action.String() + " by " + d.Rule.Describe() + ": " + unsearched
	}
	return d.Rule.Action.String() + " by " + d.Rule.Describe()
}

// Compile puts the rules in order and prepares them. It refuses rules that no
// parser made (an unknown predicate or action).
func Compile(rules []Rule) (*Chain, error) { return (&Chain{}).With(rules) }

// With is Compile for rules most of which are in the chain already: what was
// prepared of them is used again.
func (c *Chain) With(rules []Rule) (*Chain, error) {
	prepared := make(map[string]*compiled, len(c.rules))
	for i := range c.rules {
		prepared[c.rules[i].rule.UUID] = &c.rules[i]
	}
	return assemble(rules, prepared)
}

func assemble(rules []Rule, prepared map[string]*compiled) (*Chain, error) {
	sorted := make([]*Rule, len(rules))
	for i := range rules {
		r := rules[i]
		r.description, r.paused = "", ""
		r.description, r.paused = r.Describe(), r.Paused()
		sorted[i] = &r
	}
	slices.SortStableFunc(sorted, Compare)
	c := &Chain{strikes: strikes{of: map[string]int{}}}
	for _, r := range sorted {
		compiled, err := compileRule(r, prepared[r.UUID], &c.strikes)
		if err != nil {
			return nil, err
		}
		c.rules = append(c.rules, compiled)
		switch {
		case r.Deciding():
			c.deciding = append(c.deciding, compiled)
		case r.Action.Kind != Continue:
			c.shadows = append(c.shadows, shadow{compiled, len(c.deciding)})
		}
	}
	return c, nil
}

// compileRule prepares a rule, with the tests of what it was before if they are
// those of the same predicates. Tests that are searched for with patience have it of
// their chain.
func compileRule(r *Rule, before *compiled, patience *strikes) (compiled, error) {
	if !known(r.Action.Kind) {
		return compiled{}, fault.New(fault.Invalid, "filter rule %s has the unknown action %q", r.UUID, r.Action.Kind)
	}
	if before != nil && before.rule.Watermark == r.Watermark && same(before.rule.Predicates, r.Predicates) && !before.backtracks() {
		return compiled{rule: r, tests: before.tests}, nil
	}
	cheapFirst := make([]*Predicate, len(r.Predicates))
	for i := range r.Predicates {
		cheapFirst[i] = &r.Predicates[i]
		if !cheapFirst[i].valid() {
			return compiled{}, fault.New(fault.Invalid, "filter rule %s has the unknown predicate %q", r.UUID, r.Predicates[i].Name)
		}
	}
	slices.SortStableFunc(cheapFirst, func(a, b *Predicate) int { return a.kind().cost - b.kind().cost })
	c := compiled{rule: r}
	for _, p := range cheapFirst {
		c.tests = append(c.tests, costed{p.compile(r.Watermark, patience), costOf(p)})
	}
	return c, nil
}

// backtracks reports whether a test has patterns that need backtracking.
func (c *compiled) backtracks() bool {
	return slices.ContainsFunc(c.tests, func(t costed) bool { return t.cost.backtracks })
}

// same reports whether two lists are one and the same, which nobody changes.
func same(a, b []Predicate) bool { return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0]) }

// holds asks the tests of the rule in turn. If one costs more than is left, or takes too
// long, the rule is not asked further.
func (c *compiled) holds(id int64, ops []*opcode.Opcode, m *meter) (holds, unsearched bool) {
	for i := range c.tests {
		t := &c.tests[i]
		if t.cost.steps > 0 && !m.take(t.cost, ops) {
			return false, true
		}
		var holds, unsearched bool
		if t.cost.backtracks {
			holds, unsearched = m.chain.strikes.ask(t.test, id, ops)
		} else {
			holds = t.test(id, ops)
		}
		if !holds || unsearched {
			return false, unsearched
		}
	}
	return true, false
}

// applies is holds, with what comes of a rule that cannot be asked: one that
// keeps jobs from running applies, one that lets them run does not. A job of
// such size gets no further by it, and keeps no other from anything.
func (c *compiled) applies(id int64, ops []*opcode.Opcode, m *meter) (applies, unsearched bool) {
	holds, unsearched := c.holds(id, ops, m)
	return holds || unsearched && c.rule.Action.Kind != Accept && c.rule.Action.Kind != Continue, unsearched
}

// Rules returns the rules in the order in which they are asked.
func (c *Chain) Rules() []*Rule {
	out := make([]*Rule, len(c.rules))
	for i := range c.rules {
		out[i] = c.rules[i].rule
	}
	return out
}

// Decide asks the rules about a job with this id and these opcodes.
func (c *Chain) Decide(id int64, ops []*opcode.Opcode) Decision {
	m := c.newMeter()
	for i := range c.deciding {
		if applies, unsearched := c.deciding[i].applies(id, ops, &m); applies {
			return Decision{Rule: c.deciding[i].rule, Unsearched: unsearched}
		}
	}
	return Decision{}
}

// Without returns what the rules would say if one of them were gone.
func (c *Chain) Without(uuid string, id int64, ops []*opcode.Opcode) Decision {
	m := c.newMeter()
	for i := range c.deciding {
		r := &c.deciding[i]
		if r.rule.UUID == uuid {
			continue
		}
		if applies, unsearched := r.applies(id, ops, &m); applies {
			return Decision{Rule: r.rule, Unsearched: unsearched}
		}
	}
	return Decision{}
}

// Shadows returns the shadow rules that would decide about a job if they, each
// by itself, were in force: those that hold and are asked before the rule that
// decides. It is nil where there are none.
func (c *Chain) Shadows(id int64, ops []*opcode.Opcode) []*Rule {
	if len(c.shadows) == 0 {
		return nil
	}
	decider := c.place(id, ops)
	m := c.newMeter()
	var out []*Rule
	for i := range c.shadows {
		s := &c.shadows[i]
		if applies, _ := s.applies(id, ops, &m); s.behind <= decider && applies {
			out = append(out, s.rule)
		}
	}
	return out
}

// place returns which of the deciding rules decides, or how many there are.
func (c *Chain) place(id int64, ops []*opcode.Opcode) int {
	m := c.newMeter()
	for i := range c.deciding {
		if applies, _ := c.deciding[i].applies(id, ops, &m); applies {
			return i
		}
	}
	return len(c.deciding)
}
