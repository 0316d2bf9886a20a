package exec

import (
	"context"
	"slices"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/hypervisor"
	"github.com/drover-project/drover/internal/lock"
	"github.com/drover-project/drover/internal/opcode"
)

// sizesLocks lock the instances whose sizes are corrected, and share their primary nodes.
func sizesLocks(op *opcode.Opcode, snap *cluster.Snapshot) (lock.Request, error) {
	if len(op.Strings("instances")) == 0 {
		return append(lock.Request{want(lock.Instance, lock.All, lock.Exclusive)}, sharing(lock.All)...), nil
	}
	instances, err := listedInstances(op, snap)
	if err != nil {
		return nil, err
	}
	var request lock.Request
	var nodes []string
	for _, inst := range instances {
		request = append(request, want(lock.Instance, inst.Name, lock.Exclusive))
		if !slices.Contains(nodes, inst.PrimaryNode) {
			nodes = append(nodes, inst.PrimaryNode)
			request = append(request, sharing(inst.PrimaryNode)...)
		}
	}
	return request, nil
}

// listedInstances are those that an opcode lists, each once; all where it lists none.
func listedInstances(op *opcode.Opcode, snap *cluster.Snapshot) (out []*cluster.Instance, err error) {
	names := op.Strings("instances")
	if len(names) == 0 {
		return slices.AppendSeq(out, snap.Instances()), nil
	}
	for _, name := range names {
		inst, err := namedInstance(name, snap)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(out, inst) {
			out = append(out, inst)
		}
	}
	return out, nil
}

// resized is a disk whose record is corrected, as the result has it: the instance, the number of the disk, "size", and what its node has, in MiB.
type resized [4]any

// repairDiskSizes prepares OP_CLUSTER_REPAIR_DISK_SIZES: sizes are recorded as the primary nodes have them.
func repairDiskSizes(ctx context.Context, env *Env) (Plan, error) {
	snap := env.snapshot()
	wanted, err := listedInstances(env.Op, snap)
	if err != nil {
		return Plan{}, err
	}
	sizes, err := env.sizesOn(ctx, snap, wanted)
	if err != nil {
		return Plan{}, err
	}
	result := []resized{}
	var changed []string
	for _, inst := range wanted {
		for i := range inst.Disks {
			d := &inst.Disks[i]
			size, asked := sizes[d.UUID]
			switch {
			case !asked:
			case size == 0:
				env.Warnf("Disk %d of instance %s did not return size information, ignoring", i, inst.Name)
				delete(sizes, d.UUID)
			case size == d.Size && (len(d.Children) == 0 || d.Children[0].Size >= size):
			default:
				if size != d.Size {
					env.Infof("Disk %d of instance %s has mismatched size, correcting: recorded %d, actual %d", i, inst.Name, d.Size, size)
				}
				result, changed = append(result, resized{inst.Name, i, "size", size}), append(changed, inst.UUID)
			}
		}
	}
	if len(changed) == 0 {
		return answer(result), nil
	}
	return updatePlan(env, result, func(snap *cluster.Snapshot) (changes []cluster.Change, err error) {
		for _, uuid := range slices.Compact(changed) {
			if inst := snap.Instance(uuid); inst != nil {
				changes = append(changes, cluster.Put(env.withSizes(inst, sizes)))
			}
		}
		return changes, nil
	})
}

// sizesOn are the sizes of the disks of instances on their primary nodes, in MiB, by UUID: 0 of one that the node has not. Those of a node that does not
// answer are not among them, which is told.
func (e *Env) sizesOn(ctx context.Context, snap *cluster.Snapshot, instances []*cluster.Instance) (map[string]int64, error) {
	out, of := map[string]int64{}, map[string][]*cluster.Instance{}
	for _, inst := range instances {
		of[inst.PrimaryNode] = append(of[inst.PrimaryNode], inst)
	}
	for node := range snap.Nodes() {
		if len(of[node.UUID]) == 0 {
			continue
		}
		a, err := e.onlineAgent(node)
		if err != nil {
			e.Warnf("Node %s does not tell the sizes of its disks, ignoring: %v", node.Name, err)
			continue
		}
		if e.sizesOf(ctx, a, of[node.UUID], out); ctx.Err() != nil {
			return nil, fault.New(fault.Canceled, "the sizes of disks were asked for: %w", context.Cause(ctx))
		}
	}
	return out, nil
}

// sizesOf asks one node for each of its instances, since what it lists are its notes.
func (e *Env) sizesOf(ctx context.Context, a Node, instances []*cluster.Instance, out map[string]int64) {
	for _, inst := range instances {
		there, err := disksThere(ctx, a, inst)
		switch {
		case fault.Is(err, fault.Exists): // what it has is another one's
			there = make([]*hypervisor.Disk, len(inst.Disks))
		case err != nil:
			e.Warnf("Node %s does not tell the sizes of the disks of instance %s, ignoring: %v", a.Node(), inst.Name, err)
			continue
		}
		for i, d := range there {
			out[inst.Disks[i].UUID] = 0
			if d != nil {
				out[inst.Disks[i].UUID] = int64(d.Has())
			}
		}
	}
}

// withSizes is an instance whose disks are recorded with the sizes that were found.
func (e *Env) withSizes(old *cluster.Instance, sizes map[string]int64) *cluster.Instance {
	inst := old.Clone()
	eachDisk(inst, func(d *cluster.Disk) {
		size, found := sizes[d.UUID]
		if !found || size == 0 {
			return
		}
		if size != d.Size {
			d.Size, d.MTime = size, e.nanos()
		}
		if len(d.Children) > 0 {
			d.Children[0].Size = max(d.Children[0].Size, size)
		}
	})
	inst.Touch(e.nanos())
	return inst
}
