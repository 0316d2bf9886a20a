package qlang_test

import (
	"errors"
	"maps"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/qlang"
)

func firstWords(err error) string {
	if e, ok := errors.AsType[*fault.Error](err); ok {
		return e.Message
	}
	return err.Error()
}

func TestJSONFaults(t *testing.T) {
	deep := strings.Repeat(`["!",`, 101) + `null` + strings.Repeat(`]`, 101)
	for _, tc := range []struct {
		in, field, message string
		code               fault.Code
	}{
		{`["&",["?","a"],["|",["=*","name","x"]]]`, "[2][1][0]", "Unknown filter operand '=*'", fault.Invalid},
		{`["&",["?","a"],["!",["==","name",true]]]`, "[2][1][2]", "Cannot deserialise filter value, expecting string or integer, got true", fault.Invalid},
		{`["==","f",1.5]`, "[2]", "Cannot deserialise numeric filter value, expecting integral but got a fractional value: 3 % 2", fault.Invalid},
		{`["==","f",1e999999999]`, "[2]", "Cannot deserialise numeric filter value, the exponent of 1e999999999 is out of range", fault.Invalid},
		{`["|",["=~","f","("]]`, "[1][2]", `(1,"missing )")`, fault.Invalid},
		{`["=~","f","a{2,1}"]`, "[2]", `bad regular expression "a{2,1}": invalid repeat count: {2,1}`, fault.Invalid},
		{`["==",7,1]`, "[1]", "Unable to read String", fault.Invalid},
		{`{"a":1}`, "", `Cannot deserialise filter: expected array [string, args], got {"a":1}`, fault.Invalid},
		{`["?","a"] x`, "", "the filter is not JSON: there is more behind its end", fault.Invalid},
		{`["?","a"`, "", "the filter is not JSON: unexpected EOF", fault.Invalid},
		{deep, strings.Repeat("[1]", 100), "the filter is nested too deep; the limit is 100 levels", fault.TooLarge},
	} {
		n, err := qlang.ParseJSON([]byte(tc.in))
		e, ok := errors.AsType[*fault.Error](err)
		if !ok {
			t.Errorf("%.60s: got %v, %v", tc.in, n, err)
			continue
		}
		if e.Code != tc.code || e.Message != tc.message || e.Field != tc.field {
			t.Errorf("%.60s: got %s %q at %q", tc.in, e.Code, e.Message, e.Field)
		}
	}
}

func TestJSONLimits(t *testing.T) {
	_, err := qlang.ParseJSON(make([]byte, qlang.MaxBytes+1))
	if !fault.Is(err, fault.TooLarge) {
		t.Errorf("long JSON: %v", err)
	}
	places := map[string]string{"parens": "char 100", "nots": "char 399"}
	for name, text := range map[string]string{
		"long":   strings.Repeat(" ", qlang.MaxBytes+1),
		"parens": strings.Repeat("(", 100_000),
		"nots":   strings.Repeat("not ", 100_000),
		"tree":   strings.Repeat("(a or b and ", 60) + "c" + strings.Repeat(")", 60),
	} {
		_, err := qlang.ParseText(text)
		if f, ok := errors.AsType[*fault.Error](err); !ok || f.Code != fault.TooLarge || places[name] != "" && f.Field != places[name] {
			t.Errorf("%s: %.80v", name, err)
		}
	}
}

// What a repetition takes is its length times the number, so a short filter can
// ask for gigabytes.
func TestPatternsOfAFilterAreBounded(t *testing.T) {
	for name, read := range map[string]func() (qlang.Node, error){
		"JSON": func() (qlang.Node, error) {
			return qlang.ParseJSON([]byte(`["|"` + strings.Repeat(`,["=~","f","a{1000}"]`, 20_000) + `]`))
		},
		"text": func() (qlang.Node, error) {
			return qlang.ParseText("f =~ m/a{1000}/i" + strings.Repeat(" or f =~ m/a{1000}/i", 300_000))
		},
		"globs": func() (qlang.Node, error) {
			return qlang.ParseText("f =* 'a?'" + strings.Repeat(" or f =* 'web????'", 300_000))
		},
		"one": func() (qlang.Node, error) {
			return qlang.ParseJSON([]byte(`["=~","f","` + strings.Repeat("(a|b)*", 200_000) + `"]`))
		},
		"names": func() (qlang.Node, error) {
			return qlang.FromArguments(strings.Fields(strings.Repeat("web????.example.com ", 300_000)), qlang.ArgOptions{NameField: "f"})
		},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		n, err := read()
		runtime.ReadMemStats(&after)
		if f, ok := errors.AsType[*fault.Error](err); !ok || f.Code != fault.TooLarge || f.Hint == "" || name != "names" && f.Field == "" {
			t.Errorf("%s: %T, %.200v", name, n, err)
		}
		if took := (after.TotalAlloc - before.TotalAlloc) >> 20; took > 500 {
			t.Errorf("%s: took %d MB", name, took)
		}
	}
	n, err := qlang.FromArguments(strings.Fields(strings.Repeat("web* ", 5000)), qlang.ArgOptions{NameField: "f"})
	if err != nil || len(qlang.Children(n)) != 5000 {
		t.Errorf("5000 names with wildcards: %v", err)
	}
}

func TestFromValue(t *testing.T) {
	n, err := qlang.FromValue([]any{"&", nil, []any{"==", "a", int64(5)}, []any{"==", "b", 6.0}, []any{"=", "c", 7}})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := string(qlang.JSON(n)), `["&",null,["==","a",5],["==","b",6],["==","c",7]]`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestTextErrorReport(t *testing.T) {
	for _, tc := range []struct{ text, want string }{
		{"name === x", "Error while parsing query filter: Failed to parse query filter 'name === x': Expected end of text, found '='  (at char 5), (line:1, col:6)\n" +
			"name === x\n     ^\nExpected end of text, found '='  (at char 5), (line:1, col:6)"},
		{"name == \"ü\" and\n  ü", "Error while parsing query filter: Failed to parse query filter 'name == \"ü\" and\n  ü': Expected end of text, found 'and'  (at char 12), (line:1, col:13)\n" +
			"name == \"ü\" and\n            ^\nExpected end of text, found 'and'  (at char 12), (line:1, col:13)"},
		{"(a =~ m/x/ nor b)", "Error while parsing query filter: Failed to parse query filter '(a =~ m/x/ nor b)': Unknown regular expression flags: 'nor'  (at char 6), (line:1, col:7)\n" +
			"(a =~ m/x/ nor b)\n      ^\nUnknown regular expression flags: 'nor'  (at char 6), (line:1, col:7)"},
	} {
		_, err := qlang.ParseText(tc.text)
		e, ok := errors.AsType[*qlang.TextError](err)
		if !ok {
			t.Errorf("%q: %v", tc.text, err)
			continue
		}
		if got := e.Report(); got != tc.want {
			t.Errorf("got\n%s\nwant\n%s", got, tc.want)
		}
	}
}

// The usual slips are answered by what to write instead.
func TestHints(t *testing.T) {
	for text, want := range map[string]string{
		`status == running`:                 `texts stand in quotes: == "running"`,
		`(status = running and name)`:       `texts stand in quotes: = "running"`,
		`oper_state == True`:                `a truth value is tested by the name of the field alone: FIELD`,
		`oper_state != false`:               `a truth value is tested by the name of the field alone: not FIELD`,
		`tags == []`:                        `a list is tested for what is in it: "VALUE" in FIELD`,
		`name =~ "web"`:                     `a pattern stands between slashes: =~ m/web/`,
		`name === "x"`:                      `equality is ==`,
		`name == `:                          `a value is missing behind ==`,
		`name "x"`:                          ``,
		`oper_ram > 5x`:                     ``,
		`name == "a" and status != stopped`: `texts stand in quotes: != "stopped"`,
		`a == "x" && b`:                     `tests are joined by and: TEST and TEST`,
		`(a == "x" & b)`:                    `tests are joined by and: TEST and TEST`,
		`a AND b`:                           `tests are joined by and: TEST and TEST`,
		`a == 5 || b`:                       `alternatives are joined by or: TEST or TEST`,
		`a OR b`:                            `alternatives are joined by or: TEST or TEST`,
		`a and !b`:                          `a test is negated by not: not TEST`,
		`!a`:                                `a test is negated by not: not TEST`,
		`env in tags`:                       `in asks whether a field, which is a list, has a value, which stands in quotes: "env" in FIELD`,
		`env not in tags`:                   `not in asks whether a field, which is a list, has a value, which stands in quotes: "env" not in FIELD`,
		`be/vcpus > 2 and tags in "web"`:    `the value stands before the field: "web" in tags`,
		`tags in"web" or`:                   `the value stands before the field: "web" in tags`,
		`status in ("running", "waiting")`:  `each of several values is a test: status == "A" or status == "B"`,
		`status in[`:                        `each of several values is a test: status == "A" or status == "B"`,
		`ä in tags`:                         ``,
		`name = => 1`:                       `at least is >=, at most is <=`,
		`name == "a`:                        `the text that begins with " does not end with it`,
		`oper_ram > 1 G`:                    `a unit stands right behind its number: 1G`,
		`oper_ram > 1 Giga`:                 ``,
		`name like "x%"`:                    `name =* "*PART*" compares with a pattern for names, name =~ m/PART/ with a regular expression`,
		`?admin_up`:                         `a truth value is tested by the name of the field alone: FIELD`,
		`in in`:                             `in asks whether a field, which is a list, has a value, which stands in quotes: "in" in FIELD`,
	} {
		_, err := qlang.ParseText(text)
		f, ok := errors.AsType[*fault.Error](err)
		if !ok || f.Hint != want {
			t.Errorf("%s: got %v", text, err)
		}
	}
}

// A word behind a pattern is no flag of it; numbers may have units.
func TestWordsBehindPatternsAndUnits(t *testing.T) {
	for text, want := range map[string]string{
		`name =~ m/web/ and status == "x"`:       `["&",["=~","name","web"],["==","status","x"]]`,
		`name =~ m/web/i and a or b =~ /c/ or d`: `["|",["&",["=~","name","(?i)web"],["?","a"]],["=~","b","c"],["?","d"]]`,
		`not (name !~ #w# or x)`:                 `["!",["|",["!",["=~","name","w"]],["?","x"]]]`,
		`oper_ram > 1.5G`:                        `[">","oper_ram","1.5G"]`,
		`end_ts >= -1h30m and x`:                 `["&",[">=","end_ts","-1h30m"],["?","x"]]`,
		`5in tags`:                               `["=[]","tags",5]`,
		`a == 5`:                                 `["==","a",5]`,
		`a == -5`:                                `["==","a",-5]`,
	} {
		n, err := qlang.ParseText(text)
		if err != nil || string(qlang.JSON(n)) != want {
			t.Errorf("%s: got %s, %v", text, qlang.JSON(n), err)
		}
	}
	for _, text := range []string{`a == 5x`, `a == 1h1`, `a == 1Gx`, `a == 1.5`, `a == -h`} {
		if n, err := qlang.ParseText(text); err == nil {
			t.Errorf("%s: got %s", text, qlang.JSON(n))
		}
	}
}

func TestSpans(t *testing.T) {
	const text = `a == 1 and ("x" in tags or not b =~ m/y/)`
	n, err := qlang.ParseText(text)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	qlang.Walk(n, func(path string, n qlang.Node) bool {
		s := n.Source()
		got = append(got, path+" "+text[s.Start:s.End])
		return true
	})
	want := []string{" " + text, "[1] a == 1", `[2] "x" in tags or not b =~ m/y/`, `[2][1] "x" in tags`, "[2][2] not b =~ m/y/", "[2][2][1] b =~ m/y/"}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s", strings.Join(got, "\n"))
	}
}

func TestNormalize(t *testing.T) {
	n, err := qlang.ParseJSON([]byte(`["|",["!=","a",1],["!",["&",["!=","b","x"],null]]]`))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := string(qlang.JSON(qlang.Normalize(n))), `["|",["!",["==","a",1]],["!",["&",["!",["==","b","x"]],null]]]`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := strings.Join(qlang.Fields(n), " "); got != "a b" {
		t.Errorf("fields: %s", got)
	}
}

func TestRegexDialect(t *testing.T) {
	for _, tc := range []struct {
		pattern, text string
		want, linear  bool
	}{
		{"^b$", "a\nb", true, true},
		{"a.b", "a\nb", false, true},
		{"(?iiss)A.B", "a\nb", true, true},
		{"^ü.$", "üß", true, true},
		{"a(?=b)", "ab", true, false},
		{"^a(?!b)", "x\nac", true, false},
		{"(a)\\1$", "aa\nb", true, false},
		{"a++b", "aab", true, false},
	} {
		re, err := qlang.CompileRegex(tc.pattern)
		if err != nil {
			t.Errorf("%q: %v", tc.pattern, err)
			continue
		}
		got, err := re.MatchString(tc.text)
		if got != tc.want || err != nil || re.Linear() != tc.linear {
			t.Errorf("%q on %q: got %v, %v, linear %v", tc.pattern, tc.text, got, err, re.Linear())
		}
	}
}

// TestLiteralPatternsMatchLikeTheEngine holds the short cut for literal
// patterns against the same pattern in a form that has no short cut.
func TestLiteralPatternsMatchLikeTheEngine(t *testing.T) {
	letters := rapid.SampledFrom([]rune{'a', 'b', '\n', 'ü', '\uFFFD'})
	text := rapid.StringOfN(letters, 0, 8, -1)
	rapid.Check(t, func(t *rapid.T) {
		pattern := rapid.SampledFrom([]string{"", "^"}).Draw(t, "begin") +
			rapid.StringOfN(letters, 0, 3, -1).Draw(t, "literal") +
			rapid.SampledFrom([]string{"", "$"}).Draw(t, "end")
		quick, err := qlang.CompileRegex(pattern)
		if err != nil {
			t.Fatal(err)
		}
		engine := regexp.MustCompile("(?m)(?:" + pattern + ")")
		s := text.Draw(t, "text")
		if got, err := quick.MatchString(s); err != nil || got != engine.MatchString(s) {
			t.Fatalf("%q on %q: got %v, %v", pattern, s, got, err)
		}
	})
}

func TestRegexTimeLimit(t *testing.T) {
	re, err := qlang.CompileRegex(`^(?=(a+)+$)(a+)+\1$`)
	if err != nil {
		t.Fatal(err)
	}
	for range 1000 { // which would take 100 s if the pattern were not given up
		if _, err := re.MatchString(strings.Repeat("a", 40) + "b"); !fault.Is(err, fault.TooLarge) {
			t.Fatalf("error %v, want one about the limit", err)
		}
	}
}

func TestSuggest(t *testing.T) {
	fields := map[string]bool{"job": true, "name": true, "pnode": true, "snodes": true, "be/vcpus": true, "OP_ID": true, "instance_name": true}
	for in, want := range map[string]string{
		"nmae": "name", "pnod": "pnode", "op_id": "OP_ID", "be/vcpu": "be/vcpus", "zzz": "", "foo": "", "instance": "", "instnace_nam": "instance_name",
	} {
		if got := qlang.Suggest(in, maps.Keys(fields)); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

func TestTextRefuses(t *testing.T) {
	for _, in := range []string{`null`, `["&"]`, `["|",["?","a"]]`, `["?","na-me"]`, `["?",""]`, `["==","a","x\ny"]`, `["==","a","'\""]`, `["!",["==","a","\\"]]`} {
		n, err := qlang.ParseJSON([]byte(in))
		if err != nil {
			t.Fatal(err)
		}
		if s, err := qlang.Text(n); err == nil {
			t.Errorf("%s: printed %q", in, s)
		}
		if qlang.String(n) != in {
			t.Errorf("%s: shown as %s", in, qlang.String(n))
		}
	}
}

func genNode(depth int) *rapid.Generator[qlang.Node] {
	field := rapid.OneOf(rapid.StringMatching(`[A-Za-z][A-Za-z0-9_/.]{0,6}`), rapid.SampledFrom([]string{"not", "and", "or", "in", "m"}))
	value := rapid.Custom(func(t *rapid.T) qlang.Value {
		if rapid.Bool().Draw(t, "int") {
			return qlang.IntValue(rapid.Int64().Draw(t, "n"))
		}
		return qlang.TextValue(rapid.OneOf(rapid.String(), rapid.StringMatching(`[\\x"'a ]{0,6}`)).Draw(t, "s"))
	})
	return rapid.Custom(func(t *rapid.T) qlang.Node {
		kind := rapid.IntRange(0, 8).Draw(t, "kind")
		if depth == 0 {
			kind = kind%5 + 4
		}
		many := rapid.SliceOfN(rapid.Deferred(func() *rapid.Generator[qlang.Node] { return genNode(depth - 1) }), 0, 3)
		switch kind {
		case 0:
			return &qlang.And{Args: many.Draw(t, "args")}
		case 1:
			return &qlang.Or{Args: many.Draw(t, "args")}
		case 2, 3:
			return &qlang.Not{Arg: genNode(depth-1).Draw(t, "arg")}
		case 4:
			return &qlang.True{Field: field.Draw(t, "f")}
		case 5:
			op := rapid.SampledFrom([]qlang.Op{qlang.Eq, qlang.Ne, qlang.Lt, qlang.Le, qlang.Gt, qlang.Ge}).Draw(t, "op")
			return &qlang.Compare{Op: op, Field: field.Draw(t, "f"), Value: value.Draw(t, "v")}
		case 6:
			pattern := rapid.SampledFrom([]string{"", "^a/b\\.c$", "(?i)x", "(?si)y", "(?i)(?s)z", "a\tb\n", "\\d+\\n", "ü|#", "(?=a)"}).Draw(t, "re")
			re, err := qlang.CompileRegex(pattern)
			if err != nil {
				t.Fatal(err)
			}
			return &qlang.Match{Field: field.Draw(t, "f"), Regex: re}
		case 7:
			return &qlang.Missing{Field: field.Draw(t, "f")}
		default:
			return &qlang.Contains{Field: field.Draw(t, "f"), Value: value.Draw(t, "v")}
		}
	})
}

func TestPrintedFiltersReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := genNode(3).Draw(t, "filter")
		viaJSON, err := qlang.ParseJSON(qlang.JSON(n))
		if err != nil || !qlang.Equal(viaJSON, n) {
			t.Fatalf("JSON %s reads as %s, %v", qlang.JSON(n), qlang.JSON(viaJSON), err)
		}
		text, err := qlang.Text(n)
		if err != nil {
			return
		}
		viaText, err := qlang.ParseText(text)
		if err != nil || !qlang.Equal(viaText, n) {
			t.Fatalf("text %q of %s reads as %s, %v", text, qlang.JSON(n), qlang.JSON(viaText), err)
		}
	})
}

// notSlow fails when reading what a fuzzer makes, which is short, took longer
// than a machine under load could explain.
func notSlow(t *testing.T, begun time.Time) {
	t.Helper()
	if took := time.Since(begun); took > 5*time.Second {
		t.Errorf("took %v", took)
	}
}

func FuzzParseText(f *testing.F) {
	f.Add(strings.Repeat("(a or b and ", 40) + "c" + strings.Repeat(")", 40))
	f.Add(strings.Repeat("not ", 60) + "a =~ m/x/ and b")
	for _, s := range []string{`a == 1 and (b or not "x" in c)`, `n =~ m/^a\/b/i or n !* 'web?'`, `not not in in`, `"a""b" not in x`, "(((", `a =~ m/x/ and b`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		defer notSlow(t, time.Now())
		n, err := qlang.ParseText(text)
		if err != nil {
			if e, ok := errors.AsType[*qlang.TextError](err); ok && e.Report() == "" {
				t.Error("no report")
			}
			return
		}
		printed, err := qlang.Text(n)
		if err != nil {
			t.Fatalf("%q was read as %s but cannot be printed: %v", text, qlang.JSON(n), err)
		}
		again, err := qlang.ParseText(printed)
		if err != nil || !qlang.Equal(n, again) {
			t.Fatalf("%q printed as %q reads as %s, %v", text, printed, qlang.JSON(again), err)
		}
	})
}

func FuzzParseJSON(f *testing.F) {
	f.Add([]byte(strings.Repeat(`["!",`, 90) + "null" + strings.Repeat("]", 90)))
	for _, s := range []string{`["&",["==","a",1],null,["|"]]`, `["!",["=~","b","^x(?=y)"]]`, `["=[]","c",-5e2]`, `["?","d"]`, `["!=","a",""]`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		defer notSlow(t, time.Now())
		n, err := qlang.ParseJSON(data)
		if err != nil {
			return
		}
		again, err := qlang.ParseJSON(qlang.JSON(n))
		if err != nil || !qlang.Equal(n, again) {
			t.Fatalf("%s printed as %s reads as %s, %v", data, qlang.JSON(n), qlang.JSON(again), err)
		}
	})
}

func TestLongMatchIsInterrupted(t *testing.T) {
	re, err := qlang.CompileRegex(`[ab]*a` + strings.Repeat(`[ab]{1000}`, 20) + `c`)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Repeat("ab", 20<<10)
	asked, stop := 0, errors.New("nobody wants it any more")
	found, err := re.Match(text, func() error {
		if asked++; asked == 3 {
			return stop
		}
		return nil
	})
	if found || !errors.Is(err, stop) || asked != 3 {
		t.Errorf("found %v, %v, asked %d times", found, err, asked)
	}
	// One that needs backtracking is not begun.
	if re, err = qlang.CompileRegex(`(?=a)(a|a|aa)+$`); err != nil {
		t.Fatal(err)
	}
	for range 5 {
		if found, err := re.Match(strings.Repeat("a", 60)+"b", func() error { return stop }); found || !errors.Is(err, stop) || re.Strikes() != 0 {
			t.Errorf("found %v, %v, with %d strikes", found, err, re.Strikes())
		}
	}
	// What takes long gives the same answers as what does not.
	long := strings.Repeat("ü\n", 1<<17)
	for pattern, want := range map[string]bool{`^ü$`: true, `[^ü\n]`: false, `\Aü(?:\nü){3}\n`: true, `x|y`: false} {
		re, err := qlang.CompileRegex(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, interrupted := range []func() error{nil, func() error { return nil }} {
			if got, err := re.Match(long, interrupted); got != want || err != nil {
				t.Errorf("%s: %v, %v", pattern, got, err)
			}
		}
	}
}
