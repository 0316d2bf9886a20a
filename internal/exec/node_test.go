package exec

import (
	"reflect"
	"testing"

	"github.com/drover-project/drover/internal/cluster"
)

func TestNodeAdd(t *testing.T) {
	r := newRig(t)
	r.must("null", "OP_NODE_ADD", params{"node_name": "Node2", "vm_capable": false, "ndparams": params{"ssh_port": "2222"}})
	n := r.keeper.Snapshot().NodeNamed("node2")
	if n.PrimaryIP != "127.0.0.2" || !n.MasterCandidate || n.VMCapable || n.NDParams["ssh_port"] != int64(2222) || n.Group == "" {
		t.Fatalf("node is %+v", n)
	}
	refusals := []struct {
		text string
		p    params
	}{
		{"Node node2 is already in the configuration", params{"node_name": "node2"}},
		{"Node node3 is not in the configuration", params{"node_name": "node3", "readd": true}},
		{"Cannot pass a node group when a node is being readded", params{"node_name": "node2", "readd": true, "group": "default"}},
		{"Node group 'nosuch' not found", params{"node_name": "node3", "group": "nosuch"}},
		{"Invalid primary IP 'x'", params{"node_name": "node3", "primary_ip": "x"}},
		{"The address 127.0.0.1 is already that of node node1", params{"node_name": "node3", "primary_ip": "127.0.0.1"}},
	}
	for _, c := range refusals {
		r.refuses("OpPrereqError", c.text, "OP_NODE_ADD", c.p)
	}
	r.refuses("TypeEnforcementError", "Unknown parameter 'x'", "OP_NODE_ADD", params{"node_name": "node3", "ndparams": params{"x": 1}})
	r.down["node3"] = true
	r.refuses("OpPrereqError", "Can't contact node node3: node node3 does not answer", "OP_NODE_ADD", params{"node_name": "node3"})
	r.setNode("node2", func(n *cluster.Node) { n.Offline = true })
	r.must("null", "OP_NODE_ADD", params{"node_name": "node2", "readd": true})
	if n := r.keeper.Snapshot().NodeNamed("node2"); n.Offline {
		t.Fatalf("node is %+v", n)
	}
	r.must("null", "OP_NODE_ADD", params{"node_name": "node4", "primary_ip": "192.0.2.4"})
	r.refuses("OpPrereqError", "The address of the node is missing", "OP_NODE_ADD", params{"node_name": "node5"})
}

// A node that is added again is what the opcode says of it, where that can be.
func TestNodeReadd(t *testing.T) {
	const elsewhere = "Readded node doesn't have the same IP address configuration as before (its secondary address is 127.0.0.2; drover node modify changes it)"
	r := newRig(t, "node1", "node2", "node3")
	r.mirrored("pair", false)
	again := func(name string, p params) params {
		p["node_name"], p["readd"] = name, true
		return p
	}
	for _, c := range []struct {
		text, node string
		p          params
	}{
		{elsewhere, "node2", params{"primary_ip": "192.0.2.77"}},
		{elsewhere, "node2", params{"secondary_ip": "192.0.2.77"}},
		{"Invalid primary IP 'x'", "node2", params{"primary_ip": "x"}},
		{"The address 127.0.0.1 is already that of node node1", "node2", params{"primary_ip": "127.0.0.1"}},
		{"Node node2 being re-added with vm_capable flag set to false, but it already holds instances", "node2", params{"vm_capable": false}},
		{"Master must remain master capable", "node1", params{"master_capable": false}},
		{"Parameters 'hv_state' and 'disk_state' can't be set yet", "node2", params{"hv_state": params{"fake": params{"mem_node": 1}}}},
	} {
		r.refuses("OpPrereqError", c.text, "OP_NODE_ADD", again(c.node, c.p))
	}
	r.setNode("node3", func(n *cluster.Node) {
		n.Offline, n.Powered, n.NDParams = true, false, cluster.Params{"oob_program": "/oob"}
	})
	is := func(want cluster.Node) {
		t.Helper()
		n := r.keeper.Snapshot().NodeNamed("node3")
		got := cluster.Node{MasterCandidate: n.MasterCandidate, MasterCapable: n.MasterCapable, VMCapable: n.VMCapable, Powered: n.Powered, Offline: n.Offline, NDParams: n.NDParams, PrimaryIP: n.PrimaryIP, SecondaryIP: n.SecondaryIP}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("it is %+v, want %+v", got, want)
		}
	}
	want := cluster.Node{MasterCandidate: true, MasterCapable: true, VMCapable: true, Powered: true, NDParams: cluster.Params{"oob_program": "/oob"}, PrimaryIP: "127.0.0.3", SecondaryIP: "127.0.0.3"}
	r.must("null", "OP_NODE_ADD", again("node3", params{"primary_ip": "127.0.0.3", "secondary_ip": "127.0.0.3"})) // as it was
	is(want)
	r.must("null", "OP_NODE_ADD", again("node3", params{"vm_capable": false, "master_capable": false, "ndparams": params{"spindle_count": 7}}))
	want.VMCapable, want.MasterCapable, want.MasterCandidate, want.NDParams = false, false, false, cluster.Params{"spindle_count": int64(7)}
	is(want)
	r.must("null", "OP_NODE_ADD", again("node3", params{})) // which says nothing of them
	is(want)
	r.setNode("node3", func(n *cluster.Node) { n.SecondaryIP = "198.51.100.3" })
	r.must("null", "OP_NODE_ADD", again("node3", params{"primary_ip": "192.0.2.3", "secondary_ip": "198.51.100.3", "master_capable": true}))
	want.PrimaryIP, want.SecondaryIP, want.MasterCapable, want.MasterCandidate = "192.0.2.3", "198.51.100.3", true, true
	is(want)
}

func TestNodeModify(t *testing.T) {
	const homed = "Changing the secondary ip on a single-homed cluster requires the --force option to be passed, and the target node to be the master"
	r := newRig(t, "node1", "node2")
	r.create("one", false)
	r.setNode("node2", func(n *cluster.Node) { n.NDParams = cluster.Params{"oob_program": "/oob"} })
	node := func(name string, p params) params {
		p["node_name"] = name
		return p
	}
	steps := []struct {
		p    params
		want string
		role string
	}{
		{params{"drained": true}, `[["master_candidate","False"],["drained","True"]]`, "D"},
		{params{"offline": true}, `[["drained","False"],["offline","True"]]`, "O"},
		{params{"drained": false, "powered": false}, `[["powered","False"]]`, "O"}, // which a later step brings back
		{params{"offline": false, "powered": true}, `[["powered","True"],["master_candidate","True"],["offline","False"]]`, "C"},
		{params{"master_capable": false}, `[["master_capable","False"],["master_candidate","False"]]`, "R"},
		{params{"vm_capable": false}, `[["vm_capable","False"]]`, "R"},
		{params{"ndparams": params{"ssh_port": 1, "ovs": true}}, `[["ndparams/ovs",true],["ndparams/ssh_port",1]]`, "R"},
	}
	for _, s := range steps {
		r.must(s.want, "OP_NODE_SET_PARAMS", node("node2", s.p))
		snap := r.keeper.Snapshot()
		if got := snap.Cluster().Role(snap.NodeNamed("node2")); got != s.role {
			t.Fatalf("after %v the role is %s, want %s", s.p, got, s.role)
		}
	}
	refusals := []struct {
		text, node string
		p          params
	}{
		{"Node 'nosuch' not known", "nosuch", params{"drained": true}},
		{"Please pass at least one modification", "node2", params{}},
		{"Please pass at least one modification", "node2", params{"powered": true}},
		{"Can't set the node into more than one state at the same time", "node2", params{"drained": true, "offline": true}},
		{"The master role can be changed only via master-failover", "node1", params{"drained": true, "force": true}},
		{"Node node2 is not master capable, cannot make it a master candidate", "node2", params{"master_candidate": true}},
		{"Node node1 hosts instances, cannot unset the vm_capable flag", "node1", params{"vm_capable": false}},
		{"Node node2 needs to be marked offline before it can be turned off", "node2", params{"powered": false}},
		{"Unable to change powered state for node node1 as it does not support out-of-band handling (the node parameter oob_program names the program for that)", "node1", params{"powered": false, "force": true}},
		{"Secondary IP (x) needs to be a valid IPv4 address", "node2", params{"secondary_ip": "x"}},
		{"Master must remain master capable", "node1", params{"master_capable": false}},
		{homed, "node1", params{"secondary_ip": "192.0.2.9"}},
		{homed, "node2", params{"secondary_ip": "192.0.2.9", "force": true}},
	}
	for _, c := range refusals {
		r.refuses("OpPrereqError", c.text, "OP_NODE_SET_PARAMS", node(c.node, c.p))
	}
	r.must("[]", "OP_NODE_SET_PARAMS", node("node2", params{"drained": false}))
	r.logged(" - INFO: Ignoring request to unset flag drained, already unset")
	r.must(`[["secondary_ip","192.0.2.9"]]`, "OP_NODE_SET_PARAMS", node("NODE1", params{"secondary_ip": "192.0.2.9", "force": true}))
	r.must(`[["secondary_ip","192.0.2.10"]]`, "OP_NODE_SET_PARAMS", node("node2", params{"secondary_ip": "192.0.2.10"}))
	r.refuses("OpPrereqError", "To transition from a multi-homed to a single-homed cluster requires the --force option to be passed, and the target node to be the master",
		"OP_NODE_SET_PARAMS", node("node2", params{"secondary_ip": r.keeper.Snapshot().NodeNamed("node2").PrimaryIP}))
	for _, state := range []string{"hv_state", "disk_state"} { // an empty one changes nothing, and is a modification
		r.must("[]", "OP_NODE_SET_PARAMS", node("node2", params{state: params{}}))
	}
}

func TestNodeModifyKeepsThePoolFull(t *testing.T) {
	r := newRig(t, "node1", "node2", "node3")
	r.must("null", "OP_CLUSTER_SET_PARAMS", params{"candidate_pool_size": 2})
	r.setNode("node3", func(n *cluster.Node) { n.MasterCandidate = false })
	drain := params{"node_name": "node2", "drained": true}
	r.refuses("OpPrereqError", "Not enough master candidates, please pass auto promote option to allow promotion (--auto-promote or RAPI auto_promote=True)",
		"OP_NODE_SET_PARAMS", drain)
	drain["auto_promote"] = true
	r.must(`[["master_candidate","False"],["drained","True"]]`, "OP_NODE_SET_PARAMS", drain)
	r.logged(" - INFO: Promoted nodes to master candidate role: node3")
	if !r.keeper.Snapshot().NodeNamed("node3").MasterCandidate {
		t.Fatal("node3 was not promoted")
	}
}

func TestNodeRemove(t *testing.T) {
	r := newRig(t, "node1", "node2")
	r.must(`["node2"]`, "OP_INSTANCE_CREATE", creating(params{"pnode": "node2", "start": false}))
	r.refuses("OpPrereqError", "Node is the master node, failover to another node is required", "OP_NODE_REMOVE", params{"node_name": "node1"})
	r.refuses("OpPrereqError", "Instance one is still running on the node, please remove first", "OP_NODE_REMOVE", params{"node_name": "node2"})
	r.must("null", "OP_INSTANCE_REMOVE", one(nil))
	r.must("null", "OP_NODE_REMOVE", params{"node_name": "node2"})
	r.refuses("OpPrereqError", "Node 'node2' not known", "OP_NODE_REMOVE", params{"node_name": "node2"})
}
