package plan_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/deploy/document"
	"github.com/drover-project/drover/internal/deploy/expression"
	"github.com/drover-project/drover/internal/deploy/graph"
	"github.com/drover-project/drover/internal/deploy/legacy"
	"github.com/drover-project/drover/internal/deploy/plan"
	"github.com/drover-project/drover/internal/deploy/state"
	"github.com/drover-project/drover/internal/testkit"
	"github.com/drover-project/drover/yaql"
	"github.com/drover-project/drover/yaql/yaqljson"
)

// ledger are the cases with which we do not agree, with the reason. Each must disagree in the way it says.
var ledger = map[string]string{
	// The design wants every field but id computable; the reference takes these before it evaluates anything.
	"fuel-410": "a computed type is a type here",
	"fuel-413": "computed roles are roles here",
}

type conformanceCase struct {
	ID         string          `json:"id"`
	Kind       string          `json:"kind"`
	Expr       string          `json:"expr"`
	New        json.RawMessage `json:"new"`
	Old        json.RawMessage `json:"old"`
	Common     json.RawMessage `json:"common"`
	OldCommon  json.RawMessage `json:"oldCommon"`
	A          json.RawMessage `json:"a"`
	B          json.RawMessage `json:"b"`
	Condition  string          `json:"condition"`
	Info       json.RawMessage `json:"info"`
	Nodes      []plan.Node     `json:"nodes"`
	Roles      json.RawMessage `json:"roles"`
	Policy     *string         `json:"policy"`
	Tolerance  json.RawMessage `json:"fault_tolerance"`
	Total      int             `json:"total"`
	Tasks      json.RawMessage `json:"tasks"`
	CheckTasks bool            `json:"check_task_version"`
	Expect     struct {
		Value       json.RawMessage `json:"value"`
		Error       string          `json:"error"`
		Transformed *string         `json:"transformed"`
		Added       json.RawMessage `json:"added"`
		Deleted     json.RawMessage `json:"deleted"`
		Nodes       []string        `json:"nodes"`
		Graph       json.RawMessage `json:"tasks_graph"`
		Metadata    json.RawMessage `json:"tasks_metadata"`
	} `json:"expect"`
}

func decode(t *testing.T, text json.RawMessage) any {
	t.Helper()
	if text == nil {
		return nil
	}
	if string(text) == `{"$opaque": "undefined"}` {
		return map[string]any{"$opaque": "undefined"}
	}
	v, err := yaqljson.Decode(text)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// canonical is the value encoding with sorted keys.
func canonical(v any) string {
	if m, ok := v.(map[string]any); ok && m["$opaque"] != nil {
		return `{"$opaque":"undefined"}`
	}
	return plan.Canonical(v)
}

func newLanguage(t testing.TB) *expression.Language {
	t.Helper()
	l, err := expression.NewLanguage()
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestFuelConformance(t *testing.T) {
	language := newLanguage(t)
	passed, total := map[string]int{}, map[string]int{}
	lines := bufio.NewScanner(bytes.NewReader(testkit.ReadConformance(t, "fuel-conformance.jsonl")))
	lines.Buffer(nil, 1<<22)
	for lines.Scan() {
		var c conformanceCase
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		run := map[string]func(*testing.T, *expression.Language, conformanceCase) string{
			"expr": runExpr, "diff": runDiff, "condition": runCondition, "resolve": runResolve,
			"fault_tolerance": runTolerance, "graph": runGraph,
		}[c.Kind]
		total[c.Kind]++
		wrong := run(t, language, c)
		switch reason := ledger[c.ID]; {
		case wrong == "" && reason == "":
			passed[c.Kind]++
		case wrong == "":
			t.Errorf("%s agrees and is still in the ledger", c.ID)
		case reason == "":
			t.Errorf("%s (%s): %s", c.ID, c.Kind, wrong)
		}
	}
	sum, all := 0, 0
	for kind, n := range total {
		sum, all = sum+passed[kind], all+n
		t.Logf("fuel-conformance.jsonl, %s: %d of %d", kind, passed[kind], n)
	}
	t.Logf("fuel-conformance.jsonl: %d of %d cases passed, %d known differences", sum, all, len(ledger))
	if all < 400 {
		t.Errorf("there are only %d cases", all)
	}
}

// differs says how an outcome differs from what is expected.
func differs(value string, err error, wantError string, want func() string) string {
	class := ""
	if err != nil {
		class = expression.ErrorClass(err)
		if class == "" {
			class = "error without a class: " + err.Error()
		}
	}
	if class != wantError {
		return fmt.Sprintf("error %q (%v), want %q", class, err, wantError)
	}
	if err != nil {
		return ""
	}
	if w := want(); value != w {
		return fmt.Sprintf("got  %s\nwant %s", value, w)
	}
	return ""
}

func runExpr(t *testing.T, language *expression.Language, c conformanceCase) string {
	space := state.NewSpace()
	e, err := language.Evaluator(space)
	if err != nil {
		t.Fatal(err)
	}
	common, oldCommon := space.NewPart(decode(t, c.Common)), space.NewPart(decode(t, c.OldCommon))
	node, old := space.NewPart(decode(t, c.New)), space.NewPart(decode(t, c.Old))
	x, err := language.Compile(c.Expr)
	var r expression.Result
	if err == nil {
		r, err = e.Eval(t.Context(), x, expression.Surroundings{New: space.View(common, node), Old: space.View(oldCommon, old),
			Node: space.View(nil, node), Common: space.View(common, nil)})
	}
	return differs(canonical(r.Value), err, c.Expect.Error, func() string { return canonical(decode(t, c.Expect.Value)) })
}

func runDiff(t *testing.T, _ *expression.Language, c conformanceCase) string {
	added, deleted := expression.Diff(decode(t, c.A), decode(t, c.B))
	return differs(canonical(added)+canonical(deleted), nil, "", func() string {
		return canonical(decode(t, c.Expect.Added)) + canonical(decode(t, c.Expect.Deleted))
	})
}

func runCondition(t *testing.T, _ *expression.Language, c conformanceCase) string {
	condition, err := legacy.Parse(c.Condition)
	var v any
	if err == nil {
		v, err = condition.Value(decode(t, c.Info).(legacy.Data))
	}
	if want := c.Expect.Transformed; want != nil && legacy.Rewrite(c.Condition) != *want {
		return fmt.Sprintf("rewritten to %s, want %s", legacy.Rewrite(c.Condition), *want)
	}
	return differs(canonical(v), err, c.Expect.Error, func() string { return canonical(decode(t, c.Expect.Value)) })
}

func runResolve(t *testing.T, _ *expression.Language, c conformanceCase) string {
	got, err := plan.Resolve(t.Context(), c.Nodes, decode(t, c.Roles), c.Policy != nil && *c.Policy == "any")
	slices.Sort(got)
	return differs(strings.Join(got, ","), err, c.Expect.Error, func() string { return strings.Join(c.Expect.Nodes, ",") })
}

func runTolerance(t *testing.T, _ *expression.Language, c conformanceCase) string {
	got, _ := plan.Tolerance(decode(t, c.Tolerance), c.Total)
	return differs(canonical(int64(got)), nil, c.Expect.Error, func() string { return canonical(decode(t, c.Expect.Value)) })
}

func runGraph(t *testing.T, language *expression.Language, c conformanceCase) string {
	p, err := buildCase(t, language, c)
	if err != nil {
		return differs("", err, c.Expect.Error, nil)
	}
	if wrong := differs(serialized(p), nil, c.Expect.Error, func() string { return wanted(t, decode(t, c.Expect.Graph)) }); wrong != "" {
		return wrong
	}
	groups := []any{}
	for _, g := range p.Groups {
		ids := []any{}
		for _, id := range g.Nodes {
			ids = append(ids, id)
		}
		groups = append(groups, map[string]any{"name": g.Name, "node_ids": ids, "fault_tolerance": int64(g.Tolerance)})
	}
	return differs(canonical(map[string]any{"fault_tolerance_groups": groups}), nil, "", func() string { return canonical(decode(t, c.Expect.Metadata)) })
}

func buildCase(t *testing.T, language *expression.Language, c conformanceCase) (*plan.Plan, error) {
	t.Helper()
	space := state.NewSpace()
	doc, _, err := document.Parse(c.ID, c.Tasks)
	if err != nil {
		t.Fatal(err)
	}
	in := plan.Input{Space: space, Nodes: c.Nodes, CheckVersions: c.CheckTasks}
	in.Common, in.Parts = parts(space, decode(t, c.New))
	if old, ok := decode(t, c.Old).(*yaql.Dict); ok {
		type parted struct {
			common *state.Part
			nodes  map[string]*state.Part
		}
		byTask := map[string]parted{}
		old.Range(func(task, v any) bool {
			p := parted{}
			p.common, p.nodes = parts(space, v)
			byTask[task.(string)] = p
			return true
		})
		in.Old = func(task, uid string) (*state.Part, *state.Part, bool) {
			p, ok := byTask[task]
			return p.common, p.nodes[uid], ok
		}
	}
	for _, n := range doc.Items {
		task, err := graph.Record(language, n)
		if err != nil {
			return nil, err
		}
		in.Tasks = append(in.Tasks, task)
	}
	return plan.Build(t.Context(), language, in)
}

// parts cuts an environment into its parts.
func parts(space *state.Space, env any) (*state.Part, map[string]*state.Part) {
	d := env.(*yaql.Dict)
	common, _ := d.Get("common")
	nodes, _ := d.Get("nodes")
	out := map[string]*state.Part{}
	if m, ok := nodes.(*yaql.Dict); ok {
		m.Range(func(uid, part any) bool {
			out[uid.(string)] = space.NewPart(part)
			return true
		})
	}
	return space.NewPart(common), out
}

// serialized writes a plan in the form that serialised graphs have, on one line for each task, sorted.
func serialized(p *plan.Plan) string {
	var lines []string
	walker := p.Walker()
	for i := range p.Steps {
		s := &p.Steps[i]
		m := map[string]any{"id": s.ID(), "type": s.Type, "fail_on_error": s.FailOnError}
		if s.Run {
			m["parameters"] = s.Parameters
		}
		for name, required := range map[string]bool{"requires": false, "required_for": true} {
			var names []any
			walker.Edges(int32(i), required, func(other int32) { names = append(names, p.Name(other)) })
			if names != nil {
				slices.SortFunc(names, func(a, b any) int { return strings.Compare(a.(string), b.(string)) })
				m[name] = names
			}
		}
		lines = append(lines, p.Nodes[s.Node]+": "+canonical(m))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// wanted writes the expected graph in the same form.
func wanted(t *testing.T, v any) string {
	t.Helper()
	var lines []string
	for _, entry := range v.([]any) {
		d := entry.(*yaql.Dict)
		uid := plan.Virtual
		if id, _ := d.Get("node_id"); id != nil {
			uid = id.(string)
		}
		tasks, _ := d.Get("tasks")
		for _, task := range tasks.([]any) {
			m := map[string]any{}
			task.(*yaql.Dict).Range(func(k, v any) bool {
				if k == "requires" || k == "required_for" {
					v = namesOf(v)
				}
				m[k.(string)] = v
				return true
			})
			lines = append(lines, uid+": "+canonical(m))
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

func namesOf(v any) []any {
	var names []any
	for _, e := range v.([]any) {
		name, _ := e.(*yaql.Dict).Get("name")
		id, _ := e.(*yaql.Dict).Get("node_id")
		if id == nil {
			id = plan.Virtual
		}
		names = append(names, id.(string)+"/"+name.(string))
	}
	slices.SortFunc(names, func(a, b any) int { return strings.Compare(a.(string), b.(string)) })
	return names
}

func TestErrorsHaveClasses(t *testing.T) {
	if c := expression.ErrorClass(fmt.Errorf("around: %w", &yaql.Error{Class: yaql.KeyError})); c != yaql.KeyError {
		t.Errorf("the class is %q", c)
	}
	if c := expression.ErrorClass(errors.New("plain")); c != "" {
		t.Errorf("an error without a class has %q", c)
	}
}
