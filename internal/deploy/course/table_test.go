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

// TestACopyStaysAsItWas: whatever becomes of the table that it is of.
func TestACopyStaysAsItWas(t *testing.T) {
	table := NewTable()
	table.PutEnvironment(&Environment{Name: "e", Generation: 1})
	table.PutGraph(&Graph{Name: "g", Generation: 1})
	table.PutDeployment(&Deployment{ID: 1, Environment: "e", Status: Planned})
	table.PutDeployment(&Deployment{ID: 2, Environment: "e", Status: Running, Attempt: 1, Mode: Earnest})
	table.PutRecord(&Record{Deployment: 2, Step: 1, State: Ready})
	was := func(x *Table) bool {
		return x.Environment("e") != nil && x.Graph("g") != nil && x.Newest() == 2 && x.ActiveIn("e") != nil && x.Task(2, 1).Record != nil && x.LatestIn("e") != nil && x.Task(2, 0).Record == nil
	}
	before := table.Copy()
	table.PutRecord(&Record{Deployment: 2, Step: 0, State: Ready})
	table.RemoveEnvironment("e")
	table.RemoveGraph("g")
	table.PutDeployment(&Deployment{ID: 3, Environment: "e", Status: Planned})
	table.PutDeployment(&Deployment{ID: 2, Environment: "e", Status: Done, Mode: Earnest})
	if !was(before) {
		t.Error("a copy has changed with its table")
	}
	if was(table) || table.Environment("e") != nil || table.Graph("g") != nil || table.ActiveIn("e") != nil || table.LatestIn("e").ID != 2 {
		t.Error("the table has not changed, or a plan that nobody began counts")
	}
}

// TestWhatIsNeeded: a deployment stays as long as something is decided by it, and says by what.
func TestWhatIsNeeded(t *testing.T) {
	at := &Environment{Name: "e", Graphs: []string{"g"}, Created: 5}
	d := func(id int64, s Status, ready int, change func(*Deployment)) *Deployment {
		d := &Deployment{ID: id, Environment: "e", Graphs: []string{"g"}, Mode: Earnest, Status: s, Created: 5 + id, Counts: map[State]int{Ready: ready}}
		if change != nil {
			change(d)
		}
		return d
	}
	const newest, latest, tells, active = "it is the newest of all, and its number must not be given again", "it is the latest one of the environment e",
		"it tells how far the environment e has come", "it is under way"
	some := func(d *Deployment) { d.Some = true }
	for name, x := range map[string]struct {
		all  []*Deployment
		want []string
	}{
		"all as a whole":                     {[]*Deployment{d(1, Done, 2, nil), d(2, Done, 2, nil), d(3, Planned, 0, nil)}, []string{"", latest, newest}},
		"the last one of some nodes":         {[]*Deployment{d(1, Done, 2, nil), d(2, Done, 2, nil), d(3, Broken, 1, some), d(4, Planned, 0, nil)}, []string{"", tells, latest, newest}},
		"the last whole one did nothing":     {[]*Deployment{d(1, Broken, 1, nil), d(2, Broken, 0, nil), d(3, Broken, 0, some), d(4, Planned, 0, nil)}, []string{tells, tells, latest, newest}},
		"one that was there before":          {[]*Deployment{d(1, Done, 2, func(d *Deployment) { d.Created = 1 }), d(2, Broken, 0, nil), d(3, Planned, 0, nil)}, []string{"", latest, newest}},
		"trials":                             {[]*Deployment{d(1, Done, 2, func(d *Deployment) { d.Mode = Noop }), d(2, Planned, 0, nil), d(3, Planned, 0, nil)}, []string{"", "", newest}},
		"one of an environment that is gone": {[]*Deployment{d(1, Done, 2, func(d *Deployment) { d.Environment = "f" }), d(2, Planned, 0, nil)}, []string{"", newest}},
		"one that is under way":              {[]*Deployment{d(1, Running, 0, nil), d(2, Stopping, 0, func(d *Deployment) { d.Environment = "f" })}, []string{active, active}},
	} {
		table := NewTable()
		table.PutEnvironment(at)
		for _, d := range x.all {
			table.PutDeployment(d)
		}
		for i, want := range x.want {
			if got := table.Needed(table.Deployment(int64(i + 1))); got != want {
				t.Errorf("%s: of deployment %d it says %q, not %q", name, i+1, got, want)
			}
		}
		status := table.StatusOf(at)
		for i, want := range x.want {
			if want == "" {
				table.RemoveDeployment(int64(i + 1))
			}
		}
		if got := table.StatusOf(at); got != status {
			t.Errorf("%s: without what is not needed the environment is %s, not %s", name, got, status)
		}
	}
}

// TestWhatAnOldRecordShows: a failure that is to be tried again counts no more while its deployment goes on, and is shown when that has ended
// before it came to it; what a job tells is shown where no record counts.
func TestWhatAnOldRecordShows(t *testing.T) {
	c := &Course{Steps: []Step{{Task: "t", Node: "1", Run: true}, {Task: "s", Node: "1"}}, After: make([][]int32, 2)}
	failed, ready := &Record{State: Failed, Attempt: 1, Job: 5, Error: "no room"}, &Record{State: Ready, Attempt: 1, Job: 5}
	for _, x := range []struct {
		status  Status
		retried int
		known   Known
		state   State
		job     int64
	}{
		{Running, 2, Known{Record: failed}, Waiting, 0}, {Running, 2, Known{Record: failed, State: Given, Job: 6}, Given, 6}, {Running, 1, Known{Record: failed}, Failed, 5},
		{Halted, 2, Known{Record: failed}, Failed, 5}, {Halted, 2, Known{Record: failed, State: Stopped}, Failed, 5}, {Halted, 1, Known{State: Stopped}, Stopped, 0},
		{Running, 2, Known{Record: ready, State: Given, Job: 6}, Ready, 5}, {Halted, 1, Known{}, Waiting, 0},
	} {
		d := &Deployment{ID: 1, Status: x.status, Attempt: 2, Retried: x.retried}
		if got := c.Task(d, 0, x.known); got.State != x.state || got.Job != x.job || (got.Error != "") != (x.state == Failed) {
			t.Errorf("%s, retried from %d on, known is %+v: shown is %+v", x.status, x.retried, x.known, got)
		}
		if got := c.Task(d, 1, x.known); got.State != Skipped || got.Job != 0 {
			t.Errorf("what does not run is shown as %+v", got)
		}
	}
}

// TestWhatAJobTells: one that was refused before it began was blocked by what it depends on; one that failed tells nothing by itself, for how is recorded.
func TestWhatAJobTells(t *testing.T) {
	for _, c := range []struct {
		status  job.Status
		started job.Time
		state   State
	}{{job.Queued, 0, Given}, {job.Running, 5, Given}, {job.Success, 5, Given}, {job.Error, 5, Given}, {job.Error, 0, Blocked}, {job.Canceled, 0, Stopped}, {job.Canceled, 5, Stopped}} {
		j := ofTask(7, 2, 1, c.status)
		j.Started = c.started
		if k, ok := KnownOf(j); !ok || k != (Known{Deployment: 1, Step: 1, Job: 7, Attempt: 2, State: c.state}) {
			t.Errorf("%s, started at %d: %+v, %t", c.status, c.started, k, ok)
		}
	}
	far := ofTask(7, 2, 1<<32+1, job.Queued)
	if k, ok := KnownOf(far); ok {
		t.Errorf("a step that no plan has: %+v", k)
	}
}

// TestOver: the last thing that happened to a deployment counts, whichever that was.
func TestOver(t *testing.T) {
	for name, x := range map[string]struct {
		d    Deployment
		want int64
	}{
		"planned": {Deployment{Created: 3}, 3},
		"begun":   {Deployment{Created: 3, Begun: 5}, 5},
		"ended":   {Deployment{Created: 3, Begun: 5, Ended: 9}, 9},
	} {
		if got := x.d.Over(); got != x.want {
			t.Errorf("one that was %s is over since %d, not %d", name, got, x.want)
		}
	}
}
