package exec

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/drover-project/drover/internal/agent"
	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/fault"
)

// certified is a node whose agent has a certificate, and makes it anew.
type certified struct {
	anyNode

	r *renewing
}

// renewing are the agents of nodes, and what became of them.
type renewing struct {
	mu    sync.Mutex
	rig   *rig
	asked []string
	fails map[string]error
}

// RenewCertificate makes another one, and has the node keep it as the door does: with the one that it was asked for with.
func (n certified) RenewCertificate(context.Context, agent.Order) (string, error) {
	n.r.mu.Lock()
	defer n.r.mu.Unlock()
	n.r.asked = append(n.r.asked, n.Node())
	if err := n.r.fails[n.Node()]; err != nil {
		return "", err
	}
	serial := ""
	n.r.rig.setNode(n.Node(), func(of *cluster.Node) {
		serial = of.Agent.Serial + "+"
		of.Agent = &cluster.NodeAgent{Serial: serial, Former: of.Agent.Serial, Until: 5}
	})
	return serial, nil
}

// newRenewing is a cluster in which all nodes but the first have agents of their own.
func newRenewing(t *testing.T) *renewing {
	t.Helper()
	r := &renewing{rig: newRig(t, "node1", "node2", "node3", "node4"), fails: map[string]error{}}
	for _, name := range []string{"node2", "node3", "node4"} {
		r.rig.setNode(name, func(n *cluster.Node) { n.Agent = &cluster.NodeAgent{Serial: name, Former: "older", Until: 4} })
	}
	r.rig.setNode("node4", func(n *cluster.Node) { n.Offline = true })
	r.rig.wrap = func(n Node) Node { return certified{n, r} }
	return r
}

// of is what a node keeps of its agent.
func (r *renewing) of(name string) cluster.NodeAgent {
	return *r.rig.keeper.Snapshot().NodeNamed(name).Agent
}

// The certificates of before count until agents have said that they have others, and no longer.
func TestCertificatesAreRenewed(t *testing.T) {
	r := newRenewing(t)
	r.rig.must("null", "OP_CLUSTER_RENEW_CRYPTO", params{"node_certificates": true})
	r.rig.did(string(AgentsCertificate))
	slices.Sort(r.asked)
	if !slices.Equal(r.asked, []string{"node2", "node3"}) {
		t.Errorf("asked were %v", r.asked)
	}
	for _, name := range []string{"node2", "node3"} {
		if got := r.of(name); got != (cluster.NodeAgent{Serial: name + "+", Until: 5}) {
			t.Errorf("%s keeps %+v", name, got)
		}
	}
	if got := r.of("node4"); got.Serial != "node4" || got.Former != "older" {
		t.Errorf("node4, which is marked offline, keeps %+v", got)
	}
	r.rig.logged(" - INFO: Node node1 has no certificate: its agent lives in the controller's process, or has not joined yet",
		" - INFO: Node node4 is marked offline, its certificate is not renewed", "Renewing Node SSL certificates")
}

// An agent that cannot be reached keeps its certificate, and the job says so when it has renewed the others'.
func TestAnAgentThatDoesNotRenew(t *testing.T) {
	r := newRenewing(t)
	r.fails["node2"] = errors.New("it has no room")
	_, err := r.rig.run("OP_CLUSTER_RENEW_CRYPTO", params{"node_certificates": true})
	if want := "The certificates of 1 of the agents were not renewed, and count on: node2 (submit another job when they can be reached)"; err == nil || err.Error() != want {
		t.Errorf("it ends with %v", err)
	}
	if got := r.of("node2"); got.Serial != "node2" || got.Former != "older" {
		t.Errorf("node2 keeps %+v", got)
	}
	if got := r.of("node3"); got.Serial != "node3+" || got.Former != "" {
		t.Errorf("node3 keeps %+v", got)
	}
	r.fails["node2"] = fault.New(fault.Fenced, "another controller leads")
	if _, err := r.rig.run("OP_CLUSTER_RENEW_CRYPTO", params{"node_certificates": true}); !fault.Is(err, fault.Fenced) {
		t.Errorf("where another leads it ends with %v", err)
	}
}

func TestRenewalsOfTheController(t *testing.T) {
	r := newRenewing(t).rig
	r.must("null", "OP_CLUSTER_RENEW_CRYPTO", nil)
	r.did()
	r.must("null", "OP_CLUSTER_RENEW_CRYPTO", params{"rapi_certificate": true, "confd_hmac_key": true})
	r.did(string(RAPICertificate), string(ConfdKey))
	r.machine.lacks = ConfdKey
	r.refuses("OpPrereqError", "there is no the key of confd", "OP_CLUSTER_RENEW_CRYPTO", params{"rapi_certificate": true, "confd_hmac_key": true, "node_certificates": true})
	r.did()
	for _, p := range []params{{"renew_ssh_keys": true, "node_certificates": true}, {"ssh_key_type": "rsa"}, {"ssh_key_bits": 2048}} {
		r.refuses("OpPrereqError", "There are no SSH keys to renew: agents of nodes and controllers know each other by certificates (node_certificates renews those)", "OP_CLUSTER_RENEW_CRYPTO", p)
	}
	r.did()
	r.machine.err = errors.New("the disk is full")
	if _, err := r.run("OP_CLUSTER_RENEW_CRYPTO", params{"rapi_certificate": true}); err == nil || err.Error() != "the disk is full" {
		t.Errorf("a failure is told as %v", err)
	}
}
