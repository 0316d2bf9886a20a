package exec

import (
	"context"
	"slices"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/hypervisor"
	"github.com/drover-project/drover/internal/lock"
	"github.com/drover-project/drover/internal/opcode"
	"github.com/drover-project/drover/internal/work"
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
	node, a, err := env.primary(inst)
	if err != nil {
		return Plan{}, err
	}
	running, err := active(ctx, a, inst)
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
	if err := env.nameFree(ctx, a, inst, name); err != nil {
		return Plan{}, err
	}
	nodes := []*cluster.Node{node}
	if second := env.secondary(inst); second != nil {
		a, err := env.onlineAgent(second)
		if err == nil {
			err = env.nameFree(ctx, a, inst, name)
		}
		if err != nil {
			return Plan{}, err
		}
		nodes = append(nodes, second)
	}
	w := renaming(inst, nodes, name)
	tells, err := env.tellsName(ctx, a, inst)
	if err != nil {
		return Plan{}, err
	}
	if tells {
		w.Steps = append(w.Steps, tellName(node, inst, inst.Name, name))
	}
	return Plan{Dry: name, Work: w}, nil
}

// tellsName reports whether the operating system of an instance is to be told its new name: the definition on its node has a script for that, or nobody
// can say. What comes from an image of Drover's own is not told.
func (e *Env) tellsName(ctx context.Context, a Node, inst *cluster.Instance) (bool, error) {
	os, image, err := e.findOS(ctx, a, inst.OS, true)
	if err != nil {
		return true, interrupted(err)
	}
	return image == nil && slices.Contains(os.Scripts, "rename"), nil
}

// tellName has the operating system of an instance know its name. Where that fails the instance has the name all the same.
func tellName(node *cluster.Node, inst *cluster.Instance, former, name string) work.Step {
	s := onNode(renameSystem, node.UUID, inst.UUID, "tell its name to the system of instance "+name, formerArgs{former})
	s.Anew, s.Tolerated = true, true
	s.Fails = "Failed to run rename script for " + name + " on node " + node.Name
	return s
}

// nameFree refuses a new name under which the node of an instance has something else.
func (e *Env) nameFree(ctx context.Context, a Node, inst *cluster.Instance, name string) error {
	all, err := a.Named(ctx, name)
	if err != nil {
		return fault.New(fault.Environment, "Can't get the state of instance %s from node %s: %w", name, a.Node(), err)
	}
	for i := range all {
		there := &all[i]
		if there.UUID == inst.UUID {
			continue // a rename that did not end
		}
		refusal := fault.New(fault.Exists, "Instance '%s' is not in the cluster, but node %s has one of that name (%s, %d disks)", name, a.Node(), identity(there), len(there.Disks))
		if other := e.snapshot().Instance(there.UUID); other != nil {
			return refusal.WithHint("it is instance %s of the cluster: drover instance rename %s gives it its name there, too", other.Name, other.Name)
		}
		return refusal.WithHint("%s", e.next(a.Node(), there))
	}
	return nil
}

// renaming gives an instance another name, on its nodes and then in the inventory.
func renaming(inst *cluster.Instance, nodes []*cluster.Node, name string) *work.Work {
	w := &work.Work{Result: encodeArgs(name)}
	for i, node := range nodes {
		text := "rename instance " + inst.Name + " to " + name + " on its node"
		if i > 0 {
			text = "rename instance " + inst.Name + " to " + name + " on its second node"
		}
		onIt := onNode(renameOnNode, node.UUID, inst.UUID, text, renameArgs{inst.Name, name})
		onIt.Fails = "Could not rename instance " + inst.Name + " on node " + node.Name
		back := onNode(renameOnNode, "", "", "give instance "+inst.Name+" its name back", renameArgs{name, inst.Name})
		back.Fails = "Could not give instance " + inst.Name + " its name back on node " + node.Name
		back.Left = "On node " + node.Name + " instance " + inst.Name + " (" + inst.UUID + ") is still called " + name + ": rename it again when the node works"
		onIt.Undo = &back
		w.Steps = append(w.Steps, onIt)
	}
	note := inInventory(nameInstance, inst.UUID, "rename instance "+inst.Name+" to "+name, renameArgs{inst.Name, name})
	note.Keeps = true // nothing takes it back, so the node keeps the name, too, whatever becomes of what comes behind
	w.Steps = append(w.Steps, note)
	return w
}
