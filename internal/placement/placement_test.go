package placement_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/placement"
	"github.com/drover-project/drover/internal/testkit"
)

// site is a cluster as tests write it down.
type site struct {
	placement.World

	changes []cluster.Change
}

func newSite(tags ...string) *site {
	s := &site{World: placement.World{Reports: map[string]placement.Report{}}}
	c := &cluster.Cluster{
		Meta: cluster.NewMeta("cluster", 1), Name: "cluster",
		BEParams: map[string]cluster.Params{cluster.DefaultProfile: {"maxmem": int64(1024), "minmem": int64(1024), "vcpus": int64(1), "auto_balance": true, "spindle_use": int64(1)}},
		IPolicy:  cluster.Params{cluster.PolicyVCPUs: 4.0},
	}
	c.Tags = tags
	s.put(c)
	s.put(&cluster.Group{Meta: cluster.NewMeta("g1", 1), Name: "default", AllocPolicy: cluster.AllocPreferred})
	return s
}

func (s *site) put(o cluster.Object) { s.changes = append(s.changes, cluster.Put(o)) }

// node adds a node of a group with 8 GiB of memory, 100 GiB of disk space and 4 processors.
func (s *site) node(name, group string, change ...func(*cluster.Node)) {
	n := cluster.NewNode("uuid of "+name, name, "192.0.2.1", group, 1)
	for _, f := range change {
		f(n)
	}
	s.put(n)
	s.Reports[n.UUID] = placement.Report{Memory: 8192, MemoryFree: 8192, Disk: 102400, DiskFree: 102400, CPUs: 4}
}

// runs says what runs the instances of a node.
func (s *site) runs(node, hypervisor string, standsIn bool) {
	r := s.Reports["uuid of "+node]
	r.Hypervisor, r.StandsIn = hypervisor, standsIn
	s.Reports["uuid of "+node] = r
}

// takes says which values of a hypervisor parameter a node takes.
func (s *site) takes(node, parameter string, values ...string) {
	r := s.Reports["uuid of "+node]
	r.Takes = map[string][]string{parameter: values}
	s.Reports["uuid of "+node] = r
}

// keeps says which disks a node keeps.
func (s *site) keeps(node string, templates ...string) {
	r := s.Reports["uuid of "+node]
	r.Templates = templates
	s.Reports["uuid of "+node] = r
}

// instance adds an instance with so much memory; secondary may be empty.
func (s *site) instance(name, primary, secondary string, memory int64, tags ...string) *cluster.Instance {
	i := instance(name, memory, 0, 1, tags...)
	i.PrimaryNode = "uuid of " + primary
	if secondary != "" {
		i.Disks = []cluster.Disk{{UUID: "disk of " + name, Type: cluster.DiskDRBD, Size: 1024, Nodes: []string{i.PrimaryNode, "uuid of " + secondary}}}
	}
	s.put(i)
	return i
}

func instance(name string, memory, disk, vcpus int64, tags ...string) *cluster.Instance {
	i := &cluster.Instance{Meta: cluster.NewMeta("uuid of "+name, 1), Name: name, AdminState: cluster.AdminUp,
		BEParams: cluster.Params{"maxmem": memory, "vcpus": vcpus}}
	i.Tags = tags
	if disk > 0 {
		i.Disks = []cluster.Disk{{UUID: "disk of " + name, Type: cluster.DiskFile, Size: disk}}
	}
	return i
}

func (s *site) world() placement.World {
	w := s.World
	w.Inventory = cluster.Empty().With(s.changes...)
	return w
}

// told is a decision as people read it.
func told(d placement.Decision) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s\n", d.Node, d.Why)
	for _, v := range d.Nodes {
		fmt.Fprintf(&b, "%d %s %s: %s\n", v.Rank, v.Node, v.Fails, v.Text())
	}
	return b.String()
}

// One cluster with a node for each constraint, and what is said of each.
func TestDecide(t *testing.T) {
	s := newSite("htools:iextags:service")
	s.put(&cluster.Group{Meta: cluster.NewMeta("g2", 1), Name: "closed", AllocPolicy: cluster.AllocUnallocatable})
	s.put(&cluster.Group{Meta: cluster.NewMeta("g3", 1), Name: "last", AllocPolicy: cluster.AllocLastResort})
	s.put(&cluster.Group{Meta: cluster.NewMeta("g4", 1), Name: "small", AllocPolicy: cluster.AllocPreferred, IPolicy: cluster.Params{"minmax": []any{
		map[string]any{"min": map[string]any{"memory-size": int64(1)}, "max": map[string]any{"memory-size": int64(512)}},
	}}})
	s.node("away", "g1", func(n *cluster.Node) { n.Offline = true })
	s.node("closed1", "g2")
	s.node("drained", "g1", func(n *cluster.Node) { n.Drained = true })
	s.node("full", "g1")
	s.node("half", "g1")
	s.instance("a", "half", "", 7096)
	s.node("last1", "g3")
	s.node("mirror", "g1") // of its 8192 MiB 5000 are kept for what would come from "drained"
	s.instance("b", "drained", "mirror", 5000)
	s.node("nodisk", "g1")
	s.Reports["uuid of nodisk"] = placement.Report{Memory: 8192, MemoryFree: 8192, Disk: 102400, DiskFree: 2047, CPUs: 4}
	s.node("old", "g1")
	s.takes("old", "cpu_type", "486", "EPYC", "EPYC-Rome", "Haswell", "Haswell-v1", "EPYC-v1")
	s.node("plain", "g1")
	s.takes("plain", "cpu_type", "EPYC-Milan")
	s.keeps("plain", "file", "sharedfile")
	s.node("silent", "g1")
	s.Reports["uuid of silent"] = placement.Report{Failed: "connection refused"}
	s.node("small1", "g4")
	s.node("store", "g1", func(n *cluster.Node) { n.VMCapable = false })
	s.node("tagged", "g1")
	s.instance("c", "tagged", "", 128, "service:web")
	s.node("tight", "g1")
	s.Claims = []placement.Claim{{Instance: "other", Node: "uuid of tight", Need: placement.Need{Memory: 6000}}}
	s.node("templates", "g1")
	s.keeps("templates", "plain", "sharedfile")
	s.node("unheard", "g1")
	delete(s.Reports, "uuid of unheard")
	s.node("xen", "g1")
	s.runs("xen", "xen-pvm", false)
	s.node("worn", "g1")
	s.put(func() cluster.Object { i := instance("d", 128, 0, 15); i.PrimaryNode = "uuid of worn"; return i }())

	request := placement.Request{Instance: instance("new", 4096, 2048, 2, "service:web", "owner:me"), Full: map[string]string{"uuid of full": "no space left"}}
	request.Instance.Hypervisor, request.Instance.HVParams = "kvm", cluster.Params{"cpu_type": "EPYC-Milan,+pcid"}
	d := placement.Decide(s.world(), request)
	const want = `plain: most free memory, 8192 MiB, of 2 candidates
1 plain : 8192 MiB of memory are free, 4096 would be left
2 last1 : 8192 MiB of memory are free, 4096 would be left
0 away offline: it is marked offline
0 closed1 alloc-policy: its group closed takes no new instances (it is unallocable)
0 drained drained: it is drained
0 full full: it had no room after all: no space left
0 half memory: 4096 MiB of memory are needed and 1096 are free: 3000 short
0 mirror n+1: 4096 MiB of memory are needed and 3192 are free beside what is kept for the instances of drained: 904 short
0 nodisk disk: 2048 MiB of disk space are needed and 2047 are free: 1 short
0 old hvparams: cpu_type=EPYC-Milan is needed, and it has EPYC-Rome, EPYC-v1, EPYC and 3 others
0 silent report: it does not tell its state: connection refused
0 small1 policy: the policy of its group refuses it: memory-size value 4096 is not in range [1, 512]
0 store vm-capable: it is not meant for instances (not vm_capable)
0 tagged exclusion: no two instances of a node may have the tag service:web, which c has
0 templates disk-template: it keeps no disks of the template file; it has plain, sharedfile
0 tight memory: 4096 MiB of memory are needed and 2192 are free: 1904 short
0 unheard report: it does not tell its state: nothing was heard of it
0 worn vcpus: 2 virtual processors are needed and 1 are left by the vcpu-ratio: 1 short
0 xen hypervisor: it runs instances of xen-pvm
`
	if got := told(d); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
	if err := d.Err(); err != nil {
		t.Error(err)
	}
}

// Disks that every node reaches take nothing of a node's room.
func TestDisksThatAreElsewhere(t *testing.T) {
	s := newSite()
	s.node("node1", "g1")
	s.Reports["uuid of node1"] = placement.Report{Memory: 8192, MemoryFree: 8192, Disk: 1024, DiskFree: 1024, CPUs: 4}
	for template, want := range map[string]string{cluster.DiskSharedFile: "node1", cluster.DiskExt: "node1", cluster.DiskFile: ""} {
		i := instance("new", 10, 2048, 1)
		i.Disks[0].Type = template
		if d := placement.Decide(s.world(), placement.Request{Instance: i}); d.Node != want {
			t.Errorf("%s: %s", template, told(d))
		}
	}
}

// What was asked for narrows the choice; and who finds nothing is told what is in the way, and how far.
func TestNoneFits(t *testing.T) {
	s := newSite()
	s.put(&cluster.Group{Meta: cluster.NewMeta("g2", 1), Name: "closed", AllocPolicy: cluster.AllocUnallocatable})
	s.node("node1", "g1")
	s.node("node2", "g1", func(n *cluster.Node) { n.Drained = true })
	s.node("node10", "g1")
	s.node("node20", "g2")
	s.put(&cluster.Group{Meta: cluster.NewMeta("g3", 1), Name: "picky", AllocPolicy: cluster.AllocUnallocatable, IPolicy: cluster.Params{"minmax": []any{
		map[string]any{"min": map[string]any{"memory-size": int64(64)}, "max": map[string]any{"memory-size": int64(512)}},
	}}})
	s.node("node30", "g3")
	s.instance("a", "node1", "", 3000)
	s.instance("b", "node10", "", 1000)
	for name, test := range map[string]struct {
		request placement.Request
		want    string
	}{
		"what no policy allows": {placement.Request{Instance: instance("new", 10, 0, 1), Group: "g3"},
			": of 5 candidates 4 in another group (default), 1 whose group's policy refuses it (memory-size value 10 is not in range [64, 512])"},
		"too large": {placement.Request{Instance: instance("new", 9000, 0, 1)},
			": of 5 candidates 2 in a group that takes no new instances (closed), 1 drained, 2 with too little memory (9000 MiB needed, at best 7192 on node10)"},
		"the most free memory":  {placement.Request{Instance: instance("new", 10, 0, 1)}, "node10: most free memory, 7192 MiB, of 2 candidates"},
		"a group that is named": {placement.Request{Instance: instance("new", 10, 0, 1), Group: "g2"}, "node20: most free memory, 8192 MiB, of 1 candidates"},
		"a node that is named":  {placement.Request{Instance: instance("new", 10, 0, 1), Node: "uuid of node20"}, "node20: most free memory, 8192 MiB, of 1 candidates"},
		"a node that is gone":   {placement.Request{Instance: instance("new", 10, 0, 1), Node: "gone"}, ": there is none to choose from"},
	} {
		d := placement.Decide(s.world(), test.request)
		if got := d.Node + ": " + d.Why; got != test.want {
			t.Errorf("%s: %s\nwant %s", name, got, test.want)
		}
		if err := d.Err(); (err == nil) != (d.Node != "") || err != nil && !fault.Is(err, fault.Exhausted) {
			t.Errorf("%s: %v", name, err)
		}
	}
	alone := placement.Decide(s.world(), placement.Request{Instance: instance("new", 10, 0, 1), Node: "uuid of node30"})
	if err := alone.Err(); !fault.Is(err, fault.Invalid) {
		t.Errorf("where what was asked for is all that is in the way: %v", err)
	}
}

// Each constraint is on the page for operators, with what it asks of a node, in the order of the table.
func TestPageOfConstraints(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(testkit.Root(t), "docs", "placement.md"))
	if err != nil {
		t.Fatal(err)
	}
	var rows strings.Builder
	for _, m := range placement.Meanings() {
		fmt.Fprintf(&rows, "| `%s` | %s |\n", m[0], m[1])
	}
	if !strings.Contains(string(page), rows.String()) {
		t.Errorf("docs/placement.md lacks the rows\n%s", &rows)
	}
}

// Mirrors need room where they would be started: a node keeps as much memory as the worst failure of one other would take.
func TestFailover(t *testing.T) {
	s := newSite()
	s.node("node1", "g1")
	s.node("node2", "g1")
	s.node("spare", "g1")
	s.instance("a", "node1", "spare", 3000)
	s.instance("b", "node1", "spare", 2000)
	s.instance("c", "node2", "spare", 4000)
	off := s.instance("d", "node2", "spare", 4000)
	off.AdminState = cluster.AdminOffline
	alone := s.instance("e", "node2", "spare", 4000)
	alone.BEParams["auto_balance"] = false
	for memory, want := range map[int64]string{
		3192: "8192 MiB of memory are free, 5000 would be left",
		3193: "3193 MiB of memory are needed and 3192 are free beside what is kept for the instances of node1: 1 short",
	} {
		d := placement.Decide(s.world(), placement.Request{Instance: instance("new", memory, 0, 1), Node: "uuid of spare"})
		if got := d.Nodes[0].Text(); got != want {
			t.Errorf("%d MiB: %s\nwant %s", memory, got, want)
		}
	}
}

// random draws a cluster and a request.
func random(rt *rapid.T) (placement.World, placement.Request) {
	few := func(name string, most int) int { return rapid.IntRange(0, most).Draw(rt, name) }
	some := func(name string) bool { return few(name, 5) == 0 }
	s := newSite(rapid.SampledFrom([][]string{nil, {"htools:iextags:service"}, {"htools:iextags:service", "htools:iextags:owner"}}).Draw(rt, "cluster tags")...)
	policies := []cluster.Params{nil, {cluster.PolicyVCPUs: 1.5}, {"minmax": []any{map[string]any{"min": map[string]any{}, "max": map[string]any{"memory-size": int64(3000)}}}}}
	for _, name := range []string{"g2", "g3"} {
		s.put(&cluster.Group{Meta: cluster.NewMeta(name, 1), Name: name, IPolicy: rapid.SampledFrom(policies).Draw(rt, "policy"),
			AllocPolicy: rapid.SampledFrom([]string{cluster.AllocPreferred, cluster.AllocLastResort, cluster.AllocUnallocatable}).Draw(rt, "alloc policy")})
	}
	groups := []string{"g1", "g2", "g3"}
	nodes := rapid.IntRange(1, 6).Draw(rt, "nodes")
	name := func(i int) string { return fmt.Sprint("node", i) }
	for i := range nodes {
		s.node(name(i), rapid.SampledFrom(groups).Draw(rt, "group"), func(n *cluster.Node) {
			n.Offline, n.Drained, n.VMCapable = some("offline"), some("drained"), !some("incapable")
		})
		r := s.Reports["uuid of "+name(i)]
		r.MemoryFree, r.DiskFree, r.CPUs = int64(1024*few("free", 8)), int64(1024*few("disk", 8)), int64(few("cpus", 4))
		if i < 3 {
			r.Hypervisor = rapid.SampledFrom([]string{"", "kvm", "xen-pvm", "fake"}).Draw(rt, "hypervisor")
			r.StandsIn = r.Hypervisor == "fake"
			r.Takes = rapid.SampledFrom([]map[string][]string{nil, {"cpu_type": {"EPYC"}}, {"cpu_type": {"EPYC", "Haswell"}, "tpm": {"none"}}, {"tpm": nil}}).Draw(rt, "takes")
		}
		r.Templates = rapid.SampledFrom([][]string{nil, nil, {"file"}, {"plain"}}).Draw(rt, "templates")
		if some("silent") {
			r = placement.Report{Failed: "away"}
		}
		s.Reports["uuid of "+name(i)] = r
	}
	tags := func() []string {
		return rapid.SampledFrom([][]string{nil, {"service:web"}, {"owner:me", "x"}, {"drover:placed:apart:g"}, {"drover:placed:at-most:2:g", "drover:placed:rather-apart:g"},
			{"drover:placed:together:g"}, {"drover:placed:rather-together:g", "drover:placed:apart:h"}}).Draw(rt, "tags")
	}
	for k := range few("instances", 8) {
		second := ""
		primary := few("primary", nodes-1)
		if other := few("secondary", nodes-1); other != primary && rapid.Bool().Draw(rt, "mirrored") {
			second = name(other)
		}
		i := s.instance(fmt.Sprint("i", k), name(primary), second, int64(512*few("memory", 6)), tags()...)
		i.AdminState = rapid.SampledFrom([]string{cluster.AdminUp, cluster.AdminDown, cluster.AdminOffline}).Draw(rt, "state")
		if some("shares the default") {
			delete(i.BEParams, "maxmem")
		}
	}
	for k := range few("claims", 3) {
		s.Claims = append(s.Claims, placement.Claim{Instance: fmt.Sprint("uuid of ", rapid.SampledFrom([]string{"new", "i0", "x"}).Draw(rt, "claims"), k), Node: "uuid of " + name(few("claimed", nodes-1)),
			Need: placement.Need{Memory: int64(512 * few("memory", 4)), Disk: int64(1024 * few("disk", 2)), VCPUs: int64(few("vcpus", 2))}, Tags: tags()})
	}
	r := placement.Request{Instance: instance("new", int64(512*few("memory", 8)), int64(1024*few("disk", 4)), int64(1+few("vcpus", 3)), tags()...), IgnorePolicy: some("ignore policy"), Full: map[string]string{}}
	r.Instance.Hypervisor = rapid.SampledFrom([]string{"kvm", "fake"}).Draw(rt, "wanted")
	r.Instance.HVParams = rapid.SampledFrom([]cluster.Params{nil, {"cpu_type": ""}, {"cpu_type": "Haswell,-avx2"}, {"cpu_type": "EPYC", "tpm": "v2.0"}}).Draw(rt, "hvparams")
	if some("one group") {
		r.Group = rapid.SampledFrom(groups).Draw(rt, "asked for")
	}
	if some("one node") {
		r.Node = "uuid of " + name(few("asked for", nodes-1))
	}
	if some("full") {
		r.Full["uuid of node0"] = "no"
	}
	if some("leaves") {
		r.Leaves = []string{"uuid of " + name(few("left", nodes-1))}
	}
	return s.world(), r
}

// inventorial are the constraints of which the inventory, and what was asked for, tell alone.
var inventorial = []placement.Constraint{
	placement.OtherGroup, placement.Taken, placement.Unallocable, placement.Offline, placement.Drained, placement.Incapable, placement.Full, placement.Policy,
}

// pretended reports whether the instance would be pretended on the node although another that can be asked runs such for real.
func pretended(w placement.World, r placement.Request) bool {
	for n := range w.Inventory.Nodes() {
		if (r.Node == "" || r.Node == n.UUID) && w.Reports[n.UUID].Hypervisor == r.Instance.Hypervisor && !slices.Contains(inventorial, model(w, r, n)) {
			return true
		}
	}
	return false
}

// lacks reports whether a node does not take what a hypervisor parameter begins with.
func lacks(i *cluster.Instance, report placement.Report, parameter string) bool {
	value, _ := i.HVParams[parameter].(string)
	takes, told := report.Takes[parameter]
	return told && value != "" && !slices.ContainsFunc(takes, func(t string) bool { return t == value || strings.HasPrefix(value, t+",") })
}

// The first constraint that a node breaks, worked out in another way: from the whole inventory for each question.
func model(w placement.World, r placement.Request, n *cluster.Node) placement.Constraint {
	c, group := w.Inventory.Cluster(), w.Inventory.Group(n.Group)
	report := w.Reports[n.UUID]
	var memory, disk, vcpus, worst int64
	shares := false
	moves := map[string]int64{}
	exclusive := func(tag string) bool {
		return slices.ContainsFunc(c.Tags, func(t string) bool { return strings.HasPrefix(tag, strings.TrimPrefix(t, "htools:iextags:")+":") })
	}
	shared := func(tags []string) bool {
		return slices.ContainsFunc(tags, func(t string) bool { return exclusive(t) && slices.Contains(r.Instance.Tags, t) })
	}
	for i := range w.Inventory.Instances() {
		be := c.FillBE(i)
		here, mirror := i.PrimaryNode == n.UUID, slices.Contains(i.SecondaryNodes(), n.UUID)
		if here || mirror {
			disk += i.DiskUsage()
		}
		if here && shared(i.Tags) {
			shares = true
		}
		if i.AdminState == cluster.AdminOffline {
			continue
		}
		if here {
			memory += be["maxmem"].(int64)
			vcpus += be["vcpus"].(int64)
		}
		if mirror {
			moves[i.PrimaryNode] += be["maxmem"].(int64)
			worst = max(worst, moves[i.PrimaryNode])
		}
	}
	var claimed int64
	for _, k := range w.Claims {
		there := w.Inventory.Instance(k.Instance)
		known := there != nil && (there.PrimaryNode == n.UUID || slices.Contains(there.SecondaryNodes(), n.UUID))
		if k.Node == n.UUID && k.Instance != r.Instance.UUID && !known {
			claimed += k.Need.Memory
			disk += k.Need.Disk
			vcpus += k.Need.VCPUs
			shares = shares || shared(k.Tags)
		}
	}
	need := placement.NeedOf(c, r.Instance)
	free := min(report.MemoryFree, report.Memory-memory) - claimed
	policy := c.FillIPolicy(group)
	ratio, _ := policy[cluster.PolicyVCPUs].(float64)
	switch {
	case r.Group != "" && r.Group != n.Group:
		return placement.OtherGroup
	case slices.Contains(r.Leaves, n.UUID):
		return placement.Taken
	case r.Group == "" && r.Node == "" && group.AllocPolicy == cluster.AllocUnallocatable:
		return placement.Unallocable
	case n.Offline:
		return placement.Offline
	case n.Drained:
		return placement.Drained
	case !n.VMCapable:
		return placement.Incapable
	case r.Full[n.UUID] != "":
		return placement.Full
	case !r.IgnorePolicy && len(placement.Violations(policy, c.FillBE(r.Instance), r.Instance, r.NICs)) > 0:
		return placement.Policy
	case report.Failed != "":
		return placement.Unreported
	case report.StandsIn && report.Hypervisor != r.Instance.Hypervisor && pretended(w, r),
		!report.StandsIn && report.Hypervisor != "" && report.Hypervisor != r.Instance.Hypervisor:
		return placement.Hypervisor
	case lacks(r.Instance, report, "cpu_type"), lacks(r.Instance, report, "tpm"):
		return placement.Parameters
	case len(report.Templates) > 0 && len(r.Instance.Disks) > 0 && !slices.Contains(report.Templates, r.Instance.Disks[0].Type):
		return placement.Template
	case free < need.Memory:
		return placement.Memory
	case need.Disk > 0 && min(report.DiskFree, report.Disk-disk) < need.Disk:
		return placement.Disk
	case !r.IgnorePolicy && report.CPUs > 0 && float64(vcpus+need.VCPUs) > ratio*float64(report.CPUs):
		return placement.VCPUs
	case shares:
		return placement.Exclusion
	case slices.ContainsFunc(r.Instance.Tags, func(tag string) bool {
		return strings.HasPrefix(tag, "drover:placed:apart:") && companions(w, r, tag)[n.UUID] >= 1 || strings.HasPrefix(tag, "drover:placed:at-most:2:") && companions(w, r, tag)[n.UUID] >= 2
	}):
		return placement.Crowded
	case slices.ContainsFunc(r.Instance.Tags, func(tag string) bool {
		there := companions(w, r, tag)
		return strings.HasPrefix(tag, "drover:placed:together:") && len(there) > 0 && there[n.UUID] == 0
	}):
		return placement.Alone
	case worst > 0 && free-need.Memory < worst:
		return placement.Failover
	}
	return ""
}

// companions counts the instances with a tag on each node that has one, and those that are being made there.
func companions(w placement.World, r placement.Request, tag string) map[string]int {
	out := map[string]int{}
	for i := range w.Inventory.Instances() {
		if i.UUID != r.Instance.UUID && slices.Contains(i.Tags, tag) && !slices.Contains(r.Leaves, i.PrimaryNode) {
			out[i.PrimaryNode]++
		}
	}
	for _, k := range w.Claims {
		if k.Instance != r.Instance.UUID && !k.Kept(w.Inventory) && slices.Contains(k.Tags, tag) {
			out[k.Node]++
		}
	}
	return out
}

// likes counts what an instance would rather have on a node, and what it would rather not.
func likes(w placement.World, r placement.Request, n *cluster.Node) (count int) {
	for _, tag := range r.Instance.Tags {
		switch {
		case strings.HasPrefix(tag, "drover:placed:rather-together:"):
			count += companions(w, r, tag)[n.UUID]
		case strings.HasPrefix(tag, "drover:placed:rather-apart:"):
			count -= companions(w, r, tag)[n.UUID]
		}
	}
	return count
}

// Every node is told with the first constraint that it breaks, or has a rank; the chosen one is that of the first rank, in the best group with the
// most free memory; nothing but the candidates had to tell its state.
func TestDecisionsAgreeWithAModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w, r := random(rt)
		d := placement.Decide(w, r)
		said := map[string]placement.Verdict{}
		for i, v := range d.Nodes {
			said[v.Node] = v
			if fits := v.Fails == ""; fits != (v.Rank == i+1) || !fits && v.Rank != 0 {
				rt.Fatalf("%s has rank %d in place %d", v.Node, v.Rank, i+1)
			}
		}
		for n := range w.Inventory.Nodes() {
			v, found := said[n.Name]
			if asked := r.Node == "" || r.Node == n.UUID; found != asked {
				rt.Fatalf("%s is told: %t, asked for: %t", n.Name, found, asked)
			}
			if want := model(w, r, n); found && v.Fails != want {
				rt.Fatalf("%s: %q (%s), by the model %q\n%s", n.Name, v.Fails, v.Text(), want, told(d))
			}
		}
		for i := 1; i < len(d.Nodes) && d.Nodes[i].Rank > 0; i++ {
			if outranks(w, r, d.Nodes[i], d.Nodes[i-1]) {
				rt.Fatalf("%s comes before %s\n%s", d.Nodes[i-1].Node, d.Nodes[i].Node, told(d))
			}
		}
		if (d.Node == "") == (len(d.Nodes) > 0 && d.Nodes[0].Rank == 1) || d.Node != "" && (d.Nodes[0].Node != d.Node || w.Inventory.NodeNamed(d.Node).UUID != d.UUID) {
			rt.Fatalf("%s (%s) is chosen\n%s", d.Node, d.UUID, told(d))
		}
		asked := placement.World{Inventory: w.Inventory, Claims: w.Claims, Reports: map[string]placement.Report{}}
		for _, n := range placement.Candidates(w.Inventory, r) {
			asked.Reports[n.UUID] = w.Reports[n.UUID]
		}
		if again := placement.Decide(asked, r); !reflect.DeepEqual(again, d) {
			rt.Fatalf("with the candidates' reports alone\n%s\nwith all\n%s", told(again), told(d))
		}
		if text, err := d.Encode(); err != nil {
			rt.Fatal(err)
		} else if kept, err := placement.Decode(text); err != nil || !reflect.DeepEqual(*kept, d) {
			rt.Fatalf("kept %s, read\n%v, %v", text, kept, err)
		}
	})
}

// outranks reports whether a node ought to come before another: it is in a group that is preferred, or liked more, or has more memory free, or
// comes first by name.
func outranks(w placement.World, r placement.Request, a, b placement.Verdict) bool {
	x, y := w.Inventory.NodeNamed(a.Node), w.Inventory.NodeNamed(b.Node)
	last := func(n *cluster.Node) bool { return w.Inventory.Group(n.Group).AllocPolicy == cluster.AllocLastResort }
	if last(x) != last(y) {
		return last(y)
	}
	if likes(w, r, x) != likes(w, r, y) {
		return likes(w, r, x) > likes(w, r, y)
	}
	return a.Have > b.Have || a.Have == b.Have && cluster.CompareNames(x.Name, y.Name) < 0
}

// A decision is small where it is kept, and what is no decision is refused.
func TestStoredDecisions(t *testing.T) {
	for nodes, limit := range map[int]int{3: 1 << 10, 300: 3 << 10, 1000: 8 << 10} {
		w, r := large(nodes, 20*nodes)
		d := placement.Decide(w, r)
		text, err := d.Encode()
		if err != nil || len(text) > limit || len(d.Nodes) != nodes {
			t.Errorf("%d nodes: %d bytes, %v", nodes, len(text), err)
		}
		kept, err := placement.Decode(text)
		if err != nil || !reflect.DeepEqual(*kept, d) {
			t.Errorf("%d nodes: read %v, %v", nodes, kept, err)
		}
		t.Logf("%d nodes: %d bytes", nodes, len(text))
	}
	for _, text := range []string{``, `[]`, `{"deflated":"AAAA"}`, `{"nodes":["a"]}`, `{"nodes":["a"],"need":[1],"have":[1],"detail":{"x":[1]}}`, `{"fails":["memory"]}`} {
		if d, err := placement.Decode(json.RawMessage(text)); !fault.Is(err, fault.WrongState) {
			t.Errorf("%s: %v, %v", text, d, err)
		}
	}
}

// large is a cluster as large ones are: most nodes are full, one in ten is not.
func large(nodes, instances int) (placement.World, placement.Request) {
	s := newSite()
	for i := range nodes {
		s.node(fmt.Sprint("node", i, ".example.com"), "g1", func(n *cluster.Node) { n.Drained = i%17 == 0 })
	}
	for i := range instances {
		s.instance(fmt.Sprint("i", i), fmt.Sprintf("node%d.example.com", i%nodes), "", int64(300+i%nodes%10*10))
	}
	return s.world(), placement.Request{Instance: instance("new", 2048, 10240, 2)}
}

// One among 1,000 nodes with 20,000 instances.
func BenchmarkDecide(b *testing.B) {
	w, r := large(1000, 20000)
	b.ReportAllocs()
	for b.Loop() {
		placement.Decide(w, r)
	}
}

// Of several instances of a node that share exclusive tags with the new one the first by name is told.
func TestTheFirstThatSharesATagIsTold(t *testing.T) {
	s := newSite("htools:iextags:service")
	s.node("node1", "g1")
	for _, name := range []string{"i10", "i2", "i3"} {
		s.instance(name, "node1", "", 100, "service:"+name, "service:web")
	}
	r := placement.Request{Instance: instance("new", 100, 100, 1)}
	r.Instance.Tags = cluster.NewTags("service:web", "service:i10")
	d := placement.Decide(s.world(), r)
	if v := d.Nodes[0]; v.Fails != placement.Exclusion || v.Detail != "service:web, which i2 has" {
		t.Errorf("told is %+v", v)
	}
}

// Where some nodes run virtual machines and others pretend, one goes where it is run; where all pretend, any does.
func TestNobodyPretendsWhatAnotherRuns(t *testing.T) {
	s := newSite()
	s.node("a", "g1")
	s.runs("a", "fake", true)
	s.node("b", "g1")
	s.runs("b", "fake", true)
	r := placement.Request{Instance: instance("new", 100, 0, 1)}
	r.Instance.Hypervisor = "kvm"
	if d := placement.Decide(s.world(), r); d.Node != "a" {
		t.Errorf("where all pretend: %s", told(d))
	}
	s.runs("b", "kvm", false)
	if d := placement.Decide(s.world(), r); d.Node != "b" || d.Nodes[1].Text() != "it runs instances of fake" {
		t.Errorf("beside one that runs it: %s", told(d))
	}
	r.Instance.Hypervisor = "fake"
	if d := placement.Decide(s.world(), r); d.Node != "a" || d.Nodes[1].Text() != "it runs instances of kvm" {
		t.Errorf("pretended on purpose: %s", told(d))
	}
}
