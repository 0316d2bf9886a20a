package evacuation_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/evacuation"
	"github.com/drover-project/drover/internal/placement"
	"github.com/drover-project/drover/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Cases(m, 2000) }

// site is a cluster that a test builds. Nodes have 4096 MiB of memory, and are all in one group unless a test says otherwise.
type site struct {
	changes []cluster.Change
	reports map[string]placement.Report
	claims  []placement.Claim
}

func newSite(nodes ...string) *site {
	s := &site{reports: map[string]placement.Report{}}
	s.put(&cluster.Cluster{Meta: cluster.NewMeta("cluster", 1), BEParams: map[string]cluster.Params{cluster.DefaultProfile: {"maxmem": int64(128), "vcpus": int64(1), "auto_balance": true}}})
	s.put(&cluster.Group{Meta: cluster.NewMeta("g1", 1), Name: "g1", AllocPolicy: cluster.AllocPreferred})
	for _, name := range nodes {
		s.node(name, nil)
	}
	return s
}

func (s *site) put(o cluster.Object) { s.changes = append(s.changes, cluster.Put(o)) }

func (s *site) node(name string, change func(*cluster.Node)) {
	n := &cluster.Node{Meta: cluster.NewMeta("uuid of "+name, 1), Name: name, Group: "g1", VMCapable: true}
	if change != nil {
		change(n)
	}
	s.put(n)
	s.reports[n.UUID] = placement.Report{Memory: 4096, MemoryFree: 4096, Disk: 1 << 20, DiskFree: 1 << 20}
}

// instance adds one that is to run, with so much memory, on its nodes.
func (s *site) instance(name, template string, memory int64, nodes ...string) *cluster.Instance {
	i := &cluster.Instance{Meta: cluster.NewMeta("uuid of "+name, 1), Name: name, AdminState: cluster.AdminUp, PrimaryNode: "uuid of " + nodes[0],
		BEParams: cluster.Params{"maxmem": memory}}
	if template != cluster.DiskDiskless {
		d := cluster.Disk{UUID: "disk of " + name, Type: template, Size: 1024}
		for _, n := range nodes {
			d.Nodes = append(d.Nodes, "uuid of "+n)
		}
		i.Disks = []cluster.Disk{d}
	}
	s.put(i)
	r := s.reports[i.PrimaryNode]
	r.MemoryFree -= memory
	s.reports[i.PrimaryNode] = r
	return i
}

func (s *site) world() placement.World {
	return placement.World{Inventory: cluster.Empty().With(s.changes...), Reports: s.reports, Claims: s.claims}
}

func (s *site) plan(node string, mode evacuation.Mode) []string {
	w := s.world()
	return texts(evacuation.Plan(w, evacuation.Request{Node: w.Inventory.NodeNamed(node), Mode: mode}))
}

func texts(courses []evacuation.Course) (out []string) {
	for i := range courses {
		out = append(out, courses[i].Text())
	}
	return out
}

func expect(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("planned is\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestPlan(t *testing.T) {
	s := newSite("node1", "node2", "node3")
	s.instance("big", cluster.DiskExt, 2000, "node1")
	s.instance("file", cluster.DiskFile, 128, "node1")
	s.instance("mirror", cluster.DiskDRBD, 512, "node1", "node2")
	s.instance("other", cluster.DiskDRBD, 512, "node2", "node1")
	const at = "most free memory, "
	expect(t, s.plan("node1", evacuation.Primaries),
		"big: to node3 ("+at+"4096 MiB, of 2 candidates)",
		"file cannot leave: its disks (file) are on node1 alone",
		"mirror: to node2 (it has the second copies of its disks)")
	expect(t, s.plan("node1", evacuation.Secondaries), "other: second copies of its disks to node3 ("+at+"4096 MiB, of 1 candidates)")
	expect(t, s.plan("node1", evacuation.Everything),
		"big: to node3 ("+at+"4096 MiB, of 2 candidates)",
		"file cannot leave: its disks (file) are on node1 alone",
		"mirror: to node2 (it has the second copies of its disks), then second copies of its disks to node3 ("+at+"4096 MiB, of 1 candidates)",
		"other: second copies of its disks to node3 ("+at+"2096 MiB, of 1 candidates)")
	expect(t, s.plan("node3", evacuation.Everything))
}

// What stands in the way is said of each instance, and it keeps none of the others back.
func TestWhatCannotLeave(t *testing.T) {
	s := newSite("node1")
	s.node("away", func(n *cluster.Node) { n.Offline = true })
	s.node("drained", func(n *cluster.Node) { n.Drained = true })
	s.node("full", nil)
	s.reports["uuid of full"] = placement.Report{Memory: 4096, MemoryFree: 100, Disk: 1 << 20, DiskFree: 1 << 20}
	s.instance("a", cluster.DiskDRBD, 128, "node1", "away")
	s.instance("b", cluster.DiskDRBD, 128, "node1", "drained")
	s.instance("c", cluster.DiskDRBD, 128, "node1", "full")
	s.instance("d", cluster.DiskDRBD, 100, "node1", "full").Disks[0].Stale = []string{"uuid of full"}
	s.instance("e", cluster.DiskDRBD, 128, "away", "node1")
	s.instance("f", cluster.DiskDRBD, 128, "node1", "full").AdminState = cluster.AdminDown
	s.instance("g", cluster.DiskDRBD, 0, "full", "node1").Disks[0].Stale = []string{"uuid of full"}
	expect(t, s.plan("node1", evacuation.Primaries),
		"a cannot leave: away, which has the second copies of its disks, is offline",
		"b cannot leave: drained, which has the second copies of its disks, is drained",
		"c cannot leave: full, which has the second copies of its disks, has 100 MiB of memory free, and 128 are needed",
		"d cannot leave: the copy of its disk 0 on full is out of date",
		"f: to full (it has the second copies of its disks)")
	expect(t, s.plan("node1", evacuation.Secondaries), "e cannot leave: its primary node is offline, and its disks cannot be copied from there",
		"g cannot leave: the copy of its disk 0 on its primary node is out of date, so it cannot be copied from there")
	w := s.world()
	live := evacuation.Plan(w, evacuation.Request{Node: w.Inventory.NodeNamed("node1"), Mode: evacuation.Primaries, Live: true})
	if got := live[4].Text(); got != "f cannot leave: it is not running; drover instance failover moves it" {
		t.Error(got)
	}
}

// What was thought out for an instance that stays after all takes no room from those behind it.
func TestWhoStaysTakesNothing(t *testing.T) {
	s := newSite("node1", "node2")
	s.instance("a", cluster.DiskDRBD, 3000, "node1", "node2")
	s.instance("b", cluster.DiskExt, 1000, "node1")
	expect(t, s.plan("node1", evacuation.Everything),
		"a cannot leave: of 2 candidates 2 that the instance has or leaves",
		"b: to node2 (most free memory, 4096 MiB, of 1 candidates)")
}

// Of machines that are more than pretended their nodes keep what is not on their disks, and nodes keep only disks of some templates.
func TestMachinesThatAreNotPretended(t *testing.T) {
	s := newSite("node1", "node2")
	for uuid, r := range s.reports {
		r.Hypervisor, r.Templates = "kvm", []string{cluster.DiskFile, cluster.DiskExt}
		s.reports[uuid] = r
	}
	s.instance("a", cluster.DiskExt, 64, "node1").Hypervisor = "kvm"
	s.instance("b", cluster.DiskDiskless, 64, "node1").Hypervisor = "kvm"
	s.instance("c", cluster.DiskDRBD, 64, "elsewhere", "node1").Hypervisor = "kvm"
	s.node("elsewhere", nil)
	expect(t, s.plan("node1", evacuation.Primaries),
		"a cannot leave: its disks are where other nodes reach them, but what the machine keeps beside them is on node1 alone",
		"b: to node2 (most free memory, 4096 MiB, of 2 candidates)")
	w := s.world()
	expect(t, texts(evacuation.Plan(w, evacuation.Request{Node: w.Inventory.NodeNamed("node1"), Mode: evacuation.Secondaries, To: w.Inventory.NodeNamed("node2")})),
		"c cannot leave: node2: it keeps no disks of the template drbd; it has file, ext")
}

// A node that was asked for is taken, unless it cannot do it.
func TestWhereAnOperatorSays(t *testing.T) {
	s := newSite("node1", "node2", "node3")
	s.node("away", func(n *cluster.Node) { n.Offline = true })
	s.instance("a", cluster.DiskDRBD, 128, "node2", "node1")
	s.instance("b", cluster.DiskDRBD, 128, "node3", "node1")
	w := s.world()
	to := func(name string) []string {
		return texts(evacuation.Plan(w, evacuation.Request{Node: w.Inventory.NodeNamed("node1"), Mode: evacuation.Secondaries, To: w.Inventory.NodeNamed(name)}))
	}
	expect(t, to("node2"), "a cannot leave: node2 is its primary node", "b: second copies of its disks to node2 (it was asked for)")
	expect(t, to("away"), "a cannot leave: away: it is marked offline", "b cannot leave: away: it is marked offline")
}

// For any cluster: the plan has each instance that is meant once; carried out, it leaves nothing of what it says on the node, none has both copies of
// its disks on one node, no node out of service gets anything, and none has less memory free than none.
func TestPlansAgreeWithTheWorld(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w, r := random(rt)
		reports := maps.Clone(w.Reports)
		courses := evacuation.Plan(w, r)
		if !maps.EqualFunc(reports, w.Reports, func(a, b placement.Report) bool { return a.MemoryFree == b.MemoryFree && a.DiskFree == b.DiskFree }) {
			rt.Fatal("a plan changed the world that it was made upon")
		}
		if again := texts(evacuation.Plan(w, r)); !slices.Equal(again, texts(courses)) {
			rt.Fatalf("planned again it is %q, and was %q", again, texts(courses))
		}
		var meant []string
		for _, i := range evacuation.Instances(w.Inventory, r.Node.UUID, r.Mode) {
			meant = append(meant, i.Name)
		}
		free := map[string]int64{}
		for uuid, report := range w.Reports {
			free[uuid] = report.MemoryFree
		}
		for i, c := range courses {
			if i >= len(meant) || c.Instance.Name != meant[i] || (c.Cannot == "") != (len(c.Moves) > 0) {
				rt.Fatalf("of %q planned is %q", meant, texts(courses))
			}
			follow(rt, r, c, free)
		}
		if len(courses) != len(meant) {
			rt.Fatalf("of %q planned is %q", meant, texts(courses))
		}
	})
}

// follow makes the moves of a course.
func follow(rt *rapid.T, r evacuation.Request, c evacuation.Course, free map[string]int64) {
	if c.Cannot != "" {
		return
	}
	inst := c.Instance.Clone()
	for _, m := range c.Moves {
		if m.To.Offline || m.To.Drained || m.To == r.Node {
			rt.Fatalf("%s: %s takes nothing", c.Text(), m.To.Name)
		}
		switch m.Verb {
		case evacuation.Migrate:
			if inst.Mirroring() == cluster.InternalMirror && !slices.Contains(inst.SecondaryNodes(), m.To.UUID) {
				rt.Fatalf("%s: %s has no copy of its disks", c.Text(), m.To.Name)
			}
			if inst.AdminState == cluster.AdminUp {
				free[m.To.UUID] -= placement.NeedOf(&cluster.Cluster{}, inst).Memory
			}
			if free[m.To.UUID] < 0 {
				rt.Fatalf("%s: %s has no room", c.Text(), m.To.Name)
			}
			inst.MoveTo(m.To.UUID, false)
		case evacuation.ReplaceSecondary:
			if m.To.UUID == inst.PrimaryNode {
				rt.Fatalf("%s: both copies are on %s", c.Text(), m.To.Name)
			}
			inst.Disks[0].Nodes = []string{inst.PrimaryNode, m.To.UUID}
		}
	}
	if r.Mode != evacuation.Secondaries && inst.PrimaryNode == r.Node.UUID || r.Mode != evacuation.Primaries && slices.Contains(inst.SecondaryNodes(), r.Node.UUID) {
		rt.Fatalf("%s: something stays on %s", c.Text(), r.Node.Name)
	}
}

func random(rt *rapid.T) (placement.World, evacuation.Request) {
	few := func(name string, most int) int { return rapid.IntRange(0, most).Draw(rt, name) }
	s := newSite()
	nodes := 1 + few("nodes", 4)
	name := func(i int) string { return fmt.Sprint("node", i) }
	for i := range nodes {
		s.node(name(i), func(n *cluster.Node) { n.Offline, n.Drained = few("offline", 5) == 0, few("drained", 5) == 0 })
	}
	for k := range few("instances", 10) {
		primary := few("primary", nodes-1)
		second := few("second", nodes-1)
		template := rapid.SampledFrom([]string{cluster.DiskDRBD, cluster.DiskDRBD, cluster.DiskExt, cluster.DiskFile, cluster.DiskDiskless}).Draw(rt, "template")
		of := []string{name(primary)}
		if template == cluster.DiskDRBD {
			if second == primary {
				continue
			}
			of = append(of, name(second))
		}
		i := s.instance(fmt.Sprint("i", k), template, int64(256*(1+few("memory", 6))), of...)
		i.AdminState = rapid.SampledFrom([]string{cluster.AdminUp, cluster.AdminUp, cluster.AdminDown}).Draw(rt, "state")
		if few("stale", 6) == 0 && len(of) == 2 {
			i.Disks[0].Stale = []string{"uuid of " + of[1]}
		}
	}
	for uuid, r := range s.reports { // none is full to begin with
		r.MemoryFree = max(r.MemoryFree, 0)
		s.reports[uuid] = r
	}
	if few("claim", 3) == 0 {
		s.claims = []placement.Claim{{Instance: "new", Node: "uuid of " + name(few("claimed", nodes-1)), Need: placement.Need{Memory: 1024}}}
	}
	w := s.world()
	r := evacuation.Request{Node: w.Inventory.NodeNamed(name(few("node", nodes-1)))}
	r.Mode = rapid.SampledFrom([]evacuation.Mode{evacuation.Primaries, evacuation.Secondaries, evacuation.Everything}).Draw(rt, "mode")
	r.Live = r.Mode == evacuation.Primaries && rapid.Bool().Draw(rt, "live")
	return w, r
}
