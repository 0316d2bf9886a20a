// Package evacuation decides how instances leave a node, or come to other groups of nodes: of each which moves it makes, one after the other, and to
// which nodes; or why it cannot. It asks nobody: it decides upon what placement does, and takes what it has decided about one instance for done before it looks
// at the next.
//
// Invariants:
//   - A plan follows from its World and its Request alone, and has every instance that is to leave, once (TestPlansAgreeWithTheWorld).
//   - Behind its moves an instance has nothing on the node that it was to leave, and no node gets more than it has room for
//     (TestPlansAgreeWithTheWorld).
//   - Behind the moves of a plan for groups an instance has all that it has on nodes of one group that it may go to (TestGroupPlansAgreeWithTheWorld).
//   - Nothing is planned that what carries it out is known to refuse (TestEvacuationsComeToWhatWasPlanned, TestGroupsAreLeftAsPlanned in package exec).
package evacuation

import (
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
	// Group is the group that it comes to; nil where that was not asked for.
	Group  *cluster.Group
	Moves  []Move
	Cannot string
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
	whither := ": "
	if c.Group != nil {
		whither = " comes to group " + c.Group.Name + ": "
	}
	return c.Instance.Name + whither + strings.Join(parts, ", then ")
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
	n := &leaving{planner: &planner{World: w, ignorePolicy: r.IgnorePolicy}, Request: r}
	return n.decide(Instances(w.Inventory, r.Node.UUID, r.Mode), n.choices, func(c *Course) { c.Moves, c.Cannot = n.course(c.Instance) })
}

// leaving is a plan for a node that is left.
type leaving struct {
	*planner
	Request
}

// choices is 0 for an instance that one node alone can take.
func (n *leaving) choices(inst *cluster.Instance) int {
	if inst.PrimaryNode == n.Node.UUID && second(inst) != "" {
		return 0
	}
	return 1
}

// course decides about one instance.
func (n *leaving) course(inst *cluster.Instance) (moves []Move, cannot string) {
	if inst.PrimaryNode != n.Node.UUID {
		return n.replace(inst, nil)
	}
	if n.Live && inst.AdminState != cluster.AdminUp {
		return nil, "it is not running; drover instance failover moves it"
	}
	switch inst.Mirroring() {
	case cluster.InternalMirror:
		return n.takeOver(inst)
	case cluster.ExternalMirror:
		return n.attach(inst)
	}
	return nil, "its disks (" + inst.DiskTemplate() + ") are on " + n.Node.Name + " alone"
}

// takeOver has the node that has the second copies run the instance; if nothing is to stay on the node, they are made elsewhere then.
func (n *leaving) takeOver(inst *cluster.Instance) ([]Move, string) {
	if to := n.Inventory.Node(second(inst)); n.Mode == Primaries && n.To != nil && to != nil && n.To != to {
		return nil, "the second copies of its disks are on " + to.Name + ", not on " + n.To.Name
	}
	moved, move, cannot := n.handOver(inst)
	if cannot != "" || n.Mode == Primaries {
		return move, cannot
	}
	return n.replace(moved, move)
}

// attach has another node run an instance whose disks all nodes reach.
func (n *leaving) attach(inst *cluster.Instance) ([]Move, string) {
	to, why := n.choose(placement.Request{Instance: inst, NICs: len(inst.NICs), Leaves: []string{n.Node.UUID}})
	if to == nil {
		return nil, why
	}
	if cannot := n.staysBehind(inst, to); cannot != "" {
		return nil, cannot
	}
	n.move(inst, to)
	return []Move{{Migrate, to, why}}, ""
}

// replace has another node than the one that is left have the second copies.
func (n *leaving) replace(inst *cluster.Instance, before []Move) ([]Move, string) {
	if cannot := n.copies(inst); cannot != "" {
		return nil, cannot
	}
	if n.To != nil && n.To.UUID == inst.PrimaryNode {
		return nil, n.To.Name + " is its primary node"
	}
	to, why := n.choose(placement.Request{Instance: inst, NICs: len(inst.NICs), Beside: inst.PrimaryNode, Leaves: []string{n.Node.UUID}})
	if to == nil {
		return nil, why
	}
	n.moveSecond(inst, to)
	return append(before, Move{ReplaceSecondary, to, why}), ""
}

// choose has placement choose a node, or judge the one that was asked for; nil comes with why there is none.
func (n *leaving) choose(r placement.Request) (to *cluster.Node, why string) {
	r.IgnorePolicy = n.ignorePolicy
	if n.To == nil {
		r.Group = n.Node.Group
		d := placement.Decide(n.World, r)
		return n.Inventory.Node(d.UUID), d.Why
	}
	r.Node = n.To.UUID
	d := placement.Decide(n.World, r)
	if len(d.Nodes) == 1 && d.Nodes[0].Fails.Firm() {
		return nil, n.To.Name + ": " + d.Nodes[0].Text()
	}
	if why := n.policy(r.Instance, n.To); why != "" {
		return nil, n.To.Name + " " + why
	}
	return n.To, "it was asked for"
}
