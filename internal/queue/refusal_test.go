package queue_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/queue"
	"github.com/drover-project/drover/internal/store"
	"github.com/drover-project/drover/internal/store/faultstore"
)

// refuse has the store refuse the next transactions that touch an object, as it
// does with what it will never take.
func refuse(faulty *faultstore.Store, times int, kind store.Kind, id string) {
	for range times {
		faulty.Inject(faultstore.Fault{Do: faultstore.FailBefore, When: touches(kind, id), Err: fault.New(fault.TooLarge, "far too large")})
	}
}

// for good is more often than the queue tries.
const forGood = 10

// works is a check that the queue still does what it is for.
func (r *rig) works() {
	r.t.Helper()
	r.status(r.submit(delay), job.Success)
}

// What the store will never take costs the one job, not the queue, nor the other
// jobs that were submitted with it.
func TestARefusedJobKeepsNoOtherFromBeingTaken(t *testing.T) {
	r, faulty := newFaultyRig(t, 1)
	refuse(faulty, forGood, queue.KindJob, "2")
	out := r.submitMany(
		queue.Submission{Ops: parse(t, delay)},
		queue.Submission{Ops: parse(t, delay), Key: "k"},
		queue.Submission{Ops: parse(t, after(-1, `["success"]`))},
	)
	if out[0].Err != nil || !fault.Is(out[1].Err, fault.TooLarge) || out[2].Err != nil {
		t.Fatalf("outcomes %v", out)
	}
	r.status(1, job.Success)
	if j := r.status(3, job.Error); !strings.Contains(string(j.Ops[0].Result), "Job 2 not found") {
		t.Errorf("what depends on the refused job: %s", j.Ops[0].Result)
	}
	again, err := r.q.Submit(ctx, queue.Submission{Ops: parse(t, delay), Key: "k"})
	r.check(err)
	if again == 2 {
		t.Error("the key names the refused job")
	}
	r.crash()
	if _, err := r.q.Job(ctx, 2); !fault.Is(err, fault.NotFound) {
		t.Errorf("the refused job: %v", err)
	}
	r.status(again, job.Success)
}

// The end of one job and the start of the next are one transaction. If the store
// refuses that for one of them, the other goes on.
func TestARefusalCostsWhatWasRefused(t *testing.T) {
	for name, refused := range map[string]job.ID{"the one that ends": 1, "the one that begins": 2} {
		t.Run(name, func(t *testing.T) {
			r, faulty := newFaultyRig(t, 1)
			r.submit(dummy)
			r.began(1, 0)
			r.submit(dummy)
			refuse(faulty, 2, queue.KindJob, refused.String())
			r.finish(1, 0, nil)
			other := 3 - refused
			if other == 2 {
				r.began(other, 0)
				r.finish(other, 0, nil)
			} else if j := r.status(refused, job.Error); !strings.Contains(string(j.Ops[0].Result), "could not be stored: far too large") {
				t.Errorf("the refused job: %s", j.Ops[0].Result)
			}
			r.status(other, job.Success)
			if r.runs["2/0"] != int(other-1) {
				t.Errorf("job 2 ran %d times", r.runs["2/0"])
			}
			r.works()
			r.crash()
			r.status(other, job.Success)
			if j := r.q.Jobs().Get(refused); !j.Final() {
				t.Errorf("the refused job is %s after a restart", j.Status())
			}
		})
	}
}

// A job that runs and has become too much for the store ends, with its opcode.
// What the opcode left is left out, for it is what was too much.
func TestAJobThatGrowsTooLargeEnds(t *testing.T) {
	r, faulty := newFaultyRig(t, 1)
	id := r.submit(dummy, dummy)
	r.began(id, 0)
	refuse(faulty, 1, queue.KindJob, id.String())
	r.gate(id, 0).env.Infof("%s", strings.Repeat("m", 5000))
	j := r.status(id, job.Error)
	if log := j.Ops[0].Log; len(log) != 1 || !strings.Contains(string(log[0].Payload), "left out") {
		t.Errorf("log %v", log)
	}
	r.works()
	r.crash()
	r.status(id, job.Error)
}

// A job of which nothing is taken any more is set aside as it is stored, and
// told: what depends on it waits, for nobody can tell how it ends.
func TestAJobThatCannotEndIsSetAside(t *testing.T) {
	r, faulty := newFaultyRig(t, 1)
	id := r.submit(dummy)
	r.began(id, 0)
	refuse(faulty, forGood, queue.KindJob, id.String())
	r.finish(id, 0, nil)
	r.works()
	if told := r.q.Unreadable(); len(told) != 1 || !strings.Contains(told[0], "job 1 cannot be written") {
		t.Errorf("told of %v", told)
	}
	next := r.submit(depending(id))
	if j := r.q.Jobs().Get(next); j.Status() != job.Queued {
		t.Errorf("a job that depends on it is %s", j.Status())
	}
	r.crash()
	r.status(id, job.Error)
	r.status(next, job.Error)
}

// A rule, a switch or a move to the archive that the store refuses is taken back
// before the client is told.
func TestRefusedChangesAreTakenBack(t *testing.T) {
	r, faulty := newFaultyRig(t, 1)
	kept := r.rule(1, `"ACCEPT"`, `[["jobid",["=","id",999]]]`)
	refuse(faulty, forGood, queue.KindFilter, kept)
	if err := r.q.DeleteFilter(ctx, kept, queue.By{}); !fault.Is(err, fault.TooLarge) {
		t.Errorf("the removal of a rule that the store refuses: %v", err)
	}
	refuse(faulty, forGood, queue.KindFilter, paused)
	if _, _, err := r.q.PutFilter(ctx, paused, rule(t, 0, `"PAUSE"`, `[]`), queue.By{}); !fault.Is(err, fault.TooLarge) {
		t.Errorf("a rule that the store refuses: %v", err)
	}
	refuse(faulty, 2, queue.KindQueue, "flags")
	if err := r.q.SetDrained(ctx, true, queue.By{}); !fault.Is(err, fault.TooLarge) {
		t.Errorf("a drain that the store refuses: %v", err)
	}
	id := r.submit(delay) // neither drained nor paused
	r.status(id, job.Success)
	refuse(faulty, 2, queue.KindArchived, id.String())
	if done, err := r.q.Archive(ctx, id, queue.By{}); done || !fault.Is(err, fault.TooLarge) {
		t.Errorf("a move to the archive that the store refuses: %v %v", done, err)
	}
	if r.q.Jobs().Get(id) == nil {
		t.Error("the job is neither live nor archived")
	}
	if done, err := r.q.Archive(ctx, id, queue.By{}); !done || err != nil {
		t.Errorf("archived again: %v %v", done, err)
	}
	r.crash()
	if rules := r.shown.Load().Rules; len(rules) != 1 || rules[0].UUID != kept {
		t.Errorf("rules after a restart: %v", rules)
	}
	r.works()
}

const paused = "22222222-2222-2222-2222-222222222222"

// Many jobs move into the archive together; one that the store refuses stays.
func TestARefusedJobStaysOutOfTheArchive(t *testing.T) {
	r, faulty := newFaultyRig(t, 5)
	for range 5 {
		r.works()
	}
	refuse(faulty, 2, queue.KindArchived, "3")
	if _, _, err := r.q.AutoArchive(ctx, -1, patience, queue.By{}); !fault.Is(err, fault.TooLarge) {
		t.Errorf("archived with %v", err)
	}
	var live []job.ID
	for j := range r.q.Jobs().All() {
		live = append(live, j.ID)
	}
	if !slices.Equal(live, []job.ID{3}) {
		t.Errorf("not archived: %v", live)
	}
	for id := job.ID(1); id <= 5; id++ {
		if _, err := r.q.Job(ctx, id); err != nil {
			t.Errorf("job %d: %v", id, err)
		}
	}
}
