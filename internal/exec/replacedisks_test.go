package exec

import (
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/hypervisor"
)

// returned is a rig on which an instance was failed over from node1 while that was away; it is back, and runs the instance still.
func returned(t *testing.T) *rig {
	t.Helper()
	r := dead(t)
	r.must("null", "OP_INSTANCE_FAILOVER", params{"instance_name": "pair"})
	delete(r.down, "node1")
	r.mark("node1", func(n *cluster.Node) { n.Offline = false })
	return r
}

func TestReplacementsKilledAnywhere(t *testing.T) {
	for name, tc := range map[string]struct {
		begin func(*testing.T) *rig
		p     params
	}{
		"in place, on the primary node": {moveable, params{"mode": "replace_on_primary", "disks": []any{0}}},
		"of what was left behind":       {returned, params{"mode": "replace_auto"}},
		"on another node":               {moveable, params{"mode": "replace_new_secondary", "remote_node": "node3"}},
		"on another node, at once":      {moveable, params{"mode": "replace_new_secondary", "iallocator": "hail", "early_release": true}},
	} {
		tc.p["instance_name"] = "pair"
		t.Run(name, func(t *testing.T) { killedAnywhere(t, tc.begin, "OP_INSTANCE_REPLACE_DISKS", tc.p, false) })
	}
}

// What was left behind on a node that was away is copied anew, and may be gone back to then.
func TestReplaceWhatWasLeftBehind(t *testing.T) {
	r := returned(t)
	r.must("null", "OP_INSTANCE_REPLACE_DISKS", params{"instance_name": "pair", "mode": "replace_on_secondary"})
	inst := r.instance("pair")
	if r.state("node1", "pair") != hypervisor.Stopped || inst.StaleOn(inst.SecondaryNodes()[0]) >= 0 {
		t.Errorf("node1 has it %s, and the inventory says %+v", r.state("node1", "pair"), inst.Disks)
	}
	r.must("null", "OP_INSTANCE_REPLACE_DISKS", params{"instance_name": "pair", "mode": "replace_auto"})
	r.logged("No disks need replacement for instance 'pair'")
	r.must("null", "OP_INSTANCE_MIGRATE", params{"instance_name": "pair"})
	if r.state("node1", "pair") != hypervisor.Running {
		t.Errorf("it is %s on node1", r.state("node1", "pair"))
	}
}

// A copy that could not be made counts as out of date; a new node whose copy could not be made is not the instance's.
func TestReplacementThatFails(t *testing.T) {
	r := moveable(t)
	r.failOn("node2", "prepare", false)
	if _, err := r.run("OP_INSTANCE_REPLACE_DISKS", params{"instance_name": "pair", "mode": "replace_on_secondary"}); err == nil {
		t.Error("it succeeds")
	}
	if inst := r.instance("pair"); inst.StaleOn(inst.SecondaryNodes()[0]) != 0 {
		t.Errorf("the inventory says %+v", inst.Disks)
	}
	r = moveable(t)
	before := r.whole()
	r.failOn("node3", "prepare", true)
	if _, err := r.run("OP_INSTANCE_REPLACE_DISKS", params{"instance_name": "pair", "mode": "replace_new_secondary", "remote_node": "node3"}); err == nil || r.whole() != before {
		t.Errorf("%v\n%s\nbefore\n%s", err, r.whole(), before)
	}
}

// What the primary node lacks is not copied from there, and the copy that is good stays: nothing else has what was written.
func TestNothingIsCopiedFromWhatIsLeftBehind(t *testing.T) {
	r := moveable(t)
	r.failOn("node1", "prepare", false)
	if _, err := r.run("OP_INSTANCE_REPLACE_DISKS", params{"instance_name": "pair", "mode": "replace_on_primary"}); err == nil {
		t.Fatal("it succeeds")
	}
	r.failOn("node1", "", false)
	before := r.whole()
	for _, p := range []params{{"mode": "replace_new_secondary", "remote_node": "node3"}, {"mode": "replace_on_secondary"}} {
		p["instance_name"] = "pair"
		if _, err := r.run("OP_INSTANCE_REPLACE_DISKS", p); !fault.Is(err, fault.WrongState) || !strings.Contains(err.Error(), "Disk 0 is degraded on node node1") {
			t.Errorf("%v: %v", p, err)
		}
	}
	if r.whole() != before {
		t.Errorf("it is\n%s\nbefore\n%s", r.whole(), before)
	}
	r.must("null", "OP_INSTANCE_REPLACE_DISKS", params{"instance_name": "pair", "mode": "replace_on_primary"})
	r.must("null", "OP_INSTANCE_REPLACE_DISKS", params{"instance_name": "pair", "mode": "replace_on_secondary"})
}

// Behind a failover onto a copy that was left behind that one is the truth, and the other one is what was left behind.
func TestAFailoverOntoWhatWasLeftBehind(t *testing.T) {
	r := returned(t)
	r.must("null", "OP_INSTANCE_MIGRATE", params{"instance_name": "pair", "cleanup": true})
	r.must("null", "OP_INSTANCE_FAILOVER", params{"instance_name": "pair", "ignore_consistency": true})
	inst := r.instance("pair")
	if inst.StaleOn(inst.PrimaryNode) >= 0 || inst.StaleOn(inst.SecondaryNodes()[0]) != 0 {
		t.Errorf("the inventory says %+v", inst.Disks)
	}
	if _, err := r.run("OP_INSTANCE_MIGRATE", params{"instance_name": "pair"}); err == nil {
		t.Error("it goes back to disks that are others")
	}
}

func TestReplaceSecondaryNode(t *testing.T) {
	r := moveable(t)
	r.must("null", "OP_INSTANCE_REPLACE_DISKS", params{"instance_name": "pair", "mode": "replace_new_secondary", "iallocator": "hail"})
	inst := r.instance("pair")
	id, _ := readDRBD(&inst.Disks[0])
	if n := nodeName(r.keeper.Snapshot(), inst.SecondaryNodes()[0]); n != "node3" || id.b != inst.SecondaryNodes()[0] || r.state("node2", "pair") != "" {
		t.Errorf("its second copy is on %s (%+v), and node2 has it %q", n, id, r.state("node2", "pair"))
	}
	if !strings.Contains(strings.Join(r.log, "\n"), "Selected new secondary for instance 'pair': node3 (most free memory") {
		t.Errorf("%q", r.log)
	}
	// From a secondary node that is away, too.
	r.mark("node3", func(n *cluster.Node) { n.Offline = true })
	r.down["node3"] = true
	r.must("null", "OP_INSTANCE_REPLACE_DISKS", params{"instance_name": "pair", "mode": "replace_new_secondary", "remote_node": "node2"})
	if n := nodeName(r.keeper.Snapshot(), r.instance("pair").SecondaryNodes()[0]); n != "node2" {
		t.Errorf("its second copy is on %s", n)
	}
}

func TestReplacementsAreRefused(t *testing.T) {
	r := moveable(t)
	r.create("up", true)
	for _, tc := range []struct {
		p    params
		text string
	}{
		{params{"instance_name": "up", "mode": "replace_auto"}, "Can only run replace disks for DRBD8-based instances"},
		{params{"mode": "replace_new_secondary"}, "When changing the secondary either an iallocator script must be used or the new node given (with iallocator=hail placement chooses the node)"},
		{params{"mode": "replace_on_primary", "remote_node": "node3"}, "The iallocator and new node options can only be used when changing the secondary node"},
		{params{"mode": "replace_auto", "disks": []any{0}}, "Cannot specify disks to be replaced"},
		{params{"mode": "replace_on_primary", "disks": []any{1}}, "Invalid disk index 1: the instance has 1 disks"},
		{params{"mode": "replace_new_secondary", "remote_node": "node1"}, "The specified node is the primary node of the instance"},
		{params{"mode": "replace_new_secondary", "remote_node": "node2"}, "The specified node is already the secondary node of the instance (to copy its disks anew there, say replace_on_secondary)"},
	} {
		if tc.p["instance_name"] == nil {
			tc.p["instance_name"] = "pair"
		}
		before := r.dump()
		if _, err := r.run("OP_INSTANCE_REPLACE_DISKS", tc.p); err == nil || err.Error() != tc.text || r.dump() != before {
			t.Errorf("%v: %v", tc.p, err)
		}
	}
}
