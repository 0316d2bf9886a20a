package yaql_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/drover-project/drover/yaql"
)

// TestPlainJSON: encoding/json writes each result, or says why it does not; nothing becomes an empty object.
func TestPlainJSON(t *testing.T) {
	for _, options := range [][]yaql.Option{nil, {yaql.ReferenceDefaults(), yaql.ConvertOutputData(false)}, {yaql.OrderedResults()}} {
		engine, err := yaql.New(options...)
		if err != nil {
			t.Fatal(err)
		}
		for expr, want := range map[string]string{
			`datetime(2026, 1, 2)`:            `"2026-01-02T00:00:00+00:00"`,
			`{a => datetime(2026, 1, 2)}`:     `{"a":"2026-01-02T00:00:00+00:00"}`,
			`[timespan(seconds => 1)]`:        `[1000000]`,
			`regex("a+")`:                     `"a+"`,
			`set(1)`:                          `[1]`,
			`dict(b => 1).set(a, dict(c=>2))`: `{"b":1,"a":{"c":2}}`,
			`{}`:                              `{}`,
			`dict(b => 1).keys()`:             `["b"]`,
			`"a b".split()`:                   `["a","b"]`,
			`dict(1 => 2)`:                    `is no string but 1`,
			`[1].select($ + 1)`:               `[2]`,
		} {
			x, err := engine.Compile(expr)
			if err != nil {
				t.Fatal(err)
			}
			v, err := x.Eval(t.Context(), nil)
			if err != nil {
				t.Fatalf("%s: %v", expr, err)
			}
			text, err := json.Marshal(v)
			if _, lazy := v.(*yaql.Iterator); lazy {
				if err == nil {
					t.Errorf("%s: a lazy collection is written as %s", expr, text)
				}
				continue
			}
			if err != nil {
				text = []byte(err.Error())
			}
			var same, wanted any
			if json.Unmarshal([]byte(want), &wanted) == nil && json.Unmarshal(text, &same) == nil {
				if a, b := plainText(t, same), plainText(t, wanted); a != b {
					t.Errorf("%s: got %s, want %s", expr, a, b)
				}
			} else if !strings.Contains(string(text), want) {
				t.Errorf("%s: got %s, want %s", expr, text, want)
			}
		}
	}
	ordered := yaql.NewDict(2)
	for _, key := range []string{"b", "a"} {
		if err := ordered.Set(key, time.Second.Seconds()); err != nil {
			t.Fatal(err)
		}
	}
	if text, err := json.Marshal(ordered); err != nil || string(text) != `{"b":1,"a":1}` {
		t.Errorf("a map in order: %s %v", text, err)
	}
}

func plainText(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestHintsOfMissingKeys: who writes a Go name in place of a JSON name, or asks null, is told.
func TestHintsOfMissingKeys(t *testing.T) {
	type node struct {
		Name string `json:"name"`
	}
	engine, err := yaql.New()
	if err != nil {
		t.Fatal(err)
	}
	data := map[string]any{"nodes": []node{{"a"}}, "none": nil}
	for expr, want := range map[string]string{
		`$.nodes.Name`:         "did you mean name?",
		`$.nodes.first().nmae`: "did you mean name?",
		`$[nodse]`:             "did you mean nodes?",
		`$.none.name`:          "the value before .name is null",
		`$.zzzzzzzzzz`:         "the map has no such key; get()",
	} {
		x, err := engine.Compile(expr)
		if err != nil {
			t.Fatal(err)
		}
		_, err = x.Eval(t.Context(), data)
		if e, ok := errors.AsType[*yaql.Error](err); !ok || !strings.Contains(e.Hint, want) {
			t.Errorf("%s: %v, not %s", expr, err, want)
		}
	}
	_, err = engine.Compile(strings.Repeat("1 + ", 60) + ")" + strings.Repeat(" + 1", 60))
	e, ok := errors.AsType[*yaql.Error](err)
	if !ok {
		t.Fatal(err)
	}
	line, caret, _ := strings.Cut(e.Caret(), "\n")
	if at := strings.IndexByte(caret, '^'); len([]rune(line)) > 130 || []rune(line)[at] != ')' {
		t.Errorf("a long line is shown as %s", e.Caret())
	}
}
