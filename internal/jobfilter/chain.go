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
}

type shadow struct {
	compiled

	behind int
}

type compiled struct {
	rule  *Rule
	tests []test
}

// Decision is what the rules say of a job. Rule is the one that decided, nil
// if none applies; it belongs to the chain and must not be changed.
type Decision struct{ Rule *Rule }

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
	return d.Rule.Action.String() + " by " + d.Rule.Describe()
}

// Compile puts the rules in order and prepares them. It refuses rules that no
// parser made (an unknown predicate or action).
func Compile(rules []Rule) (*Chain, error) {
	sorted := make([]*Rule, len(rules))
	for i := range rules {
		r := rules[i]
		r.description = ""
		r.description = r.Describe()
		sorted[i] = &r
	}
	slices.SortStableFunc(sorted, Compare)
	c := &Chain{}
	for _, r := range sorted {
		compiled, err := compileRule(r)
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

func compileRule(r *Rule) (compiled, error) {
	if !known(r.Action.Kind) {
		return compiled{}, fault.New(fault.Invalid, "filter rule %s has the unknown action %q", r.UUID, r.Action.Kind)
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
		c.tests = append(c.tests, p.compile(r.Watermark))
	}
	return c, nil
}

func (c *compiled) holds(id int64, ops []*opcode.Opcode) bool {
	for _, t := range c.tests {
		if !t(id, ops) {
			return false
		}
	}
	return true
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
	for i := range c.deciding {
		if r := &c.deciding[i]; r.holds(id, ops) {
			return Decision{Rule: r.rule}
		}
	}
	return Decision{}
}

// Without returns what the rules would say if one of them were gone.
func (c *Chain) Without(uuid string, id int64, ops []*opcode.Opcode) Decision {
	for i := range c.deciding {
		if r := &c.deciding[i]; r.rule.UUID != uuid && r.holds(id, ops) {
			return Decision{Rule: r.rule}
		}
	}
	return Decision{}
}

// Shadows returns the shadow rules that would decide about a job if they, each
// by itself, were in force: those that hold and are asked before the rule that
// decides. It is nil where there are none.
func (c *Chain) Shadows(id int64, ops []*opcode.Opcode) []*Rule {
	var out []*Rule
	for i := range c.shadows {
		s := &c.shadows[i]
		if s.holds(id, ops) && !slices.ContainsFunc(c.deciding[:s.behind], func(r compiled) bool { return r.holds(id, ops) }) {
			out = append(out, s.rule)
		}
	}
	return out
}
