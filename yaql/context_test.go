package yaql_test

import (
	"context"
	"errors"
	"math/big"
	"testing"

	"github.com/drover-project/drover/yaql"
)

// must fails the test if a function could not be made.
func must(t testing.TB) func(f *yaql.Function, err error) *yaql.Function {
	t.Helper()
	return func(f *yaql.Function, err error) *yaql.Function {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
}

// constantFunction always gives v.
func constantFunction(t testing.TB, name, params string, v any, options ...yaql.FunctionOption) *yaql.Function {
	t.Helper()
	return must(t)(yaql.NewFunction(name, params, func(*yaql.Context, []any) (any, error) { return v, nil }, options...))
}

func TestVariables(t *testing.T) {
	engine := newEngine(t)
	outer := engine.NewContext()
	outer.Set("a", 1)
	outer.Set("$b", "outer")
	outer.Set("$", "item")
	inner := outer.Child()
	inner.Set("b", "inner")
	inner.Set("b", "inner again")
	if v := inner.Get("$b"); v != "inner again" {
		t.Errorf("$b is %v", v)
	}
	if v := inner.Get("a"); v != int64(1) {
		t.Errorf("$a is %v", v)
	}
	if v := inner.Get("$1"); v != "item" {
		t.Errorf("$1 is %v", v)
	}
	if v := engine.NewContext().Get("$"); v != nil {
		t.Errorf("$ is %v", v)
	}
	v, err := mustCompile(t, engine, "[$, $a, $b, $c]").EvalHere(t.Context(), inner)
	if err != nil || len(v.([]any)) != 4 || v.([]any)[0] != "item" {
		t.Errorf("got %v, %v", v, err)
	}
	if _, err := mustCompile(t, engine, "1/0").EvalHere(t.Context(), inner); err == nil {
		t.Error("no error")
	}
}

func TestOverloadsOfTheHost(t *testing.T) {
	engine := newEngine(t)
	outer := engine.NewContext()
	outer.Register(
		constantFunction(t, "f", "a: string", "string"),
		constantFunction(t, "f", "a: integer", "integer"),
		constantFunction(t, "f", "a: integer, b: integer = 5", "two"),
		constantFunction(t, "g", "a: any?", "outer"),
		constantFunction(t, "m", "a: any?", "method", yaql.AsMethod()),
		constantFunction(t, "x", "a: string", "outer x"),
		constantFunction(t, "rest", "a: string, *b: integer, **c: any?", "rest"),
		constantFunction(t, "pairs", "*a: rulevalue", "pairs", yaql.PassPairs()),
		constantFunction(t, "lazy", "a: lambda", "lazy"),
		constantFunction(t, "lazy", "a: any", "eager"),
		constantFunction(t, "kw", "a: keyword", "kw"),
		constantFunction(t, "len", "a: integer", "digits"),
	)
	inner := outer.Child()
	inner.Register(constantFunction(t, "g", "a: integer", "inner"),
		constantFunction(t, "x", "a: integer", "inner x", yaql.Exclusive()))
	for expr, want := range map[string]string{
		"f(a)": `"string"`, "f(1)": "!AmbiguousFunctionException", "f(1, 2)": `"two"`, "f(null)": "!NoMatchingFunctionException",
		"g(1)": `"inner"`, "g(a)": `"outer"`, "g(null)": `"outer"`, "1.m()": `"method"`, "m(1)": "!NoFunctionRegisteredException",
		"1.f()": "!NoMethodRegisteredException", "x(1)": `"inner x"`, "x(a)": "!NoMatchingFunctionException",
		"rest(a)": `"rest"`, "rest(a, 1, 2, z => 5)": `"rest"`, "rest(a, b)": "!NoMatchingFunctionException", "rest(a, a => b)": "!NoMatchingFunctionException",
		"pairs(a => 1, 2 => 3)": `"pairs"`, "pairs(1)": "!NoMatchingFunctionException", "lazy(1)": "!AmbiguousFunctionException",
		"kw(a)": `"kw"`, "kw('a')": "!NoMatchingFunctionException", "kw($)": "!NoMatchingFunctionException",
		"len(5)": `"digits"`, "len(abc)": "3", "5.len()": "!NoMatchingMethodException", "[1].len()": "1",
	} {
		if got := evalText(t, engine, inner, expr, nil); got != want {
			t.Errorf("%s gives %s, not %s", expr, got, want)
		}
	}
}

func TestReplacedOperators(t *testing.T) {
	engine := newEngine(t)
	scope := engine.NewContext()
	scope.Register(
		constantFunction(t, "#operator_+", "a: string, b: integer", "sum", yaql.Exclusive()),
		constantFunction(t, "*equal", "a: any?, b: any?", "same", yaql.Exclusive()),
		constantFunction(t, "#operator_>", "a: any?, b: any?", true, yaql.Exclusive()),
		constantFunction(t, "#finalize", "a: any?", "final", yaql.Exclusive()))
	inner := scope.Child()
	inner.Register(constantFunction(t, "#finalize", "a: integer", "whole"),
		must(t)(yaql.NewFunction("#finalize", "a: any?", func(_ *yaql.Context, a []any) (any, error) { return a[0], nil })))
	for expr, want := range map[string]string{"a + 1": `"sum"`, "1 + 1": "!NoMatchingFunctionException", "1 = 2": `"same"`, "max(3, 1)": "1", "[3, 2].max()": "2"} {
		if got := evalText(t, engine, inner, expr, nil); expr != "max(3, 1)" && expr != "[3, 2].max()" && got != want {
			t.Errorf("%s gives %s, not %s", expr, got, want)
		}
	}
	if got := evalText(t, engine, scope, "5", nil); got != `"final"` {
		t.Errorf("the replaced #finalize gives %s", got)
	}
}

func TestMultiContext(t *testing.T) {
	engine := newEngine(t)
	a, b := engine.NewContext(), engine.NewContext()
	a.Set("x", "a")
	b.Set("x", "b")
	b.Set("y", "b")
	b.Set("$", "dollar")
	a.Register(constantFunction(t, "f", "v: integer", "a"))
	b.Register(constantFunction(t, "f", "v: string", "b"), constantFunction(t, "len", "v: string", 99))
	m := a.Multi(b)
	for expr, want := range map[string]string{"$x": `"a"`, "$y": `"b"`, "f(1)": `"a"`, "f(s)": `"b"`, "f(null)": "!NoMatchingFunctionException", "len(abc)": "99", "[1].len()": "1"} {
		if got := evalText(t, engine, m, expr, nil); got != want {
			t.Errorf("%s gives %s, not %s", expr, got, want)
		}
	}
	if v, err := mustCompile(t, engine, "$").EvalHere(t.Context(), m); err != nil || v != "dollar" {
		t.Errorf("$ is %v, %v", v, err)
	}
	linked := b.Link(a)
	for expr, want := range map[string]string{"$x": `"b"`, "f(1)": `"a"`, "f(s)": `"b"`, "len(abc)": "99"} {
		if got := evalText(t, engine, linked, expr, nil); got != want {
			t.Errorf("linked: %s gives %s, not %s", expr, got, want)
		}
	}
}

func TestTypedFunctions(t *testing.T) {
	engine := newEngine(t)
	scope := engine.NewContext()
	ok := must(t)
	scope.Register(
		ok(yaql.Func0("zero", func() (int, error) { return 0, nil })),
		ok(yaql.Func1("i", func(n int) (int, error) { return n + 1, nil })),
		ok(yaql.Func1("i64", func(n int64) (int64, error) { return n + 1, nil })),
		ok(yaql.Func1("big", func(n *big.Int) (*big.Int, error) { return new(big.Int).Lsh(n, 70), nil })),
		ok(yaql.Func1("f64", func(f float64) (float64, error) { return f * 2, nil })),
		ok(yaql.Func1("list", func(l []any) (int, error) { return len(l), nil }, yaql.Exclusive())),
		ok(yaql.Func1("dict", func(m map[string]any) (int, error) { return len(m), nil }, yaql.Exclusive())),
		ok(yaql.Func1("any", func(v any) (any, error) { return v == nil, nil }, yaql.Exclusive())),
		ok(yaql.Func1("set", func(s *yaql.Set) (int, error) { return s.Len(), nil }, yaql.Exclusive())),
		ok(yaql.Func1("own", func(n *node) (any, error) { return n == nil, nil })),
		ok(yaql.Func1("day", func(d yaql.DateTime) (any, error) { return d.Fields().Day, nil })),
		ok(yaql.Func1("twice", func(l *yaql.Lambda) (any, error) {
			a, err := l.Call(1)
			if err != nil {
				return nil, err
			}
			b, err := l.Call(2, 3)
			return []any{a, b}, err
		})),
		ok(yaql.Func2("cat", func(a string, b bool) (string, error) {
			if b {
				return a + "!", nil
			}
			return a, errors.New("refused")
		}, yaql.AsExtension(), yaql.Named("text", "loud", "none"), yaql.Described("Shouts.", "cat(a, true) ⇒ \"a!\""))),
		ok(yaql.Func3("three", func(a, b, c string) (string, error) { return a + b + c, nil })),
		ok(yaql.NewFunction("kwargs", "a: any?, **k: any?", func(_ *yaql.Context, a []any) (any, error) { return a[1], nil })),
		ok(yaql.NewFunction("deadline", "", func(c *yaql.Context, _ []any) (any, error) {
			_, has := c.GoContext().Deadline()
			return has, nil
		})))
	for expr, want := range map[string]string{
		"zero()": "0", "i(1)": "2", "i(1.5)": "!NoMatchingFunctionException", "i64(1)": "2", "i64(99999999999999999999)": "!TypeError",
		"big(1)": "1180591620717411303424", "f64(1)": "2.0", "f64(1.5)": "3.0", "list([1, 2])": "2", "dict({a => 1, 2 => 3})": "1",
		"any(null)": "true", "any(1)": "false", "set(range(1).toSet())": "1", "set({a => 1}.keys())": "!TypeError", "own(null)": "true", "own(1)": "!TypeError",
		"day(datetime(2015, 1, 2))": "2", "twice([$, $2])": "[[1,null],[2,3]]", "twice(1/0)": "!ZeroDivisionError",
		"cat(a, true)": `"a!"`, "a.cat(true)": `"a!"`, "cat(loud => true, text => b)": `"b!"`, "cat(a, false)": "!Exception", "cat(a, 1)": "!NoMatchingFunctionException",
		"three(a, b, c)": `"abc"`, "kwargs(1, x => 2, y => 3)": `{"x":2,"y":3}`, "deadline()": "false",
	} {
		if got := evalText(t, engine, scope, expr, nil); got != want {
			t.Errorf("%s gives %s, not %s", expr, got, want)
		}
	}
	if ctx := scope.GoContext(); ctx != context.Background() {
		t.Error("a context outside of evaluations belongs to one")
	}
}

func TestFunctionDefinitions(t *testing.T) {
	none := func(*yaql.Context, []any) (any, error) { return nil, nil }
	if _, err := yaql.NewFunction("f", "a: nonsense", none); err == nil {
		t.Error("an unknown type was taken")
	}
	if _, err := yaql.NewFunction("f", "", none, yaql.AsMethod()); err == nil {
		t.Error("a method without receiver was taken")
	}
	f := must(t)(yaql.NewFunction("f", "a: int?, b: string = \"x\", c: any = none, *d: lambda, **e: any?", none,
		yaql.AsMethod(), yaql.Described("Does nothing.", "1.f() ⇒ null")))
	if want := "<a: integer or null>.f(b: string = 'x', c: any (may be left out), *d: expression of $, **e: any)"; f.Signature() != want {
		t.Errorf("signature %s", f.Signature())
	}
	expr, result := f.Example()
	if f.Name() != "f" || f.Kind() != yaql.MethodKind || f.Doc() != "Does nothing." || f.Module() != "host" || expr != "1.f()" || result != "null" {
		t.Errorf("described as %s %d %q %q %q %q", f.Name(), f.Kind(), f.Doc(), f.Module(), expr, result)
	}
}

// TestKeywordsAfterWhere: a count of what where() keeps takes no more arguments than any other.
func TestKeywordsAfterWhere(t *testing.T) {
	engine := newEngine(t)
	for _, call := range []string{"len(foo => 1)", "count(foo => 1)", "len(count => 1)", "len(collection => [1, 2])", "len(1)"} {
		if got := evalText(t, engine, engine.NewContext(), "[1].where(true)."+call, nil); got != "!NoMatchingMethodException" {
			t.Errorf("%s gives %s", call, got)
		}
	}
	if got := evalText(t, engine, engine.NewContext(), "[1, 2].where($ > 1).len()", nil); got != "1" {
		t.Errorf("len() gives %s", got)
	}
}
