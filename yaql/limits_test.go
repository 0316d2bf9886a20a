package yaql_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/drover-project/drover/yaql"
)

// hostile are expressions that would run for ever, take all memory or nest without end.
var hostile = []string{
	"sequence().len()",
	"1.repeat().toList()",
	"[1].cycle().where(false).first()",
	"generate(1, true, $ + 1).last()",
	"generateMany(1, [$, $]).len()",
	"sequence().join(sequence(), false, $).first()",
	"sequence().select($).where($ < 0).any()",
	"sequence().all(true)",
	"sequence().sum()",
	"sequence().max()",
	"sequence().orderBy($).first()",
	"sequence().toDict($)",
	"sequence().groupBy($)",
	"sequence().aggregate($1 + $2)",
	"sequence().distinct().len()",
	"sequence().contains(-1)",
	"-1 in sequence()",
	"sequence().indexOf(-1)",
	"sequence().select(abc).join(x)",
	"sequence().zip(sequence()).len()",
	"sequence().takeWhile(true).len()",
	"sequence().skipWhile(true).first()",
	"sequence().skip(9223372036854775807).first()",
	"sequence().slice(9223372036854775807).first()",
	"sequence().flatten().len()",
	"sequence().enumerate().len()",
	"sequence().accumulate($1).len()",
	"sequence().reverse()",
	"sequence().memorize().len()",
	"sequence().insert(9223372036854775807, 1).len()",
	"sequence().delete(0, -1).len()",
	"list(sequence())",
	"set(sequence())",
	"dict(sequence().select([$, $]))",
	"sequence().unpack()",
	"def(f, f($)) -> f(1)",
	"def(f, f($ + 1) + 1) -> f(1)",
	"def(f, [f($)]) -> f(1)",
	"def(f, $ and f($)) -> f(1)",
	"def(f, switch(true => f(1))) -> f(1)",
	"def(f, f($ - 1) + f($ - 2)) -> f(60)",
	"def(f, $.select(f([$]))) -> f([1])",
	"range(100000000).toList()",
	"[0] * 60000000 + [0] * 60000000 + [0] * 60000000",
	"a * 200000000 + a * 200000000",
	"(a * 200000000).replace(a, bb)",
	"range(64).aggregate($1 + $1, abcdefgh).len()",
	"range(64).aggregate($1 + $1, [1]).len()",
	"range(64).aggregate([$1, $1], 1)",
	"range(64).aggregate([$1, $1], 1) = range(64).aggregate([$1, $1], 1)",
	"str(range(64).aggregate([$1, $1], 1))",
	"set(range(64).aggregate([$1, $1], 1))",
	"range(64).aggregate({a => $1, b => $1}, 1)",
	"range(1000000).aggregate([$1], 1)",
	"set(range(1000000).aggregate([$1], 1))",
	"range(1000000).aggregate([$1], 1) = range(1000000).aggregate([$1], 1)",
	"str(range(1000000).aggregate([$1], 1))",
	"range(1000000).aggregate([$1], 1).flatten()",
	"range(1000000).aggregate({a => $1}, {}).mergeWith(range(1000000).aggregate({a => $1}, {}))",
	"range(1000000).aggregate($1.select($), [1]).first()",
	"range(1000000).aggregate($1 + [$2].where(true), [1]).first()",
	"range(40).aggregate($1 * $1, 3)",
	"pow(10, 10000000)",
	"pow(3, pow(3, pow(3, 3)))",
	"shiftBitsLeft(1, 10000000000)",
	"str(pow(7, 1000000))",
	"(a * 40) =~ '(a+)+b'",
	"regex('(a|a)*b').matches(a * 64)",
	"(abc * 10000).split(b).select($.toUpper()).join(abc * 10000)",
}

func TestHostileExpressionsAreStopped(t *testing.T) {
	engine := newEngine(t, yaql.StepBudget(300_000), yaql.MemoryQuota(64<<20))
	unbounded := newEngine(t, yaql.Unbounded())
	for _, expr := range hostile {
		x, err := engine.Compile(expr)
		if err != nil {
			t.Errorf("%s: %v", expr, err)
			continue
		}
		start := time.Now()
		_, err = x.Eval(t.Context(), nil)
		if took := time.Since(start); took > time.Minute { // with the race detector on a busy machine; unstopped they take for ever
			t.Errorf("%s took %v", expr, took)
		}
		if err != nil && err.(*yaql.Error).Class == "" { //nolint:errorlint,forcetypeassert // the type is promised
			t.Errorf("%s: error without a class: %v", expr, err)
		}
		if strings.HasPrefix(expr, "sequence()") && err == nil {
			t.Errorf("%s came to an end", expr)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	for _, expr := range hostile[:12] {
		_, err := mustCompile(t, unbounded, expr).Eval(ctx, nil)
		if err == nil || err.(*yaql.Error).Class != yaql.DeadlineExceeded { //nolint:errorlint,forcetypeassert // the type is promised
			t.Errorf("%s gave %v, want a passed deadline", expr, err)
		}
	}
}

// TestBoundedUnlessToldOtherwise evaluates what costs more than a stranger may be given.
func TestBoundedUnlessToldOtherwise(t *testing.T) {
	const stopped = "!StepBudgetExceededException"
	for _, c := range []struct {
		expr    string
		options []yaql.Option
		want    string
	}{
		{"range(3000000000).toList().len() > 0", nil, stopped},
		{"(x * 170000000 + y) + (x * 170000000 + z)", nil, stopped},
		{"let(x => a * 90000000) -> range(20).select($x.toUpper()).toList().len()", nil, stopped},
		{"let(x => a * 50000000) -> range(100).select($x.len()).sum()", nil, stopped},
		{"let(x => a * 9000000, y => a * 9000000) -> range(100).where($x = $y).len()", nil, stopped},
		{"let(d => dict(range(10000).select([$, $]))) -> range(1000).select($d.set(a, 1)).len()", nil, stopped},
		{"let(x => a * 9000000) -> str([$x] * 10000).len()", nil, "!MemoryQuotaExceededException"},
		{"let(x => a * 9000000) -> set([$x] * 10000).len()", nil, "!MemoryQuotaExceededException"},
		{"range(100000).select(shiftBitsLeft(1, 4000000)).len()", nil, stopped},
		{"let(x => list(range(10000))) -> range(10000).where($x = range(10000).toList()).len()", nil, stopped},
		{"let(x => range(100000).toSet()) -> range(1000).select($x.first()).sum()", nil, stopped},
		{"let(x => range(10000).select(str($)).toList()) -> range(10).select($x.join(' ').len()).sum()", nil, "488890"},
		{"([0] * 4900000).len()", nil, "4900000"},
		{"([0] * 5100000).len()", nil, stopped},
		{"([0] * 5100000).len()", []yaql.Option{yaql.Unbounded()}, "5100000"},
		{"([0] * 5100000).len()", []yaql.Option{yaql.StepBudget(0)}, "5100000"},
		{"([0] * 5100000).len()", []yaql.Option{yaql.ReferenceDefaults()}, "5100000"},
		{"range(200).len()", []yaql.Option{yaql.Unbounded(), yaql.StepBudget(100)}, stopped},
		{`("a" * 3000000) =~ ("a" * 6000000)`, nil, stopped},
		{`now().format("%1024a" * 300000).len()`, []yaql.Option{yaql.MemoryQuota(1 << 20)}, "!MemoryQuotaExceededException"},
		{`datetime("1" * 4000000, "")`, nil, "!ParserError"},
		{"range(200).toList()", []yaql.Option{yaql.LimitIterators(100), yaql.MemoryQuota(100), yaql.Unbounded(), yaql.LimitIterators(100)}, "!CollectionTooLargeException"},
	} {
		if got := evalText(t, newEngine(t, c.options...), nil, c.expr, nil); got != c.want {
			t.Errorf("%s with %d options gives %.60s, not %s", c.expr, len(c.options), got, c.want)
		}
	}
}

func TestDeepTexts(t *testing.T) {
	engine := newEngine(t)
	const n = 100_000
	for _, text := range []string{
		strings.Repeat("(", n) + "1" + strings.Repeat(")", n),
		strings.Repeat("[", n) + strings.Repeat("]", n),
		strings.Repeat("-", n) + "1",
		strings.Repeat("not ", n) + "1",
		"1" + strings.Repeat(" + 1", n),
		"$" + strings.Repeat(".a", n),
		"$" + strings.Repeat("[0]", n),
		strings.Repeat("let() -> ", n) + "1",
		strings.Repeat("f(", n) + strings.Repeat(")", n),
		strings.Repeat("{a => ", n) + "1" + strings.Repeat("}", n),
	} {
		if _, err := engine.Compile(text); err == nil || err.(*yaql.Error).Class != yaql.RecursionError { //nolint:errorlint,forcetypeassert // the type is promised
			t.Errorf("%.20s... gave %.100v", text, err)
		}
	}
	deep := "1" + strings.Repeat(" + 1", 3000)
	if got := evalText(t, engine, nil, deep, nil); got != "3001" {
		t.Errorf("3000 additions give %s", got)
	}
	if got := evalText(t, engine, nil, "def(f, switch($ = 0 => 0, true => 1 + f($ - 1))) -> f(2000)", nil); got != "2000" {
		t.Errorf("2000 nested calls give %s", got)
	}
	if got := evalText(t, newEngine(t, yaql.DepthLimit(100)), nil, "def(f, switch($ = 0 => 0, true => 1 + f($ - 1))) -> f(200)", nil); got != "!RecursionError" {
		t.Errorf("a depth limit of 100 gives %s", got)
	}
}

func TestStepBudget(t *testing.T) {
	engine := newEngine(t, yaql.StepBudget(100))
	for expr, want := range map[string]string{
		"range(50).len()": "50", "range(200).len()": "!StepBudgetExceededException", "[1, 2] + [3]": "[1,2,3]",
	} {
		if got := evalText(t, engine, nil, expr, nil); got != want {
			t.Errorf("%s gives %s, not %s", expr, got, want)
		}
	}
}

func TestIteratorLimitOnHostMaps(t *testing.T) {
	engine := newEngine(t, yaql.LimitIterators(2))
	for _, c := range []struct {
		data any
		want string
	}{
		{map[string]any{"a": 1, "b": []any{1, 2}}, `{"a":1,"b":[1,2]}`},
		{map[string]any{"a": 1, "b": 2, "c": 3}, "!CollectionTooLargeException"},
		{map[string]any{"a": []any{1, 2, 3}}, "!CollectionTooLargeException"},
		{[]any{map[string]any{"a": map[string]any{"a": 1, "b": 2, "c": 3}}}, "!CollectionTooLargeException"},
	} {
		if got := evalText(t, engine, nil, "$", c.data); got != c.want {
			t.Errorf("%v gives %s, not %s", c.data, got, c.want)
		}
	}
}

func TestCustomFinalizer(t *testing.T) {
	engine := newEngine(t, yaql.Finalizer(func(v any) (any, error) { return []any{v}, nil }))
	if got := evalText(t, engine, nil, "5", nil); got != "[5]" {
		t.Errorf("got %s", got)
	}
}

func TestLibraryWithoutModules(t *testing.T) {
	engine := newEngine(t, yaql.Without("math", "regex"))
	for expr, want := range map[string]string{
		"1 + 1": "!NoMatchingFunctionException", "a + b": `"ab"`, "abs(1)": "!NoFunctionRegisteredException", "a =~ b": "!NoFunctionRegisteredException",
		"-1": "!NoMatchingFunctionException", "2 < 3": "!NoMatchingFunctionException", "a < b": "true", "[1, 2].max()": "!NoFunctionRegisteredException",
	} {
		if got := evalText(t, engine, nil, expr, nil); got != want {
			t.Errorf("%s gives %s, not %s", expr, got, want)
		}
	}
}

// These went on for long after every limit.
func TestLimitsHoldInsideOneCall(t *testing.T) {
	for expr, want := range map[string]string{
		"pow(pow(3, 12000), pow(3, 12000), pow(7, 12000))": yaql.StepBudgetExceeded,
		"regex('a').replace('a' * 300000, 'b' * 3000)":     yaql.MemoryQuotaExceededException,
		"regex('a').replaceBy('a' * 300000, 'b' * 3000)":   yaql.MemoryQuotaExceededException,
		// 8,000 instructions for each of 750,000 characters.
		"regex('[ab]*a' + '[ab]{1000}' * 8 + 'c').search('ab' * 375000)":       yaql.StepBudgetExceeded,
		"regex('[ab]*a' + '[ab]{1000}' * 8 + 'c').matches('ab' * 375000)":      yaql.StepBudgetExceeded,
		"('ab' * 375000) =~ ('[ab]*a' + '[ab]{1000}' * 8 + 'c')":               yaql.StepBudgetExceeded,
		"range(300).any(('ab' * 2000) =~ ('[ab]*a' + '[ab]{1000}' * 8 + 'c'))": yaql.StepBudgetExceeded,
	} {
		budget := int64(100_000)
		if want == yaql.MemoryQuotaExceededException { // a search that the machine holds up is paid for by the time that it took
			budget *= 1000
		}
		err := evalError(t, expr, yaql.StepBudget(budget), yaql.MemoryQuota(1_000_000), yaql.LimitIterators(1000))
		var e *yaql.Error
		if !errors.As(err, &e) || e.Class != want {
			t.Errorf("%s: %v", expr, err)
		}
	}
}

// The quota is for each value alone, by the sizes that CPython gives: it lets a value of just that size through,
// and none that is a byte larger.
func TestQuotaIsExact(t *testing.T) {
	for expr, size := range map[string]int64{
		"'a' * 1000":                      49 + 1000,
		"'ä' * 100":                       49 + 100*25, // the header of a wide string counts each time
		"$ + 'b'":                         49 + 2,
		"'abc'.replace(b, 'x' * 100)":     49 + 102,
		"regex('a').replace('a' * 9, bb)": 49 + 18,
		"','.join(['a' * 50, 'b' * 50])":  49 + 101,
		"pow(2, 3000)":                    24 + 4*101, // digits of 30 bits
		"[abc] * 30":                      56 + 8*33,  // with room to grow, as every list of results
		"range(100).toList()":             56 + 8*112,
		"range(100).toList().len()":       56 + 8*100, // on the way
		"range(100).distinct().len()":     216 + 16*512,
		"range(100).toSet()":              216 + 16*512, // hash tables of 8, 32, 128 ... places
	} {
		for quota, want := range map[int64]string{size: "", size - 1: yaql.MemoryQuotaExceededException} {
			x, err := engineWith(t, yaql.MemoryQuota(quota)).Compile(expr)
			if err != nil {
				t.Fatal(err)
			}
			class := ""
			if _, err := x.Eval(t.Context(), "a"); err != nil {
				var e *yaql.Error
				if class = err.Error(); errors.As(err, &e) {
					class = e.Class
				}
			}
			if class != want {
				t.Errorf("%s with a quota of %d: %q, want %q", expr, quota, class, want)
			}
		}
	}
}

// endsAfter is a context that ends when it has been asked so often.
type endsAfter struct {
	context.Context

	left int
}

func (c *endsAfter) Err() error {
	if c.left--; c.left < 0 {
		return context.Canceled
	}
	return nil
}

func TestSearchesEndWithTheContext(t *testing.T) {
	for _, expr := range []string{
		"regex('[ab]*a' + '[ab]{1000}' * 8 + 'c').search('ab' * 375000)",
		"regex('[ab]*a' + '[ab]{1000}' * 8 + 'c').matches('ab' * 375000)",
		"regex('(?=a)a').searchAll('a' * 100)",
		"regex('(?=a)a').split('a' * 100)",
		"regex('(?=a)a').replace('a' * 100, b)",
	} {
		x, err := engineWith(t).Compile(expr)
		if err != nil {
			t.Fatal(err)
		}
		ctx := &endsAfter{t.Context(), 5}
		if _, err := x.Eval(ctx, nil); !errors.Is(err, context.Canceled) || ctx.left > -1 {
			t.Errorf("%s: %v", expr, err)
		}
	}
}

// The slow way to a modular power gives what the quick one does.
func TestLargeModularPowers(t *testing.T) {
	for expr, want := range map[string]any{
		"pow(3, pow(2, 4000), 1000000007) = pow(pow(3, pow(2, 2000), 1000000007), pow(2, 2000), 1000000007)":                     true,
		"pow(pow(3, 900), pow(2, 900), pow(7, 900)) = pow(pow(pow(3, 900), pow(2, 450), pow(7, 900)), pow(2, 450), pow(7, 900))": true,
		"pow(pow(7, 900) + 1, pow(2, 900), pow(7, 900))":                                                                         int64(1),
	} {
		x, err := engineWith(t).Compile(expr)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := x.Eval(t.Context(), nil); err != nil || got != want {
			t.Errorf("%s: %v, %v", expr, got, err)
		}
	}
}

func engineWith(t *testing.T, options ...yaql.Option) *yaql.Engine {
	t.Helper()
	engine, err := yaql.New(options...)
	if err != nil {
		t.Fatal(err)
	}
	return engine
}

func evalError(t *testing.T, expr string, options ...yaql.Option) error {
	t.Helper()
	x, err := engineWith(t, options...).Compile(expr)
	if err != nil {
		t.Fatal(err)
	}
	_, err = x.Eval(t.Context(), nil)
	return err
}
