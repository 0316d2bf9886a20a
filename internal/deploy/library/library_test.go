package library_test

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/drover-project/drover/internal/deploy/expression"
	"github.com/drover-project/drover/internal/deploy/library"
	"github.com/drover-project/drover/internal/deploy/state"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/yaql/yaqljson"
)

const good = `
version: 1.2.0
functions:
  withRole: {params: [nodes, role], value: '$nodes.where($role in $.roles).uid'}
  twice: {params: [x], value: $x * 2}
  nothing: {value: 'null'}
`

func TestFunctionsOfFiles(t *testing.T) {
	l, err := library.Read(library.File{Path: "a.yaml", Text: []byte(good)})
	if err != nil || strings.Join(l.Versions, ";") != "a.yaml 1.2.0" {
		t.Fatal(err, l)
	}
	language, err := expression.NewLanguage(l.Functions...)
	if err != nil {
		t.Fatal(err)
	}
	space := state.NewSpace()
	view := func(text string) *state.View {
		v, err := yaqljson.Decode([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return space.View(nil, space.NewPart(v))
	}
	now := view(`{"nodes": [{"uid": 1, "roles": ["web"]}, {"uid": 2, "roles": ["db"]}], "n": 4}`)
	old := view(`{"nodes": [{"uid": 1, "roles": ["web"]}, {"uid": 3, "roles": ["db"]}], "n": 4}`)
	e, err := language.Evaluator(space)
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"withRole($.nodes, web)":          "[1]",
		"changed(withRole($.nodes, web))": "false",
		"changed(withRole($.nodes, db))":  "true",
		"twice($.n) + twice(1)":           "10",
		"nothing()":                       "null",
		"$.nodes.select(twice($.uid))":    "[2,4]",
	} {
		for range 2 { // the second time it is remembered
			x, err := language.Compile(text)
			if err != nil {
				t.Fatal(err)
			}
			r, err := e.Eval(t.Context(), x, expression.Surroundings{New: now, Old: old, Node: now, Common: now})
			if err != nil {
				t.Fatal(text, err)
			}
			got, err := yaqljson.Encode(r.Value)
			if err != nil || strings.ReplaceAll(string(got), " ", "") != want {
				t.Errorf("%s is %s (%v), want %s", text, got, err, want)
			}
		}
	}
}

func TestBadFunctions(t *testing.T) {
	for text, want := range map[string]string{
		"[]":                            "f:1:1: this must be a map with version and functions",
		"functions: {}":                 "f:1:1: a file of functions has a version",
		"{version: 1, functions: {}}":   "f:1:11: the version of a file of functions looks like 1.2.0",
		"{version: 1.0.0, extra: {}}":   `f:1:18: the key "extra" means nothing here`,
		"version: 1.0.0\nfunctions: []": "a file of functions has a version, and functions by their names",
		"version: 1.0.0\nfunctions:\n  len: {value: '1'}":                      "f:3:3: len is a function of the language",
		"version: 1.0.0\nfunctions:\n  changed: {value: '1'}":                  "f:3:3: changed is a function of the language",
		"version: 1.0.0\nfunctions:\n  a-b: {value: '1'}":                      `f:3:3: the name "a-b" of a function`,
		"version: 1.0.0\nfunctions:\n  a: {params: [x, x], value: $x}":         "f:3:19: a parameter is a name",
		"version: 1.0.0\nfunctions:\n  a: {params: x, value: $x}":              "params must be a list of names",
		"version: 1.0.0\nfunctions:\n  a: {params: [x]}":                       "f:3:6: the function a needs a value",
		"version: 1.0.0\nfunctions:\n  a: {params: [x], value: '$x +'}":        "YaqlGrammarException",
		"version: 1.0.0\nfunctions:\n  a: {params: [x], value: changed($x)}":   "f:3:27: NoFunctionRegisteredException: the function changed does not depend on arguments alone",
		"version: 1.0.0\nfunctions:\n  a: {params: [x], value: $x + random()}": "the function random does not depend on arguments alone",
		"version: 1.0.0\nfunctions:\n  a: {value: now()}":                      "the function now does not depend on arguments alone",
		"version: 1.0.0\nfunctions:\n  a: {value: '1', result: 2}":             `the key "result" means nothing here; there are params and value`,
	} {
		if _, err := library.Read(library.File{Path: "f", Text: []byte(text)}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	if _, err := library.Read(library.File{Path: "a", Text: []byte(good)}, library.File{Path: "b", Text: []byte(good)}); err == nil ||
		!strings.Contains(err.Error(), "b:4:3: the function withRole is there already, at a:4:3") {
		t.Errorf("the same function twice: %v", err)
	}
}

func TestDirectories(t *testing.T) {
	l, err := library.ReadDir(fstest.MapFS{"b.yaml": {Data: []byte("version: 2.0.0\nfunctions: {b: {value: '1'}}")}, "a.yaml": {Data: []byte(good)},
		"README": {Data: []byte("not read")}, "c.yml": {Data: []byte("version: 2.1.0\nfunctions: {c: {value: '1'}}")}, "d.yyml": {Data: []byte("not read")}, "e.yxml": {Data: []byte("not read")}})
	if err != nil || strings.Join(l.Versions, ";") != "a.yaml 1.2.0;b.yaml 2.0.0;c.yml 2.1.0" || len(l.Functions) != 5 {
		t.Errorf("%v, %+v", err, l)
	}
	if _, err := library.ReadDir(fstest.MapFS{}); !fault.Is(err, fault.NotFound) {
		t.Errorf("an empty directory: %v", err)
	}
	if l, err := library.ReadDir(nil); err != nil || len(l.Functions) > 0 {
		t.Errorf("no directory: %v, %+v", err, l)
	}
}
