package qlang_test

import (
	"encoding/json"
	"errors"
	"slices"
	"testing"

	"github.com/drover-project/drover/internal/qlang"
	"github.com/drover-project/drover/internal/testkit"
)

type vectors struct {
	Pairs []struct {
		Text   string          `json:"text"`
		Filter json.RawMessage `json:"filter"`
	} `json:"pairs"`
	Errors []struct {
		Text   string `json:"text"`
		Column int    `json:"column"`
		Reason string `json:"reason"`
		Note   string `json:"note"`
	} `json:"errors"`
	MakeFilter []struct {
		Args      []string        `json:"args"`
		Force     bool            `json:"force_filter"`
		NameField string          `json:"namefield"`
		Numeric   bool            `json:"numeric"`
		Filter    json.RawMessage `json:"filter"`
		Error     []string        `json:"error"`
	} `json:"make_filter"`
	SimpleFilter []struct {
		Field  string          `json:"field"`
		Values []string        `json:"values"`
		Filter json.RawMessage `json:"filter"`
	} `json:"simple_filter"`
	Glob []struct {
		Glob  string `json:"glob"`
		Regex string `json:"regex"`
	} `json:"glob"`
}

// same reports whether a filter has the JSON form want, but for its spacing.
func same(t *testing.T, n qlang.Node, want json.RawMessage) bool {
	t.Helper()
	var a, b any
	if err := json.Unmarshal(qlang.JSON(n), &a); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(want, &b); err != nil {
		t.Fatal(err)
	}
	x, y := mustJSON(t, a), mustJSON(t, b)
	return string(x) == string(y)
}

func mustJSON(t *testing.T, v any) []byte {
	t.Helper()
	out, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// count runs a check on each case and reports how many passed.
func count[T any](t *testing.T, what string, cases []T, check func(T) bool) {
	t.Helper()
	if len(cases) == 0 {
		t.Fatalf("%s: no cases", what)
	}
	passed := 0
	for _, c := range cases {
		if check(c) {
			passed++
		}
	}
	t.Logf("qlang-examples.json %s: %d of %d passed", what, passed, len(cases))
	if passed != len(cases) {
		t.Errorf("%s: %d failed", what, len(cases)-passed)
	}
}

func TestConformanceTextToFilter(t *testing.T) {
	var v vectors
	testkit.DecodeConformance(t, &v, "qlang-examples.json")
	count(t, "pairs", v.Pairs, func(c struct {
		Text   string          `json:"text"`
		Filter json.RawMessage `json:"filter"`
	}) bool {
		n, err := qlang.ParseText(c.Text)
		if err != nil {
			t.Logf("%q: %v", c.Text, err)
			return false
		}
		back, err := qlang.ParseJSON(c.Filter)
		if err != nil {
			t.Logf("%s: %v", c.Filter, err)
			return false
		}
		printed, err := qlang.Text(n)
		if err != nil {
			t.Logf("%q: cannot be printed: %v", c.Text, err)
			return false
		}
		again, err := qlang.ParseText(printed)
		if err != nil || !qlang.Equal(again, n) {
			t.Logf("%q: printed %q reads as %s, %v", c.Text, printed, qlang.JSON(again), err)
			return false
		}
		if !same(t, n, c.Filter) || !qlang.Equal(n, back) {
			t.Logf("%q: got %s, want %s", c.Text, qlang.JSON(n), c.Filter)
			return false
		}
		return true
	})
}

// mended are texts that the reference refuses: it takes a word behind a pattern
// for its flags (docs/compat/query.md).
var mended = map[string]string{
	"name =~ m/web/ and master": `["&",["=~","name","web"],["?","master"]]`,
	"name =~ m/^web/ or master": `["|",["=~","name","^web"],["?","master"]]`,
}

func TestConformanceRefusedTexts(t *testing.T) {
	var v vectors
	testkit.DecodeConformance(t, &v, "qlang-examples.json")
	count(t, "errors", v.Errors, func(c struct {
		Text   string `json:"text"`
		Column int    `json:"column"`
		Reason string `json:"reason"`
		Note   string `json:"note"`
	}) bool {
		n, err := qlang.ParseText(c.Text)
		if want := mended[c.Text]; want != "" {
			return err == nil && string(qlang.JSON(n)) == want
		}
		e, ok := errors.AsType[*qlang.TextError](err)
		if !ok {
			t.Logf("%q: got %s, error %v", c.Text, qlang.JSON(n), err)
			return false
		}
		got, want := []rune(e.Reason), []rune(c.Reason)
		if c.Note != "" { // the letters come in random order there
			slices.Sort(got)
			slices.Sort(want)
		}
		if string(got) != string(want) || e.Column != c.Column {
			t.Logf("%q: got %q at %d, want %q at %d", c.Text, e.Reason, e.Column, c.Reason, c.Column)
			return false
		}
		return true
	})
}

func TestConformanceArguments(t *testing.T) {
	var v vectors
	testkit.DecodeConformance(t, &v, "qlang-examples.json")
	count(t, "make_filter", v.MakeFilter, func(c struct {
		Args      []string        `json:"args"`
		Force     bool            `json:"force_filter"`
		NameField string          `json:"namefield"`
		Numeric   bool            `json:"numeric"`
		Filter    json.RawMessage `json:"filter"`
		Error     []string        `json:"error"`
	}) bool {
		n, err := qlang.FromArguments(c.Args, qlang.ArgOptions{NameField: c.NameField, Numeric: c.Numeric, Force: c.Force})
		if c.Error != nil {
			if err == nil || err.Error() != c.Error[1] {
				t.Logf("%q: got %s, %v, want error %q", c.Args, qlang.JSON(n), err, c.Error[1])
				return false
			}
			return true
		}
		if err != nil || !same(t, n, c.Filter) {
			t.Logf("%q: got %s, %v, want %s", c.Args, qlang.JSON(n), err, c.Filter)
			return false
		}
		return true
	})
	count(t, "simple_filter", v.SimpleFilter, func(c struct {
		Field  string          `json:"field"`
		Values []string        `json:"values"`
		Filter json.RawMessage `json:"filter"`
	}) bool {
		return same(t, qlang.AnyOf(c.Field, c.Values...), c.Filter)
	})
	count(t, "glob", v.Glob, func(c struct {
		Glob  string `json:"glob"`
		Regex string `json:"regex"`
	}) bool {
		if got := qlang.Glob(c.Glob); got != c.Regex {
			t.Logf("%q: got %q, want %q", c.Glob, got, c.Regex)
			return false
		}
		_, err := qlang.CompileRegex(c.Regex)
		return err == nil
	})
}

// TestConformanceParseErrors takes from the evaluation vectors the filters that
// are refused before any evaluation, and checks that all others are read.
func TestConformanceParseErrors(t *testing.T) {
	var v struct {
		Evaluate []struct {
			Filter json.RawMessage `json:"filter"`
			Result json.RawMessage `json:"result"`
		} `json:"evaluate"`
	}
	testkit.DecodeConformance(t, &v, "query-filter-vectors.json")
	passed := 0
	for _, c := range v.Evaluate {
		var want struct {
			Parse string `json:"parse_error"`
		}
		if c.Result[0] == '{' {
			if err := json.Unmarshal(c.Result, &want); err != nil {
				t.Fatal(err)
			}
		}
		_, err := qlang.ParseJSON(c.Filter)
		if err == nil && want.Parse == "" || err != nil && firstWords(err) == want.Parse {
			passed++
			continue
		}
		t.Errorf("%s: got %v, want %q", c.Filter, err, want.Parse)
	}
	t.Logf("query-filter-vectors.json parse errors: %d of %d passed", passed, len(v.Evaluate))
}
