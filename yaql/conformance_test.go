package yaql_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/testkit"
	"github.com/drover-project/drover/yaql"
	"github.com/drover-project/drover/yaql/yaqljson"
)

type conformanceCase struct {
	ID      string          `json:"id"`
	Expr    string          `json:"expr"`
	Data    json.RawMessage `json:"data"`
	Options json.RawMessage `json:"options"`
	Expect  struct {
		Value json.RawMessage `json:"value"`
		Error string          `json:"error"`
	} `json:"expect"`
}

// conformanceCases reads the corpus.
func conformanceCases(t testing.TB) []conformanceCase {
	t.Helper()
	return readCases(t, testkit.Conformance(t, "yaql-conformance.jsonl"))
}

func readCases(t testing.TB, path string) []conformanceCase {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	var cases []conformanceCase
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<22)
	for lines.Scan() {
		var c conformanceCase
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		cases = append(cases, c)
	}
	if err := lines.Err(); err != nil || len(cases) == 0 {
		t.Fatalf("%d cases, error %v", len(cases), err)
	}
	return cases
}

// knownDifferences reads the ids of the cases that the differences page admits.
func knownDifferences(t *testing.T) map[string]bool {
	t.Helper()
	page, err := os.ReadFile("../docs/yaql/differences.md")
	if err != nil {
		t.Fatal(err)
	}
	ids := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^\| (pub-\d+) \| \S`).FindAllStringSubmatch(string(page), -1) {
		ids[m[1]] = true
	}
	return ids
}

// TestYaqlConformance runs every case of the corpus, both as it is compiled for a context without changes to the
// library and as it is compiled for one with changes.
func TestYaqlConformance(t *testing.T) {
	known := knownDifferences(t)
	cases := conformanceCases(t)
	for _, mode := range []struct {
		name  string
		touch bool
	}{{"compiled", false}, {"by name", true}} {
		t.Run(mode.name, func(t *testing.T) {
			passed := 0
			for _, c := range cases {
				msg := runConformance(c, mode.touch)
				switch {
				case msg == "":
					passed++
					if known[c.ID] {
						t.Errorf("%s passes and is still on the differences page", c.ID)
					}
				case !known[c.ID]:
					t.Errorf("%s: %s: %s", c.ID, c.Expr, msg)
				}
			}
			t.Logf("yaql-conformance.jsonl: %d of %d cases passed, %d known differences", passed, len(cases), len(known))
		})
	}
}

// TestEdgesOfTheReference runs unusual expressions of our own, most of them with options, whose outcomes the
// reference gave.
func TestEdgesOfTheReference(t *testing.T) {
	for _, c := range readCases(t, "testdata/edge.jsonl") {
		for _, touch := range []bool{false, true} {
			if msg := runConformance(c, touch); msg != "" {
				t.Errorf("%s: %s with %s, by name %v: %s", c.ID, c.Expr, c.Options, touch, msg)
			}
		}
	}
}

// runConformance returns what is wrong with the outcome of a case.
func runConformance(c conformanceCase, touch bool) string {
	got, err := evalConformance(c, touch)
	var e *yaql.Error
	switch {
	case err != nil && !errors.As(err, &e):
		return "not of the right type: " + err.Error()
	case err != nil && c.Expect.Error == "":
		return fmt.Sprintf("unexpected error %s: %v", e.Class, err)
	case err != nil && e.Class != c.Expect.Error:
		return fmt.Sprintf("%s: %v, want %s", e.Class, err, c.Expect.Error)
	case err != nil:
		return ""
	case c.Expect.Error != "":
		return fmt.Sprintf("got %s, want %s", got, c.Expect.Error)
	}
	if want := canonical(c.Expect.Value); canonical(got) != want {
		return fmt.Sprintf("got %s, want %s", got, want)
	}
	return ""
}

func evalConformance(c conformanceCase, touch bool) ([]byte, error) {
	options, err := yaqljson.ParseOptions(c.Options)
	if err != nil {
		return nil, err
	}
	engine, err := yaql.New(append(options.Engine, yaql.OrderedResults())...)
	if err != nil {
		return nil, err
	}
	expression, err := engine.Compile(c.Expr)
	if err != nil {
		return nil, err
	}
	data, err := yaqljson.Decode(c.Data)
	if err != nil {
		return nil, err
	}
	scope := engine.NewContext()
	for name, value := range options.Vars {
		scope.Set(name, value)
	}
	if touch {
		scope.Touch()
	}
	v, err := expression.EvalIn(context.Background(), scope, data)
	if err != nil {
		return nil, err
	}
	if options.Raw {
		return yaqljson.EncodeRaw(v)
	}
	return yaqljson.Encode(v)
}

// canonical rewrites encoded values so that equal ones have equal texts: keys are sorted and numbers kept as
// they are written.
func canonical(text []byte) string {
	d := json.NewDecoder(strings.NewReader(string(text)))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return "undecodable: " + string(text)
	}
	out, err := json.Marshal(sortedPairs(v))
	if err != nil {
		return err.Error()
	}
	return string(out)
}

// sortedPairs sorts the members of sets and the pairs of maps that are written as lists.
func sortedPairs(v any) any {
	switch x := v.(type) {
	case []any:
		for i := range x {
			x[i] = sortedPairs(x[i])
		}
	case map[string]any:
		for k := range x {
			x[k] = sortedPairs(x[k])
			if items, ok := x[k].([]any); ok && len(x) == 1 && (k == "$set" || k == "$dict") {
				slices.SortFunc(items, func(a, b any) int {
					return strings.Compare(fmt.Sprint(a), fmt.Sprint(b))
				})
			}
		}
	case json.Number:
		return canonicalNumber(x)
	}
	return v
}

// canonicalNumber writes floats in one way.
func canonicalNumber(n json.Number) any {
	if !strings.ContainsAny(n.String(), ".eE") {
		return n
	}
	f, err := n.Float64()
	if err != nil {
		return n
	}
	return map[string]float64{"float": f}
}
