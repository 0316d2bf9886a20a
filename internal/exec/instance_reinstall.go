package exec

import (
	"context"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/opcode"
	"github.com/drover-project/drover/internal/work"
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
	running, err := active(ctx, a, inst)
	if err != nil {
		return Plan{}, err
	}
	if running {
		return Plan{}, fault.New(fault.WrongState, "Instance '%s' is running, cannot reinstall", inst.Name)
	}
	if err := checkGivenOSParams(op); err != nil {
		return Plan{}, err
	}
	next := installed(op, inst)
	os, image, err := env.findOS(ctx, a, next.OS, op.Bool("force_variant"))
	if err != nil {
		return Plan{}, err
	}
	if err := checkOSParams(os, node.Name, env.snapshot().Cluster().FillOS(next), next.OSParamsPrivate, op.Map("osparams_secret")); err != nil {
		return Plan{}, err
	}
	how := installArgs{Given: true}
	if image != nil {
		how.Image = image.UUID
		if err := env.checkImage(next, image, op.Map("osparams_secret")); err != nil {
			return Plan{}, err
		}
	}
	install := onNode(installSystem, node.UUID, inst.UUID, "install "+next.OS+" on instance "+inst.Name, how)
	install.Says, install.Anew = []string{"Running the instance OS create scripts..."}, true
	install.Fails = "Could not install OS for instance " + inst.Name + " on node " + node.Name
	set := inInventory(setSystem, inst.UUID, "remember what is installed on instance "+inst.Name, nil)
	if next.OS != inst.OS {
		set.Says = []string{"Changing OS to '" + next.OS + "'..."}
	}
	return Plan{Work: &work.Work{Steps: []work.Step{install, set}}}, nil
}

// installed is an instance as it is when the opcode has installed its operating system.
func installed(op *opcode.Opcode, inst *cluster.Instance) *cluster.Instance {
	next := inst.Clone()
	if op.Has("os_type") {
		next.OS = op.Str("os_type")
	}
	next.OSParams = cluster.SetParams(next.OSParams, op.Map("osparams"))
	next.OSParamsPrivate = cluster.SetParams(next.OSParamsPrivate, op.Map("osparams_private"))
	return next
}
