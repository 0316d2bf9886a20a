package exec

import (
	"context"
	"slices"
	"strings"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/hypervisor"
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

// active asks the node whether the instance runs there.
func active(ctx context.Context, a Node, name string) (bool, error) {
	live, err := a.Instance(ctx, name)
	switch {
	case fault.Is(err, fault.NotFound):
		return false, nil
	case err != nil:
		return false, fault.New(fault.Environment, "Can't get the state of instance %s from node %s: %w", name, a.Node(), err)
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
	running, err := active(ctx, a, inst.Name)
	if err == nil && !running {
		err = roomFor(ctx, a, "starting instance "+inst.Name, spec.Memory)
	}
	if err != nil {
		return Plan{}, err
	}
	return Plan{Do: func(ctx context.Context) (any, error) {
		if err := a.Start(ctx, env.Order(), spec, op.Reason); err != nil {
			return nil, failed(err, "Could not start instance '%s'", inst.Name)
		}
		return nil, env.rememberUp(ctx, inst, !running)
	}}, nil
}

// offlineStart only remembers that the instance should run, for the day its
// node is back.
func offlineStart(env *Env, inst *cluster.Instance, node *cluster.Node) Plan {
	return Plan{Do: func(ctx context.Context) (any, error) {
		env.Warnf("Primary node %s is offline, only marking the instance as started", node.Name)
		return nil, env.rememberUp(ctx, inst, false)
	}}
}

// rememberUp marks the instance as started, and notes whether it was.
func (e *Env) rememberUp(ctx context.Context, inst *cluster.Instance, started bool) error {
	if e.Op.Bool("no_remember") {
		return e.noteIf(ctx, started, inst.UUID)
	}
	return e.setState(ctx, inst.UUID, cluster.AdminUp, cluster.SourceAdmin, started)
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
func shutdown(_ context.Context, env *Env) (Plan, error) {
	op, snap := env.Op, env.snapshot()
	inst, err := findInstance(op, snap)
	if err != nil {
		return Plan{}, err
	}
	if op.Bool("force") {
		env.Warnf("Ignoring instance state")
	} else if err := requireState(inst, "", cluster.AdminDown, cluster.AdminUp); err != nil {
		return Plan{}, err
	}
	source := cluster.SourceAdmin
	if op.Has("admin_state_source") {
		source = op.Str("admin_state_source")
	}
	node := snap.Node(inst.PrimaryNode)
	if node != nil && node.Offline && op.Bool("ignore_offline_nodes") {
		return Plan{Do: func(ctx context.Context) (any, error) {
			env.Warnf("Primary node %s is offline, only marking the instance as stopped", node.Name)
			return nil, env.rememberDown(ctx, inst, source, false)
		}}, nil
	}
	_, a, err := env.primary(inst)
	if err != nil {
		return Plan{}, err
	}
	return Plan{Do: func(ctx context.Context) (any, error) {
		ran, err := active(ctx, a, inst.Name)
		if err == nil {
			err = a.Stop(ctx, env.Order(), inst.Name, stopWithin(op.Int("timeout")), op.Reason)
		}
		if err != nil {
			return nil, failed(err, "Could not shutdown instance '%s'", inst.Name)
		}
		return nil, env.rememberDown(ctx, inst, source, ran)
	}}, nil
}

// rememberDown marks the instance as stopped, and notes whether it was; one that
// is marked offline stays so.
func (e *Env) rememberDown(ctx context.Context, inst *cluster.Instance, source string, stopped bool) error {
	if e.Op.Bool("no_remember") || inst.AdminState == cluster.AdminOffline {
		return e.noteIf(ctx, stopped, inst.UUID)
	}
	return e.setState(ctx, inst.UUID, cluster.AdminDown, source, stopped)
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
	_, a, err := env.primary(inst)
	if err != nil {
		return Plan{}, err
	}
	spec := specOf(env.snapshot().Cluster(), inst, nil, nil)
	running, err := active(ctx, a, inst.Name)
	if err == nil && !running {
		err = roomFor(ctx, a, "starting instance "+inst.Name, spec.Memory)
	}
	if err != nil {
		return Plan{}, err
	}
	return Plan{Do: func(ctx context.Context) (any, error) {
		if err := env.restart(ctx, a, spec, running); err != nil {
			return nil, err
		}
		return nil, env.setState(ctx, inst.UUID, cluster.AdminUp, cluster.SourceAdmin, true)
	}}, nil
}

// restart carries a reboot out on the node. A full one is a stop and a start
// of their own, which is what its reason file then shows.
func (e *Env) restart(ctx context.Context, a Node, spec hypervisor.Spec, running bool) error {
	trail, how := e.Op.Reason, stopWithin(e.Op.Int("shutdown_timeout"))
	kind := e.Op.Str("reboot_type")
	switch {
	case !running:
		e.Infof("Instance %s was already stopped, starting now", spec.Name)
	case kind == "soft":
		return failedUnlessNil(a.RebootSoft(ctx, e.Order(), spec.Name, trail), "Could not reboot instance")
	case kind == "hard":
		return failedUnlessNil(a.RebootHard(ctx, e.Order(), spec, how, trail), "Could not reboot instance")
	default:
		if err := a.Stop(ctx, e.Order(), spec.Name, how, trail); err != nil {
			return failed(err, "Could not shutdown instance for full reboot")
		}
	}
	return failedUnlessNil(a.Start(ctx, e.Order(), spec, trail), "Could not start instance for full reboot")
}

func failedUnlessNil(err error, what string) error {
	if err == nil {
		return nil
	}
	return failed(err, "%s", what)
}
