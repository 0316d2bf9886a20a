package exec

import (
	"context"
	"regexp"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/hypervisor"
	"github.com/drover-project/drover/internal/query"
)

// nodeRemove prepares OP_NODE_REMOVE.
func nodeRemove(_ context.Context, env *Env) (Plan, error) {
	node, err := findNode(env.Op, "node", env.snapshot())
	if err != nil {
		return Plan{}, err
	}
	return updatePlan(env, nil, func(snap *cluster.Snapshot) ([]cluster.Change, error) {
		if node.UUID == snap.Cluster().MasterNode {
			return nil, fault.New(fault.Invalid, "Node is the master node, failover to another node is required")
		}
		for inst := range snap.PrimariesOn(node.UUID) {
			return nil, fault.New(fault.Invalid, "Instance %s is still running on the node, please remove first", inst.Name)
		}
		for inst := range snap.SecondariesOn(node.UUID) {
			return nil, fault.New(fault.Invalid, "Instance %s is still running on the node, please remove first", inst.Name)
		}
		return []cluster.Change{cluster.Delete(cluster.KindNode, node.UUID)}, nil
	})
}

// clusterRename prepares OP_CLUSTER_RENAME.
func clusterRename(_ context.Context, env *Env) (Plan, error) {
	name, err := cluster.NormalName(env.Op.Str("name"))
	if err != nil {
		return Plan{}, err
	}
	return updatePlan(env, name, func(snap *cluster.Snapshot) ([]cluster.Change, error) {
		if snap.Cluster().Name == name {
			return nil, fault.New(fault.Invalid, "Neither the name nor the IP address of the cluster has changed")
		}
		c := snap.Cluster().Clone()
		c.Name = name
		c.Touch(env.nanos())
		return []cluster.Change{cluster.Put(c)}, nil
	})
}

// redistribute prepares OP_CLUSTER_REDIST_CONF. Every controller reads the one
// store, so nothing is left to distribute; clients may ask all the same.
func redistribute(context.Context, *Env) (Plan, error) { return answer(nil), nil }

// tagsSearch prepares OP_TAGS_SEARCH: pairs [path, tag] of all objects, the
// cluster first.
func tagsSearch(_ context.Context, env *Env) (Plan, error) {
	pattern, err := regexp.Compile(env.Op.Str("pattern"))
	if err != nil {
		return Plan{}, fault.New(fault.Invalid, "Invalid search pattern '%s': %w", env.Op.Str("pattern"), err).At("pattern")
	}
	snap := env.snapshot()
	found := [][2]string{}
	look := func(path string, o cluster.Object) {
		for _, tag := range o.Labels() {
			if pattern.MatchString(tag) {
				found = append(found, [2]string{path, tag})
			}
		}
	}
	look("/cluster", snap.Cluster())
	for i := range snap.Instances() {
		look("/instances/"+i.Name, i)
	}
	for n := range snap.Nodes() {
		look("/nodes/"+n.Name, n)
	}
	for g := range snap.Groups() {
		look("/nodegroup/"+g.Name, g)
	}
	for n := range snap.Networks() {
		look("/network/"+n.Name, n)
	}
	return answer(found), nil
}

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
		if err := a.Prepare(ctx, inst.Name, inst.UUID, []hypervisor.Disk{grown}); err != nil {
			return nil, failed(err, "Grow request failed on node %s", a.Node())
		}
		return nil, env.changeInstance(ctx, inst.UUID, func(_ *cluster.Snapshot, inst *cluster.Instance) ([]cluster.Change, error) {
			inst.Disks[index] = disk
			return nil, nil
		})
	}}, nil
}

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
	next := inst.Clone()
	if op.Has("os_type") {
		next.OS = op.Str("os_type")
	}
	if _, err := a.FindOS(ctx, next.OS, op.Bool("force_variant")); err != nil {
		return Plan{}, err
	}
	next.OSParams = cluster.SetParams(next.OSParams, op.Map("osparams"))
	next.OSParamsPrivate = cluster.SetParams(next.OSParamsPrivate, op.Map("osparams_private"))
	return Plan{Do: func(ctx context.Context) (any, error) {
		c := env.snapshot().Cluster()
		env.Logf("Running the instance OS create scripts...")
		params := scriptParams(c.FillOS(next), next.OSParamsPrivate, op.Map("osparams_secret"))
		if err := a.Install(ctx, specOf(c, next, nil, nil), next.OS, params); err != nil {
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

// console prepares OP_INSTANCE_CONSOLE. No driver has a console to reach yet,
// which clients are told in a message, as the reference tells it of its fake.
func console(_ context.Context, env *Env) (Plan, error) {
	inst, err := findInstance(env.Op, env.snapshot())
	if err != nil {
		return Plan{}, err
	}
	if _, _, err := env.primary(inst); err != nil {
		return Plan{}, err
	}
	if inst.AdminState != cluster.AdminUp {
		return Plan{}, fault.New(fault.WrongState, "Instance %s is not running (state %s)", inst.Name, inst.AdminState)
	}
	return answer(query.NoConsole(inst)), nil
}
