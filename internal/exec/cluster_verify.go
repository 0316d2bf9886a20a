package exec

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/hooks"
	"github.com/drover-project/drover/internal/hypervisor"
	"github.com/drover-project/drover/internal/opcode"
)

// clusterVerify prepares OP_CLUSTER_VERIFY: one job for the configuration and,
// after it, one for each node group. For one group only its job is submitted.
func clusterVerify(_ context.Context, env *Env) (Plan, error) {
	op, snap := env.Op, env.snapshot()
	common := func(names ...string) map[string]any {
		p := map[string]any{}
		for _, name := range names {
			p[name] = op.Params[name]
		}
		return p
	}
	var groups []string
	if op.Has("group_name") {
		g, err := findGroup(op.Str("group_name"), snap)
		if err != nil {
			return Plan{}, err
		}
		groups = []string{g.Name}
	}
	var jobs [][]*opcode.Opcode
	if len(groups) == 0 {
		config, err := opcode.FromMap("OP_CLUSTER_VERIFY_CONFIG", common("debug_simulate_errors", "error_codes", "ignore_errors", "verbose"))
		if err != nil {
			return Plan{}, err
		}
		jobs = append(jobs, []*opcode.Opcode{config})
		for g := range snap.Groups() {
			groups = append(groups, g.Name)
		}
	}
	for _, name := range groups {
		p := common("debug_simulate_errors", "error_codes", "skip_checks", "ignore_errors", "verbose", "verify_clutter")
		p["group_name"] = name
		if len(jobs) > 0 {
			p["depends"] = []any{[]any{int64(-len(jobs)), []any{}}}
		}
		group, err := opcode.FromMap("OP_CLUSTER_VERIFY_GROUP", p)
		if err != nil {
			return Plan{}, err
		}
		jobs = append(jobs, []*opcode.Opcode{group})
	}
	return submitPlan(env, jobs), nil
}

// submitPlan is the plan of an opcode that only submits jobs.
func submitPlan(env *Env, jobs [][]*opcode.Opcode) Plan {
	return Plan{Do: func(ctx context.Context) (any, error) {
		submitted, err := env.submitChildren(ctx, jobs)
		return map[string]any{"jobs": submitted}, err
	}}
}

// report collects what a verification finds and logs it in the form that
// clients parse.
type report struct {
	env    *Env
	failed bool
}

// problemf notes an error of a kind, unless errors of that kind are ignored:
// then it is a warning.
func (r *report) problemf(code, kind, item, format string, args ...any) {
	op, text := r.env.Op, fmt.Sprintf(format, args...)
	level := "ERROR"
	if slices.Contains(op.Strings("ignore_errors"), code) {
		level = "WARNING"
	} else {
		r.failed = true
	}
	if op.Bool("error_codes") {
		r.env.Logf("  - %s:%s:%s:%s:%s", level, code, kind, item, text)
		return
	}
	if item != "" {
		kind += " " + item
	}
	r.env.Logf("  - %s: %s: %s", level, kind, text)
}

// clusterVerifyConfig prepares OP_CLUSTER_VERIFY_CONFIG: whether the inventory
// agrees with itself.
func clusterVerifyConfig(_ context.Context, env *Env) (Plan, error) {
	return Plan{Dry: true, Do: func(context.Context) (any, error) {
		r, snap := &report{env: env}, env.snapshot()
		env.Logf("* Verifying cluster config")
		r.references(snap)
		env.Logf("* Verifying hypervisor parameters")
		r.parameters(snap)
		env.Logf("* Verifying all nodes belong to an existing group")
		for n := range snap.Nodes() {
			if snap.Group(n.Group) == nil {
				r.problemf("ECLUSTERDANGLINGNODES", "node", n.Name, "the node's group %s does not exist", n.Group)
			}
		}
		return !r.failed, nil
	}}, nil
}

func (r *report) references(snap *cluster.Snapshot) {
	if snap.Node(snap.Cluster().MasterNode) == nil {
		r.problemf("ECLUSTERCFG", "cluster", "", "the master node does not exist")
	}
	for d := range snap.Disks() {
		for _, uuid := range d.Disk.Nodes {
			if snap.Node(uuid) == nil {
				r.problemf("ECLUSTERCFG", "disk", d.String(), "no instance has it, and its node %s does not exist; next: drover disk remove --ignore-failures %s", uuid, d.UUID)
			}
		}
		if owner, i := snap.OwnerOf(d.UUID); owner != nil {
			r.problemf("ECLUSTERCFG", "disk", d.String(), "it is detached, and disk %d of instance %s", i, owner.Name)
		}
	}
	for inst := range snap.Instances() {
		for _, uuid := range instanceNodes(inst) {
			if snap.Node(uuid) == nil {
				r.problemf("ECLUSTERDANGLINGINST", "instance", inst.Name, "its node %s does not exist", uuid)
			}
		}
		for i := range inst.NICs {
			if uuid := inst.NICs[i].Network; uuid != "" && snap.Network(uuid) == nil {
				r.problemf("ECLUSTERCFG", "instance", inst.Name, "the network %s of interface %d does not exist", uuid, i)
			}
		}
	}
}

func (r *report) parameters(snap *cluster.Snapshot) {
	for _, hv := range snap.Cluster().EnabledHypervisors {
		if _, err := cluster.CheckParams(snap.Cluster().HVParams[hv], cluster.HVTypes(hv), false); err != nil {
			r.problemf("ECLUSTERCFG", "cluster", "", "hypervisor %s: %v", hv, err)
		}
	}
	for inst := range snap.Instances() {
		if _, err := cluster.CheckParams(inst.HVParams, cluster.HVTypes(inst.Hypervisor), true); err != nil {
			r.problemf("ECLUSTERCFG", "instance", inst.Name, "hypervisor %s: %v", inst.Hypervisor, err)
		}
	}
}

// clusterVerifyGroup prepares OP_CLUSTER_VERIFY_GROUP: whether the nodes of a
// group are as the inventory says.
func clusterVerifyGroup(_ context.Context, env *Env) (Plan, error) {
	group, err := findGroup(env.Op.Str("group_name"), env.snapshot())
	if err != nil {
		return Plan{}, err
	}
	r, empty := &report{env: env}, false
	verify := func(ctx context.Context) (any, error) {
		snap := env.snapshot()
		nodes := slices.Collect(snap.NodesIn(group.UUID))
		env.Logf("* Verifying group '%s'", group.Name)
		if empty = len(nodes) == 0; empty {
			env.Logf("* Empty node group, skipping verification")
			return true, nil
		}
		env.Logf("* Gathering data (%d nodes)", len(nodes))
		live := r.nodes(ctx, nodes)
		r.programs(snap, nodes)
		env.Logf("* Verifying instance status")
		r.instances(snap, nodes, live)
		env.Logf("* Other Notes")
		r.notes(snap, nodes)
		return !r.failed, nil
	}
	heed := func(failed []hooks.Refusal) any {
		if !empty {
			r.hooks(failed)
		}
		return !r.failed
	}
	return Plan{Dry: true, Do: verify, Heed: heed}, nil
}

// hooks tells which scripts found something. A node is named as in the reference, by its UUID.
func (r *report) hooks(failed []hooks.Refusal) {
	r.env.Logf("* Hooks Results")
	for _, f := range failed {
		r.problemf("ENODEHOOKS", "node", f.Node, "Script %s failed, output:", f.Script)
		r.env.Logf("      %s", f.Output)
	}
}

// nodes asks each node for its instances; nodes that cannot answer have no
// entry.
func (r *report) nodes(ctx context.Context, nodes []*cluster.Node) map[string][]hypervisor.Instance {
	live := map[string][]hypervisor.Instance{}
	r.env.Logf("* Verifying node status")
	for _, n := range nodes {
		if n.Offline {
			continue
		}
		a, err := r.env.agent(n)
		if err == nil {
			live[n.UUID], err = withDisksThere(ctx, a)
		}
		if err != nil {
			delete(live, n.UUID)
			r.problemf("ENODERPC", "node", n.Name, "while contacting node: %v", err)
		}
	}
	return live
}

// withDisksThere lists what a node has, with the disks that are there: the list alone tells those that are noted.
func withDisksThere(ctx context.Context, a Node) ([]hypervisor.Instance, error) {
	list, err := a.Instances(ctx)
	if err != nil {
		return nil, err
	}
	info, err := a.Info(ctx)
	if err != nil || info.StandsIn { // what is pretended is there as it is noted
		return list, err
	}
	errs := make([]error, len(list))
	beside(len(list), fewAtOnce, func(n int) {
		i := &list[n]
		if len(i.Disks) == 0 || i.UUID == "" {
			return
		}
		one, err := a.Instance(ctx, i.Thing())
		if err != nil && !fault.Is(err, fault.NotFound) {
			errs[n] = err
			return
		}
		i.Disks = one.Disks
	})
	return list, errors.Join(errs...)
}

// disks tells of disks that a node has of an instance, and the inventory has not.
func (r *report) disks(n *cluster.Node, inst *cluster.Instance, there *hypervisor.Instance) {
	if inst == nil {
		return
	}
	for _, d := range unknownDisks(r.env.snapshot(), inst, there) {
		if d.Kind == stranger {
			r.problemf("ENODEORPHANLV", "node", n.Name, "disk %s (%d MiB) is among those of instance %s; it is left alone, for %s", d.UUID, d.Size, inst.Name, d.Why)
			continue
		}
		r.problemf("ENODEORPHANLV", "node", n.Name, "disk %s (%d MiB) is of instance %s, which has no such disk; next: drover node clear-orphans %s %s", d.UUID, d.Size, inst.Name, n.Name, d.UUID)
	}
}

// instances compares what runs with what should run, both ways.
func (r *report) instances(snap *cluster.Snapshot, nodes []*cluster.Node, live map[string][]hypervisor.Instance) {
	for _, n := range nodes {
		seen, answered := live[n.UUID]
		running := map[string]bool{}
		for _, i := range seen {
			inst := snap.Instance(i.UUID)
			running[i.UUID] = i.Active()
			switch {
			case i.Detached() && snap.Disk(i.UUID) != nil:
			case i.Detached():
				r.problemf("ENODEORPHANLV", "node", n.Name, "unknown disk %s on this node, which is detached (%s); %s", i.UUID, i.MadeBy, r.env.next(n.Name, &i))
			case inst == nil:
				r.problemf("ENODEORPHANINSTANCE", "node", n.Name, "unknown instance %s on this node (%s, %s); %s", i.Name, identity(&i), i.MadeBy, r.env.next(n.Name, &i))
			case i.Active() && inst.PrimaryNode != n.UUID:
				r.problemf("EINSTANCEWRONGNODE", "instance", inst.Name, "instance should not run on node %s", n.Name)
			case i.Trouble != "":
				r.problemf("ENODEHV", "instance", inst.Name, "%s", i.Trouble)
			case i.State == hypervisor.Incoming:
				r.problemf("EINSTANCEWRONGNODE", "instance", inst.Name, "node %s waits for a migration that broke off; next: drover instance migrate --cleanup %s", n.Name, inst.Name)
			}
			r.disks(n, inst, &i)
		}
		for inst := range snap.PrimariesOn(n.UUID) {
			switch {
			case n.Offline && inst.AdminState == cluster.AdminUp:
				r.problemf("EINSTANCEBADNODE", "instance", inst.Name, "instance is marked as running and lives on offline node %s", n.Name)
			case answered && inst.AdminState == cluster.AdminUp && !running[inst.UUID]:
				r.problemf("EINSTANCEDOWN", "instance", inst.Name, "instance not running on its primary node %s", n.Name)
			}
			r.mirrors(snap, inst)
		}
		if answered {
			r.lost(snap, n, seen)
			r.detached(snap, n, seen)
		}
	}
}

// lost tells of disks of instances that are not on a node which is to have them.
func (r *report) lost(snap *cluster.Snapshot, n *cluster.Node, seen []hypervisor.Instance) {
	there := diskSet(seen)
	for inst := range instancesOn(snap, n.UUID) {
		for i := range inst.Disks {
			alone := hypervisor.DetachedDisk(inst.Disks[i].UUID) // which is told of by itself
			if !there[inst.Disks[i].UUID] && !slices.ContainsFunc(seen, func(i hypervisor.Instance) bool { return i.Thing() == alone }) {
				r.problemf("EINSTANCEMISSINGDISK", "instance", inst.Name, "disk/%d is not on node %s; next: %s", i, n.Name, howToMend(inst, n))
			}
		}
	}
}

// detached tells of disks that no instance has, and that are not on their node as they are in the inventory.
func (r *report) detached(snap *cluster.Snapshot, n *cluster.Node, seen []hypervisor.Instance) {
	for d := range snap.DisksOn(n.UUID) {
		i := slices.IndexFunc(seen, func(i hypervisor.Instance) bool {
			return i.Thing() == hypervisor.DetachedDisk(d.UUID) && len(i.Disks) > 0
		})
		switch {
		case i < 0:
			r.problemf("EINSTANCEMISSINGDISK", "disk", d.String(), "it is not on node %s, which is to keep it although no instance has it; next: drover disk remove %s", n.Name, d.UUID)
		case int64(seen[i].Disks[0].Size) < d.Disk.Size:
			r.problemf("EINSTANCEMISSINGDISK", "disk", d.String(), "it has %d MiB on node %s, and %d in the inventory", seen[i].Disks[0].Size, n.Name, d.Disk.Size)
		}
	}
}

// mirrors tells of copies that are out of date.
func (r *report) mirrors(snap *cluster.Snapshot, inst *cluster.Instance) {
	for i := range inst.Disks {
		for _, node := range inst.Disks[i].Stale {
			r.problemf("EINSTANCEFAULTYDISK", "instance", inst.Name, "disk/%d is degraded: the copy on node %s is out of date; next: drover instance replace-disks --mode replace_on_secondary %s",
				i, nodeName(snap, node), inst.Name)
		}
	}
}

func (r *report) notes(snap *cluster.Snapshot, nodes []*cluster.Node) {
	single, offline := 0, 0
	offlineNodes, drained := 0, 0
	detached := map[string]bool{}
	for _, n := range nodes {
		for d := range snap.DisksOn(n.UUID) {
			detached[d.UUID] = true
		}
		if n.Offline {
			offlineNodes++
		}
		if n.Drained {
			drained++
		}
		for inst := range snap.PrimariesOn(n.UUID) {
			switch {
			case inst.AdminState == cluster.AdminOffline:
				offline++
			case inst.Mirroring() == cluster.Unmirrored:
				single++
			}
		}
	}
	for _, note := range []struct {
		count int
		what  string
	}{{single, "non-redundant instance(s)"}, {offline, "offline instance(s)"}, {offlineNodes, "offline node(s)"}, {drained, "drained node(s)"}, {len(detached), "disk(s) that no instance has"}} {
		if note.count > 0 {
			r.env.Logf("  - NOTICE: %d %s found.", note.count, note.what)
		}
	}
}

// clusterVerifyDisks prepares OP_CLUSTER_VERIFY_DISKS: a job for each group.
func clusterVerifyDisks(_ context.Context, env *Env) (Plan, error) {
	var jobs [][]*opcode.Opcode
	for g := range env.snapshot().Groups() {
		if name := env.Op.Str("group_name"); name != "" && name != g.Name && name != g.UUID {
			continue
		}
		op, err := opcode.FromMap("OP_GROUP_VERIFY_DISKS", map[string]any{"group_name": g.Name, "is_strict": env.Op.Bool("is_strict")})
		if err != nil {
			return Plan{}, err
		}
		jobs = append(jobs, []*opcode.Opcode{op})
	}
	if len(jobs) == 0 {
		return Plan{}, fault.New(fault.NotFound, "Node group '%s' not found", env.Op.Str("group_name"))
	}
	return submitPlan(env, jobs), nil
}

// groupVerifyDisks prepares OP_GROUP_VERIFY_DISKS. Its result is: errors by
// node, instances whose disks have to be activated (never any: disks here are
// in use while their instance runs), and missing disks by instance, as
// [node, disk].
func groupVerifyDisks(ctx context.Context, env *Env) (Plan, error) {
	group, err := findGroup(env.Op.Str("group_name"), env.snapshot())
	if err != nil {
		return Plan{}, err
	}
	broken, missing := map[string]string{}, map[string][][2]string{}
	snap := env.snapshot()
	for n := range snap.NodesIn(group.UUID) {
		if n.Offline || !n.VMCapable {
			continue
		}
		live, err := env.disksOn(ctx, n)
		if fault.Is(err, fault.Canceled) {
			return Plan{}, err
		}
		if err != nil {
			broken[n.UUID] = err.Error()
			continue
		}
		for inst := range instancesOn(snap, n.UUID) {
			for i := range inst.Disks {
				if !live[inst.Disks[i].UUID] {
					missing[inst.Name] = append(missing[inst.Name], [2]string{n.UUID, inst.Disks[i].UUID})
				}
			}
		}
	}
	return answer([]any{broken, []string{}, missing}), nil
}

// instancesOn yields the instances that have disks on a node: those that run there, and those whose second copies are there.
func instancesOn(snap *cluster.Snapshot, node string) iter.Seq[*cluster.Instance] {
	return func(yield func(*cluster.Instance) bool) {
		for inst := range snap.PrimariesOn(node) {
			if !yield(inst) {
				return
			}
		}
		for inst := range snap.SecondariesOn(node) {
			if !yield(inst) {
				return
			}
		}
	}
}

// disksOn returns the UUIDs of the disks that are on a node.
func (e *Env) disksOn(ctx context.Context, node *cluster.Node) (map[string]bool, error) {
	a, err := e.agent(node)
	if err != nil {
		return nil, err
	}
	list, err := withDisksThere(ctx, a)
	return diskSet(list), err
}

// diskSet are the UUIDs of the disks that instances have.
func diskSet(list []hypervisor.Instance) map[string]bool {
	out := map[string]bool{}
	for _, i := range list {
		for _, d := range i.Disks {
			if !i.Detached() {
				out[d.UUID] = true
			}
		}
	}
	return out
}
