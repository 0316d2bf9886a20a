package yaql_test

import (
	"context"
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/drover-project/drover/yaql"
	"github.com/drover-project/drover/yaql/yaqljson"
)

// newEngine fails the test if the options do not make an engine.
func newEngine(t testing.TB, options ...yaql.Option) *yaql.Engine {
	t.Helper()
	e, err := yaql.New(options...)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// evalText evaluates an expression and gives the result as JSON, or the class of the error after an
// exclamation mark.
func evalText(t testing.TB, e *yaql.Engine, c *yaql.Context, expr string, data any) string {
	t.Helper()
	v, err := func() (any, error) {
		x, err := e.Compile(expr)
		if err != nil {
			return nil, err
		}
		return x.EvalIn(context.Background(), c, data)
	}()
	if err != nil {
		return "!" + err.(*yaql.Error).Class //nolint:errorlint,forcetypeassert // the type is promised
	}
	text, err := yaqljson.Encode(v)
	if err != nil {
		t.Fatalf("%s: %v", expr, err)
	}
	return string(text)
}

// TestExamples evaluates the example of every function of the library.
func TestExamples(t *testing.T) {
	engine := newEngine(t, yaql.OrderedResults())
	for _, f := range engine.Functions() {
		expr, want := f.Example()
		if expr == "" {
			continue
		}
		if got := evalText(t, engine, nil, expr, nil); got != want {
			t.Errorf("%s: %s gives %s, not %s", f.Signature(), expr, got, want)
		}
	}
}

// TestFunctionsAreDescribed holds the table that help and reference pages are made of to what they need.
func TestFunctionsAreDescribed(t *testing.T) {
	internal := map[string]bool{"#iter": true}
	for _, f := range newEngine(t).Functions() {
		if f.Module() == "objects" || internal[f.Name()] {
			continue
		}
		if expr, _ := f.Example(); expr == "" {
			t.Errorf("%s has no example", f.Signature())
		}
		if !strings.HasSuffix(f.Doc(), ".") {
			t.Errorf("%s: %q is no sentence", f.Signature(), f.Doc())
		}
	}
}

// parameters finds the names of parameters in a signature.
var parameters = regexp.MustCompile(`\*{0,2}[A-Za-z_]\w*:`)

// TestTheLibraryHasTheFunctionsOfTheReference: each with its parameters, in their order; and no other.
func TestTheLibraryHasTheFunctionsOfTheReference(t *testing.T) {
	text, err := os.ReadFile("../testdata/conformance/yaql-stdlib.json")
	if err != nil {
		t.Fatal(err)
	}
	var recorded []struct{ Name, Signature, AvailableIn string }
	if err := json.Unmarshal(text, &recorded); err != nil {
		t.Fatal(err)
	}
	form := func(name, signature string) string {
		return name + " " + strings.Join(parameters.FindAllString(signature, -1), " ")
	}
	count := map[string]int{}
	for _, f := range recorded {
		if f.AvailableIn == "standard" && !strings.HasPrefix(f.Name, "#") {
			count[form(f.Name, f.Signature)]++
		}
	}
	if len(count) < 100 {
		t.Fatalf("%d functions are recorded", len(count))
	}
	for _, f := range newEngine(t).Functions() {
		if !strings.HasPrefix(f.Name(), "#") {
			count[form(f.Name(), f.Signature())]--
		}
	}
	for f, n := range count {
		switch {
		case n > 0:
			t.Errorf("%s is not here, %d times", f, n)
		case n < 0:
			t.Errorf("the reference has no %s, %d times", f, -n)
		}
	}
}
