package plan_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/deploy/document"
	"github.com/drover-project/drover/internal/deploy/graph"
	"github.com/drover-project/drover/internal/deploy/plan"
	"github.com/drover-project/drover/internal/deploy/state"
	"github.com/drover-project/drover/internal/testkit/fuel"
)

// small is an environment of a primary controller, a controller and a compute node.
const small = `
common: {kind: shell, where: [compute], tolerate: "50%", wanted: [deep, deploy], debug: true, cluster: {id: 5, status: operational}}
nodes:
  "1": {uid: "1", roles: [primary-controller]}
  "2": {uid: "2", roles: [controller]}
  "3": {uid: "3", roles: [compute]}
`

func buildText(t *testing.T, tasks, env string, change func(*plan.Input)) (*plan.Plan, error) {
	t.Helper()
	language := newLanguage(t)
	g, err := graph.Read(language, "tasks.yaml", []byte(tasks))
	if err != nil {
		t.Fatal(err)
	}
	n, _, err := document.Parse("env.yaml", []byte(env))
	if err != nil {
		t.Fatal(err)
	}
	in := plan.Input{Tasks: g.Tasks, Space: state.NewSpace()}
	in.Common, in.Parts = parts(in.Space, document.Sorted(n.Value()))
	in.Nodes = resolvable(in.Parts)
	if change != nil {
		change(&in)
	}
	return plan.Build(t.Context(), language, in)
}

// outline lists the steps of a plan: node, task, type, and what it requires.
func outline(p *plan.Plan) string {
	var lines []string
	walker := p.Walker()
	for i := range p.Steps {
		line := p.Name(int32(i)) + " " + p.Steps[i].Type
		walker.Edges(int32(i), false, func(other int32) { line += " " + p.Name(other) })
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

// TestEveryFieldButTheIDIsComputable evaluates fields that are about a task as a whole, where no node is known yet,
// and all others on each node.
func TestEveryFieldButTheIDIsComputable(t *testing.T) {
	p, err := buildText(t, `
- id: a
  type: {yaql_exp: $.kind}
  version: {yaql_exp: '"2.1." + str($.cluster.id)'}
  roles: {yaql_exp: $.where}
  requires: {yaql_exp: '[b]'}
  cross-depends:
  - {name: {yaql_exp: '"c"'}, role: {yaql_exp: '[controller, "primary-controller"]'}, policy: {yaql_exp: any}}
  fail_on_error: {yaql_exp: not $.debug}
  parameters: {yaql_exp: '{cmd => "on " + $.uid, env => {id => $.cluster.id}}'}
- id: b
  type: shell
  tags: {yaql_exp: $.where}
  condition: {yaql_exp: $.debug}
  parameters: {list: [{yaql_exp: 1 + 1}, x], deep: {er: {yaql_exp: $.uid}}}
- id: c
  type: shell
  groups: {yaql_exp: '[controller, "primary-controller"]'}
- id: g
  type: {yaql_exp: '"group"'}
  roles: {yaql_exp: '["/.*controller/"]'}
  tasks: {yaql_exp: '["b"]'}
  fault_tolerance: {yaql_exp: $.tolerate}
`, small, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := "1/c shell\n1/b shell\n2/c shell\n2/b shell\n3/a shell 3/b 1/c\n3/b shell"
	if got := outline(p); got != want {
		t.Errorf("the plan is\n%s\nwant\n%s", got, want)
	}
	a, _ := p.Find("a", "3")
	if s := p.Steps[a]; canonical(s.Parameters) != `{"cmd":"on 3","cwd":"/","env":{"id":5}}` || s.FailOnError != false {
		t.Errorf("a has %s, fail_on_error %v", canonical(s.Parameters), s.FailOnError)
	}
	b, _ := p.Find("b", "3")
	if s := p.Steps[b]; canonical(s.Parameters) != `{"cwd":"/","deep":{"er":"3"},"list":[2,"x"]}` {
		t.Errorf("b has %s", canonical(s.Parameters))
	}
	if fmt.Sprint(p.Groups) != "[{g [1 2] 1}]" {
		t.Errorf("the groups are %v", p.Groups)
	}
}

// TestErrorsNameTaskNodeFieldAndPlace looks at what is said of errors that come to light while a plan is made.
func TestErrorsNameTaskNodeFieldAndPlace(t *testing.T) {
	for name, c := range map[string]struct{ tasks, want string }{
		"an expression": {"- id: a\n  type: shell\n  roles: [compute]\n  parameters:\n    cmd: {yaql_exp: $.debug + $.nothing}\n",
			"task a, node 3, field parameters: tasks.yaml:5:"},
		"a field of a whole task": {"- {id: a, type: {yaql_exp: $.nothing}}", "task a, field type: tasks.yaml:1:29: KeyError"},
		"a condition of old":      {"- {id: a, type: shell, roles: '*', condition: 'and x'}", "tasks.yaml:1:47: task a, node 1, field condition: Syntax error at 'and'"},
		"a relation":              {"- {id: a, type: shell, roles: '*', cross-depends: {yaql_exp: '[{role => x}]'}}", "field cross_depends: "},
		"a group":                 {"- {id: a, type: group, roles: '*', tasks: [b]}", "Task b cannot be resolved"},
		"a type that is a number": {"- {id: a, type: {yaql_exp: 1 + 1}}", "the type is 2, which is no name"},
		"parameters":              {"- {id: a, type: shell, roles: '*', parameters: {yaql_exp: '[1]'}}", "parameters are [1], which is no map"},
		"a version":               {"- {id: a, type: shell, version: {yaql_exp: x}}", "invalid version number 'x'"},
	} {
		_, err := buildText(t, c.tasks, small, nil)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// TestExamplesOfTheDesign evaluates the example expressions of the design document as conditions.
func TestExamplesOfTheDesign(t *testing.T) {
	const before = `
common:
  cluster: {status: operational}
  nodes:
  - {status: ready, role: compute, roles: [compute], label: testing, attribute: r1, pending_addition: false}
  - {status: ready, role: controller, roles: [controller], label: "", attribute: "", pending_addition: false}
  configs: {nova: {parameter: {value: true}}}
  settings: {additional_components: {murano: {value: true}}}
nodes:
  "1": {uid: "1", roles: [compute]}
`
	added := strings.Replace(before, "  configs:", "  - {status: discover, role: controller, roles: [controller], label: testing, attribute: r1, pending_addition: true}\n  configs:", 1)
	set := strings.Replace(before, "parameter: {value: true}", "parameter: {value: false}", 1)
	const seed = "changed($.nodes.where($.status = 'ready' and 'controller' in $.roles)) and " +
		"changed($.nodes.where($.status = 'discover' and 'controller' in $.roles and $.pending_addition = true))"
	for _, c := range []struct {
		expression, state string
		first, then       bool
	}{
		{"$.cluster.status in [operational, new, partially_deployed]", before, true, true},
		{seed, before, true, false},
		{seed, added, true, false}, // no ready controller came or went
		{"changed($.nodes.where($.role = 'compute'))", added, true, false},
		{"changed($.nodes.where($.role = 'controller'))", added, true, true},
		{"changed($.nodes.where($.label = 'testing'))", added, true, true},
		{"changed($.nodes.where($.attribute = 'r1').status)", added, true, true},
		{"changed($.configs.nova)", before, true, false},
		{"changed($.configs.nova)", set, true, true},
		{"new($.configs.nova.parameter.value) = false and old($.configs.nova.parameter.value) = true", set, false, true},
		{"new($.settings.additional_components.murano.value) = true", set, true, true},
		{"changed($.nodes)", before, true, false},
		{"changed($.nodes)", added, true, true},
	} {
		graphText := fmt.Sprintf("- {id: t, type: shell, roles: [compute], condition: {yaql_exp: %q}}", c.expression)
		for _, again := range []bool{false, true} {
			p, err := buildText(t, graphText, c.state, func(in *plan.Input) {
				if !again {
					return
				}
				n, _, err := document.Parse("old", []byte(before))
				if err != nil {
					t.Fatal(err)
				}
				common, nodes := parts(in.Space, document.Sorted(n.Value()))
				in.Old = func(_, uid string) (*state.Part, *state.Part, bool) { return common, nodes[uid], true }
			})
			if err != nil {
				t.Fatal(err)
			}
			want := c.first
			if again {
				want = c.then
			}
			if p.Steps[0].Run != want {
				t.Errorf("%s: runs %v, again %v", c.expression, p.Steps[0].Run, again)
			}
		}
	}
}

// TestAddedControllerRunsWhatItsConditionsAskFor deploys the real graph to three controllers, five compute and three
// storage nodes, and then adds a controller: of the nodes that were there, a task runs if and only if it has no
// condition or one that saw a change.
func TestAddedControllerRunsWhatItsConditionsAskFor(t *testing.T) {
	language := newLanguage(t)
	tasks := libraryGraph(t, language, "deployment")
	space := state.NewSpace()
	before, after := deployed(t, space, 3), deployed(t, space, 4)
	build := func(now, old *cast) *plan.Plan {
		in := plan.Input{Tasks: tasks, Space: space, Common: now.common, Parts: now.parts, Nodes: resolvable(now.parts)}
		if old != nil {
			in.OldCommon = old.common
			in.Old = func(_, uid string) (*state.Part, *state.Part, bool) {
				return old.common, old.parts[uid], old.parts[uid] != nil
			}
		}
		p, err := plan.Build(t.Context(), language, in)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.Order(); err != nil {
			t.Fatal(err)
		}
		return p
	}
	first, unchanged, added := build(before, nil), build(before, before), build(after, before)
	for i := range unchanged.Steps {
		if s := &unchanged.Steps[i]; s.Run && s.Why.Kind != plan.Unconditional && len(s.Why.Decided(true)) > 0 {
			t.Errorf("nothing changed, and %s runs: %+v", unchanged.Name(int32(i)), s.Why)
		}
	}
	fresh, kept := 0, 0
	for i := range added.Steps {
		s := &added.Steps[i]
		uid := added.Nodes[s.Node]
		switch {
		case uid == after.newest && s.Run:
			fresh++
		case s.Run && s.Why.Kind == plan.ByCondition:
			kept++
			if len(s.Why.Decided(true)) == 0 && strings.Contains(s.Why.Condition, "changed") {
				t.Errorf("%s runs although nothing changed: %+v", added.Name(int32(i)), s.Why)
			}
		case !s.Run && s.Why.Kind == plan.ByCondition && strings.HasPrefix(s.Why.Condition, "changed(") &&
			!strings.Contains(s.Why.Condition, " and ") && len(s.Why.Decided(true)) > 0:
			t.Errorf("%s does not run although something changed: %+v", added.Name(int32(i)), s.Why)
		}
	}
	if first.Len() < 300 || unchanged.Len() > 60 || fresh < 50 || kept == 0 || added.Len() >= first.Len()+fresh {
		t.Errorf("%d steps run first, %d unchanged, %d on the new node, %d again elsewhere", first.Len(), unchanged.Len(), fresh, kept)
	}
}

// cast are the nodes of an environment.
type cast struct {
	common *state.Part
	parts  map[string]*state.Part
	newest string
}

// deployed is an environment with so many controllers, five compute and three storage nodes.
func deployed(t *testing.T, space *state.Space, controllers int) *cast {
	t.Helper()
	like := fuel.Cloud(controllers)
	c := &cast{newest: fuel.UID(len(like) - 1)}
	env := fuel.Environment(t, like...)
	c.common, c.parts = parts(space, env)
	return c
}
