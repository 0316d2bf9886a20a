package exec

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/drover-project/drover/internal/agent/exports"
	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/hypervisor"
	"github.com/drover-project/drover/internal/work"
)

// unknownThing is something that a node has and the inventory does not know, as OP_NODE_ORPHANS tells of it.
type unknownThing struct {
	UUID  string           `json:"uuid"`
	Name  string           `json:"name"`
	State hypervisor.State `json:"state"`
	Disks int              `json:"disks"`
	Size  int              `json:"size"` // MiB
	// MadeBy is the mark that it has.
	MadeBy hypervisor.Mark `json:"made_by"`
	// Of is the UUID of the instance that a disk belongs to.
	Of string `json:"of,omitempty"`
	// Kind is orphan for what a job of this store has left, disk for one of an instance of the inventory that has no such disk there,
	// export for that of an instance which the inventory does not know, dumps for what is not whole of one, and stranger for everything else; Why
	// says why it is taken for that.
	Kind string `json:"kind"`
	Why  string `json:"why"`
}

// The kinds of things that the inventory does not know.
const (
	orphan   = "orphan"
	stranger = "stranger"
	// unknownDisk has no mark: a job may have left it, or it was added behind the backup that the store was restored from.
	unknownDisk = "disk"
	// unknownExport is whole, and the instance may be made of it again: it goes when it is removed as an export.
	unknownExport = "export"
	// halfExport has no mark either, and its id for a UUID: a job makes an export of it, or could not discard it.
	halfExport = "dumps"
)

// classified tells what a job of this store has left from what is somebody else's. Job ids come again under another life of the store,
// so only the mark of the present one counts; and what runs is in use, whoever made it.
func classified(i *hypervisor.Instance, life string) unknownThing {
	t := unknownThing{UUID: i.UUID, Name: i.Name, State: i.State, Disks: len(i.Disks), MadeBy: i.MadeBy, Kind: stranger}
	for k := range i.Disks {
		t.Size += i.Disks[k].Size
	}
	switch {
	case i.UUID == "":
		t.Why = "it has no UUID: Drover did not make it"
	case i.MadeBy.IsZero():
		t.Why = "nobody says which job made it"
	case i.MadeBy.Life != life:
		t.Why = "it was made by a job of another store, or of this one before it was restored"
	case i.Active():
		t.Why = "it is " + string(i.State)
	default:
		t.Kind, t.Why = orphan, i.MadeBy.String()
	}
	return t
}

// unknownDisks are the disks of what a node has of an instance which that does not have in the inventory, on whatever node.
func unknownDisks(snap *cluster.Snapshot, inst *cluster.Instance, there *hypervisor.Instance) (all []unknownThing) {
	for _, d := range there.Disks {
		if slices.ContainsFunc(inst.Disks, func(known cluster.Disk) bool { return known.UUID == d.UUID }) {
			continue
		}
		t := unknownThing{UUID: d.UUID, Of: inst.UUID, Name: inst.Name, State: there.State, Disks: 1, Size: d.Size, Kind: unknownDisk,
			Why: "instance " + inst.Name + " has no such disk in the inventory"}
		if why := keptElsewhere(snap, inst, d.UUID); why != "" {
			t.Kind, t.Why = stranger, why
		}
		all = append(all, t)
	}
	return all
}

// keptElsewhere says whose a disk is in the inventory that a node has otherwise: attaching it, or detaching it, has not come to its end, and could not be
// taken back. It is nothing that may be cleared away. inst is the instance that the node says has it, nil if it is detached there.
func keptElsewhere(snap *cluster.Snapshot, inst *cluster.Instance, disk string) string {
	if d := snap.Disk(disk); d != nil {
		return "it is the disk " + d.String() + ", which no instance has in the inventory; drover instance modify " + inst.Name + " --disk attach:uuid=" + disk + " attaches it to its end"
	}
	owner, i := snap.OwnerOf(disk)
	switch {
	case owner == nil:
		return ""
	case inst != nil:
		return "it is disk " + strconv.Itoa(i) + " of instance " + owner.Name + " in the inventory"
	}
	return "it is disk " + strconv.Itoa(i) + " of instance " + owner.Name + " in the inventory, and detached on the node; drover instance modify " + owner.Name + " --disk " + strconv.Itoa(i) +
		":detach detaches it to its end"
}

// unknownDetached is a disk that is detached on a node, and not in the inventory. It has data that somebody may want, so nobody means it who names nothing.
func unknownDetached(snap *cluster.Snapshot, there *hypervisor.Instance, life string) unknownThing {
	t := classified(there, life)
	if len(there.Disks) == 0 {
		return t
	}
	if why := keptElsewhere(snap, nil, there.UUID); why != "" {
		t.Kind, t.Why = stranger, why
	} else if t.Kind == orphan {
		t.Kind, t.Why = unknownDisk, "it was detached, and the inventory does not know it"
	}
	return t
}

// unknownOf is what a node has that the inventory does not know, of one thing that is there.
func unknownOf(snap *cluster.Snapshot, there *hypervisor.Instance, life string) []unknownThing {
	inst := snap.Instance(there.UUID)
	switch {
	case there.Detached() && snap.Disk(there.UUID) != nil:
		return nil
	case there.Detached():
		return []unknownThing{unknownDetached(snap, there, life)}
	case there.UUID == "" || inst == nil:
		return []unknownThing{classified(there, life)}
	}
	return unknownDisks(snap, inst, there)
}

// next says what may be done about something that a node has and the inventory does not know.
func (e *Env) next(node string, i *hypervisor.Instance) string {
	t := classified(i, e.Life)
	if i.Detached() {
		t = unknownDetached(e.snapshot(), i, e.Life)
	}
	if t.Kind == stranger {
		return "it is left alone, for " + t.Why + "; next: drover node orphans " + node
	}
	return "next: drover node clear-orphans " + node + " " + i.UUID
}

// unknownOn lists what a node has that the inventory does not know.
func (e *Env) unknownOn(ctx context.Context, node *cluster.Node) ([]unknownThing, error) {
	a, err := e.onlineAgent(node)
	if err != nil {
		return nil, err
	}
	list, err := a.Instances(ctx)
	if err != nil {
		return nil, fault.New(fault.Environment, "Can't get data from node %s: %w", node.Name, err)
	}
	snap, out := e.snapshot(), []unknownThing{}
	for i := range list {
		out = append(out, unknownOf(snap, &list[i], e.Life)...)
	}
	found, err := e.unknownExports(ctx, node, a)
	return append(out, found...), err
}

// unknownExports lists what a node keeps of exports: those of instances that the inventory does not know, and what is not whole.
func (e *Env) unknownExports(ctx context.Context, node *cluster.Node, a Node) (out []unknownThing, err error) {
	whole, err := a.Exports(ctx)
	var halves []exports.Half
	if err == nil {
		halves, err = a.HalfExports(ctx)
	}
	if err != nil && !fault.Is(err, fault.Unsupported) { // an agent of before tells of none
		return nil, fault.New(fault.Environment, "Can't get data from node %s: %w", node.Name, err)
	}
	snap := e.snapshot()
	for _, name := range whole {
		if snap.InstanceNamed(name) == nil {
			out = append(out, unknownThing{Name: name, Kind: unknownExport, Why: "it is an export of an instance that is not in the inventory; drover backup remove " + name + " removes it"})
		}
	}
	for _, h := range halves {
		const mib = 1 << 20
		out = append(out, unknownThing{UUID: h.ID, Name: ownerOfDumps(snap, h.Files), Disks: len(h.Files), Size: int((h.Size + mib - 1) / mib), Kind: halfExport,
			Why: "it is no whole export, and something of it was written last at " + h.Since.UTC().Format(time.RFC3339) + "; a job may be making it"})
	}
	return out, nil
}

// ownerOfDumps is the name of the instance whose disks were dumped, whose UUIDs dumps are called by; "-" if it has none of them any more.
func ownerOfDumps(snap *cluster.Snapshot, files []string) string {
	for inst := range snap.Instances() {
		if slices.ContainsFunc(inst.Disks, func(d cluster.Disk) bool { return slices.Contains(files, d.UUID) }) {
			return inst.Name
		}
	}
	return "-"
}

// nodeOrphans prepares OP_NODE_ORPHANS. It holds no locks, so what a creation has just made, and is about to add to the inventory, is
// listed, too.
func nodeOrphans(ctx context.Context, env *Env) (Plan, error) {
	node, err := findNode(env.Op, "node", env.snapshot())
	if err != nil {
		return Plan{}, err
	}
	found, err := env.unknownOn(ctx, node)
	return answer(found), err
}

// nodeClearOrphans prepares OP_NODE_CLEAR_ORPHANS. It has its node for itself, which a creation, and an export, shares from before its disks are made until it
// is over: so none is under way that has made something there and not added it to the inventory, for one that a restart interrupted goes
// on before anybody else gets a lock.
func nodeClearOrphans(ctx context.Context, env *Env) (Plan, error) {
	node, err := findNode(env.Op, "node", env.snapshot())
	if err != nil {
		return Plan{}, err
	}
	found, err := env.unknownOn(ctx, node)
	if err != nil {
		return Plan{}, err
	}
	wanted := env.Op.Strings("uuids")
	for _, uuid := range wanted {
		if err := checkOrphan(env.snapshot(), node, found, uuid); err != nil {
			return Plan{}, err
		}
	}
	w, removed := &work.Work{}, []string{}
	for _, t := range found {
		if !t.cleared(wanted) {
			continue
		}
		w.Steps, removed = append(w.Steps, clearOne(node, &t)), append(removed, t.UUID)
	}
	if len(removed) == 0 {
		return Plan{}, fault.New(fault.WrongState, "Node %s has nothing that a job has left there", node.Name).
			WithHint("drover node orphans %s lists what else it has and the inventory does not know", node.Name)
	}
	w.Result = encodeArgs(removed)
	return Plan{Dry: removed, Work: w}, nil
}

// cleared reports whether it is to be removed when these are asked for. Disks of instances are not what anybody means who names nothing.
func (t *unknownThing) cleared(wanted []string) bool {
	switch t.Kind {
	case orphan:
		return len(wanted) == 0 || slices.Contains(wanted, t.UUID)
	case unknownDisk, halfExport:
		return slices.Contains(wanted, t.UUID)
	}
	return false
}

// clearOne is the step that removes something from a node which the inventory does not know.
func clearOne(node *cluster.Node, t *unknownThing) work.Step {
	if t.Kind == unknownDisk && t.Of != "" {
		s := onNode(dropDisks, node.UUID, t.Of, "remove disk "+t.UUID+", which instance "+t.Name+" has no more", dropArgs{t.Name, []string{t.UUID}})
		s.Fails = "Could not remove disk " + t.UUID + " of instance " + t.Name + " from node " + node.Name
		return s
	}
	if t.Kind == halfExport {
		s := onNode(discardExport, node.UUID, "", "discard dumps "+t.UUID+", which are no whole export", exportArgs{t.UUID})
		s.Fails = "Could not discard the dumps " + t.UUID + " on node " + node.Name
		return s
	}
	s := onNode(removeFromNode, node.UUID, t.UUID, "remove what is left of instance "+t.Name+" ("+t.UUID+")", meant{t.Name})
	s.Fails = "Could not remove what is left of instance " + t.Name + " (" + t.UUID + ") from node " + node.Name
	return s
}

// checkOrphan refuses to remove what no job has left.
func checkOrphan(snap *cluster.Snapshot, node *cluster.Node, found []unknownThing, uuid string) error {
	if inst := snap.Instance(uuid); inst != nil {
		return fault.New(fault.WrongState, "%s is instance '%s' of the cluster", uuid, inst.Name).At("uuids").WithHint("drover instance remove removes it")
	}
	i := slices.IndexFunc(found, func(t unknownThing) bool { return t.UUID == uuid })
	switch {
	case i < 0:
		return fault.New(fault.NotFound, "Node %s has nothing with the UUID %s", node.Name, uuid).At("uuids").WithHint("drover node orphans %s lists what is there", node.Name)
	case found[i].Kind == stranger:
		return fault.New(fault.WrongState, "%s (%s) on node %s is left alone: %s", found[i].Name, uuid, node.Name, found[i].Why).At("uuids").
			WithHint("whoever knows what it is has to remove it on the node")
	}
	return nil
}
