package course

import (
	"slices"
	"testing"

	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/opcode"
)

// ofTask is a job of a task of deployment 1.
func ofTask(id job.ID, attempt, step int64, s job.Status) *job.Job {
	op := &opcode.Opcode{ID: TaskOpcode, Params: map[string]any{"deployment": int64(1), "attempt": attempt, "step": step}}
	return &job.Job{ID: id, Ops: []job.Op{{Input: op, Status: s}}}
}

// knows lists what a table knows of the tasks of deployment 1.
func knows(t *Table) (out []Known) {
	for k := range t.Known(1) {
		k.Record = nil
		out = append(out, k)
	}
	return out
}

// TestJobsOfTasks: which jobs a table takes for those of tasks, whether it hears of the deployment first or of the jobs, and that it
// forgets those of attempts that are over.
func TestJobsOfTasks(t *testing.T) {
	d := &Deployment{ID: 1, Status: Running, Attempt: 2, Steps: 2}
	jobs := []*job.Job{ofTask(5, 1, 0, job.Success), ofTask(6, 2, 0, job.Canceled), ofTask(7, 2, 1, job.Queued), {ID: 8}}
	want := []Known{{Deployment: 1, Step: 0, Job: 6, Attempt: 2, State: Stopped}, {Deployment: 1, Step: 1, Job: 7, Attempt: 2, State: Given}}
	take := func(t *Table) {
		for _, j := range jobs {
			if k, ok := KnownOf(j); ok {
				t.PutJob(k)
			}
		}
	}
	first, last, between := NewTable(), NewTable(), NewTable()
	first.PutDeployment(d)
	take(first)
	take(last)
	last.PutDeployment(d)
	between.PutDeployment(&Deployment{ID: 1, Status: Halted, Attempt: 1, Steps: 2})
	take(between)
	between.PutDeployment(d)
	for when, table := range map[string]*Table{"the deployment first": first, "the jobs first": last, "the jobs before its next attempt is told": between} {
		if got := knows(table); !slices.Equal(got, want) {
			t.Errorf("%s: %+v", when, got)
		}
		again := *d
		again.Attempt = 3
		if table.PutDeployment(&again); len(knows(table)) != 0 {
			t.Errorf("%s: in the next attempt there are still %+v", when, knows(table))
		}
	}
	over := *d
	over.Status = Halted
	if last.PutDeployment(&over); last.ActiveIn("") != nil {
		t.Error("what is over is under way")
	}
	if take(last); len(knows(last)) != 0 {
		t.Errorf("of a deployment that is over there are %+v", knows(last))
	}
}

// TestWhatIsOverIsBrief: of what has ended a table has no state, and nothing of tasks; a copy that was taken before stays as it was.
func TestWhatIsOverIsBrief(t *testing.T) {
	table := NewTable()
	d := &Deployment{ID: 1, Environment: "e", Status: Running, Attempt: 1, Mode: Earnest, Nodes: []Node{{UID: "1"}}, Secrets: []string{"x"}, Settings: []byte("{}")}
	table.PutDeployment(d)
	table.PutRecord(&Record{Deployment: 1, Step: 3, State: Ready})
	table.PutRecord(&Record{Deployment: 2, Step: 3, State: Ready}) // of none that is known
	before := table.Copy()
	over := *d
	over.Status = Done
	table.PutDeployment(&over)
	table.PutRecord(&Record{Deployment: 1, Step: 3, State: Ready})
	if n := len(knows(table)) + table.tasks.Len(); n != 0 {
		t.Errorf("%d tasks of it are in memory", n)
	}
	if x := table.Deployment(1); x.Nodes != nil || x.Secrets != nil || x.Settings != nil || x.Status != Done {
		t.Errorf("it is %+v", x)
	}
	if x := before.ActiveIn("e"); x == nil || before.Task(1, 3).Record == nil || before.tasks.Len() != 1 {
		t.Errorf("before it was %+v", x)
	}
	if table.LatestIn("e").ID != 1 || table.LatestIn("f") != nil || table.Newest() != 1 {
		t.Error("the latest is not found")
	}
	if d.Nodes == nil {
		t.Error("the value that was put has changed")
	}
}
