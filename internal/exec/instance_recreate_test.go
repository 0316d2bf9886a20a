package exec

import (
	"slices"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/cluster"
)

func TestRecreation(t *testing.T) {
	r := newRig(t, "node1", "node2", "node3")
	r.create("one", false)
	r.mirrored("pair", false)
	lost := func(p params) params { p["instance_name"] = "pair"; return p }
	r.lose("one", "node1")
	r.must("null", "OP_INSTANCE_RECREATE_DISKS", one(params{"disks": []any{[]any{0, params{"size": "12M", "mode": "ro"}}}}))
	if d := r.instance("one").Disks[0]; d.Size != 12 || d.Mode != "ro" {
		t.Errorf("got %+v", d)
	}
	r.must(r.device("one"), "OP_INSTANCE_ACTIVATE_DISKS", one(nil))

	// A copy that is there is no reason to make both anew.
	r.lose("pair", "node1")
	r.refuses("OpPrereqError", "Disk 0 of instance pair is on node node2, so it is not made anew (drover instance replace-disks copies it where it is lost)", "OP_INSTANCE_RECREATE_DISKS", lost(params{}))
	r.lose("pair", "node2")
	r.must("null", "OP_INSTANCE_RECREATE_DISKS", lost(params{}))
	r.must(`[["node1","disk/0","/dev/drbd0"]]`, "OP_INSTANCE_ACTIVATE_DISKS", lost(params{"wait_for_sync": true}))

	// On other nodes, which are its own afterwards.
	r.lose("pair", "node1", "node2")
	r.must("null", "OP_INSTANCE_RECREATE_DISKS", lost(params{"nodes": []any{"node3", "node1"}}))
	inst, snap := r.instance("pair"), r.keeper.Snapshot()
	want := []string{snap.NodeNamed("node3").UUID, snap.NodeNamed("node1").UUID}
	if got := instanceNodes(inst); !slices.Equal(got, want) || inst.Disks[0].LogicalID[0] != want[0] {
		t.Errorf("it is on %v, want %v; %+v", got, want, inst.Disks)
	}
	r.must("null", "OP_INSTANCE_STARTUP", lost(params{}))
	if r.state("node3", "pair") != "running" {
		t.Errorf("on node3 it is %q", r.state("node3", "pair"))
	}
}

// The nodes that had the disks are gone: placement chooses others.
func TestRecreationWhereItFits(t *testing.T) {
	r := newRig(t, "node1", "node2", "node3")
	r.mirrored("pair", false)
	r.lose("pair", "node2")
	r.down["node1"] = true
	r.mark("node1", func(n *cluster.Node) { n.Offline = true })
	r.must("null", "OP_INSTANCE_RECREATE_DISKS", params{"instance_name": "pair", "iallocator": "hail"})
	for _, uuid := range instanceNodes(r.instance("pair")) {
		if r.keeper.Snapshot().Node(uuid).Name == "node1" {
			t.Error("it is on the node that is offline")
		}
	}
}

func TestRecreationRefusals(t *testing.T) {
	r := newRig(t, "node1", "node2", "node3")
	r.create("one", false)
	r.create("up", true)
	r.mirrored("pair", false)
	r.lose("one", "node1")
	r.must(`["node1"]`, "OP_INSTANCE_CREATE", params{"instance_name": "none", "mode": "create", "pnode": "node1", "disk_template": "diskless", "disks": []any{}, "nics": []any{}, "os_type": "noop+default", "start": false})
	for _, c := range []struct {
		text string
		p    params
	}{
		{"Instance 'none' has no disks", params{"instance_name": "none"}},
		{"Instance 'up' is marked to be up, cannot recreate disks", params{"instance_name": "up"}},
		{"Invalid disk index '1'", one(params{"disks": []any{1}})},
		{"Some disks have been specified more than once: 0", one(params{"disks": []any{[]any{0, params{}}, []any{0, params{}}}})},
		{"Parameters for disk 0 try to change unmodifyable parameter(s): name, vg", one(params{"disks": []any{[]any{0, params{"name": "x", "vg": "y"}}}})},
		{"Spindles in instance disks cannot be specified when exclusive storage is not active", one(params{"disks": []any{[]any{0, params{"spindles": 2}}}})},
		{"Invalid disk size 'x'", one(params{"disks": []any{[]any{0, params{"size": "x"}}}})},
		{"Node 'nosuch' not known", one(params{"nodes": []any{"nosuch"}})},
		{"Instance one currently has 1 nodes, but 2 replacement nodes were specified", one(params{"nodes": []any{"node1", "node2"}})},
		{"Do not specify both, iallocator and node", one(params{"nodes": []any{"node2"}, "iallocator": "hail"})},
		{"Can't compute nodes using iallocator 'nosuch': it is not there", one(params{"iallocator": "nosuch"})},
		{"The secondary node cannot be the primary node", params{"instance_name": "pair", "nodes": []any{"node3", "node3"}}},
		{"Disk 0 of instance pair is on node node2, so it is not made anew (drover instance replace-disks copies it where it is lost)", params{"instance_name": "pair", "nodes": []any{"node3", "node2"}}},
	} {
		r.refuses("OpPrereqError", c.text, "OP_INSTANCE_RECREATE_DISKS", c.p)
	}
	r.must("null", "OP_INSTANCE_SHUTDOWN", params{"instance_name": "up"})
	r.must(`["node1"]`, "OP_INSTANCE_CREATE", params{"instance_name": "two", "mode": "create", "pnode": "node1", "disk_template": "file",
		"disks": []any{params{"size": 8}, params{"size": 8}}, "nics": []any{}, "os_type": "noop+default", "start": false})
	r.lose("two", "node1")
	r.refuses("OpPrereqError", "Can't recreate disks partially and change the nodes at the same time", "OP_INSTANCE_RECREATE_DISKS", params{"instance_name": "two", "disks": []any{1}, "nodes": []any{"node2"}})
}

// Another node cannot know whether disks are lost that every node reaches, so none but their own makes them anew, and what it has is not taken back.
func TestRecreationOfWhatEveryNodeReaches(t *testing.T) {
	const refusal = "Disks of template 'ext' are where every node reaches them, so another node can't have them made anew " +
		"(drover instance failover takes the instance to another node with its disks; recreate-disks makes those that are lost anew there)"
	r := newRig(t, "node1", "node2", "node3")
	r.shared("san", false)
	op := func(more params) params { more["instance_name"] = "san"; return more }
	r.down["node1"] = true
	r.mark("node1", func(n *cluster.Node) { n.Offline = true })
	for _, p := range []params{{"nodes": []any{"node2"}}, {"iallocator": "hail"}} {
		r.refuses("OpPrereqError", refusal, "OP_INSTANCE_RECREATE_DISKS", op(p))
	}
	r.down["node1"] = false
	r.mark("node1", func(n *cluster.Node) { n.Offline = false })
	r.lose("san", "node1")
	r.must("null", "OP_INSTANCE_RECREATE_DISKS", op(params{"nodes": []any{"node1"}}))
	r.must(`[["node1","disk/0",null]]`, "OP_INSTANCE_ACTIVATE_DISKS", op(params{}))

	again := &recreation{env: &Env{Now: time.Now}, inst: r.instance("san"), nodes: []*cluster.Node{r.keeper.Snapshot().NodeNamed("node1")}}
	if s := again.steps()[0]; s.Undo != nil {
		t.Errorf("behind a failure the node would %s", s.Undo.Text)
	}
}

func TestRecreationsKilledAnywhere(t *testing.T) {
	begin := func(t *testing.T) *rig {
		t.Helper()
		r := moveable(t)
		r.mirrored("lost", false)
		r.lose("lost", "node1", "node2")
		return r
	}
	for name, p := range map[string]params{
		"where they were": {"instance_name": "lost"},
		"on other nodes":  {"instance_name": "lost", "nodes": []any{"node3", "node1"}},
	} {
		t.Run(name, func(t *testing.T) { killedAnywhere(t, begin, "OP_INSTANCE_RECREATE_DISKS", p, false) })
	}
}

// What a recreation has shared covers where it works, and where it may come to.
func TestRecreationLocks(t *testing.T) {
	r := newRig(t, "node1", "node2", "node3")
	r.create("one", false)
	for _, c := range []struct {
		p    params
		want int // of nodes, each twice
	}{{one(nil), 1}, {one(params{"nodes": []any{"node2"}}), 2}, {one(params{"iallocator": "hail"}), 2}} {
		request, err := r.all.Locks(r.opcode("OP_INSTANCE_RECREATE_DISKS", c.p), r.keeper.Snapshot())
		if err != nil || len(request) != 2+2*c.want {
			t.Errorf("%v: %v, %v", c.p, request, err)
		}
	}
}
