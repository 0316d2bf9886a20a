package plan_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/deploy/document"
	"github.com/drover-project/drover/internal/deploy/plan"
)

// TestPlaceholders fills placeholders as Python's str.format does; what it cannot fill leaves the whole text as it is.
func TestPlaceholders(t *testing.T) {
	settings, _, err := document.Parse("settings", []byte("{port: 8000, names: [one, {deep: two}], text: grün, map: {a: x}}"))
	if err != nil {
		t.Fatal(err)
	}
	env := strings.Replace(small, "common: {", "common: {openstack_version: newton-10.0, ", 1)
	for text, want := range map[string]string{
		"{CLUSTER_ID}":                            "5",
		"v{OPENSTACK_VERSION[0]}":                 "vn",
		"{OPENSTACK_VERSION[7]}{SETTINGS.port:d}": "18000",
		"{SETTINGS.names[0]}":                     "one",
		"{SETTINGS.names[01]}":                    "{SETTINGS.names[01]}", // a map as a whole
		"{SETTINGS.names[1][deep]:>5}":            "  two",
		"{SETTINGS.text[2]}":                      "ü",
		"{SETTINGS.text[4]}":                      "{SETTINGS.text[4]}",
		"{SETTINGS.text.0}":                       "{SETTINGS.text.0}",
		"{SETTINGS.names[-1]}":                    "{SETTINGS.names[-1]}",
		"{SETTINGS.names[9]} {CLUSTER_ID}":        "{SETTINGS.names[9]} {CLUSTER_ID}",
		"{SETTINGS.names[99999999999999999999]}":  "{SETTINGS.names[99999999999999999999]}",
		"{SETTINGS.map[a]}{SETTINGS.map.a}":       "xx",
		"{CLUSTER_ID[0]}":                         "{CLUSTER_ID[0]}",
		"{{{CLUSTER_ID}}}":                        "{5}",
	} {
		p, err := buildText(t, fmt.Sprintf("- {id: a, type: shell, role: compute, parameters: {cmd: %q}}", text), env, func(in *plan.Input) {
			in.Settings = settings.Value()
		})
		if err != nil {
			t.Fatal(err)
		}
		if got := canonical(p.Steps[0].Parameters); got != canonical(map[string]any{"cmd": want, "cwd": "/"}) {
			t.Errorf("%s became %s, want %s", text, got, want)
		}
	}
}

// TestANodesOwnValuesFillItsTexts has a node whose own data lies over what placeholders stand for.
func TestANodesOwnValuesFillItsTexts(t *testing.T) {
	env := strings.Replace(small, `"2": {uid: "2"`, `"2": {cluster: {id: 99}, uid: "2"`, 1)
	p, err := buildText(t, "- {id: a, type: shell, role: '*', parameters: {cmd: 'id {CLUSTER_ID}'}}", env, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"id 5", "id 99", "id 5"} {
		if got := canonical(p.Steps[i].Parameters); got != canonical(map[string]any{"cmd": want, "cwd": "/"}) {
			t.Errorf("node %d has %s, want %s", i+1, got, want)
		}
	}
}

// TestPatternsOfNames fit the beginning of a name; they are Python's as they stand, with flags at their beginning, too.
func TestPatternsOfNames(t *testing.T) {
	nodes := []plan.Node{{UID: "1", Tags: []string{"compute"}}, {UID: "2", Tags: []string{"primary-controller"}}, {UID: "3", Tags: []string{"my-compute"}}}
	for name, want := range map[string]string{
		"/(?i)COMP/": "[1]", "/comp|primary/": "[1 2]", "/compute$/": "[1]", "/.*compute/": "[1 3]", "/(?!comp)/": "[2 3]", "/e|compute/": "[1]", "//": "[1 2 3]", "/": "[1 2 3]",
	} {
		if got, err := plan.Resolve(t.Context(), nodes, name, false); err != nil || fmt.Sprint(got) != want {
			t.Errorf("%s fits the roles of %v (%v), want %s", name, got, err, want)
		}
	}
	if _, err := plan.Resolve(t.Context(), nodes, "/*/", false); err == nil || !strings.Contains(err.Error(), "nothing to repeat at position 0") {
		t.Errorf("a pattern that is none: %v", err)
	}
}

func TestSpacesAroundAShareMeanNothing(t *testing.T) {
	for text, want := range map[string]int{" 10% ": 2, "10 %": 2, " -20%\n": 16, " 7 ": 7, "-3 ": 17, "%": 21, "x": 21} {
		if got, _ := plan.Tolerance(text, 20); got != want {
			t.Errorf("of 20 nodes %q lets %d fail, want %d", text, got, want)
		}
	}
}

// TestWhatIsNoRelationIsRefused has computed values that stand for no relations, roles or tasks of a group; they were once taken
// for none at all.
func TestWhatIsNoRelationIsRefused(t *testing.T) {
	for value, want := range map[string]string{
		"requires: {yaql_exp: '5'}":                                 "the relations are 5, which is no list",
		"requires: {yaql_exp: b}":                                   "the relations are b, which is no list",
		"requires: {yaql_exp: '[b, 5]'}":                            "the name of a task is 5, which is no text",
		"required_for: {yaql_exp: '[[b]]'}":                         `the name of a task is ["b"], which is no text`,
		"cross-depends: {yaql_exp: 'true'}":                         "the relations are true, which is no list",
		"cross-depends: {yaql_exp: '{name => b}'}":                  `the relations are {"name":"b"}, which is no list`,
		"cross-depends: {yaql_exp: '[b]'}":                          "a relation is b, which is no map",
		"cross-depends: {yaql_exp: '[{name => {a => 1}}]'}":         `the name of a relation is {"a":1}, which is no text`,
		"cross-depends: {yaql_exp: '[{name => b, role => [1]}]'}":   "a role is 1, which is no text",
		"tags: {yaql_exp: '[compute, null]'}":                       "a role is null, which is no text",
		"type: group, tasks: {yaql_exp: b}":                         "the tasks are b, which is no list",
		"type: group, tasks: [b, h]":                                "Task h cannot be resolved",
		"cross-depends: {yaql_exp: '[null, {}, 0, {name => b}]'}":   "",
		"requires: {yaql_exp: '[]'}, required_for: {yaql_exp: '0'}": "",
	} {
		if !strings.Contains(value, "type: ") {
			value += ", type: shell"
		}
		if !strings.Contains(value, "tags: ") {
			value += ", tags: compute"
		}
		_, err := buildText(t, "- {id: a, "+value+"}\n- {id: b, type: shell}\n- {id: h, type: group, role: '*'}", small, nil)
		if err == nil && want != "" || err != nil && (want == "" || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", value, err, want)
		}
	}
}

// TestAStageThatWaitsForItself is a circle as any other.
func TestAStageThatWaitsForItself(t *testing.T) {
	p, err := buildText(t, "- {id: start, type: stage}\n- {id: end, type: stage, cross-depends: [{name: '/start|end/', role: null}]}", small, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Order(); err == nil || !strings.Contains(err.Error(), "null/end waits for null/end") {
		t.Errorf("the order: %v", err)
	}
}

// TestAnyAndAllOfOneRole has one task wait for all nodes of a role and another one for any of them, in both orders.
func TestAnyAndAllOfOneRole(t *testing.T) {
	tasks := []string{
		"- {id: all, type: shell, role: compute, cross-depends: [{name: c, role: '/.*controller/', policy: all}]}\n",
		"- {id: any, type: shell, role: compute, cross-depends: [{name: c, role: '/.*controller/', policy: any}]}\n",
	}
	const c = "- {id: c, type: shell, role: '/.*controller/'}\n"
	for _, text := range []string{c + tasks[0] + tasks[1], tasks[1] + tasks[0] + c} {
		p, err := buildText(t, text, small, nil)
		if err != nil {
			t.Fatal(err)
		}
		for task, want := range map[string]string{"all": "1/c 2/c", "any": "1/c"} {
			i, _ := p.Find(task, "3")
			var names []string
			p.Walker().Edges(i, false, func(other int32) { names = append(names, p.Name(other)) })
			if got := strings.Join(names, " "); got != want {
				t.Errorf("with\n%s%s waits for %s, want %s", text, task, got, want)
			}
		}
	}
}
