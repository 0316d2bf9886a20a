package graph_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/deploy/expression"
	"github.com/drover-project/drover/internal/deploy/graph"
	"github.com/drover-project/drover/internal/fault"
)

func read(t *testing.T, file, text string) (*graph.Graph, error) {
	t.Helper()
	language, err := expression.NewLanguage()
	if err != nil {
		t.Fatal(err)
	}
	return graph.Read(language, file, []byte(text))
}

func must(t *testing.T, file, text string) *graph.Graph {
	t.Helper()
	g, err := read(t, file, text)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// outline lists tasks with where they come from and their fields.
func outline(g *graph.Graph) string {
	var out []string
	for _, t := range g.Tasks {
		line := t.ID + "@" + t.File
		for _, f := range t.Fields {
			if f.Name != "id" && f.Name != "type" {
				line += fmt.Sprintf(" %s=%v", f.Name, f.Constant)
			}
		}
		out = append(out, line)
	}
	return strings.Join(out, "; ")
}

func TestLaterGraphsOverrideAndExtend(t *testing.T) {
	base := must(t, "base", `
name: base
node_filter: $.pending_addition
on_success: {node_attributes: {status: provisioned}}
tasks:
- {id: a, type: stage}
- {id: b, type: shell, condition: {yaql_exp: $.x}}
- {id: c, type: stage}
`)
	plugin := must(t, "plugin", "tasks: [{id: b, type: stage}, {id: d, type: shell, parameters: {cmd: {yaql_exp: $.y}, cwd: {yaql_exp: $.z}}}]\n"+
		"on_error: {node_attributes: {status: error}}")
	g := base.Merge(plugin)
	if got, want := outline(g), "a@base; b@plugin; c@base; d@plugin parameters=<nil>"; got != want {
		t.Errorf("the graph is %s, want %s", got, want)
	}
	if g.Expressions != 2 || g.NodeFilter != "$.pending_addition" || len(g.Outcomes) != 2 {
		t.Errorf("%d expressions, filter %q, outcomes %v", g.Expressions, g.NodeFilter, g.Outcomes)
	}
	if len(base.Tasks) != 3 || base.Expressions != 1 {
		t.Error("merging changed what it began with")
	}
}

// TestFieldsHaveTheFormOfStoredTasks checks what becomes of names and empty values.
func TestFieldsHaveTheFormOfStoredTasks(t *testing.T) {
	g := must(t, "f", `
- {id: a, type: shell, role: ['*'], requires: [], condition: , parameters: }
- {id: b, type: shell, role: web, cross-depends: [{name: a}], groups: '*'}
- {id: c, type: shell, role: [web, db], condition: false}
`)
	want := "a@f roles=*; b@f roles=web cross_depends=[0x] groups=[*]; c@f roles=[web db] condition=false"
	got := outline(g)
	if i := strings.Index(got, "[0x"); i > 0 { // a map
		got = got[:i] + "[0x]" + got[i+strings.Index(got[i:], "]")+1:]
	}
	if got != want {
		t.Errorf("the tasks are %s, want %s", got, want)
	}
	if e := must(t, "f", ""); len(e.Tasks) != 0 {
		t.Errorf("an empty file has %d tasks", len(e.Tasks))
	}
}

// TestStarsThatMeanNoNodeAreToldOf looks at stars that the reference takes for the name of a role that nobody has.
func TestStarsThatMeanNoNodeAreToldOf(t *testing.T) {
	for field, want := range map[string]string{
		"groups: '*'":    "f:1:31: task a: a star in groups means no node; for all nodes write role: '*'",
		"tags: ['*']":    "f:1:29: task a: a star in a list of tags means no node; for all nodes write role: '*'",
		"role: [db,'*']": "f:1:29: task a: a star in a list of roles means no node; for all nodes write role: '*'",
		"cross-depends: [{name: b, role: ['*']}]": "f:1:38: task a: a star in a list of cross_depends means no node; for all nodes write role: '*'",
		"cross-depends: [{name: b, role: '*'}]":   "",
		"role: ['*']":                             "",
		"tags: '*'":                               "",
	} {
		var got []string
		for _, w := range must(t, "f", "[{id: a, type: shell, "+field+"}]").Warnings {
			got = append(got, w.String())
		}
		if text := strings.Join(got, "; "); text != want {
			t.Errorf("%s: %q, want %q", field, text, want)
		}
	}
}

// TestConstantsOfOtherLanguagesAreToldOf: the reference's own documents compare with False, which is a text.
func TestConstantsOfOtherLanguagesAreToldOf(t *testing.T) {
	g := must(t, "f", "- id: a\n  type: shell\n  condition: {yaql_exp: 'new($.x) = False'}\n  parameters: {cmd: False, list: [{yaql_exp: '$.None'}]}")
	if len(g.Warnings) != 1 || g.Warnings[0].String() != "f:3:37: False is a string here; the constant is false" {
		t.Errorf("the warnings are %v", g.Warnings)
	}
}

// TestSpansAreNumbersOrTexts: as the agents take them.
func TestSpansAreNumbersOrTexts(t *testing.T) {
	for _, span := range []string{"10", "'10'", "0.5", "10m", "1h30m", "500ms", "1.5h", "~", "{yaql_exp: $.x}"} {
		must(t, "f", "[{id: a, type: shell, parameters: {cmd: x, timeout: "+span+", interval: "+span+"}}]")
	}
}

func TestRefusals(t *testing.T) {
	many, inOneLine := strings.Builder{}, strings.Builder{}
	for i := range 100_000 {
		fmt.Fprintf(&many, "- id: t%d\n  type: stage\n  requires:\n  - x\n", i)
	}
	for range 60_000 {
		inOneLine.WriteString("{},")
	}
	for text, want := range map[string]string{
		"[1]":                                  "f:1:2: field [0]: got number, want object",
		"{a: 1}":                               "f:1:1: additional properties 'a' not allowed",
		"tasks: 7":                             "f:1:8: field tasks: got number, want array",
		"yes":                                  "f:1:1: a graph is a list of tasks",
		"- {id: a, type: shall}":               "task a: field type: value must be one of",
		"- {id: a, type: shell, version: '2'}": "task a: field version: '2' does not match pattern",
		"- {id: a, type: shell, requires: b}":  "task a: field requires: got string, want",
		"- {id: a, type: shell, cross-depends: [{role: b}]}":                "task a: field cross-depends[0]: missing property 'name'",
		"- {id: a, type: shell, cross-depends: [{name: b, policy: some}]}":  "field cross-depends[0].policy: value must be one of 'all', 'any'",
		"- {id: a, type: shell, parameters: {strategy: {type: slowly}}}":    "field parameters.strategy.type: value must be one of 'parallel', 'one_by_one'",
		"- {id: a, type: shell, parameters: {timeout: soon}}":               "field parameters.timeout: ",
		"- {id: a, type: shell, parameters: {interval: -1m}}":               "field parameters.interval: ",
		"- {id: a, type: shell, parameters: {retries: 10m}}":                "field parameters.retries: ",
		"- {id: a, type: shell, role: b, roles: c}":                         "the field is there twice, under two names",
		"- {id: a, type: shell, condition: {yaql_exp: 7}}":                  "yaql_exp must be the text of an expression",
		"- {id: a, type: shell, condition: {yaql_exp: $, yaql_exp_arg: 7}}": "expressions take no yaql_exp_arg",
		"tasks: []\non_success: {node_attributes: {colour: red}}":           "additional properties 'colour' not allowed",
		many.String(): "f: the graph has 100000 tasks; 50000 are the limit",
		"tasks:\n  " + strings.ReplaceAll(many.String(), "\n", "\n  "): "f: the graph has 100000 tasks; 50000 are the limit",
		"[" + inOneLine.String() + "]":                                 "the graph has 60000 tasks; 50000 are the limit",
	} {
		_, err := read(t, "f", text)
		if err == nil || !strings.Contains(err.Error(), want) || fault.CodeOf(err) == fault.Internal {
			t.Errorf("%.60q: %v, want %q", text, err, want)
		}
	}
}

func TestCirclesAreNamed(t *testing.T) {
	for text, want := range map[string]string{
		"- {id: a, type: stage, requires: [a]}": "in a circle: a waits for a",
		"- {id: z, type: stage, requires: [a]}\n- {id: a, type: stage, requires: [b]}\n- {id: b, type: stage, required_for: [c], requires: [c]}\n" +
			"- {id: c, type: stage}": "in a circle: b waits for c waits for b; 2 more wait for these, or in further circles",
		"- {id: a, type: stage, requires: [b, c]}\n- {id: b, type: stage, requires: [c]}\n- {id: c, type: stage, required_for: [gone]}": "",
	} {
		err := graph.Circles(must(t, "f", text))
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}
