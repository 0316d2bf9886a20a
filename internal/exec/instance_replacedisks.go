package exec

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/hooks"
	"github.com/drover-project/drover/internal/hypervisor"
	"github.com/drover-project/drover/internal/lock"
	"github.com/drover-project/drover/internal/opcode"
	"github.com/drover-project/drover/internal/placement"
	"github.com/drover-project/drover/internal/work"
)

// The modes of OP_INSTANCE_REPLACE_DISKS.
const (
	replaceOnPrimary   = "replace_on_primary"
	replaceOnSecondary = "replace_on_secondary"
	replaceSecondary   = "replace_new_secondary"
	replaceFaulty      = "replace_auto"
)

// The verbs that change mirrored disks in the inventory.
const (
	markStale  = "mark-stale"  // copies are out of date, for they are being made anew
	renewCopy  = "renew-copy"  // they were made anew
	moveSecond = "move-second" // another node has the second copy of all disks
)

// replacement is OP_INSTANCE_REPLACE_DISKS: copies of mirrored disks are made anew, on the node that has them or on another one.
type replacement struct {
	env  *Env
	inst *cluster.Instance
	// from has the copy that counts, on has the one that is made anew; to is the node that has it afterwards.
	from, on, to *cluster.Node
	disks        []int
	early        bool
}

// replaceLocks locks an instance, and shares its nodes and the new one: all, when that is still to be chosen.
func replaceLocks(op *opcode.Opcode, snap *cluster.Snapshot) (lock.Request, error) {
	request, err := ownInstance(op, snap)
	if err != nil {
		return nil, err
	}
	further, err := furtherNode(op, "remote_node", op.Has("iallocator"), snap)
	return append(request, further...), err
}

// replaces is the node that takes the place of the second one; nil if the second one stays.
func (r *replacement) replaces() *cluster.Node {
	if second := r.env.secondary(r.inst); second != nil && r.to.UUID != second.UUID && r.to.UUID != r.inst.PrimaryNode {
		return r.to
	}
	return nil
}

// replaceDisks prepares OP_INSTANCE_REPLACE_DISKS.
func (n Names) replaceDisks(ctx context.Context, env *Env) (Plan, error) {
	if err := checkReplacement(env.Op); err != nil {
		return Plan{}, err
	}
	inst, err := findInstance(env.Op, env.snapshot())
	if err != nil {
		return Plan{}, err
	}
	r := &replacement{env: env, inst: inst, early: env.Op.Bool("early_release")}
	if len(inst.Disks) == 0 || slices.ContainsFunc(inst.Disks, func(d cluster.Disk) bool { return d.Type != cluster.DiskDRBD }) {
		return Plan{}, fault.New(fault.Invalid, "Can only run replace disks for DRBD8-based instances")
	}
	second, primary := env.secondary(inst), env.snapshot().Node(inst.PrimaryNode)
	if second == nil || primary == nil {
		return Plan{}, fault.New(fault.WrongState, "The instance has a strange layout, expected one secondary but found %d", len(inst.SecondaryNodes()))
	}
	r.from, r.on, r.to = primary, second, second
	if err := r.choose(ctx, n.places); err != nil {
		return Plan{}, err
	}
	if len(r.disks) == 0 {
		return Plan{Do: func(context.Context) (any, error) {
			env.Logf("No disks need replacement for instance '%s'", inst.Name)
			return nil, nil
		}}, nil
	}
	if err := r.check(ctx); err != nil {
		return Plan{}, err
	}
	return Plan{Work: r.plan(), Decided: hooks.Subject{Target: r.replaces()}}, nil
}

// checkReplacement refuses parameters that contradict one another.
func checkReplacement(op *opcode.Opcode) error {
	mode, node, allocator := op.Str("mode"), named(op, "remote_node"), op.Has("iallocator")
	switch {
	case mode == replaceSecondary && !node && !allocator:
		return fault.New(fault.Invalid, "When changing the secondary either an iallocator script must be used or the new node given").At("remote_node").
			WithHint("with iallocator=%s placement chooses the node", builtinAllocator)
	case mode == replaceSecondary && node && allocator:
		return fault.New(fault.Invalid, "Do not specify both, iallocator and node").At("iallocator")
	case mode != replaceSecondary && (node || allocator):
		return fault.New(fault.Invalid, "The iallocator and new node options can only be used when changing the secondary node").At("mode")
	case !checkAllocator(op.Str("iallocator")):
		return fault.New(fault.Exhausted, "Can't compute nodes using iallocator '%s': it is not there", op.Str("iallocator")).At("iallocator")
	case len(op.List("disks")) > 0 && (mode == replaceSecondary || mode == replaceFaulty):
		return fault.New(fault.Invalid, "Cannot specify disks to be replaced").At("disks")
	}
	return nil
}

// choose decides which copies are made anew, and where.
func (r *replacement) choose(ctx context.Context, p *places) error {
	op := r.env.Op
	for _, v := range op.List("disks") {
		i, _ := v.(int64)
		if int(i) >= len(r.inst.Disks) {
			return fault.New(fault.Invalid, "Invalid disk index %d: the instance has %d disks", i, len(r.inst.Disks)).At("disks")
		}
		r.disks = append(r.disks, int(i))
	}
	if len(r.disks) == 0 {
		for i := range r.inst.Disks {
			r.disks = append(r.disks, i)
		}
	}
	switch op.Str("mode") {
	case replaceOnPrimary:
		r.from, r.on, r.to = r.on, r.from, r.from
	case replaceFaulty:
		r.disks = slices.DeleteFunc(r.disks, func(i int) bool { return !slices.Contains(r.inst.Disks[i].Stale, r.on.UUID) })
	case replaceSecondary:
		return r.chooseNode(ctx, p)
	}
	return nil
}

// chooseNode finds the new secondary node.
func (r *replacement) chooseNode(ctx context.Context, p *places) error {
	op, snap := r.env.Op, r.env.snapshot()
	var err error
	if named(op, "remote_node") {
		if r.to, err = findNode(op, "remote_node", snap); err != nil {
			return err
		}
		switch r.to {
		case r.from:
			return fault.New(fault.Invalid, "The specified node is the primary node of the instance").At("remote_node")
		case r.on:
			return fault.New(fault.Invalid, "The specified node is already the secondary node of the instance").At("remote_node").
				WithHint("to copy its disks anew there, say replace_on_secondary")
		}
	} else {
		r.env.atEnd(func() { p.release(r.inst.UUID) })
		d := r.env.decide(ctx, p, placement.Request{Instance: r.inst, NICs: len(r.inst.NICs), Beside: r.from.UUID, Group: r.from.Group, Leaves: []string{r.on.UUID},
			IgnorePolicy: op.Bool("ignore_ipolicy")})
		if err := d.Err(); err != nil {
			return err
		}
		if r.to = snap.Node(d.UUID); r.to == nil {
			return fault.New(fault.Conflict, "the node %s was removed meanwhile", d.Node)
		}
		r.env.Infof("Selected new secondary for instance '%s': %s (%s)", r.inst.Name, r.to.Name, d.Why)
	}
	if r.on.Offline && !r.early {
		r.early = true
		r.env.Infof("Old secondary %s is offline, automatically enabling early-release mode", r.on.Name)
	}
	if err := r.env.checkOtherGroup(r.inst, r.from, r.to); err != nil {
		return err
	}
	return hosting(r.to)
}

// check refuses to copy from what is no good copy itself, and nodes that cannot be told anything.
func (r *replacement) check(ctx context.Context) error {
	if _, err := r.env.onlineAgent(r.to); err != nil {
		return err
	}
	a, err := r.env.onlineAgent(r.from)
	if err != nil {
		return err
	}
	if i, why, err := r.env.degraded(ctx, r.inst, a, r.from.UUID, r.disks); err != nil {
		return err
	} else if i >= 0 {
		return fault.New(fault.WrongState, "Disk %d is degraded on node %s, so it cannot be copied from there: %s", i, r.from.Name, why)
	}
	return nil
}

type copyArgs struct {
	Node  string `json:"node"` // UUID
	Disks []int  `json:"disks"`
}

type moveSecondArgs struct {
	From string `json:"from"` // UUID
	To   string `json:"to"`   // UUID
}

// plan are the steps of the replacement.
func (r *replacement) plan() *work.Work {
	name := r.inst.Name
	var list []string
	for _, i := range r.disks {
		list = append(list, strconv.Itoa(i))
	}
	w := &work.Work{Steps: r.inPlace()}
	if r.to != r.on {
		w.Steps = r.elsewhere()
	}
	first := &w.Steps[0]
	first.Says = append([]string{fmt.Sprintf("Replacing disk(s) %s for instance '%s'", strings.Join(list, ", "), name),
		"Current primary node: " + nodeName(r.env.snapshot(), r.inst.PrimaryNode),
		"Current secondary node: " + nodeName(r.env.snapshot(), r.inst.SecondaryNodes()[0])}, first.Says...)
	return w
}

// copies are the disks as the node makes them that gets them.
func (r *replacement) copies() (disks []hypervisor.Disk, uuids []string) {
	for _, i := range r.disks {
		d := diskOf(&r.inst.Disks[i])
		d.From = r.from.Name
		disks, uuids = append(disks, d), append(uuids, d.UUID)
	}
	return disks, uuids
}

// inPlace makes copies anew on the node that has them. From the first step on they count as out of date, so whatever fails then, nobody takes them for
// good ones.
func (r *replacement) inPlace() (steps []work.Step) {
	name, uuid := r.inst.Name, r.inst.UUID
	disks, uuids := r.copies()
	stale := inInventory(markStale, uuid, "note that the copies on node "+r.to.Name+" are out of date", copyArgs{r.to.UUID, r.disks})
	stale.Keeps = true
	steps = append(steps, stale)
	if r.to.UUID != r.inst.PrimaryNode { // where it has nothing to run
		stop := onNode(stopInstance, r.to.UUID, uuid, "stop what runs of instance "+name+" beside its primary node", stopArgs{Name: name})
		stop.Fails = "Could not stop instance " + name + " on node " + r.to.Name
		steps = append(steps, stop)
	}
	drop := onNode(dropDisks, r.to.UUID, uuid, "remove the copies of the disks of instance "+name, dropArgs{name, uuids})
	drop.Fails = "Can't remove old disks on node " + r.to.Name
	prepare := onNode(prepareDisks, r.to.UUID, uuid, "make the copies of the disks of instance "+name+" anew", prepareArgs{name, disks})
	prepare.Fails = "Can't create new disks on node " + r.to.Name
	renew := inInventory(renewCopy, uuid, "note that the copies on node "+r.to.Name+" are up to date", copyArgs{r.to.UUID, r.disks})
	return append(steps, drop, prepare, r.await(), renew)
}

// await is the step that waits for the new copies.
func (r *replacement) await() work.Step {
	s := awaiting(r.inst, r.to.UUID)
	args := awaitArgs{Name: r.inst.Name}
	for _, i := range r.disks {
		args.Disks = append(args.Disks, diskName{r.inst.Disks[i].UUID, r.inst.Disks[i].IVName})
	}
	s.Args = encodeArgs(args)
	return s
}

// elsewhere makes the second copies on another node. The old ones go when the new ones are complete; with early release, and where the node of the old
// ones is away, before.
func (r *replacement) elsewhere() []work.Step {
	name, uuid := r.inst.Name, r.inst.UUID
	disks, _ := r.copies()
	prepare := onNode(prepareDisks, r.to.UUID, uuid, "make the second copies of the disks of instance "+name, prepareArgs{name, disks})
	prepare.Fails = "Can't create new disks on node " + r.to.Name
	back := onNode(removeFromNode, "", "", "remove the new copies of the disks of instance "+name, meant{name})
	back.Fails = "Could not remove the new copies of instance " + name + " from node " + r.to.Name
	back.Left = "Node " + r.to.Name + " still has them; nothing uses them (" + uuid + ")"
	prepare.Undo = &back
	move := inInventory(moveSecond, uuid, "have node "+r.to.Name+" have the second copies of instance "+name, moveSecondArgs{r.on.UUID, r.to.UUID})
	move.Keeps = true
	await := r.await()
	steps := []work.Step{prepare, await, move}
	if r.early {
		steps = []work.Step{prepare, move}
	}
	if r.on.Offline {
		last := &steps[len(steps)-1]
		last.Ends = append(last.Ends, " - WARNING: Node "+r.on.Name+" is offline: what it has of instance "+name+" ("+uuid+") stays there until its disks are removed by hand")
	} else {
		remove := onNode(removeFromNode, r.on.UUID, uuid, "remove the old copies of the disks of instance "+name, meant{name})
		remove.Fails, remove.Tolerated = "Can't remove old disks on node "+r.on.Name, true
		remove.Left = "Node " + r.on.Name + " still has copies of instance " + name + " (" + uuid + ") that nothing uses"
		steps = append(steps, remove)
	}
	if r.early {
		steps = append(steps, await)
	}
	return steps
}

var mirrorVerbs = map[string]verb{
	markStale: altering(func(_ *Env, _ *cluster.Snapshot, inst *cluster.Instance, a copyArgs) ([]cluster.Change, any, error) {
		eachOf(inst, a.Disks, func(d *cluster.Disk) { d.Stale = append(without(d.Stale, a.Node), a.Node) })
		return nil, nil, nil
	}),
	renewCopy: altering(func(_ *Env, _ *cluster.Snapshot, inst *cluster.Instance, a copyArgs) ([]cluster.Change, any, error) {
		eachOf(inst, a.Disks, func(d *cluster.Disk) { d.Stale = without(d.Stale, a.Node) })
		return nil, nil, nil
	}),
	moveSecond: altering(func(_ *Env, snap *cluster.Snapshot, inst *cluster.Instance, a moveSecondArgs) ([]cluster.Change, any, error) {
		if snap.Node(a.To) == nil {
			return nil, nil, fault.New(fault.NotFound, "the node with UUID %s is not in the cluster any more", a.To)
		}
		eachDisk(inst, func(d *cluster.Disk) {
			d.Nodes, d.Stale, d.LogicalID = []string{inst.PrimaryNode, a.To}, without(d.Stale, a.From), nil
		})
		allotDevices(snap, inst)
		return nil, nil, nil
	}),
}

// allDisks are the numbers of all disks of an instance.
func allDisks(inst *cluster.Instance) []int {
	out := make([]int, len(inst.Disks))
	for i := range out {
		out[i] = i
	}
	return out
}

func eachOf(inst *cluster.Instance, disks []int, do func(*cluster.Disk)) {
	for _, i := range disks {
		if i < len(inst.Disks) {
			do(&inst.Disks[i])
		}
	}
}

func without(list []string, item string) []string {
	return slices.DeleteFunc(list, func(s string) bool { return s == item })
}
