package jobfilter

import (
	"fmt"
	"strings"

	"github.com/drover-project/drover/internal/opcode"
	"github.com/drover-project/drover/internal/qlang"
)

// Outcome is what came of a rule for one job.
type Outcome string

// The outcomes.
const (
	// Decides: the rule applies, and its action is what happens to the job.
	Decides Outcome = "decides"
	// DoesNotApply: one of its predicates does not hold.
	DoesNotApply Outcome = "does not apply"
	// Continues: its predicates hold, but its action is CONTINUE.
	Continues Outcome = "continues"
	// Watches: its predicates hold, but it is a shadow, which only counts.
	Watches Outcome = "watches"
	// NotReached: a rule before it decided.
	NotReached Outcome = "not reached"
)

// Verdict is the result of one rule for one job.
type Verdict struct {
	Rule    *Rule   `json:"rule"`
	Outcome Outcome `json:"outcome"`
	// Would is what the outcome of a rule that was not reached would be if no
	// rule before it had decided; empty for the others.
	Would Outcome `json:"would,omitempty"`
	// Findings are the predicates that settled the outcome, or what it would be:
	// all of them if they hold, the first that does not otherwise.
	Findings []Finding `json:"findings"`
	// Because says in one line how the outcome came about.
	Because string `json:"because"`
}

// String tells the verdict in one line.
func (v Verdict) String() string {
	return fmt.Sprintf("%s %s: %s", v.Rule.Describe(), v.Outcome, v.Because)
}

// Finding tells why one predicate of a rule holds for a job, or does not.
type Finding struct {
	// Predicate is its index in the rule.
	Predicate int `json:"predicate"`
	// Text is the predicate as people read it.
	Text  string `json:"text"`
	Holds bool   `json:"holds"`
	// Candidates counts what the predicate looked at: the opcodes, the entries
	// of the reason trails.
	Candidates int `json:"candidates"`
	// Evidence is the candidate that satisfies the expression, or if none does
	// the first few with the parts that they fail.
	Evidence []Evidence `json:"evidence"`
	// none says why there is no evidence.
	none string
}

// Evidence is what one candidate made of the expression.
type Evidence struct {
	// Where says it in words: "job", "opcode 1", "opcode 1, reason entry 0".
	// Opcode and Entry are the same as indexes, -1 if there is none.
	Where  string `json:"where"`
	Opcode int    `json:"opcode"`
	Entry  int    `json:"entry"`
	// Place is the part of the rule that decided, for example
	// "predicates[0][1][2]", and Expression that part as text.
	Place      string `json:"place"`
	Expression string `json:"expression"`
	// Result is "true", "false" or "unknown": what the part is about does not
	// exist there, or has a type for which the question makes no sense.
	Result string `json:"result"`
	// Values are the fields in that part.
	Values []FieldValue `json:"values"`
}

// FieldValue is the actual value of a field.
type FieldValue struct {
	Field string `json:"field"`
	Value any    `json:"value"`
	// Absent is set if there is no such field.
	Absent bool `json:"absent,omitempty"`
}

// maxEvidence bounds the evidence of a predicate that nothing satisfies.
const maxEvidence = 5

// Explain tells what every rule, in order, makes of a job. It agrees with
// Decide: the rule whose outcome is Decides, if any, is the one decided on.
func (c *Chain) Explain(id int64, ops []*opcode.Opcode) []Verdict {
	out := make([]Verdict, 0, len(c.rules))
	var decided *Rule
	deciding, others := c.newMeter(), c.newMeter() // so that the ones cost the same as in Decide
	for i := range c.rules {
		r, m := c.rules[i].rule, &others
		if r.Deciding() {
			m = &deciding
		}
		v := c.rules[i].explain(subject{id, ops}, m)
		switch {
		case decided != nil:
			v.Would, v.Outcome = v.Outcome, NotReached
			v.Because = fmt.Sprintf("%s has decided; else this rule %s: %s", decided.Describe(), would[v.Would], v.Because)
		case v.Outcome == Decides:
			decided = r
		}
		out = append(out, v)
	}
	return out
}

// would words the outcome of a rule that was not reached.
var would = map[Outcome]string{
	Decides: "would decide", DoesNotApply: "would not apply", Continues: "would continue", Watches: "would only watch",
}

// explain tells what the rule makes of a job if it can be asked, and what is
// taken for granted if it cannot.
func (c *compiled) explain(j subject, m *meter) Verdict {
	applies, unasked := c.applies(j.id, j.ops, m)
	switch {
	case !unasked:
		return c.rule.explain(j)
	case applies:
		return c.rule.held([]Finding{}, unsearched)
	}
	return Verdict{Rule: c.rule, Outcome: DoesNotApply, Findings: []Finding{},
		Because: tooLong + ", so the rule was not asked and is taken not to apply"}
}

func (r *Rule) explain(j subject) Verdict {
	var findings []Finding
	var because []string
	for i := range r.Predicates {
		p := &r.Predicates[i]
		f := p.explain(r.Watermark, fmt.Sprintf("predicates[%d]", i), j)
		f.Predicate, f.Text = i, p.String()
		if !f.Holds {
			return Verdict{Rule: r, Outcome: DoesNotApply, Findings: []Finding{f}, Because: f.String()}
		}
		findings = append(findings, f)
		because = append(because, f.String())
	}
	if len(r.Predicates) == 0 {
		because = []string{"it has no predicates and so concerns every job"}
	}
	return r.held(findings, strings.Join(because, "; "))
}

// held is the verdict of a rule whose predicates hold.
func (r *Rule) held(findings []Finding, because string) Verdict {
	if r.Action.Kind == Continue {
		return Verdict{Rule: r, Outcome: Continues, Findings: findings,
			Because: "its action is CONTINUE, though " + because}
	}
	if r.Shadow {
		return Verdict{Rule: r, Outcome: Watches, Findings: findings,
			Because: "it is a shadow, which decides nothing, though " + because}
	}
	return Verdict{Rule: r, Outcome: Decides, Findings: findings, Because: because}
}

// String tells the finding in one line.
func (f Finding) String() string {
	holds := "does not hold"
	if f.Holds {
		holds = "holds"
	}
	head := fmt.Sprintf("predicate %d %s (%s): ", f.Predicate, holds, f.Text)
	if len(f.Evidence) == 0 {
		return head + f.none
	}
	const inLine = 2
	var parts []string
	for _, e := range f.Evidence[:min(inLine, len(f.Evidence))] {
		parts = append(parts, e.String())
	}
	if more := f.Candidates - inLine; more > 0 && len(f.Evidence) > 1 {
		parts = append(parts, fmt.Sprintf("and %d more that do not satisfy it", more))
	}
	return head + strings.Join(parts, "; ")
}

// String tells the evidence in one line.
func (e Evidence) String() string {
	s := e.Where + ": " + e.Expression + " is " + e.Result
	if len(e.Values) == 0 {
		return s
	}
	values := make([]string, len(e.Values))
	for i, v := range e.Values {
		values[i] = v.String()
	}
	return s + " (" + strings.Join(values, ", ") + ")"
}

// String tells the value: `OP_ID is "OP_TEST_DELAY"`.
func (v FieldValue) String() string {
	if v.Absent {
		return v.Field + " does not exist"
	}
	return v.Field + " is " + show(v.Value)
}

func (w where) String() string {
	switch {
	case w.opcode < 0:
		return "job"
	case w.entry < 0:
		return fmt.Sprintf("opcode %d", w.opcode)
	}
	return fmt.Sprintf("opcode %d, reason entry %d", w.opcode, w.entry)
}

// explain evaluates an expression for each candidate until one satisfies it.
func (s scope[T]) explain(n qlang.Node, watermark int64, at string, j subject) Finding {
	f := Finding{none: s.none}
	for place, c := range s.candidates(j) {
		f.Candidates++
		t := s.trace(n, at, c, watermark)
		if t.result == yes {
			f.Holds = true
			f.Evidence = []Evidence{t.evidence(place)}
		} else if len(f.Evidence) < maxEvidence {
			f.Evidence = append(f.Evidence, t.evidence(place))
		}
		if f.Holds {
			break
		}
	}
	return f
}

// trace is the result of an expression together with the part that decided it
// and the values in that part.
type trace struct {
	result truth
	node   qlang.Node
	at     string
	values []FieldValue
}

func (t trace) evidence(w where) Evidence {
	return Evidence{
		Where: w.String(), Opcode: w.opcode, Entry: w.entry,
		Place: t.at, Expression: qlang.String(t.node), Result: t.result.String(), Values: t.values,
	}
}

// trace evaluates n, of which at is the place, for a candidate.
func (s scope[T]) trace(n qlang.Node, at string, c T, watermark int64) trace {
	switch x := n.(type) {
	case *qlang.All:
		return trace{result: yes, node: n, at: at}
	case *qlang.Not:
		t := s.trace(x.Arg, at+"[1]", c, watermark)
		return trace{result: t.result.negated(), node: n, at: at, values: t.values}
	case *qlang.And:
		return s.traceMany(n, x.Args, yes, at, c, watermark)
	case *qlang.Or:
		return s.traceMany(n, x.Args, no, at, c, watermark)
	}
	return s.traceLeaf(n, at, c, watermark)
}

// traceMany evaluates the arguments of an And, whose neutral result is yes, or
// an Or, whose neutral result is no. One argument that differs decides; if
// none does, all of them together did.
func (s scope[T]) traceMany(n qlang.Node, args []qlang.Node, neutral truth, at string, c T, watermark int64) trace {
	out := trace{result: neutral, node: n, at: at}
	var decider *trace
	var t trace
	for i, arg := range args {
		t = s.trace(arg, fmt.Sprintf("%s[%d]", at, i+1), c, watermark)
		if t.result == neutral.negated() {
			return t
		}
		if t.result == unknown && decider == nil {
			first := t
			decider = &first
		}
		out.values = addValues(out.values, t.values)
	}
	if decider != nil {
		return *decider
	}
	if len(args) == 1 {
		return t
	}
	return out
}

// addValues appends the values of fields that are not there yet.
func addValues(to, more []FieldValue) []FieldValue {
next:
	for _, v := range more {
		for _, have := range to {
			if have.Field == v.Field {
				continue next
			}
		}
		to = append(to, v)
	}
	return to
}

func (s scope[T]) traceLeaf(n qlang.Node, at string, c T, watermark int64) trace {
	name, _ := qlang.Field(n)
	result := ask(n, s.reading(watermark, nil))(s.field(name)(c))
	get := s.field(name)
	if s.shown != nil {
		get = s.shown(name)
	}
	v := get(c)
	values := []FieldValue{{Field: name, Value: v.plain(), Absent: v.kind == absent}}
	if s.constants && usesWatermark(n) {
		values = append(values, FieldValue{Field: "watermark", Value: watermark})
	}
	return trace{result: result, node: n, at: at, values: values}
}

func usesWatermark(n qlang.Node) bool {
	switch x := n.(type) {
	case *qlang.Compare:
		return !x.Value.IsInt() && x.Value.Text == "watermark"
	case *qlang.Contains:
		return !x.Value.IsInt() && x.Value.Text == "watermark"
	}
	return false
}
