package exec

import (
	"context"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/hypervisor"
)

// instanceRemove prepares OP_INSTANCE_REMOVE: stop, take away what the node
// has, forget. With ignore_failures a node that fails, or is offline, does
// not keep the instance in the inventory.
func instanceRemove(_ context.Context, env *Env) (Plan, error) {
	op := env.Op
	inst, err := findInstance(op, env.snapshot())
	if err != nil {
		return Plan{}, err
	}
	node, a, err := env.primary(inst)
	ignore := op.Bool("ignore_failures")
	if err != nil && !ignore {
		return Plan{}, err
	}
	return Plan{Do: func(ctx context.Context) (any, error) {
		if err != nil {
			env.Warnf("%v", err)
		} else if err := env.clear(ctx, a, node, inst, ignore); err != nil {
			return nil, err
		}
		return nil, env.forget(ctx, inst.UUID)
	}}, nil
}

// clear stops an instance and removes it from its node. Another one that the node
// has under its name is left alone.
func (e *Env) clear(ctx context.Context, a Node, node *cluster.Node, inst *cluster.Instance, ignore bool) error {
	if there, err := a.Instance(ctx, inst.Name); err == nil && there.UUID != inst.UUID {
		err = hypervisor.Stranger(inst.Name, inst.UUID, there.UUID)
		if !ignore {
			return failed(err, "Can't remove instance's disks")
		}
		e.Logf("Warning: can't remove instance's disks: %v", err)
		return nil
	}
	if err := a.Stop(ctx, e.Order(), inst.Name, stopWithin(e.Op.Int("shutdown_timeout")), e.Op.Reason); err != nil {
		if !ignore {
			return failed(err, "Could not shutdown instance %s on node %s", inst.Name, node.Name)
		}
		e.Logf("Warning: can't shutdown instance: %v", err)
	}
	if err := a.Remove(ctx, e.Order(), inst.Name); err != nil {
		if !ignore {
			return failed(err, "Can't remove instance's disks")
		}
		e.Logf("Warning: can't remove instance's disks: %v", err)
	}
	return nil
}

// forget takes an instance out of the inventory and gives its addresses back.
func (e *Env) forget(ctx context.Context, uuid string) error {
	return e.Inventory.Update(ctx, func(snap *cluster.Snapshot) ([]cluster.Change, error) {
		inst := snap.Instance(uuid)
		if inst == nil {
			return nil, nil
		}
		w := newWiring(snap, "", connecting{now: e.nanos()})
		for i := range inst.NICs {
			w.release(&inst.NICs[i])
		}
		return append(w.changes(), cluster.Delete(cluster.KindInstance, uuid)), nil
	})
}
