package classic

import (
	"encoding/json"
	"testing"
)

func TestOutline(t *testing.T) {
	value := []any{Record{{"a", 1}, {"empty", map[string]any{}}, {"list", []any{[]any{"x", nil}, true}}}, []any{}}
	const want = "- a: 1\n  empty: \n  list: \n    - - x\n      - None\n    - True\n- \n"
	if got := Outline(value); got != want {
		t.Errorf("got %q", got)
	}
}

func TestModified(t *testing.T) {
	got := Modified("node", "n1", json.RawMessage(`[["drained","True"],["x",null]]`))
	if want := "Modified node n1\n - drained -> True\n - x     -> None\n"; got != want {
		t.Errorf("told %q, want %q", got, want)
	}
}
