package graph_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/deploy/expression"
	"github.com/drover-project/drover/internal/deploy/graph"
)

// linted are the findings in a graph, without the name of its file.
func linted(t *testing.T, text string, roles ...string) []string {
	t.Helper()
	language, err := expression.NewLanguage()
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, f := range graph.Lint(language, []graph.Source{{File: "g", Text: []byte(text)}}, roles) {
		out = append(out, fmt.Sprintf("%s %s: %s", strings.TrimPrefix(f.Position.String(), "g:"), f.Rule, f.Message))
	}
	return out
}

// task is a task with further fields, in one line.
func task(fields string) string {
	return "- {id: t, type: shell, version: 2.1.0, role: [web], parameters: {cmd: x}, " + fields + "}"
}

// TestRulesOfLint has each rule find what it is about, where it stands, and nothing else.
func TestRulesOfLint(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range []struct {
		text string
		want []string
	}{
		{task("requires: []"), nil},
		{"- a\n b: c: d", []string{"2 yaml: bad YAML: mapping values are not allowed in this context"}},
		{"tasks: 3", []string{"1:8 form: field tasks: got number, want array"}},
		{"- {id: a, type: stage, requires: 3}\n- {id: b, requires: 4}", []string{"1:34 form: task a: field requires: got number, want object", "2:3 form: task b: missing property 'type'", "2:21 form: task b: field requires: got number, want object"}},
		{task("condition: {yaql_exp: '$.x +'}"), []string{"1:103 expression: task t: field condition: YaqlGrammarException: Parse error: unexpected end of statement (expected a value)"}},
		{task("role: [web]"), []string{"1:75 repeated-key: the key \"role\" is there twice, first in line 1; the last one counts"}},
		{task("roles: [web]"), []string{"1:75 twice: the field is there twice, under two names"}},
		{"- {id: a, type: stage}\n- {id: a, type: stage}", []string{"2:3 twice: Tasks duplication found: a, first at g:1:3"}},
		{"- {id: a, type: stage, requires: [b]}\n- {id: b, type: stage, requires: [a]}", []string{"1:3 circle: the tasks wait for one another in a circle: a waits for b waits for a (remove one of the relations)"}},
		{task("condition: {yaql_exp: 'chnged($.x) or changed($.x).foo(bar()) or old($.x).isUndef()'}"), []string{
			`1:98 unknown-function: Unknown function "chnged" (did you mean changed?)`, `1:126 unknown-method: Unknown method "foo"`, `1:130 unknown-function: Unknown function "bar"`}},
		{task("condition: {yaql_exp: 'changed()'}"), []string{`1:98 arguments: No function "changed" matches supplied arguments (there is changed(expr: expression of $))`}},
		{task(`condition: "settings:a =="`), []string{"1:86 condition: task t: the condition cannot be read: Syntax error at ''; conditions are made of model:path, texts, numbers, true, false, null, and, or, not, in, == and !="}},
		{task(`condition: "settings:a.b and $.x"`), []string{"1:86 condition: task t: the condition cannot be read: Syntax error at ''; conditions are made of model:path, texts, numbers, true, false, null, and, or, not, in, == and !=", "1:86 dollar: task t: the condition holds a $, and is of the old language; an expression is {yaql_exp: ...}"}},
		{"- {id: t, type: upload_file, version: 2.1.0, role: [web], parameters: {path: /x}}", []string{"1:71 missing-parameter: task t: a task of type upload_file needs the parameter data"}},
		{"- {id: t, type: puppet, version: 2.1.0, role: [web]}", []string{"1:3 missing-parameter: task t: a task of type puppet needs the parameter puppet_manifest"}},
		{"- {id: t, type: puppet, version: 2.1.0, role: [web], parameters: {yaql_exp: $.p}}", nil},
		{"- {id: t, type: sync, version: 2.1.0, role: [web], parameters: {src: {yaql_exp: $.p}, dst: /x}}", nil},
		{task("colour: red"), []string{"1:75 unknown-field: the field \"colour\" of a task means nothing"}},
		{task("stage: deploy"), []string{`1:75 no-effect: the field "stage" has no effect: tasks of plugins' stages are not put into place; name what the task requires`}},
		{task("check: 'test -e /x', condition: {yaql_exp: changed($.x)}"), nil},
		{task("check: {yaql_exp: '$.x'}, condition: {yaql_exp: changed($.x)}"), nil},
		{task("check: {cmd: 'test -e \"$1\"', args: [{yaql_exp: $.x}], env: {A: 1}, cwd: /tmp, timeout: 3s}, condition: {yaql_exp: changed($.x)}"), nil},
		{task("check: {cmd: x, colour: red, timeout: soon}, condition: {yaql_exp: changed($.x)}"), []string{"1:82 form: task t: field check: additional properties 'colour' not allowed", "1:113 form: task t: field check.timeout: 'soon' does not match pattern '^\\\\d+(\\\\.\\\\d+)?$'"}},
		{task("check: 'true'"), []string{"1:82 no-effect: task t: the check has no effect: without a condition the task runs always, and only of tasks that do not run it is asked what differs"}},
		{task("check: 'true', condition: false"), []string{"1:82 no-effect: task t: the check has no effect: the condition compares nothing with the state before, and only of tasks that run again when something changes it is asked what differs"}},
		{"- {id: t, type: stage, check: 'true'}", []string{"1:31 no-effect: task t: the check has no effect: what is of type stage does nothing on a machine"}},
		{"- {id: t, type: shell, version: 2.1.0, role: [web, '*'], parameters: {cmd: x}}", []string{"1:46 star: task t: a star in a list of roles means no node; for all nodes write role: '*'"}},
		{task("requires: [u]"), []string{"1:85 unknown-task: task t: requires names the task \"u\", which the graph lacks"}},
		{"- {id: t, type: shell, version: 2.1.0, role: [wbe], parameters: {cmd: x}}", []string{"1:46 unknown-role: task t: roles names the role \"wbe\", which no node and no group has"}},
		{task("condition: {yaql_exp: '$.a = False or $.b = ''None'''}"), []string{"1:104 constant: False is a string here; the constant is false", "1:119 constant: 'None' is a string; the constant is null"}},
		{"- {id: t, type: shell, version: 2.1.0, role: [web], parameters: {cmd: {yaql-expr: $.x}, env: [{YAQL_EX: 1}]}}", []string{"1:72 yaql-exp: the key \"yaql-expr\" is almost yaql_exp", "1:96 yaql-exp: the key \"YAQL_EX\" is almost yaql_exp"}},
		{"- {id: t, type: shell, version: 2.1.0, parameters: {cmd: x}}", []string{"1:3 nobody: task t: no node runs it, for it names no role, tag or group"}},
	} {
		got := linted(t, c.text, "web")
		if !slices.Equal(got, c.want) {
			t.Errorf("%s\n%s\nwant\n%s", c.text, strings.Join(got, "\n"), strings.Join(c.want, "\n"))
		}
		refused := false
		for _, text := range got {
			_, rule, _ := strings.Cut(strings.SplitN(text, ": ", 2)[0], " ")
			seen[rule] = true
			refused = refused || slices.Contains([]string{"yaml", "form", "expression", "twice"}, rule)
		}
		if _, err := read(t, "g", c.text); (err != nil) != refused {
			t.Errorf("%s: it is found that the graph is refused: %t; and it is read with %v", c.text, refused, err)
		}
	}
	for _, r := range graph.Rules {
		if !seen[r.Name] {
			t.Errorf("nothing shows the rule %s", r.Name)
		}
	}
}

// TestLintGoesOn: files that are wrong keep nothing from being found in others, and each thing is told once, in the order of files.
func TestLintGoesOn(t *testing.T) {
	language, err := expression.NewLanguage()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range graph.Lint(language, []graph.Source{
		{File: "z", Text: []byte("- {id: a, type: stage, requires: [b, nowhere]}\n- {id: b, type: stage, colour: red}")},
		{File: "bad", Text: []byte("{")},
		{File: "a", Text: []byte("- {id: b, type: stage, requires: [a]}")},
	}, nil) {
		got = append(got, f.Position.String()+" "+f.Rule)
	}
	if want := []string{"z:1:3 circle", "z:1:34 unknown-task", "z:2:24 unknown-field", "bad:1 yaml", "a:1:34 unknown-task"}; !slices.Equal(got, want[:4]) && !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
