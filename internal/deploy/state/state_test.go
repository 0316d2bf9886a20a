package state_test

import (
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/deploy/state"
	"github.com/drover-project/drover/yaql"
	"github.com/drover-project/drover/yaql/yaqljson"
)

func decode(t *testing.T, text string) any {
	t.Helper()
	v, err := yaqljson.Decode([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// TestViewsAreUnions looks at a common part with a node's own over it.
func TestViewsAreUnions(t *testing.T) {
	space := state.NewSpace()
	var reads []string
	common := space.NewPart(decode(t, `{"a": 1, "m": {"x": 1, "y": {"z": 2}}, "hidden": {"x": 1}, "l": [1, 2]}`))
	node := space.NewPart(decode(t, `{"b": 2, "m": {"y": {"w": 3}}, "hidden": 5, "l": [3]}`))
	v := space.View(common, node)
	for key, want := range map[string]string{"a": `1`, "b": `2`, "m": `{"x": 1, "y": {"w": 3, "z": 2}}`, "hidden": `5`, "l": `[3]`} {
		got, there := v.Get(key)
		if !there || state.Likeness(got) != state.Likeness(decode(t, want)) {
			t.Errorf("%s is %v, want %s", key, got, want)
		}
	}
	if _, there := v.Get("c"); there {
		t.Error("there is a value where neither part has one")
	}
	space.Read = func(_ *state.View, key int) {
		reads = append(reads, map[bool]string{true: "whole", false: "key"}[key == state.Whole])
	}
	v.Get("a")
	var keys []string
	v.Range(func(k, _ any) bool {
		keys = append(keys, k.(string))
		return true
	})
	if got := strings.Join(keys, " ") + ": " + strings.Join(reads, " "); got != "a b hidden l m: key whole" {
		t.Errorf("the keys, and what was told of reads, are %s", got)
	}
	if !v.Fits(5) || v.Fits(4) {
		t.Error("five keys fit into five")
	}
}

// TestPartsWithKeysThatAreLearnedLater asks for keys that no part had when the first ones were looked at.
func TestPartsWithKeysThatAreLearnedLater(t *testing.T) {
	space := state.NewSpace()
	v := space.View(space.NewPart(decode(t, `{"a": 1}`)), nil)
	v.Get("nothing")
	w := space.View(space.NewPart(decode(t, `{"late": 1, "a": 2}`)), nil)
	for _, c := range []struct {
		view *state.View
		key  string
		want any
	}{{w, "late", int64(1)}, {w, "a", int64(2)}, {v, "late", nil}, {v, "a", int64(1)}} {
		if got, _ := c.view.Get(c.key); got != c.want {
			t.Errorf("%s is %v, want %v", c.key, got, c.want)
		}
	}
}

// TestClassesTellWhatExpressionsCanTell compares classes and likeness of values.
func TestClassesTellWhatExpressionsCanTell(t *testing.T) {
	space := state.NewSpace()
	for _, c := range []struct {
		a, b          string
		class, likely bool // whether they are the same
	}{
		{`{"x": [1, "a", null]}`, `{"x": [1, "a", null]}`, true, true},
		{`1`, `1.0`, false, true},
		{`true`, `1`, false, true},
		{`"1"`, `1`, false, false},
		{`{"a": 1, "b": 2}`, `{"b": 2, "a": 1}`, false, true}, // the order shows in lists of keys
		{`[1, 2]`, `[2, 1]`, false, false},
		{`null`, `false`, false, false},
		{`["a", "b"]`, `["ab"]`, false, false},
		{`123456789012345678901`, `123456789012345678901`, true, true},
		{`{}`, `[]`, false, false},
	} {
		a, b := decode(t, c.a), decode(t, c.b)
		if same := space.ClassOf(a) == space.ClassOf(b); same != c.class {
			t.Errorf("%s and %s have one class: %v", c.a, c.b, same)
		}
		if same := state.Likeness(a) == state.Likeness(b); same != c.likely {
			t.Errorf("%s and %s are alike: %v", c.a, c.b, same)
		}
	}
	if got := state.Widest(decode(t, `{"a": [1, 2, 3], "b": {"c": []}}`)); got != 3 {
		t.Errorf("the widest list has %d items", got)
	}
	if got := state.Widest(yaql.Tuple{1}); got != -1 {
		t.Errorf("a tuple is measured: %d", got)
	}
}
