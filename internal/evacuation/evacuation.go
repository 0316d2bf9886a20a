// Package evacuation decides how instances leave a node: of each which moves it makes, one after the other, and to which nodes; or why it
// cannot. It asks nobody: it decides upon what placement does, and takes what it has decided about one instance for done before it looks
// at the next.
//
// Invariants:
//   - A plan follows from its World and its Request alone, and has every instance that is to leave, once (TestPlansAgreeWithTheWorld).
//   - Behind its moves an instance has nothing on the node that it was to leave, and no node gets more than it has room for
//     (TestPlansAgreeWithTheWorld).
//   - Nothing is planned that what carries it out is known to refuse (TestEvacuationsComeToWhatWasPlanned in package exec).
package evacuation

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/placement"
)

// Mode says what is to leave a node. The names are the reference's.
type Mode string

// The modes.
const (
	// Primaries is what runs there; its mirrored disks keep their copies on the node.
	Primaries Mode = "primary-only"
	// Secondaries are the second copies of mirrored disks.
	Secondaries Mode = "secondary-only"
	// Everything leaves nothing at all.
	Everything Mode = "all"
)

// Request is what is to leave which node.
type Request struct {
	Node *cluster.Node
	Mode Mode
	// To is the node that was asked for; nil has placement choose, in the group of the node.
	To *cluster.Node
	// Live: what does not run stays where it is, and nothing is stopped on the way.
	Live bool
	// IgnorePolicy: the policies of groups do not count.
	IgnorePolicy bool
}

// Verb is what a move does.
type Verb string

// The verbs.
const (
	// Migrate makes another node the primary one: what runs is handed over, what does not is failed over.
	Migrate Verb = "migrate"
	// ReplaceSecondary makes the second copies of the disks on another node.
	ReplaceSecondary Verb = "replace-secondary"
)

// Move is one move of an instance to a node. Why is why it is that one, for people.
type Move struct {
	Verb Verb
	To   *cluster.Node
	Why  string
}

// Course is how one instance leaves: its moves in order, or why it cannot.
type Course struct {
	Instance *cluster.Instance
	Moves    []Move
	Cannot   string
}

// Text says the course for people, on one line.
func (c *Course) Text() string {
	if c.Cannot != "" {
		return c.Instance.Name + " cannot leave: " + c.Cannot
	}
	parts := make([]string, len(c.Moves))
	for i, m := range c.Moves {
		what := "to "
		if m.Verb == ReplaceSecondary {
			what = "second copies of its disks to "
		}
		parts[i] = what + m.To.Name + " (" + m.Why + ")"
	}
	return c.Instance.Name + ": " + strings.Join(parts, ", then ")
}

// Instances are those that a mode means, by name.
func Instances(snap *cluster.Snapshot, node string, mode Mode) []*cluster.Instance {
	var out []*cluster.Instance
	if mode != Secondaries {
		out = slices.AppendSeq(out, snap.PrimariesOn(node))
	}
	if mode != Primaries {
		out = slices.AppendSeq(out, snap.SecondariesOn(node))
	}
	slices.SortFunc(out, func(a, b *cluster.Instance) int { return cluster.CompareNames(a.Name, b.Name) })
	return out
}

// Plan decides how all leave, by name. Those that can go to one node alone are decided about first, then the others, the largest first: the rest finds
// its way more easily.
func Plan(w placement.World, r Request) []Course {
	w.Reports = maps.Clone(w.Reports)
	p := &planner{World: w, Request: r}
	order := Instances(w.Inventory, r.Node.UUID, r.Mode)
	slices.SortStableFunc(order, func(a, b *cluster.Instance) int {
		return cmp.Or(cmp.Compare(p.choices(a), p.choices(b)), cmp.Compare(p.need(b).Memory, p.need(a).Memory))
	})
	courses := make([]Course, len(order))
	for i, inst := range order {
		before := p.World
		before.Reports = maps.Clone(p.Reports)
		courses[i] = Course{Instance: inst}
		if courses[i].Moves, courses[i].Cannot = p.course(inst); courses[i].Cannot != "" {
			p.World = before // it stays
		}
	}
	slices.SortFunc(courses, func(a, b Course) int { return cluster.CompareNames(a.Instance.Name, b.Instance.Name) })
	return courses
}

// planner is a plan while it is made: its world is what comes of the moves that are decided already.
type planner struct {
	placement.World
	Request
}

// choices is 0 for an instance that one node alone can take.
func (p *planner) choices(inst *cluster.Instance) int {
	if inst.PrimaryNode == p.Node.UUID && second(inst) != "" {
		return 0
	}
	return 1
}

func (p *planner) need(inst *cluster.Instance) placement.Need {
	return placement.NeedOf(p.Inventory.Cluster(), inst)
}

// second is the UUID of the node that has the second copy of an instance's disks; empty if none has.
func second(inst *cluster.Instance) string {
	for _, uuid := range inst.SecondaryNodes() {
		return uuid
	}
	return ""
}

// course decides about one instance.
func (p *planner) course(inst *cluster.Instance) (moves []Move, cannot string) {
	if inst.PrimaryNode != p.Node.UUID {
		if source := p.Inventory.Node(inst.PrimaryNode); source == nil || source.Offline {
			return nil, "its primary node is offline, and its disks cannot be copied from there"
		}
		return p.replace(inst, nil)
	}
	if p.Live && inst.AdminState != cluster.AdminUp {
		return nil, "it is not running; drover instance failover moves it"
	}
	switch inst.Mirroring() {
	case cluster.InternalMirror:
		return p.takeOver(inst)
	case cluster.ExternalMirror:
		return p.attach(inst)
	}
	return nil, "its disks (" + inst.DiskTemplate() + ") are on " + p.Node.Name + " alone"
}

// takeOver has the node that has the second copies run the instance; if nothing is to stay on the node, they are made elsewhere then.
func (p *planner) takeOver(inst *cluster.Instance) ([]Move, string) {
	to := p.Inventory.Node(second(inst))
	if to == nil {
		return nil, "no node has the second copies of its disks"
	}
	here := to.Name + ", which has the second copies of its disks, "
	switch i := inst.StaleOn(to.UUID); {
	case p.Mode == Primaries && p.To != nil && p.To != to:
		return nil, "the second copies of its disks are on " + to.Name + ", not on " + p.To.Name
	case to.Offline:
		return nil, here + "is offline"
	case to.Drained:
		return nil, here + "is drained"
	case i >= 0:
		return nil, fmt.Sprintf("the copy of its disk %d on %s is out of date", i, to.Name)
	}
	if need, free := p.need(inst).Memory, p.free(to.UUID); inst.AdminState == cluster.AdminUp && free < need {
		return nil, fmt.Sprintf("%shas %d MiB of memory free, and %d are needed", here, max(free, 0), need)
	}
	moves := []Move{{Migrate, to, "it has the second copies of its disks"}}
	moved := p.move(inst, to)
	if p.Mode == Primaries {
		return moves, ""
	}
	return p.replace(moved, moves)
}

// attach has another node run an instance whose disks all nodes reach.
func (p *planner) attach(inst *cluster.Instance) ([]Move, string) {
	to, why := p.choose(placement.Request{Instance: inst, NICs: len(inst.NICs), Leaves: []string{p.Node.UUID}})
	if to == nil {
		return nil, why
	}
	if r := p.Reports[to.UUID]; len(inst.Disks) > 0 && r.Hypervisor != "" && !r.StandsIn {
		return nil, "its disks are where other nodes reach them, but what the machine keeps beside them is on " + p.Node.Name + " alone"
	}
	p.move(inst, to)
	return []Move{{Migrate, to, why}}, ""
}

// replace has another node than the one that is left have the second copies.
func (p *planner) replace(inst *cluster.Instance, before []Move) ([]Move, string) {
	if inst.Mirroring() != cluster.InternalMirror {
		return nil, "its disks (" + inst.DiskTemplate() + ") are not all mirrored"
	}
	if p.To != nil && p.To.UUID == inst.PrimaryNode {
		return nil, p.To.Name + " is its primary node"
	}
	to, why := p.choose(placement.Request{Instance: inst, NICs: len(inst.NICs), Beside: inst.PrimaryNode, Leaves: []string{p.Node.UUID}})
	if to == nil {
		return nil, why
	}
	next := inst.Clone()
	for i := range next.Disks {
		next.Disks[i].Nodes = []string{inst.PrimaryNode, to.UUID}
	}
	p.Inventory = p.Inventory.With(cluster.Put(next))
	p.take(to.UUID, placement.Need{Disk: p.need(inst).Disk})
	return append(before, Move{ReplaceSecondary, to, why}), ""
}

// choose has placement choose a node, or judge the one that was asked for; nil comes with why there is none.
func (p *planner) choose(r placement.Request) (to *cluster.Node, why string) {
	r.IgnorePolicy = p.IgnorePolicy
	if p.To == nil {
		r.Group = p.Node.Group
		d := placement.Decide(p.World, r)
		return p.Inventory.Node(d.UUID), d.Why
	}
	r.Node = p.To.UUID
	d := placement.Decide(p.World, r)
	if len(d.Nodes) == 1 && d.Nodes[0].Fails.Firm() {
		return nil, p.To.Name + ": " + d.Nodes[0].Text()
	}
	return p.To, "it was asked for"
}

// move notes that a node runs an instance now.
func (p *planner) move(inst *cluster.Instance, to *cluster.Node) *cluster.Instance {
	moved := inst.Clone()
	moved.MoveTo(to.UUID, p.Node.Offline)
	p.Inventory = p.Inventory.With(cluster.Put(moved))
	if inst.AdminState == cluster.AdminUp {
		p.take(to.UUID, placement.Need{Memory: p.need(inst).Memory})
	}
	return moved
}

// take notes that a node has less free than it has told.
func (p *planner) take(node string, need placement.Need) {
	r := p.Reports[node]
	r.MemoryFree -= need.Memory
	r.DiskFree -= need.Disk
	p.Reports[node] = r
}

// free is the memory that a node has now, in MiB, and that nobody else is about to take.
func (p *planner) free(node string) int64 {
	free := p.Reports[node].MemoryFree
	for _, c := range p.Claims {
		if c.Node == node && !c.Kept(p.Inventory) {
			free -= c.Need.Memory
		}
	}
	return free
}
