package jobfilter_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/jobfilter"
	"github.com/drover-project/drover/internal/opcode"
	"github.com/drover-project/drover/internal/reason"
)

// op makes an opcode without asking the catalogue.
func op(id string, params map[string]any, entries ...reason.Entry) *opcode.Opcode {
	return &opcode.Opcode{ID: id, Params: params, Reason: entries}
}

func delay(entries ...reason.Entry) *opcode.Opcode {
	return op("OP_TEST_DELAY", map[string]any{
		"duration": 0.001, "on_master": true, "on_nodes": []any{}, "repeat": int64(0), "interruptible": false, "no_locks": true,
	}, append(entries, reason.Entry{Source: "gnt:opcode:test_delay", Reason: "job=25;index=0", Time: 2})...)
}

func predicates(t testing.TB, text string) []jobfilter.Predicate {
	t.Helper()
	out, err := jobfilter.ParsePredicates([]byte(text))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return out
}

func rule(t testing.TB, priority int, watermark int64, action jobfilter.Kind, text string) jobfilter.Rule {
	t.Helper()
	a := jobfilter.Action{Kind: action}
	if action == jobfilter.RateLimit {
		a.Limit = 2
	}
	return jobfilter.Rule{UUID: "u", Priority: priority, Watermark: watermark, Predicates: predicates(t, text), Action: a}
}

func chain(t testing.TB, rules ...jobfilter.Rule) *jobfilter.Chain {
	t.Helper()
	c, err := jobfilter.Compile(rules)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestPredicates(t *testing.T) {
	maint := reason.Entry{Source: "user", Reason: "maintenance window", Time: 1363088484000000000}
	create := op("OP_INSTANCE_CREATE", map[string]any{
		"instance_name": "web1", "mode": "create", "pnode": "node1", "hvparams": map[string]any{"kernel_path": "/boot/k", "acpi": true, "nested": map[string]any{"n": int64(3)}},
		"disks": []any{map[string]any{"size": int64(1024)}}, "tags": []any{"a", "größe"}, "sizes": []any{int64(1), 2.0, "x"}, "empty": nil,
	}, maint)
	create.Priority = -10
	create.Comment = new("für Müller")
	ops := []*opcode.Opcode{delay(maint), create}
	for predicate, want := range map[string]bool{
		`["jobid", null]`:                                                                    true,
		`["jobid", [">", "id", "watermark"]]`:                                                true,
		`["jobid", ["<=", "id", "watermark"]]`:                                               false,
		`["jobid", ["=", "id", 25]]`:                                                         true,
		`["jobid", ["!=", "id", 25]]`:                                                        false,
		`["jobid", [">", "id", 99999999999999999999]]`:                                       false,
		`["jobid", ["<", "id", 99999999999999999999]]`:                                       true,
		`["jobid", ["=~", "id", "^2"]]`:                                                      true,
		`["jobid", ["=~", "id", "3"]]`:                                                       false,
		`["jobid", [">", "id", "abc"]]`:                                                      false,
		`["jobid", ["!", [">", "id", "abc"]]]`:                                               true,
		`["jobid", ["!", ["==", "nosuch", 1]]]`:                                              false,
		`["jobid", ["|", ["==", "nosuch", 1], ["==", "id", 25]]]`:                            true,
		`["jobid", ["&"]]`:                                                                   true,
		`["jobid", ["|"]]`:                                                                   false,
		`["reason", ["=~", "reason", "^maint"]]`:                                             true,
		`["reason", ["=~", "reason", "pink"]]`:                                               false,
		`["reason", ["|", ["=~", "reason", "^maint"], ["=", "source", "nobody"]]]`:           true,
		`["reason", ["&", ["=", "source", "user"], ["=~", "reason", "window$"]]]`:            true,
		`["reason", ["&", ["=", "source", "user"], ["=~", "reason", "^job="]]]`:              false,
		`["reason", ["!", ["=~", "reason", "^maint"]]]`:                                      true,
		`["not", ["reason", ["=~", "reason", "^maint"]]]`:                                    false,
		`["not", ["not", ["reason", ["=~", "reason", "^maint"]]]]`:                           true,
		`["reason", ["?", "reason"]]`:                                                        false,
		`["reason", ["!", ["?", "reason"]]]`:                                                 false,
		`["reason", [">", "timestamp", 1363088483999999999]]`:                                true,
		`["reason", ["==", "nosuch", "x"]]`:                                                  false,
		`["opcode", ["==", "OP_ID", "OP_INSTANCE_CREATE"]]`:                                  true,
		`["opcode", ["==", "OP_ID", "OP_INSTANCE_REMOVE"]]`:                                  false,
		`["opcode", ["=~", "OP_ID", "^OP_TEST"]]`:                                            true,
		`["opcode", ["&", ["==", "OP_ID", "OP_TEST_DELAY"], ["==", "pnode", "node1"]]]`:      false,
		`["opcode", ["&", ["==", "OP_ID", "OP_INSTANCE_CREATE"], ["==", "pnode", "node1"]]]`: true,
		`["opcode", ["==", "hvparams.kernel_path", "/boot/k"]]`:                              true,
		`["opcode", ["?", "hvparams.acpi"]]`:                                                 true,
		`["opcode", ["==", "hvparams.nested.n", 3]]`:                                         true,
		`["opcode", ["==", "hvparams.nested.n.x", 3]]`:                                       false,
		`["opcode", ["==", "pnode.x", 3]]`:                                                   false,
		`["opcode", ["=[]", "tags", "größe"]]`:                                               true,
		`["opcode", ["=[]", "tags", "b"]]`:                                                   false,
		`["opcode", ["=[]", "sizes", 2]]`:                                                    true,
		`["opcode", ["!", ["=[]", "tags", "b"]]]`:                                            true,
		`["opcode", ["=[]", "pnode", "node1"]]`:                                              false,
		`["opcode", ["?", "no_locks"]]`:                                                      true,
		`["opcode", ["?", "dry_run"]]`:                                                       false,
		`["opcode", ["==", "priority", -10]]`:                                                true,
		`["opcode", ["=~", "comment", "Müller"]]`:                                            true,
		`["opcode", [">", "duration", 0]]`:                                                   true,
		`["opcode", ["<", "duration", 1]]`:                                                   true,
		`["opcode", ["==", "pnode", 1]]`:                                                     false,
		`["opcode", ["&", ["==", "pnode", "node1"], ["!", ["==", "mode", 5]]]]`:              true,
		`["opcode", ["!", ["==", "nosuch", "x"]]]`:                                           false,
		`["opcode", ["!=", "pnode", "node2"]]`:                                               true,
		`["opcode", ["!=", "pnode", "node1"]]`:                                               false,
		`["opcode", ["|", ["==", "nosuch", "x"], ["==", "pnode", "node1"]]]`:                 true,
		`["opcode", ["==", "empty", "x"]]`:                                                   false,
		`["opcode", ["=~", "pnode", "node(?=1)"]]`:                                           true,
		`["opcode", ["missing", "pnode"]]`:                                                   true,
		`["opcode", ["missing", "OP_ID"]]`:                                                   false,
		`["opcode", ["&", ["==", "pnode", "node1"], ["missing", "empty"]]]`:                  true,
		`["opcode", ["&", ["==", "pnode", "node1"], ["!", ["missing", "snode"]]]]`:           false,
	} {
		c := chain(t, rule(t, 0, 10, jobfilter.Reject, "["+predicate+"]"))
		got := c.Decide(25, ops).Rule != nil
		if got != want {
			t.Errorf("%s: applies %v, want %v\n%s", predicate, got, want, c.Explain(25, ops)[0])
		}
		if explained := c.Explain(25, ops)[0].Outcome == jobfilter.Decides; explained != got {
			t.Errorf("%s: explained as %v", predicate, explained)
		}
	}
}

// TestDesignExamples runs the examples of the design with the effect that its
// text promises.
// Of rules with one priority the one with the older watermark is asked first,
// and of those the one with the smaller UUID, in whatever order they come.
func TestOrderOfRules(t *testing.T) {
	var sorted []jobfilter.Rule
	for _, key := range []struct {
		priority  int
		watermark int64
		uuid      string
	}{{-1, 9, "z"}, {0, 3, "y"}, {0, 7, "b"}, {0, 7, "c"}, {2, 0, "a"}} {
		r := rule(t, key.priority, key.watermark, jobfilter.Pause, `[]`)
		r.UUID = key.uuid
		sorted = append(sorted, r)
	}
	for i := range sorted {
		behind := slices.Clone(sorted[i:])
		slices.Reverse(behind)
		if got := chain(t, behind...).Decide(100, []*opcode.Opcode{delay()}).Rule.UUID; got != sorted[i].UUID {
			t.Errorf("of %s and those behind it, %s decides", sorted[i].UUID, got)
		}
		for k := range sorted {
			if got := jobfilter.Compare(&sorted[i], &sorted[k]); (got < 0) != (i < k) || (got == 0) != (i == k) {
				t.Errorf("Compare of %s and %s is %d", sorted[i].UUID, sorted[k].UUID, got)
			}
		}
	}
}

func TestDesignExamples(t *testing.T) {
	maint := delay(reason.Entry{Source: "user", Reason: "maintenance pink bunny"})
	other := delay(reason.Entry{Source: "user", Reason: "something else"})
	create := op("OP_INSTANCE_CREATE", nil, reason.Entry{Source: "user"})
	newJobs := `["jobid", [">", "id", "watermark"]]`
	for _, tc := range []struct {
		name  string
		rules []jobfilter.Rule
		id    int64
		op    *opcode.Opcode
		want  jobfilter.Kind
	}{
		{"drain, new job", []jobfilter.Rule{rule(t, 0, 100, jobfilter.Reject, `[`+newJobs+`]`)}, 101, other, jobfilter.Reject},
		{"drain, old job", []jobfilter.Rule{rule(t, 0, 100, jobfilter.Reject, `[`+newJobs+`]`)}, 100, other, jobfilter.Accept},
		{"soft drain, new job", []jobfilter.Rule{rule(t, 0, 100, jobfilter.Pause, `[`+newJobs+`]`)}, 101, other, jobfilter.Pause},
		{"maintenance, its job", maintenance(t), 101, maint, jobfilter.Accept},
		{"maintenance, another job", maintenance(t), 101, other, jobfilter.Pause},
		{"maintenance, an old job", maintenance(t), 99, other, jobfilter.Accept},
		{"maintenance by not, its job", maintenanceByNot(t), 101, maint, jobfilter.Accept},
		{"maintenance by not, another job", maintenanceByNot(t), 101, other, jobfilter.Pause},
		{"maintenance as the design writes it, its job", []jobfilter.Rule{rule(t, 1, 100, jobfilter.Pause,
			`[["reason", ["!", ["=~", "reason", "maintenance pink bunny"]]]]`)}, 101, maint, jobfilter.Pause},
		{"no creations, a creation", []jobfilter.Rule{rule(t, 1, 0, jobfilter.Reject, `[["opcode", ["=", "OP_ID", "OP_INSTANCE_CREATE"]]]`)}, 1, create, jobfilter.Reject},
		{"no creations, another job", []jobfilter.Rule{rule(t, 1, 0, jobfilter.Reject, `[["opcode", ["=", "OP_ID", "OP_INSTANCE_CREATE"]]]`)}, 1, other, jobfilter.Accept},
		{"switched off", []jobfilter.Rule{rule(t, 0, 0, jobfilter.Continue, `[]`), rule(t, 1, 0, jobfilter.Pause, `[]`)}, 1, other, jobfilter.Pause},
	} {
		if got := chain(t, tc.rules...).Decide(tc.id, []*opcode.Opcode{tc.op}).Action().Kind; got != tc.want {
			t.Errorf("%s: %s, want %s", tc.name, got, tc.want)
		}
	}
}

func maintenance(t *testing.T) []jobfilter.Rule {
	return []jobfilter.Rule{
		rule(t, 1, 100, jobfilter.Pause, `[["jobid", [">", "id", "watermark"]]]`),
		rule(t, 0, 100, jobfilter.Accept, `[["reason", ["=~", "reason", "maintenance pink bunny"]]]`),
	}
}

func maintenanceByNot(t *testing.T) []jobfilter.Rule {
	return []jobfilter.Rule{rule(t, 1, 100, jobfilter.Pause,
		`[["jobid", [">", "id", "watermark"]], ["not", ["reason", ["=~", "reason", "maintenance pink bunny"]]]]`)}
}

func TestRuleJSON(t *testing.T) {
	in := `{"uuid":"8b53f7de-f8e2-4470-99bd-1efe746e434f","watermark":7,"priority":2,` +
		`"predicates":[["jobid",["|",["=","id",1],["!=","id","watermark"]]],["not",["opcode",null]]],` +
		`"action":["RATE_LIMIT",3],"reason_trail":[["user","für Müller",5]]}`
	want := strings.NewReplacer(`["=","id",1]`, `["==","id",1]`, `["!=","id","watermark"]`, `["!",["==","id","watermark"]]`).Replace(in)
	var r jobfilter.Rule
	if err := json.Unmarshal([]byte(in), &r); err != nil {
		t.Fatal(err)
	}
	out, err := json.Marshal(r)
	if err != nil || string(out) != want {
		t.Errorf("got %s, %v, want %s", out, err, want)
	}
	if got, want := r.Describe(), `filter rule 8b53f7de-f8e2-4470-99bd-1efe746e434f (RATE_LIMIT 3; user: "für Müller")`; got != want {
		t.Errorf("described as %s", got)
	}
}

func TestParseRuleDefaults(t *testing.T) {
	r, err := jobfilter.ParseRule([]byte(`{}`))
	if err != nil {
		t.Fatal(err)
	}
	out, err := json.Marshal(r)
	if want := `{"uuid":"","watermark":0,"priority":0,"predicates":[],"action":"CONTINUE","reason_trail":null}`; err != nil || string(out) != want {
		t.Errorf("got %s, %v", out, err)
	}
}

func TestParseRuleFaults(t *testing.T) {
	deep := strings.Repeat(`["not",`, 101) + `["jobid",null]` + strings.Repeat(`]`, 101)
	for _, tc := range []struct{ in, field, message string }{
		{`[1]`, "", "Invalid body contents, not a dictionary"},
		{`null`, "", "Invalid body contents, not a dictionary"},
		{`{`, "", "Unable to parse JSON data"},
		{`{"prority":1}`, "prority", "Invalid body parameters: filter rule doesn't support the parameter 'prority'"},
		{`{"uuid":"x"}`, "uuid", "Invalid body parameters: filter rule doesn't support the parameter 'uuid'"},
		{`{"priority":"high"}`, "priority", "'priority' parameter: Type is 'str', but 'int' is expected"},
		{`{"priority":null}`, "priority", "'priority' parameter: Type is 'NoneType', but 'int' is expected"},
		{`{"priority":1.0}`, "priority", "'priority' parameter: Type is 'float', but 'int' is expected"},
		{`{"predicates":"x"}`, "predicates", "'predicates' parameter: Type is 'str', but 'list' is expected"},
		{`{"reason":"because"}`, "reason", "'reason' parameter: Type is 'str', but 'list' is expected"},
		{`{"priority":-1}`, "priority", "Invalid value for non-negative type '-1'"},
		{`{"priority":3000000000}`, "priority", "priority 3000000000 is too large; the largest is 2147483647"},
		{`{"priority":1e400}`, "priority", "'priority' parameter: Type is 'float', but 'int' is expected"},
		{`{"name":7}`, "name", "'name' parameter: Type is 'int', but 'str' is expected"},
		{`{"name":"rack 3"}`, "name", `the name "rack 3" of a filter rule has ' ' at byte 4`},
		{`{"name":"3rd"}`, "name", `the name "3rd" of a filter rule has '3' at byte 0`},
		{`{"name":"b53f7dee-f8e2-4470-99bd-1efe746e434f"}`, "name", `the name "b53f7dee-f8e2-4470-99bd-1efe746e434f" of a filter rule looks like a UUID`},
		{`{"name":"` + strings.Repeat("x", 65) + `"}`, "name", `the name "` + strings.Repeat("x", 65) + `" of a filter rule has 65 bytes, at most 64 are allowed`},
		{`{"comment":"` + strings.Repeat("x", 4097) + `"}`, "comment", "a comment may have at most 4096 bytes, this one has 4097"},
		{`{"until":"tomorrow"}`, "until", `until is no moment: "tomorrow"`},
		{`{"shadow":"yes"}`, "shadow", "'shadow' parameter: Type is 'str', but 'bool' is expected"},
		{`{"action":"EXPLODE"}`, "action", `malformed FilterAction JSON: "EXPLODE"`},
		{`{"action":null}`, "action", `malformed FilterAction JSON: null`},
		{`{"action":"RATE_LIMIT"}`, "action", `malformed FilterAction JSON: "RATE_LIMIT"`},
		{`{"action":["PAUSE"]}`, "action", `malformed FilterAction JSON: ["PAUSE"]`},
		{`{"action":["RATE_LIMIT","x"]}`, "action", "RATE_LIMIT argument must be a positive integer"},
		{`{"action":["RATE_LIMIT",0]}`, "action", "RATE_LIMIT argument must be a positive integer"},
		{`{"action":["RATE_LIMIT",1,2]}`, "action", "RATE_LIMIT argument must be a positive integer"},
		{`{"reason":[["a","b"]]}`, "reason[0]", `reason[0]: a reason entry must be a list [source, reason, nanoseconds], got ["a","b"]`},
		{`{"predicates":[["nosuch",["=","id",1]]]}`, "predicates[0]", `predicates[0]: malformed FilterPredicate: bad parameter list for 'nosuch' predicate: [["=","id",1]]`},
		{`{"predicates":[["jobid",null],["jobid"]]}`, "predicates[1]", `predicates[1]: malformed FilterPredicate: bad parameter list for 'jobid' predicate: []`},
		{`{"predicates":[[]]}`, "predicates[0]", `predicates[0]: malformed FilterPredicate: must be a list with the first entry being a string describing the predicate type`},
		{`{"predicates":[["jobid",["frobnicate","id",1]]]}`, "predicates[0][1][0]", `predicates[0][1][0]: Unknown filter operand 'frobnicate'`},
		{`{"predicates":[["not",["reason",["&",["==","source",1.5]]]]]}`, "predicates[0][1][1][1][2]",
			`predicates[0][1][1][1][2]: Cannot deserialise numeric filter value, expecting integral but got a fractional value: 3 % 2`},
		{`{"predicates":[["reason",["=~","reason","["]]]}`, "predicates[0][1][2]", `predicates[0][1][2]: (1,"missing terminating ] for character class")`},
		{`{"predicates":[` + deep + `]}`, "predicates[0]" + strings.Repeat("[1]", 100), "predicates[0]" + strings.Repeat("[1]", 100) + `: nested too deep; the limit is 100 levels`},
	} {
		_, err := jobfilter.ParseRule([]byte(tc.in))
		e, ok := errors.AsType[*fault.Error](err)
		if !ok || e.Message != tc.message || e.Field != tc.field {
			t.Errorf("%.60s: got %v", tc.in, err)
			if ok {
				t.Logf("%q at %q", e.Message, e.Field)
			}
		}
	}
}

func TestCheckUUID(t *testing.T) {
	for in, ok := range map[string]bool{
		"8b53f7de-f8e2-4470-99bd-1efe746e434f": true, "8B53F7DE-f8e2-4470-99bd-1efe746e434f": false,
		"8b53f7de-f8e2-4470-99bd-1efe746e434": false, "8b53f7def8e2447099bd1efe746e434f": false, "": false,
	} {
		if err := jobfilter.CheckUUID(in); (err == nil) != ok {
			t.Errorf("%q: %v", in, err)
		}
	}
}

func TestExplain(t *testing.T) {
	user := reason.Entry{Source: "user", Reason: "new web server"}
	create := op("OP_INSTANCE_CREATE", map[string]any{"instance_name": "web1", "pnode": "node1"}, user)
	rules := []jobfilter.Rule{
		{UUID: "a", Priority: 0, Action: jobfilter.Action{Kind: jobfilter.Accept}, Reason: reason.Trail{{Source: "alice", Reason: "rack 3"}},
			Predicates: predicates(t, `[["reason",["=~","reason","pink bunny"]]]`)},
		{UUID: "b", Priority: 1, Action: jobfilter.Action{Kind: jobfilter.Continue}, Predicates: predicates(t, `[]`)},
		{UUID: "c", Priority: 2, Watermark: 10, Action: jobfilter.Action{Kind: jobfilter.Pause}, Reason: reason.Trail{{Source: "gnt:client"}},
			Predicates: predicates(t, `[["jobid",[">","id","watermark"]],["opcode",["|",["==","OP_ID","OP_NODE_ADD"],["&",["==","pnode","node1"],["!",["=~","instance_name","^db"]]]]],["not",["opcode",["?","dry_run"]]]]`)},
		{UUID: "d", Priority: 3, Action: jobfilter.Action{Kind: jobfilter.Reject}, Predicates: predicates(t, `[["jobid",["!",["<","id",1]]]]`)},
	}
	want := []string{
		`filter rule a (ACCEPT; alice: "rack 3") does not apply: predicate 0 does not hold (reason: reason =~ m/pink bunny/): ` +
			`opcode 0, reason entry 0: reason =~ m/pink bunny/ is false (reason is "job=25;index=0"); opcode 1, reason entry 0: reason =~ m/pink bunny/ is false (reason is "new web server")`,
		`filter rule b (CONTINUE; no reason given) continues: its action is CONTINUE, though it has no predicates and so concerns every job`,
		`filter rule c (PAUSE; added by gnt:client without a reason) decides: predicate 0 holds (jobid: id > "watermark"): job: id > "watermark" is true (id is 25, watermark is 10); ` +
			`predicate 1 holds (opcode: (OP_ID == "OP_NODE_ADD" or pnode == "node1" and (instance_name !~ m/^db/))): ` +
			`opcode 1: pnode == "node1" and (instance_name !~ m/^db/) is true (pnode is "node1", instance_name is "web1"); ` +
			`predicate 2 holds (not opcode: dry_run): opcode 0: dry_run is false (dry_run is false); opcode 1: dry_run is false (dry_run is false)`,
		`filter rule d (REJECT; no reason given) not reached: filter rule c (PAUSE; added by gnt:client without a reason) has decided; ` +
			`else this rule would decide: predicate 0 holds (jobid: not id < 1): job: not id < 1 is true (id is 25)`,
	}
	for i, v := range chain(t, rules...).Explain(25, []*opcode.Opcode{delay(), create}) {
		if v.String() != want[i] {
			t.Errorf("rule %d:\n got %s\nwant %s", i, v, want[i])
		}
	}
}

func TestExplainJSON(t *testing.T) {
	c := chain(t, rule(t, 0, 10, jobfilter.Reject, `[["opcode",["&",["==","OP_ID","OP_TEST_DELAY"],["==","nosuch",1]]]]`))
	out, err := json.Marshal(c.Explain(25, []*opcode.Opcode{delay()})[0].Findings)
	want := `[{"predicate":0,"text":"opcode: (OP_ID == \"OP_TEST_DELAY\" and nosuch == 1)","holds":false,"candidates":1,"evidence":[` +
		`{"where":"opcode 0","opcode":0,"entry":-1,"place":"predicates[0][1][2]","expression":"nosuch == 1","result":"unknown",` +
		`"values":[{"field":"nosuch","value":null,"absent":true}]}]}]`
	if err != nil || string(out) != want {
		t.Errorf("got %s, %v", out, err)
	}
}

// TestExplainHidesPrivateValues shows that a rule about a private parameter
// works, and that explaining it does not show the value.
func TestExplainHidesPrivateValues(t *testing.T) {
	create := op("OP_INSTANCE_CREATE", map[string]any{"osparams_private": map[string]any{"password": "hunter2"}})
	c := chain(t, rule(t, 0, 0, jobfilter.Reject, `[["opcode",["=~","osparams_private.password","^hunter"]]]`))
	v := c.Explain(1, []*opcode.Opcode{create})[0]
	if v.Outcome != jobfilter.Decides {
		t.Fatal(v)
	}
	if strings.Contains(v.String(), "hunter2") {
		t.Errorf("shows the value: %s", v)
	}
}

func TestCompileRefusesWhatNoParserMade(t *testing.T) {
	for _, r := range []jobfilter.Rule{
		{Action: jobfilter.Action{Kind: "EXPLODE"}},
		{Action: jobfilter.Action{Kind: jobfilter.Pause}, Predicates: []jobfilter.Predicate{{Name: "nosuch"}}},
		{Action: jobfilter.Action{Kind: jobfilter.Pause}, Predicates: []jobfilter.Predicate{{Name: "not"}}},
	} {
		if _, err := jobfilter.Compile([]jobfilter.Rule{r}); !fault.Is(err, fault.Invalid) {
			t.Errorf("%v: %v", r, err)
		}
	}
}
