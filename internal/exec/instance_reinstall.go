package exec

import (
	"context"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/fault"
)

// reinstall prepares OP_INSTANCE_REINSTALL: the operating system is installed
// anew on the disks of a stopped instance.
func reinstall(ctx context.Context, env *Env) (Plan, error) {
	op := env.Op
	inst, err := findInstance(op, env.snapshot())
	if err != nil {
		return Plan{}, err
	}
	if err := requireState(inst, "cannot reinstall", cluster.AdminDown); err != nil {
		return Plan{}, err
	}
	if len(inst.Disks) == 0 {
		return Plan{}, fault.New(fault.Invalid, "Instance '%s' has no disks", inst.Name)
	}
	node, a, err := env.primary(inst)
	if err != nil {
		return Plan{}, err
	}
	running, err := active(ctx, a, inst.Name)
	if err != nil {
		return Plan{}, err
	}
	if running {
		return Plan{}, fault.New(fault.WrongState, "Instance '%s' is running, cannot reinstall", inst.Name)
	}
	if err := checkGivenOSParams(op); err != nil {
		return Plan{}, err
	}
	next := inst.Clone()
	if op.Has("os_type") {
		next.OS = op.Str("os_type")
	}
	os, err := a.FindOS(ctx, next.OS, op.Bool("force_variant"))
	if err != nil {
		return Plan{}, err
	}
	next.OSParams = cluster.SetParams(next.OSParams, op.Map("osparams"))
	next.OSParamsPrivate = cluster.SetParams(next.OSParamsPrivate, op.Map("osparams_private"))
	if err := checkOSParams(os, node.Name, env.snapshot().Cluster().FillOS(next), next.OSParamsPrivate, op.Map("osparams_secret")); err != nil {
		return Plan{}, err
	}
	return Plan{Do: func(ctx context.Context) (any, error) {
		c := env.snapshot().Cluster()
		env.Logf("Running the instance OS create scripts...")
		params := scriptParams(c.FillOS(next), next.OSParamsPrivate, op.Map("osparams_secret"))
		if err := a.Keep(ctx, env.Order(), inst.Name, inst.UUID); err != nil {
			return nil, failed(err, "Could not install OS for instance %s on node %s", inst.Name, node.Name)
		}
		if err := a.Install(ctx, env.Order(), specOf(c, next, nil, nil), next.OS, params); err != nil {
			return nil, failed(err, "Could not install OS for instance %s on node %s", inst.Name, node.Name)
		}
		if next.OS != inst.OS {
			env.Logf("Changing OS to '%s'...", next.OS)
		}
		return nil, env.changeInstance(ctx, inst.UUID, func(_ *cluster.Snapshot, inst *cluster.Instance) ([]cluster.Change, error) {
			inst.OS, inst.OSParams, inst.OSParamsPrivate = next.OS, next.OSParams, next.OSParamsPrivate
			return nil, nil
		})
	}}, nil
}
