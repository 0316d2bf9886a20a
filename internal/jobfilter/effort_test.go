package jobfilter_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/jobfilter"
	"github.com/drover-project/drover/internal/opcode"
	"github.com/drover-project/drover/internal/qlang"
	"github.com/drover-project/drover/internal/reason"
)

// heavy is a pattern of 2,000 steps.
const heavy = `[ab]*a[ab]{1000}[ab]{1000}c`

// jobWith is a job with so many bytes of reasons.
func jobWith(size int) []*opcode.Opcode {
	return []*opcode.Opcode{op("OP_TEST_DELAY", nil, reason.Entry{Source: "user", Reason: strings.Repeat("ab", size/2)})}
}

// Such a job stopped the queue for minutes.
func TestJobThatIsTooLongForThePatternsIsHeldBackByThem(t *testing.T) {
	slow := `[["reason", ["=~", "reason", "` + heavy + `"]]]`
	for _, tc := range []struct {
		action     jobfilter.Kind
		decides    bool
		unsearched bool
	}{
		{jobfilter.Reject, true, true}, {jobfilter.Pause, true, true}, {jobfilter.RateLimit, true, true},
		{jobfilter.Accept, false, false}, {jobfilter.Continue, false, false},
	} {
		c := chain(t, rule(t, 1, 0, tc.action, slow))
		long := jobWith(1 << 20)
		d := c.Decide(1, long)
		if (d.Rule != nil) != tc.decides || d.Unsearched != tc.unsearched {
			t.Errorf("%s: %s", tc.action, d)
		}
		v := c.Explain(1, long)[0]
		if (v.Outcome == jobfilter.Decides) != tc.decides || !strings.Contains(v.Because, "takes too long") && tc.action != jobfilter.Continue {
			t.Errorf("%s is explained as %s", tc.action, v)
		}
		if d := c.Decide(1, jobWith(1000)); d.Rule != nil {
			t.Errorf("a job with a short reason: %s", d)
		}
	}
}

// Each rule had its own patience, so that thirty of them stopped the queue for
// twenty seconds.
func TestTheWholeChainHasOnePatience(t *testing.T) {
	runaway := []*opcode.Opcode{op("OP_TEST_DELAY", nil, reason.Entry{Source: "user", Reason: strings.Repeat("a", 60) + "b"})}
	var rules []jobfilter.Rule
	for i := range 20 {
		r := rule(t, i, 0, jobfilter.Accept, `[["reason", ["=~", "reason", "(?=a)(a|a|aa)+$"]]]`)
		r.UUID = strconv.Itoa(i)
		rules = append(rules, r)
	}
	last := rule(t, 20, 0, jobfilter.Pause, `[["reason", ["=~", "reason", "(?=a)ab$"]]]`)
	last.UUID = "last"
	rules = append(rules, last)
	c := chain(t, rules...)
	for id := range int64(5) {
		d := c.Decide(id, runaway)
		if d.Rule == nil || d.Rule.UUID != "last" || !d.Unsearched {
			t.Fatalf("decided: %s", d)
		}
	}
	strikes := 0
	for _, r := range c.Rules() {
		strikes += r.Predicates[0].Expr.(*qlang.Match).Regex.Strikes()
	}
	if strikes != 2 {
		t.Errorf("%d searches were let run until their limit, want 2", strikes)
	}
	if v := c.Explain(1, runaway)[20]; v.Outcome != jobfilter.Decides || !strings.Contains(v.Because, "takes too long") {
		t.Errorf("explained as %s", v)
	}
	// Rules without such patterns are asked as ever.
	quick := rule(t, -1, 0, jobfilter.Reject, `[["reason", ["=~", "reason", "^a+b$"]]]`)
	quick.UUID = "quick"
	c, err := c.With(append(rules, quick))
	if err != nil {
		t.Fatal(err)
	}
	if d := c.Decide(1, runaway); d.Rule == nil || d.Rule.UUID != "quick" || d.Unsearched {
		t.Errorf("decided: %s", d)
	}
}

func TestTheWholeChainHasOneBudget(t *testing.T) {
	var rules []jobfilter.Rule
	for i := range 4 {
		r := rule(t, i, 0, jobfilter.Pause, `[["reason", ["=~", "reason", "`+heavy+`"]]]`)
		r.UUID = strconv.Itoa(i)
		rules = append(rules, r)
	}
	c := chain(t, rules...)
	// Each rule costs some 2,000 steps for each byte: two fit, the third does not.
	if d := c.Decide(1, jobWith(1500)); d.Rule == nil || d.Rule.UUID != "2" || !d.Unsearched {
		t.Errorf("decided: %s", d)
	}
	if d := c.Without("0", 1, jobWith(1500)); d.Rule == nil || d.Rule.UUID != "3" {
		t.Errorf("without the first: %s", d)
	}
	// A rule whose cheap predicates fail costs nothing.
	for i := range rules[:3] {
		rules[i].Predicates = append(predicates(t, `[["jobid", [">", "id", 100]]]`), rules[i].Predicates...)
	}
	if d := chain(t, rules...).Decide(1, jobWith(1500)); d.Rule != nil {
		t.Errorf("decided: %s", d)
	}
}

// TestExplainAgreesOnLongJobs: what is decided is what is explained, also where
// texts are too long.
func TestExplainAgreesOnLongJobs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rules := rapid.SliceOfNDistinct(genRule(), 1, 6, func(r jobfilter.Rule) string { return r.UUID }).Draw(t, "rules")
		for i := range rules {
			if rapid.Bool().Draw(t, "heavy") {
				var p jobfilter.Predicate
				field := rapid.SampledFrom([]string{`["reason",["=~","reason"`, `["opcode",["=~","OP_ID"`, `["opcode",["=~","name"`, `["not",["reason",["=~","source"`}).Draw(t, "field")
				closing := "]]"
				if strings.HasPrefix(field, `["not"`) {
					closing = "]]]"
				}
				if err := p.UnmarshalJSON([]byte(field + `,"` + heavy + `"` + closing)); err != nil {
					t.Fatal(err)
				}
				rules[i].Predicates = append(rules[i].Predicates, p)
			}
		}
		ops := []*opcode.Opcode{op("OP_TEST_DELAY", map[string]any{"name": strings.Repeat("x", rapid.IntRange(0, 3000).Draw(t, "param"))},
			reason.Entry{Source: "user", Reason: strings.Repeat("d", rapid.IntRange(0, 6000).Draw(t, "reason"))})}
		c, id := compiled(t, rules), numbers.Draw(t, "id")
		decision := c.Decide(id, ops)
		for _, v := range c.Explain(id, ops) {
			if (v.Outcome == jobfilter.Decides) != (v.Rule == decision.Rule) {
				t.Fatalf("decided %s, explained %s", decision, v)
			}
		}
		// Preparing the rules on top of others, or anew, is the same.
		before := compiled(t, rules[:len(rules)/2])
		again, err := before.With(rules)
		if err != nil || again.Decide(id, ops).String() != decision.String() {
			t.Fatalf("prepared in two steps: %s, %v", again.Decide(id, ops), err)
		}
	})
}

func TestRulesAreLimited(t *testing.T) {
	many := make([]jobfilter.Rule, jobfilter.MaxRules+1)
	if err := jobfilter.CheckSize(many[1:]); err != nil {
		t.Error(err)
	}
	if err := jobfilter.CheckSize(many); !fault.Is(err, fault.TooLarge) || !strings.Contains(err.Error(), "1000") {
		t.Errorf("one rule more: %v", err)
	}
	large := []jobfilter.Rule{}
	for range 3 {
		large = append(large, rule(t, 1, 0, jobfilter.Pause, `[["not", ["reason", ["=~", "reason", "`+heavy+`"]]]]`))
	}
	if err := jobfilter.CheckSize(large); err != nil {
		t.Error(err)
	}
	if err := jobfilter.CheckSize(append(large, large...)); !fault.Is(err, fault.TooLarge) || !strings.Contains(err.Error(), "8000") {
		t.Errorf("large patterns: %v", err)
	}
	backtracking := make([]jobfilter.Rule, 33)
	for i := range backtracking {
		backtracking[i] = rule(t, 1, 0, jobfilter.Pause, `[["reason", ["=~", "reason", "a(?=b)"]]]`)
	}
	if err := jobfilter.CheckSize(backtracking); !fault.Is(err, fault.TooLarge) {
		t.Errorf("patterns that need backtracking: %v", err)
	}
}

// Explaining took twice as long for each level.
func TestDeepExpressionsAreExplained(t *testing.T) {
	deep := strings.Repeat(`["&",`, 90) + `["=~","reason","x"]` + strings.Repeat("]", 90)
	c := chain(t, rule(t, 1, 0, jobfilter.Pause, `[["reason", `+deep+`]]`))
	if v := c.Explain(1, jobWith(10))[0]; v.Outcome != jobfilter.DoesNotApply {
		t.Errorf("%s", v)
	}
	if v := c.Explain(1, []*opcode.Opcode{op("OP_TEST_DELAY", nil, reason.Entry{Reason: "x"})})[0]; v.Outcome != jobfilter.Decides {
		t.Errorf("%s", v)
	}
}

// Two texts that take too long had rules with look-around apply to everybody's jobs.
func TestCostlyTextsConcernTheirSubmitterAlone(t *testing.T) {
	by := func(account, text string) []*opcode.Opcode {
		return []*opcode.Opcode{op("OP_TEST_DELAY", nil, reason.Entry{Source: "user", Reason: text},
			reason.Account{Surface: "rapi", Name: account, From: "127.0.0.1:" + strconv.Itoa(len(text))}.Entry(time.Unix(1, 0)))}
	}
	c := chain(t, rule(t, 1, 0, jobfilter.Reject, `[["reason", ["=~", "reason", "^(?!ok)(a+)+b$"]]]`))
	for n := range 2 {
		if d := c.Decide(1, by("mallory", strings.Repeat("a", 40+n))); d.Rule == nil || !d.Unsearched {
			t.Errorf("a text that takes too long: %s", d)
		}
	}
	if d := c.Decide(2, by("alice", "nightly backup")); d.Rule != nil {
		t.Errorf("another submitter: %s", d)
	}
	if d := c.Decide(3, by("alice", "aab")); d.Rule == nil || d.Unsearched {
		t.Errorf("another submitter, whose text fits: %s", d)
	}
	if d := c.Decide(4, by("mallory", "nightly backup")); d.Rule == nil || !d.Unsearched {
		t.Errorf("a short text of who had two that took too long: %s", d)
	}
	if n := c.Rules()[0].Predicates[0].Expr.(*qlang.Match).Regex.Strikes(); n != 2 {
		t.Errorf("%d searches were let run until their limit, want 2", n)
	}
	if d := chain(t, *c.Rules()[0]).Decide(4, by("mallory", "nightly backup")); d.Rule != nil {
		t.Errorf("when the rules have changed: %s", d)
	}
	if w := jobfilter.Check(c.Rules()[0]); len(w) != 1 || !strings.Contains(w[0].Message, "backtracking") {
		t.Errorf("warnings: %v", w)
	}
}
