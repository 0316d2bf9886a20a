package machine

import (
	"slices"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/jobfilter"
	"github.com/drover-project/drover/internal/lock"
	"github.com/drover-project/drover/internal/opcode"
)

// heldBy are the instances whose locks a job has.
func (d *desk) heldBy(id job.ID) (items []string) {
	for _, w := range d.locks.Held(lock.Owner(id)) {
		items = append(items, w.Name.Item)
	}
	slices.Sort(items)
	return items
}

var oldName = lock.Request{{Name: lock.Name{Level: lock.Instance, Item: "old"}, Mode: lock.Exclusive}}

// What had begun and has to wait for the locks that it had gets these when they are free, and not those that its opcode would ask for by then.
func TestWhatWaitsToGoOnGetsTheLocksThatItHad(t *testing.T) {
	d := newDesk(t, 5, Loaded{LastID: 2, Jobs: []*job.Job{begunJob(1, "=new1"), begunJob(2, "=new2")},
		Begun: map[job.ID]Begun{1: {Locks: oldName, Steps: []job.Step{{}}}, 2: {Locks: oldName, Steps: []job.Step{{}}}}})
	if e := d.entry(2); e.place != inResume {
		t.Fatalf("job 2 is in place %d", e.place)
	}
	if got := starts(d.end(1)); !slices.Equal(got, []job.ID{2}) || !slices.Equal(d.heldBy(2), []string{"old"}) {
		t.Errorf("behind job 1 goes on %v, with the locks of %v", got, d.heldBy(2))
	}
}

// The locks that an opcode had before a restart are its own: the one behind it asks for those that it needs.
func TestTheOpcodeBehindAsksForItsOwnLocks(t *testing.T) {
	behind, comment := *dummyOp, "=next"
	behind.Comment = &comment
	j := interruptedJob(1, "=new", &behind)
	d := newDesk(t, 5, Loaded{LastID: 1, Jobs: []*job.Job{j.BeginSteps(0, j.Ops[0].Exec)}, Begun: map[job.ID]Begun{1: {Locks: oldName, Steps: []job.Step{{}}}}})
	if got := d.heldBy(1); !slices.Equal(got, []string{"old"}) {
		t.Fatalf("it goes on with the locks of %v", got)
	}
	if r := d.do(Done{Log: Log{Job: 1}, Result: []byte(`null`)}); len(r.Starts) != 1 || !slices.Equal(d.heldBy(1), []string{"next"}) {
		t.Errorf("the opcode behind it begins as %+v, with the locks of %v", r.Starts, d.heldBy(1))
	}
}

// Nothing begins when the controller stops, also not what asks for its locks again: it is left to the next one as what has begun.
func TestNothingGoesOnWhenTheControllerStops(t *testing.T) {
	d := newDesk(t, 1, Loaded{Resumable: always, LastID: 1, Jobs: []*job.Job{interruptedJob(1, "")}})
	e := d.entry(1)
	comment := "=web1"
	e.inputs[0] = &opcode.Opcode{ID: e.inputs[0].ID, Comment: &comment}
	d.do(Stop{})
	r := d.do(AskAgain{Start: Start{Job: 1, Resumed: true}})
	if len(r.Starts) != 0 || d.running != 0 || e.place != inResume || d.Job(1).Status() != job.Running {
		t.Errorf("it begins as %+v; it is in place %d, %d run", r.Starts, e.place, d.running)
	}
}

// A job that a rule holds is held since the rule took it, also when it is decided upon again and the rule, which was changed meanwhile, goes on
// holding it: at once, or because others come first to what the rule has let go.
func TestAHoldGoesOnThroughItsRulesChanges(t *testing.T) {
	rule := func(kind jobfilter.Kind, limit int, watermark int64) jobfilter.Rule {
		return jobfilter.Rule{UUID: "a", Watermark: watermark, Action: jobfilter.Action{Kind: kind, Limit: limit}}
	}
	for name, c := range map[string]struct {
		before, after jobfilter.Rule
		begin         int
	}{
		"a limit that is raised":   {rule(jobfilter.RateLimit, 1, 0), rule(jobfilter.RateLimit, 2, 0), 1},
		"a limit with a watermark": {rule(jobfilter.RateLimit, 1, 0), rule(jobfilter.RateLimit, 1, 3), 0},
		"a pause with a watermark": {rule(jobfilter.Pause, 0, 0), rule(jobfilter.Pause, 0, 3), 0},
	} {
		d := newDesk(t, 5, Loaded{Rules: []jobfilter.Rule{c.before}})
		d.submit("")
		d.submit("")
		last := d.submit("")
		before := d.Job(last).Hold
		if before == nil {
			t.Fatalf("%s: the third job is not held", name)
		}
		plan, err := d.PlanRules(func([]jobfilter.Rule, job.ID) ([]jobfilter.Rule, []string, error) {
			return []jobfilter.Rule{c.after}, []string{"a"}, nil
		}, inTurn)
		if err != nil {
			t.Fatal(err)
		}
		if got := starts(d.do(plan)); len(got) != c.begin {
			t.Fatalf("%s: then begin %v", name, got)
		}
		if now := d.Job(last).Hold; now == nil || now.Since != before.Since || now.Rule != "a" {
			t.Errorf("%s: it was held since %+v, and is since %+v", name, before, now)
		}
	}
}

// A job that a rule let go, and that waited for something else, is held anew when the rule takes it once more.
func TestAHoldThatWasOverBeginsAnew(t *testing.T) {
	d := newDesk(t, 1, Loaded{})
	running := d.submit("")
	held := func(rules ...jobfilter.Rule) *job.Hold {
		plan, err := d.PlanRules(func([]jobfilter.Rule, job.ID) ([]jobfilter.Rule, []string, error) { return rules, []string{"a"}, nil }, inTurn)
		if err != nil {
			t.Fatal(err)
		}
		d.do(plan)
		return d.Job(running + 1).Hold
	}
	pause := jobfilter.Rule{UUID: "a", Action: jobfilter.Action{Kind: jobfilter.Pause}}
	d.submit("")
	first := held(pause)
	between := held()
	again := held(pause)
	if first == nil || between != nil || again == nil || again.Since <= first.Since {
		t.Errorf("held by %+v, then by %+v, then by %+v", first, between, again)
	}
}

// A job that is cancelled between two of its opcodes says so of those that do not run; one that never began has nothing to say.
func TestWhatIsCancelledBetweenItsOpcodesSaysSo(t *testing.T) {
	d := newDesk(t, 1, Loaded{})
	begun := d.submitOps(Submission{Ops: []*opcode.Opcode{dummyOp, dummyOp}})[0].ID
	never := d.submitOps(Submission{Ops: []*opcode.Opcode{dummyOp, dummyOp}})[0].ID
	plan, err := d.PlanRules(func([]jobfilter.Rule, job.ID) ([]jobfilter.Rule, []string, error) {
		return []jobfilter.Rule{{UUID: "a", Action: jobfilter.Action{Kind: jobfilter.Pause}}}, []string{"a"}, nil
	}, inTurn)
	if err != nil {
		t.Fatal(err)
	}
	d.do(plan)
	d.end(begun)
	for id, want := range map[job.ID]string{begun: `"Job canceled by request"`, never: ""} {
		if r := d.do(Cancel{Job: id}); !r.Answer.OK {
			t.Errorf("job %d: %+v", id, r.Answer)
		}
		if j := d.Job(id); j.Status() != job.Canceled || string(j.Ops[1].Result) != want {
			t.Errorf("job %d is %s: %s, want %q", id, j.Status(), j.Ops[1].Result, want)
		}
	}
}

// What nobody can tell of is not gone on with, whatever else was kept of it: the job ends, and says so.
func TestWhatCannotBeToldIsNotGoneOnWith(t *testing.T) {
	d := newDesk(t, 5, Loaded{Resumable: always, LastID: 1, Jobs: []*job.Job{begunJob(1, "=new")},
		Begun: map[job.ID]Begun{1: {Lost: "its steps cannot be read", Locks: oldName, Steps: []job.Step{{}}}}})
	j := d.Job(1)
	if _, why, failed := job.DecodeError(j.Ops[0].Result); j.Status() != job.Error || !failed || !strings.Contains(why, "its steps cannot be read") {
		t.Errorf("it is %s: %s", j.Status(), j.Ops[0].Result)
	}
}
