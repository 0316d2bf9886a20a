package exec

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/agent"
	"github.com/drover-project/drover/internal/agent/exports"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/hypervisor"
	"github.com/drover-project/drover/internal/lock"
)

// logs checks that the last opcode left a message, among others.
func (r *rig) logs(message string) {
	r.Helper()
	if !slices.Contains(r.log, message) {
		r.Errorf("no %q in the log %q", message, r.log)
	}
}

const strangerHint = " (it is left alone; drover cluster verify lists what nodes have and the inventory does not know)"

// onNode puts an instance on a node that the inventory does not know, with a disk. It was made by a job of a life of the
// store.
func (r *rig) onNode(node, name, uuid, life string) *agent.Agent {
	r.Helper()
	a, err := r.fleet.Agent(node)
	if err != nil {
		r.Fatal(err)
	}
	order := agent.Order{Life: life, Job: 7}
	if err := a.Prepare(r.Context(), order, hypervisor.Thing{UUID: uuid, Name: name}, []hypervisor.Disk{{UUID: "disk-of-" + uuid, Size: 8}}); err != nil {
		r.Fatal(err)
	}
	return a
}

// has checks that a node has these under a name, by UUID, stopped with one disk each.
func (r *rig) has(a *agent.Agent, name string, uuids ...string) {
	r.Helper()
	list, err := a.Named(r.Context(), name)
	if err != nil || len(list) != len(uuids) {
		r.Fatalf("the node has %+v, %v, want %v", list, err, uuids)
	}
	for i := range list {
		if !slices.Contains(uuids, list[i].UUID) || list[i].Active() || len(list[i].Disks) != 1 {
			r.Errorf("the node has %+v, want %v", list, uuids)
		}
	}
}

// What a creation left that did not end is in nobody's way, for everything has UUIDs of its own.
func TestCreateGoesOnBesideWhatACreationLeft(t *testing.T) {
	r := newRig(t)
	a := r.onNode("node1", "one", "dead", life)
	r.create("one", false)
	r.logs(" - INFO: Node node1 has another instance one (dead), made by job 7, opcode 0 of the store's life life-of-the-rig, whose creation did not end; " +
		"it is left there until: drover node clear-orphans node1 dead")
	uuid := r.instance("one").UUID
	r.has(a, "one", uuid, "dead")
	if i, err := a.Instance(t.Context(), thingOf(r.instance("one"))); err != nil || i.MadeBy != (hypervisor.Mark{Life: life, Job: int64(r.jobs)}) {
		t.Errorf("the new one is %+v, %v", i, err)
	}
	r.must("false", "OP_CLUSTER_VERIFY_GROUP", params{"group_name": "default"})
	r.logs("  - ERROR: node node1: unknown instance one on this node (dead, made by job 7, opcode 0 of the store's life life-of-the-rig); next: drover node clear-orphans node1 dead")
	r.must("null", "OP_INSTANCE_REMOVE", one(nil))
	r.has(a, "one", "dead")
}

// A machine that the inventory does not know may be somebody's: it was restored from an
// older backup, or the node was away when the instance was removed. No creation destroys
// it, also not one that is refused or fails.
func TestCreateLeavesStrangersAlone(t *testing.T) {
	r := newRig(t)
	a := r.onNode("node1", "one", "theirs", "another-life")
	refusal := func() string {
		return fmt.Sprintf("Instance 'one' is not in the cluster, but node node1 has one of that name (theirs, 1 disks) (the new one would have the UUID "+
			"00000000-0000-4000-8000-%012x; that is left alone: take another name or another node; drover cluster verify lists what nodes have and the cluster does not)", r.uuids+1)
	}
	r.refuses("OpPrereqError", refusal(), "OP_INSTANCE_CREATE", creating(nil))
	r.refuses("OpPrereqError", refusal(), "OP_INSTANCE_CREATE", creating(params{"dry_run": true}))
	r.has(a, "one", "theirs")

	// What runs is no leftover, whoever made it.
	spec := hypervisor.Spec{Name: "run", UUID: "running"}
	if err := a.Start(t.Context(), agent.Order{Life: life, Job: 7}, spec, nil); err != nil {
		t.Fatal(err)
	}
	r.refuses("OpPrereqError", fmt.Sprintf("Instance 'run' is not in the cluster, but runs on node node1 (running) (the new one would have the UUID "+
		"00000000-0000-4000-8000-%012x; that is left alone: take another name or another node; drover cluster verify lists what nodes have and the cluster does not)", r.uuids+1),
		"OP_INSTANCE_CREATE", creating(params{"instance_name": "run"}))

	// One that comes after the checks is left alone, too.
	r.wrap = func(n Node) Node {
		return beforePrepare{n, func(string) { r.onNode("node1", "two", "late", "another-life") }}
	}
	r.refuses("OpExecError", "Could not create the disks of instance two on node node1: there is another instance two on the node: its UUID is late, not "+
		fmt.Sprintf("00000000-0000-4000-8000-%012x", r.uuids+1)+strangerHint, "OP_INSTANCE_CREATE", creating(params{"instance_name": "two"}))
	r.has(a, "two", "late")
}

// What the inventory knows is nobody's leftover, whatever it is called on its node.
func TestCreateLeavesAloneWhatIsInTheInventory(t *testing.T) {
	r := newRig(t)
	r.create("one", false)
	a, err := r.fleet.Agent("node1")
	if err != nil {
		t.Fatal(err)
	}
	first := r.instance("one")
	if err := a.Rename(t.Context(), agent.Order{}, thingOf(first), "two"); err != nil {
		t.Fatal(err)
	}
	r.refuses("OpPrereqError", fmt.Sprintf("Instance 'two' is not in the cluster, but node node1 has one of that name (%s, 1 disks) (the new one would have the UUID "+
		"00000000-0000-4000-8000-%012x; that is left alone: take another name or another node; drover cluster verify lists what nodes have and the cluster does not)", first.UUID, r.uuids+1),
		"OP_INSTANCE_CREATE", creating(params{"instance_name": "two"}))
	// And it is found under its UUID: a rename that was half done does not keep it from being used.
	r.must("null", "OP_INSTANCE_STARTUP", one(nil))
	if i, err := a.Instance(t.Context(), thingOf(first)); err != nil || !i.Active() || i.Name != "one" {
		t.Errorf("it is %+v, %v", i, err)
	}
}

type anyNode = Node // which has a method of its name

// beforePrepare is a node on which something happens just before disks are made.
type beforePrepare struct {
	anyNode

	happens func(name string)
}

func (n beforePrepare) Prepare(ctx context.Context, order agent.Order, of hypervisor.Thing, disks []hypervisor.Disk) error {
	n.happens(of.Name)
	return n.anyNode.Prepare(ctx, order, of, disks)
}

// What is ordered of an instance is done to the one that the inventory means: whatever else runs under its name on its node is
// neither touched nor taken for it.
func TestStrangersAreNotTouched(t *testing.T) {
	for _, runs := range []bool{false, true} {
		r := newRig(t)
		r.create("one", runs)
		a, err := r.fleet.Agent("node1")
		if err != nil {
			t.Fatal(err)
		}
		inst := r.instance("one")
		if err := a.Stop(t.Context(), agent.Order{}, thingOf(inst), hypervisor.Stop{Force: true}, nil); err != nil {
			t.Fatal(err)
		}
		if err := a.Remove(t.Context(), agent.Order{}, thingOf(inst)); err != nil {
			t.Fatal(err)
		}
		r.onNode("node1", "one", "theirs", "another-life")
		if runs {
			if err := a.Start(t.Context(), agent.Order{}, hypervisor.Spec{Name: "one", UUID: "theirs"}, nil); err != nil {
				t.Fatal(err)
			}
		}
		stranger := "there is another instance one on the node: its UUID is theirs, not " + inst.UUID + strangerHint
		if runs {
			r.refuses("OpPrereqError", stranger, "OP_INSTANCE_REBOOT", one(params{"reboot_type": "soft"}))
		} else {
			r.refuses("OpPrereqError", stranger, "OP_INSTANCE_REINSTALL", one(nil))
			r.refuses("OpPrereqError", stranger, "OP_INSTANCE_RENAME", one(params{"new_name": "other"}))
			r.refuses("OpPrereqError", stranger, "OP_INSTANCE_SET_PARAMS", one(params{"disks": []any{[]any{"remove", 0, params{}}}}))
		}
		r.refuses("OpPrereqError", stranger, "OP_INSTANCE_STARTUP", one(nil))
		r.refuses("OpPrereqError", stranger, "OP_INSTANCE_SHUTDOWN", one(nil))
		r.refuses("OpPrereqError", stranger, "OP_INSTANCE_GROW_DISK", one(params{"disk": 0, "amount": 4}))
		if got, err := r.run("OP_INSTANCE_QUERY_DATA", params{"instances": []any{"one"}}); err != nil || !strings.Contains(got, `"run_state":null`) {
			t.Errorf("the instance is shown as %s, %v", got, err)
		}
		r.logs(" - WARNING: " + stranger)
		r.refuses("OpExecError", "Could not shutdown instance one on node node1: "+stranger, "OP_INSTANCE_REMOVE", one(nil))
		r.must("null", "OP_INSTANCE_REMOVE", one(params{"ignore_failures": true}))
		r.logged("Warning: can't shutdown instance: "+stranger, "Warning: can't remove instance's disks: "+stranger)
		list, err := a.Named(t.Context(), "one")
		if err != nil || len(list) != 1 || list[0].UUID != "theirs" || list[0].Active() != runs || len(list[0].Disks) != 1 {
			t.Errorf("the node has %+v, %v", list, err)
		}
	}
}

// What jobs have left is told from what is somebody else's, and only that is cleared away, when it is asked for.
func TestStrangersAreNotCleared(t *testing.T) {
	r := newRig(t)
	r.create("one", false)
	a := r.onNode("node1", "one", "left", life)
	r.onNode("node1", "two", "also-left", life)
	r.onNode("node1", "three", "restored", "another-life")
	r.onNode("node1", "four", "of-no-life", "")
	if err := a.Prepare(t.Context(), agent.Order{}, hypervisor.Thing{UUID: "unmarked", Name: "six"}, nil); err != nil {
		t.Fatal(err)
	}
	if err := a.Start(t.Context(), agent.Order{Life: life, Job: 7}, hypervisor.Spec{Name: "five", UUID: "running"}, nil); err != nil {
		t.Fatal(err)
	}
	uuid := r.instance("one").UUID
	got, err := r.run("OP_NODE_ORPHANS", params{"node_name": "node1"})
	var found []unknownThing
	if err == nil {
		err = json.Unmarshal([]byte(got), &found)
	}
	kinds := map[string]string{}
	for _, f := range found {
		kinds[f.UUID] = f.Kind + ": " + f.Why
	}
	want := map[string]string{
		"left":       "orphan: made by job 7, opcode 0 of the store's life life-of-the-rig",
		"also-left":  "orphan: made by job 7, opcode 0 of the store's life life-of-the-rig",
		"restored":   "stranger: it was made by a job of another store, or of this one before it was restored",
		"of-no-life": "stranger: it was made by a job of another store, or of this one before it was restored",
		"unmarked":   "stranger: nobody says which job made it",
		"running":    "stranger: it is running",
	}
	if err != nil || !maps.Equal(kinds, want) {
		t.Errorf("found %v, %v", kinds, err)
	}
	those := func(uuids ...string) params { return params{"node_name": "node1", "uuids": uuids} }
	r.refuses("OpPrereqError", uuid+" is instance 'one' of the cluster (drover instance remove removes it)", "OP_NODE_CLEAR_ORPHANS", those(uuid))
	r.refuses("OpPrereqError", "three (restored) on node node1 is left alone: it was made by a job of another store, or of this one before it was restored "+
		"(whoever knows what it is has to remove it on the node)", "OP_NODE_CLEAR_ORPHANS", those("left", "restored"))
	r.refuses("OpPrereqError", "five (running) on node node1 is left alone: it is running (whoever knows what it is has to remove it on the node)", "OP_NODE_CLEAR_ORPHANS", those("running"))
	r.refuses("OpPrereqError", "Node node1 has nothing with the UUID nothing (drover node orphans node1 lists what is there)", "OP_NODE_CLEAR_ORPHANS", those("nothing"))
	r.must(`["also-left"]`, "OP_NODE_CLEAR_ORPHANS", those("also-left"))
	r.must(`["left"]`, "OP_NODE_CLEAR_ORPHANS", those())
	r.refuses("OpPrereqError", "Node node1 has nothing that a job has left there (drover node orphans node1 lists what else it has and the inventory does not know)",
		"OP_NODE_CLEAR_ORPHANS", those())
	list, err := a.Instances(t.Context())
	there := make([]string, len(list))
	for i := range list {
		there[i] = list[i].UUID
	}
	slices.Sort(there)
	if err != nil || !slices.Equal(there, slices.Sorted(slices.Values([]string{uuid, "restored", "of-no-life", "unmarked", "running"}))) {
		t.Errorf("the node has %v, %v", there, err)
	}
	if got := classified(&hypervisor.Instance{Name: "seven", MadeBy: hypervisor.Mark{Life: life, Job: 7}}, life); got.Kind != stranger {
		t.Errorf("what has no UUID is an %s: %s", got.Kind, got.Why)
	}
	// The reason file is of the instance that has the name.
	r.must("null", "OP_INSTANCE_STARTUP", one(nil))
	r.must("null", "OP_INSTANCE_SHUTDOWN", one(nil))
	r.onNode("node1", "one", "left", life)
	r.must(`["left"]`, "OP_NODE_CLEAR_ORPHANS", those())
	if r.lastReason("node1", "one") == "" {
		t.Error("the reason of instance one went with what was left under its name")
	}
}

// TestWhatIsLeftOfExportsIsListed: exports of instances that are no more, and dumps that are no whole export, which go when they are named.
func TestWhatIsLeftOfExportsIsListed(t *testing.T) {
	r := newRig(t, "node1", "node2")
	for _, name := range []string{"one", "two"} {
		r.create(name, false)
		r.must(`[true,[true]]`, "OP_BACKUP_EXPORT", params{"instance_name": name, "target_node": "node2"})
	}
	r.must("null", "OP_INSTANCE_REMOVE", params{"instance_name": "two"})
	a, err := r.fleet.Agent("node2")
	if err != nil {
		t.Fatal(err)
	}
	half := func(id, file string) {
		t.Helper()
		if err := a.KeepDump(t.Context(), agent.Order{Life: life, Job: 7}, exports.Place{ID: id, File: file}, agent.Piece{Data: []byte("half"), Next: 4, Size: 2<<20 + 1}); err != nil {
			t.Fatal(err)
		}
	}
	half("half-of-one", r.instance("one").Disks[0].UUID)
	half("half-of-nobody", "d0")
	found := func() map[string]string {
		t.Helper()
		got, err := r.run("OP_NODE_ORPHANS", params{"node_name": "node2"})
		var list []unknownThing
		if err == nil {
			err = json.Unmarshal([]byte(got), &list)
		}
		if err != nil {
			t.Fatal(err)
		}
		out := map[string]string{}
		for _, f := range list {
			why, _, _ := strings.Cut(f.Why, " written last at ")
			out[f.Kind+" "+cmp.Or(f.UUID, f.Name)] = fmt.Sprintf("%s, %d of %d MiB: %s", f.Name, f.Disks, f.Size, why)
		}
		return out
	}
	want := map[string]string{
		"export two":           "two, 0 of 0 MiB: it is an export of an instance that is not in the inventory; drover backup remove two removes it",
		"dumps half-of-one":    "one, 1 of 1 MiB: it is no whole export, and something of it was",
		"dumps half-of-nobody": "-, 1 of 1 MiB: it is no whole export, and something of it was",
	}
	if got := found(); !maps.Equal(got, want) {
		t.Errorf("found %q", got)
	}
	r.refuses("OpPrereqError", "Node node2 has nothing that a job has left there (drover node orphans node2 lists what else it has and the inventory does not know)",
		"OP_NODE_CLEAR_ORPHANS", params{"node_name": "node2"})
	r.must(`["half-of-one"]`, "OP_NODE_CLEAR_ORPHANS", params{"node_name": "node2", "uuids": []string{"half-of-one"}})
	delete(want, "dumps half-of-one")
	if got := found(); !maps.Equal(got, want) {
		t.Errorf("behind that there is %q", got)
	}
	if got := r.exportsOn("node2"); !slices.Equal(got, []string{"one", "two"}) {
		t.Errorf("the exports are %v", got)
	}
	r.wrap = func(n Node) Node { return knowsNoHalves{n} } // an agent of before
	delete(want, "dumps half-of-nobody")
	if got := found(); !maps.Equal(got, want) {
		t.Errorf("of an agent of before: %q", got)
	}
}

// knowsNoHalves is an agent of before.
type knowsNoHalves struct{ anyNode }

func (knowsNoHalves) HalfExports(context.Context) ([]exports.Half, error) {
	return nil, fault.New(fault.Unsupported, "an agent of before")
}

// Disks of an instance of which its node has nothing are neither made nor grown: they would be a thing of their own, beside what the same
// life has left under the name.
func TestDisksOfNothingAreNotMade(t *testing.T) {
	r := newRig(t)
	r.create("one", false)
	a := r.onNode("node1", "two", "left", life)
	inst := r.instance("one")
	if err := a.Remove(t.Context(), agent.Order{}, thingOf(inst)); err != nil {
		t.Fatal(err)
	}
	refused := func(text string, there ...string) {
		t.Helper()
		for _, dry := range []bool{false, true} {
			r.refuses("OpPrereqError", text, "OP_INSTANCE_GROW_DISK", one(params{"disk": 0, "amount": 4, "dry_run": dry}))
			r.refuses("OpPrereqError", text, "OP_INSTANCE_SET_PARAMS", one(params{"disks": []any{[]any{"add", params{"size": 4}}}, "dry_run": dry}))
			r.has(a, "one", there...)
		}
	}
	refused("Node node1 has nothing of instance 'one' (" + inst.UUID + "), so no disk of it can be made or grow there " +
		"(drover node orphans node1 lists what the node has and the inventory does not know; drover instance remove takes the instance out of the inventory)")
	if err := a.Rename(t.Context(), agent.Order{}, hypervisor.Thing{UUID: "left", Name: "two"}, "one"); err != nil {
		t.Fatal(err)
	}
	refused("there is another instance one on the node: its UUID is left, not "+inst.UUID+strangerHint, "left")
}

// Whether something else has the new name on the node is asked before a rename begins, and the refusal says what may be done.
func TestRenameAsksTheNodeAboutTheNewName(t *testing.T) {
	r := newRig(t)
	r.create("one", false)
	r.create("two", false)
	a := r.onNode("node1", "left-behind", "left", life)
	r.onNode("node1", "foreign", "theirs", "another-life")
	second := r.instance("two")
	if err := a.Rename(t.Context(), agent.Order{}, thingOf(second), "half"); err != nil {
		t.Fatal(err)
	}
	for name, hint := range map[string]string{
		"left-behind": "(left, 1 disks) (next: drover node clear-orphans node1 left)",
		"foreign":     "(theirs, 1 disks) (it is left alone, for it was made by a job of another store, or of this one before it was restored; next: drover node orphans node1)",
		"half":        "(" + second.UUID + ", 1 disks) (it is instance two of the cluster: drover instance rename two gives it its name there, too)",
	} {
		for _, dry := range []bool{false, true} {
			r.refuses("OpPrereqError", "Instance '"+name+"' is not in the cluster, but node node1 has one of that name "+hint,
				"OP_INSTANCE_RENAME", one(params{"new_name": name, "dry_run": dry}))
		}
	}
	r.onItsNode("one")
	// What the node calls by its new name already is what a rename left that did not end.
	if err := a.Rename(t.Context(), agent.Order{}, thingOf(r.instance("one")), "three"); err != nil {
		t.Fatal(err)
	}
	r.must(`"three"`, "OP_INSTANCE_RENAME", one(params{"new_name": "three"}))
	r.onItsNode("three")
}

// Clearing away what is left on a node asks for that node alone: jobs on others go on meanwhile, and creations on it wait.
func TestClearingTakesItsNodeAlone(t *testing.T) {
	r := newRig(t, "node1", "node2")
	snap := r.keeper.Snapshot()
	clearing, err := r.all.Locks(r.opcode("OP_NODE_CLEAR_ORPHANS", params{"node_name": "node1"}), snap)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		node string
		free bool
	}{{"node2", true}, {"node1", false}, {"", false}} {
		p := creating(nil)
		if p["pnode"] = c.node; c.node == "" {
			delete(p, "pnode")
		}
		creation, err := r.all.Locks(r.opcode("OP_INSTANCE_CREATE", p), snap)
		if err != nil {
			t.Fatal(err)
		}
		table := lock.NewTable()
		if !table.Acquire(1, 0, creation) || table.Acquire(2, 0, clearing) != c.free {
			t.Errorf("beside a creation on %q it is free: %v, want %v", c.node, !c.free, c.free)
		}
	}
}

// TestAnotherCopyOfAnInstanceIsNoOrphan: what has the UUID of an instance of the inventory is not cleared, on whatever node it is.
func TestAnotherCopyOfAnInstanceIsNoOrphan(t *testing.T) {
	r := newRig(t, "node1", "node2")
	r.create("one", false)
	uuid := r.instance("one").UUID
	a, err := r.fleet.Agent("node2")
	if err != nil {
		t.Fatal(err)
	}
	own := []hypervisor.Disk{{UUID: r.instance("one").Disks[0].UUID, Size: 8}}
	if err := a.Prepare(t.Context(), agent.Order{Life: life, Job: 7}, thingOf(r.instance("one")), own); err != nil {
		t.Fatal(err)
	}
	r.must("[]", "OP_NODE_ORPHANS", params{"node_name": "node2"})
	for _, given := range []params{{"node_name": "node2"}, {"node_name": "node2", "uuids": []any{uuid}}} {
		if got, err := r.run("OP_NODE_CLEAR_ORPHANS", given); !strings.Contains(fmt.Sprint(err), "has nothing that a job has left there") && !strings.Contains(fmt.Sprint(err), "is instance 'one' of the cluster") {
			t.Errorf("clearing %v: %s, %v", given, got, err)
		}
	}
	r.has(a, "one", uuid)
}

// TestDisksThatAnInstanceDoesNotHave: a disk of an instance that the inventory does not know of is told of, and removed when it is named:
// it has no mark, so it may as well be newer than the backup that the store was restored from.
func TestDisksThatAnInstanceDoesNotHave(t *testing.T) {
	r := newRig(t)
	r.create("one", false)
	inst := r.instance("one")
	a, err := r.fleet.Agent("node1")
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Prepare(t.Context(), agent.Order{}, thingOf(inst), []hypervisor.Disk{{UUID: "late", Size: 8}}); err != nil {
		t.Fatal(err)
	}
	r.must(`[{"uuid":"late","name":"one","state":"stopped","disks":1,"size":8,"made_by":{"life":"","job":0,"opcode":0},"of":"`+inst.UUID+`","kind":"disk",`+
		`"why":"instance one has no such disk in the inventory"}]`, "OP_NODE_ORPHANS", params{"node_name": "node1"})
	r.must("false", "OP_CLUSTER_VERIFY_GROUP", params{"group_name": "default"})
	r.logs("  - ERROR: node node1: disk late (8 MiB) is of instance one, which has no such disk; next: drover node clear-orphans node1 late")
	r.refuses("OpPrereqError", "Node node1 has nothing that a job has left there (drover node orphans node1 lists what else it has and the inventory does not know)",
		"OP_NODE_CLEAR_ORPHANS", params{"node_name": "node1"})
	r.refuses("OpPrereqError", "Node node1 has nothing with the UUID "+inst.Disks[0].UUID+" (drover node orphans node1 lists what is there)",
		"OP_NODE_CLEAR_ORPHANS", params{"node_name": "node1", "uuids": []any{inst.Disks[0].UUID}})
	late := params{"node_name": "node1", "uuids": []any{"late"}}
	r.must(`["late"]`, "OP_NODE_CLEAR_ORPHANS", params{"node_name": "node1", "uuids": []any{"late"}, "dry_run": true})
	r.must(`["late"]`, "OP_NODE_CLEAR_ORPHANS", late)
	there, err := a.Instance(t.Context(), thingOf(inst))
	if err != nil || len(there.Disks) != 1 || there.Disks[0].UUID != inst.Disks[0].UUID {
		t.Errorf("the node has %+v, %v", there, err)
	}
}

// TestDisksThatCannotBeTakenBackAreNamed: who adds a disk, and can neither do it nor take back what may have been made, says which it is.
func TestDisksThatCannotBeTakenBackAreNamed(t *testing.T) {
	r := newRig(t)
	r.create("one", false)
	held := fault.New(fault.Busy, "instance one is held by somebody")
	r.wrap = func(n Node) Node { return holding{n, held} }
	r.refuses("OpExecError", "Could not create the disks of instance one: instance one is held by somebody", "OP_INSTANCE_SET_PARAMS",
		one(params{"disks": []any{[]any{"add", params{"size": 4}}}}))
	uuid := fmt.Sprintf("00000000-0000-4000-8000-%012x", r.uuids)
	r.logs(" - WARNING: Disks that instance one does not have may be left on node node1: " + uuid + "; next: drover node orphans node1, drover node clear-orphans node1 " + uuid)
}

// holding is a node whose things somebody holds.
type holding struct {
	anyNode

	err error
}

func (n holding) Prepare(context.Context, agent.Order, hypervisor.Thing, []hypervisor.Disk) error {
	return n.err
}
func (n holding) Drop(context.Context, agent.Order, hypervisor.Thing, []string) error { return n.err }
