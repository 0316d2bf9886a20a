package exec

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/hypervisor"
	"github.com/drover-project/drover/internal/store/format"
)

// ofDisks are changes of the disks of an instance.
func ofDisks(name string, changes ...[]any) params {
	list := make([]any, len(changes))
	for i := range changes {
		list[i] = changes[i]
	}
	return params{"instance_name": name, "disks": list}
}

// detachedOn are the detached disks that a node has, by UUID.
func (r *rig) detachedOn(node string) (uuids []string) {
	r.Helper()
	a, err := r.fleet.Agent(node)
	if err != nil {
		r.Fatal(err)
	}
	all, err := a.Instances(r.Context())
	if err != nil {
		r.Fatal(err)
	}
	for i := range all {
		if all[i].Detached() {
			uuids = append(uuids, all[i].UUID)
		}
	}
	return uuids
}

// there are the UUIDs of the disks that a node has of an instance.
func (r *rig) there(node, name string) (uuids []string) {
	r.Helper()
	a, err := r.fleet.Agent(node)
	if err != nil {
		r.Fatal(err)
	}
	i, err := a.Instance(r.Context(), thingOf(r.instance(name)))
	if err != nil && !fault.Is(err, fault.NotFound) {
		r.Fatal(err)
	}
	for _, d := range i.Disks {
		uuids = append(uuids, d.UUID)
	}
	return uuids
}

// verifies runs a verification of the group, and returns what it says is wrong.
func (r *rig) verifies() (wrong []string) {
	r.Helper()
	for id, p := range map[string]params{"OP_CLUSTER_VERIFY_CONFIG": nil, "OP_CLUSTER_VERIFY_GROUP": {"group_name": "default"}} {
		if _, err := r.run(id, p); err != nil {
			r.Fatal(err)
		}
		for _, line := range r.log {
			if strings.Contains(line, "ERROR") || strings.Contains(line, "that no instance has found") {
				wrong = append(wrong, strings.TrimSpace(line))
			}
		}
	}
	return wrong
}

// A disk goes from one instance to another of its node, and is in between a thing of its own, which nothing that is done to either takes away.
func TestDetachAndAttach(t *testing.T) {
	r := newRig(t)
	r.create("one", false)
	r.create("two", false)
	r.must(`[["disk/1","add:size=16,mode=rw"]]`, "OP_INSTANCE_SET_PARAMS", ofDisks("one", []any{"add", params{"size": 16, "name": "data"}}))
	disk := r.instance("one").Disks[1]
	r.must(`[["disk/1","detach"]]`, "OP_INSTANCE_SET_PARAMS", ofDisks("one", []any{"detach", params{}}))
	kept := r.keeper.Snapshot().Disk(disk.UUID)
	if kept == nil || kept.Disk.Name != "data" || kept.Former != "one" || kept.Disk.Size != 16 || kept.Disk.LogicalID[1] == disk.LogicalID[1] ||
		!strings.HasSuffix(kept.Disk.LogicalID[1].(string), "/file-storage/"+disk.UUID+".file.disk1") || len(r.instance("one").Disks) != 1 {
		t.Fatalf("the detached disk is %+v, and was %+v", kept, disk)
	}
	if got := r.detachedOn("node1"); !slices.Equal(got, []string{disk.UUID}) || !slices.Equal(r.there("node1", "one"), []string{r.instance("one").Disks[0].UUID}) {
		t.Fatalf("node1 has the detached disks %v, and of one %v", got, r.there("node1", "one"))
	}
	if got := r.verifies(); !slices.Equal(got, []string{"- NOTICE: 1 disk(s) that no instance has found."}) {
		t.Errorf("verification says %q", got)
	}
	r.must("null", "OP_INSTANCE_STARTUP", one(nil))
	r.must("null", "OP_INSTANCE_REMOVE", one(nil))
	r.must("[]", "OP_NODE_ORPHANS", params{"node_name": "node1"})
	r.refuses("OpPrereqError", "Node node1 has nothing that a job has left there (drover node orphans node1 lists what else it has and the inventory does not know)", "OP_NODE_CLEAR_ORPHANS",
		params{"node_name": "node1"})

	r.must(`[["disk/0","attach:size=16,mode=rw"]]`, "OP_INSTANCE_SET_PARAMS", ofDisks("two", []any{"attach", 0, params{"name": "data"}}))
	if d := r.instance("two").Disks; len(d) != 2 || d[0].UUID != disk.UUID || d[0].IVName != "disk/0" || !strings.Contains(d[0].LogicalID[1].(string), "/two/") {
		t.Errorf("the instance has %+v", d)
	}
	if got := r.verifies(); len(got) > 0 || len(r.detachedOn("node1")) > 0 {
		t.Errorf("verification says %q, the node has %v", got, r.detachedOn("node1"))
	}
	r.must("null", "OP_INSTANCE_STARTUP", params{"instance_name": "two"})

	// To what runs it can be attached, and comes with its next start; to be detached from that it has to stop.
	r.refuses("OpPrereqError", "Instance 'two' is marked to be up, can't detach volume from a running instance without using hotplug (stop it first)", "OP_INSTANCE_SET_PARAMS",
		ofDisks("two", []any{"detach", 0, params{}}))
	r.must("null", "OP_INSTANCE_SHUTDOWN", params{"instance_name": "two"})
	r.must(`[["disk/0","detach"]]`, "OP_INSTANCE_SET_PARAMS", ofDisks("two", []any{"detach", disk.UUID, params{}}))
	r.must("null", "OP_INSTANCE_STARTUP", params{"instance_name": "two"})
	r.must(`[["disk/1","attach:size=16,mode=rw"]]`, "OP_INSTANCE_SET_PARAMS", ofDisks("two", []any{"attach", params{"uuid": disk.UUID}}))
	r.logged(" - INFO: The changed disks are seen by instance two after its next start")
}

// Disks of a mirrored instance are detached on both nodes, and an instance without disks gets its second node with one.
func TestDetachMirrored(t *testing.T) {
	r := newRig(t, "node1", "node2")
	r.mirrored("pair", false)
	disk := r.instance("pair").Disks[0]
	r.must(`[["disk/0","detach"]]`, "OP_INSTANCE_SET_PARAMS", ofDisks("pair", []any{"detach", 0, params{}}))
	for _, node := range []string{"node1", "node2"} {
		if got := r.detachedOn(node); !slices.Equal(got, []string{disk.UUID}) {
			t.Errorf("%s has the detached disks %v", node, got)
		}
	}
	r.mirrored("other", false) // which does not get its numbers
	id, _ := readDRBD(&disk)
	if got, _ := readDRBD(&r.instance("other").Disks[0]); got.port == id.port || got.minorOnA == id.minorOnA || got.minorB == id.minorB {
		t.Errorf("another disk has %+v, and the detached one %+v", got, id)
	}
	if pair := r.instance("pair"); pair.DiskTemplate() != cluster.DiskDiskless || len(pair.SecondaryNodes()) > 0 {
		t.Errorf("the instance is %+v", pair)
	}
	r.must("null", "OP_INSTANCE_REMOVE", params{"instance_name": "other"})
	if r.state("node2", "pair") != "" {
		t.Error("node2 has an instance yet that has nothing there")
	}
	r.refuses("OpPrereqError", "Disk "+disk.UUID+" is on the node, although no instance has it (attach it to an instance, or remove it: drover disk remove "+disk.UUID+")", "OP_NODE_REMOVE",
		params{"node_name": "node2"})
	r.must(`[["disk/0","attach:size=8,mode=rw"]]`, "OP_INSTANCE_SET_PARAMS", ofDisks("pair", []any{"attach", params{"uuid": disk.UUID}}))
	if pair := r.instance("pair"); len(pair.SecondaryNodes()) != 1 || len(r.there("node2", "pair")) != 1 {
		t.Errorf("the instance is %+v, and node2 has %v", pair, r.there("node2", "pair"))
	}
	if got := r.verifies(); len(got) > 0 {
		t.Errorf("verification says %q", got)
	}
}

// What is somebody else's, is not there, or does not fit, is not attached.
func TestAttachRefusals(t *testing.T) {
	r := newRig(t, "node1", "node2")
	r.create("one", false)
	r.create("two", false)
	r.mirrored("pair", false)
	for _, name := range []string{"one", "two", "pair"} {
		r.must(`[["disk/1","add:size=16,mode=rw"]]`, "OP_INSTANCE_SET_PARAMS", ofDisks(name, []any{"add", params{"size": 16, "name": "data"}}))
	}
	own, theirs, mirrored := r.instance("one").Disks[1].UUID, r.instance("two").Disks[1].UUID, r.instance("pair").Disks[1].UUID
	const all = " (drover disk list shows the disks that no instance has)"
	attaching := func(name string, values params) params { return ofDisks(name, []any{"attach", values}) }
	r.refuses("OpPrereqError", "Disk "+theirs+" is attached to instance 'two' (it has to be detached there first: drover instance modify two --disk 1:detach)", "OP_INSTANCE_SET_PARAMS",
		attaching("one", params{"uuid": theirs}))
	r.refuses("OpPrereqError", "Disk "+own+" is attached to instance 'one' (it has to be detached there first: drover instance modify one --disk 1:detach)", "OP_INSTANCE_SET_PARAMS",
		attaching("one", params{"uuid": own}))
	r.refuses("OpPrereqError", "No disk was found with this UUID: nosuch"+all, "OP_INSTANCE_SET_PARAMS", attaching("one", params{"uuid": "nosuch"}))
	r.refuses("OpPrereqError", "No disk was found with this name: nosuch"+all, "OP_INSTANCE_SET_PARAMS", attaching("one", params{"name": "nosuch"}))
	for _, values := range []params{{}, {"size": 4}, {"uuid": own, "name": "data"}} {
		r.refuses("OpPrereqError", "Only one argument is permitted in attach op, either name or uuid (attach:uuid=UUID or attach:name=NAME; drover disk list shows the disks that no instance has)",
			"OP_INSTANCE_SET_PARAMS", attaching("one", values))
	}
	r.refuses("OpPrereqError", "Got disk index 2, but there are only 2", "OP_INSTANCE_SET_PARAMS", ofDisks("one", []any{"detach", 2, params{}}))

	r.must(`[["disk/1","detach"]]`, "OP_INSTANCE_SET_PARAMS", ofDisks("two", []any{"detach", params{}}))
	r.refuses("OpPrereqError", "disk name 'data' already used", "OP_INSTANCE_SET_PARAMS", attaching("one", params{"name": "data"})) // the one that no instance has is meant
	r.refuses("OpPrereqError", "Disk "+theirs+" is attached twice", "OP_INSTANCE_SET_PARAMS",
		ofDisks("two", []any{"attach", 0, params{"uuid": theirs}}, []any{"attach", 0, params{"uuid": theirs}}))
	r.refuses("OpPrereqError", "Disk "+theirs+" comes with the same change that would detach it", "OP_INSTANCE_SET_PARAMS",
		ofDisks("two", []any{"attach", 0, params{"uuid": theirs}}, []any{"detach", 0, params{}}))
	r.must(`[["disk/1","detach"]]`, "OP_INSTANCE_SET_PARAMS", ofDisks("pair", []any{"detach", params{}}))
	uuids := []string{theirs, mirrored}
	slices.Sort(uuids)
	r.refuses("OpPrereqError", "There are 2 disks with this name: data (say which one by its UUID: "+strings.Join(uuids, ", ")+")", "OP_INSTANCE_SET_PARAMS", attaching("two", params{"name": "data"}))
	r.refuses("OpPrereqError", "Instance has 'file' template while disk has 'drbd' template", "OP_INSTANCE_SET_PARAMS", attaching("two", params{"uuid": mirrored}))
	r.must("null", "OP_INSTANCE_FAILOVER", params{"instance_name": "pair"})
	r.refuses("OpPrereqError", "The disks' primary node is node1 whereas the instance's primary node is node2. (migrate the instance, or fail it over: drover instance migrate pair)",
		"OP_INSTANCE_SET_PARAMS", attaching("pair", params{"uuid": mirrored}))
	r.must(`["node2"]`, "OP_INSTANCE_CREATE", creating(params{"instance_name": "far", "pnode": "node2", "start": false}))
	r.refuses("OpPrereqError", "Disk nodes are node1 while the instance's nodes are node2 (a disk is attached where it is: move the instance there)", "OP_INSTANCE_SET_PARAMS",
		attaching("far", params{"uuid": theirs}))
	r.refuses("OpPrereqError", "Cannot disable disk template 'drbd', because there is at least one instance using it: pair", "OP_CLUSTER_SET_PARAMS", params{"enabled_disk_templates": []any{"file"}})

	// A disk that its node has no more is told, and not attached.
	a, err := r.fleet.Agent("node1")
	if err == nil {
		err = a.Remove(r.Context(), r.env(r.opcode("OP_CLUSTER_QUERY", nil)).Order(), hypervisor.DetachedDisk(theirs))
	}
	if err != nil {
		t.Fatal(err)
	}
	r.refuses("OpPrereqError", "Node node1 does not have disk "+theirs+" (drover cluster verify says what is missing where; drover disk remove takes it out of the inventory)", "OP_INSTANCE_SET_PARAMS",
		attaching("two", params{"uuid": theirs}))
	if got := r.verifies(); !slices.Contains(got, "- ERROR: disk data ("+theirs+"): it is not on node node1, which is to keep it although no instance has it; next: drover disk remove "+theirs) {
		t.Errorf("verification says %q", got)
	}

	// Programs of before would take what the node keeps for something left behind.
	env := r.env(r.opcode("OP_INSTANCE_SET_PARAMS", ofDisks("one", []any{"detach", 0, params{}})))
	env.Format = format.Disks - 1
	if _, err := r.all.Run(t.Context(), env); !fault.Is(err, fault.WrongState) || !strings.Contains(err.Error(), "need format 6 of the store") {
		t.Errorf("below the format: %v", err)
	}
}

// What fails on the way leaves each disk with somebody, and says how to go on.
func TestDetachThatFails(t *testing.T) {
	for _, method := range []string{"detach", "attach"} {
		r := newRig(t, "node1", "node2")
		r.mirrored("pair", false)
		disk := r.instance("pair").Disks[0].UUID
		word, change := "from", []any{"detach", 0, params{}}
		if method == "attach" {
			word, change = "to", []any{"attach", params{"uuid": disk}}
			r.must(`[["disk/0","detach"]]`, "OP_INSTANCE_SET_PARAMS", ofDisks("pair", []any{"detach", 0, params{}}))
		}
		state := func() string {
			return fmt.Sprint(r.there("node1", "pair"), r.there("node2", "pair"), r.detachedOn("node1"), r.detachedOn("node2"))
		}
		whole := state()
		r.failOn("node2", method, false)
		r.refuses("OpExecError", "Could not "+method+" disk "+disk+" "+word+" instance pair: the driver is broken on purpose", "OP_INSTANCE_SET_PARAMS", ofDisks("pair", change))
		if got := state(); got != whole {
			t.Errorf("%s failed, and left %s of %s", method, got, whole)
		}
		r.failOn("node2", "", false)
		if got := r.verifies(); method == "detach" && len(got) > 0 || method == "attach" && len(got) != 1 {
			t.Errorf("behind a failed %s verification says %q", method, got)
		}
		if _, err := r.run("OP_INSTANCE_SET_PARAMS", ofDisks("pair", change)); err != nil {
			t.Errorf("%s once more: %v", method, err)
		}
	}
}

// A disk that is attached or detached on its node alone is nothing that may be cleared away, whoever has it there.
func TestHalfDetachedIsLeftAlone(t *testing.T) {
	r := newRig(t)
	r.create("one", false)
	r.must(`[["disk/1","add:size=16,mode=rw"]]`, "OP_INSTANCE_SET_PARAMS", ofDisks("one", []any{"add", params{"size": 16, "name": "data"}}))
	inst, order := r.instance("one"), func() *Env { return r.env(r.opcode("OP_CLUSTER_QUERY", nil)) }
	disk := inst.Disks[1].UUID
	a, err := r.fleet.Agent("node1")
	if err != nil {
		t.Fatal(err)
	}

	// The inventory says that the instance has it, and the node that none has.
	if err := a.Detach(t.Context(), order().Order(), thingOf(inst), []string{disk}); err != nil {
		t.Fatal(err)
	}
	left := "it is disk 1 of instance one in the inventory, and detached on the node; drover instance modify one --disk 1:detach detaches it to its end"
	if got := r.verifies(); len(got) != 1 || !strings.Contains(got[0], "unknown disk "+disk) || !strings.Contains(got[0], left) {
		t.Errorf("verification says %q", got)
	}
	for _, uuids := range [][]any{nil, {disk}} {
		if _, err := r.run("OP_NODE_CLEAR_ORPHANS", params{"node_name": "node1", "uuids": uuids}); !fault.Is(err, fault.WrongState) {
			t.Errorf("to clear away %v: %v", uuids, err)
		}
	}
	r.refuses("OpPrereqError", "Disk 1 of instance one is not lost: node node1 has it, detached (drover instance modify one --disk 1:detach, and then --disk attach:uuid="+disk+", attaches it)",
		"OP_INSTANCE_RECREATE_DISKS", one(params{"disks": []any{[]any{1, params{}}}}))
	r.must(`[["disk/1","detach"]]`, "OP_INSTANCE_SET_PARAMS", ofDisks("one", []any{"detach", 1, params{}}))

	// And the other way round.
	if err := a.Attach(t.Context(), order().Order(), thingOf(inst), []string{disk}); err != nil {
		t.Fatal(err)
	}
	left = "it is the disk data (" + disk + "), which no instance has in the inventory; drover instance modify one --disk attach:uuid=" + disk + " attaches it to its end"
	if got := strings.Join(r.verifies(), "\n"); !strings.Contains(got, left) {
		t.Errorf("verification says %q", got)
	}
	for _, uuids := range [][]any{nil, {disk}} {
		if _, err := r.run("OP_NODE_CLEAR_ORPHANS", params{"node_name": "node1", "uuids": uuids}); !fault.Is(err, fault.WrongState) {
			t.Errorf("to clear away %v: %v", uuids, err)
		}
	}
	r.must(`[["disk/1","attach:size=16,mode=rw"]]`, "OP_INSTANCE_SET_PARAMS", ofDisks("one", []any{"attach", params{"uuid": disk}}))
	if got := r.verifies(); len(got) > 0 {
		t.Errorf("verification says %q", got)
	}

	// One that nobody knows goes when it is named, and not else.
	if err := a.Detach(t.Context(), order().Order(), thingOf(inst), []string{disk}); err != nil {
		t.Fatal(err)
	}
	r.must("null", "OP_INSTANCE_REMOVE", one(nil))
	r.refuses("OpPrereqError", "Node node1 has nothing that a job has left there (drover node orphans node1 lists what else it has and the inventory does not know)", "OP_NODE_CLEAR_ORPHANS",
		params{"node_name": "node1"})
	r.must(`["`+disk+`"]`, "OP_NODE_CLEAR_ORPHANS", params{"node_name": "node1", "uuids": []any{disk}})
	if got := r.detachedOn("node1"); len(got) > 0 {
		t.Errorf("the node has %v", got)
	}
}

func TestDiskRemove(t *testing.T) {
	r := newRig(t, "node1", "node2")
	r.mirrored("pair", false)
	disk := r.instance("pair").Disks[0].UUID
	r.refuses("OpPrereqError", "No disk was found with this name: "+disk+" (drover disk list shows the disks that no instance has)", "OP_DISK_REMOVE", params{"disk": disk}) // an instance has it
	r.must(`[["disk/0","detach"]]`, "OP_INSTANCE_SET_PARAMS", ofDisks("pair", []any{"detach", 0, params{}}))
	r.mark("node2", func(n *cluster.Node) { n.Offline = true })
	r.refuses("OpPrereqError", "Node node2 is offline, or not in the cluster any more (--ignore-failures takes the disk out of the inventory, and leaves what the node has of it there)", "OP_DISK_REMOVE",
		params{"disk": disk})
	r.must("null", "OP_DISK_REMOVE", params{"disk": disk, "ignore_failures": true})
	r.logged(" - WARNING: Node node2 is offline, or not in the cluster any more: what it has of disk " + disk + " stays there")
	if r.keeper.Snapshot().Disk(disk) != nil || len(r.detachedOn("node1")) > 0 || len(r.detachedOn("node2")) != 1 {
		t.Errorf("node1 has %v, node2 %v", r.detachedOn("node1"), r.detachedOn("node2"))
	}
}
