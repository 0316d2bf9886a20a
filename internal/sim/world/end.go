package world

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/drover-project/drover/internal/inventory"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/queue"
	"github.com/drover-project/drover/internal/sim/check"
	"github.com/drover-project/drover/internal/sim/memory"
	"github.com/drover-project/drover/internal/sim/plan"
	"github.com/drover-project/drover/internal/store"
)

// settleTime is how long jobs may take once all is healed.
const settleTime = 20 * time.Minute

// settledTime is within which servers were looked at that are to be.
const settledTime = 5 * time.Second

// settle waits until all jobs have ended, and compares what the leader shows a while later: who
// stands by has heard of the last end then.
func (w *world) settle() {
	w.tellf("world", "all is healed")
	w.answers()
	if w.plan.Has(plan.Rules) || w.plan.Has(plan.Group) {
		time.Sleep(2 * lateTime)
		if t := w.leads(); t != nil {
			t.rulesAreOver()
		}
		w.clearRules()
	}
	if w.plan.Has(plan.Servers) { // what became of a change that nobody told of is found out when a server is looked at again
		time.Sleep(lookAround + settledTime)
	}
	limit := time.Now().Add(settleTime)
	undone, quiet := "nobody leads", false
	for time.Now().Before(limit) {
		if t := w.leads(); t != nil {
			undone = t.undone()
			if undone == "" && quiet {
				w.compare(t)
				return
			}
			quiet = undone == ""
		}
		time.Sleep(time.Second)
	}
	w.verdict.Breakf(check.JobsEnd, "after %v: %s", settleTime, undone)
}

// answerTime is within which a request is answered once all is healed.
const answerTime = 30 * time.Second

// answers holds the group to answering when all is well.
func (w *world) answers() {
	begun := time.Now()
	c := &client{w: w, name: "late", draw: w.streams.Of("late")}
	c.submit("late", "a late request", opcodeOf("OP_TEST_DELAY", map[string]any{"duration": 1.0, "on_master": false}))
	if took := time.Since(begun); took > answerTime {
		w.verdict.Breakf(check.Answered, "a request took %v", took)
	}
}

// undone tells of something that a leader has not done yet: a job, or other work; empty
// when all is done.
func (t *term) undone() string {
	for j := range t.queue.Jobs().All() {
		if !j.Final() {
			return fmt.Sprintf("job %d is %s", j.ID, j.Status())
		}
	}
	for _, work := range t.life.w.plan.Work {
		if of := kinds[work].undone; of != nil {
			if left := of(t); left != "" {
				return left
			}
		}
	}
	return ""
}

// compare holds what a leader shows against what is stored, and both against the nodes.
func (w *world) compare(t *term) {
	s := w.db.Open(memory.Handle{Name: "end"})
	defer func() { _ = s.Close() }() // it never fails
	stored, err := inventory.Read(context.Background(), s)
	if err != nil {
		w.verdict.Breakf(check.PictureStored, "the inventory cannot be read: %v", err)
		return
	}
	shown := t.keeper.Snapshot()
	for inst := range shown.Instances() {
		if stored.Instance(inst.UUID) == nil {
			w.verdict.Breakf(check.PictureStored, "the leader shows %s (%s), and it is not stored", inst.Name, inst.UUID)
		}
	}
	for inst := range stored.Instances() {
		if a := shown.Instance(inst.UUID); a == nil || a.Name != inst.Name || a.Serial != inst.Serial {
			w.verdict.Breakf(check.PictureStored, "the leader shows %s as %+v, and %+v is stored", inst.Name, a, inst)
		}
	}
	t.agreesWithNodes(stored)
	for _, work := range w.plan.Work {
		if check := kinds[work].check; check != nil {
			check(t)
		}
	}
	read := queue.NewStored(s)
	for j := range t.queue.Jobs().All() {
		if have, err := read.Job(context.Background(), j.ID); err != nil || have.Status() != j.Status() {
			w.verdict.Breakf(check.PictureStored, "the leader shows job %d as %s, and stored is %v, %v", j.ID, j.Status(), have, err)
		}
	}
}

// look looks at what there is when everything has ended.
func (w *world) look() {
	for _, e := range w.effects.Left() {
		w.verdict.Breakf(check.NothingLeft, "%s", e)
	}
	s := w.db.Open(memory.Handle{Name: "end"})
	defer func() { _ = s.Close() }() // it never fails
	jobs := w.jobs(s)
	for _, key := range slices.Sorted(maps.Keys(w.keys)) {
		r := w.keys[key]
		if r.job == 0 {
			continue
		}
		j := jobs[key]
		switch {
		case j == nil:
			w.verdict.Breakf(check.Acknowledged, "%s was acknowledged as job %d, and there is none of that key", r.what, r.job)
		case j.ID != r.job:
			w.verdict.Breakf(check.OneJobAKey, "%s was acknowledged as job %d, and is %d", r.what, r.job, j.ID)
		case r.cancelled && j.Status() != job.Canceled:
			w.verdict.Breakf(check.Acknowledged, "job %d was cancelled, and is %s", j.ID, j.Status())
		}
	}
}

// jobs are those that are stored, by key.
func (w *world) jobs(s store.Store) map[string]*job.Job {
	read := queue.NewStored(s)
	byKey := map[string]*job.Job{}
	for o, err := range s.List(context.Background(), queue.KindJob, store.Options{}) {
		if err != nil {
			w.verdict.Breakf(check.Acknowledged, "jobs cannot be listed: %v", err)
			break
		}
		j, err := read.Decode(context.Background(), o)
		if err != nil {
			w.verdict.Breakf(check.Acknowledged, "job %s cannot be read: %v", o.ID, err)
			continue
		}
		if other := byKey[j.Key]; other != nil && j.Key != "" {
			w.verdict.Breakf(check.OneJobAKey, "jobs %d and %d are of %s", other.ID, j.ID, j.Key)
		}
		byKey[j.Key] = j
		if !j.Final() {
			w.verdict.Breakf(check.JobsEnd, "job %d is %s", j.ID, j.Status())
		}
		w.tellf(End, "job %d (%s) is %s", j.ID, j.Ops[0].Input.ID, j.Status())
		w.Reached.Add("jobs: " + string(j.Status()))
		w.count(j)
		w.once(j)
	}
	return byKey
}

// count counts which opcodes fail.
func (w *world) count(j *job.Job) {
	for i := range j.Ops {
		if j.Ops[i].Status == job.Error {
			w.Reached.Add("fails: " + j.Ops[i].Input.ID)
		}
	}
}

// once holds a creation to what it may do: what it begins is begun once by each who leads.
func (w *world) once(j *job.Job) {
	for name, times := range w.begins {
		if times > 1 && j.Ops[0].Input.ID == "OP_INSTANCE_CREATE" && strings.HasPrefix(name, fmt.Sprintf("job %d,", j.ID)) {
			w.verdict.Breakf(check.RunOnce, "%s was begun %d times", name, times)
		}
	}
}
