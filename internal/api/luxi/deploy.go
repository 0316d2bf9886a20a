package luxi

import (
	"context"
	"time"

	"github.com/drover-project/drover/internal/deploy/course"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/live"
	"github.com/drover-project/drover/internal/luxiwire"
	"github.com/drover-project/drover/internal/rollout"
)

// deployMethods are the requests of deployments.
var deployMethods = []method{
	{"PutEnvironment", 3, 4, changes, putEnvironment},                  // name, file, names of graphs, [reason trail]
	{"DeleteEnvironment", 1, 2, changes, deleteEnvironment},            // name, [reason trail]
	{"QueryEnvironment", 1, 3, asksStored, queryEnvironment},           // name, [whether with secrets], [reason trail]
	{"PutEnvironmentNode", 4, 5, changes, putEnvironmentNode},          // environment, uid, file, node of the cluster or null, [reason trail]
	{"DeleteEnvironmentNode", 2, 3, changes, deleteEnvironmentNode},    // environment, uid, [reason trail]
	{"ForgetEnvironmentNode", 2, 3, changes, forgetEnvironmentNode},    // environment, uid, [reason trail]
	{"PutTaskGraph", 2, 3, changes, putTaskGraph},                      // name, files, [reason trail]
	{"DeleteTaskGraph", 1, 2, changes, deleteTaskGraph},                // name, [reason trail]
	{"QueryTaskGraph", 1, 1, asksStored, queryTaskGraph},               // name
	{"PlanDeployment", 1, 2, changes, planDeployment},                  // wish, [reason trail]
	{"PreviewDeployment", 1, 2, asksStored, previewDeployment},         // wish, [reason trail]
	{"CompareDeployment", 1, 2, changes, compareDeployment},            // wish, [reason trail]
	{"BeginDeployment", 1, 2, changes, beginDeployment},                // id, [reason trail]
	{"StopDeployment", 1, 2, changes, stopDeployment},                  // id, [reason trail]
	{"ResumeDeployment", 2, 3, changes, resumeDeployment},              // id, whether to retry what failed, [reason trail]
	{"DeleteDeployments", 1, 3, changes, deleteDeployments},            // ids, [reason trail], [whether to change nothing]
	{"PruneDeployments", 2, 4, changes, pruneDeployments},              // before, in seconds since the epoch, timeout in seconds, [reason trail], [whether to change nothing]
	{"QueryDeployment", 1, 1, asksStored, queryDeployment},             // id
	{"QueryDeploymentTasks", 1, 1, asksStored, queryDeploymentTasks},   // id
	{"ExplainDeploymentTask", 3, 3, asksStored, explainDeploymentTask}, // id, task, node
	{"OutlineDeployment", 1, 1, asksStored, outlineDeployment},         // id
	{"LatestDeployment", 1, 1, asksStored, latestDeployment},           // environment
	{"DiffStates", 2, 2, asksStored, diffStates},                       // old and new state
	{"EvalExpression", 1, 1, asksStored, evalExpression},               // question
}

// file reads a file with its path.
func (a *arguments) file(i int) (f course.File) {
	a.object(i, &f)
	return f
}

func putEnvironment(ctx context.Context, d *Deps, a *arguments) (any, error) {
	name, file, graphs, by := a.str(0), a.file(1), a.strs(2), a.as(3)
	if err := a.bad(); err != nil {
		return nil, err
	}
	return d.Rollout.PutEnvironment(ctx, name, file, graphs, by)
}

func deleteEnvironment(ctx context.Context, d *Deps, a *arguments) (any, error) {
	name, by := a.str(0), a.as(1)
	if err := a.bad(); err != nil {
		return nil, err
	}
	return nil, d.Rollout.DeleteEnvironment(ctx, name, by)
}

func queryEnvironment(ctx context.Context, d *Deps, a *arguments) (any, error) {
	name, reveal, by := a.str(0), a.optionalBool(1), a.as(2)
	if err := a.bad(); err != nil {
		return nil, err
	}
	if reveal {
		if d.Rollout == nil { // that secrets were asked for is an event, which the one that leads writes
			return nil, live.ErrLed
		}
		return d.Rollout.Reveal(ctx, name, by)
	}
	return d.Querier.Deployments.State(ctx, name)
}

func putEnvironmentNode(ctx context.Context, d *Deps, a *arguments) (any, error) {
	name, uid, file, host, by := a.str(0), a.str(1), a.file(2), a.optionalStr(3), a.as(4)
	if err := a.bad(); err != nil {
		return nil, err
	}
	return d.Rollout.PutNode(ctx, name, uid, file, host, by)
}

func deleteEnvironmentNode(ctx context.Context, d *Deps, a *arguments) (any, error) {
	name, uid, by := a.str(0), a.str(1), a.as(2)
	if err := a.bad(); err != nil {
		return nil, err
	}
	return nil, d.Rollout.DeleteNode(ctx, name, uid, by)
}

func forgetEnvironmentNode(ctx context.Context, d *Deps, a *arguments) (any, error) {
	name, uid, by := a.str(0), a.str(1), a.as(2)
	if err := a.bad(); err != nil {
		return nil, err
	}
	return d.Rollout.Forget(ctx, name, uid, by)
}

func putTaskGraph(ctx context.Context, d *Deps, a *arguments) (any, error) {
	var files []course.File
	name, by := a.str(0), a.as(2)
	a.object(1, &files)
	if err := a.bad(); err != nil {
		return nil, err
	}
	return d.Rollout.PutGraph(ctx, name, files, by)
}

func deleteTaskGraph(ctx context.Context, d *Deps, a *arguments) (any, error) {
	name, by := a.str(0), a.as(1)
	if err := a.bad(); err != nil {
		return nil, err
	}
	return nil, d.Rollout.DeleteGraph(ctx, name, by)
}

func outlineDeployment(ctx context.Context, d *Deps, a *arguments) (any, error) {
	id := a.integer(0)
	if err := a.bad(); err != nil {
		return nil, err
	}
	return d.Querier.Deployments.Outline(ctx, id)
}

func queryTaskGraph(ctx context.Context, d *Deps, a *arguments) (any, error) {
	name := a.str(0)
	if err := a.bad(); err != nil {
		return nil, err
	}
	return d.Querier.Deployments.Graph(ctx, name)
}

// planned is the answer to a wish.
type planned struct {
	Deployment *course.Deployment `json:"deployment"`
	Warnings   []string           `json:"warnings"`
	Drift      *course.Drift      `json:"drift,omitempty"`
}

func planDeployment(ctx context.Context, d *Deps, a *arguments) (any, error) {
	var w rollout.Wish
	a.object(0, &w)
	by := a.as(1)
	if err := a.bad(); err != nil {
		return nil, err
	}
	made, err := d.Rollout.PlanAndTell(ctx, w, by)
	if err != nil {
		return nil, err
	}
	return planned{made.Deployment, made.Warnings, made.Drift}, nil
}

// compareDeployment is previewDeployment that asks the machines: commands are run there, which is for who may change something.
func compareDeployment(ctx context.Context, d *Deps, a *arguments) (any, error) {
	var w rollout.Wish
	a.object(0, &w)
	by := a.as(1)
	if err := a.bad(); err != nil {
		return nil, err
	}
	return d.Rollout.Compare(ctx, w, by)
}

func previewDeployment(ctx context.Context, d *Deps, a *arguments) (any, error) {
	var w rollout.Wish
	a.object(0, &w)
	by := a.as(1)
	if err := a.bad(); err != nil {
		return nil, err
	}
	compute, err := d.Querier.Deployments.Preview(ctx, w, by)
	if err != nil {
		return nil, err
	}
	return later(func() (any, error) { return compute() }), nil
}

func beginDeployment(ctx context.Context, d *Deps, a *arguments) (any, error) {
	id, by := a.integer(0), a.as(1)
	if err := a.bad(); err != nil {
		return nil, err
	}
	return d.Rollout.Begin(ctx, id, by)
}

func stopDeployment(ctx context.Context, d *Deps, a *arguments) (any, error) {
	id, by := a.integer(0), a.as(1)
	if err := a.bad(); err != nil {
		return nil, err
	}
	return d.Rollout.Stop(ctx, id, by)
}

func resumeDeployment(ctx context.Context, d *Deps, a *arguments) (any, error) {
	id, retry, by := a.integer(0), a.boolean(1), a.as(2)
	if err := a.bad(); err != nil {
		return nil, err
	}
	return d.Rollout.Resume(ctx, id, retry, by)
}

func deleteDeployments(ctx context.Context, d *Deps, a *arguments) (any, error) {
	var ids []int64
	by, dry := a.as(1), a.optionalBool(2)
	a.decode(0, "[Int]", &ids)
	if err := a.bad(); err != nil {
		return nil, err
	}
	return d.Rollout.Delete(ctx, ids, dry, by)
}

func pruneDeployments(ctx context.Context, d *Deps, a *arguments) (any, error) {
	before, limit, by, dry := a.number(0), a.number(1), a.as(2), a.optionalBool(3)
	if err := a.bad(); err != nil {
		return nil, err
	}
	return d.Rollout.Prune(ctx, time.Unix(0, 0).Add(job.Seconds(before)), min(job.Seconds(limit), luxiwire.MaxWait), dry, by)
}

func queryDeployment(ctx context.Context, d *Deps, a *arguments) (any, error) {
	id := a.integer(0)
	if err := a.bad(); err != nil {
		return nil, err
	}
	return d.Querier.Deployments.Progress(ctx, id)
}

func queryDeploymentTasks(ctx context.Context, d *Deps, a *arguments) (any, error) {
	id := a.integer(0)
	if err := a.bad(); err != nil {
		return nil, err
	}
	return d.Querier.Deployments.Tasks(ctx, id)
}

func explainDeploymentTask(ctx context.Context, d *Deps, a *arguments) (any, error) {
	id, task, node := a.integer(0), a.str(1), a.str(2)
	if err := a.bad(); err != nil {
		return nil, err
	}
	return d.Querier.Deployments.Explain(ctx, id, task, node)
}

func latestDeployment(ctx context.Context, d *Deps, a *arguments) (any, error) {
	name := a.str(0)
	if err := a.bad(); err != nil {
		return nil, err
	}
	return d.Querier.Deployments.Latest(ctx, name)
}

func diffStates(ctx context.Context, d *Deps, a *arguments) (any, error) {
	var before, after rollout.At
	a.object(0, &before)
	a.object(1, &after)
	if err := a.bad(); err != nil {
		return nil, err
	}
	return d.Querier.Deployments.Diff(ctx, before, after)
}

func evalExpression(ctx context.Context, d *Deps, a *arguments) (any, error) {
	var q rollout.Question
	a.object(0, &q)
	if err := a.bad(); err != nil {
		return nil, err
	}
	return d.Querier.Deployments.Eval(ctx, q)
}
