package exec

import (
	"errors"
	"slices"
	"testing"

	"github.com/drover-project/drover/internal/agent"
	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/lock"
)

// TestOwnInstanceSharesItsNodes also those that hold copies of its disks.
func TestOwnInstanceSharesItsNodes(t *testing.T) {
	r := newRig(t, "node1", "node2", "node3")
	r.create("one", false)
	r.mirror("one", "node2")
	snap := r.keeper.Snapshot()
	request, err := ownInstance(r.opcode("OP_INSTANCE_STARTUP", one(nil)), snap)
	if err != nil {
		t.Fatal(err)
	}
	want := lock.Request{{Name: lock.Name{Level: lock.Instance, Item: "one"}, Mode: lock.Exclusive}}
	for _, name := range []string{"node1", "node2"} {
		for _, level := range []lock.Level{lock.Node, lock.NodeRes} {
			want = append(want, lock.Want{Name: lock.Name{Level: level, Item: snap.NodeNamed(name).UUID}, Mode: lock.Shared})
		}
	}
	if !slices.Equal(request, want) {
		t.Errorf("got %v, want %v", request, want)
	}
}

// mirror makes a node hold copies of an instance's disks.
func (r *rig) mirror(instance, node string) {
	r.Helper()
	r.update(func(snap *cluster.Snapshot) []cluster.Change {
		i := snap.InstanceNamed(instance).Clone()
		for n := range i.Disks {
			i.Disks[n].Type = cluster.DiskDRBD
			i.Disks[n].Nodes = append(i.Disks[n].Nodes, snap.NodeNamed(node).UUID)
		}
		return []cluster.Change{cluster.Put(i)}
	})
}

func TestNodeWithCopiesOfDisksIsNotRemoved(t *testing.T) {
	r := newRig(t, "node1", "node2")
	r.create("one", false)
	r.mirror("one", "node2")
	r.refuses("OpPrereqError", "Instance one is still running on the node, please remove first", "OP_NODE_REMOVE", params{"node_name": "node2"})
}

func TestGrowDiskKeepsToThePolicy(t *testing.T) {
	r := newRig(t)
	r.create("one", false)
	bounds := func(figures, disk int) params {
		return params{"memory-size": 64 * figures, "cpu-count": figures, "disk-count": figures, "disk-size": disk, "nic-count": figures, "spindle-use": figures}
	}
	_, err := r.run("OP_GROUP_SET_PARAMS", params{"group_name": "default",
		"ipolicy": params{"minmax": []any{params{"min": bounds(1, 1), "max": bounds(16, 100)}}}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = r.run("OP_INSTANCE_GROW_DISK", one(params{"disk": 0, "amount": 101, "absolute": true}))
	if !fault.Is(err, fault.Invalid) {
		t.Errorf("beyond the policy: %v", err)
	}
	r.must("null", "OP_INSTANCE_GROW_DISK", one(params{"disk": 0, "amount": 100, "absolute": true}))
	r.must("null", "OP_INSTANCE_GROW_DISK", one(params{"disk": 0, "amount": 101, "absolute": true, "ignore_ipolicy": true}))
}

func TestShutdownOfAnOfflineInstance(t *testing.T) {
	r := newRig(t)
	r.create("one", false)
	r.must(`[["admin_state","offline"]]`, "OP_INSTANCE_SET_PARAMS", one(params{"offline": true}))
	r.refuses("OpPrereqError", "Instance 'one' is marked to be offline, can't use instance from outside down, up states", "OP_INSTANCE_SHUTDOWN", one(nil))
	r.must("null", "OP_INSTANCE_SHUTDOWN", one(params{"force": true}))
	if got := r.instance("one").AdminState; got != cluster.AdminOffline {
		t.Errorf("after a forced shutdown it is marked %s", got)
	}
}

// TestWorkThatWasInterruptedSaysSo: the queue tells these codes from a failure
// of the work itself.
func TestWorkThatWasInterruptedSaysSo(t *testing.T) {
	for _, code := range []fault.Code{fault.Failed, fault.Canceled, fault.Fenced, fault.Unavailable} {
		if got := begun(fault.New(code, "x")); fault.CodeOf(got) != code {
			t.Errorf("%s became %s", code, fault.CodeOf(got))
		}
	}
	for _, err := range []error{fault.New(fault.Invalid, "x"), fault.New(fault.NotFound, "x"), fault.New(fault.Environment, "x"), errors.New("x")} {
		if got := begun(err); !fault.Is(got, fault.Failed) {
			t.Errorf("%v became %s", err, fault.CodeOf(got))
		}
	}
}

// TestOrdersOfAnOpcodeAreTold: each has a number of its own, under the leader's
// epoch.
func TestOrdersOfAnOpcodeAreTold(t *testing.T) {
	env := &Env{Job: 7, Index: 2, Epoch: 5, Life: "life"}
	for step := 1; step < 4; step++ {
		if got, want := env.Order(), (agent.Order{Epoch: 5, Life: "life", Job: 7, Opcode: 2, Step: step}); got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
}

// TestWithWhichNodesOpcodesWork: those that change the inventory alone work with none, whatever they lock, so that nobody waits for a node to be told
// that it is offline.
func TestWithWhichNodesOpcodesWork(t *testing.T) {
	r := newRig(t, "node1", "node2", "node3")
	r.create("one", false)
	r.mirror("one", "node2")
	snap := r.keeper.Snapshot()
	for _, c := range []struct {
		op   string
		args params
		want []string
	}{
		{"OP_INSTANCE_STARTUP", one(nil), []string{"node1", "node2"}},
		{"OP_INSTANCE_STARTUP", params{"instance_name": "nobody"}, nil},
		{"OP_NODE_CLEAR_ORPHANS", params{"node_name": "node2", "uuids": []string{"x"}}, []string{"node2"}},
		{"OP_NODE_SET_PARAMS", params{"node_name": "node2", "offline": true}, nil},
		{"OP_TAGS_SET", params{"kind": "node", "name": "node2", "tags": []string{"x"}}, nil},
		{"OP_CLUSTER_VERIFY_CONFIG", nil, nil},
		{"OP_TEST_DELAY", params{"duration": 1, "on_nodes": []string{"node3"}, "on_master": false, "no_locks": false}, []string{"node3"}},
	} {
		var got []string
		for _, uuid := range r.all.Nodes(r.opcode(c.op, c.args), snap) {
			got = append(got, snap.Node(uuid).Name)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s %v works with %v, want %v", c.op, c.args, got, c.want)
		}
	}
}
