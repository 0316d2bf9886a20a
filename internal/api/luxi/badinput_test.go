package luxi

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/luxiwire"
)

// badFilters are filters that must be refused, with what the refusal says and
// the place that it names.
var badFilters = []struct {
	filter, text, field string
	code                fault.Code
}{
	{`["foo","a"]`, "Unknown filter operand 'foo'", "[0]", fault.Invalid},
	{`["&",["=*","name","x"]]`, "Unknown filter operand '=*'", "[1][0]", fault.Invalid},
	{`[]`, "expected array [string, args]", "", fault.Invalid},
	{`"name"`, "expected array [string, args]", "", fault.Invalid},
	{`{"a":1}`, "expected array [string, args]", "", fault.Invalid},
	{`["|",["==","name"]]`, `expected [fieldname, value] but got ["name"]`, "[1]", fault.Invalid},
	{`["==","name","a","b"]`, "expected [fieldname, value]", "", fault.Invalid},
	{`["!"]`, "expected [filter]", "", fault.Invalid},
	{`["!",null,null]`, "expected [filter]", "", fault.Invalid},
	{`["?","admin_up","x"]`, "expected [fieldname]", "", fault.Invalid},
	{`["==","name",true]`, "expecting string or integer, got true", "[2]", fault.Invalid},
	{`["==","name",null]`, "expecting string or integer, got null", "[2]", fault.Invalid},
	{`["<","ctime",1.5]`, "fractional value: 3 % 2", "[2]", fault.Invalid},
	{`["=~","name",5]`, "Unable to read String", "[2]", fault.Invalid},
	{`["=~","name","("]`, "missing )", "[2]", fault.Invalid},
	{`["==",5,"name"]`, "Unable to read String", "[1]", fault.Invalid},
	{strings.Repeat(`["!",`, 200) + "null" + strings.Repeat("]", 200), "nested too deep; the limit is 100 levels", strings.Repeat("[1]", 100), fault.TooLarge},
	{strings.Repeat(`["!",`, 40_000) + "null" + strings.Repeat("]", 40_000), "exceeded max depth", "", fault.Invalid},
	{`["==","name","` + strings.Repeat("x", 10<<20) + `"]`, "the limit is 8388608", "", fault.TooLarge},
	{`["|"` + strings.Repeat(`,["==","os","noo"]`, 100_000) + `]`, "more than 100000 values", "", fault.TooLarge},
	{`["|"` + strings.Repeat(`,["=~","name","a{1000}"]`, 20_000) + `]`, "expressions of the filter are too large", "[100][2]", fault.TooLarge},
}

func TestBadFiltersAreRefusedAndDisturbNobody(t *testing.T) {
	r := newRig(t)
	bad := make([]*conn, len(badFilters))
	for i := range bad {
		bad[i] = r.dial()
	}
	var all sync.WaitGroup
	for i, tc := range badFilters {
		all.Go(func() {
			name := fmt.Sprintf("%.60s", tc.filter)
			if _, err := bad[i].Write([]byte(`{"method":"Query","args":["instance",["name"],` + tc.filter + `]}` + "\x03")); err != nil {
				t.Errorf("%s: %v", name, err)
				return
			}
			got, ok := bad[i].receive()
			text, _ := got.Result.(string)
			if !ok || got.Success || !strings.HasPrefix(text, luxiwire.ParsePrefix) || got.Fault == nil {
				t.Errorf("%s: %.200v, %v", name, got, ok)
				return
			}
			if !strings.Contains(got.Fault.Message, tc.text) || got.Fault.Field != tc.field || got.Fault.Code != tc.code {
				t.Errorf("%s: %s %q at %.100q", name, got.Fault.Code, got.Fault.Message, got.Fault.Field)
			}
			if len(text) > 10_000 {
				t.Errorf("%s: the refusal has %d bytes", name, len(text))
			}
			if more, ok := bad[i].receive(); ok {
				t.Errorf("%s: the connection goes on: %v", name, more)
			}
		})
	}
	// Meanwhile others are served, and jobs go on.
	for range 3 {
		if status := r.end(r.submit(delay(0.001))); status != "success" {
			t.Errorf("a job beside it: %s", status)
		}
		if a := r.query("node", []string{"name"}, nil); len(a.Data) != 1 {
			t.Errorf("a query beside it: %v", a.Data)
		}
	}
	all.Wait()
}

// What can be read and not be answered is an error of the request alone.
func TestUnanswerableQueriesKeepTheConnection(t *testing.T) {
	r := newRig(t)
	r.furnish()
	client := r.client()
	for _, tc := range []struct {
		args              []any
		class, text, hint string
	}{
		{[]any{"instance", []string{"name"}, []any{"==", "nmae", "x"}}, "ParameterError", "Can't find field named 'nmae'", "did you mean 'name'?"},
		{[]any{"instance", []string{"name"}, []any{"&", []any{"==", "name", 5}}}, "ParameterError", "Invalid types in comparison", ""},
		{[]any{"instance", []string{"name"}, []any{"==", "be/vcpus", "1"}}, "ParameterError", "Invalid types in comparison",
			`numbers stand without quotes; times are "2026-11-15", "2026-11-15 08:30" or -1h, durations 90s or 1h30m, sizes 512M or 2G`},
		{[]any{"instance", []string{"name"}, []any{"?", "name"}}, "ParameterError", "in boolean context",
			`a field alone is asked whether it is true; a text is compared: name == "TEXT" or name =~ m/PATTERN/`},
		{[]any{"instance", []string{"name"}, []any{"=~", "be/vcpus", "x"}}, "ParameterError", "expecting string", ""},
		{[]any{"instance", []string{"name"}, []any{"=[]", "name", "x"}}, "GenericError", "Unable to read list", ""},
		{[]any{"instance", []string{"name"}, []any{"==", "name", "nosuch"}}, "OpPrereqError", "Instance name nosuch not found", ""},
		{[]any{"job", []string{"id"}, []any{"==", "id", "x"}}, "GenericError", "cannot parse string 'x'", ""},
		{[]any{"cluster", []string{"name"}, nil}, "GenericError", "not supported", ""},
	} {
		err := client.Call(t.Context(), "Query", tc.args, nil)
		pair, ok := errors.AsType[*luxiwire.Error](err)
		f, known := errors.AsType[*fault.Error](err)
		if !ok || !known || pair.Class != tc.class || !strings.Contains(fmt.Sprint(pair.Args...), tc.text) || f.Hint != tc.hint {
			t.Errorf("%v: %v", tc.args, err)
		}
	}
	if a := r.query("instance", []string{"name"}, nil); len(a.Data) != 4 {
		t.Errorf("afterwards: %v", a.Data)
	}
}

// Options that there are not, or that mean nothing, are refused.
func TestBadOptionsOfQuery(t *testing.T) {
	r := newRig(t)
	for options, want := range map[string]string{
		`{"limt":1}`:        "the key 'limt' means nothing here",
		`{"limit":"x"}`:     "limit: string is not what is expected here",
		`{"limit":-1}`:      "must not be negative",
		`{"sort":["nmae"]}`: "did you mean 'name'?",
		`{"sort":"name"}`:   "sort: string is not what is expected here",
		`[]`:                "Unable to read JSObject",
		`{"after":"x"}`:     "token",
		`{"figures":["median(x)"],"group_by":[]}`: "median(x)",
		`{"group_by":["nosuch"]}`:                 "nosuch",
	} {
		got := r.dial().ask(`{"method":"Query","args":["node",["name"],null,` + options + `]}`)
		if got.Success || got.Fault == nil || !strings.Contains(got.Fault.Message+" "+got.Fault.Hint, want) {
			t.Errorf("%s: %v %+v", options, got.Result, got.Fault)
		}
	}
	for _, args := range []string{`[]`, `["node"]`, `["node",["name"]]`, `["node",["name"],null,null,null]`, `{}`, `"node"`} {
		if got := r.dial().ask(`{"method":"Query","args":` + args + `}`); got.Success || !strings.Contains(fmt.Sprint(got.Result), "Unable to read Triple") {
			t.Errorf("%s: %v", args, got.Result)
		}
	}
	for _, args := range []string{`["node",null,null]`, `["node","name",null]`, `["node",[1],null]`, `[5,["name"],null]`, `[null,["name"],null]`} {
		if got := r.dial().ask(`{"method":"Query","args":` + args + `}`); got.Success || !strings.Contains(fmt.Sprint(got.Result), "Unable to read") {
			t.Errorf("%s: %v", args, got.Result)
		}
	}
}
