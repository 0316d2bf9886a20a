package course

import (
	"iter"
	"slices"

	"github.com/tidwall/btree"

	"github.com/drover-project/drover/internal/deploy/environment"
	"github.com/drover-project/drover/internal/job"
)

// Table is what a controller knows at once of environments, task graphs and deployments: all of them in brief, and of deployments
// that are under way what became of their tasks. The rest is in the store, as are plans.
//
// Its changes are not safe for concurrent use. Copy makes a picture that may be read from any number of goroutines while the
// original goes on; it costs the same at any size.
type Table struct {
	environments *btree.Map[string, *Environment]
	graphs       *btree.Map[string, *Graph]
	deployments  *btree.Map[int64, *Deployment]
	active       *btree.Map[int64, *Deployment]
	tasks        *btree.BTreeG[Known]
}

// Known is what is known of a task of a deployment, beside its plan.
type Known struct {
	Deployment int64
	Step       int32
	// Job is that of an attempt, 0 for none; State says what became of it: Given, Stopped or Blocked, empty for none. Of a deployment
	// that is over it is Stopped where the job was cancelled.
	Job     int64
	Attempt int
	State   State
	// Record is how it ended; nil as long as it has not.
	Record *Record
}

// KnownOf returns what a job tells of a task; of most jobs, which are no tasks, ok is false.
func KnownOf(j *job.Job) (k Known, ok bool) {
	if len(j.Ops) != 1 || j.Ops[0].Input.ID != TaskOpcode {
		return k, false
	}
	op := j.Ops[0].Input
	k = Known{Deployment: op.Int("deployment"), Step: int32(op.Int("step")), Attempt: int(op.Int("attempt")), Job: int64(j.ID), State: Given}
	switch s := j.Status(); {
	case s == job.Canceled:
		k.State = Stopped
	case s == job.Error && j.Started == 0: // what it depends on did not succeed
		k.State = Blocked
	}
	return k, int64(k.Step) == op.Int("step")
}

// TaskOpcode is what jobs of tasks do.
const TaskOpcode = "OP_DEPLOY_TASK"

// NewTable returns a table of nothing.
func NewTable() *Table {
	return &Table{environments: &btree.Map[string, *Environment]{}, graphs: &btree.Map[string, *Graph]{},
		deployments: &btree.Map[int64, *Deployment]{}, active: &btree.Map[int64, *Deployment]{},
		tasks: btree.NewBTreeGOptions(func(a, b Known) bool {
			return a.Deployment < b.Deployment || a.Deployment == b.Deployment && a.Step < b.Step
		}, btree.Options{NoLocks: true})}
}

// Copy returns the table as it is now.
func (t *Table) Copy() *Table {
	return &Table{environments: t.environments.Copy(), graphs: t.graphs.Copy(), deployments: t.deployments.Copy(), active: t.active.Copy(), tasks: t.tasks.Copy()}
}

// PutEnvironment sets an environment, in place of the one of its name.
func (t *Table) PutEnvironment(e *Environment) { t.environments.Set(e.Name, e.Shown()) }

// RemoveEnvironment takes an environment out.
func (t *Table) RemoveEnvironment(name string) { t.environments.Delete(name) }

// PutGraph sets a graph, in place of the one of its name.
func (t *Table) PutGraph(g *Graph) { t.graphs.Set(g.Name, g.Brief()) }

// RemoveGraph takes a graph out.
func (t *Table) RemoveGraph(name string) { t.graphs.Delete(name) }

// PutDeployment sets a deployment, in place of the one of its number. Of its tasks nothing stays that is over: how they ended
// tell the records in the store.
func (t *Table) PutDeployment(d *Deployment) {
	d = d.Brief()
	t.deployments.Set(d.ID, d)
	t.active.Delete(d.ID)
	if d.Status.Active() {
		t.active.Set(d.ID, d)
	}
	for k := range t.Known(d.ID) {
		if !ahead(d, k.Attempt) {
			k.Job, k.State = 0, ""
		}
		if !d.Status.Active() {
			k.Record = nil
		}
		if k.Job == 0 && k.Record == nil {
			t.tasks.Delete(k)
			continue
		}
		t.tasks.Set(k)
	}
}

// ahead tells whether what belongs to an attempt of a deployment is news: the attempt is under way, or the deployment does not say
// yet that it has begun. Jobs may be read from a store after the deployment that they are of.
func ahead(d *Deployment, attempt int) bool {
	return d == nil || attempt > d.Attempt || attempt == d.Attempt && d.Status.Active()
}

// RemoveDeployment takes a deployment out, with what is known of its tasks.
func (t *Table) RemoveDeployment(id int64) {
	t.deployments.Delete(id)
	t.active.Delete(id)
	for k := range t.Known(id) {
		t.tasks.Delete(k)
	}
}

// PutJob takes in what a job tells of a task.
func (t *Table) PutJob(k Known) {
	if !ahead(t.Deployment(k.Deployment), k.Attempt) {
		return
	}
	before, _ := t.tasks.Get(k)
	k.Record = before.Record
	t.tasks.Set(k)
}

// PutRecord takes in how a task ended, of a deployment that is under way.
func (t *Table) PutRecord(r *Record) {
	if d := t.Deployment(r.Deployment); d == nil || !d.Status.Active() {
		return
	}
	k := t.Task(r.Deployment, r.Step)
	k.Record = r
	t.tasks.Set(k)
}

// Environment finds an environment by name; nil if there is none.
func (t *Table) Environment(name string) *Environment { e, _ := t.environments.Get(name); return e }

// Graph finds a graph by name; nil if there is none.
func (t *Table) Graph(name string) *Graph { g, _ := t.graphs.Get(name); return g }

// Deployment finds a deployment by number; nil if there is none.
func (t *Table) Deployment(id int64) *Deployment { d, _ := t.deployments.Get(id); return d }

// Task returns what is known of a task, beside its plan.
func (t *Table) Task(deployment int64, step int32) Known {
	k, _ := t.tasks.Get(Known{Deployment: deployment, Step: step})
	k.Deployment, k.Step = deployment, step
	return k
}

// Known returns what is known of the tasks of a deployment, by their steps. The table may be changed meanwhile.
func (t *Table) Known(deployment int64) iter.Seq[Known] {
	var all []Known
	t.tasks.Ascend(Known{Deployment: deployment}, func(k Known) bool {
		if k.Deployment != deployment {
			return false
		}
		all = append(all, k)
		return true
	})
	return func(yield func(Known) bool) {
		for _, k := range all {
			if !yield(k) {
				return
			}
		}
	}
}

// Environments returns all environments, by name.
func (t *Table) Environments() iter.Seq[*Environment] { return values(t.environments) }

// Graphs returns all graphs, by name.
func (t *Table) Graphs() iter.Seq[*Graph] { return values(t.graphs) }

// Deployments returns all deployments, the oldest first.
func (t *Table) Deployments() iter.Seq[*Deployment] { return values(t.deployments) }

// Active returns the deployments that are under way, the oldest first.
func (t *Table) Active() iter.Seq[*Deployment] { return values(t.active) }

// ActiveIn returns the deployment of an environment that is under way; nil if none is.
func (t *Table) ActiveIn(environment string) *Deployment {
	for d := range t.Active() {
		if d.Environment == environment {
			return d
		}
	}
	return nil
}

// Newest is the number of the newest deployment; 0 if there is none.
func (t *Table) Newest() int64 { id, _, _ := t.deployments.Max(); return id }

// LatestIn returns the latest deployment of an environment that was begun in earnest; nil if there is none.
func (t *Table) LatestIn(environment string) (latest *Deployment) {
	t.deployments.Reverse(func(_ int64, d *Deployment) bool {
		if d.Environment == environment && d.Mode == Earnest && d.Status != Planned {
			latest = d
		}
		return latest == nil
	})
	return latest
}

// StatusOf tells how far an environment has come, by what became of its deployments in earnest since it was made. That of its latest deployment as a
// whole counts, which is one of its usual graphs with all tasks and nodes.
func (t *Table) StatusOf(e *Environment) environment.Status {
	status, _ := t.statusOf(e)
	return status
}

// statusOf also returns the deployments that tell it.
func (t *Table) statusOf(e *Environment) (status environment.Status, told []*Deployment) {
	status = environment.Partial
	decided, anything := false, false
	t.deployments.Reverse(func(_ int64, d *Deployment) bool {
		if d.Environment != e.Name || d.Mode != Earnest || d.Status == Planned || d.Created < e.Created {
			return true
		}
		if !anything && (d.Status == Done || d.Counts[Ready] > 0) {
			anything, told = true, append(told, d)
		}
		if !decided && d.ofAll(e) {
			decided, told = true, append(told, d)
			if d.Status == Done {
				status = environment.Operational
			}
		}
		return !decided || !anything
	})
	if !anything {
		return environment.New, told
	}
	return status, told
}

// Needed says why a deployment must stay, by what there is of others and of its environment; nothing if it may be removed. That tasks have succeeded in it
// is not in the table.
func (t *Table) Needed(d *Deployment) (why string) {
	e := t.Environment(d.Environment)
	switch {
	case d.Status.Active():
		return "it is under way"
	case d.ID == t.Newest():
		return "it is the newest of all, and its number must not be given again"
	case e == nil:
		return ""
	case t.LatestIn(e.Name) == d:
		return "it is the latest one of the environment " + e.Name
	}
	if _, told := t.statusOf(e); slices.Contains(told, d) {
		return "it tells how far the environment " + e.Name + " has come"
	}
	return ""
}

// Over is when the last thing happened to the deployment, in nanoseconds since the epoch: it ended, was begun, or was planned.
func (d *Deployment) Over() int64 { return max(d.Created, d.Begun, d.Ended) }

// ofAll tells whether the deployment is one of the environment as a whole.
func (d *Deployment) ofAll(e *Environment) bool {
	usual := e.GraphsOf("")
	return !d.Some && len(d.Only) == 0 && slices.ContainsFunc(d.Graphs, func(g string) bool { return slices.Contains(usual, g) })
}

// BasisOf is what a plan of an environment by some of the graphs rests on now, with the versions of the operator's own functions.
func (t *Table) BasisOf(e *Environment, graphs, functions []string) Basis {
	b := Basis{Environment: e.Generation, Functions: functions}
	for _, name := range graphs {
		if g := t.Graph(name); g != nil {
			b.Graphs = append(b.Graphs, g.Generation)
		}
	}
	if d := t.LatestIn(e.Name); d != nil {
		b.Latest, b.LatestEnded = d.ID, d.Ended
	}
	return b
}

// values yields what a tree has, in order.
func values[K int64 | string, V any](m *btree.Map[K, V]) iter.Seq[V] {
	return func(yield func(V) bool) {
		m.Scan(func(_ K, v V) bool { return yield(v) })
	}
}
