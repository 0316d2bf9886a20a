// Package placement decides on which node a new instance goes, and says of every node why: of one that could take it
// its rank, of one that could not the first constraint that fails, with what is needed and what is there. It asks
// nobody: it decides upon the inventory, what nodes reported last, and the places that other creations have chosen.
//
// Invariants:
//   - A decision follows from its World and its Request alone (TestDecide).
//   - The chosen node breaks no constraint of the table, and every other one is told with the first that it breaks, or with its rank
//     (TestDecisionsAgreeWithAModel).
//   - What is told of a node is what counts, and is the same when it is read from a job much later (TestStoredDecisions).
package placement

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/fault"
)

// Need is what an instance takes of a node: memory and disk space in MiB, and virtual processors.
type Need struct {
	Memory, Disk, VCPUs int64
}

// NeedOf is what an instance takes.
func NeedOf(c *cluster.Cluster, inst *cluster.Instance) Need {
	return Need{Memory: backend(c, inst, "maxmem"), Disk: inst.LocalDiskUsage(), VCPUs: backend(c, inst, "vcpus")}
}

// backend is an effective backend parameter, without a copy of the others.
func backend(c *cluster.Cluster, inst *cluster.Instance, name string) int64 {
	v, own := inst.BEParams[name]
	if !own {
		v = c.BEParams[cluster.DefaultProfile][name]
	}
	n, _ := v.(int64)
	return n
}

// Report is what a node told about itself last: memory and disk space for instances in MiB, all of it and what is free, and its processors.
type Report struct {
	Memory, MemoryFree, Disk, DiskFree, CPUs int64
	// Hypervisor is what its instances are run by; empty if it did not say. StandsIn: it pretends to be any other as well.
	Hypervisor string
	StandsIn   bool
	// Takes are the values that hypervisor parameters may have on it, by parameter; of a parameter that is not there it said nothing.
	Takes map[string][]string
	// Templates are those of disks that it keeps; of none it said nothing.
	Templates []string
	// Failed is why there are no figures; empty when there are.
	Failed string
}

// Claim is the place of an instance that is being made, or moved: the inventory does not know it yet.
type Claim struct {
	// Instance and Node are UUIDs.
	Instance, Node string
	Need           Need
	Tags           []string
}

// Kept reports whether the inventory knows of the place by now.
func (c Claim) Kept(snap *cluster.Snapshot) bool {
	inst := snap.Instance(c.Instance)
	return inst != nil && (inst.PrimaryNode == c.Node || slices.Contains(inst.SecondaryNodes(), c.Node))
}

// World is what a decision is made upon.
type World struct {
	Inventory *cluster.Snapshot
	// Reports are those of nodes by UUID. A node that is out of service needs none.
	Reports map[string]Report
	Claims  []Claim
}

// Request is what is asked for.
type Request struct {
	// Instance is what is to be made: its parameters, disks and tags count. NICs is how many interfaces it will have.
	Instance *cluster.Instance
	NICs     int
	// Node is the UUID of the only node that is looked at; empty for all.
	Node string
	// Second is the UUID of the only node that is looked at for the second copy of mirrored disks; empty for all.
	Second string
	// Beside is the UUID of the primary node of an instance when a node for the second copy of its disks is looked for; empty when one is that runs it.
	Beside string
	// Leaves are nodes by UUID that the instance is to leave.
	Leaves []string
	// Group is the UUID of the only group that is allowed, whatever its policy of allocation; empty for those that allow allocation.
	Group string
	// Full are nodes by UUID that had no room after all, with what they said.
	Full map[string]string
	// IgnorePolicy: the policies of groups do not count.
	IgnorePolicy bool
}

// Decision is which node was chosen, and what is to be said of each.
type Decision struct {
	// UUID and Node are those of the chosen node; empty if none fits.
	UUID, Node string
	// Why is why it was chosen, or why there is none, for people.
	Why  string
	Need Need
	// Nodes are those that fit by rank, then the others by name.
	Nodes []Verdict
	// Mirror is the decision about the second copy of mirrored disks, beside the node that was chosen or asked for; nil for other disks.
	Mirror *Decision
}

// SecondUUID is the UUID of the node that was chosen for the second copy of mirrored disks; empty for other disks, or if none fits.
func (d *Decision) SecondUUID() string {
	if d.Mirror == nil {
		return ""
	}
	return d.Mirror.UUID
}

// Verdict is what is to be said of one node.
type Verdict struct {
	Node string
	// Rank is its place among those that fit, from 1; 0 for one that does not.
	Rank int
	// Fails is the first constraint that the node breaks; empty for one that fits.
	Fails Constraint
	// Need and Have are in the unit of the constraint, and zero for those that count nothing; of a node that fits they are its memory in MiB.
	Need, Have int64
	// Detail is what else is to be said: a group, a tag, an error.
	Detail string
}

// Margin is what would be left, or below zero what is missing.
func (v Verdict) Margin() int64 { return v.Have - v.Need }

// allocationRanks orders the policies of groups that allow allocation.
var allocationRanks = map[string]int{cluster.AllocPreferred: 0, cluster.AllocLastResort: 1}

// AllocationRank orders groups by their policies of allocation: the less the better. One that takes no new instances is behind all others.
func AllocationRank(g *cluster.Group) int {
	if rank, allocates := allocationRanks[g.AllocPolicy]; allocates {
		return rank
	}
	return len(allocationRanks)
}

// Decide decides where an instance goes: of the nodes that break no constraint, in the best groups, those that its company would rather have, and of these the
// one with the most free memory; among equals the first by name. One with mirrored disks gets a second node, in the group of the first; a node beside which there is none is passed over.
func Decide(w World, r Request) Decision {
	d, fitting := rank(w, r)
	if mirrored(r) {
		fitting = d.mirror(w, r, fitting)
	}
	if len(fitting) == 0 {
		d.Why = d.none()
		return d
	}
	best := fitting[0]
	d.UUID, d.Node = best.node.UUID, best.node.Name
	d.Why = fmt.Sprintf("most free memory, %d MiB, of %d candidates", best.left().free, len(fitting))
	if there := best.companions(); there != "" {
		d.Why = there + " there, " + d.Why
	}
	return d
}

// mirrored reports whether a request is for an instance whose disks are to be on two nodes.
func mirrored(r Request) bool {
	return r.Beside == "" && cluster.MirroringOf(r.Instance.DiskTemplate()) == cluster.InternalMirror
}

// beside is the request for the second copy of the disks of an instance that is to run on a node.
func (r Request) beside(node *cluster.Node) Request {
	r.Beside, r.Group, r.Node = node.UUID, node.Group, r.Second
	return r
}

// mirror decides about the second copy, and returns the candidates that are left. A node that was asked for has it decided whatever stands against it.
func (d *Decision) mirror(w World, r Request, fitting []*candidate) []*candidate {
	if len(fitting) == 0 && r.Node != "" {
		if n := w.Inventory.Node(r.Node); n != nil {
			m := Decide(w, r.beside(n))
			d.Mirror = &m
		}
	}
	for i, c := range fitting {
		m := Decide(w, r.beside(c.node))
		if d.Mirror = &m; m.UUID != "" {
			d.fail(i)
			return fitting[i:]
		}
		d.Nodes[i].Detail = m.Why
	}
	d.fail(len(fitting))
	return nil
}

// fail has the first nodes that fit be told as those beside which there is no other.
func (d *Decision) fail(count int) {
	failed := slices.Clone(d.Nodes[:count])
	d.Nodes = d.Nodes[count:]
	for i := range d.Nodes {
		if d.Nodes[i].Rank > 0 {
			d.Nodes[i].Rank -= count
		}
	}
	for i := range failed {
		d.Nodes = append(d.Nodes, Verdict{Node: failed[i].Node, Fails: Mirror, Detail: failed[i].Detail})
	}
}

// rank looks at all nodes: those that fit are told with their rank, and returned.
func rank(w World, r Request) (Decision, []*candidate) {
	d := Decision{Need: NeedOf(w.Inventory.Cluster(), r.Instance)}
	look := newLook(w, r, d.Need)
	look.real = forReal(w, r)
	var fitting []*candidate
	for node := range w.Inventory.Nodes() {
		if r.Node != "" && node.UUID != r.Node {
			continue
		}
		c := &candidate{look: look, node: node, group: look.groupOf(node)}
		if v := c.verdict(); v.Fails != "" {
			d.Nodes = append(d.Nodes, v)
		} else {
			fitting = append(fitting, c)
		}
	}
	slices.SortStableFunc(fitting, func(a, b *candidate) int {
		return cmp.Or(cmp.Compare(a.preference(), b.preference()), cmp.Compare(a.liking(), b.liking()), cmp.Compare(b.left().free, a.left().free))
	})
	fits := make([]Verdict, len(fitting), len(fitting)+len(d.Nodes))
	for i, c := range fitting {
		fits[i] = Verdict{Node: c.node.Name, Rank: i + 1, Need: d.Need.Memory, Have: c.left().free, Detail: c.companions()}
	}
	d.Nodes = append(fits, d.Nodes...)
	return d, fitting
}

// Err is why no node was chosen, which says what is in the way on how many nodes; nil if one was. It is fault.Exhausted, or fault.Invalid
// where nothing but what was asked for is in the way: it lies outside of every policy.
func (d *Decision) Err() error {
	if d.UUID != "" {
		return nil
	}
	code := fault.Exhausted
	if len(d.Nodes) > 0 && !slices.ContainsFunc(d.Nodes, func(v Verdict) bool { return v.Fails != Policy }) {
		code = fault.Invalid
	}
	return fault.New(code, "Can't find a node for the instance: %s", d.Why).
		WithHint("drover instance add with --explain tells what is in the way on each node")
}

// none sums up why no node fits: by constraint, in the order of the table, with the node that comes nearest.
func (d *Decision) none() string {
	if len(d.Nodes) == 0 {
		return "there is none to choose from"
	}
	var parts []string
	for _, c := range table() {
		count := 0
		var nearest *Verdict
		for n := range d.Nodes {
			v := &d.Nodes[n]
			if v.Fails != c.name {
				continue
			}
			if count++; nearest == nil || v.Margin() > nearest.Margin() {
				nearest = v
			}
		}
		if nearest != nil {
			parts = append(parts, fmt.Sprintf("%d %s%s", count, c.many, c.nearest(*nearest)))
		}
	}
	return fmt.Sprintf("of %d candidates %s", len(d.Nodes), strings.Join(parts, ", "))
}

// look is one decision while it is made.
type look struct {
	World
	Request

	cluster *cluster.Cluster
	need    Need
	params  cluster.Params     // the instance's hypervisor parameters, in effect
	claims  map[string][]Claim // by node
	groups  map[string]*group
	// exclusive are the beginnings of tags that two instances of one node may not share.
	exclusive []string
	own       []string // those tags of the instance
	// sharing are the nodes that have an instance with one of them, by UUID: the first of its instances by name that has one.
	sharing map[string]shared
	company []*company // the groups of the instance
	// real: a candidate has told that it runs the instance's hypervisor itself, so nobody needs to pretend it.
	real bool
}

// shared is an exclusive tag, and the instance that has it.
type shared struct{ tag, instance string }

// group is a node group as it counts for the decision.
type group struct {
	*cluster.Group

	allowed bool
	broken  []Violation
	ratio   float64 // of virtual processors to real ones; 0 for no bound
}

// ExclusionPrefix begins the tags of a cluster that make tags of instances exclusive, as Ganeti's allocators read them: with the cluster's tag
// htools:iextags:service no node gets two instances that are both tagged service:web.
const ExclusionPrefix = "htools:iextags:"

func newLook(w World, r Request, need Need) *look {
	l := &look{World: w, Request: r, cluster: w.Inventory.Cluster(), need: need, claims: map[string][]Claim{}, groups: map[string]*group{}}
	l.params = l.cluster.FillHV(r.Instance)
	for _, c := range w.Claims {
		if c.Instance != r.Instance.UUID && !c.Kept(w.Inventory) {
			l.claims[c.Node] = append(l.claims[c.Node], c)
		}
	}
	for _, tag := range l.cluster.Tags {
		if prefix, is := strings.CutPrefix(tag, ExclusionPrefix); is {
			l.exclusive = append(l.exclusive, prefix+":")
		}
	}
	for _, tag := range r.Instance.Tags {
		if l.excludes(tag) {
			l.own = append(l.own, tag)
		}
	}
	l.sharing, l.company = l.share(), l.keep()
	return l
}

// share finds the nodes with an instance that has an exclusive tag of the new one.
func (l *look) share() map[string]shared {
	nodes := map[string]shared{}
	for _, tag := range l.own {
		for uuid := range l.Inventory.Tagged(cluster.KindInstance, tag) {
			inst := l.Inventory.Instance(uuid)
			if s, found := nodes[inst.PrimaryNode]; !found || cluster.CompareNames(inst.Name, s.instance) < 0 {
				nodes[inst.PrimaryNode] = shared{tag, inst.Name}
			}
		}
	}
	return nodes
}

// forReal reports whether a candidate runs the instance's hypervisor itself. It matters where another would pretend to.
func forReal(w World, r Request) bool {
	for _, report := range w.Reports {
		if report.StandsIn && report.Hypervisor != r.Instance.Hypervisor {
			return slices.ContainsFunc(Candidates(w.Inventory, r), func(n *cluster.Node) bool {
				return w.Reports[n.UUID].Hypervisor == r.Instance.Hypervisor
			})
		}
	}
	return false
}

func (l *look) excludes(tag string) bool {
	return slices.ContainsFunc(l.exclusive, func(prefix string) bool { return strings.HasPrefix(tag, prefix) })
}

// groupOf returns the group of a node, looked at once for all its nodes.
func (l *look) groupOf(node *cluster.Node) *group {
	if g, known := l.groups[node.Group]; known {
		return g
	}
	g := &group{Group: l.Inventory.Group(node.Group)}
	l.groups[node.Group] = g
	if g.Group == nil {
		g.Group, g.allowed = &cluster.Group{Name: node.Group}, l.Group == ""
		return g
	}
	_, allocates := allocationRanks[g.AllocPolicy]
	g.allowed = l.Group == g.UUID || l.Group == "" && (allocates || l.Node != "")
	if l.IgnorePolicy {
		return g
	}
	policy := l.cluster.FillIPolicy(g.Group)
	g.broken, g.ratio = Violations(policy, l.cluster.FillBE(l.Instance), l.Instance, l.NICs), number(policy[cluster.PolicyVCPUs])
	return g
}

func number(v any) float64 {
	switch n := v.(type) {
	case int64:
		return float64(n)
	case float64:
		return n
	}
	return 0
}

// candidate is a node that is looked at.
type candidate struct {
	*look

	node    *cluster.Node
	group   *group
	load    load
	weighed bool
}

func (c *candidate) preference() int { return allocationRanks[c.group.AllocPolicy] }

// verdict tells the first constraint that the node breaks, if it breaks one.
func (c *candidate) verdict() Verdict {
	is := primary
	if c.Beside != "" {
		is = mirror
	}
	for i := range constraints {
		if constraints[i].only != either && constraints[i].only != is {
			continue
		}
		if v, broken := constraints[i].check(c); broken {
			v.Node, v.Fails = c.node.Name, constraints[i].name
			return v
		}
	}
	return Verdict{}
}

// load is what a node has to keep for others, and what is left.
type load struct {
	free, disk, vcpus int64 // vcpus are those promised, the others what is left
	reserve           int64 // memory for the instances of one other node, if that fails; peer is its UUID
	peer              string
	from              map[string]int64 // memory for the instances of each other node, by UUID
	conflict          string           // an exclusive tag, and whose it is
}

// left is what the node has left, summed up when it is asked for first.
func (c *candidate) left() *load {
	if !c.weighed {
		c.weighed = true
		c.weigh()
	}
	return &c.load
}

// weigh sums up what the node's instances may use, running or not, and what is claimed. What is there to take is what the node said is
// free, but no more than what is left of all when everybody takes what was promised.
func (c *candidate) weigh() {
	report, promised := c.Reports[c.node.UUID], c.Inventory.PromisesOn(c.node.UUID)
	memory, disk := promised.Memory, promised.Disk
	c.load.vcpus = promised.VCPUs
	if s, found := c.sharing[c.node.UUID]; found {
		c.load.conflict = s.tag + ", which " + s.instance + " has"
	}
	c.weighSecondaries(&disk)
	var claimed Need
	for _, claim := range c.claims[c.node.UUID] {
		claimed.Memory += claim.Need.Memory
		claimed.Disk += claim.Need.Disk
		c.load.vcpus += claim.Need.VCPUs
		c.conflicts(claim.Tags)
	}
	c.load.free = min(report.MemoryFree, report.Memory-memory) - claimed.Memory
	c.load.disk = min(report.DiskFree, report.Disk-disk-claimed.Disk)
}

// weighSecondaries adds the disks of instances that run elsewhere, and finds the node whose failure would bring most of them here.
func (c *candidate) weighSecondaries(disk *int64) {
	if c.Inventory.CountSecondariesOn(c.node.UUID) == 0 {
		return
	}
	moves := map[string]int64{}
	for inst := range c.Inventory.SecondariesOn(c.node.UUID) {
		*disk += inst.LocalDiskUsage()
		if inst.UUID == c.Instance.UUID { // it moves
			continue
		}
		if inst.AdminState == cluster.AdminOffline || c.cluster.FillBE(inst)["auto_balance"] == false {
			continue
		}
		moves[inst.PrimaryNode] += backend(c.cluster, inst, "maxmem")
		if sum := moves[inst.PrimaryNode]; sum > c.load.reserve {
			c.load.reserve, c.load.peer = sum, inst.PrimaryNode
		}
	}
	c.load.from = moves
}

// conflicts notes that an instance that is being made on the node shares an exclusive tag with the new one.
func (c *candidate) conflicts(tags []string) {
	if c.load.conflict != "" || len(c.own) == 0 {
		return
	}
	for _, tag := range c.own {
		if slices.Contains(tags, tag) {
			c.load.conflict = tag + ", which an instance that is being made has"
			return
		}
	}
}

// Candidates are the nodes whose reports a decision needs: those that break no constraint of which the inventory tells alone.
func Candidates(snap *cluster.Snapshot, r Request) []*cluster.Node {
	l := newLook(World{Inventory: snap}, r, Need{})
	var out []*cluster.Node
	if n := snap.Node(r.Node); n != nil && mirrored(r) {
		out = Candidates(snap, r.beside(n))
	}
	for node := range snap.Nodes() {
		c := candidate{look: l, node: node, group: l.groupOf(node)}
		if (r.Node == "" || r.Node == node.UUID) && c.verdict().Fails == Unreported {
			out = append(out, node)
		}
	}
	return out
}
