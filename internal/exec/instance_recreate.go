package exec

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/hypervisor"
	"github.com/drover-project/drover/internal/lock"
	"github.com/drover-project/drover/internal/opcode"
	"github.com/drover-project/drover/internal/placement"
	"github.com/drover-project/drover/internal/work"
)

// recreation is OP_INSTANCE_RECREATE_DISKS: disks that no node has any more are made anew, empty, where they were or on other nodes.
type recreation struct {
	env  *Env
	inst *cluster.Instance
	// nodes are those that get the disks, the primary one first; moved says that they are not those of before.
	nodes []*cluster.Node
	moved bool
	// disks are the numbers of those that are made, in order, and as what.
	disks []int
	as    map[int]cluster.Disk
}

// recreateLocks lock an instance, and share its nodes and those that get its disks: all, when they are still to be chosen.
func recreateLocks(op *opcode.Opcode, snap *cluster.Snapshot) (lock.Request, error) {
	request, err := ownInstance(op, snap)
	if err != nil {
		return nil, err
	}
	if op.Has("iallocator") {
		return append(request, sharing(lock.All)...), nil
	}
	nodes, err := listedNodes(op, snap)
	for _, n := range nodes {
		request = append(request, sharing(n.UUID)...)
	}
	return request, err
}

// eachOnce are nodes without those that come again.
func eachOnce(nodes []*cluster.Node) (once []*cluster.Node) {
	seen := map[string]bool{}
	for _, n := range nodes {
		if !seen[n.UUID] {
			once = append(once, n)
		}
		seen[n.UUID] = true
	}
	return once
}

// listedNodes are the nodes that an opcode lists, by UUID or by name.
func listedNodes(op *opcode.Opcode, snap *cluster.Snapshot) (nodes []*cluster.Node, err error) {
	for i, uuid := range op.Strings("node_uuids") {
		n := snap.Node(uuid)
		if n == nil {
			return nil, unknown("Node", uuid).At("node_uuids[" + strconv.Itoa(i) + "]")
		}
		nodes = append(nodes, n)
	}
	if len(nodes) > 0 {
		return nodes, nil
	}
	for _, name := range op.Strings("nodes") {
		n, err := namedNode(name, snap)
		if err != nil {
			return nil, err
		}
		nodes = append(nodes, n)
	}
	return nodes, nil
}

// recreateDisks prepares OP_INSTANCE_RECREATE_DISKS.
func (n Names) recreateDisks(ctx context.Context, env *Env) (Plan, error) {
	r := &recreation{env: env, as: map[int]cluster.Disk{}}
	var err error
	if r.inst, err = findInstance(env.Op, env.snapshot()); err != nil {
		return Plan{}, err
	}
	if len(r.inst.Disks) == 0 {
		return Plan{}, fault.New(fault.Invalid, "Instance '%s' has no disks", r.inst.Name)
	}
	if err := r.readDisks(); err != nil {
		return Plan{}, err
	}
	if err := r.chooseNodes(ctx, n.places); err != nil {
		return Plan{}, err
	}
	old := env.snapshot().Node(r.inst.PrimaryNode)
	if !r.moved || old == nil || !old.Offline {
		if err := env.notRunning(ctx, r.inst, "cannot recreate disks", cluster.AdminDown, cluster.AdminOffline); err != nil {
			return Plan{}, err
		}
	}
	if err := r.checkLost(ctx); err != nil {
		return Plan{}, err
	}
	return Plan{Work: &work.Work{Steps: r.steps()}}, nil
}

// readDisks reads which disks are made anew, and as what; all, where none is named.
func (r *recreation) readDisks() error {
	list := r.env.Op.List("disks")
	for i := range r.inst.Disks {
		if len(list) == 0 {
			r.disks, r.as[i] = append(r.disks, i), r.inst.Disks[i]
		}
	}
	for n, item := range list {
		place := "disks[" + strconv.Itoa(n) + "]"
		index, changes := readSelection(item)
		if index >= len(r.inst.Disks) {
			return fault.New(fault.Invalid, "Invalid disk index '%d'", index).At(place)
		}
		if _, twice := r.as[index]; twice {
			if _, pair := item.([]any); !pair {
				continue
			}
			return fault.New(fault.Invalid, "Some disks have been specified more than once: %d", index).At(place)
		}
		d, err := changedDisk(r.inst.Disks[index], index, changes, place)
		if err != nil {
			return err
		}
		r.disks, r.as[index] = append(r.disks, index), d
	}
	slices.Sort(r.disks)
	return nil
}

// readSelection reads the number of a disk, and what is to be different of it.
func readSelection(item any) (index int, changes map[string]any) {
	if pair, ok := item.([]any); ok && len(pair) == 2 {
		changes, _ = pair[1].(map[string]any)
		item = pair[0]
	}
	n, _ := item.(int64)
	return int(n), changes
}

// changedDisk is a disk with another size or mode.
func changedDisk(d cluster.Disk, index int, changes map[string]any, place string) (cluster.Disk, error) {
	var unmodifiable []string
	for key := range changes {
		if key != "size" && key != "mode" && key != "spindles" {
			unmodifiable = append(unmodifiable, key)
		}
	}
	if len(unmodifiable) > 0 {
		slices.Sort(unmodifiable)
		return d, fault.New(fault.Invalid, "Parameters for disk %d try to change unmodifyable parameter(s): %s", index, strings.Join(unmodifiable, ", ")).At(place)
	}
	if changes["spindles"] != nil {
		return d, fault.New(fault.Invalid, "Spindles in instance disks cannot be specified when exclusive storage is not active").At(place + ".spindles")
	}
	if mode, _ := changes["mode"].(string); mode != "" {
		d.Mode = mode
	}
	if changes["size"] == nil {
		return d, nil
	}
	size, err := diskSize(changes["size"])
	if err != nil {
		return d, err.At(place + ".size")
	}
	d.Size = size
	return d, nil
}

// chooseNodes finds the nodes that get the disks: those that had them, or as many others.
func (r *recreation) chooseNodes(ctx context.Context, p *places) error {
	op, snap := r.env.Op, r.env.snapshot()
	listed, err := listedNodes(op, snap)
	had := instanceNodes(r.inst)
	switch {
	case err != nil:
		return err
	case len(listed) > 0 && op.Has("iallocator"):
		return fault.New(fault.Invalid, "Do not specify both, iallocator and node").At("iallocator")
	case r.inst.Mirroring() == cluster.ExternalMirror && (op.Has("iallocator") || len(listed) > 0 && !slices.Equal(listed, []*cluster.Node{snap.Node(r.inst.PrimaryNode)})):
		return r.elsewhere()
	case !checkAllocator(op.Str("iallocator")):
		return fault.New(fault.Exhausted, "Can't compute nodes using iallocator '%s': it is not there", op.Str("iallocator")).At("iallocator")
	case op.Has("iallocator"):
		if listed, err = r.place(ctx, p); err != nil {
			return err
		}
	case len(listed) == 0:
		for _, uuid := range had {
			n := snap.Node(uuid)
			if n == nil {
				return fault.New(fault.WrongState, "the node with UUID %s, which had the disks, is not in the cluster any more", uuid)
			}
			r.nodes = append(r.nodes, n)
		}
		return nil
	}
	r.nodes, r.moved = listed, r.inst.Mirroring() != cluster.ExternalMirror // which are where they were
	switch {
	case len(listed) != len(had):
		return fault.New(fault.Invalid, "Instance %s currently has %d nodes, but %d replacement nodes were specified", r.inst.Name, len(had), len(listed)).At("nodes")
	case len(r.disks) != len(r.inst.Disks):
		return fault.New(fault.Invalid, "Can't recreate disks partially and change the nodes at the same time").At("disks")
	case len(listed) == 2 && listed[0] == listed[1]:
		return fault.New(fault.Invalid, "The secondary node cannot be the primary node").At("nodes")
	}
	for _, n := range listed {
		if err := hosting(n); err != nil {
			return err
		}
	}
	return nil
}

// elsewhere refuses other nodes for disks that every node reaches: another node does not know whether they are lost, and would make them in the place of
// those that are there.
func (r *recreation) elsewhere() error {
	return fault.New(fault.Invalid, "Disks of template '%s' are where every node reaches them, so another node can't have them made anew", r.inst.DiskTemplate()).At("nodes").
		WithHint("drover instance failover takes the instance to another node with its disks; recreate-disks makes those that are lost anew there")
}

// place has placement choose as many nodes as had the disks, in their group.
func (r *recreation) place(ctx context.Context, p *places) ([]*cluster.Node, error) {
	snap := r.env.snapshot()
	request := placement.Request{Instance: r.inst, NICs: len(r.inst.NICs)}
	if old := snap.Node(r.inst.PrimaryNode); old != nil {
		request.Group = old.Group
	}
	r.env.atEnd(func() { p.release(r.inst.UUID) })
	d := r.env.decide(ctx, p, request)
	if err := d.Err(); err != nil {
		return nil, err
	}
	var nodes []*cluster.Node
	var names []string
	for _, uuid := range []string{d.UUID, d.SecondUUID()} {
		if uuid == "" {
			continue
		}
		n := snap.Node(uuid)
		if n == nil {
			return nil, fault.New(fault.Conflict, "the node with UUID %s was removed meanwhile", uuid)
		}
		nodes, names = append(nodes, n), append(names, n.Name)
	}
	r.env.Infof("Selected nodes for instance %s: %s (%s)", r.inst.Name, strings.Join(names, ", "), d.Why)
	return nodes, nil
}

// checkLost refuses to make a disk that some node has, or whose other copy it has: it is not lost.
func (r *recreation) checkLost(ctx context.Context) error {
	asked := slices.Clone(r.nodes)
	for _, uuid := range instanceNodes(r.inst) {
		if n := r.env.snapshot().Node(uuid); r.moved && n != nil && !n.Offline && !slices.Contains(asked, n) {
			asked = append(asked, n)
		}
	}
	for _, n := range asked {
		a, err := r.env.onlineAgent(n)
		if err != nil {
			return err
		}
		there, err := disksThere(ctx, a, r.inst)
		if err != nil {
			return err
		}
		for _, i := range r.disks {
			if there[i] != nil {
				return r.refuse(i, n)
			}
			disk := r.inst.Disks[i].UUID
			switch _, err := a.Instance(ctx, hypervisor.DetachedDisk(disk)); {
			case err == nil:
				return fault.New(fault.WrongState, "Disk %d of instance %s is not lost: node %s has it, detached", i, r.inst.Name, n.Name).
					WithHint("drover instance modify %s --disk %d:detach, and then --disk attach:uuid=%s, attaches it", r.inst.Name, i, disk)
			case !fault.Is(err, fault.NotFound):
				return fault.New(fault.Environment, "Error checking node %s: %w", n.Name, err)
			}
		}
	}
	return nil
}

// refuse says of a disk that is not lost what can be done instead.
func (r *recreation) refuse(i int, on *cluster.Node) error {
	err := fault.New(fault.WrongState, "Disk %d of instance %s is on node %s, so it is not made anew", i, r.inst.Name, on.Name).At("disks")
	switch {
	case r.inst.Mirroring() == cluster.InternalMirror:
		return err.WithHint("drover instance replace-disks copies it where it is lost")
	case r.moved:
		return err.WithHint("drover instance move takes the instance to another node with what its disks have")
	}
	return err.WithHint("name those that are lost, as in --disk 1; to have it empty, remove it and add one (drover instance modify --disk %d:remove)", i)
}

type recreatedArgs struct {
	// Nodes are the UUIDs of those that have the disks now, the primary one first; none where they are those of before.
	Nodes []string       `json:"nodes,omitempty"`
	Disks []recreatedOne `json:"disks"`
	MTime int64          `json:"mtime"`
}

type recreatedOne struct {
	Disk int    `json:"disk"`
	Size int64  `json:"size"`
	Mode string `json:"mode"`
}

// noteRecreated is the verb that notes that disks were made anew, as what and where.
const noteRecreated = "note-recreated"

func recreated(_ *Env, snap *cluster.Snapshot, inst *cluster.Instance, a recreatedArgs) ([]cluster.Change, any, error) {
	for _, uuid := range a.Nodes {
		if snap.Node(uuid) == nil {
			return nil, nil, fault.New(fault.NotFound, "the node with UUID %s is not in the cluster any more", uuid)
		}
	}
	for _, one := range a.Disks {
		eachOf(inst, []int{one.Disk}, func(d *cluster.Disk) {
			d.Size, d.Mode, d.MTime, d.Stale = one.Size, one.Mode, a.MTime, nil
			if len(d.Children) > 0 {
				d.Children[0].Size = one.Size // the data
			}
		})
	}
	if len(a.Nodes) == 0 {
		return nil, nil, nil
	}
	inst.PrimaryNode = a.Nodes[0]
	eachDisk(inst, func(d *cluster.Disk) {
		d.Nodes = slices.Clone(a.Nodes)
		if d.Type == cluster.DiskDRBD {
			d.LogicalID = nil
		}
	})
	allotDevices(snap, inst)
	return nil, nil, nil
}

// steps make the disks on each node, and note it.
func (r *recreation) steps() (steps []work.Step) {
	name, uuid := r.inst.Name, r.inst.UUID
	for i, n := range r.nodes {
		disks, uuids := r.made(i)
		s := onNode(prepareDisks, n.UUID, uuid, "make the disks of instance "+name+" anew, empty", prepareArgs{name, disks})
		s.Fails = "Could not create the disks on node " + n.Name
		back := onNode(dropDisks, "", "", "remove the new disks of instance "+name, dropArgs{name, uuids})
		if r.moved {
			back = onNode(removeFromNode, "", "", "remove the new disks of instance "+name, meant{name})
		}
		back.Fails = "Could not remove the new disks of instance " + name + " from node " + n.Name
		back.Left = fmt.Sprintf("Node %s has them, empty; drover instance info %s shows whether the instance is there", n.Name, name)
		if r.inst.Mirroring() != cluster.ExternalMirror { // it may be that the node did not know of those that are there, and they would go
			s.Undo = &back
		}
		steps = append(steps, s)
	}
	args := recreatedArgs{MTime: r.env.nanos()}
	for _, i := range r.disks {
		args.Disks = append(args.Disks, recreatedOne{i, r.as[i].Size, r.as[i].Mode})
	}
	note := inInventory(noteRecreated, uuid, "note that the disks of instance "+name+" were made anew", args)
	if r.moved {
		for _, n := range r.nodes {
			args.Nodes = append(args.Nodes, n.UUID)
		}
		note.Args, note.Text = encodeArgs(args), "have node "+r.nodes[0].Name+" be the primary node of instance "+name
		steps[0].Says = []string{" - WARNING: Changing the instance's nodes, you will have to remove any disks left on the older nodes manually"}
	}
	note.Keeps = true
	steps = append(steps, note)
	if len(r.nodes) > 1 {
		steps = append(steps, r.awaiting())
	}
	return steps
}

// made are the disks as one of the nodes makes them: those of the second one are copies.
func (r *recreation) made(node int) (disks []hypervisor.Disk, uuids []string) {
	for _, i := range r.disks {
		d := r.as[i]
		h := diskOf(&d)
		if node > 0 && h.Template == cluster.DiskDRBD {
			h.From = r.nodes[0].Name
		}
		disks, uuids = append(disks, h), append(uuids, h.UUID)
	}
	return disks, uuids
}

func (r *recreation) awaiting() work.Step {
	s := awaiting(r.inst, r.nodes[1].UUID)
	args := awaitArgs{Name: r.inst.Name}
	for _, i := range r.disks {
		args.Disks = append(args.Disks, diskName{r.inst.Disks[i].UUID, r.inst.Disks[i].IVName})
	}
	s.Args = encodeArgs(args)
	return s
}
