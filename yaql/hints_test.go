package yaql_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/drover-project/drover/yaql"
)

// TestSlipsOfOtherLanguages has what people write who come from other languages: each is answered with what is written here, and
// with no name that only the reference's authors know.
func TestSlipsOfOtherLanguages(t *testing.T) {
	engine := newEngine(t)
	data := map[string]any{"a": int64(1), "list": []any{map[string]any{"b": int64(2)}}, "none": nil}
	for text, want := range map[string]string{
		"$.a == 1":              "equality is a single =",
		"$.a === 1":             "equality is a single =",
		"$.a = 1 && $.b":        "write and",
		"$.a = 1 || $.b":        "write or",
		"!$.a":                  "write not",
		"$.a <> 1":              "write !=",
		"$.a % 2":               "write mod",
		"$.a ** 2":              "write pow(base, exponent)",
		"$.a ? 1 : 2":           "write switch(condition => value, true => other)",
		"{a: 1}":                "the entries of a map are key => value",
		"{a = 1}":               "the entries of a map are key => value",
		"$.a = 'x":              "the text that begins here does not end: a ' is missing",
		`$.a = "x`:              `the text that begins here does not end: a " is missing`,
		"not($.a)":              "it is an operator: put a space before the bracket",
		"'a' + 1":               "it was given a string and an integer; there is number + number, string + string, ",
		"$.a + x":               "it was given an integer and a string; x is a string, as every bare word is; there is number + number, ",
		"$.a + $.list":          "it was given an integer and a list; there is ",
		"-'a'":                  "it was given a string; there is - number, - timespan",
		"$.a > $.list":          "it was given an integer and a list; there is number > number, ",
		"foo.bar":               "foo is a string, as every bare word is; $.foo is the value of a key",
		"$.none.x":              "the value before .x is null",
		"$.list.b.c.toList()":   "the value before .c is an integer",
		"$.a.b":                 "the value before .b is an integer",
		"$.list[a]":             "there is list[integer], map[key], map[key, default]",
		"$.a.(b)":               "behind a dot stands the name of a key or property, or a call",
		"$.a -> $":              "before -> stands a call of let, with, def or unpack",
		"1 - (1 / 0)":           "division",
		"[1, 2":                 "expected an operator, ',' or ']'",
		"$.nodes.where($.a = )": "expected a value",
	} {
		x, err := engine.Compile(text)
		if err == nil {
			_, err = x.Eval(t.Context(), data)
		}
		e, ok := errors.AsType[*yaql.Error](err)
		if !ok || !strings.HasPrefix(e.Hint, want) && (want != "division" || !strings.Contains(e.Message, want)) {
			t.Errorf("%s: %v, want %q", text, err, want)
			continue
		}
		if strings.ContainsAny(err.Error(), "#*") && !strings.Contains(text, "*") {
			t.Errorf("%s: %v tells a name that nobody writes", text, err)
		}
	}
}

// TestPlainMessages: the message is the reference's, and the plain one says the same in words of the language.
func TestPlainMessages(t *testing.T) {
	for message, want := range map[string]string{
		`No function "#operator_+" matches supplied arguments`:       `No operator "+" matches supplied arguments`,
		`No function "#unary_operator_-" matches supplied arguments`: `No operator "-" matches supplied arguments`,
		`No function "#operator_in" matches supplied arguments`:      `No operator "in" matches supplied arguments`,
		`Unknown function "#property#x y"`:                           `Unknown property "x y"`,
		`No function "#indexer" matches supplied arguments`:          `No operator "[]" matches supplied arguments`,
		`No function "#map" matches supplied arguments`:              `No map matches supplied arguments`,
		`No function "*equal" matches supplied arguments`:            `No operator "=" matches supplied arguments`,
		`Unknown function "operator"`:                                `Unknown function "operator"`,
	} {
		if got := (&yaql.Error{Message: message}).Plain(); got != want {
			t.Errorf("%s became %s, want %s", message, got, want)
		}
	}
}

// TestDoubts: constants of other languages are texts, which is right where they are names.
func TestDoubts(t *testing.T) {
	engine := newEngine(t)
	for text, want := range map[string]string{
		"$.a = False and $.b != None":     "[{6 False is a string here; the constant is false} {23 None is a string here; the constant is null}]",
		"[True, nil].where($ = x)":        "[{1 True is a string here; the constant is true} {7 nil is a string here; the constant is null}]",
		"$.True + $?.None + f(True => 1)": "[]",
		"{False => True}":                 "[{10 True is a string here; the constant is true}]",
		"'False' = false":                 "[]",
		"$.get(None)":                     "[{6 None is a string here; the constant is null}]",
	} {
		x, err := engine.Compile(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(x.Doubts()); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}
