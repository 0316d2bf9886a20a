package exec

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/lock"
	"github.com/drover-project/drover/internal/opcode"
	"github.com/drover-project/drover/internal/storage"
)

// Volumes are told of by the nodes that have them, in texts, with the instances that they are for; nodes that tell nothing have a warning each.
func TestVolumesOfNodes(t *testing.T) {
	r := newRig(t, "node1", "node2", "node10")
	r.mirrored("pair", false)
	r.create("one", false)
	drbd := r.instance("pair").Disks[0].UUID
	row := func(node, instance string) string {
		return fmt.Sprintf(`["%s","/dev/fake0","xenvg","%s","64","%s"]`, node, drbd, instance)
	}
	fields := []any{"node", "phys", "vg", "name", "size", "instance"}
	size := r.instance("pair").Disks[0].Size
	want := strings.ReplaceAll("["+row("node1", "pair")+","+row("node2", "pair")+"]", `"64"`, fmt.Sprintf(`"%d"`, size))
	r.must(want, "OP_NODE_QUERYVOLS", params{"output_fields": fields})
	r.must(`[["node2"]]`, "OP_NODE_QUERYVOLS", params{"output_fields": []any{"node"}, "nodes": []any{"node2", "node10", "node2"}})
	r.must(`[[],[]]`, "OP_NODE_QUERYVOLS", params{"output_fields": []any{}})
	r.down["node1"] = true
	r.setNode("node2", func(n *cluster.Node) { n.Offline = true })
	r.must(`[]`, "OP_NODE_QUERYVOLS", params{"output_fields": fields})
	if want := " - WARNING: Can't compute volume data on node node1: Can't contact node node1: node node1 does not answer"; !slices.Equal(r.log, []string{want}) {
		t.Errorf("it says %q", r.log)
	}
	r.refusesLike("OpPrereqError", "Unknown output fields selected: used,x", "OP_NODE_QUERYVOLS", params{"output_fields": []any{"used", "node", "x"}})
	r.refusesLike("OpPrereqError", "Node 'nosuch' not known", "OP_NODE_QUERYVOLS", params{"output_fields": []any{"node"}, "nodes": []any{"nosuch"}})
}

// A volume that was made for a disk which the inventory has elsewhere, or nowhere, is nobody's.
func TestVolumesOfNobody(t *testing.T) {
	r := newRig(t, "node1", "node2", "node3")
	r.mirrored("pair", false)
	disk := r.instance("pair").Disks[0].UUID
	r.wrap = func(n Node) Node {
		return lists{n, []storage.LogicalVolume{{Group: "vg", Name: "a", Device: "/dev/a", Size: 1, Disk: disk}, {Group: "vg", Name: "b", Device: "/dev/a"}, {Group: "vg", Name: "c", Device: "/dev/b", Disk: "gone"}}}
	}
	r.must(`[["a","-"],["b","-"],["c","-"]]`, "OP_NODE_QUERYVOLS", params{"output_fields": []any{"name", "instance"}, "nodes": []any{"node3"}})
	r.must(`[["a","pair"],["b","-"],["c","-"]]`, "OP_NODE_QUERYVOLS", params{"output_fields": []any{"name", "instance"}, "nodes": []any{"node1"}})
}

// Who asks for what nodes have does not wait for one that is away.
func TestVolumesOfNodesThatAreAway(t *testing.T) {
	r := newRig(t, "node1")
	r.wrap = func(n Node) Node { return distant{n} }
	r.must(`[]`, "OP_NODE_QUERYVOLS", params{"output_fields": []any{"name"}})
	if want := " - WARNING: Can't compute volume data on node node1: it is away"; !slices.Equal(r.log, []string{want}) {
		t.Errorf("it says %q", r.log)
	}
}

// lists is a node with such volumes.
type lists struct {
	anyNode
	volumes []storage.LogicalVolume
}

func (n lists) LogicalVolumes(context.Context) ([]storage.LogicalVolume, error) {
	return n.volumes, nil
}

func TestStorageOfNodes(t *testing.T) {
	r := newRig(t, "node1", "node2")
	all := []any{"node", "type", "name", "size", "used", "free", "allocatable"}
	ask := func(kind string) params {
		return params{"output_fields": all, "storage_type": kind, "nodes": []any{"node2"}}
	}
	r.must(`[["node2","file","/srv/ganeti/file-storage",4194304,0,4194304,true]]`, "OP_NODE_QUERY_STORAGE", ask("file"))
	r.must(`[["node2","lvm-vg","xenvg",4194304,0,4194304,true]]`, "OP_NODE_QUERY_STORAGE", ask("lvm-vg"))
	r.must(`[["node2","lvm-pv","/dev/fake0",4194304,0,4194304,true]]`, "OP_NODE_QUERY_STORAGE", ask("lvm-pv"))
	r.must(`[["node1",true],["node2",true]]`, "OP_NODE_QUERY_STORAGE", params{"output_fields": []any{"node", "allocatable"}, "storage_type": "lvm-pv", "name": "/dev/fake0"})
	r.must(`[]`, "OP_NODE_QUERY_STORAGE", params{"output_fields": []any{"node"}, "storage_type": "lvm-pv", "name": "/dev/sda", "nodes": []any{"node1"}})
	if want := " - WARNING: Can't get storage data from node node1: it has no storage unit /dev/sda of type 'lvm-pv'"; !slices.Equal(r.log, []string{want}) {
		t.Errorf("it says %q", r.log)
	}
	r.refusesLike("OpPrereqError", "Unknown output fields selected: vg", "OP_NODE_QUERY_STORAGE", params{"output_fields": []any{"vg"}})
	r.refusesLike("OpPrereqError", "Storage reporting for storage type 'ext' is not supported", "OP_NODE_QUERY_STORAGE", ask("ext"))
	r.refusesLike("OpPrereqError", "No disk template of storage type 'sharedfile' is enabled in this cluster. Enabled disk templates are: diskless,file,plain,drbd,ext", "OP_NODE_QUERY_STORAGE", ask("sharedfile"))
	// Without a kind it is that of the first template that has one.
	r.must(`[["file"],["file"]]`, "OP_NODE_QUERY_STORAGE", params{"output_fields": []any{"type"}})
	r.must("null", "OP_CLUSTER_SET_PARAMS", params{"enabled_disk_templates": []any{"plain", "diskless", "sharedfile"}, "ipolicy": params{"disk-templates": []any{"plain", "diskless"}}})
	r.must(`[["lvm-vg"],["lvm-vg"]]`, "OP_NODE_QUERY_STORAGE", params{"output_fields": []any{"type"}})
	r.must(`[]`, "OP_NODE_QUERY_STORAGE", ask("sharedfile"))
	if len(r.log) != 1 || !strings.Contains(r.log[0], "node2: this node only pretends to keep disks") {
		t.Errorf("it says %q", r.log)
	}
	r.must("null", "OP_CLUSTER_SET_PARAMS", params{"enabled_disk_templates": []any{"ext", "diskless"}, "ipolicy": params{"disk-templates": []any{"ext", "diskless"}}})
	r.refusesLike("OpPrereqError", "Storage reporting for storage type 'ext' is not supported", "OP_NODE_QUERY_STORAGE", params{"output_fields": all})
}

// Who asks nodes waits for what is being changed there, and for nothing else.
func TestLocksOfStorage(t *testing.T) {
	r := newRig(t, "node1", "node2")
	uuid := r.keeper.Snapshot().NodeNamed("node2").UUID
	for item, nodes := range map[string][]any{uuid: {"node2"}, lock.All: {}} {
		for _, id := range []string{"OP_NODE_QUERYVOLS", "OP_NODE_QUERY_STORAGE"} {
			op := r.opcode(id, params{"output_fields": []any{"name"}, "nodes": nodes})
			if request, err := storageLocks(op, r.keeper.Snapshot()); err != nil || !request.Equal(lock.Request{want(lock.Node, item, lock.Shared)}) {
				t.Errorf("%s: %v, %v", id, request, err)
			}
		}
	}
	for _, id := range []string{"OP_NODE_MODIFY_STORAGE", "OP_REPAIR_NODE_STORAGE"} {
		request, err := r.all.Locks(r.opcode(id, samples[id]), r.keeper.Snapshot())
		if err != nil || !slices.Contains(request, want(lock.Node, uuid, lock.Exclusive)) {
			t.Errorf("%s: %v, %v", id, request, err)
		}
	}
}

// A device that gives out no room has no new disks, and those that are there stay.
func TestModifyStorage(t *testing.T) {
	r := newRig(t, "node1", "node2")
	change := func(changes params) params {
		return params{"node_name": "node1", "storage_type": "lvm-pv", "name": "/dev/fake0", "changes": changes}
	}
	plain := func(name string) params {
		return creating(params{"instance_name": name, "disk_template": "plain", "pnode": "node1"})
	}
	if _, err := r.run("OP_INSTANCE_CREATE", plain("before")); err != nil {
		t.Fatal(err)
	}
	shut := func() string {
		out, err := r.run("OP_NODE_QUERY_STORAGE", params{"output_fields": []any{"node", "allocatable"}, "storage_type": "lvm-pv"})
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	for range 2 {
		r.must("null", "OP_NODE_MODIFY_STORAGE", change(params{"allocatable": false}))
		if got := shut(); got != `[["node1",false],["node2",true]]` {
			t.Errorf("it is %s", got)
		}
	}
	if _, err := r.run("OP_INSTANCE_CREATE", plain("behind")); !fault.Is(err, fault.Failed) || !strings.Contains(err.Error(), "gives out no room") {
		t.Errorf("a disk was made: %v", err)
	}
	r.must("null", "OP_NODE_MODIFY_STORAGE", change(params{"allocatable": true}))
	if _, err := r.run("OP_INSTANCE_CREATE", plain("behind")); err != nil {
		t.Error(err)
	}
	with := func(name string, value any) params {
		p := change(params{"allocatable": true})
		p[name] = value
		return p
	}
	for _, tc := range []struct {
		words string
		with  params
	}{
		{"Storage units of type 'lvm-vg' can not be modified", with("storage_type", "lvm-vg")},
		{"The following fields can not be modified for storage units of type 'lvm-pv': ['free', 'size']", with("changes", params{"size": 1, "allocatable": true, "free": 2})},
		{"No changes were requested", with("changes", params{})},
		{"allocatable is to be true or false, and is yes", with("changes", params{"allocatable": "yes"})},
		{"Node 'nosuch' not known", with("node_name", "nosuch")},
		{"The name of the storage unit is missing", params{"node_name": "node1", "storage_type": "lvm-pv", "changes": params{"allocatable": true}}},
	} {
		r.refusesLike("OpPrereqError", tc.words, "OP_NODE_MODIFY_STORAGE", tc.with)
	}
	r.refusesLike("OpExecError", "Failed to modify storage unit '/dev/sda' on node1: /dev/sda is no physical volume of the volume group xenvg", "OP_NODE_MODIFY_STORAGE", with("name", "/dev/sda"))
	r.setNode("node1", func(n *cluster.Node) { n.Offline = true })
	r.refusesLike("OpPrereqError", "Can't use offline node: node1", "OP_NODE_MODIFY_STORAGE", change(params{"allocatable": true}))
	other := newRig(t)
	other.must("null", "OP_CLUSTER_SET_PARAMS", params{"enabled_disk_templates": []any{"file", "diskless"}, "ipolicy": params{"disk-templates": []any{"file", "diskless"}}})
	other.refusesLike("OpPrereqError", "No disk template of storage type 'lvm-vg' is enabled", "OP_NODE_MODIFY_STORAGE", change(params{"allocatable": true}))
}

// What may be the last copy of a disk is not risked, unless it is said so.
func TestRepairStorage(t *testing.T) {
	r := newRig(t, "node1", "node2")
	repair := func(more params) params {
		p := params{"node_name": "node1", "storage_type": "lvm-vg", "name": "xenvg"}
		maps.Copy(p, more)
		return p
	}
	r.must("null", "OP_REPAIR_NODE_STORAGE", repair(nil))
	if want := "Repairing storage unit 'xenvg' on node1 ..."; !slices.Equal(r.log, []string{want}) {
		t.Errorf("it says %q", r.log)
	}
	r.refusesLike("OpPrereqError", "Storage units of type 'file' can not be repaired", "OP_REPAIR_NODE_STORAGE", repair(params{"storage_type": "file"}))
	r.refusesLike("OpExecError", "Failed to repair storage unit 'vg1' on node1: this node keeps disks in the volume group xenvg", "OP_REPAIR_NODE_STORAGE", repair(params{"name": "vg1"}))
	r.mirrored("idle", false) // nothing is being written to its disks
	r.lose("idle", "node2")
	r.mirrored("pair", true)
	r.must("null", "OP_REPAIR_NODE_STORAGE", repair(nil))
	r.lose("pair", "node2")
	r.refusesLike("OpPrereqError", "Instance 'pair' has faulty disks on node 'node2'", "OP_REPAIR_NODE_STORAGE", repair(nil))
	r.must("null", "OP_REPAIR_NODE_STORAGE", repair(params{"node_name": "node2"}))
	r.must("null", "OP_REPAIR_NODE_STORAGE", repair(params{"ignore_consistency": true}))
	if len(r.log) != 2 || !strings.Contains(r.log[0], " - WARNING: Instance 'pair' has faulty disks on node 'node2' (disk 0: node node2 has no copy of it)") {
		t.Errorf("it says %q", r.log)
	}
	r.down["node2"] = true
	r.refusesLike("OpPrereqError", "Instance 'pair' has faulty disks on node 'node2'", "OP_REPAIR_NODE_STORAGE", repair(nil))
}

// What a device is to be is established again by whoever takes over.
func TestModifyStorageIsResumed(t *testing.T) {
	r := newRig(t, "node1", "node2")
	op := r.opcode("OP_NODE_MODIFY_STORAGE", samples["OP_NODE_MODIFY_STORAGE"])
	if got := r.live(op, 1, false, 1); !got.dead {
		t.Errorf("it was not killed: %+v", got)
	}
	if got := r.live(op, 2, true, 1000); got.err != nil {
		t.Errorf("%+v", got)
	}
	r.must(`[[false]]`, "OP_NODE_QUERY_STORAGE", params{"output_fields": []any{"allocatable"}, "storage_type": "lvm-pv", "nodes": []any{"node2"}})
}

// Secrets arrive, and are shown to nobody.
func TestOSParams(t *testing.T) {
	r := newRig(t)
	r.must("null", "OP_TEST_OS_PARAMS", params{"osparams_secret": params{"b": "hidden", "a": "hidden"}})
	if want := "Secret OS parameters: {'a': '<redacted>', 'b': '<redacted>'}"; !slices.Equal(r.log, []string{want}) {
		t.Errorf("it says %q", r.log)
	}
	r.refusesLike("OpPrereqError", "Opcode needs secret parameters", "OP_TEST_OS_PARAMS", params{})
	r.refusesLike("OpPrereqError", "Opcode needs secret parameters", "OP_TEST_OS_PARAMS", params{"osparams_secret": params{}})
}

// All kinds of storage that the catalogue knows are those of templates, but for physical volumes.
func TestKindsOfStorage(t *testing.T) {
	def, _ := opcode.Lookup("OP_NODE_QUERY_STORAGE")
	p, _ := def.Param("storage_type")
	for _, kind := range p.Type.Allowed() {
		known := kind == string(storage.PhysicalDisks)
		for _, of := range storageKinds {
			known = known || string(of) == kind
		}
		if !known {
			t.Errorf("no template is of kind %s", kind)
		}
	}
}

// A node that is named twice is asked once, beside one whose name differs in zeros alone.
func TestEachNodeIsAskedOnce(t *testing.T) {
	r := newRig(t, "node1", "node01")
	op := r.opcode("OP_NODE_QUERYVOLS", params{"output_fields": []any{"node"}, "nodes": []any{"node1", "node01", "node1"}})
	if nodes, err := storageNodes(op, r.keeper.Snapshot()); err != nil || len(nodes) != 2 || nodes[0] == nodes[1] {
		t.Errorf("%d nodes are asked, %v", len(nodes), err)
	}
}
