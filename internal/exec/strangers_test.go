package exec

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/drover-project/drover/internal/agent"
	"github.com/drover-project/drover/internal/hypervisor"
)

// logs checks that the last opcode left a message, among others.
func (r *rig) logs(message string) {
	r.Helper()
	if !slices.Contains(r.log, message) {
		r.Errorf("no %q in the log %q", message, r.log)
	}
}

const strangerHint = " (it is left alone; drover cluster verify lists what nodes have and the inventory does not know)"

// onNode puts an instance on a node that the inventory does not know, with a disk.
func (r *rig) onNode(node, name, uuid string) *agent.Agent {
	r.Helper()
	a, err := r.fleet.Agent(node)
	if err != nil {
		r.Fatal(err)
	}
	if err := a.Prepare(r.Context(), agent.Order{}, name, uuid, []hypervisor.Disk{{UUID: "disk-of-" + uuid, Size: 8}}); err != nil {
		r.Fatal(err)
	}
	return a
}

func TestCreateClearsLeftovers(t *testing.T) {
	r := newRig(t)
	a := r.onNode("node1", "one", "dead")
	r.create("one", false)
	r.logs(" - INFO: Node node1 has disks of an instance one (dead) whose creation did not end, and which nothing has used: they are removed")
	if i, err := a.Instance(t.Context(), "one"); err != nil || i.UUID != r.instance("one").UUID || len(i.Disks) != 1 || i.Disks[0].UUID == "dead" || i.Blank {
		t.Fatalf("the node has %+v, %v", i, err)
	}
	if err := a.Start(t.Context(), agent.Order{}, hypervisor.Spec{Name: "two"}, nil); err != nil {
		t.Fatal(err)
	}
	r.refuses("OpPrereqError", "Instance 'two' is not in the cluster, but runs on node node1", "OP_INSTANCE_CREATE", creating(params{"instance_name": "two"}))
}

// A machine that the inventory does not know may be somebody's: it was restored from an
// older backup, or the node was away when the instance was removed. No creation destroys
// it, also not one that is refused or fails.
func TestCreateLeavesStrangersAlone(t *testing.T) {
	r := newRig(t)
	a := r.onNode("node1", "one", "theirs")
	if err := a.Keep(t.Context(), agent.Order{}, "one", "theirs"); err != nil {
		t.Fatal(err)
	}
	const refusal = "Instance 'one' is not in the cluster, but node node1 has one of that name (theirs, 1 disks) " +
		"(it is left alone: take another name or another node; drover cluster verify lists what nodes have and the cluster does not)"
	r.refuses("OpPrereqError", refusal, "OP_INSTANCE_CREATE", creating(nil))
	r.refuses("OpPrereqError", refusal, "OP_INSTANCE_CREATE", creating(params{"dry_run": true}))
	if i, err := a.Instance(t.Context(), "one"); err != nil || i.UUID != "theirs" || len(i.Disks) != 1 {
		t.Errorf("the node has %+v, %v", i, err)
	}

	// One that comes after the checks is left alone, too.
	r.wrap = func(n Node) Node {
		return beforePrepare{n, func(string) { r.onNode("node1", "two", "late") }}
	}
	r.refuses("OpExecError", "Could not create the disks of instance two on node node1: there is another instance two on the node: its UUID is late, not "+
		fmt.Sprintf("00000000-0000-4000-8000-%012x", r.uuids+1)+strangerHint, "OP_INSTANCE_CREATE", creating(params{"instance_name": "two"}))
	if i, err := a.Instance(t.Context(), "two"); err != nil || i.UUID != "late" || len(i.Disks) != 1 {
		t.Errorf("the node has %+v, %v", i, err)
	}
}

// What the inventory knows is nobody's leftover, whatever its node says of it; and what
// is used is none any more, though the node was not told at its creation.
func TestWhatIsInTheInventoryIsNoLeftover(t *testing.T) {
	r := newRig(t)
	r.failOn("node1", "keep", false)
	r.must(`["node1"]`, "OP_INSTANCE_CREATE", creating(params{"no_install": true, "start": false}))
	r.logs(" - WARNING: Node node1 did not take note that instance one is wanted: the driver is broken on purpose")
	r.failOn("node1", "", false)
	a, err := r.fleet.Agent("node1")
	if err != nil {
		t.Fatal(err)
	}
	blank := func(name string) bool {
		t.Helper()
		i, err := a.Instance(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		return i.Blank
	}
	if !blank("one") {
		t.Fatal("the node took note all the same")
	}
	if err := a.Rename(t.Context(), agent.Order{}, "one", "two"); err != nil {
		t.Fatal(err)
	}
	uuid := r.instance("one").UUID
	r.refuses("OpPrereqError", "Instance 'two' is not in the cluster, but node node1 has one of that name ("+uuid+", 1 disks) "+
		"(it is left alone: take another name or another node; drover cluster verify lists what nodes have and the cluster does not)",
		"OP_INSTANCE_CREATE", creating(params{"instance_name": "two"}))
	if err := a.Rename(t.Context(), agent.Order{}, "two", "one"); err != nil {
		t.Fatal(err)
	}
	r.must("null", "OP_INSTANCE_REINSTALL", one(nil))
	if blank("one") {
		t.Error("an operating system was installed on it, and the node takes it for blank")
	}
}

type anyNode = Node // which has a method of its name

// beforePrepare is a node on which something happens just before disks are made.
type beforePrepare struct {
	anyNode

	happens func(name string)
}

func (n beforePrepare) Prepare(ctx context.Context, order agent.Order, name, uuid string, disks []hypervisor.Disk) error {
	n.happens(name)
	return n.anyNode.Prepare(ctx, order, name, uuid, disks)
}

// An instance that is removed, or started, is the one that the inventory means.
func TestStrangersAreNeitherRemovedNorStarted(t *testing.T) {
	r := newRig(t)
	r.create("one", false)
	a, err := r.fleet.Agent("node1")
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Remove(t.Context(), agent.Order{}, "one"); err != nil {
		t.Fatal(err)
	}
	r.onNode("node1", "one", "theirs")
	stranger := "there is another instance one on the node: its UUID is theirs, not " + r.instance("one").UUID + strangerHint
	r.refuses("OpExecError", "Could not start instance 'one': "+stranger, "OP_INSTANCE_STARTUP", one(nil))
	r.refuses("OpExecError", "Can't remove instance's disks: "+stranger, "OP_INSTANCE_REMOVE", one(nil))
	r.must("null", "OP_INSTANCE_REMOVE", one(params{"ignore_failures": true}))
	r.logged("Warning: can't remove instance's disks: " + stranger)
	if i, err := a.Instance(t.Context(), "one"); err != nil || i.UUID != "theirs" || len(i.Disks) != 1 {
		t.Errorf("the node has %+v, %v", i, err)
	}
}
