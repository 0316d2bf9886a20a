package report

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/drover-project/drover/internal/deploy/dump"
	"github.com/drover-project/drover/internal/deploy/expression"
	"github.com/drover-project/drover/internal/deploy/plan"
	"github.com/drover-project/drover/internal/deploy/secret"
	"github.com/drover-project/drover/yaql/yaqljson"
)

// page is what is written; its first error comes to light when it is flushed.
type page struct{ *bufio.Writer }

func (p page) printf(format string, args ...any) {
	_, _ = fmt.Fprintf(p.Writer, format, args...) // the writer keeps the error
}

// Tree writes a plan for people: for each node the tasks that run, in the order in which they may, with the reason, without
// what is to be hidden.
func Tree(w io.Writer, p *plan.Plan, order []int32, hide *secret.Veil) error {
	out := page{bufio.NewWriterSize(w, 1<<16)}
	byNode := make([][]int32, len(p.Nodes))
	nodes, runs := 0, 0
	for _, s := range order {
		step := &p.Steps[s]
		if !step.Run {
			continue
		}
		if byNode[step.Node] == nil {
			nodes++
		}
		runs++
		byNode[step.Node] = append(byNode[step.Node], s)
	}
	where := "nodes"
	if nodes == 1 {
		where = "node"
	}
	out.printf("%d of %d tasks run, on %d %s\n", runs, len(p.Steps), nodes, where)
	why := Why(p, hide)
	for n, steps := range byNode {
		if len(steps) == 0 {
			continue
		}
		out.printf("node %s\n", p.Nodes[n])
		for i, s := range steps {
			mark := "├─"
			if i == len(steps)-1 {
				mark = "└─"
			}
			step := &p.Steps[s]
			out.printf("%s %s (%s): %s\n", mark, step.ID(), step.Type, why(s))
		}
	}
	for _, warning := range p.Warnings {
		out.printf("warning: %s\n", hide.Text(warning))
	}
	return out.Flush()
}

// teller says why tasks run, without what is to be hidden.
type teller struct {
	hide  *secret.Veil
	known map[*expression.Decision]string
}

func (t *teller) sentence(s *plan.Step) string {
	switch s.Why.Kind {
	case plan.ByCondition:
	case plan.ByEvent, plan.ByRefresh:
		return s.Why.Kind + " " + s.Why.Event
	case plan.ByDrift:
		return "differs on the machine: " + t.hide.Text(s.Why.Event)
	default:
		return s.Why.Kind
	}
	var parts []string
	for _, d := range s.Why.Decided(s.Run) {
		text, done := t.known[d]
		if !done {
			text = t.describe(d)
			t.known[d] = text
		}
		parts = append(parts, text)
	}
	if len(parts) == 0 {
		return t.text(s.Why.Condition) + " is " + t.value(s.Why.Condition, "", s.Why.Value)
	}
	return strings.Join(parts, "; ")
}

// Why returns what says in one line why a step of a plan runs or does not, without what is to be hidden.
func Why(p *plan.Plan, hide *secret.Veil) func(step int32) string {
	t := &teller{hide, map[*expression.Decision]string{}}
	return func(step int32) string { return t.sentence(&p.Steps[step]) }
}

// text and value are a text, and a value that an expression has at a path, as a line shows them. What is secret is hidden
// first: the beginning of a secret is one.
func (t *teller) text(s string) string { return short(t.hide.Text(s)) }

func (t *teller) value(expression, path string, v any) string {
	return short(plan.Canonical(t.hide.Found(expression, path, v)))
}

// describe says what a comparison found.
func (t *teller) describe(d *expression.Decision) string {
	what := t.text(d.Expression)
	switch {
	case !d.Changed:
		return what + " is as it was"
	case expression.IsUndefined(d.Old):
		return what + " was never there"
	}
	found, more := plan.Differences(d.Old, d.New)
	parts := make([]string, 0, len(found)+1)
	for _, x := range found[:min(len(found), 3)] {
		switch {
		case x.Came:
			parts = append(parts, what+x.Path+" came: "+t.value(d.Expression, x.Path, x.New))
		case x.Gone:
			parts = append(parts, what+x.Path+" went: "+t.value(d.Expression, x.Path, x.Old))
		default:
			parts = append(parts, what+x.Path+": "+t.value(d.Expression, x.Path, x.Old)+" -> "+t.value(d.Expression, x.Path, x.New))
		}
	}
	if more || len(found) > 3 {
		parts = append(parts, "and more")
	}
	return strings.Join(parts, ", ")
}

// shortest is how much of a text a line shows.
const shortest = 60

func short(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if r := []rune(s); len(r) > shortest {
		return string(r[:shortest-1]) + "…"
	}
	return s
}

// YAML writes what JSON does as YAML.
func YAML(w io.Writer, p *plan.Plan) error {
	return asYAML(w, func(b io.Writer) error { return JSON(b, p) })
}

// asYAML writes JSON as YAML.
func asYAML(w io.Writer, write func(io.Writer) error) error {
	b := &strings.Builder{}
	if err := write(b); err != nil {
		return err
	}
	v, err := yaqljson.Decode([]byte(b.String()))
	if err != nil {
		return err
	}
	text, err := dump.YAML(v)
	if err != nil {
		return err
	}
	_, err = io.WriteString(w, text)
	return err
}

// DOT writes the steps and their relations for Graphviz. Steps that do not run are grey.
func DOT(w io.Writer, p *plan.Plan) error {
	out := page{bufio.NewWriterSize(w, 1<<16)}
	out.printf("digraph plan {\n  rankdir=LR;\n  node [shape=box];\n")
	for n, uid := range p.Nodes {
		steps := stepsOf(p, int32(n))
		if len(steps) == 0 {
			continue
		}
		out.printf("  subgraph \"cluster_%d\" {\n    label=%q;\n", n, "node "+uid)
		for _, s := range steps {
			style := ""
			if !p.Steps[s].Run {
				style = ", style=dashed, color=grey"
			}
			out.printf("    s%d [label=%q%s];\n", s, p.Steps[s].ID(), style)
		}
		out.printf("  }\n")
	}
	arrows(p, func(from, to int32) { out.printf("  s%d -> s%d;\n", from, to) })
	out.printf("}\n")
	return out.Flush()
}

// Mermaid writes the steps and their relations for Mermaid.
func Mermaid(w io.Writer, p *plan.Plan) error {
	out := page{bufio.NewWriterSize(w, 1<<16)}
	out.printf("flowchart LR\n")
	for n, uid := range p.Nodes {
		steps := stepsOf(p, int32(n))
		if len(steps) == 0 {
			continue
		}
		out.printf("  subgraph n%d[\"node %s\"]\n", n, uid)
		for _, s := range steps {
			class := ""
			if !p.Steps[s].Run {
				class = ":::skipped"
			}
			out.printf("    s%d[\"%s\"]%s\n", s, strings.ReplaceAll(p.Steps[s].ID(), `"`, "#quot;"), class)
		}
		out.printf("  end\n")
	}
	arrows(p, func(from, to int32) { out.printf("  s%d --> s%d\n", from, to) })
	out.printf("  classDef skipped stroke-dasharray: 3 3,color:#888\n")
	return out.Flush()
}

func stepsOf(p *plan.Plan, node int32) []int32 {
	var out []int32
	for i := range p.Steps {
		if p.Steps[i].Node == node {
			out = append(out, int32(i))
		}
	}
	return out
}

// arrows calls f once for each pair of steps of which the second waits for the first, in their order.
func arrows(p *plan.Plan, f func(from, to int32)) {
	type arrow struct{ from, to int32 }
	var all []arrow
	walker := p.Walker()
	for i := range p.Steps {
		s := int32(i)
		walker.Edges(s, false, func(other int32) { all = append(all, arrow{other, s}) })
		walker.Edges(s, true, func(other int32) { all = append(all, arrow{s, other}) })
	}
	slices.SortFunc(all, func(a, b arrow) int {
		if a.from != b.from {
			return int(a.from - b.from)
		}
		return int(a.to - b.to)
	})
	for _, a := range slices.Compact(all) {
		f(a.from, a.to)
	}
}
