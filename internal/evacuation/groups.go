package evacuation

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/placement"
)

// GroupRequest is which instances are to come to other groups: all that an instance has is to be on nodes of one of them.
type GroupRequest struct {
	Instances []*cluster.Instance
	// Targets are the groups that they may go to.
	Targets []*cluster.Group
	// Asked: the groups were asked for, so one takes instances whatever its policy of allocation.
	Asked bool
}

// InstancesOf are those that have anything on nodes of a group, by name.
func InstancesOf(snap *cluster.Snapshot, group string) []*cluster.Instance {
	var out []*cluster.Instance
	for n := range snap.NodesIn(group) {
		out = append(out, Instances(snap, n.UUID, Everything)...)
	}
	slices.SortFunc(out, func(a, b *cluster.Instance) int { return cluster.CompareNames(a.Name, b.Name) })
	return slices.CompactFunc(out, func(a, b *cluster.Instance) bool { return a.UUID == b.UUID })
}

// GroupsOf are the UUIDs of the groups in which an instance has anything.
func GroupsOf(snap *cluster.Snapshot, inst *cluster.Instance) (groups []string) {
	for _, uuid := range nodesOf(inst) {
		if n := snap.Node(uuid); n != nil && !slices.Contains(groups, n.Group) {
			groups = append(groups, n.Group)
		}
	}
	return groups
}

func nodesOf(inst *cluster.Instance) []string {
	return append([]string{inst.PrimaryNode}, inst.SecondaryNodes()...)
}

// PlanGroups decides how instances come to other groups, by name; the largest are decided about first. Of the groups that can take an instance it
// goes to the one that it reaches by the fewest moves, then to the one whose policy of allocation is the best, then to the one where most memory is free
// on its new primary node.
func PlanGroups(w placement.World, r GroupRequest) []Course {
	g := &regrouping{planner: &planner{World: w}, GroupRequest: r}
	same := func(*cluster.Instance) int { return 0 }
	return g.decide(r.Instances, same, g.course)
}

// regrouping is a plan for groups.
type regrouping struct {
	*planner
	GroupRequest
}

// way is how an instance comes to one group, and what comes of it.
type way struct {
	*planner

	group  *cluster.Group
	inst   *cluster.Instance // as it is behind its moves
	moves  []Move
	cannot string
}

// course decides about one instance: it looks at each group, and takes the best.
func (g *regrouping) course(c *Course) {
	if c.Instance.Mirroring() == cluster.Unmirrored {
		c.Cannot = "its disks (" + c.Instance.DiskTemplate() + ") are on one node alone"
		return
	}
	var ways []*way
	var why []string
	for _, target := range g.Targets {
		w := &way{planner: g.fork(), group: target, inst: c.Instance}
		if w.cannot = g.closed(c.Instance, target); w.cannot == "" {
			w.find()
		}
		if w.cannot != "" {
			why = append(why, "group "+target.Name+": "+w.cannot)
			continue
		}
		ways = append(ways, w)
	}
	if len(ways) == 0 {
		c.Cannot = cmp.Or(strings.Join(why, "; "), "there is no group that it could go to")
		return
	}
	best := slices.MinFunc(ways, func(a, b *way) int {
		return cmp.Or(cmp.Compare(len(a.moves), len(b.moves)), cmp.Compare(placement.AllocationRank(a.group), placement.AllocationRank(b.group)),
			cmp.Compare(b.free(b.inst.PrimaryNode), a.free(a.inst.PrimaryNode)), cluster.CompareNames(a.group.Name, b.group.Name))
	})
	c.Group, c.Moves = best.group, best.moves
	g.World = best.World
}

// closed says why a group takes no such instance whatever its nodes have; empty if it does.
func (g *regrouping) closed(inst *cluster.Instance, target *cluster.Group) string {
	if !g.Asked && target.AllocPolicy == cluster.AllocUnallocatable {
		return "it takes no new instances (it is unallocable)"
	}
	for i := range inst.NICs {
		uuid := inst.NICs[i].Network
		if _, connected := target.Networks[uuid]; uuid == "" || connected {
			continue
		}
		name := uuid
		if n := g.Inventory.Network(uuid); n != nil {
			name = n.Name
		}
		return fmt.Sprintf("the network %s of its interface %d is not connected to it", name, i)
	}
	return ""
}

// find makes the moves.
func (w *way) find() {
	mirrored := w.inst.Mirroring() == cluster.InternalMirror
	switch primary, secondary := w.inside(w.inst.PrimaryNode), w.inside(second(w.inst)); {
	case !mirrored:
		w.attach()
	case primary && secondary:
		w.cannot = "it has all that it has there"
	case primary:
		w.beside()
	case secondary:
		if w.handOver(); w.cannot == "" {
			w.beside()
		}
	default:
		w.across()
	}
}

func (w *way) inside(node string) bool {
	n := w.Inventory.Node(node)
	return n != nil && n.Group == w.group.UUID
}

// decide has placement decide about the group.
func (w *way) decide(beside string) placement.Decision {
	return placement.Decide(w.World, placement.Request{Instance: w.inst, NICs: len(w.inst.NICs), Group: w.group.UUID, Leaves: nodesOf(w.inst), Beside: beside})
}

// attach has a node of the group run an instance whose disks all nodes reach.
func (w *way) attach() {
	d := w.decide("")
	to := w.Inventory.Node(d.UUID)
	if to == nil {
		w.cannot = d.Why
		return
	}
	if w.cannot = w.staysBehind(w.inst, to); w.cannot == "" {
		w.migrate(to, d.Why)
	}
}

// across brings an instance with mirrored disks there that has nothing in the group: the second copies go to its new primary node, which takes it
// over then, and to another one of the group.
func (w *way) across() {
	d := w.decide("")
	to, other := w.Inventory.Node(d.UUID), w.Inventory.Node(d.SecondUUID())
	if to == nil || other == nil {
		w.cannot = d.Why
		return
	}
	if w.copies(w.inst) != "" { // they can only be copied from where the others are
		if w.handOver(); w.cannot != "" {
			return
		}
	}
	w.replace(to, d.Why)
	w.migrate(to, "it has the second copies of its disks then")
	w.replace(other, d.Mirror.Why)
}

// beside has the second copies be on another node of the group than the primary one.
func (w *way) beside() {
	if w.cannot = w.copies(w.inst); w.cannot != "" {
		return
	}
	d := w.decide(w.inst.PrimaryNode)
	to := w.Inventory.Node(d.UUID)
	if to == nil {
		w.cannot = d.Why
		return
	}
	w.replace(to, d.Why)
}

func (w *way) handOver() {
	moved, moves, cannot := w.planner.handOver(w.inst)
	if w.cannot = cannot; cannot == "" {
		w.inst, w.moves = moved, append(w.moves, moves...)
	}
}

func (w *way) migrate(to *cluster.Node, why string) {
	w.inst, w.moves = w.move(w.inst, to), append(w.moves, Move{Migrate, to, why})
}

func (w *way) replace(to *cluster.Node, why string) {
	w.inst, w.moves = w.moveSecond(w.inst, to), append(w.moves, Move{ReplaceSecondary, to, why})
}
