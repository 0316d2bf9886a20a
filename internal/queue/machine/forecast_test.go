package machine

import (
	"fmt"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/jobfilter"
)

var (
	rulePredicates = []string{
		`[["reason",["=","reason","bulk"]]]`, `[["reason",["=","reason","nightly"]]]`, `[["opcode",["=","OP_ID","OP_INSTANCE_SHUTDOWN"]]]`,
		`[["jobid",["<=","id","watermark"]]]`, `[["jobid",[">","id","watermark"]]]`, `[["opcode",["=","priority",-10]]]`, `[]`,
	}
	ruleActions = []string{`"ACCEPT"`, `"PAUSE"`, `"PAUSE"`, `"REJECT"`, `"CONTINUE"`, `["RATE_LIMIT",1]`, `["RATE_LIMIT",2]`}
)

func aRule(uuid string, priority int, action, predicates string) jobfilter.Rule {
	a, err := jobfilter.ParseAction([]byte(action))
	if err != nil {
		panic(err)
	}
	p, err := jobfilter.ParsePredicates([]byte(predicates))
	if err != nil {
		panic(err)
	}
	return jobfilter.Rule{UUID: uuid, Priority: priority, Action: a, Predicates: p}
}

// put adds a rule or replaces it.
func put(r jobfilter.Rule) Edit {
	return func(rules []jobfilter.Rule, lastID job.ID) ([]jobfilter.Rule, []string, error) {
		r.Watermark = int64(lastID)
		rest, _, err := without(r.UUID)(rules, lastID)
		return append(rest, r), []string{r.UUID}, err
	}
}

// inTurn calls f with each number below n.
func inTurn(n int, f func(int)) {
	for i := range n {
		f(i)
	}
}

// changeRules adds, replaces or removes a rule, some of them after others have
// submitted jobs since the change was worked out.
func (h *world) changeRules() {
	if h.m.closing {
		return
	}
	h.nextUUID++
	uuid := fmt.Sprintf("rule %d", h.nextUUID)
	if old := h.m.Rules(); len(old) > 0 && h.n(2) == 0 {
		uuid = old[h.n(len(old))].UUID
	}
	edit := put(aRule(uuid, h.n(3), ruleActions[h.n(len(ruleActions))], rulePredicates[h.n(len(rulePredicates))]))
	if h.n(4) == 0 {
		edit = without(uuid)
	}
	h.setRules(edit)
}

// setRules changes the rules; what a forecast said must come true.
func (h *world) setRules(edit Edit) {
	planner := h.m.Clone()
	plan, err := planner.PlanRules(edit, inTurn)
	if err != nil {
		panic(err)
	}
	if h.n(2) == 0 {
		h.m.Discard(planner)
	}
	if h.n(3) == 0 {
		h.submit()
	}
	stale := h.n(8) == 0
	if stale {
		other, err := h.m.PlanRules(put(aRule("another", 1, `"ACCEPT"`, `[["jobid",["=","id",1]]]`)), inTurn)
		if err != nil {
			panic(err)
		}
		h.apply(other)
	}
	effects, _ := h.m.Clone().Forecast(plan, h.now)
	before := map[job.ID]*job.Job{}
	for _, f := range effects {
		before[f.ID] = h.m.Job(f.ID)
	}
	r := h.apply(plan)
	switch {
	case stale && r.Refused == nil:
		panic("a change of rules was made of rules that are no longer in force")
	case stale:
		return
	case r.Refused != nil:
		panic(r.Refused)
	}
	for _, f := range effects {
		if err := cameTrue(f, before[f.ID], h.m.Job(f.ID)); err != nil {
			panic(err)
		}
	}
}

// cameTrue compares what a forecast said of a job with what became of it.
func cameTrue(f jobfilter.JobForecast, was, is *job.Job) error {
	runsOn := strings.Contains(f.Text, "completes")
	ok := true
	switch f.Effect {
	case jobfilter.WouldCancel:
		ok = is.Final() || runsOn && is.CancelReason != "" && is.Status() == job.Running
	case jobfilter.WouldHold:
		ok = is.Hold != nil && is.Hold.Rule != "" && !is.Busy() || runsOn && is.Busy()
	case jobfilter.WouldRelease:
		ok = (is.Hold == nil || is.Hold.Node != "") && !is.Final()
	case jobfilter.WouldLimit, jobfilter.NoEffect:
		ok = !is.Final() && is.CancelReason == was.CancelReason
	}
	if !ok {
		return fmt.Errorf("the forecast for job %d was %s (%s); it was %s (%v) and is %s (%v)", f.ID, f.Effect, f.Text, was.Status(), was.Hold, is.Status(), is.Hold)
	}
	return nil
}

// TestForecastTellsOfEachJob: one line for each kind of effect.
func TestForecastTellsOfEachJob(t *testing.T) {
	h := newHistory(1, t.Logf)
	h.max = 1
	h.apply(h.world())
	submit := func(ops ...string) {
		var s Submission
		for _, text := range ops {
			s.Ops = append(s.Ops, parseOp(text))
		}
		prepared, _ := h.m.Prepare(Submit{Jobs: []Submission{s}})
		h.apply(prepared)
	}
	const (
		delay  = `{"OP_ID":"OP_TEST_DELAY","duration":1}`
		urgent = `{"OP_ID":"OP_TEST_DELAY","duration":1,"priority":-10}`
		other  = `{"OP_ID":"OP_TEST_JQUEUE"}`
	)
	submit(delay, delay, delay)
	submit(delay)
	submit(urgent)
	submit(other)
	submit(`{"OP_ID":"OP_TEST_JQUEUE","depends":[[2,["success"]]]}`)
	plan := func(edit Edit) SetRules {
		t.Helper()
		p, err := h.m.PlanRules(edit, inTurn)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	delays := `[["opcode",["=","OP_ID","OP_TEST_DELAY"]]]`
	check := func(name string, edit Edit, unaffected int, want ...string) {
		t.Helper()
		effects, rest := h.m.Forecast(plan(edit), h.now)
		var got []string
		for _, f := range effects {
			got = append(got, fmt.Sprintf("%d %s: %s", f.ID, f.Effect, f.Text))
		}
		if strings.Join(got, "\n") != strings.Join(want, "\n") || rest != unaffected {
			t.Errorf("%s: %d unaffected,\n%s", name, rest, strings.Join(got, "\n"))
		}
	}
	check("reject", put(aRule("r", 0, `"REJECT"`, delays)), 1,
		"1 cancel: opcode 0 completes, the 2 behind it are cancelled", "2 cancel: is cancelled", "3 cancel: is cancelled",
		"5 cancel: ends as canceled with a job on which it depends")
	check("pause", put(aRule("r", 0, `"PAUSE"`, delays)), 2,
		"1 hold: opcode 0 completes, the 2 behind it are held", "2 hold: is held", "3 hold: is held")
	check("limit", put(aRule("r", 0, `["RATE_LIMIT",2]`, delays)), 2,
		"1 limit: goes on, and has one of the places", "2 limit: waits for one of the 2 places, as number 1 in line",
		"3 limit: may start: it gets one of the 2 places")
	check("accept", put(aRule("r", 0, `"ACCEPT"`, delays)), 2,
		"1 none: nothing changes: it may run as before", "2 none: nothing changes: it may run as before", "3 none: nothing changes: it may run as before")
	h.apply(plan(put(aRule("p", 1, `"PAUSE"`, delays))))
	check("release", without("p"), 2,
		"1 release: the 2 behind opcode 0, which runs, may go on; they are held now", "2 release: may go on; it is held now", "3 release: may go on; it is held now")
	check("again", put(aRule("p", 0, `"PAUSE"`, `[]`)), 0,
		"1 hold: opcode 0 completes, the 2 behind it are held", "2 none: nothing changes: PAUSE as before", "3 none: nothing changes: PAUSE as before",
		"4 hold: is held", "5 hold: is held")
}
