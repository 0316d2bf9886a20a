package qlang_test

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/drover-project/drover/internal/qlang"
)

// truth is what a test says in a logic that knows what is not known.
type truth int

const (
	falseTruth truth = iota
	unknownTruth
	trueTruth
)

// world says of fields whether they have a value, and of tests of those that do
// whether they hold.
type world struct {
	missing map[string]bool
	holds   map[string]bool // by the JSON of a test
}

// sql is how a database decides: a test of null is unknown, and so is its negation.
func (w world) sql(n qlang.Node) truth {
	switch x := n.(type) {
	case *qlang.And:
		out := trueTruth
		for _, arg := range x.Args {
			out = min(out, w.sql(arg))
		}
		return out
	case *qlang.Or:
		out := falseTruth
		for _, arg := range x.Args {
			out = max(out, w.sql(arg))
		}
		return out
	case *qlang.Not:
		return trueTruth - w.sql(x.Arg)
	case *qlang.All:
		return trueTruth
	}
	field, _ := qlang.Field(n)
	if _, asks := n.(*qlang.Missing); !asks && w.missing[field] {
		return unknownTruth
	}
	if w.reference(n) {
		return trueTruth
	}
	return falseTruth
}

// reference is how queries decide: what is missing meets every test.
func (w world) reference(n qlang.Node) bool {
	switch x := n.(type) {
	case *qlang.And:
		for _, arg := range x.Args {
			if !w.reference(arg) {
				return false
			}
		}
		return true
	case *qlang.Or:
		return slices.ContainsFunc(x.Args, w.reference)
	case *qlang.Not:
		return !w.reference(x.Arg)
	case *qlang.All:
		return true
	}
	field, _ := qlang.Field(n)
	if _, asks := n.(*qlang.Missing); asks || w.missing[field] {
		return w.missing[field]
	}
	return w.holds[string(qlang.JSON(n))]
}

// TestStrictIsTheLogicOfDatabases: a strict filter holds exactly where one of SQL
// would, though those who decide it let what is missing meet every test.
func TestStrictIsTheLogicOfDatabases(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := genNode(3).Draw(t, "filter")
		w := world{missing: map[string]bool{}, holds: map[string]bool{}}
		qlang.Walk(n, func(_ string, n qlang.Node) bool {
			if field, ok := qlang.Field(n); ok {
				w.missing[field] = rapid.Bool().Draw(t, "missing "+field)
				w.holds[string(qlang.JSON(n))] = rapid.Bool().Draw(t, "holds")
			}
			return true
		})
		if got, want := w.reference(qlang.Strict(n)), w.sql(n) == trueTruth; got != want {
			t.Fatalf("%s as %s: %v, want %v", qlang.JSON(n), qlang.JSON(qlang.Strict(n)), got, want)
		}
	})
}

func TestMissingIsAskedByName(t *testing.T) {
	for text, want := range map[string]string{
		"disk.size/1 is missing":          `["missing","disk.size/1"]`,
		"a is not missing and b":          `["&",["!",["missing","a"]],["?","b"]]`,
		"not a is missing":                `["!",["missing","a"]]`,
		"(a is missing) or b is\tmissing": `["|",["missing","a"],["missing","b"]]`,
		"is is missing":                   `["missing","is"]`,
	} {
		n, err := qlang.ParseText(text)
		if err != nil || string(qlang.JSON(n)) != want {
			t.Errorf("%s: %v, %v", text, n, err)
		}
	}
	for _, text := range []string{"a is", "a is not", "a ismissing", "a is missing missing", "a not missing", "1 is missing"} {
		if n, err := qlang.ParseText(text); err == nil {
			t.Errorf("%s: %s", text, qlang.JSON(n))
		}
	}
	if n, err := qlang.ParseJSON([]byte(`["missing","a","b"]`)); err == nil {
		t.Errorf("%s", qlang.JSON(n))
	}
	if got := qlang.String(&qlang.Not{Arg: &qlang.Missing{Field: "a"}}); got != "a is not missing" {
		t.Error(got)
	}
}

// A filter gets hardly deeper by being strict, so that what may be asked loosely may be asked
// strictly.
func TestStrictFiltersAreNotDeeper(t *testing.T) {
	text := strings.Repeat("(a == 1 and ", qlang.MaxDepth-2) + "b" + strings.Repeat(")", qlang.MaxDepth-2)
	n, err := qlang.ParseText(text)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := qlang.ParseJSON(qlang.JSON(qlang.Strict(n))); err != nil {
		t.Error(err)
	}
}
