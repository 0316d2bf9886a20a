package jobfilter_test

import (
	"encoding/json"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/drover-project/drover/internal/jobfilter"
	"github.com/drover-project/drover/internal/opcode"
	"github.com/drover-project/drover/internal/qlang"
	"github.com/drover-project/drover/internal/reason"
)

var (
	ids     = rapid.SampledFrom([]string{"OP_TEST_DELAY", "OP_INSTANCE_CREATE", "OP_NODE_ADD"})
	fields  = rapid.SampledFrom([]string{"id", "OP_ID", "source", "reason", "timestamp", "x", "y.z", "tags", "dry_run", "nosuch"})
	texts   = rapid.SampledFrom([]string{"a", "b", "ab", "watermark", "OP_TEST_DELAY", "ü"})
	numbers = rapid.Int64Range(0, 4)
)

func genExpr(depth int) *rapid.Generator[qlang.Node] {
	return rapid.Custom(func(t *rapid.T) qlang.Node {
		kind := rapid.IntRange(0, 7).Draw(t, "kind")
		if depth == 0 {
			kind = kind%4 + 4
		}
		value := qlang.TextValue(texts.Draw(t, "text"))
		if rapid.Bool().Draw(t, "number") {
			value = qlang.IntValue(numbers.Draw(t, "n"))
		}
		field := fields.Draw(t, "field")
		switch kind {
		case 0:
			return &qlang.And{Args: rapid.SliceOfN(genExpr(depth-1), 0, 3).Draw(t, "args")}
		case 1:
			return &qlang.Or{Args: rapid.SliceOfN(genExpr(depth-1), 0, 3).Draw(t, "args")}
		case 2:
			return &qlang.Not{Arg: genExpr(depth-1).Draw(t, "arg")}
		case 3:
			return &qlang.All{}
		case 4:
			return &qlang.True{Field: field}
		case 5:
			re, err := qlang.CompileRegex(rapid.SampledFrom([]string{"a", "^b$", "DELAY", "a(?=b)", "[0-3]"}).Draw(t, "re"))
			if err != nil {
				t.Fatal(err)
			}
			return &qlang.Match{Field: field, Regex: re}
		case 6:
			return &qlang.Contains{Field: field, Value: value}
		}
		op := rapid.SampledFrom([]qlang.Op{qlang.Eq, qlang.Ne, qlang.Lt, qlang.Le, qlang.Gt, qlang.Ge}).Draw(t, "op")
		return &qlang.Compare{Op: op, Field: field, Value: value}
	})
}

func genPredicate(depth int) *rapid.Generator[jobfilter.Predicate] {
	return rapid.Custom(func(t *rapid.T) jobfilter.Predicate {
		name := rapid.SampledFrom([]string{"jobid", "opcode", "reason", "not"}).Draw(t, "name")
		if name == "not" && depth > 0 {
			of := genPredicate(depth-1).Draw(t, "of")
			return jobfilter.Predicate{Name: "not", Of: &of}
		}
		if name == "not" {
			name = "opcode"
		}
		return jobfilter.Predicate{Name: name, Expr: genExpr(2).Draw(t, "expr")}
	})
}

func genRule() *rapid.Generator[jobfilter.Rule] {
	return rapid.Custom(func(t *rapid.T) jobfilter.Rule {
		a := jobfilter.Action{Kind: rapid.SampledFrom([]jobfilter.Kind{jobfilter.Accept, jobfilter.Pause, jobfilter.Reject, jobfilter.Continue, jobfilter.RateLimit}).Draw(t, "action")}
		if a.Kind == jobfilter.RateLimit {
			a.Limit = 1
		}
		return jobfilter.Rule{
			UUID:       rapid.StringMatching("[a-c]{1,2}").Draw(t, "uuid"),
			Watermark:  numbers.Draw(t, "watermark"),
			Priority:   rapid.IntRange(0, 2).Draw(t, "priority"),
			Predicates: rapid.SliceOfN(genPredicate(1), 0, 3).Draw(t, "predicates"),
			Action:     a,
			Shadow:     rapid.IntRange(0, 3).Draw(t, "shadow") == 0,
		}
	})
}

func genOp() *rapid.Generator[*opcode.Opcode] {
	value := rapid.SampledFrom([]any{"a", "b", true, false, int64(1), int64(3), 1.5, []any{"a", int64(1)}, map[string]any{"z": "a"}, map[string]any{"z": int64(2)}})
	entry := rapid.Custom(func(t *rapid.T) reason.Entry {
		return reason.Entry{Source: texts.Draw(t, "source"), Reason: texts.Draw(t, "reason"), Time: numbers.Draw(t, "time")}
	})
	return rapid.Custom(func(t *rapid.T) *opcode.Opcode {
		return &opcode.Opcode{
			ID:     ids.Draw(t, "id"),
			Params: rapid.MapOfN(rapid.SampledFrom([]string{"x", "y", "tags"}), value, 0, 3).Draw(t, "params"),
			DryRun: rapid.Bool().Draw(t, "dry"),
			Reason: rapid.SliceOfN(entry, 0, 3).Draw(t, "trail"),
		}
	})
}

func genOps() *rapid.Generator[[]*opcode.Opcode] { return rapid.SliceOfN(genOp(), 0, 3) }

// TestExplainAgreesWithDecide also checks that the first rule in order that
// applies decides, and that every predicate is explained by its own evidence.
func TestExplainAgreesWithDecide(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rules := rapid.SliceOfN(genRule(), 0, 5).Draw(t, "rules")
		id, ops := numbers.Draw(t, "id"), genOps().Draw(t, "ops")
		c, err := jobfilter.Compile(rules)
		if err != nil {
			t.Fatal(err)
		}
		decision := c.Decide(id, ops)
		verdicts := c.Explain(id, ops)
		if len(verdicts) != len(rules) {
			t.Fatalf("%d verdicts of %d rules", len(verdicts), len(rules))
		}
		var decided *jobfilter.Rule
		for _, v := range verdicts {
			if decided != nil && v.Outcome != jobfilter.NotReached {
				t.Fatalf("after the decision: %s", v)
			}
			if v.Outcome == jobfilter.Decides {
				decided = v.Rule
			}
			checkFindings(t, v)
			// Alone, a rule comes to the same outcome as in the chain.
			alone, err := jobfilter.Compile([]jobfilter.Rule{*v.Rule})
			if err != nil {
				t.Fatal(err)
			}
			if applies := alone.Decide(id, ops).Rule != nil; applies != (outcome(v) == jobfilter.Decides) {
				t.Fatalf("alone it applies: %v; %s", applies, v)
			}
		}
		if decision.Rule != decided {
			t.Fatalf("decided %s, explained %v", decision, decided)
		}
	})
}

// outcome is what comes of a rule, reached or not.
func outcome(v jobfilter.Verdict) jobfilter.Outcome {
	if v.Outcome == jobfilter.NotReached {
		return v.Would
	}
	return v.Outcome
}

// TestShadowsAgreeWithDecide: a shadow is told exactly where it would decide if
// it alone were in force, and decides nothing.
func TestShadowsAgreeWithDecide(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rules := rapid.SliceOfNDistinct(genRule(), 0, 5, func(r jobfilter.Rule) string { return r.UUID }).Draw(t, "rules")
		id, ops := numbers.Draw(t, "id"), genOps().Draw(t, "ops")
		told := map[string]bool{}
		for _, r := range compiled(t, rules).Shadows(id, ops) {
			told[r.UUID] = true
		}
		for i := range rules {
			if !rules[i].Shadow {
				continue
			}
			inForce := slices.Clone(rules)
			inForce[i].Shadow = false
			d := compiled(t, inForce).Decide(id, ops)
			if would := d.Rule != nil && d.Rule.UUID == rules[i].UUID; would != told[rules[i].UUID] {
				t.Fatalf("shadow %s would decide: %v, told: %v", rules[i].UUID, would, told[rules[i].UUID])
			}
		}
		if d := compiled(t, rules).Decide(id, ops); d.Rule != nil && d.Rule.Shadow {
			t.Fatalf("a shadow decided: %s", d)
		}
	})
}

// TestWithoutIsTheChainWithoutTheRule compares the answer for a rule that is
// gone in thought with that of a chain which really lacks it.
func TestWithoutIsTheChainWithoutTheRule(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rules := rapid.SliceOfNDistinct(genRule(), 1, 5, func(r jobfilter.Rule) string { return r.UUID }).Draw(t, "rules")
		id, ops := numbers.Draw(t, "id"), genOps().Draw(t, "ops")
		gone := rules[0].UUID
		got, want := compiled(t, rules).Without(gone, id, ops), compiled(t, rules[1:]).Decide(id, ops)
		if got.String() != want.String() {
			t.Fatalf("without %s: %s, want %s", gone, got, want)
		}
	})
}

func compiled(t *rapid.T, rules []jobfilter.Rule) *jobfilter.Chain {
	c, err := jobfilter.Compile(rules)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func checkFindings(t *rapid.T, v jobfilter.Verdict) {
	for _, f := range v.Findings {
		if f.Holds != (outcome(v) != jobfilter.DoesNotApply) {
			t.Fatalf("finding against its verdict: %s", v)
		}
		satisfied := f.Holds != (v.Rule.Predicates[f.Predicate].Name == "not")
		for p := v.Rule.Predicates[f.Predicate].Of; p != nil; p = p.Of {
			if p.Name == "not" {
				satisfied = !satisfied
			}
		}
		if satisfied && (len(f.Evidence) != 1 || f.Evidence[0].Result == "unknown") {
			t.Fatalf("evidence: %s", v)
		}
	}
}

func TestNotIsTheComplement(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := genPredicate(1).Draw(t, "predicate")
		id, ops := numbers.Draw(t, "id"), genOps().Draw(t, "ops")
		applies := func(p jobfilter.Predicate) bool {
			c, err := jobfilter.Compile([]jobfilter.Rule{{Predicates: []jobfilter.Predicate{p}, Action: jobfilter.Action{Kind: jobfilter.Pause}}})
			if err != nil {
				t.Fatal(err)
			}
			return c.Decide(id, ops).Rule != nil
		}
		if applies(p) == applies(jobfilter.Predicate{Name: "not", Of: &p}) {
			t.Fatalf("%s and its negation agree", p)
		}
	})
}

// TestOrderIsTotal checks that the chain's order does not depend on the order
// in which the rules were given.
func TestOrderIsTotal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rules := rapid.SliceOfNDistinct(genRule(), 0, 6, func(r jobfilter.Rule) string { return r.UUID }).Draw(t, "rules")
		shuffled := rapid.Permutation(rules).Draw(t, "shuffled")
		a, b := order(t, rules), order(t, shuffled)
		if !slices.Equal(a, b) {
			t.Fatalf("order %v and %v", a, b)
		}
		id, ops := numbers.Draw(t, "id"), genOps().Draw(t, "ops")
		if x, y := decide(t, rules, id, ops), decide(t, shuffled, id, ops); x != y {
			t.Fatalf("decided by %s and %s", x, y)
		}
	})
}

func order(t *rapid.T, rules []jobfilter.Rule) []string {
	c, err := jobfilter.Compile(rules)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	var last *jobfilter.Rule
	for _, r := range c.Rules() {
		if last != nil && jobfilter.Compare(last, r) >= 0 {
			t.Fatalf("%s before %s", last.Describe(), r.Describe())
		}
		last = r
		out = append(out, r.UUID)
	}
	return out
}

func decide(t *rapid.T, rules []jobfilter.Rule, id int64, ops []*opcode.Opcode) string {
	c, err := jobfilter.Compile(rules)
	if err != nil {
		t.Fatal(err)
	}
	return c.Decide(id, ops).String()
}

// TestStoredRulesDecideTheSame checks that a rule read back from its JSON,
// with its normalised expressions, decides as before.
func TestStoredRulesDecideTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rules := []jobfilter.Rule{genRule().Draw(t, "rule")}
		stored, err := json.Marshal(rules)
		if err != nil {
			t.Fatal(err)
		}
		var read []jobfilter.Rule
		if err := json.Unmarshal(stored, &read); err != nil {
			t.Fatalf("%s: %v", stored, err)
		}
		id, ops := numbers.Draw(t, "id"), genOps().Draw(t, "ops")
		if a, b := decide(t, rules, id, ops), decide(t, read, id, ops); a != b {
			t.Fatalf("%s: %s, read back %s", stored, a, b)
		}
	})
}

func FuzzParseRule(f *testing.F) {
	for _, s := range []string{
		`{"priority":1,"predicates":[["jobid",[">","id","watermark"]],["not",["reason",["=~","reason","x"]]]],"action":["RATE_LIMIT",2],"reason":[["user","",1]]}`,
		`{"predicates":[["opcode",["|",["=","OP_ID","OP_NODE_ADD"],["?","x.y"],null]]],"action":"PAUSE"}`,
		`{"action":"CONTINUE"}`, `[]`, `{"predicates":[["not",["not",["jobid",null]]]]}`,
	} {
		f.Add([]byte(s))
	}
	ops := []*opcode.Opcode{delay(reason.Entry{Source: "user", Reason: "x"})}
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := jobfilter.ParseRule(data)
		if err != nil {
			return
		}
		c := chain(t, r)
		if c.Decide(1, ops).Rule != nil != (c.Explain(1, ops)[0].Outcome == jobfilter.Decides) {
			t.Error("Explain disagrees with Decide")
		}
		for _, w := range jobfilter.Check(&r) {
			if w.Place == "" || w.Message == "" {
				t.Errorf("empty warning %v", w)
			}
		}
		again, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		var back jobfilter.Rule
		if err := json.Unmarshal(again, &back); err != nil {
			t.Fatalf("%s: %v", again, err)
		}
	})
}
