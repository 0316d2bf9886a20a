package yaql_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/drover-project/drover/yaql"
)

func mustKeys(t *testing.T, keys ...any) *yaql.Keys {
	t.Helper()
	k, err := yaql.NewKeys(keys...)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func mustDict(t *testing.T, keys *yaql.Keys, values ...any) *yaql.Dict {
	t.Helper()
	d, err := keys.Dict(values)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestKeysRefuse(t *testing.T) {
	if _, err := yaql.NewKeys("a", int64(1), 1.0); err == nil || err.Error() != "the key 1.0 is there twice" {
		t.Errorf("equal keys gave %v", err)
	}
	if _, err := yaql.NewKeys(&yaql.List{}); err == nil {
		t.Error("a list was taken for a key")
	}
	if _, err := mustKeys(t, "a").Dict(nil); err == nil || err.Error() != "there are 1 keys and 0 values" {
		t.Errorf("too few values gave %v", err)
	}
}

func TestMapsThatShareKeysDoNotSeeEachOther(t *testing.T) {
	keys := mustKeys(t, "a", int64(2))
	changed, left := mustDict(t, keys, "x", "y"), mustDict(t, keys, "x", "y")
	for key, value := range map[any]any{"a": "z", "b": true} {
		if err := changed.Set(key, value); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []struct {
		dict  *yaql.Dict
		key   any
		value any
		ok    bool
	}{
		{changed, "a", "z", true}, {changed, "b", true, true}, {changed, 2, "y", true},
		{left, "a", "x", true}, {left, "b", nil, false}, {left, 2, "y", true},
	} {
		if v, ok := want.dict.Get(want.key); v != want.value || ok != want.ok {
			t.Errorf("%v is %v, %v; want %v, %v", want.key, v, ok, want.value, want.ok)
		}
	}
	if left.Len() != 2 || changed.Len() != 3 {
		t.Errorf("%d and %d entries", left.Len(), changed.Len())
	}
}

func TestTheZeroDictIsEmpty(t *testing.T) {
	var d yaql.Dict
	if _, ok := d.Get("a"); ok || d.Len() != 0 {
		t.Error("it has an entry")
	}
	if got := evaluate(t, &d); got != "map[]" {
		t.Errorf("it is %s", got)
	}
	if err := d.Set("a", 1); err != nil || d.Len() != 1 {
		t.Errorf("%d entries, %v", d.Len(), err)
	}
}

// evaluate gives the result of $ for data.
func evaluate(t *testing.T, data any, options ...yaql.Option) string {
	t.Helper()
	engine, err := yaql.New(options...)
	if err != nil {
		t.Fatal(err)
	}
	expression, err := engine.Compile("$")
	if err != nil {
		t.Fatal(err)
	}
	result, err := expression.Eval(context.Background(), data)
	if err != nil {
		return err.Error()
	}
	if d, ok := result.(*yaql.Dict); ok {
		return fmt.Sprintf("%d entries", d.Len())
	}
	return fmt.Sprint(result)
}

func TestPlainMapsAreResultsAsTheyAre(t *testing.T) {
	deep := any("x")
	for range 100 {
		deep = []any{deep}
	}
	set, err := yaql.NewSet("a")
	if err != nil {
		t.Fatal(err)
	}
	keys := mustKeys(t, "a", "b")
	inner := mustDict(t, keys, int64(1), []any{"x", 2.5, nil})
	for name, c := range map[string]struct {
		dict *yaql.Dict
		same bool
	}{
		"scalars":       {mustDict(t, keys, int64(1), true), true},
		"nested":        {mustDict(t, keys, inner, []any{inner}), true},
		"deep":          {mustDict(t, keys, deep, nil), true},
		"a set inside":  {mustDict(t, keys, set, nil), false},
		"a list inside": {mustDict(t, keys, []any{&yaql.List{}}, nil), false},
	} {
		t.Run(name, func(t *testing.T) {
			engine, err := yaql.New(yaql.OrderedResults(), yaql.ConvertSetsToLists(true))
			if err != nil {
				t.Fatal(err)
			}
			expression, err := engine.Compile("$")
			if err != nil {
				t.Fatal(err)
			}
			result, err := expression.Eval(context.Background(), c.dict)
			if err != nil {
				t.Fatal(err)
			}
			if same := result == any(c.dict); same != c.same {
				t.Errorf("the same map: %v, want %v", same, c.same)
			}
		})
	}
}

func TestPlainMapsObeyTheLimits(t *testing.T) {
	d := mustDict(t, mustKeys(t, "a", "b", "c"), nil, nil, []any{1, 2, 3, 4})
	if got := evaluate(t, d, yaql.OrderedResults(), yaql.LimitIterators(3)); got != "Collection length exceeds 3 elements" {
		t.Errorf("got %s", got)
	}
	if got := evaluate(t, d, yaql.OrderedResults(), yaql.LimitIterators(4)); got != "3 entries" {
		t.Errorf("got %s", got)
	}
	changed := mustDict(t, mustKeys(t, "a"), nil)
	_ = changed.Set("a", &yaql.List{Items: []any{"x"}})
	if got := evaluate(t, changed); got != "map[a:[x]]" {
		t.Errorf("got %s", got)
	}
}
