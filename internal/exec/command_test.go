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
