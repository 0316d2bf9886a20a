package yaql_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/drover-project/drover/yaql"
)

type disk struct {
	Size int64  `json:"size"`
	Name string `json:"-"`
	Kind string
}

type node struct {
	ID      int               `json:"id,omitempty"`
	Roles   []string          `json:"roles"`
	Disks   []*disk           `json:"disks"`
	Labels  map[string]string `json:"labels"`
	Ports   map[int]bool      `json:"ports"`
	Started time.Time         `json:"started"`
	Uptime  time.Duration     `json:"uptime"`
	Next    *node             `json:"next"`
	Load    float32           `json:"load"`
	secret  string
}

type level uint8

type word string

func testNode() node {
	return node{ID: 7, Roles: []string{"a", "b"}, Disks: []*disk{{Size: 5, Kind: "ssd"}, {Size: 7}},
		Labels: map[string]string{"rack": "r1", "az": "z"}, Ports: map[int]bool{80: true, 22: false},
		Started: time.Date(2015, 3, 4, 5, 6, 7, 0, time.FixedZone("x", 3600)), Uptime: 90 * time.Second, Load: 0.5, secret: "s"}
}

// object is a host object with attributes and methods.
type object struct{ fail error }

func (o object) Attribute(name string) (any, error) {
	if name != "color" {
		return nil, fmt.Errorf("no attribute %s", name)
	}
	return "red", o.fail
}

func (o object) Item(key any) (any, error) { return key, o.fail }

func (o object) Call(name string, args []any) (any, error) {
	return []any{name, len(args), args}, o.fail
}

// squares is a sequence of the host that is never built.
type squares int

func (s squares) Len() int     { return int(s) }
func (s squares) At(i int) any { return i * i }

// env is a mapping of the host.
type env map[string]int

func (e env) Len() int { return len(e) }

func (e env) Get(key any) (any, bool) {
	s, _ := key.(string)
	v, ok := e[s]
	return v, ok
}

func (e env) Range(f func(key, value any) bool) {
	for _, k := range []string{"a", "b"} {
		if v, ok := e[k]; ok && !f(k, v) {
			return
		}
	}
}

func TestHostValues(t *testing.T) {
	engine := newEngine(t, yaql.OrderedResults())
	for _, c := range hostCases() {
		if got := evalText(t, engine, nil, c.expr, c.data); got != c.want {
			t.Errorf("%s on %T gives %s, not %s", c.expr, c.data, got, c.want)
		}
		scope := engine.NewContext()
		scope.Touch()
		if got := evalText(t, engine, scope, c.expr, c.data); got != c.want {
			t.Errorf("by name: %s on %T gives %s, not %s", c.expr, c.data, got, c.want)
		}
	}
}

type hostCase struct {
	expr string
	data any
	want string
}

func hostCases() []hostCase {
	n := testNode()
	return []hostCase{
		{"$.id + 1", n, "8"},
		{"$.id", &n, "7"},
		{"$.roles", n, `["a","b"]`},
		{"a in $.roles", n, "true"},
		{"$.roles[1]", n, `"b"`},
		{"$.roles.len() + $.roles.select($ + x).len()", n, "4"},
		{"$.roles = [a, b]", n, "true"},
		{"[a, b] = $.roles", n, "true"},
		{"$.roles = $.roles.insert(0, x)", n, "false"},
		{"$.roles + [c]", n, `["a","b","c"]`},
		{"{$.roles => 1}[[a, b]]", n, "1"},
		{"$.disks.size.sum()", n, "12"},
		{"$.disks.Kind", n, `["ssd",""]`},
		{"$.disks.Name", n, "!KeyError"},
		{"$.secret", n, "!KeyError"},
		{"$.labels.rack", n, `"r1"`},
		{"$.labels.keys().toList()", n, `["az","rack"]`},
		{"$.labels.len()", n, "2"},
		{"$.labels", n, `{"az":"z","rack":"r1"}`},
		{"$.labels + {x => 1}", n, `{"az":"z","rack":"r1","x":1}`},
		{"$.ports.keys().toList()", n, "[22,80]"},
		{"$.ports[80]", n, "true"},
		{"$.ports.get(80.0)", n, "true"},
		{"$.ports.get(80.5)", n, "null"},
		{"$.ports.get(a)", n, "null"},
		{"$.ports.get(null)", n, "null"},
		{"$.labels.get(1)", n, "null"},
		{"$.started.year", n, "2015"},
		{"$.started.offset.hours", n, "1.0"},
		{"$.uptime.minutes", n, "1.5"},
		{"$.next", n, "null"},
		{"$.next?.id", n, "null"},
		{"$.load", n, "0.5"},
		{"$.keys().len()", n, "9"},
		{"isDict($)", n, "true"},
		{"$.where($.id > 5).id", []node{n, {ID: 3}}, "[7]"},
		{"$.a", env{"a": 1, "b": 2}, "1"},
		{"$.items().toList()", env{"a": 1, "b": 2}, `[["a",1],["b",2]]`},
		{"$", env{"a": 1, "b": 2}, `{"a":1,"b":2}`},
		{"$ = {b => 2, a => 1}", env{"a": 1, "b": 2}, "true"},
		{"$", squares(3), "[0,1,4]"},
		{"$.last()", squares(4), "9"},
		{"$[-1]", squares(4), "9"},
		{"not $", squares(0), "true"},
		{"$.len()", squares(5), "5"},
		{"str($)", squares(3), `"(0, 1, 4)"`},
		{"$.toSet()", squares(3), "[0,1,4]"},
		{"$ + 1", level(3), "4"},
		{"$ + b", word("a"), `"ab"`},
		{"$", uint64(1 << 63), "9223372036854775808"},
		{"$ + 1", int8(1), "2"},
		{"$", big.NewInt(5), "5"},
		{"$ + 1", json.Number("41"), "42"},
		{"$ + 1", json.Number("1.5"), "2.5"},
		{"$", json.Number("99999999999999999999"), "99999999999999999999"},
		{"$.len()", json.Number("x"), "1"},
		{"$.a", map[any]any{"a": 1, 2: "b"}, "1"},
		{"$.keys().toSet() = set(a, 2)", map[any]any{"a": 1, 2: "b"}, "true"},
		{"$", []int(nil), "null"},
		{"$", map[int]int(nil), "null"},
		{"$", [2]int{1, 2}, "[1,2]"},
		{"$ + 1", new(int), "1"},
		{"$", yaql.Tuple{1, 2}, "[1,2]"},
		{"$.color", object{}, `"red"`},
		{"$.x", object{}, "!Exception"},
		{"$[a]", object{}, `"a"`},
		{"$.paint(a, 2)", object{}, `["paint",2,["a",2]]`},
		{"$?.paint()", object{}, `["paint",0,[]]`},
		{"$?.color", object{}, `"red"`},
		{"$.color", object{errors.New("broken")}, "!Exception"},
		{"$[1]", object{errors.New("broken")}, "!Exception"},
		{"$.paint()", object{errors.New("broken")}, "!Exception"},
		{"$.paint(1/0)", object{}, "!ZeroDivisionError"},
		{"$.paint(,1)", object{}, `["paint",2,[null,1]]`},
		{"[$].color", object{}, `["red"]`},
	}
}

func TestUnconvertedHostValues(t *testing.T) {
	engine := newEngine(t, yaql.ConvertInputData(false))
	for expr, want := range map[string]string{
		"$.roles = [a, b]":      "false",
		"$.roles.toSet().len()": "2",
		"$.disks.toSet()":       "!TypeError",
		"set($.labels)":         "!TypeError",
		"str($.roles)":          `"['a', 'b']"`,
		"$.t = [1]":             "!KeyError",
	} {
		if got := evalText(t, engine, nil, expr, testNode()); got != want {
			t.Errorf("%s gives %s, not %s", expr, got, want)
		}
	}
	if got := evalText(t, engine, nil, "$ = [1, 2]", yaql.Tuple{1, 2}); got != "true" {
		t.Errorf("a tuple counts as %s", got)
	}
}

// TestResultsShareTheInput checks that maps and lists of the input come back as they are.
func TestResultsShareTheInput(t *testing.T) {
	engine := newEngine(t)
	inner := map[string]any{"a": 1}
	items := []any{inner}
	v, err := mustCompile(t, engine, "$").Eval(t.Context(), items)
	if err != nil {
		t.Fatal(err)
	}
	out, ok := v.([]any)
	if !ok || len(out) != 1 || &out[0] != &items[0] {
		t.Errorf("the list was copied: %v", v)
	}
	out[0].(map[string]any)["b"] = 2
	if inner["b"] != 2 {
		t.Error("the map was copied")
	}
}

func mustCompile(t testing.TB, e *yaql.Engine, expr string) *yaql.Expression {
	t.Helper()
	x, err := e.Compile(expr)
	if err != nil {
		t.Fatalf("%s: %v", expr, err)
	}
	return x
}

func TestResultTypes(t *testing.T) {
	plain, ordered := newEngine(t), newEngine(t, yaql.OrderedResults())
	v, err := mustCompile(t, plain, "{b => [1].where(true), a => {c => set(1)}}").Eval(t.Context(), nil)
	if m, ok := v.(map[string]any); err != nil || !ok || len(m) != 2 {
		t.Errorf("got %#v, %v", v, err)
	}
	v, err = mustCompile(t, ordered, "{b => 1, a => 2}").Eval(t.Context(), nil)
	if d, ok := v.(*yaql.Dict); err != nil || !ok || d.Len() != 2 {
		t.Errorf("got %#v, %v", v, err)
	}
	v, err = mustCompile(t, plain, "{1 => a}").Eval(t.Context(), nil)
	if d, ok := v.(*yaql.Dict); err != nil || !ok || d.Len() != 1 {
		t.Errorf("got %#v, %v", v, err)
	}
	v, err = mustCompile(t, newEngine(t, yaql.ReferenceDefaults()), "set(1, a)").Eval(t.Context(), nil)
	if s, ok := v.(*yaql.Set); err != nil || !ok || !s.Has("a") || s.Has(2) || s.Has([]any{&yaql.List{}}) {
		t.Errorf("got %#v, %v", v, err)
	}
	v, err = mustCompile(t, newEngine(t, yaql.ConvertOutputData(false)), "[1, 2].where($ > 1)").Eval(t.Context(), nil)
	it, ok := v.(*yaql.Iterator)
	if err != nil || !ok {
		t.Fatalf("got %#v, %v", v, err)
	}
	if x, ok, err := it.Next(); x != int64(2) || !ok || err != nil {
		t.Errorf("got %v, %v, %v", x, ok, err)
	}
	if x, ok, err := it.Next(); x != nil || ok || err != nil {
		t.Errorf("got %v, %v, %v", x, ok, err)
	}
}

// TestForeignValuesComeOutAsTheyWentIn holds the package to its word about values of types that are none of the language.
func TestForeignValuesComeOutAsTheyWentIn(t *testing.T) {
	channel, nodes := make(chan int), map[int]string{1: "a"}
	type point struct{ X, Y int }
	for _, v := range []any{channel, nodes, []byte("abc"), point{1, 2}, complex(1, 2)} {
		for _, text := range []string{"$.v", "[$.v, 1][0]", "{a => $.v}.a"} {
			x, err := newEngine(t).Compile(text)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := x.Eval(t.Context(), map[string]any{"v": v}); err != nil || !reflect.DeepEqual(got, v) {
				t.Errorf("%s of a %T is %#v (%v)", text, v, got, err)
			}
		}
	}
}

// TestAPanicOfTheHostIsAnError calls functions of the host, made in each way, that panic. A value that is nested too deep unwinds
// through them as before.
func TestAPanicOfTheHostIsAnError(t *testing.T) {
	broken := errors.New("broken")
	made := func(f *yaql.Function, err error) *yaql.Function {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	engine := newEngine(t)
	c := engine.NewContext()
	c.Register(
		made(yaql.Func0("f0", func() (int, error) { panic(broken) })),
		made(yaql.Func1("f1", func(x []any) (any, error) { return x[7], nil }, yaql.AsMethod())),
		made(yaql.NewFunction("f2", "e: lambda", func(_ *yaql.Context, args []any) (any, error) { return args[0].(*yaql.Lambda).Call(1) })),
		made(yaql.NewFunction("same", "a: any, b: any", func(_ *yaql.Context, args []any) (any, error) { return yaql.Equal(args[0], args[1]), nil })),
	)
	for text, want := range map[string]string{
		"1 + f0()":     "the function f0 of the host panicked: broken (line 1, column 5)",
		"[1].f1()":     "the function f1 of the host panicked: runtime error: index out of range [7] with length 1 (line 1, column 5)",
		"f2($ + f0())": "the function f0 of the host panicked: broken (line 1, column 8)",
	} {
		x, err := engine.Compile(text)
		if err != nil {
			t.Fatal(err)
		}
		_, err = x.EvalIn(t.Context(), c, nil)
		e, ok := errors.AsType[*yaql.Error](err)
		if !ok || e.Class != "Exception" || e.Error() != want || strings.Contains(text, "f0") && !errors.Is(err, broken) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
	deep := []any{[]any{}, []any{}}
	for range 20_000 {
		deep[0], deep[1] = []any{deep[0]}, []any{deep[1]}
	}
	x, err := engine.Compile("same($[0], $[1])")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := x.EvalIn(t.Context(), c, deep); err == nil || !strings.Contains(err.Error(), "maximum recursion depth exceeded") {
		t.Errorf("values that are nested too deep: %v", err)
	}
}

// TestNoContextIsOneThatNeverEnds evaluates long enough for the context to be asked.
func TestNoContextIsOneThatNeverEnds(t *testing.T) {
	x, err := newEngine(t).Compile("range(5000).select($ + 1).sum()")
	if err != nil {
		t.Fatal(err)
	}
	var none context.Context
	if v, err := x.Eval(none, nil); err != nil || v != int64(12502500) {
		t.Errorf("without a context it is %v (%v)", v, err)
	}
}

func TestDictAndSet(t *testing.T) {
	d := yaql.NewDict(0)
	for i := range 20 {
		if err := errors.Join(d.Set(i, i), d.Set(strconv.Itoa(i), i), d.Set(float64(i), -i)); err != nil {
			t.Fatal(err)
		}
	}
	if d.Len() != 40 {
		t.Errorf("%d entries", d.Len())
	}
	if v, ok := d.Get(int64(7)); !ok || v != -7 {
		t.Errorf("got %v, %v", v, ok)
	}
	if v, ok := d.Get("7"); !ok || v != 7 {
		t.Errorf("got %v, %v", v, ok)
	}
	if _, ok := d.Get("x"); ok {
		t.Error("found a key that is not there")
	}
	if _, ok := d.Get(&yaql.List{}); ok {
		t.Error("found a list")
	}
	if err := d.Set(&yaql.List{}, 1); err == nil {
		t.Error("a list was taken for a key")
	}
	n := 0
	d.Range(func(any, any) bool { n++; return n < 3 })
	if n != 3 {
		t.Errorf("walked through %d entries", n)
	}
	if _, err := yaql.NewSet(&yaql.List{}); err == nil {
		t.Error("a list was taken into a set")
	}
}

// keeper is a host object that keeps what it is given.
type keeper struct{ got any }

func (k *keeper) Attribute(string) (any, error) { return k, nil }
func (k *keeper) Item(key any) (any, error)     { k.got = key; return "kept", nil }

func (k *keeper) Call(_ string, args []any) (any, error) {
	k.got = args[0]
	return true, nil
}

// What an evaluation has given to the host lives on: the next evaluation does not take its place.
func TestWhatTheHostKeepsOutlivesTheEvaluation(t *testing.T) {
	engine := newEngine(t, yaql.AllowDelegates())
	raw := newEngine(t, yaql.ConvertOutputData(false))
	var finalized any
	final := newEngine(t, yaql.Finalizer(func(v any) (any, error) { finalized = v; return v, nil }))
	k := &keeper{}
	// A function of the host that stands in for one of the library, which keeps nothing.
	own := engine.NewContext()
	own.Register(must(t)(yaql.NewFunction("len", "a: any?", func(_ *yaql.Context, a []any) (any, error) { return k.Call("", a) })))
	for _, c := range []struct {
		engine *yaql.Engine
		expr   string
		got    func(result any) any
	}{
		{engine, "$.k.keep(range(5, 8))", func(any) any { return k.got }},
		{engine, "$.items.where($[range(5, 8)] = kept)", func(any) any { return k.got }},
		{engine, "$.k.len(range(5, 8))", func(any) any { return k.got }}, // a name of the library
		{engine, "$.k[range(5, 8)]", func(any) any { return k.got }},
		{engine, "len(range(5, 8))", func(any) any { return k.got }},
		{raw, "range(5, 8)", func(v any) any { return v }},
		{final, "range(5, 8)", func(any) any { return finalized }},
	} {
		expr := mustCompile(t, c.engine, c.expr)
		scope := c.engine.NewContext()
		if c.expr == "len(range(5, 8))" {
			scope = own
		}
		k.got = nil
		v, err := expr.EvalIn(t.Context(), scope, map[string]any{"k": k, "items": []any{k}})
		if err != nil {
			t.Fatalf("%s: %v", c.expr, err)
		}
		kept, ok := c.got(v).(*yaql.Iterator)
		if !ok {
			t.Fatalf("%s: the host got a %T", c.expr, c.got(v))
		}
		if _, err := mustCompile(t, c.engine, "1 + 1").Eval(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		for want := int64(5); want < 8; want++ {
			if got, ok, err := kept.Next(); got != want || !ok || err != nil {
				t.Errorf("%s: the next item is %v, %v, %v; want %d", c.expr, got, ok, err, want)
				break
			}
		}
	}
}

// A function or a context that was a result can be used in the next evaluation.
func TestResultsThatHoldTheirEvaluation(t *testing.T) {
	engine := newEngine(t, yaql.AllowDelegates())
	for _, c := range []struct{ expr, use string }{{"lambda($ + 2)", "$(4)"}, {"let(x => 6)", "$ -> $x"}, {"let(x => 1)", "$ -> $"}} {
		held, err := mustCompile(t, engine, c.expr).Eval(t.Context(), 6)
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if v, err := mustCompile(t, engine, c.use).Eval(t.Context(), held); err != nil || v != int64(6) {
				t.Errorf("%s of %s gives %v, %v", c.use, c.expr, v, err)
			}
		}
	}
}
