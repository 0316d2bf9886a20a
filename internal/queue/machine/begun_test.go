package machine

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/lock"
	"github.com/drover-project/drover/internal/opcode"
)

// begunJob is interruptedJob by a program that keeps what opcodes do.
func begunJob(id job.ID, comment string) *job.Job {
	j := interruptedJob(id, comment)
	return j.BeginSteps(0, j.Ops[0].Exec)
}

// What had begun goes on with the locks that it had, though its opcode would ask for others by now, and shows its steps.
func TestWhatHadBegunKeepsItsLocks(t *testing.T) {
	had := lock.Request{{Name: lock.Name{Level: lock.Instance, Item: "old"}, Mode: lock.Exclusive}}
	steps := []job.Step{{Verb: "rename", State: job.StepDone}}
	d := newDesk(t, 5, Loaded{LastID: 2, Jobs: []*job.Job{begunJob(1, "=new"), begunJob(2, "=old")},
		Begun: map[job.ID]Begun{1: {Locks: had, Steps: steps, Why: "step 2 of 2", Placement: []byte(`{"node":"n"}`)}}})
	e := d.entry(1)
	if held := d.locks.Held(1); e.place != inRunner || !slices.ContainsFunc(held, func(w lock.Want) bool { return w.Name.Item == "old" }) ||
		slices.ContainsFunc(held, func(w lock.Want) bool { return w.Name.Item == "new" }) {
		t.Errorf("it is in place %d and holds %v", e.place, held)
	}
	if string(e.job.Ops[0].Placement) != `{"node":"n"}` {
		t.Errorf("how its node was chosen is %s", e.job.Ops[0].Placement)
	}
	if !slices.Equal(e.job.Ops[0].Steps, steps) || !strings.Contains(string(e.job.Ops[0].Log[0].Payload), "step 2 of 2") {
		t.Errorf("it has the steps %v and says %s", e.job.Ops[0].Steps, e.job.Ops[0].Log[0].Payload)
	}
	if x, _ := d.Explain(1); len(x.Locks.Needs) != 1 || x.Locks.Needs[0].Name != "instance/old" {
		t.Errorf("it is said to need %v", x.Locks.Needs)
	}
	if e := d.entry(2); e.place != inResume {
		t.Fatalf("job 2 is in place %d", e.place)
	}
	if got := starts(d.end(1)); !slices.Equal(got, []job.ID{2}) {
		t.Errorf("behind it begins %v", got)
	}
}

// An opcode of which nothing was kept, by a program that keeps what they do, had begun nothing: it is begun anew, whatever was said of
// opcodes of its kind before.
func TestWhatKeptNothingHadBegunNothing(t *testing.T) {
	d := newDesk(t, 1, Loaded{LastID: 1, Jobs: []*job.Job{begunJob(1, "")}})
	if e := d.entry(1); e == nil || e.place != inRunner || !e.job.Ops[0].Stepwise {
		t.Fatalf("it is %+v", e)
	}
	if old := newDesk(t, 1, Loaded{LastID: 1, Jobs: []*job.Job{interruptedJob(1, "")}}); old.Job(1).Status() != job.Error {
		t.Errorf("one of a program of before is %s", old.Job(1).Status())
	}
}

// What was being killed goes on where something was kept of it, to be taken back.
func TestWhatWasBeingKilledIsTakenBack(t *testing.T) {
	for kept, want := range map[bool]job.Status{true: job.Running, false: job.Error} {
		j := begunJob(1, "").RequestCancel(job.Killed)
		l := Loaded{LastID: 1, Jobs: []*job.Job{j}, Resumable: always}
		if kept {
			l.Begun = map[job.ID]Begun{1: {Steps: []job.Step{{}}}}
		}
		d := newDesk(t, 1, Loaded{})
		l.World = d.world(1)
		m, err := New(l)
		if err != nil {
			t.Fatal(err)
		}
		r := m.Apply(Recover{}, d.now)
		if got := m.Job(1).Status(); got != want || kept != (len(r.Starts) == 1 && r.Starts[0].Undo) {
			t.Errorf("kept %v: it is %s and begins as %+v", kept, got, r.Starts)
		}
	}
}

// TestWhatIsCancelledAndNotKilledGoesOn: of a job that is to be cancelled the opcode that has begun comes to its end, also behind a restart; it is not
// taken back.
func TestWhatIsCancelledAndNotKilledGoesOn(t *testing.T) {
	d := newDesk(t, 1, Loaded{})
	m, err := New(Loaded{World: d.world(1), Resumable: always, LastID: 1, Jobs: []*job.Job{begunJob(1, "").RequestCancel(job.ByRequest)},
		Begun: map[job.ID]Begun{1: {Steps: []job.Step{{}}}}})
	if err != nil {
		t.Fatal(err)
	}
	if r := m.Apply(Recover{}, d.now); len(r.Starts) != 1 || r.Starts[0].Undo {
		t.Errorf("it begins as %+v", r.Starts)
	}
}

// Only what begins under a format that has steps is said to be kept; what goes on stays what it was.
func TestOpcodesBeginAsTheFormatAllows(t *testing.T) {
	for _, stepwise := range []bool{false, true} {
		d := newDesk(t, 2, Loaded{Resumable: always, LastID: 1, Jobs: []*job.Job{interruptedJob(1, "")}})
		w := d.world(2)
		w.Stepwise = stepwise
		d.do(w)
		s, _ := d.Prepare(Submit{Jobs: []Submission{{Ops: []*opcode.Opcode{dummyOp}}}, Known: map[string]job.ID{"": 0}})
		d.do(s)
		if d.Job(1).Ops[0].Stepwise || d.Job(2).Ops[0].Stepwise != stepwise {
			t.Errorf("stepwise %v: %v and %v", stepwise, d.Job(1).Ops[0].Stepwise, d.Job(2).Ops[0].Stepwise)
		}
	}
}

// How far an opcode came is shown with its messages, and kept with its end.
func TestStepsComeWithTheLog(t *testing.T) {
	d := newDesk(t, 1, Loaded{})
	id := d.submit("")
	first, last := []job.Step{{State: job.StepRunning, Text: "stop it", Node: "node1"}}, []job.Step{{State: job.StepDone}}
	if r := d.do(Log{Job: id, Steps: first}); !slices.Equal(r.Jobs, []job.ID{id}) || !slices.Equal(d.Job(id).Ops[0].Steps, first) {
		t.Errorf("it has %v, written are %v", d.Job(id).Ops[0].Steps, r.Jobs)
	}
	if x, _ := d.Explain(id); !strings.Contains(x.Why, "opcode 0 is running, at step 1 of 1: stop it on node1") {
		t.Errorf("it is explained as %q", x.Why)
	}
	if d.do(Log{Job: id}); !slices.Equal(d.Job(id).Ops[0].Steps, first) {
		t.Error("a log without steps forgets them")
	}
	m := d.Apply(Done{Log: Log{Job: id, Steps: last}, Result: []byte("null")}, d.now.Add(time.Second))
	if len(m.Jobs) != 1 || !slices.Equal(d.Job(id).Ops[0].Steps, last) {
		t.Errorf("at its end it has %v", d.Job(id).Ops[0].Steps)
	}
}
