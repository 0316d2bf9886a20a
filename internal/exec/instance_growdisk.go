package exec

import (
	"context"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/hypervisor"
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
	_, a, err := env.primary(inst)
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
	return Plan{Do: func(ctx context.Context) (any, error) {
		env.Logf("Growing disk %d of instance '%s' by %s to %s", index, inst.Name, sizeText(target-old), sizeText(target))
		grown := diskOf(&disk)
		if err := a.Prepare(ctx, env.Order(), inst.Name, inst.UUID, []hypervisor.Disk{grown}); err != nil {
			return nil, failed(err, "Grow request failed on node %s", a.Node())
		}
		return nil, env.changeInstance(ctx, inst.UUID, func(_ *cluster.Snapshot, inst *cluster.Instance) ([]cluster.Change, error) {
			inst.Disks[index] = disk
			return nil, nil
		})
	}}, nil
}
