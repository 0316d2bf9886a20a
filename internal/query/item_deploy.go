package query

import (
	"iter"
	"strconv"

	"github.com/drover-project/drover/internal/deploy/course"
	"github.com/drover-project/drover/internal/reason"
)

// The items "environment", "deployment" and "task" tell of deployments. The reference has nothing like them.

// textField is a field whose texts may be missing.
func textField[R any](name, title, doc string, get func(R) string) field[R] {
	return field[R]{Def: Def{name, title, KindText, doc}, get: func(_ *view, r R) Cell { return textOrUnavail(get(r)) }}
}

func numberField[R any](name, title, doc string, get func(R) int64) field[R] {
	return field[R]{Def: Def{name, title, KindNumber, doc}, get: func(_ *view, r R) Cell { return known(get(r)) }}
}

// timeField is a moment that may not have come; it is kept in nanoseconds.
func timeField[R any](name, title, doc string, get func(R) int64) field[R] {
	return field[R]{Def: Def{name, title, KindTimestamp, doc}, get: func(_ *view, r R) Cell {
		t := get(r)
		if t == 0 {
			return Cell{Status: Unavail}
		}
		return timestamp(t)
	}}
}

func trailField[R any](get func(R) reason.Trail) field[R] {
	return field[R]{Def: Def{"reason_trail", "Reason_trail", KindOther, "Why, hop by hop: source, reason and nanoseconds since the epoch"},
		get: func(_ *view, r R) Cell { return known(get(r)) }}
}

func listOf[R any](rows []R) iter.Seq[R] {
	return func(yield func(R) bool) {
		for _, r := range rows {
			if !yield(r) {
				return
			}
		}
	}
}

var environmentTable = table[*course.Environment]{
	what: "environment",
	fields: strictly([]field[*course.Environment]{
		textField("name", "Environment", "Name of the environment", func(e *course.Environment) string { return e.Name }),
		textField("status", "Status", "Status that its file gives", func(e *course.Environment) string { return e.Status }),
		{Def: Def{"graphs", "Graphs", KindOther, "Task graphs that it is deployed by"}, get: func(_ *view, e *course.Environment) Cell { return known(e.Graphs) }},
		numberField("node_cnt", "Nodes", "Number of its nodes", func(e *course.Environment) int64 { return int64(len(e.Nodes)) }),
		{Def: Def{"nodes", "NodeList", KindOther, "Its nodes: UID, roles, node of the cluster"}, get: func(_ *view, e *course.Environment) Cell { return known(e.Nodes) }},
		numberField("generation", "Generation", "How often it was changed", func(e *course.Environment) int64 { return e.Generation }),
		timeField("ctime", "CTime", "When it was made", func(e *course.Environment) int64 { return e.Created }),
		timeField("mtime", "MTime", "When it was last changed", func(e *course.Environment) int64 { return e.Modified }),
		textField("who", "Who", "Account that changed it last", func(e *course.Environment) string { return e.By }),
		trailField(func(e *course.Environment) reason.Trail { return e.Trail }),
	}),
	all: func(v *view) iter.Seq[*course.Environment] {
		if v.Environments == nil {
			return none[*course.Environment]
		}
		return listOf(v.Environments())
	},
	identity: func(e *course.Environment) string { return e.Name },
}.indexed()

var deploymentTable = table[*course.Deployment]{
	what: "deployment",
	fields: strictly([]field[*course.Deployment]{
		numberField("id", "ID", "Number of the deployment", func(d *course.Deployment) int64 { return d.ID }),
		textField("environment", "Environment", "Environment that is deployed", func(d *course.Deployment) string { return d.Environment }),
		textField("status", "Status", "One of planned, running, stopping, stopped, ready and error", func(d *course.Deployment) string { return string(d.Status) }),
		textField("why", "Why", "Why it stopped or failed", func(d *course.Deployment) string { return d.Why }),
		textField("mode", "Mode", "One of run, noop and dry-run", func(d *course.Deployment) string { return string(d.Mode) }),
		{Def: Def{"graphs", "Graphs", KindOther, "Task graphs that it was planned with"}, get: func(_ *view, d *course.Deployment) Cell { return known(d.Graphs) }},
		numberField("steps", "Steps", "Number of tasks on nodes", func(d *course.Deployment) int64 { return int64(d.Steps) }),
		numberField("runs", "Runs", "Number of those that the plan lets run", func(d *course.Deployment) int64 { return int64(d.Runs) }),
		numberField("attempt", "Attempt", "How often it was begun, resumed or retried", func(d *course.Deployment) int64 { return int64(d.Attempt) }),
		timeField("created", "Created", "When it was planned", func(d *course.Deployment) int64 { return d.Created }),
		timeField("begun", "Begun", "When it was begun", func(d *course.Deployment) int64 { return d.Begun }),
		timeField("ended", "Ended", "When it ended", func(d *course.Deployment) int64 { return d.Ended }),
		textField("who", "Who", "Account that began it last", func(d *course.Deployment) string { return d.By }),
		trailField(func(d *course.Deployment) reason.Trail { return d.Trail }),
	}),
	all: func(v *view) iter.Seq[*course.Deployment] {
		if v.Deployments == nil {
			return none[*course.Deployment]
		}
		return listOf(v.Deployments())
	},
	identity: func(d *course.Deployment) string { return d.Key() },
}.indexed()

var deployTaskTable = table[*course.Task]{
	what: "task",
	fields: strictly([]field[*course.Task]{
		numberField("deployment", "Deployment", "Number of the deployment", func(t *course.Task) int64 { return t.Deployment }),
		numberField("step", "Step", "Place in the plan of the deployment", func(t *course.Task) int64 { return int64(t.Step) }),
		textField("environment", "Environment", "Environment that is deployed", func(t *course.Task) string { return t.Environment }),
		textField("task", "Task", "Id of the task", func(t *course.Task) string { return t.Task }),
		textField("node", "Node", "UID of the node", func(t *course.Task) string { return t.Node }),
		textField("type", "Type", "Type of the task", func(t *course.Task) string { return t.Type }),
		textField("state", "State", "One of waiting, given (it has a job), ready, error, tolerated, blocked, stopped and skipped", func(t *course.Task) string { return string(t.State) }),
		textField("why", "Why", "Why it runs or does not", func(t *course.Task) string { return t.Why }),
		textField("error", "Error", "What went wrong", func(t *course.Task) string { return t.Error }),
		{Def: Def{"job", "Job", KindNumber, "Its job"}, get: func(_ *view, t *course.Task) Cell {
			if t.Job == 0 {
				return Cell{Status: Unavail}
			}
			return known(t.Job)
		}},
		textField("held_by", "HeldBy", "UUID of the filter rule that holds its job", func(t *course.Task) string { return t.Held }),
		timeField("begun", "Begun", "When it began", func(t *course.Task) int64 { return t.Begun }),
		timeField("ended", "Ended", "When it ended", func(t *course.Task) int64 { return t.Ended }),
	}),
	all: func(v *view) iter.Seq[*course.Task] {
		if v.Tasks == nil {
			return none[*course.Task]
		}
		return func(yield func(*course.Task) bool) {
			for t, err := range v.Tasks() {
				if err != nil {
					v.failed = err
					return
				}
				if !yield(t) {
					return
				}
			}
		}
	},
	identity: func(t *course.Task) string {
		return strconv.FormatInt(t.Deployment, 10) + "/" + strconv.Itoa(int(t.Step))
	},
}.indexed()
