package reference

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drover-project/drover/yaql"
	"github.com/drover-project/drover/yaql/yaqljson"
)

var update = flag.Bool("update", false, "write docs/yaql/functions.md anew")

var docs = filepath.Join("..", "..", "..", "docs", "yaql")

func engine(t *testing.T, options ...yaql.Option) *yaql.Engine {
	t.Helper()
	e, err := yaql.New(append(options, yaql.OrderedResults())...)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestPageIsUpToDate(t *testing.T) {
	var page bytes.Buffer
	if err := Write(&page, engine(t, yaql.AllowDelegates()).Functions()); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(docs, "functions.md")
	if *update {
		if err := os.WriteFile(file, page.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	old, err := os.ReadFile(file)
	if err != nil || !bytes.Equal(old, page.Bytes()) {
		t.Errorf("%s is out of date (%v); run this test with -update", file, err)
	}
}

func TestEveryFunctionIsExplained(t *testing.T) {
	examples := map[string]bool{}
	functions := engine(t).Functions()
	for _, f := range functions {
		expression, _ := f.Example()
		examples[f.Name()] = examples[f.Name()] || expression != ""
	}
	for _, f := range functions {
		if f.Doc() == "" {
			t.Errorf("%s has no text", f.Signature())
		}
		if !examples[f.Name()] && f.Name() != "#iter" { // which no expression can call
			t.Errorf("%s has no example", f.Signature())
		}
	}
}

// TestExamples runs every line with an arrow on the pages, on the document of the page about the language.
func TestExamples(t *testing.T) {
	e := engine(t, yaql.AllowDelegates())
	var data any
	count := 0
	for _, name := range []string{"language.md", "functions.md"} {
		text, err := os.ReadFile(filepath.Join(docs, name))
		if err != nil {
			t.Fatal(err)
		}
		if _, rest, found := strings.Cut(string(text), "```json\n"); found {
			document, _, _ := strings.Cut(rest, "```")
			if data, err = yaqljson.Decode([]byte(document)); err != nil {
				t.Fatal(err)
			}
		}
		for _, line := range examples(string(text)) {
			expression, want, _ := strings.Cut(line, "==>")
			check(t, e, data, strings.TrimSpace(expression), strings.TrimSpace(want))
			count++
		}
	}
	if count < 100 {
		t.Errorf("only %d examples", count)
	}
}

// examples returns the lines with an arrow in the blocks of a page.
func examples(page string) []string {
	var lines []string
	inside := false
	for line := range strings.Lines(page) {
		switch {
		case strings.HasPrefix(line, "```"):
			inside = strings.TrimSpace(line) == "```yaql"
		case inside && strings.Contains(line, "==>"):
			lines = append(lines, line)
		}
	}
	return lines
}

func check(t *testing.T, e *yaql.Engine, data any, expression, want string) {
	t.Helper()
	got := run(t, e, data, expression)
	if strings.HasPrefix(want, "!") || strings.HasPrefix(got, "!") {
		if got != want {
			t.Errorf("%s gives %s, want %s", expression, got, want)
		}
		return
	}
	var a, b bytes.Buffer
	if json.Compact(&a, []byte(got)) != nil || json.Compact(&b, []byte(want)) != nil || a.String() != b.String() {
		t.Errorf("%s gives %s, want %s", expression, got, want)
	}
}

// run returns the result as JSON, or the class of the error after an exclamation mark.
func run(t *testing.T, e *yaql.Engine, data any, expression string) string {
	t.Helper()
	compiled, err := e.Compile(expression)
	if err != nil {
		return class(err)
	}
	result, err := compiled.Eval(t.Context(), data)
	if err != nil {
		return class(err)
	}
	text, err := yaqljson.Encode(result)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func class(err error) string {
	if fault, ok := errors.AsType[*yaql.Error](err); ok {
		return "!" + fault.Class
	}
	return "!" + err.Error()
}
