package expression_test

import (
	"errors"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/drover-project/drover/internal/deploy/expression"
	"github.com/drover-project/drover/internal/deploy/state"
	"github.com/drover-project/drover/yaql"
	"github.com/drover-project/drover/yaql/yaqljson"
)

func language(t testing.TB) *expression.Language {
	t.Helper()
	l, err := expression.NewLanguage()
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// seen is what an expression sees of JSON texts: the new common and node part, and the old ones; no old ones for empty texts.
type seen struct{ common, node, oldCommon, oldNode string }

func (s seen) in(t testing.TB, space *state.Space) expression.Surroundings {
	t.Helper()
	part := func(text string) *state.Part {
		if text == "" {
			return space.NewPart(nil)
		}
		v, err := yaqljson.Decode([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return space.NewPart(v)
	}
	common, node := part(s.common), part(s.node)
	return expression.Surroundings{New: space.View(common, node), Old: space.View(part(s.oldCommon), part(s.oldNode)),
		Node: space.View(nil, node), Common: space.View(common, nil)}
}

// told is all that can be told of a result.
func told(r expression.Result, err error) string {
	out := fmt.Sprintf("%s %s", state.Likeness(r.Value), expression.ErrorClass(err))
	if e, ok := errors.AsType[*yaql.Error](err); ok {
		out += fmt.Sprintf(" at %d: %s", e.Offset, e.Message)
	}
	for _, d := range r.Decisions {
		out += fmt.Sprintf("\n%s(%s) %v", d.Function, d.Expression, d.Changed)
		if d.Changed {
			out += fmt.Sprintf(" %s %s %v", state.Likeness(d.New), state.Likeness(d.Old), expression.IsUndefined(d.Old))
		}
	}
	return out
}

func eval(t testing.TB, l *expression.Language, text string, s seen) (expression.Result, error) {
	t.Helper()
	x, err := l.Compile(text)
	if err != nil {
		t.Fatal(err)
	}
	space := state.NewSpace()
	e, err := l.Evaluator(space)
	if err != nil {
		t.Fatal(err)
	}
	return e.Eval(t.Context(), x, s.in(t, space))
}

func TestOldAndNew(t *testing.T) {
	l := language(t)
	both := seen{common: `{"a": 1, "l": [1, 2], "m": {"x": 1}}`, node: `{"uid": "7", "own": {"y": 2}}`,
		oldCommon: `{"a": 2, "l": [2, 3], "m": {"x": 1}}`, oldNode: `{"uid": "7"}`}
	first := seen{common: both.common, node: both.node}
	for _, c := range []struct {
		expr  string
		in    seen
		value any
		err   string
	}{
		{"new($.a) - old($.a)", both, int64(-1), ""},
		{"changed($.a) and not changed($.m)", both, true, ""},
		{"changedAny($.m, $.l)", both, true, ""},
		{"changedAll($.m, $.nothing)", both, false, ""}, // the first argument decides
		{"changedAny()", both, false, ""},
		{"changedAll()", both, true, ""},
		{"added($.l)", both, []any{int64(1)}, ""},
		{"deleted($.l)", both, []any{int64(3)}, ""},
		{"old($.own).isUndef()", both, true, ""},
		{"old($.a).isUndef()", both, false, ""},
		{"changed($.own)", both, true, ""},
		{"changed($.nothing)", both, nil, yaql.KeyError},
		{"changed($.get(nothing))", first, false, ""}, // null on both sides
		{"changed($.a)", first, true, ""},
		{"deleted($.l)", first, nil, ""},
		{"added($.m).x", first, int64(1), ""},
		{"$node.uid + $.uid", both, "77", ""},
		{"$common.uid", both, nil, yaql.KeyError},
		{"old($.own).y", both, nil, yaql.NoFunctionRegisteredException},
	} {
		r, err := eval(t, l, c.expr, c.in)
		if expression.ErrorClass(err) != c.err || c.err == "" && !expression.Equal(r.Value, c.value) {
			t.Errorf("%s: %v, %v; want %v %s", c.expr, r.Value, err, c.value, c.err)
		}
	}
}

// TestEqualIsOfContents compares values as results are compared.
func TestEqualIsOfContents(t *testing.T) {
	set := func(items ...any) any {
		s, err := yaql.NewSet(items...)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	for _, c := range []struct {
		a, b any
		want bool
	}{
		{[]any{int64(1)}, &yaql.List{Items: []any{int64(1)}}, true},
		{[]any{int64(1)}, []any{int64(1), int64(1)}, false},
		{int64(1), 1.0, true},
		{"1", int64(1), false},
		{set("a", "b"), set("b", "a"), true},
		{set("a"), []any{"a"}, false},
		{map[string]any{"a": nil}, map[string]any{"b": nil}, false},
		{nil, false, false},
	} {
		if got := expression.Equal(c.a, c.b); got != c.want {
			t.Errorf("%v and %v: %v", c.a, c.b, got)
		}
	}
}

// TestMemoryChangesNothing evaluates expressions on many nodes with one evaluator, which remembers, and each with one of its
// own: values, errors with their places, and comparisons are the same.
func TestMemoryChangesNothing(t *testing.T) {
	l := language(t)
	texts := []string{
		"changed($.own)", "changedAny($.a, $.own, $.m)", "changedAll($.own, $.a)", "changedAny($.a, ($.on and changed($.own)))",
		"$.uid in added($.list)", "added($.list).len()", "coalesce(deleted($.list), [])", "added($.m)", "changed($.missing)",
		"changedAny($.a, $.missing)", "old($.missing).isUndef() or changed($.a)", "changed($)", "changed($node.own)",
		"changed($.list.where($ != new($.uid)))", "$.list.where(changed($.own))", "changedAny($.a, $.list.select($ + 1))",
		"changed($.m.get(x)) and changed($.m.get(x))", "switch(changed($.own) => $.a, true => added($.list))",
		"old(changed($.own))", "new(changed($.m)) and changed($.on)", "let(x => $.a) -> changed($.m) and $x = 1", "changed($common.a)",
	}
	value := rapid.SampledFrom([]string{`1`, `1.0`, `true`, `null`, `"x"`, `[1]`, `["7", "8"]`, `["8"]`, `{"x": 1}`, `{"x": 2, "y": []}`, `[]`, `{}`})
	rapid.Check(t, func(rt *rapid.T) {
		part := func(name string) string {
			out := "{"
			for _, key := range []string{"a", "list", "m", "on", "own", "uid"} {
				if rapid.IntRange(0, 3).Draw(rt, name+key) > 0 {
					out += fmt.Sprintf(`"%s": %s, `, key, value.Draw(rt, name+key+" value"))
				}
			}
			return out + `"last": 0}`
		}
		space := state.NewSpace()
		e, err := l.Evaluator(space)
		if err != nil {
			rt.Fatal(err)
		}
		common, oldCommon := part("common"), part("old common")
		for i := range rapid.IntRange(2, 5).Draw(rt, "nodes") {
			s := seen{common: common, node: part(fmt.Sprint("node ", i))}
			if rapid.Bool().Draw(rt, "ran before") {
				s.oldCommon, s.oldNode = oldCommon, part(fmt.Sprint("old node ", i))
			}
			in := s.in(t, space)
			for _, text := range texts {
				x, err := l.Compile(text)
				if err != nil {
					rt.Fatal(err)
				}
				got := told(e.Eval(t.Context(), x, in))
				if want := told(eval(t, l, text, s)); got != want {
					rt.Fatalf("%s on %+v is\n%s\nwhich by itself is\n%s", text, s, got, want)
				}
			}
		}
	})
}
