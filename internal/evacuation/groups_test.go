package evacuation_test

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/evacuation"
	"github.com/drover-project/drover/internal/placement"
)

// apart is a cluster of two groups, g1 with node1 and node2, and g2 with far1 and far2.
func apart() *site {
	s := newSite("node1", "node2")
	s.group("g2", cluster.AllocPreferred, "far1", "far2")
	return s
}

func (s *site) group(name, policy string, nodes ...string) {
	s.put(&cluster.Group{Meta: cluster.NewMeta(name, 1), Name: name, AllocPolicy: policy})
	for _, n := range nodes {
		s.node(n, func(n *cluster.Node) { n.Group = name })
	}
}

// leave plans what leaves a group for others: for all others, if none is named.
func (s *site) leave(group string, targets ...string) []string {
	w := s.world()
	r := evacuation.GroupRequest{Instances: evacuation.InstancesOf(w.Inventory, group), Asked: len(targets) > 0}
	for g := range w.Inventory.Groups() {
		if slices.Contains(targets, g.Name) || len(targets) == 0 && g.Name != group {
			r.Targets = append(r.Targets, g)
		}
	}
	return texts(evacuation.PlanGroups(w, r))
}

const (
	freest = "most free memory, 4096 MiB, of "
	copied = " (it has the second copies of its disks then)"
)

func TestPlanGroups(t *testing.T) {
	s := apart()
	s.instance("big", cluster.DiskExt, 2000, "node1")
	s.instance("file", cluster.DiskFile, 128, "node1")
	s.instance("mirror", cluster.DiskDRBD, 512, "node1", "node2")
	s.instance("split", cluster.DiskDRBD, 512, "node2", "far1")
	s.instance("spread", cluster.DiskDRBD, 256, "far2", "node1")
	s.instance("there", cluster.DiskDRBD, 64, "far2", "far1")
	expect(t, s.leave("g1"),
		"big comes to group g2: to far1 ("+freest+"2 candidates)",
		"file cannot leave: its disks (file) are on one node alone",
		"mirror comes to group g2: second copies of its disks to far2 (most free memory, 3776 MiB, of 2 candidates), then to far2"+copied+
			", then second copies of its disks to far1 (most free memory, 2096 MiB, of 1 candidates)",
		"split comes to group g2: to far1 (it has the second copies of its disks), then second copies of its disks to far2 (most free memory, 3264 MiB, of 1 candidates)",
		"spread comes to group g2: second copies of its disks to far1 (most free memory, 1584 MiB, of 1 candidates)")
	expect(t, s.leave("nosuch"))
}

// The group is the one that is reached by the fewest moves, then the best by its policy, then the one with the most free memory; one that takes no new
// instances is taken if it was asked for.
func TestWhichGroup(t *testing.T) {
	s := newSite("node1")
	s.instance("a", cluster.DiskDiskless, 512, "node1")
	s.group("last", cluster.AllocLastResort, "last1")
	s.group("closed", cluster.AllocUnallocatable, "closed1")
	expect(t, s.leave("g1"), "a comes to group last: to last1 ("+freest+"1 candidates)")
	expect(t, s.leave("g1", "closed"), "a comes to group closed: to closed1 ("+freest+"1 candidates)")
	expect(t, s.leave("g1", "closed", "last"), "a comes to group last: to last1 ("+freest+"1 candidates)")
	s.group("full", cluster.AllocPreferred, "full1")
	s.instance("b", cluster.DiskDiskless, 3000, "full1")
	expect(t, s.leave("g1"), "a comes to group full: to full1 (most free memory, 1096 MiB, of 1 candidates)")
	s.group("empty", cluster.AllocPreferred, "empty1")
	expect(t, s.leave("g1"), "a comes to group empty: to empty1 ("+freest+"1 candidates)")
	s.group("half", cluster.AllocLastResort, "half1", "half2")
	s.instance("c", cluster.DiskDRBD, 64, "half1", "node1")
	expect(t, s.leave("g1"), "a comes to group empty: to empty1 ("+freest+"1 candidates)",
		"c comes to group half: second copies of its disks to half2 ("+freest+"1 candidates)")
}

// Why an instance can come to none of the groups is told of each.
func TestWhatCannotComeToAGroup(t *testing.T) {
	s := newSite("node1")
	s.node("away", func(n *cluster.Node) { n.Offline = true })
	s.group("closed", cluster.AllocUnallocatable, "closed1")
	s.group("lonely", cluster.AllocPreferred, "lonely1")
	s.put(&cluster.Network{Meta: cluster.NewMeta("net", 1), Name: "net1"})
	s.instance("a", cluster.DiskDRBD, 128, "away", "node1").Disks[0].Stale = []string{"uuid of node1"}
	s.instance("b", cluster.DiskDiskless, 128, "node1").NICs = []cluster.NIC{{}, {Network: "net"}}
	const closed = "group closed: it takes no new instances (it is unallocable); group lonely: "
	expect(t, s.leave("g1"),
		"a cannot leave: "+closed+"of 4 candidates 3 in another group (g1), 1 beside which no node can have the second copy of the disks "+
			"(of 4 candidates 3 in another group (g1), 1 that the instance has or leaves)",
		"b cannot leave: "+closed+"the network net1 of its interface 1 is not connected to it")
	s.node("lonely2", func(n *cluster.Node) { n.Group = "lonely" })
	expect(t, s.leave("g1", "lonely")[:1], "a cannot leave: group lonely: the copy of its disk 0 on node1 is out of date")
}

// From a primary node that is away the disks cannot be copied, so the node of the second copies takes over before anything else.
func TestGroupsOfTheDead(t *testing.T) {
	s := apart()
	s.node("away", func(n *cluster.Node) { n.Offline = true })
	s.instance("a", cluster.DiskDRBD, 128, "away", "node1")
	expect(t, s.leave("g1"), "a comes to group g2: to node1 (it has the second copies of its disks), then second copies of its disks to far1 ("+freest+"2 candidates), then to far1"+copied+
		", then second copies of its disks to far2 ("+freest+"1 candidates)")
}

// An instance is not handed over to a node in a group whose policy refuses it, on the way out of a node or of a group.
func TestPoliciesOnTheWay(t *testing.T) {
	s := apart()
	s.put(&cluster.Group{Meta: cluster.NewMeta("g2", 1), Name: "g2", AllocPolicy: cluster.AllocPreferred, IPolicy: cluster.Params{
		cluster.PolicyMinMax: []any{map[string]any{"max": map[string]any{"memory-size": int64(100)}}}}})
	s.instance("a", cluster.DiskDRBD, 128, "node1", "far1")
	const refused = "far1, which has the second copies of its disks, is in group g2, whose policy refuses it: memory-size value 128 is not in range [0, 100]"
	expect(t, s.plan("node1", evacuation.Primaries), "a cannot leave: "+refused)
	expect(t, s.leave("g1"), "a cannot leave: group g2: "+refused)
	// Also where somebody names the node.
	s.instance("b", cluster.DiskDRBD, 128, "node2", "node1")
	w := s.world()
	expect(t, texts(evacuation.Plan(w, evacuation.Request{Node: w.Inventory.NodeNamed("node1"), Mode: evacuation.Secondaries, To: w.Inventory.NodeNamed("far1")})),
		"b cannot leave: far1 is in group g2, whose policy refuses it: memory-size value 128 is not in range [0, 100]")
}

// For any cluster: the plan has each instance once, and changes nothing of what it is made upon; carried out, each is in one group that it was to come
// to, and no node gets more than it has room for.
func TestGroupPlansAgreeWithTheWorld(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w, r := randomGroups(rt)
		courses := evacuation.PlanGroups(w, r)
		if again := texts(evacuation.PlanGroups(w, r)); !slices.Equal(again, texts(courses)) {
			rt.Fatalf("planned again it is %q, and was %q", again, texts(courses))
		}
		free := map[string]int64{}
		for uuid, report := range w.Reports {
			free[uuid] = report.MemoryFree
		}
		if len(courses) != len(r.Instances) {
			rt.Fatalf("%d instances come to %q", len(r.Instances), texts(courses))
		}
		for i, c := range courses {
			if c.Instance.UUID != r.Instances[i].UUID || (c.Cannot == "") != (len(c.Moves) > 0 && slices.Contains(r.Targets, c.Group)) {
				rt.Fatalf("planned is %q", texts(courses))
			}
			if c.Cannot != "" {
				continue
			}
			inst := carry(rt, w, c, free)
			if got := evacuation.GroupsOf(w.Inventory, inst); !slices.Equal(got, []string{c.Group.UUID}) {
				rt.Fatalf("%s: it has something in %v", c.Text(), got)
			}
		}
	})
}

// carry makes the moves of a course, and returns the instance as it is then.
func carry(rt *rapid.T, w placement.World, c evacuation.Course, free map[string]int64) *cluster.Instance {
	inst := c.Instance.Clone()
	for _, m := range c.Moves {
		primary := w.Inventory.Node(inst.PrimaryNode)
		switch {
		case m.To.Offline || m.To.Drained || m.To.UUID == inst.PrimaryNode:
			rt.Fatalf("%s: %s takes nothing", c.Text(), m.To.Name)
		case m.Verb == evacuation.ReplaceSecondary:
			if primary.Offline {
				rt.Fatalf("%s: nothing is copied from %s", c.Text(), primary.Name)
			}
			inst.Disks[0].Nodes = []string{inst.PrimaryNode, m.To.UUID}
			inst.Disks[0].Stale = nil
			continue
		case inst.Mirroring() == cluster.InternalMirror && (!slices.Contains(inst.SecondaryNodes(), m.To.UUID) || inst.StaleOn(m.To.UUID) >= 0):
			rt.Fatalf("%s: %s has no good copy of its disks", c.Text(), m.To.Name)
		}
		if inst.AdminState == cluster.AdminUp {
			free[m.To.UUID] -= placement.NeedOf(&cluster.Cluster{}, inst).Memory
		}
		if free[m.To.UUID] < 0 {
			rt.Fatalf("%s: %s has no room", c.Text(), m.To.Name)
		}
		inst.MoveTo(m.To.UUID, primary.Offline)
	}
	return inst
}

// randomGroups spreads the nodes of a random cluster over three groups.
func randomGroups(rt *rapid.T) (placement.World, evacuation.GroupRequest) {
	w, _ := random(rt)
	groups := []*cluster.Group{w.Inventory.Group("g1")}
	for _, name := range []string{"g2", "g3"} {
		g := &cluster.Group{Meta: cluster.NewMeta(name, 1), Name: name,
			AllocPolicy: rapid.SampledFrom([]string{cluster.AllocPreferred, cluster.AllocLastResort, cluster.AllocUnallocatable}).Draw(rt, "policy")}
		groups = append(groups, g)
		w.Inventory = w.Inventory.With(cluster.Put(g))
	}
	for n := range w.Inventory.Nodes() {
		moved := n.Clone()
		moved.Group = rapid.SampledFrom(groups).Draw(rt, "group").UUID
		w.Inventory = w.Inventory.With(cluster.Put(moved))
	}
	for i := range 3 { // a group of few nodes takes no mirrored disks
		n := &cluster.Node{Meta: cluster.NewMeta(fmt.Sprint("more", i), 1), Name: fmt.Sprint("more", i), Group: rapid.SampledFrom(groups).Draw(rt, "group").UUID, VMCapable: true}
		w.Inventory = w.Inventory.With(cluster.Put(n))
		w.Reports[n.UUID] = placement.Report{Memory: 4096, MemoryFree: 4096, Disk: 1 << 20, DiskFree: 1 << 20}
	}
	from := rapid.IntRange(0, 2).Draw(rt, "from")
	r := evacuation.GroupRequest{Instances: evacuation.InstancesOf(w.Inventory, groups[from].UUID), Asked: rapid.Bool().Draw(rt, "asked")}
	r.Targets = slices.Delete(slices.Clone(groups), from, from+1)
	return w, r
}
