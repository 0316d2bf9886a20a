package items

import (
	"iter"
	"strconv"

	"github.com/drover-project/drover/internal/deploy/course"
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
		return listOf(v.Deployments())
	},
	Identity: func(d *course.Deployment) string { return d.Key() },
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
		textField("held_by", "HeldBy", "UUID of the filter rule that holds its job", func(t *course.Task) string { return t.Held }),
		timeField("begun", "Begun", "When it began", func(t *course.Task) int64 { return t.Begun }),
		timeField("ended", "Ended", "When it ended", func(t *course.Task) int64 { return t.Ended }),
	}),
	All: func(v *query.View) iter.Seq[*course.Task] {
		if v.Tasks == nil {
			return none[*course.Task]
		}
		return func(yield func(*course.Task) bool) {
			for t, err := range v.Tasks() {
				if err != nil {
					v.Failed = err
					return
				}
				if !yield(t) {
					return
				}
			}
		}
	},
	Identity: func(t *course.Task) string {
		return strconv.FormatInt(t.Deployment, 10) + "/" + strconv.Itoa(int(t.Step))
	},
}.Indexed()
