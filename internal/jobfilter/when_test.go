package jobfilter_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/jobfilter"
)

// drawPredicate draws a predicate of any kind, with strings and patterns that hold what
// the text of predicates is made of.
func drawPredicate(t *rapid.T, depth int) any {
	if depth > 0 && rapid.IntRange(0, 3).Draw(t, "not") == 0 {
		return []any{"not", drawPredicate(t, depth-1)}
	}
	kind := rapid.SampledFrom([]string{"jobid", "opcode", "reason"}).Draw(t, "kind")
	return []any{kind, drawExpression(t, 2)}
}

func drawExpression(t *rapid.T, depth int) any {
	text := rapid.SampledFrom([]string{"x", "a and reason: b", " and not opcode: x == 1", `both " and '`, "line\nbreak", "and", ") or (", "watermark"})
	field := rapid.SampledFrom([]string{"id", "OP_ID", "reason", "and", "not", "null", "nullable", "hvparams.a", "odd name"})
	op := rapid.IntRange(0, 7).Draw(t, "op")
	if depth == 0 {
		op = op%4 + 4
	}
	many := func() []any {
		out := make([]any, rapid.IntRange(0, 3).Draw(t, "n"))
		for i := range out {
			out[i] = drawExpression(t, depth-1)
		}
		return out
	}
	switch op {
	case 0:
		return append([]any{"&"}, many()...)
	case 1:
		return append([]any{"|"}, many()...)
	case 2:
		return []any{"!", drawExpression(t, depth-1)}
	case 3:
		return nil
	case 4:
		return []any{"?", field.Draw(t, "f")}
	case 5:
		return []any{"=~", field.Draw(t, "f"), rapid.SampledFrom([]string{"a and reason: b", "/", "x and opcode: y", "(?i)z", ""}).Draw(t, "re")}
	case 6:
		return []any{rapid.SampledFrom([]string{"==", "!=", "<", ">="}).Draw(t, "cmp"), field.Draw(t, "f"), text.Draw(t, "v")}
	default:
		return []any{"=[]", field.Draw(t, "f"), rapid.Int64().Draw(t, "v")}
	}
}

// TestShownConditionsAreTaken: what is shown of the predicates of any rule is read as
// those predicates.
func TestShownConditionsAreTaken(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := make([]any, rapid.IntRange(0, 4).Draw(t, "predicates"))
		for i := range list {
			list[i] = drawPredicate(t, 2)
		}
		data, err := json.Marshal(list)
		if err != nil {
			t.Fatal(err)
		}
		want, err := jobfilter.ParsePredicates(data)
		if err != nil {
			t.Fatal(err)
		}
		text := jobfilter.WhenText(want)
		got, err := jobfilter.ParseWhen(text)
		if err != nil {
			t.Fatalf("%s is shown as %s: %v", data, text, err)
		}
		before, _ := json.Marshal(want)
		after, _ := json.Marshal(got)
		if string(before) != string(after) {
			t.Fatalf("%s is shown as %s, which is read as %s", before, text, after)
		}
	})
}

func TestParseWhen(t *testing.T) {
	for text, want := range map[string]string{
		"every job":                        `[]`,
		`opcode: OP_ID == "OP_TEST_DELAY"`: `[["opcode",["==","OP_ID","OP_TEST_DELAY"]]]`,
		`  opcode :  OP_ID = "X"  `:        `[["opcode",["==","OP_ID","X"]]]`,
		`jobid: id > 5 and reason: reason =~ m/x and opcode: y/`:            `[["jobid",[">","id",5]],["reason",["=~","reason","x and opcode: y"]]]`,
		`opcode: a == 1 and b == 2 and not reason: source == "user"`:        `[["opcode",["&",["==","a",1],["==","b",2]]],["not",["reason",["==","source","user"]]]]`,
		`opcode: (a == 1 or b == 2) and reason: source == " and opcode: x"`: `[["opcode",["|",["==","a",1],["==","b",2]]],["reason",["==","source"," and opcode: x"]]]`,
		`opcode: a == 1 or b == 2`:                                          `[["opcode",["|",["==","a",1],["==","b",2]]]]`,
		`not not jobid: ["=","id",5]  and   reason: null`:                   `[["not",["not",["jobid",["==","id",5]]]],["reason",null]]`,
	} {
		got, err := jobfilter.ParseWhen(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		wanted, err := jobfilter.ParsePredicates([]byte(want))
		if err != nil {
			t.Fatal(err)
		}
		have, _ := json.Marshal(got)    //nolint:errchkjson // it was read before
		same, _ := json.Marshal(wanted) //nolint:errchkjson // it was read before
		if string(have) != string(same) {
			t.Errorf("%s: got %s, want %s", text, have, want)
		}
	}
}

func TestParseWhenFaults(t *testing.T) {
	for text, want := range map[string]struct{ message, hint string }{
		"":                                        {"begins with jobid:, opcode: or reason:", "for example"},
		`OP_ID == "OP_X"`:                         {"begins with", `did you mean opcode: OP_ID == "OP_X" ?`},
		`reason =~ m/x/`:                          {"begins with", `did you mean reason: reason =~ m/x/ ?`},
		`job: id > 5`:                             {"begins with", "for example"},
		`not not: id > 5`:                         {"begins with", "for example"},
		`opcode: a == 1 or b == 2 and reason: c`:  {"stands in parentheses", "opcode: (A or B) and ..."},
		`opcode: OP_ID == X`:                      {"Failed to parse", "texts stand in quotes"},
		`opcode: OP_ID == X and reason: reason`:   {"Failed to parse", "texts stand in quotes"},
		`opcode: ["=="`:                           {"not JSON", ""},
		`opcode: ["?","a"] or reason: b`:          {`the end or "and"`, ""},
		strings.Repeat("not ", 200) + `jobid: id`: {"nested too deep", ""},
	} {
		got, err := jobfilter.ParseWhen(text)
		f, ok := errors.AsType[*fault.Error](err)
		if !ok || !strings.Contains(f.Message, want.message) || !strings.Contains(f.Hint, want.hint) {
			t.Errorf("%.60s: %v, %v", text, got, err)
		}
	}
}
