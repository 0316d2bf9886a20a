package rollout

import (
	"context"
	"encoding/json"

	"github.com/drover-project/drover/internal/agent"
	"github.com/drover-project/drover/internal/deploy/course"
	"github.com/drover-project/drover/internal/deploy/plan"
	"github.com/drover-project/drover/internal/exec"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/state"
	"github.com/drover-project/drover/internal/store"
)

// Executors are those of the opcodes of deployments.
func (e *Engine) Executors() exec.Catalogue {
	return exec.Catalogue{course.TaskOpcode: {
		Locks: exec.OnNode("node"), Asks: true, Prepare: e.prepare, Resumable: true,
		Why: "what was recorded is not done again, and the node knows commands that it has begun",
	}}
}

// outcome is the result of the opcode.
type outcome struct {
	Status course.State `json:"status"`
	Error  string       `json:"error,omitempty"`
}

// prepare prepares OP_DEPLOY_TASK.
func (e *Engine) prepare(ctx context.Context, env *exec.Env) (exec.Plan, error) {
	op := env.Op
	id, step := op.Int("deployment"), int32(op.Int("step")) // compared with what there is
	e.mu.Lock()
	r := e.runs[id]
	var d *course.Deployment
	if r != nil {
		d = r.d
	}
	e.mu.Unlock()
	if r == nil {
		return e.prepareEnded(ctx, env, id, step)
	}
	if int64(step) != op.Int("step") || int(step) >= len(r.course.Steps) || int64(d.Attempt) != op.Int("attempt") {
		return exec.Plan{}, fault.New(fault.WrongState, "deployment %d has no step %d in attempt %d", id, op.Int("step"), op.Int("attempt"))
	}
	s := &r.course.Steps[step]
	if s.Task != op.Str("task") || s.Node != op.Str("node") || !s.Run {
		return exec.Plan{}, fault.New(fault.WrongState, "step %d of deployment %d is the task %s on node %s", step, id, s.Task, s.Node)
	}
	node, err := env.NodeOf("node")
	if err != nil {
		return exec.Plan{}, err
	}
	return exec.Plan{Dry: outcome{Status: course.Skipped}, Do: func(ctx context.Context) (any, error) {
		return e.carry(ctx, env, node, r, d, step)
	}}, nil
}

// prepareEnded prepares a task of a deployment that is over: its end was recorded, and the controller died before its job ended.
func (e *Engine) prepareEnded(ctx context.Context, env *exec.Env, id int64, step int32) (exec.Plan, error) {
	x, err := e.recordOfJob(ctx, env, id, step)
	if err != nil {
		return exec.Plan{}, err
	}
	return exec.Plan{Do: func(context.Context) (any, error) { return recorded(env, x) }}, nil
}

// carryEnded is what is left to do of a task whose deployment has been found to be over since it was prepared.
func (e *Engine) carryEnded(ctx context.Context, env *exec.Env, id int64, step int32) (any, error) {
	x, err := e.recordOfJob(ctx, env, id, step)
	if err != nil {
		return nil, err
	}
	return recorded(env, x)
}

// recordOfJob reads how a task ended that a job was for; fault.WrongState if it is not recorded.
func (e *Engine) recordOfJob(ctx context.Context, env *exec.Env, id int64, step int32) (*course.Record, error) {
	o, err := e.cfg.Store.Get(ctx, store.Key{Kind: KindRecord, ID: course.RecordKey(id, step)})
	if err != nil && !fault.Is(err, fault.NotFound) {
		return nil, err
	}
	x := &course.Record{}
	if err != nil || json.Unmarshal(o.Value, x) != nil || int64(x.Attempt) != env.Op.Int("attempt") || x.Job != int64(env.Job) {
		return nil, fault.New(fault.WrongState, "deployment %d is not under way", id)
	}
	return x, nil
}

// recorded is the end of a task that is known.
func recorded(env *exec.Env, x *course.Record) (any, error) {
	env.Infof("the task ended before the controller was started anew; it is not run again")
	return result(x)
}

// carry has a task carried out on its node, and keeps how it ended before the job ends.
func (e *Engine) carry(ctx context.Context, env *exec.Env, node exec.Node, r *run, d *course.Deployment, step int32) (any, error) {
	now := e.known()
	if known := now.Deployment(d.ID); known == nil || known.Attempt != d.Attempt || !known.Status.Active() { // it is over meanwhile, as a record says
		return e.carryEnded(ctx, env, d.ID, step)
	}
	if before := now.Task(d.ID, step).Record; before != nil && before.Counts(d) {
		return recorded(env, before)
	}
	s := &r.course.Steps[step]
	x := e.record(r, d, step, env.Job)
	var on course.Identity
	if n := r.nodes[s.Node]; n != nil {
		on = machineOf(e.inventory(), n.Host)
	}
	task := agent.Task{Deployment: d.ID, Step: int(step), Attempt: d.Attempt, Type: s.Type, Parameters: s.Parameters,
		Noop: d.Mode == course.Noop, Dry: d.Mode == course.DryRun, Hidden: r.hidden()}
	if task.Dry { // it is only told
		shown, err := r.course.ShownParameters(step)
		if err != nil {
			return nil, err
		}
		task.Parameters = shown
	}
	printed := &tail{}
	err := node.RunTask(ctx, env.Order(), task, func(line string) {
		printed.add(line)
		env.Logf("%s", line)
	})
	switch {
	case err == nil:
		x.State = course.Ready
	case fault.Is(err, fault.Unavailable) || fault.Is(err, fault.Fenced):
		return nil, err // it is looked at again by whoever leads then
	case s.Tolerated:
		x.State, x.Error = course.Tolerated, err.Error()
		env.Warnf("%v; the task says that this is no failure of the node", err)
	default:
		x.State, x.Error = course.Failed, err.Error()
	}
	if x.State != course.Ready {
		x.Output = printed.lines()
	}
	x.Ended = e.cfg.Now().UnixNano()
	if err := e.remember(env.Term, d, x, on); err != nil {
		return nil, err
	}
	if x.State == course.Failed {
		return nil, err
	}
	return result(x)
}

func result(x *course.Record) (any, error) {
	if x.State == course.Failed {
		return nil, fault.New(fault.Failed, "%s", x.Error)
	}
	return outcome{Status: x.State, Error: x.Error}, nil
}

// record is what is kept of a step that begins now.
func (e *Engine) record(r *run, d *course.Deployment, step int32, id job.ID) *course.Record {
	s := &r.course.Steps[step]
	now := e.cfg.Now().UnixNano()
	return &course.Record{Deployment: d.ID, Step: step, Task: s.Task, Node: s.Node, Attempt: d.Attempt, Job: int64(id), Begun: now, Ended: now}
}

// remember makes the end of a task durable. With a success in earnest the state of the deployment becomes the old state
// of the task on the node, if the environment has that still. Where the store cannot say what became of that, it is looked up until the term of the controller is
// over (nil is never). A task whose success is stored is not run again.
func (e *Engine) remember(term context.Context, d *course.Deployment, x *course.Record, on course.Identity) error {
	var over <-chan struct{}
	if term != nil {
		over = term.Done()
	}
	return e.keepRecord(over, d, x, on)
}

// keepRecord writes how a task ended, on which machine, and shows it; until over is closed it is found out whether it was.
func (e *Engine) keepRecord(over <-chan struct{}, d *course.Deployment, x *course.Record, on course.Identity) error {
	tx := store.Tx{Put: []store.Put{put(KindRecord, x.Key(), x)}}
	if x.State == course.Ready && d.Mode == course.Earnest && e.isIn(d.Environment, x.Node) {
		s := course.Success{Environment: d.Environment, Task: x.Task, Node: x.Node, Deployment: d.ID, Machine: on}
		tx.Put = append(tx.Put, put(KindSuccess, s.Key(), s))
	}
	return e.commitUntil(over, tx, &state.Change{Records: []*course.Record{x}})
}

// isIn tells whether an environment has a node: what succeeds on one that has left is not of another that comes under its UID (forgetGone).
func (e *Engine) isIn(environment, uid string) bool {
	x := e.known().Environment(environment)
	return x != nil && (uid == plan.Master || x.Node(uid) != nil)
}
