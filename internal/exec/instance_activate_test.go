package exec

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/agent"
	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/hypervisor"
)

// device is what the activation of the only disk of an instance comes to.
func (r *rig) device(name string) string {
	r.Helper()
	inst := r.instance(name)
	return fmt.Sprintf(`[["node1","disk/0",%q]]`, inst.Disks[0].LogicalID[1])
}

// lose has nodes lose the disks of an instance.
func (r *rig) lose(name string, nodes ...string) {
	r.Helper()
	inst := r.instance(name)
	for _, node := range nodes {
		a, err := r.fleet.Agent(node)
		if err != nil {
			r.Fatal(err)
		}
		for i := range inst.Disks {
			if err := a.Drop(r.Context(), agent.Order{Life: life, Job: 7}, thingOf(inst), []string{inst.Disks[i].UUID}); err != nil {
				r.Fatal(err)
			}
		}
	}
}

// resize has a node have a disk of another size than the inventory says.
func (r *rig) resize(name, node string, size int) {
	r.Helper()
	inst := r.instance(name)
	a, err := r.fleet.Agent(node)
	if err != nil {
		r.Fatal(err)
	}
	d := diskOf(&inst.Disks[0])
	d.Size = size
	if err := a.Prepare(r.Context(), agent.Order{Life: life, Job: 7}, thingOf(inst), []hypervisor.Disk{d}); err != nil {
		r.Fatal(err)
	}
}

func TestActivation(t *testing.T) {
	r := newRig(t, "node1", "node2", "node3")
	r.create("one", false)
	r.mirrored("pair", true)
	r.must(`["node1"]`, "OP_INSTANCE_CREATE", params{"instance_name": "none", "mode": "create", "pnode": "node1", "disk_template": "diskless", "disks": []any{}, "nics": []any{}, "os_type": "noop+default", "start": false})
	r.must(r.device("one"), "OP_INSTANCE_ACTIVATE_DISKS", one(nil))
	if !r.instance("one").DisksActive {
		t.Error("its disks are not active")
	}
	serial := r.instance("one").Serial
	r.must(r.device("one"), "OP_INSTANCE_ACTIVATE_DISKS", one(nil)) // a second time nothing changes
	if got := r.instance("one").Serial; got != serial {
		t.Errorf("the second time its serial number went from %d to %d", serial, got)
	}
	r.must("null", "OP_INSTANCE_DEACTIVATE_DISKS", one(nil))
	if r.instance("one").DisksActive {
		t.Error("its disks are active")
	}
	r.must(`[]`, "OP_INSTANCE_ACTIVATE_DISKS", params{"instance_name": "none"})
	r.must(`[["node1","disk/0","/dev/drbd0"]]`, "OP_INSTANCE_ACTIVATE_DISKS", params{"instance_name": "pair", "wait_for_sync": true}) // it runs
	r.refuses("OpPrereqError", "Instance 'pair' is marked to be up, cannot shutdown disks", "OP_INSTANCE_DEACTIVATE_DISKS", params{"instance_name": "pair"})
	r.must("null", "OP_INSTANCE_SHUTDOWN", params{"instance_name": "pair", "no_remember": true})
	r.must("null", "OP_INSTANCE_DEACTIVATE_DISKS", params{"instance_name": "pair", "force": true})
	r.mark("node2", func(n *cluster.Node) { n.Offline = true })
	r.must(`[["node1","disk/0","/dev/drbd0"]]`, "OP_INSTANCE_ACTIVATE_DISKS", params{"instance_name": "pair"})
	r.logged(" - WARNING: Could not prepare the second copies of the disks of instance pair: node node2 is offline")
}

// What runs although it is marked down keeps its disks, and a node that is away is not asked.
func TestDeactivationOfWhatRuns(t *testing.T) {
	r := newRig(t)
	r.create("one", true)
	r.update(func(snap *cluster.Snapshot) []cluster.Change {
		i := snap.InstanceNamed("one").Clone()
		i.AdminState = cluster.AdminDown
		return []cluster.Change{cluster.Put(i)}
	})
	r.refuses("OpPrereqError", "Instance one is running, cannot shutdown disks", "OP_INSTANCE_DEACTIVATE_DISKS", one(nil))
	r.mark("node1", func(n *cluster.Node) { n.Offline = true })
	r.must("null", "OP_INSTANCE_DEACTIVATE_DISKS", one(nil))
	r.logged(" - WARNING: Primary node offline, ignoring check that instance is down")
}

// An activation makes no disk that was lost, and lets none grow.
func TestActivationMakesNothing(t *testing.T) {
	r := newRig(t, "node1", "node2", "node3")
	r.create("one", false)
	r.mirrored("pair", false)
	r.lose("one", "node1")
	r.lose("pair", "node2")
	nodes := r.nodeStates()
	r.refuses("OpPrereqError", "Cannot activate block devices: node node1 has no disk 0 of instance one (drover instance recreate-disks one makes the disks that are missing anew, empty)",
		"OP_INSTANCE_ACTIVATE_DISKS", one(nil))
	r.refuses("OpPrereqError", "Cannot activate block devices: node node2 has no disk 0 of instance pair (drover instance replace-disks --mode replace_on_secondary pair copies its disks from the other node)",
		"OP_INSTANCE_ACTIVATE_DISKS", params{"instance_name": "pair"})
	if r.nodeStates() != nodes {
		t.Error("a node was changed")
	}
	r.create("other", false)
	r.resize("other", "node1", 12)
	r.refuses("OpPrereqError", "Cannot activate block devices: disk 0 of instance other is recorded with 8M, and has 12M on node node1 "+
		"(drover cluster repair-disk-sizes records what it has; --ignore-size leaves it as it is)", "OP_INSTANCE_ACTIVATE_DISKS", params{"instance_name": "other"})
	r.must(r.device("other"), "OP_INSTANCE_ACTIVATE_DISKS", params{"instance_name": "other", "ignore_size": true})
	if !strings.Contains(r.nodeStates(), `"size":12`) {
		t.Errorf("the disk has not the size that it had: %s", r.nodeStates())
	}
}

func TestSizesAreRecordedAsTheyAre(t *testing.T) {
	r := newRig(t, "node1", "node2")
	r.create("one", false)
	r.create("two", false)
	r.create("lost", false)
	r.mirrored("pair", false)
	r.resize("one", "node1", 12)
	r.resize("pair", "node1", 16)
	r.lose("lost", "node1")
	two := r.instance("two").Serial
	r.must(`[["pair",0,"size",16]]`, "OP_CLUSTER_REPAIR_DISK_SIZES", params{"instances": []any{"pair", "two", "pair"}})
	if d := r.instance("pair").Disks[0]; d.Size != 16 || d.Children[0].Size != 16 {
		t.Errorf("got %+v", d)
	}
	r.must(`[["one",0,"size",12]]`, "OP_CLUSTER_REPAIR_DISK_SIZES", nil)
	r.logged(" - WARNING: Disk 0 of instance lost did not return size information, ignoring", " - INFO: Disk 0 of instance one has mismatched size, correcting: recorded 8, actual 12")
	r.must(`[]`, "OP_CLUSTER_REPAIR_DISK_SIZES", nil)
	if r.instance("two").Serial != two || r.instance("lost").Disks[0].Size != 8 {
		t.Error("others were changed")
	}
	r.resize("two", "node1", 20)
	r.down["node1"] = true
	r.must(`[]`, "OP_CLUSTER_REPAIR_DISK_SIZES", nil)
	r.refuses("OpPrereqError", "Instance 'nosuch' not known", "OP_CLUSTER_REPAIR_DISK_SIZES", params{"instances": []any{"nosuch"}})
}

// volumed is a node that finds volumes of another size than it has noted.
type volumed struct {
	anyNode
	size int
}

func (n volumed) Instance(ctx context.Context, of hypervisor.Thing) (hypervisor.Instance, error) {
	i, err := n.anyNode.Instance(ctx, of)
	for d := range i.Disks {
		i.Disks[d].Volume = n.size
	}
	return i, err
}

// What a volume has counts, and not what its node has noted: sizes are recorded as they are, one that is too small is not made available, and one that is
// larger than it was asked for is.
func TestSizesAreThoseOfVolumes(t *testing.T) {
	r := newRig(t)
	r.create("one", false)
	has := func(size int) { r.wrap = func(n Node) Node { return volumed{n, size} } }
	has(32)
	r.must(r.device("one"), "OP_INSTANCE_ACTIVATE_DISKS", one(nil))
	r.must(`[["one",0,"size",32]]`, "OP_CLUSTER_REPAIR_DISK_SIZES", nil)
	r.must(`[]`, "OP_CLUSTER_REPAIR_DISK_SIZES", nil)
	r.must(r.device("one"), "OP_INSTANCE_ACTIVATE_DISKS", one(nil))
	has(4)
	r.refuses("OpPrereqError", "Cannot activate block devices: disk 0 of instance one is recorded with 32M, and has 4M on node node1 "+
		"(drover cluster repair-disk-sizes records what it has; --ignore-size leaves it as it is)", "OP_INSTANCE_ACTIVATE_DISKS", one(nil))
	r.must(`[["one",0,"size",4]]`, "OP_CLUSTER_REPAIR_DISK_SIZES", nil)
}
