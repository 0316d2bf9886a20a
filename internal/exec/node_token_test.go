package exec

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/joining"
)

// TestNodeToken lets agents join as nodes that are there, and that are not.
func TestNodeToken(t *testing.T) {
	r := newRig(t, "node1", "node2")
	r.all["OP_NODE_TOKEN"] = NodeToken(func(context.Context) (JoinAccess, error) {
		return JoinAccess{Addresses: []string{"192.0.2.1:5082"}, Authority: "aa"}, nil
	})
	r.create("one", false)
	hash, other := strings.Repeat("ab", 32), strings.Repeat("cd", 32)
	on := r.instance("one").PrimaryNode
	home, empty := r.keeper.Snapshot().Node(on).Name, "node2"
	if home == empty {
		empty = "node1"
	}
	result := func(node string) string {
		until := r.keeper.Snapshot().NodeNamed(node).Agent.Token.Until
		return fmt.Sprintf(`{"addresses":["192.0.2.1:5082"],"authority":"aa","node":%q,"until":%d}`, node, until)
	}
	told, err := r.run("OP_NODE_TOKEN", params{"node_name": "Node9", "token_hash": hash})
	if err != nil || told != result("node9") {
		t.Fatalf("%s, %v", told, err)
	}
	n := r.keeper.Snapshot().NodeNamed("node9")
	if n.Agent.Token.Hash != hash || n.PrimaryIP != "127.0.0.3" || n.Group == "" || !n.MasterCandidate || n.Agent.Serial != "" {
		t.Errorf("the new node is %+v with %+v", n, n.Agent.Token)
	}
	if left := time.Unix(n.Agent.Token.Until, 0).Sub(time.Unix(0, n.MTime)); left > joining.TokenTime || left < joining.TokenTime-time.Minute {
		t.Errorf("the token counts for %v", left)
	}
	// An agent joins; another token takes nothing away until it is used, and the same again does not make a used one new.
	r.setNode("node9", func(n *cluster.Node) { n.Agent.Serial, n.Agent.Token.Key = "1", "k" })
	if _, err := r.run("OP_NODE_TOKEN", params{"node_name": "node9", "token_hash": hash}); err != nil || r.keeper.Snapshot().NodeNamed("node9").Agent.Token.Key != "k" {
		t.Errorf("the same token again: %v, %+v", err, r.keeper.Snapshot().NodeNamed("node9").Agent.Token)
	}
	if _, err := r.run("OP_NODE_TOKEN", params{"node_name": "node9", "token_hash": other}); err != nil {
		t.Error(err)
	}
	if a := r.keeper.Snapshot().NodeNamed("node9").Agent; a.Serial != "1" || a.Token.Key != "" || a.Token.Hash != other {
		t.Errorf("with another token it has %+v %+v", a, a.Token)
	}
	if _, err := r.run("OP_NODE_TOKEN", params{"node_name": empty, "token_hash": hash}); err != nil || r.keeper.Snapshot().NodeNamed(empty).Agent == nil {
		t.Errorf("a node without instances: %v", err)
	}
	for _, c := range []struct {
		text string
		p    params
	}{
		{"The hash of the token is not that of a SHA-256, in hexadecimal digits", params{"node_name": "node8", "token_hash": "ab"}},
		{"Node node9 is in the cluster already, and keeps its settings", params{"node_name": "node9", "token_hash": hash, "group": "default"}},
		{"Node " + home + " lives in the controller's process, and has instances there, of which an agent elsewhere knows nothing (remove them first, or name a node that is not there yet: it is added)",
			params{"node_name": home, "token_hash": hash}},
		{"Node group 'nosuch' not found", params{"node_name": "node8", "token_hash": hash, "group": "nosuch"}},
		{"The address 127.0.0.1 is already that of node node1", params{"node_name": "node8", "token_hash": hash, "primary_ip": "127.0.0.1"}},
	} {
		r.refuses("OpPrereqError", c.text, "OP_NODE_TOKEN", c.p)
	}
	r.all["OP_NODE_TOKEN"] = NodeToken(func(context.Context) (JoinAccess, error) {
		return JoinAccess{}, fault.New(fault.WrongState, "no agents")
	})
	r.refuses("OpPrereqError", "no agents", "OP_NODE_TOKEN", params{"node_name": "node7", "token_hash": hash})
}
