package report

import (
	"bufio"
	"bytes"
	"io"
	"slices"

	"github.com/drover-project/drover/internal/deploy/expression"
	"github.com/drover-project/drover/internal/deploy/plan"
	"github.com/drover-project/drover/internal/deploy/secret"
)

// Explain writes for people all that a plan knows of one step: whether it runs, every comparison of its condition with
// both values, its parameters, and what it waits for; without what is to be hidden.
func Explain(w io.Writer, p *plan.Plan, step int32, hide *secret.Veil) error {
	out := page{bufio.NewWriter(w)}
	t := &teller{hide: hide}
	s := &p.Steps[step]
	verdict := "does not run"
	if s.Run {
		verdict = "runs"
	}
	out.printf("%s %s: %s\n", p.Name(step), verdict, s.Why.Kind)
	out.printf("written in %s\n", s.Task.Position)
	if s.Why.Kind == plan.ByCondition {
		out.printf("condition: %s\n  is %s\n", t.text(s.Why.Condition), t.value(s.Why.Condition, "", s.Why.Value))
	}
	for _, d := range s.Why.Decisions {
		out.decision(t, d)
	}
	if s.Run {
		out.printf("%s", Parameters(hide.Value(nil, s.Parameters)))
	}
	walker := p.Walker()
	for _, direction := range []struct {
		name     string
		required bool
	}{{"requires", false}, {"is required for", true}} {
		var names []string
		walker.Edges(step, direction.required, func(other int32) { names = append(names, p.Name(other)) })
		slices.Sort(names)
		for _, name := range names {
			out.printf("%s %s\n", direction.name, name)
		}
	}
	return out.Flush()
}

// ExplainJSON writes for programs what Explain tells, and hides nothing.
func ExplainJSON(w io.Writer, p *plan.Plan, step int32) error {
	j := &writer{w: bufio.NewWriter(w), plan: p}
	t := &piece{writer: j, walker: p.Walker(), reasons: map[*expression.Decision][]byte{}}
	t.step(step)
	task := bytes.TrimSuffix(bytes.TrimPrefix(t.text, []byte(",\n")), []byte("}"))
	_, _ = j.w.Write(task)
	for _, direction := range []struct {
		name     string
		required bool
	}{{"requires", false}, {"required_for", true}} {
		var names []string
		t.walker.Edges(step, direction.required, func(other int32) { names = append(names, p.Name(other)) })
		j.raw(", ")
		j.value(direction.name)
		j.raw(": ")
		j.texts(names)
	}
	j.raw("}\n")
	return j.w.Flush()
}

// ExplainYAML writes what ExplainJSON does as YAML.
func ExplainYAML(w io.Writer, p *plan.Plan, step int32) error {
	return asYAML(w, func(b io.Writer) error { return ExplainJSON(b, p, step) })
}

// decision writes one comparison.
func (p page) decision(t *teller, d *expression.Decision) {
	p.printf("%s(%s): ", d.Function, t.text(d.Expression))
	switch {
	case !d.Changed:
		p.printf("as it was\n")
		return
	case expression.IsUndefined(d.Old):
		p.printf("never there before\n  new %s\n", t.value(d.Expression, "", d.New))
		return
	}
	p.printf("changed\n")
	found, more := plan.Differences(d.Old, d.New)
	for _, x := range found {
		path := x.Path
		if path == "" {
			path = "the value"
		}
		if !x.Came {
			p.printf("  old %s: %s\n", path, t.value(d.Expression, x.Path, x.Old))
		}
		if !x.Gone {
			p.printf("  new %s: %s\n", path, t.value(d.Expression, x.Path, x.New))
		}
	}
	if more {
		p.printf("  and more\n")
	}
}
