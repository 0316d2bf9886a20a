package jobfilter

import (
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/opcode"
	"github.com/drover-project/drover/internal/qlang"
	"github.com/drover-project/drover/internal/reason"
)

// The limits of rules. A decision is made while every other job waits for it.
const (
	// MaxRules is how many rules there may be.
	MaxRules = 1000
	// MaxSteps bounds what searching the texts of one job may cost in one decision:
	// the sum, over the patterns that are asked, of the sizes of their programs
	// times the lengths of the texts; a step takes some ten nanoseconds at worst.
	// A rule that would go beyond is not asked: it is taken to apply if it keeps
	// jobs from running, and not to apply if it lets them run.
	MaxSteps = 8_000_000
	// MaxPatterns bounds the sizes of all patterns of all rules together, in steps
	// for each byte, so that a job with at most MaxSteps/MaxPatterns bytes of text
	// is always searched.
	MaxPatterns = 8_000
)

// unsearched says why a rule applies that was not asked.
const unsearched = tooLong + ", so the rule was not asked and is taken to apply"

const tooLong = "searching the texts of the job for the patterns of the rules takes too long"

// CheckSize refuses more rules, or larger patterns, than can be asked in time.
func CheckSize(rules []Rule) error {
	if len(rules) > MaxRules {
		return fault.New(fault.TooLarge, "there may be at most %d filter rules", MaxRules).
			WithHint("remove rules that are no longer needed, or say in one rule with \"|\" what several say")
	}
	total := 0
	for i := range rules {
		for k := range rules[i].Predicates {
			total += costOf(&rules[i].Predicates[k]).steps
		}
	}
	if total > MaxPatterns {
		return fault.New(fault.TooLarge, "the regular expressions of all filter rules together have %d steps; the limit is %d, where {1000} counts a thousand times and each that needs backtracking %d times",
			total, MaxPatterns, qlang.BacktrackingSteps).At("predicates").WithHint("compare with == instead, or repeat less")
	}
	return nil
}

// cost is what it takes to ask a predicate, in steps for each byte of what its
// patterns are searched for in.
type cost struct {
	steps              int // of all its patterns
	ids, texts, trails int // of those on OP_ID, on other fields of opcodes, on reason trails
	backtracks         bool
}

func costOf(p *Predicate) cost {
	if p.Of != nil {
		return costOf(p.Of)
	}
	var c cost
	qlang.Walk(p.Expr, func(_ string, n qlang.Node) bool {
		m, ok := n.(*qlang.Match)
		if !ok {
			return true
		}
		steps := m.Regex.Steps()
		c.backtracks = c.backtracks || !m.Regex.Linear()
		c.steps += steps
		switch {
		case p.Name == "reason":
			c.trails += steps
		case p.Name == "opcode" && m.Field == "OP_ID":
			c.ids += steps
		case p.Name == "opcode":
			c.texts += steps
		}
		return true
	})
	return c
}

// meter counts the steps of one decision.
type meter struct {
	chain  *Chain
	left   int
	known  bool
	ids    int
	trails int
	// texts is -1 until it is needed.
	texts int
}

func (c *Chain) newMeter() meter { return meter{chain: c, left: MaxSteps, texts: -1} }

// take pays for a predicate, unless there is not enough left.
func (m *meter) take(c cost, ops []*opcode.Opcode) bool {
	if !m.known {
		m.known = true
		for _, op := range ops {
			m.ids += len(op.ID)
			m.trails += trailSize(op.Reason)
		}
	}
	price := c.ids*m.ids + c.trails*m.trails
	if c.texts > 0 {
		if m.texts < 0 {
			m.texts = textSize(ops)
		}
		price += c.texts * m.texts
	}
	if price > m.left {
		return false
	}
	m.left -= price
	return true
}

func trailSize(t reason.Trail) int {
	n := 0
	for i := range t {
		n += len(t[i].Source) + len(t[i].Reason)
	}
	return n
}

// textSize is the length of all that patterns on fields of opcodes can search.
func textSize(ops []*opcode.Opcode) int {
	n := 0
	for _, op := range ops {
		n += len(op.ID)
		if op.Comment != nil {
			n += len(*op.Comment)
		}
		for _, v := range op.Params {
			n += sizeOf(v)
		}
	}
	return n
}

func sizeOf(v any) int {
	const number = 20
	n := number
	switch x := v.(type) {
	case string:
		n = len(x)
	case []any:
		for _, item := range x {
			n += sizeOf(item)
		}
	case map[string]any:
		for _, item := range x {
			n += sizeOf(item)
		}
	}
	return n
}
