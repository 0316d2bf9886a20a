package exec

import (
	"context"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/hypervisor"
	"github.com/drover-project/drover/internal/lock"
	"github.com/drover-project/drover/internal/opcode"
)

// renameLocks locks the instance under its old and its new name.
func renameLocks(op *opcode.Opcode, snap *cluster.Snapshot) (lock.Request, error) {
	request, err := ownInstance(op, snap)
	if err != nil {
		return nil, err
	}
	name, err := nameLocks(op.Str("new_name"))
	return append(request, name...), err
}

// rename prepares OP_INSTANCE_RENAME. An instance may be renamed to the name
// that it has.
func (n Names) rename(ctx context.Context, env *Env) (Plan, error) {
	inst, err := findInstance(env.Op, env.snapshot())
	if err != nil {
		return Plan{}, err
	}
	op, _, err := n.checkNewName(ctx, env, "new_name", "IP address check requires a name check")
	if err != nil {
		return Plan{}, err
	}
	name, err := cluster.NormalName(op.Str("new_name"))
	if err == nil {
		err = hypervisor.CheckName(name)
	}
	if err != nil {
		return Plan{}, err
	}
	if err := requireState(inst, "cannot rename", cluster.AdminDown, cluster.AdminOffline); err != nil {
		return Plan{}, err
	}
	_, a, err := env.primary(inst)
	if err != nil {
		return Plan{}, err
	}
	running, err := active(ctx, a, inst.Name)
	if err != nil {
		return Plan{}, err
	}
	if running {
		return Plan{}, fault.New(fault.WrongState, "Instance '%s' is running, cannot rename", inst.Name)
	}
	if other := env.snapshot().InstanceNamed(name); other != nil && other != inst {
		return Plan{}, fault.New(fault.Exists, "Instance '%s' is already in the cluster", name)
	}
	if name == inst.Name {
		return answer(name), nil
	}
	return Plan{Dry: name, Do: func(ctx context.Context) (any, error) {
		if err := a.Rename(ctx, env.Order(), inst.Name, name); err != nil {
			return nil, env.renameBack(ctx, a, name, inst.Name, failed(err, "Could not rename instance %s on node %s", inst.Name, a.Node()))
		}
		err := env.changeInstance(ctx, inst.UUID, func(_ *cluster.Snapshot, inst *cluster.Instance) ([]cluster.Change, error) {
			inst.Name = name
			return nil, nil
		})
		switch {
		case unsure(err):
			env.Warnf("Whether instance %s was renamed is not known; on node %s it is called %s", inst.Name, a.Node(), name)
			return nil, err
		case err != nil:
			return nil, env.renameBack(ctx, a, name, inst.Name, err)
		}
		return name, nil
	}}, nil
}

// renameBack gives the instance its old name on the node when the rename
// failed. It does so even when the job is being ended.
func (e *Env) renameBack(ctx context.Context, a Node, name, old string, cause error) error {
	if err := a.Rename(context.WithoutCancel(ctx), e.Order(), name, old); err != nil && !fault.Is(err, fault.NotFound) {
		e.Warnf("Could not give instance %s its name back on node %s: %v", old, a.Node(), err)
	}
	return cause
}
