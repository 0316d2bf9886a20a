package exec

import (
	"context"
	"slices"
	"strings"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/opcode"
	"github.com/drover-project/drover/internal/reason"
	"github.com/drover-project/drover/internal/work"
)

// requireState refuses an instance whose wanted state is none of these.
func requireState(inst *cluster.Instance, consequence string, states ...string) error {
	if slices.Contains(states, inst.AdminState) {
		return nil
	}
	if consequence == "" {
		consequence = "can't use instance from outside " + strings.Join(states, ", ") + " states"
	}
	return fault.New(fault.WrongState, "Instance '%s' is marked to be %s, %s", inst.Name, inst.AdminState, consequence)
}

// active asks the node whether the instance runs there. Something else under its name is an error.
func active(ctx context.Context, a Node, inst *cluster.Instance) (bool, error) {
	live, err := a.Instance(ctx, thingOf(inst))
	switch {
	case fault.Is(err, fault.NotFound):
		return false, nil
	case fault.Is(err, fault.Exists):
		return false, err
	case err != nil:
		return false, fault.New(fault.Environment, "Can't get the state of instance %s from node %s: %w", inst.Name, a.Node(), err)
	}
	return live.Active(), nil
}

// roomFor refuses a start for which the node has not enough free memory.
func roomFor(ctx context.Context, a Node, what string, memory int) error {
	info, err := a.Info(ctx)
	if err != nil {
		return fault.New(fault.Environment, "Can't get data from node %s: %w", a.Node(), err)
	}
	if memory > info.MemoryFree {
		return fault.New(fault.Exhausted, "Not enough memory on node %s for %s: needed %d MiB, available %d MiB",
			a.Node(), what, memory, info.MemoryFree)
	}
	return nil
}

// startup prepares OP_INSTANCE_STARTUP. An instance that runs already is left
// as it is, and so is its reason file.
func startup(ctx context.Context, env *Env) (Plan, error) {
	op, snap := env.Op, env.snapshot()
	inst, err := findInstance(op, snap)
	if err != nil {
		return Plan{}, err
	}
	if byWatcher(op) && inst.AdminState != cluster.AdminUp {
		return changedMind(env, "Instance "+inst.Name+" is not meant to run any more"), nil
	}
	if err := requireState(inst, "", cluster.AdminDown, cluster.AdminUp); err != nil {
		return Plan{}, err
	}
	hv, be, err := startParams(env, inst)
	if err != nil {
		return Plan{}, err
	}
	node := snap.Node(inst.PrimaryNode)
	if node != nil && node.Offline && op.Bool("ignore_offline_nodes") {
		return offlineStart(env, inst, node), nil
	}
	_, a, err := env.primary(inst)
	if err != nil {
		return Plan{}, err
	}
	spec := specOf(snap.Cluster(), inst, hv, be)
	spec.StartPaused = op.Bool("startup_paused")
	running, err := active(ctx, a, inst)
	if err == nil && !running {
		err = roomFor(ctx, a, "starting instance "+inst.Name, spec.MinMemory)
	}
	if err != nil {
		return Plan{}, err
	}
	start := onNode(startInstance, node.UUID, inst.UUID, "start instance "+inst.Name, startArgs{Given: true, Paused: op.Bool("startup_paused")})
	start.Fails = "Could not start instance '" + inst.Name + "'"
	return again(start, env.marked(inst, cluster.AdminUp, cluster.SourceAdmin, !running)), nil
}

// byWatcher reports whether a watcher asks. That saw something before the job had its locks, and means to do something about it: no more if it is not so by now.
func byWatcher(op *opcode.Opcode) bool {
	return slices.ContainsFunc(op.Reason, func(e reason.Entry) bool { return e.Source == reason.SourceWatcher })
}

// changedMind is the plan of an opcode of a watcher for which the reason is gone.
func changedMind(env *Env, why string) Plan {
	return Plan{Do: func(context.Context) (any, error) {
		env.Infof("%s, nothing is done", why)
		return nil, nil
	}}
}

// again is the plan of steps that establish a state: whoever goes on with them makes them anew.
func again(steps ...work.Step) Plan { return Plan{Work: &work.Work{Steps: steps, Replanned: true}} }

// offlineStart only remembers that the instance should run, for the day its
// node is back.
func offlineStart(env *Env, inst *cluster.Instance, node *cluster.Node) Plan {
	mark := env.marked(inst, cluster.AdminUp, cluster.SourceAdmin, false)
	mark.Says = []string{" - WARNING: Primary node " + node.Name + " is offline, only marking the instance as started"}
	return again(mark)
}

// startParams checks the parameters that count for one start only.
func startParams(env *Env, inst *cluster.Instance) (hv, be cluster.Params, err error) {
	c := env.snapshot().Cluster()
	hv, err = checkHV(inst.Hypervisor, env.Op.Map("hvparams"))
	if err != nil {
		return nil, nil, err
	}
	be, err = cluster.CheckBEParams(env.Op.Map("beparams"))
	if err != nil {
		return nil, nil, err
	}
	return hv, be, cluster.CheckMemory(cluster.Fill(c.FillBE(inst), be))
}

// shutdown prepares OP_INSTANCE_SHUTDOWN. An instance that is stopped already
// is only marked as down.
func shutdown(ctx context.Context, env *Env) (Plan, error) {
	op, snap := env.Op, env.snapshot()
	inst, err := findInstance(op, snap)
	if err != nil {
		return Plan{}, err
	}
	if op.Bool("force") {
		env.Warnf("Ignoring offline instance check")
	} else if err := requireState(inst, "", cluster.AdminDown, cluster.AdminUp); err != nil {
		return Plan{}, err
	}
	source := cluster.SourceAdmin
	if op.Has("admin_state_source") {
		source = op.Str("admin_state_source")
	}
	node := snap.Node(inst.PrimaryNode)
	if node != nil && node.Offline && op.Bool("ignore_offline_nodes") {
		mark := env.markedDown(inst, source, false)
		mark.Says = []string{" - WARNING: Primary node " + node.Name + " is offline, only marking the instance as stopped"}
		return again(mark), nil
	}
	_, a, err := env.primary(inst)
	if err != nil {
		return Plan{}, err
	}
	ran, err := active(ctx, a, inst)
	if err != nil {
		return Plan{}, err
	}
	if byWatcher(op) && ran {
		return changedMind(env, "Instance "+inst.Name+" runs again"), nil
	}
	stop := onNode(stopInstance, node.UUID, inst.UUID, "stop instance "+inst.Name, stopArgs{inst.Name, op.Int("timeout")})
	stop.Fails = "Could not shutdown instance '" + inst.Name + "'"
	return again(stop, env.markedDown(inst, source, ran)), nil
}

// markedDown is the step that records that an instance was stopped; one that
// is marked offline stays so.
func (e *Env) markedDown(inst *cluster.Instance, source string, stopped bool) work.Step {
	mark := e.marked(inst, cluster.AdminDown, source, stopped)
	if inst.AdminState == cluster.AdminOffline {
		mark.Args = encodeArgs(markArgs{Forget: true, Did: stopped})
	}
	return mark
}

// reboot prepares OP_INSTANCE_REBOOT. A stopped instance is started.
func reboot(ctx context.Context, env *Env) (Plan, error) {
	inst, err := findInstance(env.Op, env.snapshot())
	if err != nil {
		return Plan{}, err
	}
	if err := requireState(inst, "", cluster.AdminDown, cluster.AdminUp); err != nil {
		return Plan{}, err
	}
	node, a, err := env.primary(inst)
	if err != nil {
		return Plan{}, err
	}
	running, err := active(ctx, a, inst)
	if err == nil && !running {
		err = roomFor(ctx, a, "starting instance "+inst.Name, specOf(env.snapshot().Cluster(), inst, nil, nil).MinMemory)
	}
	if err != nil {
		return Plan{}, err
	}
	mark := inInventory(markInstance, inst.UUID, "mark instance "+inst.Name+" as "+cluster.AdminUp, markArgs{State: cluster.AdminUp, Source: cluster.SourceAdmin, Did: true})
	return again(append(restarting(env.Op, inst, node, running), mark)...), nil
}

// restarting are the steps of a reboot on the node. A full one is a stop and a start
// of their own, which is what its reason file then shows.
func restarting(op *opcode.Opcode, inst *cluster.Instance, node *cluster.Node, running bool) []work.Step {
	kind, timeout := op.Str("reboot_type"), op.Int("shutdown_timeout")
	start := onNode(startInstance, node.UUID, inst.UUID, "start instance "+inst.Name, startArgs{})
	start.Fails = "Could not start instance for full reboot"
	if !running {
		start.Says = []string{" - INFO: Instance " + inst.Name + " was already stopped, starting now"}
		return []work.Step{start}
	}
	if kind == "soft" || kind == "hard" {
		restart := onNode(restartInstance, node.UUID, inst.UUID, "restart instance "+inst.Name, restartArgs{inst.Name, kind == "hard", timeout})
		restart.Fails = "Could not reboot instance"
		return []work.Step{restart}
	}
	stop := onNode(stopInstance, node.UUID, inst.UUID, "stop instance "+inst.Name, stopArgs{inst.Name, timeout})
	stop.Fails = "Could not shutdown instance for full reboot"
	return []work.Step{stop, start}
}
