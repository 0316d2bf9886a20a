package exec

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/drover-project/drover/internal/agent"
	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/lock"
)

// commanding is a node that has one restricted command, and counts how often that ran.
type commanding struct {
	anyNode

	mu   *sync.Mutex
	runs map[string]int // by node
}

func (n commanding) RunCommand(_ context.Context, order agent.Order, name string) (string, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if name != "says" {
		return "", fault.New(fault.NotFound, "There is no /commands/%s", name)
	}
	n.runs[n.Node()]++
	return fmt.Sprintf("%s, epoch %d\n", n.Node(), order.Epoch), nil
}

// commanded has the nodes of a rig be such.
func (r *rig) commanded() (runs map[string]int) {
	runs = map[string]int{}
	mu := new(sync.Mutex)
	r.wrap = func(n Node) Node { return commanding{n, mu, runs} }
	return runs
}

// Each node is asked, and tells what it came to; that one cannot be asked is told in its place.
func TestRestrictedCommands(t *testing.T) {
	r := newRig(t, "node1", "node2", "node3")
	runs := r.commanded()
	r.setNode("node2", func(n *cluster.Node) { n.Offline = true })
	r.must(`[[true,"node3, epoch 0\n"],[false,"Command 'says' on node 'node2' failed: Node is marked offline"],[true,"node1, epoch 0\n"]]`,
		"OP_RESTRICTED_COMMAND", params{"command": "says", "nodes": []any{"node3", "node2", "node1", "node3"}})
	if runs["node1"] != 1 || runs["node2"] != 0 || runs["node3"] != 1 {
		t.Errorf("it ran %v times", runs)
	}
	r.down["node1"] = true
	r.must(`[[false,"Command 'says' on node 'node1' failed: Can't contact node node1: node node1 does not answer"]]`, "OP_RESTRICTED_COMMAND", params{"command": "says", "nodes": []any{"node1"}})
	r.must(`[[false,"Command 'no' on node 'node3' failed: There is no /commands/no"]]`, "OP_RESTRICTED_COMMAND", params{"command": "no", "nodes": []any{"node3"}})
	r.must(`[]`, "OP_RESTRICTED_COMMAND", params{"command": "says", "nodes": []any{}})
	r.refuses("OpPrereqError", "Node 'nosuch' not known", "OP_RESTRICTED_COMMAND", params{"command": "says", "nodes": []any{"nosuch"}})
}

// The nodes are shared with other jobs, unless the command is to have them alone.
func TestLocksOfRestrictedCommands(t *testing.T) {
	r := newRig(t, "node1", "node2")
	uuid := r.keeper.Snapshot().NodeNamed("node2").UUID
	for alone, mode := range map[bool]lock.Mode{false: lock.Shared, true: lock.Exclusive} {
		request, err := commandLocks(r.opcode("OP_RESTRICTED_COMMAND", params{"command": "x", "nodes": []any{"node2"}, "use_locking": alone}), r.keeper.Snapshot())
		if want := (lock.Request{{Name: lock.Name{Level: lock.Node, Item: uuid}, Mode: mode}}); err != nil || !request.Equal(want) {
			t.Errorf("with use_locking %v: %v, %v", alone, request, err)
		}
	}
}

// A command that may have run when its controller ended does not run again: the job says so. One that was not begun runs.
func TestRestrictedCommandsDoNotRunTwice(t *testing.T) {
	r := newRig(t)
	runs := r.commanded()
	op := r.opcode("OP_RESTRICTED_COMMAND", params{"command": "says", "nodes": []any{"node1"}})
	if got := r.live(op, 1, false, 1); !got.dead || runs["node1"] != 0 {
		t.Errorf("killed before it is kept: %+v, ran %v", got, runs)
	}
	if got := r.live(op, 2, true, 1000); got.err != nil || runs["node1"] != 1 || got.result != `[[true,"node1, epoch 2\n"]]` {
		t.Errorf("it was not begun: %+v, ran %v", got, runs)
	}
	got := r.live(op, 3, true, 1000)
	if !fault.Is(got.err, fault.Failed) || !strings.Contains(got.err.Error(), "not run again") || runs["node1"] != 1 {
		t.Errorf("it was begun: %+v, ran %v", got, runs)
	}
	kept := r.kept(&Env{Job: 77})
	if kept == nil || kept.Work.Steps[0].Verb != runCommand || kept.Progress.Done != 0 {
		t.Errorf("what was kept is %+v", kept)
	}
}

// resetting is a node that counts how often it was reset.
type resetting struct {
	anyNode
	resets map[string]int
	err    error
}

func (n resetting) Powercycle(context.Context, agent.Order) (string, error) {
	n.resets[n.Node()]++
	return "soon", n.err
}

// A node is reset whatever is done on it, also one that is out of service; the master only if that is meant.
func TestPowercycleOfNodes(t *testing.T) {
	r := newRig(t, "node1", "node2")
	resets, refuse := map[string]int{}, error(nil)
	r.wrap = func(n Node) Node { return resetting{n, resets, refuse} }
	r.refuses("OpPrereqError", "The node is the master and the force parameter was not set", "OP_NODE_POWERCYCLE", params{"node_name": "node1"})
	r.refuses("OpPrereqError", "Node 'nosuch' not known", "OP_NODE_POWERCYCLE", params{"node_name": "nosuch"})
	if len(resets) > 0 {
		t.Errorf("reset were %v", resets)
	}
	r.must(`"soon"`, "OP_NODE_POWERCYCLE", params{"node_name": "node1", "force": true})
	r.setNode("node2", func(n *cluster.Node) { n.Offline = true })
	r.must(`"soon"`, "OP_NODE_POWERCYCLE", params{"node_name": "node2"})
	if resets["node1"] != 1 || resets["node2"] != 1 {
		t.Errorf("reset were %v", resets)
	}
	refuse = fault.New(fault.Unsupported, "nobody has said how")
	r.refuses("OpExecError", "Failed to schedule the reboot: nobody has said how", "OP_NODE_POWERCYCLE", params{"node_name": "node2"})
	if request, err := r.all.Locks(r.opcode("OP_NODE_POWERCYCLE", params{"node_name": "node2"}), r.keeper.Snapshot()); err != nil || !request.Equal(shareCluster) {
		t.Errorf("it waits for %v, %v", request, err)
	}
}

// A node that may have been reset when its controller ended is not reset again.
func TestPowercycleDoesNotComeTwice(t *testing.T) {
	r := newRig(t, "node1", "node2")
	resets := map[string]int{}
	r.wrap = func(n Node) Node { return resetting{n, resets, nil} }
	op := r.opcode("OP_NODE_POWERCYCLE", params{"node_name": "node2"})
	if got := r.live(op, 1, false, 1000); got.err != nil || resets["node2"] != 1 {
		t.Errorf("%+v, reset %v", got, resets)
	}
	if got := r.live(op, 2, true, 1000); !fault.Is(got.err, fault.Failed) || !strings.Contains(got.err.Error(), "not done again") || resets["node2"] != 1 {
		t.Errorf("it goes on to %+v, reset %v", got, resets)
	}
}
