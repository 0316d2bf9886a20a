package plan_test

import (
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/deploy/document"
	"github.com/drover-project/drover/internal/deploy/expression"
	"github.com/drover-project/drover/internal/deploy/plan"
	"github.com/drover-project/drover/internal/deploy/state"
	"github.com/drover-project/drover/yaql"
)

// The tests of this file go through what the unit tests of the reference pin down, item by item.

// valueOf reads a value of YAML.
func valueOf(t *testing.T, text string) any {
	t.Helper()
	n, _, err := document.Parse("value", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return document.Sorted(n.Value())
}

// TestChecklistOfFunctions goes through the functions that look at old and new state, and those that write values.
func TestChecklistOfFunctions(t *testing.T) {
	const now = "{n: [{uid: 1, s: ready}, {uid: 2, s: new}], l: [1, 2, 3], d: {a: 1, b: 2}, t: \"x\\ny\\n\", i: 5, same: [7], z: null}"
	const was = "{n: [{uid: 1, s: ready}, {uid: 2, s: error}], l: [1, 4], d: {a: 1, c: 3}, t: \"x\\nz\\n\", i: 4, same: [7], z: null}"
	var long []string
	for range 10_001 {
		long = append(long, "0")
	}
	tooLong := "{big: [" + strings.Join(long, ",") + "], i: 1}"
	language := newLanguage(t)
	for _, c := range []struct{ item, expression, now, was, want string }{
		{"new, on filtered nodes", "new($.n.where($.s = ready).uid)", now, was, "[1]"},
		{"new, of what is not there", "new($.nothing)", now, was, "KeyError"},
		{"old, on filtered nodes", "old($.n.where($.s = error).uid)", now, was, "[2]"},
		{"old, without an old value", "old($.nothing).isUndef()", now, was, "true"},
		{"old, without an old state", "old($)", now, "", "{}"},
		{"added, of a list", "added($.l)", now, was, "[2,3]"},
		{"added, of filtered nodes", "added($.n.where($.s != ready).uid)", now, was, "[]"},
		{"added, of a map", "added($.d)", now, was, `{"b":2}`},
		{"added, of lines", "added($.t)", now, was, `["y"]`},
		{"added, of a number", "added($.i)", now, was, "5"},
		{"added, without an old state", "added($.l)", now, "", "[1,2,3]"},
		{"deleted, of a list", "deleted($.l)", now, was, "[4]"},
		{"deleted, of a map", "deleted($.d)", now, was, `{"c":3}`},
		{"deleted, without an old state", "deleted($.l)", now, "", "null"},
		{"changed, true", "changed($.l)", now, was, "true"},
		{"changed, false", "changed($.same)", now, was, "false"},
		{"changed, without an old state", "changed($.z)", now, "", "true"},
		{"changed, null on both sides", "changed($.get(nothing))", now, "", "false"},
		{"changed, of what fails now", "changed($.nothing)", now, was, "KeyError"},
		{"changed, of an error that comes late", "changed($.n.where($.gone = 1))", "{n: []}", "{n: [{}]}", "KeyError"},
		{"changedAny, true", "changedAny($.same, $.l)", now, was, "true"},
		{"changedAny, false", "changedAny($.same, $.z)", now, was, "false"},
		{"changedAny, of nothing", "changedAny()", now, was, "false"},
		{"changedAny, stops where the answer is known", "changedAny($.l, $.nothing)", now, was, "true"},
		{"changedAll, true", "changedAll($.l, $.d)", now, was, "true"},
		{"changedAll, false", "changedAll($.l, $.same)", now, was, "false"},
		{"changedAll, of nothing", "changedAll()", now, was, "true"},
		{"isUndef, of a value", "old($.i).isUndef()", now, was, "false"},
		{"isUndef, of null", "$.z.isUndef()", now, was, "false"},
		{"toYaml, in block style", "$.d.toYaml()", now, was, `"a: 1\nb: 2\n"`},
		{"toYaml, of lists and texts", "$.toYaml()", "{l: [a, 'yes', '1', '']}", "", `"l:\n- a\n- 'yes'\n- '1'\n- ''\n"`},
		{"toJson", "$.d.toJson()", now, was, `"{\"a\": 1, \"b\": 2}"`},
		{"the limit of items, in added", "added($.big)", tooLong, was, "CollectionTooLargeException"},
		{"the limit of items, in deleted", "deleted($.big)", tooLong, tooLong, "CollectionTooLargeException"},
		{"the limit of items, in changed", "changed($.big)", tooLong, was, "CollectionTooLargeException"},
		{"the limit of items, not on scalars", "changed($.i)", tooLong, was, "true"},
		{"lists are mutable", "$.l = [1, 2, 3]", now, was, "false"},
		{"new within a predicate", "$.n.where($.uid = new($.i) - 3).s", now, was, `["new"]`},
	} {
		space := state.NewSpace()
		e, err := language.Evaluator(space)
		if err != nil {
			t.Fatal(err)
		}
		in := expression.Surroundings{New: space.View(nil, space.NewPart(valueOf(t, c.now))), Old: space.View(nil, nil), Node: space.View(nil, nil), Common: space.View(nil, nil)}
		if c.was != "" {
			in.Old = space.View(nil, space.NewPart(valueOf(t, c.was)))
		}
		x, err := language.Compile(c.expression)
		if err != nil {
			t.Fatal(c.item, err)
		}
		r, err := e.Eval(t.Context(), x, in)
		got := expression.ErrorClass(err)
		if err == nil {
			got = canonical(r.Value)
		}
		if got != c.want {
			t.Errorf("%s: %s is %s, want %s", c.item, c.expression, got, c.want)
		}
	}
}

// TestChecklistOfDiffs goes through the comparison of data.
func TestChecklistOfDiffs(t *testing.T) {
	for _, c := range []struct{ item, before, after, added, deleted string }{
		{"maps", "{a: 1, b: {c: 1}}", "{b: {c: 2}, d: 3}", `{"b":{"c":2},"d":3}`, `{"a":1,"b":{"c":1}}`},
		{"lists", "[1, 2]", "[2, 1]", "[2]", "[2]"},
		{"lists of maps", "[{a: 1}, {b: 2}]", "[{a: 1}, {c: 3}]", `[{"c":3}]`, `[{"b":2}]`},
		{"lines of text", `"a\nb\nc"`, `"a\nc\nd"`, `["d"]`, `["b"]`},
		{"different types", "[1]", "{a: 1}", `{"a":1}`, "[1]"},
		{"equal numbers of different types", "1", "1.0", "null", "null"},
		{"lists of lists", "[[1], [2]]", "[[1], [3]]", "[[3]]", "[[2]]"},
		{"the same", "{a: [1, {b: 2}]}", "{a: [1, {b: 2}]}", "{}", "{}"},
	} {
		before, after := valueOf(t, c.before), valueOf(t, c.after)
		added, deleted := expression.Diff(before, after)
		if got := canonical(added) + " " + canonical(deleted); got != c.added+" "+c.deleted {
			t.Errorf("%s: %s, want %s %s", c.item, got, c.added, c.deleted)
		}
		if c.item == "lists" {
			continue // of two places of an exchange either may be the one that moved
		}
		deleted, added = expression.Diff(after, before)
		if got := canonical(added) + " " + canonical(deleted); got != c.added+" "+c.deleted {
			t.Errorf("%s, the other way round: %s, want %s %s", c.item, got, c.added, c.deleted)
		}
	}
	set := func(items ...any) *yaql.Set {
		s, err := yaql.NewSet(items...)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	added, deleted := expression.Diff(set(int64(1), int64(2)), set(int64(2), int64(3)))
	if got := canonical(added) + canonical(deleted); got != `{"$set":[3]}{"$set":[1]}` {
		t.Errorf("sets: %s", got)
	}
	added, deleted = expression.Diff(yaql.Tuple{int64(1), []any{int64(2)}}, yaql.Tuple{int64(1), []any{int64(3)}})
	if got := canonical(added) + canonical(deleted); got != "[[3]][[2]]" {
		t.Errorf("tuples of lists: %s", got)
	}
}

// TestChecklistOfUnions goes through how a node's own data lies over what is common.
func TestChecklistOfUnions(t *testing.T) {
	for _, c := range []struct{ item, expression, want string }{
		{"the node wins", "$.a", "2"},
		{"maps are merged at any depth", "$.m", `{"deep":{"x":1,"y":2},"k":1}`},
		{"a scalar hides a map", "$.hidden", "5"},
		{"a map hides a scalar", "$.over", `{"z":1}`},
		{"lists are replaced", "$.l", "[3]"},
		{"what is nowhere", "$.nothing", "KeyError"},
		{"keys", "$.keys().toList().orderBy($)", `["a","hidden","l","m","over","roles","uid"]`},
		{"as YAML", "$.m.toYaml()", `"deep:\n  x: 1\n  y: 2\nk: 1\n"`},
		{"as JSON", "$.m.toJson()", `"{\"deep\": {\"x\": 1, \"y\": 2}, \"k\": 1}"`},
		{"the node by itself", "$node.get(m)", `{"deep":{"y":2}}`},
		{"what is common by itself", "$common.a", "1"},
	} {
		const env = "common: {a: 1, m: {k: 1, deep: {x: 1}}, hidden: {q: 1}, over: 1, l: [1, 2]}\n" +
			"nodes: {\"1\": {uid: \"1\", roles: [r], a: 2, m: {deep: {y: 2}}, hidden: 5, over: {z: 1}, l: [3]}}"
		p, err := buildText(t, "- {id: t, type: shell, roles: [r], parameters: {v: {yaql_exp: '"+c.expression+"'}}}", env, nil)
		got := expression.ErrorClass(err)
		if err == nil {
			v, _ := p.Steps[0].Parameters.(yaql.Mapping).Get("v")
			got = canonical(v)
		}
		if got != c.want {
			t.Errorf("%s: %s is %s (%v), want %s", c.item, c.expression, got, err, c.want)
		}
	}
}

// TestChecklistOfTasks goes through how tasks become steps: conditions of both kinds, texts with placeholders, types, and
// where tasks run.
func TestChecklistOfTasks(t *testing.T) {
	const env = `
common: {cluster: {id: 5, mode: ha, status: new}, public_ssl: {hostname: h.example}, master_ip: 10.0.0.1, on: {enabled: true}, off: {enabled: false}}
nodes:
  "1": {uid: "1", roles: [primary-controller, web]}
  "2": {uid: "2", roles: [controller]}
  "3": {uid: "3", roles: []}
`
	for _, c := range []struct{ item, tasks, want string }{
		{"no condition", "- {id: t, type: shell, roles: [web]}", "1/t shell"},
		{"a condition that is a truth value", "- {id: t, type: shell, roles: [web], condition: false}", "1/t skipped"},
		{"a condition on settings", "- {id: t, type: shell, roles: [web], condition: 'settings:on.enabled == true'}", "1/t shell"},
		{"a condition on settings, as they once lay", "- {id: t, type: shell, roles: [web], condition: 'settings:common.off.enabled.value == true'}", "1/t skipped"},
		{"a condition on additional components", "- {id: t, type: shell, roles: [web], condition: 'settings:additional_components.on.value'}", "1/t shell"},
		{"a condition on the cluster", "- {id: t, type: shell, roles: [web], condition: \"cluster:mode != 'ha' or not settings:off.enabled\"}", "1/t shell"},
		{"a condition that is computed", "- {id: t, type: shell, roles: [web], condition: {yaql_exp: '$.cluster.status = old'}}", "1/t skipped"},
		{"a condition of old that is computed", "- {id: t, type: shell, roles: [web], condition: {yaql_exp: '\"settings:off.enabled\"'}}", "1/t skipped"},
		{"relations of skipped tasks stay", "- {id: a, type: shell, roles: [web]}\n- {id: t, type: shell, roles: [web], condition: false, requires: {yaql_exp: '[a]'}}", "1/a shell\n1/t skipped 1/a"},
		{"stages are on the virtual node", "- {id: s, type: stage}\n- {id: t, type: shell, roles: [web], requires: [s]}", "1/t shell null/s\nnull/s skipped"},
		{"groups run their tasks", "- {id: g, type: group, roles: [controller], tasks: [t]}\n- {id: t, type: shell}", "2/t shell"},
		{"every node", "- {id: t, type: shell, roles: '*'}", "1/t shell\n2/t shell"},
		{"a star in a list with others", "- {id: t, type: shell, roles: ['*', controller]}", "2/t shell"},
		{"a pattern", "- {id: t, type: shell, roles: ['/(primary-)?controller/']}", "1/t shell\n2/t shell"},
		{"all roles by a pattern", "- {id: t, type: shell, roles: ['/.*/']}", "1/t shell\n2/t shell"},
		{"the master", "- {id: t, type: shell, roles: master}", "master/t shell"},
		{"the master among others", "- {id: t, type: shell, roles: [controller, master]}", "2/t shell\nmaster/t shell"},
		{"cross relations, self", "- {id: a, type: shell, roles: '*'}\n- {id: t, type: shell, roles: [controller], cross-depends: [{name: a, role: self}]}", "1/a shell\n2/a shell\n2/t shell 2/a"},
		{"cross relations, stages", "- {id: s, type: stage}\n- {id: t, type: shell, roles: [web], cross-depends: [{name: s, role: null}]}", "1/t shell null/s\nnull/s skipped"},
		{"cross relations, a pattern of names", "- {id: a, type: shell, roles: [web]}\n- {id: t, type: shell, roles: [controller], cross-depends: [{name: '/a/', role: web}]}", "1/a shell\n2/t shell 1/a"},
		{"cross relations, any", "- {id: a, type: shell, roles: '*'}\n- {id: t, type: shell, roles: [controller], cross-depends: [{name: a, role: '*', policy: any}]}", "1/a shell\n2/a shell\n2/t shell 1/a"},
		{"all but oneself", "- {id: t, type: shell, roles: '*', cross-depends: [{name: t}]}", "circle: 2/t waits for 1/t waits for 2/t"},
		{"names that no task has", "- {id: t, type: shell, roles: [web], requires: [nowhere], cross-depends: [{name: gone}]}", "1/t shell"},
	} {
		p, err := buildText(t, c.tasks, env, nil)
		if err != nil {
			t.Errorf("%s: %v", c.item, err)
			continue
		}
		got := outline(p)
		if _, err := p.Order(); err != nil {
			_, got, _ = strings.Cut(err.Error(), "in a ")
		}
		if !strings.HasPrefix(got, c.want) || got != c.want && !strings.HasPrefix(c.want, "circle") {
			t.Errorf("%s:\n%s\nwant\n%s", c.item, got, c.want)
		}
	}
	p, err := buildText(t, `
- {id: t, type: upload_file, roles: [web], parameters: {path: '/x-{CLUSTER_ID:03d}', host: '{CN_HOSTNAME}', bad: '{CLUSTER_ID} {0}',
   data: {yaql_exp: '"{CLUSTER_ID}"'}, regex: '{CLUSTER_ID}', braces: '{{{MASTER_IP}}}'}}
`, env, nil)
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"bad":"{CLUSTER_ID} {0}","braces":"{10.0.0.1}","cwd":"/","data":"{CLUSTER_ID}","host":"h.example","path":"/x-005","regex":"{CLUSTER_ID}"}`
	if got := canonical(p.Steps[0].Parameters); got != want {
		t.Errorf("texts with placeholders are %s, want %s", got, want)
	}
}

// TestChecklistOfTolerance goes through how many nodes of a group may fail.
func TestChecklistOfTolerance(t *testing.T) {
	for _, c := range []struct {
		value any
		want  int
		known bool
	}{
		{nil, 21, true}, {"10", 10, true}, {int64(10), 10, true}, {"10%", 2, true}, {"a%", 21, false}, {" -10%", 18, true}, {"-1 ", 19, true},
		{"100%", 20, true}, {"0%", 0, true}, {int64(-30), 0, true}, {[]any{}, 21, false},
	} {
		if got, known := plan.Tolerance(c.value, 20); got != c.want || known != c.known {
			t.Errorf("%v of 20 nodes: %d (understood: %v), want %d", c.value, got, known, c.want)
		}
	}
}
