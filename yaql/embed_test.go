package yaql_test

import (
	"context"
	"testing"

	"github.com/drover-project/drover/yaql"
)

func TestEqualIsTheLanguages(t *testing.T) {
	for _, c := range []struct {
		a, b any
		want bool
	}{
		{int64(1), 1.0, true},
		{true, int64(1), true},
		{"1", int64(1), false},
		{[]any{int64(1)}, []any{1.0}, true},
		{[]any{int64(1)}, &yaql.List{Items: []any{int64(1)}}, false},
		{map[string]any{"a": 1}, map[string]any{"a": 1}, true},
	} {
		if got := yaql.Equal(c.a, c.b); got != c.want {
			t.Errorf("Equal(%v, %v) is %v", c.a, c.b, got)
		}
	}
}

// TestFunctionsOfTheHostSeeResults checks what a host does with arguments: it tells them apart by their code, and
// makes results of their values.
func TestFunctionsOfTheHostSeeResults(t *testing.T) {
	engine, err := yaql.New()
	if err != nil {
		t.Fatal(err)
	}
	var codes []yaql.Code
	settled, err := yaql.NewFunction("settled", "expr: lambda", func(c *yaql.Context, args []any) (any, error) {
		l := args[0].(*yaql.Lambda)
		codes = append(codes, l.Code())
		v, err := l.Call()
		if err != nil {
			return nil, err
		}
		v, err = c.Finalize(v)
		if items, ok := v.([]any); ok {
			return int64(len(items)), err
		}
		return v, err
	})
	if err != nil {
		t.Fatal(err)
	}
	scope := engine.NewContext()
	scope.Register(settled)
	x, err := engine.Compile("settled($.where($ > 1)) + settled($.select(1 / $).where($ > 5))")
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if v, err := x.EvalIn(context.Background(), scope, []any{1, 2, 3}); v != int64(2) || err != nil {
			t.Errorf("the sum is %v, %v", v, err)
		}
	}
	if codes[0] != codes[2] || codes[1] != codes[3] || codes[0] == codes[1] {
		t.Errorf("the codes of two arguments in two evaluations are %v", codes)
	}
	if tree := codes[0].Tree(); tree[0] != "bin" {
		t.Errorf("the tree is %v", tree)
	}
	if _, err := x.EvalIn(context.Background(), scope, []any{0}); err == nil {
		t.Error("an error in a lazy argument was lost")
	}
}

type pairs struct{ mutable bool }

func (pairs) Len() int                    { return 1 }
func (pairs) Get(any) (any, bool)         { return int64(1), true }
func (pairs) Range(f func(k, v any) bool) { f("a", int64(1)) }
func (p pairs) Mutable() bool             { return p.mutable }

func TestMutableMappingsAreNoKeys(t *testing.T) {
	engine, err := yaql.New()
	if err != nil {
		t.Fatal(err)
	}
	x, err := engine.Compile("{$ => 1}.len()")
	if err != nil {
		t.Fatal(err)
	}
	if v, err := x.Eval(context.Background(), pairs{}); v != int64(1) || err != nil {
		t.Errorf("an immutable mapping as a key gave %v, %v", v, err)
	}
	if v, err := x.Eval(context.Background(), pairs{mutable: true}); err == nil {
		t.Errorf("a mutable mapping as a key gave %v", v)
	}
}
