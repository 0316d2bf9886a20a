package exec

import (
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/cluster"
)

// It runs on the other node afterwards, with its disks there alone.
func TestMove(t *testing.T) {
	r := newRig(t, "node1", "node2", "node3")
	r.create("one", true)
	r.must("null", "OP_INSTANCE_MOVE", one(params{"target_node": "node2"}))
	r.logged(" - INFO: Shutting down instance one on source node node1", "Exporting disk/0 from node1 to node2",
		" - INFO: Starting instance one on node node2", " - INFO: Removing the disks on the original node")
	snap, inst := r.keeper.Snapshot(), r.instance("one")
	if node := snap.NodeNamed("node2").UUID; inst.PrimaryNode != node || inst.Disks[0].Nodes[0] != node || len(inst.Disks[0].Nodes) != 1 {
		t.Errorf("the inventory says %+v", inst)
	}
	if r.state("node1", "one") != "" || r.state("node2", "one") != "running" {
		t.Errorf("node1 has it %q, node2 %q", r.state("node1", "one"), r.state("node2", "one"))
	}
	r.must("null", "OP_INSTANCE_SHUTDOWN", one(nil))
	r.must("null", "OP_INSTANCE_MOVE", one(params{"target_node": "node3"}))
	if r.state("node2", "one") != "" || r.state("node3", "one") != "stopped" {
		t.Errorf("node2 has it %q, node3 %q", r.state("node2", "one"), r.state("node3", "one"))
	}
	r.must(`["node1"]`, "OP_INSTANCE_CREATE", params{"instance_name": "none", "mode": "create", "pnode": "node1", "disk_template": "diskless",
		"disks": []any{}, "nics": []any{}, "os_type": "noop+default", "start": true})
	r.must("null", "OP_INSTANCE_MOVE", params{"instance_name": "none", "target_node": "node2"})
	if r.state("node2", "none") != "running" {
		t.Errorf("without disks it is %q on node2", r.state("node2", "none"))
	}
}

// A move that fails leaves the instance where it was, running, and nothing elsewhere.
func TestMoveThatFails(t *testing.T) {
	for _, method := range []string{"prepare", "start"} {
		r := newRig(t, "node1", "node2")
		r.create("one", true)
		r.failOn("node2", method, false)
		if _, err := r.run("OP_INSTANCE_MOVE", one(params{"target_node": "node2"})); err == nil {
			t.Errorf("with %s that fails it succeeds", method)
		}
		if r.state("node1", "one") != "running" || r.state("node2", "one") != "" {
			t.Errorf("%s failed: node1 has it %q, node2 %q", method, r.state("node1", "one"), r.state("node2", "one"))
		}
		for _, node := range []string{"node1", "node2"} {
			if text := r.nodeExports(node); text != "" {
				t.Errorf("%s failed: %s has %s", method, node, text)
			}
		}
	}
}

// nodeExports are the exports that a node has.
func (r *rig) nodeExports(node string) string {
	r.Helper()
	a, err := r.fleet.Agent(node)
	if err != nil {
		r.Fatal(err)
	}
	list, err := a.Exports(r.Context())
	if err != nil {
		r.Fatal(err)
	}
	return strings.Join(list, " ")
}

func TestMoveRefusals(t *testing.T) {
	r := newRig(t, "node1", "node2", "node3")
	r.create("one", true)
	r.create("lost", false)
	r.lose("lost", "node1")
	r.mirrored("pair", false)
	r.mark("node3", func(n *cluster.Node) { n.Drained = true })
	for _, c := range []struct {
		text string
		p    params
	}{
		{"Instance disk 0 has disk type drbd and is not suitable for copying (drover instance migrate, or failover, takes it where its disks are or are reached)",
			params{"instance_name": "pair", "target_node": "node2"}},
		{"Instance one is already on the node node1", one(params{"target_node": "node1"})},
		{"Can't use drained node: node3", one(params{"target_node": "node3"})},
		{"Node 'nosuch' not known", one(params{"target_node": "nosuch"})},
		{"Node node1 has no disk 0 of instance lost, so it cannot be copied from there (drover instance recreate-disks lost makes the disks that are missing anew, empty)",
			params{"instance_name": "lost", "target_node": "node2"}},
		{`Dumps are not compressed on their way, and "gzip" was asked for (leave it out, or say none)`, one(params{"target_node": "node2", "compress": "gzip"})},
	} {
		r.refuses("OpPrereqError", c.text, "OP_INSTANCE_MOVE", c.p)
	}
}

// What keeps something beside its disks would leave it behind.
func TestKeptBeside(t *testing.T) {
	c := &cluster.Cluster{}
	for _, tc := range []struct {
		inst cluster.Instance
		want string
	}{
		{cluster.Instance{OS: "noop+default"}, ""},
		{cluster.Instance{OS: "noop", HVParams: cluster.Params{"firmware": "bios", "tpm": "none"}}, ""},
		{cluster.Instance{OS: "image+debian12"}, "first start"},
		{cluster.Instance{OS: "noop", HVParams: cluster.Params{"firmware": "uefi"}}, "firmware"},
		{cluster.Instance{OS: "noop", HVParams: cluster.Params{"tpm": "2.0"}}, "TPM"},
	} {
		if got := keptBeside(c, &tc.inst); (got == "") != (tc.want == "") || !strings.Contains(got, tc.want) {
			t.Errorf("%+v: got %q, want %q", tc.inst, got, tc.want)
		}
	}
}

func TestMoveSharesTheNodeThatItGoesTo(t *testing.T) {
	r := newRig(t, "node1", "node2")
	r.create("one", false)
	request, err := r.all.Locks(r.opcode("OP_INSTANCE_MOVE", one(params{"target_node": "node2"})), r.keeper.Snapshot())
	if err != nil || len(request) != 2+2*2 {
		t.Errorf("got %v, %v", request, err)
	}
}

// The disks of what is pretended are dumped at once, so what the reference would snapshot needs no leave to stand still; other disks do.
func TestExportOfWhatWouldBeSnapshotted(t *testing.T) {
	r := newRig(t, "node1", "node2", "node3")
	r.create("one", true)
	r.mirrored("pair", true)
	r.must("[true,[true]]", "OP_BACKUP_EXPORT", params{"instance_name": "pair", "target_node": "node3"})
	if r.state("node1", "pair") != "running" {
		t.Errorf("it is %q", r.state("node1", "pair"))
	}
	if _, err := r.run("OP_BACKUP_EXPORT", one(params{"target_node": "node3"})); err == nil || !strings.Contains(err.Error(), "--long-sleep") {
		t.Errorf("of a disk in a file: %v", err)
	}
}

// What a move could not remove is told with what takes it, which is so: a move back.
func TestAMoveBackTakesWhatWasLeft(t *testing.T) {
	r := newRig(t, "node1", "node2")
	r.create("one", false)
	r.failOn("node1", "remove", false)
	r.must("null", "OP_INSTANCE_MOVE", one(params{"target_node": "node2"}))
	r.logs(" - WARNING: Node node1 still has the disks of instance one (" + r.instance("one").UUID +
		") as they were, and nothing uses them: a move of the instance back there takes them, else whoever looks after the node removes them")
	r.failOn("node1", "", false)
	r.must("null", "OP_INSTANCE_MOVE", one(params{"target_node": "node1"}))
	for node, want := range map[string]int{"node1": 1, "node2": 0} {
		a, err := r.fleet.Agent(node)
		if err != nil {
			t.Fatal(err)
		}
		if there, err := a.Named(t.Context(), "one"); err != nil || len(there) != want || want > 0 && len(there[0].Disks) != 1 {
			t.Errorf("%s has %+v, %v", node, there, err)
		}
	}
}
