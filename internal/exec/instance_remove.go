package exec

import (
	"context"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/work"
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
	node, _, err := env.primary(inst)
	ignore := op.Bool("ignore_failures")
	w := &work.Work{}
	switch {
	case err != nil && !ignore:
		return Plan{}, err
	case err != nil:
		env.Warnf("%v", err)
	default:
		w.Steps = clearing(inst, node, op.Int("shutdown_timeout"), ignore)
	}
	if second := env.secondary(inst); second != nil {
		w.Steps = append(w.Steps, env.clearingSecond(inst, second, ignore)...)
	}
	w.Steps = append(w.Steps, inInventory(forgetInstance, inst.UUID, "forget instance "+inst.Name, nil))
	return Plan{Work: w}, nil
}

// clearing stops an instance and removes it from its node. Another one that the node
// has under its name is left alone.
func clearing(inst *cluster.Instance, node *cluster.Node, timeout int64, ignore bool) []work.Step {
	stop := onNode(stopInstance, node.UUID, inst.UUID, "stop instance "+inst.Name, stopArgs{inst.Name, timeout})
	remove := onNode(removeFromNode, node.UUID, inst.UUID, "remove the disks of instance "+inst.Name, meant{inst.Name})
	stop.Fails, stop.Tolerated = "Could not shutdown instance "+inst.Name+" on node "+node.Name, ignore
	remove.Fails, remove.Tolerated = "Can't remove instance's disks", ignore
	if ignore {
		stop.Fails = "can't shutdown instance"
		remove.Fails = "can't remove instance's disks"
	}
	return []work.Step{stop, remove}
}

// clearingSecond removes the second copy of an instance's disks. What a node has that is offline stays there, and is told.
func (e *Env) clearingSecond(inst *cluster.Instance, node *cluster.Node, ignore bool) []work.Step {
	if node.Offline {
		e.Warnf("Node %s is offline: what it has of instance %s (%s) stays there until: drover node clear-orphans %s", node.Name, inst.Name, inst.UUID, node.Name)
		return nil
	}
	s := onNode(removeFromNode, node.UUID, inst.UUID, "remove the second copy of the disks of instance "+inst.Name, meant{inst.Name})
	s.Fails, s.Tolerated = "Can't remove instance's disks", ignore
	if ignore {
		s.Fails = "can't remove instance's disks"
	}
	return []work.Step{s}
}

// forgetting takes an instance out of the inventory and gives its addresses back.
func (e *Env) forgetting(snap *cluster.Snapshot, uuid string) []cluster.Change {
	inst := snap.Instance(uuid)
	if inst == nil {
		return nil
	}
	w := newWiring(snap, "", connecting{now: e.nanos()})
	for i := range inst.NICs {
		w.release(&inst.NICs[i])
	}
	return append(w.changes(), cluster.Delete(cluster.KindInstance, uuid))
}
