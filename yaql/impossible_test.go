package yaql_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/drover-project/drover/yaql"
)

// TestImpossibleCalls are found where they stand, all of them, and nothing else.
func TestImpossibleCalls(t *testing.T) {
	engine, err := yaql.New()
	if err != nil {
		t.Fatal(err)
	}
	own, err := yaql.NewFunction("own", "a: integer, b: string = x", func(*yaql.Context, []any) (any, error) { return nil, nil })
	if err != nil {
		t.Fatal(err)
	}
	c := engine.NewContext()
	c.Register(own)
	for source, want := range map[string][]string{
		"1 + $.x":                        nil,
		"$.select($.y).len()":            nil,
		"lenn($.x) + $.selekt($.y)":      {`0 Unknown function "lenn"; did you mean len?`, `14 Unknown method "selekt"; did you mean select?`},
		"$.len(1, 2)":                    {`2 No method "len" matches supplied arguments; there is len(string: string), len(sequence: list), len(dict: map), len(set: set), len(collection: iterator)`},
		"selectt(1)":                     {`0 Unknown function "selectt"`},
		"select($, $.x)":                 {`0 Unknown function "select"; it is a method: value.select(...)`},
		"$.range(3)":                     {`2 Unknown method "range"; it is a function: range(...)`},
		"[own(1), own(1, b => y)]":       nil,
		"own()":                          {`0 No function "own" matches supplied arguments; there is own(a: integer, b: string = 'x')`},
		"own(1, 2, 3)":                   {`0 No function "own" matches supplied arguments; there is own(a: integer, b: string = 'x')`},
		"own(1, c => 1)":                 {`0 No function "own" matches supplied arguments; there is own(a: integer, b: string = 'x')`},
		"own(word)":                      {`0 No function "own" matches supplied arguments; there is own(a: integer, b: string = 'x')`},
		"def(my_own, $ + 1) -> myOwn($)": nil,
		"not($.x)":                       {`0 Unknown function "not"; it is an operator: put a space before the bracket`},
		"switch($.x = 1 => bad(), true => $?.worse())": {`18 Unknown function "bad"`, `36 Unknown method "worse"`},
		"$.where($.x.bad() and worse())":               {`12 Unknown method "bad"`, `22 Unknown function "worse"`},
	} {
		x, err := engine.Compile(source)
		if err != nil {
			t.Errorf("%s: %v", source, err)
			continue
		}
		var got []string
		for _, e := range x.Impossible(c) {
			text := fmt.Sprint(e.Offset, " ", e.Message)
			if e.Hint != "" {
				text += "; " + e.Hint
			}
			got = append(got, text)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", source, got, want)
		}
	}
}

func TestComparisonsWithQuotedConstants(t *testing.T) {
	engine, err := yaql.New()
	if err != nil {
		t.Fatal(err)
	}
	x, err := engine.Compile("$.a = 'False' and ($.b != \"None\" or $.c in ['True'] or $.d = 'off' or $.e = False)")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := fmt.Sprint(x.Likened()), "[{6 'False' is a string; the constant is false} {26 'None' is a string; the constant is null}]"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
