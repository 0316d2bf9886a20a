package exec

import (
	"context"
	"fmt"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/hypervisor"
	"github.com/drover-project/drover/internal/work"
)

// growDisk prepares OP_INSTANCE_GROW_DISK.
func growDisk(_ context.Context, env *Env) (Plan, error) {
	op := env.Op
	inst, err := findInstance(op, env.snapshot())
	if err != nil {
		return Plan{}, err
	}
	index := int(op.Int("disk"))
	if index >= len(inst.Disks) {
		return Plan{}, fault.New(fault.Invalid, "Invalid disk index %d: the instance has %d disks", index, len(inst.Disks)).At("disk")
	}
	node, _, err := env.primary(inst)
	if err != nil {
		return Plan{}, err
	}
	disk := inst.Disks[index]
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
	what := fmt.Sprintf("disk %d of instance %s", index, inst.Name)
	grow := onNode(prepareDisks, node.UUID, inst.UUID, fmt.Sprintf("let %s grow to %s", what, sizeText(target)), prepareArgs{inst.Name, []hypervisor.Disk{diskOf(&disk)}})
	grow.Says = []string{fmt.Sprintf("Growing disk %d of instance '%s' by %s to %s", index, inst.Name, sizeText(target-old), sizeText(target))}
	grow.Fails = "Grow request failed on node " + node.Name
	return Plan{Work: &work.Work{Steps: []work.Step{
		grow, inInventory(setDiskSize, inst.UUID, "remember the size of "+what, diskSizeArgs{disk.UUID, disk.MTime, target}),
	}}}, nil
}
