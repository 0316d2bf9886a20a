package exec

import (
	"context"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/hypervisor"
	"github.com/drover-project/drover/internal/lock"
	"github.com/drover-project/drover/internal/opcode"
	"github.com/drover-project/drover/internal/store/format"
	"github.com/drover-project/drover/internal/work"
)

// attachedTo are the detached disks that an opcode attaches, as far as they are found.
func attachedTo(op *opcode.Opcode, snap *cluster.Snapshot) (disks []*cluster.DetachedDisk) {
	for _, item := range op.List("disks") {
		parts, _ := item.([]any)
		if len(parts) < 2 || parts[0] != attach {
			continue
		}
		values, _ := parts[len(parts)-1].(map[string]any)
		if d, err := findDetached(snap, itemChange{values: values}); err == nil {
			disks = append(disks, d)
		}
	}
	return disks
}

// modifyLocks lock an instance, and share its nodes and those of the disks that it gets.
func modifyLocks(op *opcode.Opcode, snap *cluster.Snapshot) (lock.Request, error) {
	request, err := ownInstance(op, snap)
	if err != nil {
		return nil, err
	}
	for _, d := range attachedTo(op, snap) {
		request = append(request, sharing(d.Disk.Nodes...)...)
	}
	return request, nil
}

// findDetached finds the disk that is to be attached, by its UUID or its name. One that an instance has is not taken from it.
func findDetached(snap *cluster.Snapshot, c itemChange) (*cluster.DetachedDisk, error) {
	uuid, _ := c.values["uuid"].(string)
	name, _ := c.values["name"].(string)
	if len(c.values) != 1 || uuid == "" && name == "" {
		return nil, fault.New(fault.Invalid, "Only one argument is permitted in attach op, either name or uuid").At(c.place).
			WithHint("attach:uuid=UUID or attach:name=NAME; drover disk list shows the disks that no instance has")
	}
	if uuid == "" {
		d, err := snap.DiskNamed(name)
		if fault.Is(err, fault.NotFound) {
			return nil, taken(snap, c, err, func(d *cluster.Disk) bool { return d.Name == name })
		}
		return d, err
	}
	if d := snap.Disk(uuid); d != nil {
		return d, nil
	}
	missing := fault.New(fault.NotFound, "No disk was found with this UUID: %s", uuid).At(c.place).WithHint("drover disk list shows the disks that no instance has")
	return nil, taken(snap, c, missing, func(d *cluster.Disk) bool { return d.UUID == uuid })
}

// taken is the error about a disk that is not detached: an instance has it, or nobody.
func taken(snap *cluster.Snapshot, c itemChange, missing error, is func(*cluster.Disk) bool) error {
	for inst := range snap.Instances() {
		for i := range inst.Disks {
			if is(&inst.Disks[i]) {
				return fault.New(fault.WrongState, "Disk %s is attached to instance '%s'", inst.Disks[i].UUID, inst.Name).At(c.place).
					WithHint("it has to be detached there first: drover instance modify %s --disk %d:detach", inst.Name, i)
			}
		}
	}
	return missing
}

// attach puts a detached disk into the list.
func (d *diskChanges) attach(env *Env, c itemChange, i int, inst *cluster.Instance) error {
	found, err := findDetached(env.snapshot(), c)
	if err != nil {
		return err
	}
	with := inst.Clone()
	with.Disks = d.after
	disk := found.Clone().Disk
	if err := fits(env.snapshot(), &disk, with); err != nil {
		return err.At(c.place)
	}
	if slices.ContainsFunc(d.after, func(have cluster.Disk) bool { return have.UUID == disk.UUID }) {
		return fault.New(fault.Invalid, "Disk %s is attached twice", disk.UUID).At(c.place)
	}
	relocate(&disk, inst.Name)
	d.after = insert(d.after, i, disk)
	d.attached = append(d.attached, disk)
	d.result = append(d.result, pair{"disk/" + strconv.Itoa(i), "attach:size=" + strconv.FormatInt(disk.Size, 10) + ",mode=" + disk.Mode})
	return nil
}

// fits refuses a disk that an instance cannot have as it is: it is of another template, or on other nodes.
func fits(snap *cluster.Snapshot, d *cluster.Disk, inst *cluster.Instance) *fault.Error {
	names := func(uuids []string) string {
		out := make([]string, len(uuids))
		for i, uuid := range uuids {
			out[i] = nodeName(snap, uuid)
		}
		return strings.Join(out, ", ")
	}
	template, nodes := inst.DiskTemplate(), instanceNodes(inst)
	elsewhere := slices.ContainsFunc(nodes, func(node string) bool { return !slices.Contains(d.Nodes, node) })
	switch {
	case template != d.Type && template != cluster.DiskDiskless:
		return fault.New(fault.Invalid, "Instance has '%s' template while disk has '%s' template", template, d.Type)
	case elsewhere:
		return fault.New(fault.WrongState, "Disk nodes are %s while the instance's nodes are %s", names(d.Nodes), names(nodes)).WithHint("a disk is attached where it is: move the instance there")
	case len(d.Nodes) == 0 || d.Nodes[0] != inst.PrimaryNode:
		return fault.New(fault.WrongState, "The disks' primary node is %s whereas the instance's primary node is %s.", names(d.Nodes[:1]), names(nodes[:1])).
			WithHint("migrate the instance, or fail it over: drover instance migrate %s", inst.Name)
	}
	return nil
}

// detach takes a disk out of the list, and keeps it.
func (d *diskChanges) detach(env *Env, c itemChange, i int) error {
	if env.Format < format.Disks {
		return fault.New(fault.WrongState, "disks that no instance has need format %d of the store, which has %d", format.Disks, env.Format).At(c.place).
			WithHint("drover cluster format info says who keeps the group from it")
	}
	disk := d.after[i]
	if !slices.ContainsFunc(d.before, func(had cluster.Disk) bool { return had.UUID == disk.UUID }) {
		return fault.New(fault.Invalid, "Disk %s comes with the same change that would detach it", disk.UUID).At(c.place)
	}
	relocate(&disk, "")
	d.after = cut(d.after, i)
	d.detached = append(d.detached, disk)
	d.result = append(d.result, pair{"disk/" + strconv.Itoa(i), "detach"})
	return nil
}

// relocate has the name of a disk that is a file be that of one of an instance, or of none.
func relocate(d *cluster.Disk, instance string) {
	if d.IVName = ""; len(d.LogicalID) != 2 || d.Type != cluster.DiskFile && d.Type != cluster.DiskSharedFile {
		return
	}
	file, _ := d.LogicalID[1].(string)
	dir := path.Dir(file)
	if instance == "" {
		dir = path.Dir(dir)
	}
	d.LogicalID = []any{d.LogicalID[0], path.Join(dir, instance, path.Base(file))}
}

// there refuses to attach disks that are not on their nodes, or on one that is offline.
func (d *diskChanges) there(ctx context.Context, env *Env, inst *cluster.Instance) error {
	for i := range d.attached {
		for _, uuid := range d.attached[i].Nodes {
			node := env.snapshot().Node(uuid)
			if node == nil {
				return fault.New(fault.WrongState, "the node with UUID %s, which had disk %s, is not in the cluster any more", uuid, d.attached[i].UUID)
			}
			if err := hasDetached(ctx, env, node, inst, d.attached[i].UUID); err != nil {
				return err
			}
		}
	}
	return nil
}

// hasDetached refuses a disk that a node does not have, neither detached nor, from an attempt that did not end, among those of the instance.
func hasDetached(ctx context.Context, env *Env, node *cluster.Node, inst *cluster.Instance, disk string) error {
	a, err := env.onlineAgent(node)
	if err != nil {
		return err
	}
	for _, of := range []hypervisor.Thing{hypervisor.DetachedDisk(disk), thingOf(inst)} {
		there, err := a.Instance(ctx, of)
		if err != nil && !fault.Is(err, fault.NotFound) {
			return fault.New(fault.Environment, "Error checking node %s: %w", node.Name, err)
		}
		if slices.ContainsFunc(there.Disks, func(d hypervisor.Disk) bool { return d.UUID == disk }) {
			return nil
		}
	}
	return fault.New(fault.WrongState, "Node %s does not have disk %s", node.Name, disk).WithHint("drover cluster verify says what is missing where; drover disk remove takes it out of the inventory")
}

// handing are the steps that have nodes know disks as detached, before the inventory tells of it, and as the instance's: what has failed leaves each of
// them with somebody, and can be done again.
func (d *diskChanges) handing(inst *cluster.Instance) (steps []work.Step) {
	for i := range d.detached {
		steps = append(steps, handed(&d.detached[i], inst, detachDisks, attachDisks)...)
	}
	for i := range d.attached {
		steps = append(steps, handed(&d.attached[i], inst, attachDisks, detachDisks)...)
	}
	return steps
}

func handed(disk *cluster.Disk, inst *cluster.Instance, do, undo string) (steps []work.Step) {
	what := map[string]string{detachDisks: "detach disk " + disk.UUID + " from instance " + inst.Name, attachDisks: "attach disk " + disk.UUID + " to instance " + inst.Name}
	left := map[string]string{
		detachDisks: "Disk " + disk.UUID + " is detached on a node, and not in the inventory; next: drover instance modify " + inst.Name + " --disk " + disk.UUID + ":detach, and then --disk attach:uuid=" + disk.UUID,
		attachDisks: "Disk " + disk.UUID + " is attached on a node, and not in the inventory; next: drover instance modify " + inst.Name + " --disk attach:uuid=" + disk.UUID,
	}
	for i, node := range disk.Nodes {
		which := ""
		if i > 0 {
			which = " on its second node"
		}
		s := onNode(do, node, inst.UUID, what[do]+which, dropArgs{inst.Name, []string{disk.UUID}})
		s.Fails = "Could not " + what[do]
		back := onNode(undo, "", "", what[undo]+which, dropArgs{inst.Name, []string{disk.UUID}})
		back.Fails, back.Left = "Could not "+what[undo], left[do]
		s.Undo = &back
		steps = append(steps, s)
	}
	return steps
}

// keeping are the changes of the inventory that go with an instance's whose disks were detached, or attached.
func (e *Env) keeping(snap *cluster.Snapshot, inst *cluster.Instance, args modifyArgs) (changes []cluster.Change, err error) {
	for i := range args.Detach {
		d := &args.Detach[i]
		changes = append(changes, cluster.Put(&cluster.DetachedDisk{Meta: cluster.NewMeta(d.UUID, e.nanos()), Disk: *d, Former: inst.Name}))
	}
	for _, uuid := range args.Attach {
		if snap.Disk(uuid) == nil {
			return nil, fault.New(fault.Conflict, "disk %s was attached to another instance meanwhile, or removed", uuid).At("disks")
		}
		changes = append(changes, cluster.Delete(cluster.KindDisk, uuid))
	}
	return changes, nil
}

// ownDisk locks the nodes of a detached disk: nobody attaches it meanwhile, or has attached it and not told the inventory.
func ownDisk(op *opcode.Opcode, snap *cluster.Snapshot) (request lock.Request, err error) {
	d, err := snap.FindDisk(op.Str("disk"))
	if err != nil {
		return nil, err
	}
	for _, node := range d.Disk.Nodes {
		request = append(request, want(lock.Node, node, lock.Exclusive), want(lock.NodeRes, node, lock.Exclusive))
	}
	return request, nil
}

// diskRemove prepares OP_DISK_REMOVE. With ignore_failures a node that is offline, or fails, does not keep the disk in the inventory.
func diskRemove(_ context.Context, env *Env) (Plan, error) {
	d, err := env.snapshot().FindDisk(env.Op.Str("disk"))
	if err != nil {
		return Plan{}, err
	}
	w, ignore := &work.Work{}, env.Op.Bool("ignore_failures")
	for _, uuid := range d.Disk.Nodes {
		node := env.snapshot().Node(uuid)
		if node == nil || node.Offline {
			away := fault.New(fault.WrongState, "Node %s is offline, or not in the cluster any more", nodeName(env.snapshot(), uuid))
			if !ignore {
				return Plan{}, away.WithHint("--ignore-failures takes the disk out of the inventory, and leaves what the node has of it there")
			}
			env.Warnf("%s: what it has of disk %s stays there", away.Message, d)
			continue
		}
		s := onNode(removeFromNode, uuid, d.UUID, "remove disk "+d.String(), meant{hypervisor.DetachedDisk(d.UUID).Name})
		s.Fails, s.Tolerated = "Can't remove disk "+d.String(), ignore
		s.Left = "Disk " + d.String() + " may be left on node " + node.Name + "; next: drover node orphans " + node.Name + ", drover node clear-orphans " + node.Name + " " + d.UUID
		w.Steps = append(w.Steps, s)
	}
	w.Steps = append(w.Steps, inInventory(forgetDisk, d.UUID, "forget disk "+d.String(), nil))
	return Plan{Work: w}, nil
}
