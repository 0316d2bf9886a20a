package machine

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/opcode"
)

// TestExpectationsLiveThroughWhatIsToCome: a limit, a slot, jobs behind one another
// and a rule that ends by itself delay a job by what those before it take; what
// nobody can know is said to be so, and who is to blame for it.
func TestExpectationsLiveThroughWhatIsToCome(t *testing.T) {
	h := newHistory(1, t.Logf)
	h.max = 2
	h.apply(h.world())
	submit := func(op string) {
		prepared, _ := h.m.Prepare(Submit{Jobs: []Submission{{Ops: []*opcode.Opcode{parseOp(op)}}}})
		h.apply(prepared)
	}
	until := h.now.Add(time.Hour)
	ends, stays, limit := aRule("ends", 1, `"PAUSE"`, `[["opcode",["=","OP_ID","OP_TEST_JQUEUE"]]]`),
		aRule("stays", 2, `"PAUSE"`, `[["jobid",["=","id",7]]]`), aRule("limit", 3, `["RATE_LIMIT",1]`, `[["opcode",["=","OP_ID","OP_TEST_DELAY"]]]`)
	ends.Until = until
	for _, r := range []Edit{put(ends), put(stays), put(limit)} {
		plan, err := h.m.PlanRules(r, inTurn)
		if err != nil {
			t.Fatal(err)
		}
		h.apply(plan)
	}
	const (
		delay = `{"OP_ID":"OP_TEST_DELAY","duration":1`
		stop  = `{"OP_ID":"OP_INSTANCE_SHUTDOWN","instance_name":"a"`
	)
	submit(delay + "}")                    // 1 has the place of the limit
	submit(delay + "}")                    // 2 is next
	submit(delay + `,"depends":[[2,[]]]}`) // 3 waits for it
	submit(stop + "}")                     // 4 has a slot and a lock
	submit(stop + "}")                     // 5 waits for the lock
	submit(`{"OP_ID":"OP_TEST_JQUEUE"}`)   // 6 waits for the end of a rule
	submit(delay + "}")                    // 7 is held for good
	submit(stop + `,"depends":[[7,[]]]}`)  // 8 waits for it
	submit(stop + `,"depends":[[4,["error"]]]}`)

	ran := func(id job.ID, op string, took time.Duration) *job.Job {
		start := time.Unix(10, 0)
		return job.New(id, []*opcode.Opcode{parseOp(op)}, "", start).BeginWait(0, job.At(start)).BeginRun(0, job.At(start)).
			Succeed(0, nil, job.At(start.Add(took)))
	}
	took := DurationsOf(slices.Values([]*job.Job{
		ran(101, delay+"}", 10*time.Second), ran(102, delay+"}", time.Hour), ran(103, delay+"}", time.Second),
		ran(104, `{"OP_ID":"OP_TEST_DELAY","duration":9}`, time.Hour), // about something else
		ran(105, `{"OP_ID":"OP_INSTANCE_SHUTDOWN","instance_name":"b"}`, 20*time.Second),
	}))
	was := digest(h.m)
	for id, want := range map[job.ID]time.Duration{2: 10 * time.Second, 3: 20 * time.Second, 5: 20 * time.Second, 6: time.Hour} {
		e := h.m.Expect(id, took, h.now)
		if e == nil {
			t.Fatalf("job %d: nothing is expected", id)
		}
		if in := time.UnixMicro(int64(e.At)).Sub(h.now); in > want || in < want-time.Second {
			t.Errorf("job %d: in %s (%s), not %s", id, in, e.Text, want)
		}
	}
	for id, want := range map[job.ID]string{
		7: "cannot be told: filter rule stays (PAUSE; no reason given) holds job 7 until somebody changes that",
		8: "cannot be told: filter rule stays (PAUSE; no reason given) holds job 7 until somebody changes that",
		9: "never: as things are, it will end as error",
	} {
		if e := h.m.Expect(id, took, h.now); e == nil || e.At != 0 || e.Text != want {
			t.Errorf("job %d: %+v, not %s", id, e, want)
		}
	}
	if e := h.m.Expect(2, nil, h.now); e == nil || e.At != 0 || !strings.Contains(e.Text, "nothing like TEST_DELAY(1.0) of job 1 has succeeded lately") {
		t.Errorf("without durations: %+v", e)
	}
	if e := h.m.Expect(1, took, h.now); e != nil {
		t.Errorf("what runs is expected to begin: %+v", e)
	}
	if digest(h.m) != was {
		t.Error("the machine itself has changed")
	}
	x, _ := h.m.Explain(3)
	want := "job 2 has to end; it is queued, number 1 in the line of the rate limit 1 of filter rule limit"
	if len(x.Change) != 1 || x.Change[0].Text != want || !slices.Equal(x.Change[0].Jobs, []job.ID{2}) {
		t.Errorf("job 3: %+v", x.Change)
	}
	if x, _ = h.m.Explain(8); len(x.Change) != 1 || !strings.HasPrefix(x.Change[0].Text, "job 7 has to end; it is queued, held by filter rule stays") {
		t.Errorf("job 8: %+v", x.Change)
	}
}
