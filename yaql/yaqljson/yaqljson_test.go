package yaqljson

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/drover-project/drover/yaql"
)

func TestRoundTrip(t *testing.T) {
	for _, text := range []string{
		"null", "true", "1", "-5", "123456789012345678901234567890", "1.5", "1.0", "1e+16", "1e-05", `"é\n<>&"`, "[]", "[1,[2,null]]",
		"{}", `{"b":1,"a":[{}]}`, `{"$float":"nan"}`, `{"$float":"inf"}`, `{"$float":"-inf"}`, `{"$set":[1,2]}`, `{"$set":["a","b"]}`, `{"$tuple":[1,{"$tuple":[]}]}`,
		`{"$dict":[[1,"a"],[null,{}]]}`, `{"$dict":[["$a",1]]}`, `{"$datetime":"2015-09-29T00:00:00.000001+03:00"}`, `{"$datetime":"2015-09-29T00:00:00"}`, `{"$timespan":-1000000}`,
		`{"$timespan":86399999913600000000}`, `{"$regex":{"pattern":"a\"b","flags":["ignoreCase","multiLine","dotAll"]}}`, `{"$dict":[["a",1],["$b",2]]}`,
	} {
		value, err := Decode([]byte(text))
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		back, err := Encode(value)
		if err != nil || string(back) != text {
			t.Errorf("%s comes back as %s, %v", text, back, err)
		}
	}
}

func TestOtherKeysWithADollarSignArePlain(t *testing.T) {
	value, err := Decode([]byte(`{"$":{"$set":[1],"b":2}}`))
	if err != nil {
		t.Fatal(err)
	}
	if text, err := Encode(value); err != nil || string(text) != `{"$dict":[["$",{"$dict":[["$set",[1]],["b",2]]}]]}` {
		t.Errorf("it is read as %s, %v", text, err)
	}
}

func TestTheLastOfRepeatedKeysCounts(t *testing.T) {
	for text, want := range map[string]string{
		`{"a":1,"b":2,"a":3}`:                   `{"a":3,"b":2}`,
		`[{"a":1,"b":2},{"a":1,"a":2},{"a":4}]`: `[{"a":1,"b":2},{"a":2},{"a":4}]`,
	} {
		value, err := Decode([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := Encode(value); err != nil || string(got) != want {
			t.Errorf("%s is read as %s, %v", text, got, err)
		}
	}
}

// More different keys than are shared must be read all the same.
func TestDecodeManyDifferentObjects(t *testing.T) {
	var text strings.Builder
	for i := range maxShared + 10 {
		fmt.Fprintf(&text, `,{"k%d":%d,"ab":"t%d"}`, i, i, i)
	}
	want := "[" + text.String()[1:] + "]"
	value, err := Decode([]byte(want))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := Encode(value); err != nil || string(got) != want {
		t.Errorf("it comes back as %.200s..., %v", got, err)
	}
}

// An object of a list costs its values, not its keys once more.
func TestEqualObjectsShareTheirKeys(t *testing.T) {
	object := `{"a_long_name_of_a_key":1,"another_name":2,"status":"ready","role":"controller"}`
	one, many := "["+object+"]", "["+strings.Repeat(object+",", 999)+object+"]"
	cost := func(text string) float64 {
		return testing.AllocsPerRun(10, func() { _, _ = Decode([]byte(text)) })
	}
	if each := (cost(many) - cost(one)) / 999; each > 2.1 {
		t.Errorf("%.1f allocations for one more object, want 2: the map and its values", each)
	}
}

func TestDecodeRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"": "unexpected EOF", "[1": "EOF", "{": "EOF", "1 2": "more than one value", `{"$float":1}`: "wrong form", `{"$set":1}`: "wrong form", `{"$set":[{"$set":1}]}`: "wrong form",
		`{"$tuple":1}`: "wrong form", `{"$dict":[1]}`: "wrong form", `{"$dict":[[1]]}`: "wrong form", `{"$dict":1}`: "wrong form", `{"$datetime":1}`: "wrong form", `{"$datetime":"x"}`: "ISO 8601", `{"$timespan":1.5}`: "wrong form",
		`{"$timespan":864000000000000000000000}`: "magnitude", `{"$regex":1}`: "wrong form", `{"$regex":{"pattern":1}}`: "wrong form", `{"$regex":{"pattern":"("}}`: "unterminated", `{"$regex":{"pattern":"a","flags":["x"]}}`: "no flag",
		`{"$opaque":"context"}`: "cannot be read", strings.Repeat("[", 10100): "max depth", `{"a" 1}`: "invalid", "[1,}": "invalid", "nope": "invalid", `{"$dict":[[{"$dict":[[1,2]]},1],[[1],2]]}`: "",
	} {
		_, err := Decode([]byte(text))
		if want == "" && err == nil {
			continue
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60s gave %v, want something on %q", text, err, want)
		}
	}
}

func TestEncodeHostValues(t *testing.T) {
	e, err := yaql.New(yaql.AllowDelegates())
	if err != nil {
		t.Fatal(err)
	}
	lambda, err := e.Compile("lambda($)")
	if err != nil {
		t.Fatal(err)
	}
	function, err := lambda.Eval(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		value any
		want  string
	}{
		{3, "3"}, {big.NewInt(7), "7"}, {map[string]any{"b": 1, "a": []any{}}, `{"a":[],"b":1}`}, {[]string{"x"}, `["x"]`}, {struct{ A int }{1}, `{"A":1}`}, {&yaql.List{Items: []any{true}}, "[true]"},
		{yaql.NoValue, `{"$opaque":"noValue"}`}, {complex(1, 2), `{"$opaque":"complex"}`}, {e.NewContext(), `{"$opaque":"context"}`}, {function, `{"$opaque":"function"}`}, {make(chan int), `{"$opaque":"chan int"}`},
		{e.Functions()[0], `{"$opaque":"function"}`}, {time.Unix(0, 0).UTC(), `{"$datetime":"1970-01-01T00:00:00Z"}`}, {pairs{{"x", 1}}, `{"x":1}`}, {numbers(3), "[0,1,2]"},
	} {
		got, err := Encode(c.value)
		if err != nil || string(got) != c.want {
			t.Errorf("%v is written as %s, %v, want %s", c.value, got, err, c.want)
		}
	}
	if got, err := EncodeRaw([]any{int64(1), []any{}}); err != nil || string(got) != `{"$tuple":[1,{"$tuple":[]}]}` {
		t.Errorf("raw, it is written as %s, %v", got, err)
	}
}

// pairs and numbers are a map and a list of a host.
type pairs [][2]any

func (p pairs) Len() int { return len(p) }

func (p pairs) Get(key any) (any, bool) {
	for _, pair := range p {
		if pair[0] == key {
			return pair[1], true
		}
	}
	return nil, false
}

func (p pairs) Range(f func(key, value any) bool) {
	for _, pair := range p {
		if !f(pair[0], pair[1]) {
			return
		}
	}
}

type numbers int

func (n numbers) Len() int     { return int(n) }
func (n numbers) At(i int) any { return i }

func TestOptions(t *testing.T) {
	for _, c := range []struct{ options, expression, data, want string }{
		{"", "set(1)", "null", `{"$set":[1]}`},
		{"null", "set(1)", "null", `{"$set":[1]}`},
		{`{"engine":{"yaql.convertSetsToLists":true}}`, "set(1)", "null", `[1]`},
		{`{"engine":{"yaql.limitIterators":2,"yaql.memoryQuota":10000,"yaql.convertTuplesToLists":true}}`, "[1,2,3]", "null", `!CollectionTooLargeException`},
		{`{"engine":{"yaql.convertOutputData":false}}`, "[1, [2]]", "null", `{"$tuple":[1,{"$tuple":[2]}]}`},
		{`{"engine":{"yaql.convertInputData":false}}`, "$ = [1]", "[1]", `false`},
		{`{"engine":{"yaql.iterableDicts":true}}`, "a in $", `{"a":1}`, `true`},
		{`{"context":{"no_sets":true,"group_by_agg_fallback":true}}`, "set(1)", "null", `!NoFunctionRegisteredException`},
		{`{"context":{"no_sets":false}}`, "set(1).len()", "null", `1`},
		{`{"vars":{"v":5,"$w":6}}`, "$v + $w", "null", `11`},
		{`{"delegates":true}`, "lambda($ + 1)(2)", "null", `3`},
		{`{"legacy":true,"delegates":false}`, "$.nothing", "{}", `null`},
		{`{"keywordOperator":":"}`, "{a: 1}", "null", `{"a":1}`},
	} {
		if got := evaluate(t, c.options, c.expression, c.data); got != c.want {
			t.Errorf("%s with %s gives %s, want %s", c.expression, c.options, got, c.want)
		}
	}
}

func evaluate(t *testing.T, options, expression, data string) string {
	t.Helper()
	o, err := ParseOptions([]byte(options))
	if err != nil {
		t.Fatal(err)
	}
	e, err := yaql.New(o.Engine...)
	if err != nil {
		t.Fatal(err)
	}
	input, err := Decode([]byte(data))
	if err != nil {
		t.Fatal(err)
	}
	scope := e.NewContext()
	for name, value := range o.Vars {
		scope.Set(name, value)
	}
	x, err := e.Compile(expression)
	if err != nil {
		t.Fatal(err)
	}
	result, err := x.EvalIn(context.Background(), scope, input)
	if err != nil {
		if fault, ok := errors.AsType[*yaql.Error](err); ok {
			return "!" + fault.Class
		}
		t.Fatal(err)
	}
	write := Encode
	if o.Raw {
		write = EncodeRaw
	}
	text, err := write(result)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestOptionsRefuse(t *testing.T) {
	for text, want := range map[string]string{
		"[": "EOF", "1": "want an object", `{"engin":{}}`: `did you mean "engine"`, `{"zzzzzzzz":1}`: "is not known", `{"engine":1}`: "want an object", `{"engine":{"yaql.limitIterator":1}}`: `did you mean "engine.yaql.limitIterators"`,
		`{"engine":{"yaql.limitIterators":"x"}}`: "another type", `{"vars":1}`: "want an object", `{"delegates":1}`: "want true or false", `{"keywordOperator":1}`: "want a string or null",
	} {
		if _, err := ParseOptions([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s gave %v, want something on %q", text, err, want)
		}
	}
}

func TestOptionsKey(t *testing.T) {
	key := func(text string) string {
		o, err := ParseOptions([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return o.Key
	}
	if key(`{"legacy":true,"delegates":true,"vars":{"a":1}}`) != key(`{"delegates":true,"legacy":true,"vars":{"b":2}}`) {
		t.Error("equal options have different keys")
	}
	if key(`{"legacy":true}`) == key(`{"legacy":false}`) || key("") == key(`{"legacy":true}`) {
		t.Error("different options have equal keys")
	}
}

func TestIntegersOfAnySize(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`-?[1-9][0-9]{0,40}`).Draw(t, "number")
		value, err := Decode([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if back, err := Encode(value); err != nil || string(back) != text {
			t.Fatalf("%s comes back as %s, %v", text, back, err)
		}
	})
}

func FuzzDecode(f *testing.F) {
	for _, seed := range []string{`{"$dict":[[1,2]]}`, `{"$set":[1.5]}`, `[{"a":null}]`, `{"$regex":{"pattern":"a"}}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		value, err := Decode(text)
		if err != nil {
			return
		}
		written, err := Encode(value)
		if err != nil {
			t.Fatal(err)
		}
		again, err := Decode(written)
		if err != nil {
			t.Fatalf("%s: %v", written, err)
		}
		if twice, err := Encode(again); err != nil || string(twice) != string(written) {
			t.Errorf("%s becomes %s, %v", written, twice, err)
		}
	})
}
