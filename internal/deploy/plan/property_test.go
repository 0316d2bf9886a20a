package plan_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/drover-project/drover/internal/deploy/expression"
	"github.com/drover-project/drover/internal/deploy/graph"
	"github.com/drover-project/drover/internal/deploy/plan"
	"github.com/drover-project/drover/internal/deploy/report"
	"github.com/drover-project/drover/internal/deploy/state"
	"github.com/drover-project/drover/yaql"
)

// drawnGraph draws a graph whose tasks depend only on earlier ones, so that it has no circles, with relations of all
// kinds.
func drawnGraph(t *rapid.T) string {
	roles := []string{"web", "db", "/.*/", "*", "master"}
	b := &strings.Builder{}
	n := rapid.IntRange(1, 8).Draw(t, "tasks")
	for i := range n {
		fmt.Fprintf(b, "- id: t%d\n  type: %s\n  version: 2.1.0\n", i, rapid.SampledFrom([]string{"shell", "skipped", "stage"}).Draw(t, "type"))
		fmt.Fprintf(b, "  roles: %q\n", rapid.SampledFrom(roles).Draw(t, "roles"))
		if rapid.Bool().Draw(t, "conditional") {
			fmt.Fprintf(b, "  condition: {yaql_exp: %q}\n", rapid.SampledFrom([]string{
				"changed($.a)", "changed($node)", "changedAny($.a, $.b)", "changed($.get(c))", "len(added($.list)) > 0", "old($.a) = 1",
			}).Draw(t, "condition"))
		}
		earlier := func() string { return fmt.Sprintf("t%d", rapid.IntRange(0, i-1).Draw(t, "earlier")) }
		if i == 0 {
			continue
		}
		if rapid.Bool().Draw(t, "requires") {
			fmt.Fprintf(b, "  requires: [%s, '/t[0-%d]$/']\n", earlier(), i-1)
		}
		if rapid.Bool().Draw(t, "cross") {
			role := rapid.SampledFrom([]string{"web", "'*'", "self", "null", "[db, master]"}).Draw(t, "role")
			policy := rapid.SampledFrom([]string{"all", "any"}).Draw(t, "policy")
			fmt.Fprintf(b, "  cross_depends: [{name: %s, role: %s, policy: %s}]\n", earlier(), role, policy)
		}
	}
	return b.String()
}

func drawnState(t *rapid.T, space *state.Space, nodes int) (*state.Part, map[string]*state.Part, []plan.Node) {
	dict := func(pairs ...any) *yaql.Dict {
		d := yaql.NewDict(len(pairs) / 2)
		for i := 0; i < len(pairs); i += 2 {
			_ = d.Set(pairs[i], pairs[i+1])
		}
		return d
	}
	number := rapid.Int64Range(0, 2)
	var list []any
	for range rapid.IntRange(0, 3).Draw(t, "items") {
		list = append(list, number.Draw(t, "item"))
	}
	common := space.NewPart(dict("a", number.Draw(t, "a"), "b", number.Draw(t, "b"), "list", list))
	byUID := map[string]*state.Part{plan.Master: space.NewPart(dict("uid", plan.Master, "roles", []any{plan.Master}))}
	var resolved []plan.Node
	for i := range nodes {
		uid := strconv.Itoa(i + 1)
		role := []string{"web", "db"}[i%2]
		byUID[uid] = space.NewPart(dict("uid", uid, "roles", []any{role}, "x", number.Draw(t, "x")))
		resolved = append(resolved, plan.Node{UID: uid, Tags: []string{role}})
	}
	return common, byUID, resolved
}

func drawnPlan(t *rapid.T, language *expression.Language, text string, sameState bool) *plan.Plan {
	g, err := graph.Read(language, "drawn", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	space := state.NewSpace()
	nodes := rapid.IntRange(0, 7).Draw(t, "nodes")
	in := plan.Input{Tasks: g.Tasks, Space: space}
	in.Common, in.Parts, in.Nodes = drawnState(t, space, nodes)
	common, old := in.Common, in.Parts
	if !sameState {
		common, old, _ = drawnState(t, space, nodes)
	}
	in.Old = func(_, uid string) (*state.Part, *state.Part, bool) { return common, old[uid], old[uid] != nil }
	p, err := plan.Build(t.Context(), language, in)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestOrderObeysEveryRelation checks that the order of a plan, which is computed without spelling relations out, is a
// linear extension of the relations that Edges spells out.
func TestOrderObeysEveryRelation(t *testing.T) {
	language := newLanguage(t)
	rapid.Check(t, func(t *rapid.T) {
		p := drawnPlan(t, language, drawnGraph(t), false)
		order, err := p.Order()
		if err != nil {
			t.Fatal(err)
		}
		if len(order) != len(p.Steps) {
			t.Fatalf("the order has %d of %d steps", len(order), len(p.Steps))
		}
		place := make([]int, len(order))
		for i, s := range order {
			place[s] = i
		}
		walker := p.Walker()
		for i := range p.Steps {
			s := int32(i)
			walker.Edges(s, false, func(other int32) {
				if place[other] >= place[s] {
					t.Errorf("%s requires %s and comes first", p.Name(s), p.Name(other))
				}
			})
			walker.Edges(s, true, func(other int32) {
				if place[other] <= place[s] {
					t.Errorf("%s is required for %s and comes last", p.Name(s), p.Name(other))
				}
			})
		}
	})
}

// TestPlansAreDeterministic checks that the same input gives the same plan to the letter, whatever was remembered on
// the way.
func TestPlansAreDeterministic(t *testing.T) {
	language := newLanguage(t)
	rapid.Check(t, func(t *rapid.T) {
		text := drawnGraph(t)
		g, err := graph.Read(language, "drawn", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		space := state.NewSpace()
		in := plan.Input{Tasks: g.Tasks, Space: space}
		in.Common, in.Parts, in.Nodes = drawnState(t, space, 5)
		common, old, _ := drawnState(t, space, 5)
		in.Old = func(_, uid string) (*state.Part, *state.Part, bool) { return common, old[uid], old[uid] != nil }
		var texts []string
		for range 2 {
			p, err := plan.Build(t.Context(), language, in)
			if err != nil {
				t.Fatal(err)
			}
			b := &strings.Builder{}
			if err := report.JSON(b, p); err != nil {
				t.Fatal(err)
			}
			texts = append(texts, b.String())
			slices.Reverse(in.Nodes) // the order in which nodes are given does not matter
		}
		if texts[0] != texts[1] {
			t.Errorf("two plans of the same differ:\n%s\n%s", texts[0], texts[1])
		}
	})
}

// TestNothingChangedNothingRuns checks that a plan from a state to itself runs nothing whose condition asks for a change.
func TestNothingChangedNothingRuns(t *testing.T) {
	language := newLanguage(t)
	rapid.Check(t, func(t *rapid.T) {
		p := drawnPlan(t, language, drawnGraph(t), true)
		for i := range p.Steps {
			s := &p.Steps[i]
			if s.Run && s.Why.Kind == plan.ByCondition && !strings.HasPrefix(s.Why.Condition, "old(") {
				t.Errorf("%s runs: %+v", p.Name(int32(i)), s.Why)
			}
		}
	})
}

// TestMemoryChangesNoResult checks that an evaluator that remembers gives what one that begins anew gives.
func TestMemoryChangesNoResult(t *testing.T) {
	language := newLanguage(t)
	expressions := make([]*expression.Expression, 0)
	for _, text := range []string{
		"changed($.a)", "changedAny($.a, $.b, $.x)", "changedAll($.a, $node)", "added($.list)", "deleted($.list)", "$.list.where($ > $common.b)",
		"changed($.list.where($ = new($.x)))", "changed($.list.where($ = new($.a)))", "old($.a) + new($.b)", "[$.a, old($).get(a, 7)]",
		"changed($.len())", "$.keys().len()", "$", "changed($)", "let(v => $.x) -> changed($v)", "$.list.select($ + $common.a).sum(0)",
		"switch(changed($.a) => $.x, changed($.b) => $.uid, true => none)", "changed($node.x) or changed($common.a)",
	} {
		x, err := language.Compile(text)
		if err != nil {
			t.Fatal(err)
		}
		expressions = append(expressions, x)
	}
	rapid.Check(t, func(t *rapid.T) {
		space := state.NewSpace()
		warm, err := language.Evaluator(space)
		if err != nil {
			t.Fatal(err)
		}
		for range 6 {
			common, nodes, _ := drawnState(t, space, 2)
			oldCommon, oldNodes, _ := drawnState(t, space, 2)
			in := expression.Surroundings{New: space.View(common, nodes["1"]), Old: space.View(oldCommon, oldNodes["1"]),
				Node: space.View(nil, nodes["1"]), Common: space.View(common, nil)}
			if rapid.Bool().Draw(t, "never ran") {
				in.Old = space.View(nil, nil)
			}
			for _, x := range expressions {
				cold, err := language.Evaluator(space)
				if err != nil {
					t.Fatal(err)
				}
				want, wantErr := cold.Eval(t.Context(), x, in)
				got, gotErr := warm.Eval(t.Context(), x, in)
				if canonical(got.Value) != canonical(want.Value) || expression.ErrorClass(gotErr) != expression.ErrorClass(wantErr) {
					t.Fatalf("%s is %s (%v) from memory, and %s (%v)", x, canonical(got.Value), gotErr, canonical(want.Value), wantErr)
				}
			}
		}
	})
}
