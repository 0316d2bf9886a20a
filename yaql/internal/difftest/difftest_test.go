package difftest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/testkit"
	"github.com/drover-project/drover/yaql"
	"github.com/drover-project/drover/yaql/yaqljson"
)

// The reference is asked in batches, so that both sides work at the same time. After a number of differences more
// of them tell nothing new.
const (
	batchSize      = 200
	maxDifferences = 20
)

// address is what the reference's text of an opaque value holds, another one in each run; expressions may have
// changed the text around it.
var (
	address     = regexp.MustCompile(`(?i)0x7f[0-9a-f]{4,}`)
	punctuation = regexp.MustCompile(`[^0-9A-Za-z]+`)
)

// reference is a running Python that answers requests in order.
type reference struct {
	in  io.WriteCloser
	out *bufio.Reader
}

// startReference needs Debian's python3-yaql.
func startReference(t *testing.T) *reference {
	t.Helper()
	const python = "/usr/bin/python3"
	if err := exec.Command(python, "-c", "import collections.abc, yaql").Run(); err != nil {
		testkit.Missingf(t, "python3-yaql is not installed")
	}
	cmd := exec.CommandContext(t.Context(), python, "-B", "testdata/reference.py")
	cmd.Env = append(os.Environ(), "TZ=UTC", "PYTHONHASHSEED=0")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait()
	})
	return &reference{in, bufio.NewReaderSize(out, 1<<20)}
}

// testCase is what both engines are asked.
type testCase struct {
	Expr    string          `json:"expr"`
	Data    json.RawMessage `json:"data"`
	Options json.RawMessage `json:"options,omitempty"`
	Parse   bool            `json:"parse,omitempty"`
}

// variants are options that some of the cases are asked with; most have none.
var variants = []string{
	`{"engine":{"yaql.convertSetsToLists":true}}`, `{"engine":{"yaql.convertTuplesToLists":false}}`, `{"engine":{"yaql.limitIterators":3}}`,
	`{"engine":{"yaql.iterableDicts":true}}`, `{"engine":{"yaql.convertInputData":false}}`, `{"delegates":true}`, `{"keywordOperator":":"}`,
	`{"legacy":true}`, `{"legacy":true,"delegates":true}`, `{"context":{"no_sets":true}}`,
}

func TestAgainstTheReference(t *testing.T) {
	run(t, setting(t, "DROVER_YAQL_DIFF", 2000), func(g generator) testCase {
		if g.IntN(8) > 0 {
			return testCase{Expr: g.expression(pick(g, kinds), []string{"doc"}, 1+g.IntN(4)), Data: marshal(t, g.document())}
		}
		options := pick(g, variants)
		g.delegates, g.legacy = strings.Contains(options, "delegates"), strings.Contains(options, "legacy")
		expr := g.expression(pick(g, kinds), []string{"doc"}, 1+g.IntN(4))
		if strings.Contains(options, "keywordOperator") {
			expr = strings.ReplaceAll(expr, " => ", ": ")
		}
		return testCase{Expr: expr, Data: marshal(t, g.document()), Options: json.RawMessage(options)}
	})
}

// TestParseAgainstTheReference compares syntax trees, also of expressions with slips of the pen.
func TestParseAgainstTheReference(t *testing.T) {
	run(t, setting(t, "DROVER_YAQL_DIFF", 2000), func(g generator) testCase {
		c := testCase{Expr: g.slip(g.expression(pick(g, kinds), []string{"doc"}, 1+g.IntN(3))), Parse: true}
		if g.IntN(4) == 0 {
			c.Options = json.RawMessage(pick(g, []string{`{"delegates":true}`, `{"keywordOperator":":"}`, `{"legacy":true}`, `{"legacy":true,"delegates":true}`}))
		}
		return c
	})
}

// run asks for cases until so many agree.
func run(t *testing.T, want int, next func(generator) testCase) {
	t.Helper()
	ref := startReference(t)
	g := generator{Rand: rand.New(rand.NewPCG(uint64(setting(t, "DROVER_YAQL_SEED", 1)), 0))}
	counts := map[string]int{}
	engines := engineCache{}
	agreed := func() int { return counts["value"] + counts["error"] }
	for agreed() < want && counts["difference"] < maxDifferences {
		cases := make([]testCase, batchSize)
		for i := range cases {
			cases[i] = next(g)
		}
		compare(t, ref, engines, cases, counts)
	}
	t.Logf("%d cases agree: %d values and %d errors; %d could not be compared", agreed(), counts["value"], counts["error"], counts["skipped"])
}

func setting(t *testing.T, name string, otherwise int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// compare asks both engines for all cases.
func compare(t *testing.T, ref *reference, engines engineCache, cases []testCase, counts map[string]int) {
	t.Helper()
	sent := make(chan error, 1)
	go func() {
		encoder := json.NewEncoder(ref.in)
		for _, c := range cases {
			if err := encoder.Encode(c); err != nil {
				sent <- err
				return
			}
		}
		sent <- nil
	}()
	for _, c := range cases {
		line, err := ref.out.ReadBytes('\n')
		if err != nil {
			t.Fatalf("the reference stopped at %s: %v", c.Expr, err)
		}
		var theirs map[string]json.RawMessage
		if err := json.Unmarshal(line, &theirs); err != nil {
			t.Fatal(err)
		}
		ours := ask(t, engines, c)
		if theirs["skip"] != nil || address.Match(punctuation.ReplaceAll(line, nil)) || string(ours["error"]) == `"`+yaql.StepBudgetExceeded+`"` {
			counts["skipped"]++
			continue
		}
		if hasSet.MatchString(c.Expr) && onlyOrderDiffers(t, c.Expr, ours["value"], theirs["value"]) && !agree(t, ours, theirs) {
			counts["skipped"]++
			continue
		}
		if !agree(t, ours, theirs) {
			t.Errorf("%s\n  on %s %s\n  reference %s  ours      %s", c.Expr, c.Data, c.Options, line, show(ours))
			counts["difference"]++
			continue
		}
		for kind := range theirs {
			counts[kind]++
		}
	}
	if err := <-sent; err != nil {
		t.Fatal(err)
	}
}

// ask evaluates a case with the Go engine, in the form of the reference's answers.
func ask(t *testing.T, engines engineCache, c testCase) map[string]json.RawMessage {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	text, err := engines.evaluate(ctx, c)
	if err == nil {
		return map[string]json.RawMessage{"value": text}
	}
	fault, ok := errors.AsType[*yaql.Error](err)
	if !ok {
		t.Fatalf("%s: %v", c.Expr, err)
	}
	class, err := json.Marshal(fault.Class)
	if err != nil {
		t.Fatal(err)
	}
	return map[string]json.RawMessage{"error": class}
}

// engineCache holds an engine for each set of options.
type engineCache map[string]*yaql.Engine

func (e engineCache) engine(options yaqljson.Options) (*yaql.Engine, error) {
	if engine := e[options.Key]; engine != nil {
		return engine, nil
	}
	engine, err := yaql.New(append(options.Engine, yaql.StepBudget(1_000_000))...)
	e[options.Key] = engine
	return engine, err
}

func (e engineCache) evaluate(ctx context.Context, c testCase) ([]byte, error) {
	options, err := yaqljson.ParseOptions(c.Options)
	if err != nil {
		return nil, err
	}
	engine, err := e.engine(options)
	if err != nil {
		return nil, err
	}
	compiled, err := engine.Compile(c.Expr)
	if err != nil {
		return nil, err
	}
	if c.Parse {
		return yaqljson.Encode(compiled.Tree())
	}
	data, err := yaqljson.Decode(c.Data)
	if err != nil {
		return nil, err
	}
	value, err := compiled.Eval(ctx, data)
	if err != nil {
		return nil, err
	}
	return yaqljson.Encode(value)
}

// hasSet finds expressions that may make a list from a set. The reference leaves its order open.
var hasSet = regexp.MustCompile(`[sS]et\(|keys\(|union|differ`)

// picksByOrder finds expressions that keep some items by their place. Of a set these may be any.
var picksByOrder = regexp.MustCompile(`zip|first|last|take|limit|skip|slice|split|insert|delete|replace|\[`)

// onlyOrderDiffers reports whether two values of an expression with a set differ in what the reference leaves open.
func onlyOrderDiffers(t *testing.T, expr string, a, b []byte) bool {
	t.Helper()
	return a != nil && b != nil && (bytes.Equal(letters(t, a), letters(t, b)) || picksByOrder.MatchString(expr) && kindOf(a) == kindOf(b))
}

// kindOf is how a value begins; all numbers begin alike.
func kindOf(value []byte) byte {
	if strings.IndexByte("-0123456789", value[0]) >= 0 {
		return '0'
	}
	return value[0]
}

// letters are the sorted bytes of a value, equal for values that differ in order only, however their characters are escaped.
func letters(t *testing.T, value []byte) []byte {
	t.Helper()
	sorted := bytes.ReplaceAll([]byte(canonical(t, value)), []byte(" "), nil)
	slices.Sort(sorted)
	return sorted
}

// TestOrderIsNoDifference compares values of which one has its letters escaped, as Python writes them.
func TestOrderIsNoDifference(t *testing.T) {
	for _, c := range []struct {
		a, b string
		same bool
	}{
		{`["é", 1]`, `[1, "\u00e9"]`, true}, {`"frozenset({1, 'é'})"`, `"frozenset({'\u00e9', 1})"`, true}, {`["e"]`, `["\u00e9"]`, false}, {`[1.50]`, `[1.5]`, true},
	} {
		if got := onlyOrderDiffers(t, "set($)", []byte(c.a), []byte(c.b)); got != c.same {
			t.Errorf("%s and %s differ in order only: %t", c.a, c.b, got)
		}
	}
}

func agree(t *testing.T, a, b map[string]json.RawMessage) bool {
	t.Helper()
	for _, kind := range []string{"value", "error"} {
		if (a[kind] == nil) != (b[kind] == nil) || a[kind] != nil && canonical(t, a[kind]) != canonical(t, b[kind]) {
			return false
		}
	}
	return true
}

// canonical is the text of a value in which the order of keys, sets and maps does not count.
func canonical(t *testing.T, text []byte) string {
	t.Helper()
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		t.Fatal(err)
	}
	sorted, err := json.Marshal(unordered(t, value))
	if err != nil {
		t.Fatal(err)
	}
	return string(sorted)
}

// unordered sorts the contents of sets and maps, and gives floats one spelling.
func unordered(t *testing.T, value any) any {
	t.Helper()
	switch v := value.(type) {
	case json.Number:
		if f, err := v.Float64(); err == nil && bytes.ContainsAny([]byte(v), ".eE") {
			return map[string]any{"float": f}
		}
	case []any:
		for i := range v {
			v[i] = unordered(t, v[i])
		}
	case map[string]any:
		for key := range v {
			v[key] = unordered(t, v[key])
			if list, ok := v[key].([]any); ok && (key == "$set" || key == "$dict") {
				slices.SortFunc(list, func(a, b any) int { return bytes.Compare(marshal(t, a), marshal(t, b)) })
			}
		}
	}
	return value
}

func marshal(t *testing.T, value any) []byte {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func show(answer map[string]json.RawMessage) string {
	text, err := json.Marshal(answer)
	if err != nil {
		return err.Error()
	}
	return string(text)
}
