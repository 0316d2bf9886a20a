package machine

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/jobfilter"
	"github.com/drover-project/drover/internal/lock"
	"github.com/drover-project/drover/internal/opcode"
)

// interruptedJob is a job as it is stored whose first opcode runs and locks what the
// comment says, with others behind it.
func interruptedJob(id job.ID, comment string, behind ...*opcode.Opcode) *job.Job {
	first := *dummyOp
	if first.Comment = &comment; comment == "" {
		first.Comment = nil
	}
	j := job.New(id, append([]*opcode.Opcode{&first}, behind...), "", time.Unix(1e9, 0))
	return j.BeginWait(0, job.At(time.Unix(1e9+1, 0))).BeginRun(0, job.At(time.Unix(1e9+2, 0)))
}

func always(string) (bool, string) { return true, "the test says so" }

var holdAll = jobfilter.Rule{UUID: "a", Action: jobfilter.Action{Kind: jobfilter.Pause}}

// What a controller left half done goes on first: who is more urgent and came
// before waits for its locks, and no rule, limit or number of slots holds it.
func TestWhatHadBegunGoesFirst(t *testing.T) {
	urgent := *dummyOp
	comment := "=web1"
	urgent.Comment, urgent.Priority = &comment, MinPriority
	limit := jobfilter.Rule{UUID: "b", Priority: 1, Action: jobfilter.Action{Kind: jobfilter.RateLimit, Limit: 1}}
	for name, rules := range map[string][]jobfilter.Rule{"no rule": nil, "a rule that holds all": {holdAll}, "a limit": {limit}} {
		d := newDesk(t, 1, Loaded{Resumable: always, Rules: rules, LastID: 3, Jobs: []*job.Job{
			job.New(1, []*opcode.Opcode{&urgent}, "", time.Unix(1e9, 0)), interruptedJob(2, "=web1"), interruptedJob(3, "=web2"),
		}})
		for _, id := range []job.ID{2, 3} {
			if e := d.entry(id); e.place != inRunner || e.job.Status() != job.Running || len(d.locks.Held(e.owner())) == 0 {
				t.Errorf("%s: job %d, which had begun, is %s in place %d", name, id, e.job.Status(), e.place)
			}
		}
		d.do(d.world(5))
		if s := d.Job(1).Status(); s == job.Running {
			t.Errorf("%s: job 1 got between job 2 and its lock", name)
		}
		if d.end(2); rules == nil && d.Job(1).Status() != job.Running {
			t.Errorf("job 1 is %s when job 2 has ended", d.Job(1).Status())
		}
	}
}

// Opcodes that begin for the second time say so to who runs them.
func TestWhatGoesOnIsStartedAsSuch(t *testing.T) {
	d := newDesk(t, 1, Loaded{})
	m, err := New(Loaded{World: d.world(1), Resumable: always, LastID: 1, Jobs: []*job.Job{interruptedJob(1, "", dummyOp)}})
	if err != nil {
		t.Fatal(err)
	}
	r := m.Apply(Recover{}, d.now)
	began := job.At(time.Unix(1e9+2, 0))
	if len(r.Starts) != 1 || !r.Starts[0].Resumed || r.Starts[0].Began != began {
		t.Fatalf("it begins as %+v", r.Starts)
	}
	again, err := New(Loaded{World: d.world(1), Resumable: always, LastID: 1, Jobs: []*job.Job{m.Job(1)}})
	if err != nil {
		t.Fatal(err)
	}
	if r := again.Apply(Recover{}, d.now.Add(time.Hour)); len(r.Starts) != 1 || r.Starts[0].Began != began {
		t.Errorf("behind a second restart it begins as %+v", r.Starts)
	}
	r = m.Apply(Done{Log: Log{Job: 1}, Result: []byte(`null`)}, d.now)
	if len(r.Starts) != 1 || r.Starts[0].Resumed || r.Starts[0].Began != 0 {
		t.Errorf("the opcode behind it begins as %+v", r.Starts)
	}
}

// Two opcodes ran at once under other locks than they need now: the second waits, and
// has begun all the same. Neither a rule nor a cancel takes it back, who comes later
// and is more urgent does not overtake it.
func TestWhatHadBegunWaitsForItsLikesOnly(t *testing.T) {
	open := func() *desk {
		return newDesk(t, 1, Loaded{Resumable: always, LastID: 2, Jobs: []*job.Job{
			interruptedJob(1, "=web1"), interruptedJob(2, "=web1", dummyOp),
		}})
	}
	d := open()
	waits := func(when string) {
		t.Helper()
		if e := d.entry(2); e.place != inResume || e.job.Status() != job.Running {
			t.Fatalf("%s: job 2 is %s in place %d", when, e.job.Status(), e.place)
		}
	}
	waits("at first")
	if x, _ := d.Explain(2); !strings.Contains(x.Why, "held by job 1") || len(x.Change) != 1 {
		t.Errorf("it is explained as %q, %v", x.Why, x.Change)
	}
	answer := d.do(Cancel{Job: 2}).Answer
	if waits("after a cancel"); answer.OK || !strings.Contains(answer.Message, "has begun") || d.Job(2).CancelReason == "" {
		t.Errorf("a cancel is answered %+v", answer)
	}
	if r := d.do(Cancel{Job: 2, Kill: true}); r.Answer.OK || len(r.Kills) > 0 {
		t.Errorf("a kill of what does not run is answered %+v, kills %v", r.Answer, r.Kills)
	}
	plan, err := d.PlanRules(func(rules []jobfilter.Rule, _ job.ID) ([]jobfilter.Rule, []string, error) {
		return append(rules, holdAll), []string{holdAll.UUID}, nil
	}, inTurn)
	if err != nil {
		t.Fatal(err)
	}
	d.do(plan)
	waits("under a rule that holds all")
	d.do(ChangePriority{Job: 2, Priority: MaxPriority})
	waits("when it is less urgent")
	urgent := *dummyOp
	comment := "=web1"
	urgent.Comment, urgent.Priority = &comment, MinPriority
	plan, err = d.PlanRules(without(holdAll.UUID), inTurn)
	if err != nil {
		t.Fatal(err)
	}
	d.do(plan)
	d.do(d.world(5))
	d.submitOps(Submission{Ops: []*opcode.Opcode{&urgent}})
	if got := starts(d.end(1)); !slices.Equal(got, []job.ID{2}) {
		t.Errorf("job %v begins when job 1 has ended", got)
	}
	if d.end(2); d.Job(2) == nil || d.Job(2).Status() != job.Canceled || d.Job(2).Ops[0].Status != job.Success {
		t.Errorf("it ends as %s", d.Job(2).Encode())
	}
}

// What had begun and could not be told its locks asks for them before others, and has
// begun all the while.
func TestWhatHadBegunAsksForLocksAgain(t *testing.T) {
	d := newDesk(t, 1, Loaded{Resumable: always, Rules: []jobfilter.Rule{holdAll}, LastID: 1, Jobs: []*job.Job{interruptedJob(1, "")}})
	e := d.entry(1)
	comment := "=web1"
	op := *e.inputs[0]
	op.Comment = &comment
	e.inputs[0] = &op // by now it can be told
	r := d.do(AskAgain{Start: Start{Job: 1, Resumed: true}, Entries: []job.LogEntry{{Type: job.LogMessage, Payload: []byte(`"m"`)}}})
	if len(r.Starts) != 1 || !r.Starts[0].Resumed || r.Starts[0].Unlocked || len(d.locks.Held(1)) != 1 || d.running != 1 {
		t.Errorf("it begins as %+v with %v, %d run", r.Starts, d.locks.Held(1), d.running)
	}
	if j := d.Job(1); j.Status() != job.Running || j.LastSerial() != 2 {
		t.Errorf("it is %s", j.Encode())
	}
}

// Who is to run without locks is told so.
func TestWhoHasNoLocksIsToldSo(t *testing.T) {
	d := newDesk(t, 2, Loaded{})
	for comment, want := range map[string]bool{"": true, "=web1": false} {
		op := *dummyOp
		if comment != "" {
			op.Comment = &comment
		}
		s, _ := d.Prepare(Submit{Jobs: []Submission{{Ops: []*opcode.Opcode{&op}}}, Known: map[string]job.ID{"": 0}})
		if r := d.do(s); len(r.Starts) != 1 || r.Starts[0].Unlocked != want {
			t.Errorf("%q begins as %+v", comment, r.Starts)
		}
	}
}

// A controller that stops before it could go on with something leaves it to the next.
func TestWhatHadBegunStaysSoWhenItIsNotStarted(t *testing.T) {
	m, err := New(Loaded{World: World{MaxRunning: 1, Locks: func(*opcode.Opcode) lock.Request { return nil }},
		Resumable: always, LastID: 1, Jobs: []*job.Job{interruptedJob(1, "")}})
	if err != nil {
		t.Fatal(err)
	}
	now := time.Unix(2e9, 0)
	s := m.Apply(Recover{}, now).Starts[0]
	m.Apply(Stop{}, now)
	if r := m.Apply(NotBegun(s), now); !slices.Equal(r.Jobs, []job.ID{1}) || m.running != 0 {
		t.Errorf("written are jobs %v, %d run", r.Jobs, m.running)
	}
	left := m.Job(1)
	next, err := New(Loaded{World: m.world, Resumable: always, LastID: 1, Jobs: []*job.Job{left}})
	if err != nil {
		t.Fatal(err)
	}
	if r := next.Apply(Recover{}, now.Add(time.Second)); len(r.Starts) != 1 || !r.Starts[0].Resumed {
		t.Errorf("stored as %s, it goes on as %+v", left.Status(), r.Starts)
	}
}

// A kill that was acknowledged is kept by the next controller.
func TestWhatWasBeingKilledIsNotRunAgain(t *testing.T) {
	d := newDesk(t, 1, Loaded{})
	id := d.submit("=web1")
	d.do(Cancel{Job: id, Kill: true})
	d.do(Cancel{Job: id}) // the weaker request changes nothing
	next := newDesk(t, 1, Loaded{Resumable: always, Jobs: []*job.Job{d.Job(id)}, LastID: id})
	j := next.Job(id)
	if _, why, failed := job.DecodeError(j.Ops[0].Result); j.Status() != job.Error || !failed || !strings.Contains(why, "killed") {
		t.Errorf("it is %s: %s", j.Status(), j.Ops[0].Result)
	}
}

// TestARuleDoesNotChangeWhyAJobEnds: what runs and is to end, and comes under a rule that rejects it, ends for what was asked of it before. Above all
// it stays one that is killed, so that the next controller takes its opcode back and does not go on with it.
func TestARuleDoesNotChangeWhyAJobEnds(t *testing.T) {
	rejectAll := jobfilter.Rule{UUID: "a", Action: jobfilter.Action{Kind: jobfilter.Reject}}
	for why, ask := range map[string]Cancel{job.Killed: {Job: 1, Kill: true}, job.ByRequest: {Job: 1}} {
		d := newDesk(t, 1, Loaded{Resumable: always, LastID: 1, Jobs: []*job.Job{interruptedJob(1, "", dummyOp)}})
		d.do(ask)
		plan, err := d.PlanRules(func([]jobfilter.Rule, job.ID) ([]jobfilter.Rule, []string, error) {
			return []jobfilter.Rule{rejectAll}, []string{rejectAll.UUID}, nil
		}, inTurn)
		if err != nil {
			t.Fatal(err)
		}
		d.do(plan)
		if got := d.Job(1).CancelReason; got != why {
			t.Errorf("it was to end for %q, and does for %q", why, got)
		}
	}
}
