package machine

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/lock"
	"github.com/drover-project/drover/internal/opcode"
	"github.com/drover-project/drover/internal/schedule"
)

// kindAt is what a job waits for that is in a place.
var kindAt = map[place]job.SpanKind{
	inReady: job.WaitForSlot, inHold: job.HeldByRule, inDependents: job.WaitForDependency,
	inNodes: job.WaitForNode, inBucket: job.WaitForLimit, inLocks: job.WaitForLock, inGranted: job.WaitForSlot, inRunner: job.Ran,
	inResume: job.WaitForLock,
}

// checkTimelines: a timeline has no gaps, its end is where the job is, and what
// was said while a job waited is in it afterwards.
func (h *world) checkTimelines() error {
	var err error
	h.m.jobs.Scan(func(id job.ID, e *entry) bool {
		spans := h.m.timeline(e)
		last := &spans[len(spans)-1]
		if err = contiguous(spans); err != nil || last.To != 0 || last.Kind != kindAt[e.place] && !(e.place == inResume && h.m.closing && last.Kind == job.Restart) {
			err = fmt.Errorf("the timeline of job %d (place %d) is %+v: %w", id, e.place, spans, err)
			return false
		}
		h.seeWait(id, last)
		err = h.checkHeld(e, last)
		return err == nil
	})
	h.m.ending.Scan(func(id job.ID, j *job.Job) bool {
		err = cmp.Or(err, h.checkEnded(id, j))
		return err == nil
	})
	return err
}

// checkHeld: what a timeline says of a hold is what an explanation says.
func (h *world) checkHeld(e *entry, s *job.Span) error {
	if e.place != inHold {
		return nil
	}
	if v := schedule.Next(e.job, h.m.facts(e, 0)); s.Text != v.Why || s.On != v.Rule.UUID {
		return fmt.Errorf("job %d: %q is told as %q", e.id(), v.Why, s.Text)
	}
	return nil
}

func (h *world) checkEnded(id job.ID, j *job.Job) error {
	spans := j.Timeline()
	if err := contiguous(spans); err != nil || spans[len(spans)-1].Kind != job.WasEnded {
		return fmt.Errorf("the timeline of the ended job %d is %+v: %w", id, spans, err)
	}
	for _, w := range h.waits[id] {
		if !slices.ContainsFunc(spans, func(s job.Span) bool { return s.Kind == w.Kind && s.On == w.On && s.From <= w.From && w.From < s.To }) {
			return fmt.Errorf("job %d: %+v is not told by %+v", id, w, spans)
		}
	}
	delete(h.waits, id)
	return nil
}

// seeWait remembers what a job is seen to wait for.
func (h *world) seeWait(id job.ID, s *job.Span) {
	seen := h.waits[id]
	if n := len(seen); !s.Waiting() || n > 0 && seen[n-1].From == s.From {
		return
	}
	h.waits[id] = append(seen, *s)
}

// contiguous checks that each span begins where the one before it ended.
func contiguous(spans []job.Span) error {
	for i := 1; i < len(spans); i++ {
		if spans[i].From != spans[i-1].To {
			return fmt.Errorf("span %d begins at %d, the one before ends at %d", i, spans[i].From, spans[i-1].To)
		}
	}
	return nil
}

// An opcode may ask for one lock twice, as a delay on the master and on its node.
func TestExplanationNamesALockOnce(t *testing.T) {
	h := newHistory(1, t.Logf)
	h.max = 2
	w := h.world()
	once := w.Locks
	w.Locks = func(op *opcode.Opcode) lock.Request { return append(once(op), once(op)...) }
	h.apply(w)
	for range 2 {
		prepared, _ := h.m.Prepare(Submit{Jobs: []Submission{{Ops: []*opcode.Opcode{parseOp(`{"OP_ID":"OP_INSTANCE_SHUTDOWN","instance_name":"a"}`)}}}})
		h.apply(prepared)
	}
	if x, waits := h.m.Explain(2); !waits || len(x.Locks.Needs) != 2 {
		t.Errorf("explained with %+v", x.Locks)
	}
}

// TestTimelineTellsWhatExplanationsSaid: a job waits for one thing after the
// other; what its timeline says in the end is what was explained at the time.
func TestTimelineTellsWhatExplanationsSaid(t *testing.T) {
	h := newHistory(1, t.Logf)
	h.max = 2
	h.apply(h.world())
	submit := func(ops string) {
		prepared, _ := h.m.Prepare(Submit{Jobs: []Submission{{Ops: []*opcode.Opcode{parseOp(ops)}}}})
		h.apply(prepared)
	}
	change := func(edit Edit) {
		t.Helper()
		plan, err := h.m.PlanRules(edit, inTurn)
		if err != nil {
			t.Fatal(err)
		}
		h.apply(plan)
	}
	done := func(id job.ID, nodes ...string) {
		h.apply(Done{Log: Log{Job: id}, Nodes: nodes, Result: []byte("null")})
	}
	const (
		last = job.ID(5)
		stop = `{"OP_ID":"OP_INSTANCE_SHUTDOWN","instance_name":"a"`
	)
	mine := `[["jobid",["=","id",5]]]`
	submit(stop + "}")                               // 1 has the lock
	submit(stop + `,"depends":[[1,[]]]}`)            // 2 waits, and is what 5 depends on
	submit(`{"OP_ID":"OP_TEST_DELAY","duration":1}`) // 3 has the other slot
	submit(`{"OP_ID":"OP_TEST_JQUEUE"}`)             // 4 waits for a slot
	change(put(aRule("r", 0, `"PAUSE"`, mine)))      // before 5 is there
	submit(stop + `,"depends":[[4,[]]],"reason":[["user","rate-limit:1:lab",1]]}`)

	var explained []job.Span
	explain := func() {
		t.Helper()
		x, waits := h.m.Clone().Explain(last)
		if !waits {
			t.Fatal("the job has ended")
		}
		now := x.Timeline[len(x.Timeline)-1]
		if now.Text != x.Why || now.To != 0 {
			t.Errorf("explained as %q, its timeline ends with %+v", x.Why, now)
		}
		explained = append(explained, now)
	}
	explain() // held by the rule
	change(without("r"))
	explain() // depends on 4
	done(3)
	submit(`{"OP_ID":"OP_TEST_DELAY","duration":1,"priority":-10,"reason":[["user","rate-limit:1:lab",1]]}`) // 6 will have the place
	done(1)
	done(4)
	explain()                                                       // the limit
	submit(`{"OP_ID":"OP_TEST_DELAY","duration":1,"priority":-10}`) // 7 will have the slot
	done(6)
	explain()
	done(7)
	explain()
	done(2)
	done(last, "node1")

	j := h.m.Job(last)
	told := j.Timeline()
	stored, err := job.Decode(j.ID, j.Head(), nil)
	if err != nil || !reflect.DeepEqual(stored.Timeline(), told) {
		t.Errorf("stored as %+v (%v), was %+v", stored, err, told)
	}
	var kinds []job.SpanKind
	for _, s := range told {
		kinds = append(kinds, s.Kind)
	}
	want := []job.SpanKind{job.WasReceived, job.HeldByRule, job.WaitForDependency, job.WaitForLimit, job.WaitForSlot, job.WaitForLock, job.Ran, job.WasEnded}
	if !slices.Equal(kinds, want) {
		t.Fatalf("told as %v", kinds)
	}
	for i, s := range explained {
		got := told[1+i]
		got.To = 0
		if !reflect.DeepEqual(got, s) {
			t.Errorf("explained as %+v, told as %+v", s, got)
		}
	}
	if waited := told[5]; waited.On != "the lock instance/a" || !strings.Contains(waited.Text, waited.On) {
		t.Errorf("a lock is called by its own name: %+v", waited)
	}
	if ran := told[len(told)-2]; !slices.Equal(ran.Nodes, []string{"node1"}) {
		t.Errorf("ran: %+v", ran)
	}
	if x := h.m.ExplainEnded(j); x.Why != told[len(told)-1].Text {
		t.Errorf("ended: %q, told as %q", x.Why, told[len(told)-1].Text)
	}
}
