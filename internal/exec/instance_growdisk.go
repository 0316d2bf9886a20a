package exec

import (
	"context"
	"fmt"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/hypervisor"
	"github.com/drover-project/drover/internal/work"
)

// hasSomething refuses to make or grow disks of an instance of which its node has nothing: they would be all that it has, beside
// whatever else is under its name there, and the instance would still lack the others.
func hasSomething(ctx context.Context, a Node, inst *cluster.Instance) error {
	_, err := a.Instance(ctx, thingOf(inst))
	switch {
	case fault.Is(err, fault.NotFound):
		return fault.New(fault.WrongState, "Node %s has nothing of instance '%s' (%s), so no disk of it can be made or grow there", a.Node(), inst.Name, inst.UUID).
			WithHint("drover node orphans %s lists what the node has and the inventory does not know; drover instance remove takes the instance out of the inventory", a.Node())
	case fault.Is(err, fault.Exists):
		return err
	case err != nil:
		return fault.New(fault.Environment, "Can't get the state of instance %s from node %s: %w", inst.Name, a.Node(), err)
	}
	return nil
}

// hasDisk refuses what would make a disk anew, empty, on a node that has lost it.
func hasDisk(ctx context.Context, a Node, inst *cluster.Instance, node *cluster.Node, index int) error {
	if err := hasSomething(ctx, a, inst); err != nil {
		return err
	}
	there, err := disksThere(ctx, a, inst)
	if err != nil {
		return err
	}
	if there[index] == nil {
		return fault.New(fault.WrongState, "Disk %d of instance %s can't grow: node %s has lost it", index, inst.Name, node.Name).WithHint("%s", howToMend(inst, node))
	}
	return nil
}

// growDisk prepares OP_INSTANCE_GROW_DISK.
func growDisk(ctx context.Context, env *Env) (Plan, error) {
	op := env.Op
	inst, err := findInstance(op, env.snapshot())
	if err != nil {
		return Plan{}, err
	}
	index := int(op.Int("disk"))
	if index >= len(inst.Disks) {
		return Plan{}, fault.New(fault.Invalid, "Invalid disk index %d: the instance has %d disks", index, len(inst.Disks)).At("disk")
	}
	node, a, err := env.primary(inst)
	if err != nil {
		return Plan{}, err
	}
	if err := hasDisk(ctx, a, inst, node, index); err != nil {
		return Plan{}, err
	}
	disk := inst.Disks[index]
	if op.Int("amount") > cluster.MostMiB {
		return Plan{}, fault.New(fault.Invalid, "Invalid amount %d: no disk is larger than %d MiB", op.Int("amount"), int64(cluster.MostMiB)).At("amount")
	}
	old, target := disk.Size, disk.Size+op.Int("amount")
	if op.Bool("absolute") {
		target = op.Int("amount")
	}
	if target < old {
		return Plan{}, fault.New(fault.WrongState, "Requested size (%s) is smaller than current disk size (%s)", sizeText(target), sizeText(old)).At("amount")
	}
	disk.Size, disk.MTime = target, env.nanos()
	next := inst.Clone()
	next.Disks[index] = disk
	if !op.Bool("ignore_ipolicy") {
		if err := checkPolicy(env.snapshot(), env.snapshot().Node(inst.PrimaryNode), next, len(inst.NICs)); err != nil {
			return Plan{}, err
		}
	}
	second, err := env.secondOnline(inst)
	if err != nil {
		return Plan{}, err
	}
	if second != nil {
		on, err := env.agent(second)
		if err == nil {
			err = hasDisk(ctx, on, inst, second, index)
		}
		if err != nil {
			return Plan{}, err
		}
	}
	what := fmt.Sprintf("disk %d of instance %s", index, inst.Name)
	grow := onNode(prepareDisks, node.UUID, inst.UUID, fmt.Sprintf("let %s grow to %s", what, sizeText(target)), prepareArgs{inst.Name, []hypervisor.Disk{diskOf(&disk)}})
	grow.Says = []string{fmt.Sprintf("Growing disk %d of instance '%s' by %s to %s", index, inst.Name, sizeText(target-old), sizeText(target))}
	grow.Fails = "Grow request failed on node " + node.Name
	steps := []work.Step{grow}
	if second != nil {
		copied := env.copiesOf(inst, []hypervisor.Disk{diskOf(&disk)}, second.UUID)
		grown := onNode(prepareDisks, second.UUID, inst.UUID, fmt.Sprintf("let the second copy of %s grow to %s", what, sizeText(target)), prepareArgs{inst.Name, copied})
		grown.Fails = "Grow request failed on node " + second.Name
		steps = append(steps, grown)
	}
	steps = append(steps, inInventory(setDiskSize, inst.UUID, "remember the size of "+what, diskSizeArgs{disk.UUID, disk.MTime, target}))
	if second != nil && op.Bool("wait_for_sync") {
		steps = append(steps, awaiting(inst, second.UUID))
	}
	return Plan{Work: &work.Work{Steps: steps}}, nil
}
