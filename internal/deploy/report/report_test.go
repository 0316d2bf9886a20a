package report_test

import (
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/deploy/environment"
	"github.com/drover-project/drover/internal/deploy/expression"
	"github.com/drover-project/drover/internal/deploy/graph"
	"github.com/drover-project/drover/internal/deploy/plan"
	"github.com/drover-project/drover/internal/deploy/report"
	"github.com/drover-project/drover/internal/deploy/state"
)

// small is a plan of three tasks on two nodes, of which one was deployed before, and its order.
func small(t *testing.T) (*plan.Plan, []int32) {
	t.Helper()
	l, err := expression.NewLanguage()
	if err != nil {
		t.Fatal(err)
	}
	g, err := graph.Read(l, "tasks.yaml", []byte(`
- {id: a, type: shell, version: 2.1.0, role: '*', condition: {yaql_exp: changed($.port)}, parameters: {cmd: {yaql_exp: '"open \"" + str($.port)'}}}
- {id: b, type: shell, version: 2.1.0, role: [x], requires: [a], condition: {yaql_exp: $.debug}}
- {id: c, type: shell, version: 2.1.0, role: [x], cross-depends: [{name: a, role: '*'}], reexecute_on: [upgrade], condition: {yaql_exp: 'false'}}
`))
	if err != nil {
		t.Fatal(err)
	}
	space := state.NewSpace()
	read := func(text string) *environment.Environment {
		e, err := environment.Read(space, "env.yaml", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	env := read("common: {port: 81, debug: false}\nnodes: {\"1\": {roles: [x]}, \"2\": {roles: [y]}}")
	old := read("common: {port: 80}\nnodes: {\"1\": {roles: [x]}}")
	p, err := plan.Build(t.Context(), l, plan.Input{Tasks: g.Tasks, Space: space, Common: env.Common, Parts: env.Parts, Nodes: env.Nodes,
		Events: []string{"upgrade"}, OldCommon: old.Common, Old: func(_, uid string) (*state.Part, *state.Part, bool) {
			return old.Common, old.Parts[uid], old.Parts[uid] != nil
		}})
	if err != nil {
		t.Fatal(err)
	}
	order, err := p.Order()
	if err != nil {
		t.Fatal(err)
	}
	return p, order
}

// TestFormsOfPlans looks for what each form has to tell of the same plan.
func TestFormsOfPlans(t *testing.T) {
	p, order := small(t)
	for _, c := range []struct {
		name  string
		write func(b *strings.Builder) error
		tells []string
	}{
		{"tree", func(b *strings.Builder) error { return report.Tree(b, p, order, nil) }, []string{
			"3 of 4 tasks run, on 2 nodes\nnode 1\n├─ a (shell): $.port: 80 -> 81\n└─ c (shell): event upgrade\n",
			"node 2\n└─ a (shell): $.port was never there"}},
		{"json", func(b *strings.Builder) error { return report.JSON(b, p) }, []string{
			`"1": {"run": ["a","c"], "skipped": ["b"]}`, `"1/b -> 1/a"`, `"1/c -> 2/a"`, `"parameters": {"cmd":"open \"81","cwd":"/"}`,
			`{"function": "changed", "expression": "$.port", "changed": true, "new": 81, "old": 80`, `{"reason": "event", "event": "upgrade"}`}},
		{"yaml", func(b *strings.Builder) error { return report.YAML(b, p) }, []string{"- 1/b -> 1/a\n", "cmd: open \"81\n"}},
		{"dot", func(b *strings.Builder) error { return report.DOT(b, p) }, []string{"digraph plan {", `label="node 1"`, "style=dashed"}},
		{"mermaid", func(b *strings.Builder) error { return report.Mermaid(b, p) }, []string{"node 1", "-->"}},
		{"explanation", func(b *strings.Builder) error {
			step, _ := p.Find("a", "1")
			return report.Explain(b, p, step, nil)
		}, []string{"1/a runs: condition\nwritten in tasks.yaml:2:3\n", "changed($.port): changed\n  old the value: 80\n  new the value: 81\n"}},
		{"another one", func(b *strings.Builder) error {
			step, _ := p.Find("c", "1")
			return report.Explain(b, p, step, nil)
		}, []string{"1/c runs: event\n", "requires 1/a\nrequires 2/a\n"}},
	} {
		var texts [2]strings.Builder
		for i := range texts {
			if err := c.write(&texts[i]); err != nil {
				t.Fatal(err)
			}
		}
		text := texts[0].String()
		for _, want := range c.tells {
			if !strings.Contains(text, want) {
				t.Errorf("%s lacks %s:\n%s", c.name, want, text)
			}
		}
		if text != texts[1].String() {
			t.Errorf("%s is not the same the second time", c.name)
		}
	}
}
