package items

import (
	"cmp"
	"iter"
	"strconv"

	"github.com/drover-project/drover/internal/deploy/course"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/qlang"
	"github.com/drover-project/drover/internal/query"
	"github.com/drover-project/drover/internal/reason"
)

// The items "environment", "deployment" and "task" tell of deployments. The reference has nothing like them.

var deploymentTable = query.Table[*course.Deployment]{
	What: "deployment",
	Fields: strictly([]query.Field[*course.Deployment]{
		numberField("id", "ID", "Number of the deployment", func(d *course.Deployment) int64 { return d.ID }),
		textField("environment", "Environment", "Environment that is deployed", func(d *course.Deployment) string { return d.Environment }),
		textField("status", "Status", "One of planned, running, stopping, stopped, ready and error", func(d *course.Deployment) string { return string(d.Status) }),
		textField("why", "Why", "Why it stopped or failed", func(d *course.Deployment) string { return d.Why }),
		textField("mode", "Mode", "One of run, noop and dry-run", func(d *course.Deployment) string { return string(d.Mode) }),
		{Def: def("graphs", "Graphs", query.KindOther, "Task graphs that it was planned with"), Get: func(_ *query.View, d *course.Deployment) query.Cell { return known(d.Graphs) }},
		numberField("steps", "Steps", "Number of tasks on nodes", func(d *course.Deployment) int64 { return int64(d.Steps) }),
		numberField("runs", "Runs", "Number of those that the plan lets run", func(d *course.Deployment) int64 { return int64(d.Runs) }),
		numberField("attempt", "Attempt", "How often it was begun, resumed or retried", func(d *course.Deployment) int64 { return int64(d.Attempt) }),
		timeField("created", "Created", "When it was planned", func(d *course.Deployment) int64 { return d.Created }),
		timeField("begun", "Begun", "When it was begun", func(d *course.Deployment) int64 { return d.Begun }),
		timeField("ended", "Ended", "When it ended", func(d *course.Deployment) int64 { return d.Ended }),
		textField("who", "Who", "Account that began it last", func(d *course.Deployment) string { return d.By }),
		trailField(func(d *course.Deployment) reason.Trail { return d.Trail }),
	}),
	All: func(v *query.View) iter.Seq[*course.Deployment] {
		if v.Deployments == nil {
			return none[*course.Deployment]
		}
		return v.Deployments.Deployments()
	},
	Stored:   true,
	Compare:  func(a, b *course.Deployment) int { return cmp.Compare(a.ID, b.ID) },
	Identity: func(d *course.Deployment) string { return d.Key() },
	Affected: func(d *query.Delta) (a query.Affected) {
		for _, c := range d.Changes {
			for _, d := range c.Deployments {
				a.Add(d.Key())
			}
			for _, d := range c.DeploymentsRemoved {
				a.Add(d.Key())
			}
		}
		return a
	},
	RowsOf: func(v *query.View, _ *query.Delta, key string) []*course.Deployment {
		id, _ := strconv.ParseInt(key, 10, 64) // it was made of a number
		return rowOrNone(v.Deployments.Deployment(id))
	},
}.Indexed()

var deployTaskTable = query.Table[*course.Task]{
	What: "task",
	Fields: strictly([]query.Field[*course.Task]{
		numberField("deployment", "Deployment", "Number of the deployment", func(t *course.Task) int64 { return t.Deployment }),
		numberField("step", "Step", "Place in the plan of the deployment", func(t *course.Task) int64 { return int64(t.Step) }),
		textField("environment", "Environment", "Environment that is deployed", func(t *course.Task) string { return t.Environment }),
		textField("task", "Task", "Id of the task", func(t *course.Task) string { return t.Task }),
		textField("node", "Node", "UID of the node", func(t *course.Task) string { return t.Node }),
		textField("type", "Type", "Type of the task", func(t *course.Task) string { return t.Type }),
		textField("state", "State", "One of waiting, given (it has a job), ready, error, tolerated, blocked, stopped and skipped", func(t *course.Task) string { return string(t.State) }),
		textField("why", "Why", "Why it runs or does not", func(t *course.Task) string { return t.Why }),
		textField("error", "Error", "What went wrong", func(t *course.Task) string { return t.Error }),
		{Def: def("job", "Job", query.KindNumber, "Its job"), Get: func(_ *query.View, t *course.Task) query.Cell {
			if t.Job == 0 {
				return query.Cell{Status: query.Unavail}
			}
			return known(t.Job)
		}},
		{Def: def("held_by", "HeldBy", query.KindText, "UUID of the filter rule that holds its job"), Led: true, Get: func(v *query.View, t *course.Task) query.Cell {
			if t.State != course.Given || v.JobTable == nil {
				return text("")
			}
			if j := v.JobTable.Get(job.ID(t.Job)); j != nil && j.Hold != nil {
				return text(j.Hold.Rule)
			}
			return text("")
		}},
		timeField("begun", "Begun", "When it began", func(t *course.Task) int64 { return t.Begun }),
		timeField("ended", "Ended", "When it ended", func(t *course.Task) int64 { return t.Ended }),
	}),
	All: func(v *query.View) iter.Seq[*course.Task] {
		if v.Deployments == nil {
			return none[*course.Task]
		}
		return func(yield func(*course.Task) bool) {
			for d := range v.Deployments.Deployments() {
				for t := range tasksOf(v, d) {
					if !yield(t) {
						return
					}
				}
			}
		}
	},
	Narrow: deployTaskPaths,
	Stored: true,
	Compare: func(a, b *course.Task) int {
		return cmp.Or(cmp.Compare(a.Deployment, b.Deployment), cmp.Compare(a.Step, b.Step))
	},
	Identity: func(t *course.Task) string { return course.RecordKey(t.Deployment, t.Step) },
	Affected: tasksAffected,
	RowsOf:   taskNow,
}.Indexed()

// tasksOf yields the tasks of a deployment.
func tasksOf(v *query.View, d *course.Deployment) iter.Seq[*course.Task] {
	return func(yield func(*course.Task) bool) {
		tasks, err := v.Tasks(d)
		if err != nil {
			v.Failed = err
			return
		}
		for i := range tasks {
			if !yield(&tasks[i]) {
				return
			}
		}
	}
}

// deployTaskPaths are the ways to the tasks of one deployment, and to one of them: the plans of the others need not be read.
func deployTaskPaths(_ *query.Table[*course.Task], v *query.View, tests []qlang.Node) (ways []query.Path[*course.Task]) {
	if v.Deployments == nil {
		return nil
	}
	steps := numbersOf(tests, "step")
	for _, id := range numbersOf(tests, "deployment") {
		d := v.Deployments.Deployment(id)
		if d == nil {
			return []query.Path[*course.Task]{{Index: "deployment", Sorted: true, Rows: none[*course.Task]}}
		}
		ways = append(ways, query.Path[*course.Task]{Index: "deployment", Sorted: true, Count: d.Steps, Rows: tasksOf(v, d)})
		for _, step := range steps {
			ways = append(ways, query.Path[*course.Task]{Index: "deployment, step", Sorted: true, Count: 1, Rows: taskOf(v, d, step)})
		}
	}
	return ways
}

// numbersOf are the numbers that tests say a field is equal to.
func numbersOf(tests []qlang.Node, field string) (numbers []int64) {
	for _, test := range tests {
		c, ok := test.(*qlang.Compare)
		if !ok || c.Op != qlang.Eq || c.Field != field || !c.Value.IsInt() {
			continue
		}
		n := int64(-1) // which is none that anything has
		if c.Value.Int.IsInt64() {
			n = c.Value.Int.Int64()
		}
		numbers = append(numbers, n)
	}
	return numbers
}

// taskOf yields a task of a deployment, if it has such a step.
func taskOf(v *query.View, d *course.Deployment, step int64) iter.Seq[*course.Task] {
	return func(yield func(*course.Task) bool) {
		if step < 0 || step >= int64(d.Steps) {
			return
		}
		for _, t := range taskNow(v, nil, course.RecordKey(d.ID, int32(step))) { // a plan has not so many
			yield(t)
		}
	}
}

// tasksAffected names the tasks that changed: those of which jobs and records tell, and all of a deployment that did, since what is over
// is shown otherwise than what is under way.
func tasksAffected(d *query.Delta) (a query.Affected) {
	byJob := func(j *job.Job) {
		if k, ok := course.KnownOf(j); ok {
			a.Add(course.RecordKey(k.Deployment, k.Step))
		}
	}
	for _, c := range d.Changes {
		for _, j := range c.Jobs {
			byJob(j)
		}
		for _, h := range c.Holds {
			if d.Jobs == nil {
				continue
			}
			if j := d.Jobs.Get(h.Job); j != nil { // one that has ended meanwhile is among those that changed
				byJob(j)
			}
		}
		for _, r := range c.Records {
			a.Add(r.Key())
		}
		for _, some := range [][]*course.Deployment{c.Deployments, c.DeploymentsRemoved} {
			for _, d := range some {
				for step := range d.Steps {
					a.Add(course.RecordKey(d.ID, int32(step))) // a plan has not so many
				}
			}
		}
	}
	return a
}

// taskNow returns a task that changed as it is now.
func taskNow(v *query.View, _ *query.Delta, key string) []*course.Task {
	id, step, ok := course.StepOf(key)
	d := v.Deployments.Deployment(id)
	if !ok || d == nil {
		return nil
	}
	if !d.Status.Active() { // how one ended is told of all of them together
		over, known := v.Memo.([]course.Task)
		if !known || len(over) > 0 && over[0].Deployment != id {
			over, v.Failed = v.Tasks(d)
			v.Memo = over
		}
		if int(step) >= len(over) {
			return nil
		}
		return []*course.Task{&over[step]}
	}
	c, err := v.Plan(d)
	if err != nil {
		v.Failed = err
		return nil
	}
	if int(step) >= len(c.Steps) { // somebody else made a job that says so
		return nil
	}
	t := c.Task(d, step, v.Deployments.Task(id, step))
	return []*course.Task{&t}
}
