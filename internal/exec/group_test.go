package exec

import (
	"testing"

	"github.com/drover-project/drover/internal/cluster"
)

func TestGroups(t *testing.T) {
	r := newRig(t, "node1", "node2")
	group := func(p params) params {
		if p["group_name"] == nil {
			p["group_name"] = "rack2"
		}
		return p
	}
	r.must("null", "OP_GROUP_ADD", group(params{"alloc_policy": "last_resort", "ndparams": params{"ssh_port": 5}}))
	g := r.keeper.Snapshot().GroupNamed("rack2")
	if g.AllocPolicy != "last_resort" || g.NDParams["ssh_port"] != int64(5) {
		t.Fatalf("group is %+v", g)
	}
	r.refuses("OpPrereqError", "Desired group name 'rack2' already exists as a node group (UUID: "+g.UUID+")", "OP_GROUP_ADD", group(params{}))
	r.must(`[["ndparams",{}],["diskparams",{"plain":{"stripes":2}}],["alloc_policy","preferred"],["ipolicy",{"vcpu-ratio":3}]]`, "OP_GROUP_SET_PARAMS",
		group(params{"alloc_policy": "preferred", "ndparams": params{"ssh_port": "default"}, "diskparams": params{"plain": params{"stripes": 2}}, "ipolicy": params{"vcpu-ratio": 3}}))
	r.refuses("OpPrereqError", "Please pass at least one modification", "OP_GROUP_SET_PARAMS", group(params{}))
	r.refuses("OpPrereqError", "Node group 'nosuch' not known", "OP_GROUP_SET_PARAMS", params{"group_name": "nosuch", "alloc_policy": "preferred"})
	r.must("null", "OP_GROUP_ASSIGN_NODES", group(params{"nodes": []any{"node2"}}))
	if r.keeper.Snapshot().NodeNamed("node2").Group != g.UUID {
		t.Fatal("node2 did not move")
	}
	r.refuses("OpPrereqError", "Group 'rack2' not empty, has the following nodes: node2", "OP_GROUP_REMOVE", group(params{}))
	r.refuses("OpPrereqError", "Node 'nosuch' not known", "OP_GROUP_ASSIGN_NODES", group(params{"nodes": []any{"nosuch"}}))
	r.must("null", "OP_GROUP_ASSIGN_NODES", params{"group_name": "default", "nodes": []any{"node2"}})
	d := r.keeper.Snapshot().GroupNamed("default").UUID
	r.refuses("OpPrereqError", "Desired new name 'default' clashes with existing node group (UUID: "+d+")", "OP_GROUP_RENAME", group(params{"new_name": "default"}))
	r.must(`"rack3"`, "OP_GROUP_RENAME", group(params{"new_name": "rack3"}))
	r.must("null", "OP_GROUP_REMOVE", params{"group_name": "rack3"})
	r.refuses("OpPrereqError", "Group 'default' not empty, has the following nodes: node1, node2", "OP_GROUP_REMOVE", params{"group_name": "default"})
}

func TestAssignRefusesToTearInstances(t *testing.T) {
	r := newRig(t, "node1", "node2")
	r.create("one", false)
	r.must("null", "OP_GROUP_ADD", params{"group_name": "rack2"})
	second := r.keeper.Snapshot().NodeNamed("node2").UUID
	r.update(func(snap *cluster.Snapshot) []cluster.Change {
		i := snap.InstanceNamed("one").Clone()
		i.Disks[0].Type = cluster.DiskDRBD
		i.Disks[0].Nodes = []string{i.PrimaryNode, second}
		return []cluster.Change{cluster.Put(i)}
	})
	move := params{"group_name": "rack2", "node_uuids": []any{second}, "nodes": []any{"node2"}}
	r.refuses("OpPrereqError", "The following instances get split by this change and --force was not given: one", "OP_GROUP_ASSIGN_NODES", move)
	move["force"] = true
	r.must("null", "OP_GROUP_ASSIGN_NODES", move)
}

func TestNetworks(t *testing.T) {
	r := newRig(t)
	net := func(p params) params {
		p["network_name"] = "net"
		return p
	}
	r.must("null", "OP_NETWORK_ADD", net(params{"network": "192.0.2.0/28", "gateway": "192.0.2.1", "network6": "2001:db8::/64", "gateway6": "2001:db8::1",
		"mac_prefix": "AA:00:07", "add_reserved_ips": []any{"192.0.2.9"}, "tags": []any{"x"}}))
	n := r.keeper.Snapshot().NetworkNamed("net")
	if n.MACPrefix != "aa:00:07" || n.Gateway6 != "2001:db8::1" || n.FreeCount() != 12 || !n.Tags.Has("x") {
		t.Fatalf("network is %+v", n)
	}
	r.refuses("OpPrereqError", "Desired network name 'net' already exists as a network (UUID: "+n.UUID+")", "OP_NETWORK_ADD", net(params{"network": "192.0.2.0/28"}))
	for text, p := range map[string]params{
		`network "x" is no IPv4 network in CIDR form`:               {"network": "x"},
		"gateway6 'x' is no address of network6 ''":                 {"network": "192.0.2.0/28", "gateway6": "x"},
		"network6 'x' is no IPv6 network in CIDR form":              {"network": "192.0.2.0/28", "network6": "x"},
		"Invalid MAC address prefix 'x'":                            {"network": "192.0.2.0/28", "mac_prefix": "x"},
		`address "10.0.0.1" is not in network other (192.0.2.0/28)`: {"network": "192.0.2.0/28", "add_reserved_ips": []any{"10.0.0.1"}},
	} {
		p["network_name"] = "other"
		r.refuses("OpPrereqError", text, "OP_NETWORK_ADD", p)
	}
	r.must("null", "OP_NETWORK_SET_PARAMS", net(params{"gateway": "192.0.2.2", "gateway6": "none", "mac_prefix": "none", "remove_reserved_ips": []any{"192.0.2.9"}}))
	n = r.keeper.Snapshot().NetworkNamed("net")
	if n.Gateway != "192.0.2.2" || n.Taken(1) || !n.Taken(2) || n.Taken(9) || n.MACPrefix != "" || n.Gateway6 != "" {
		t.Fatalf("network is %+v", n)
	}
	r.must("null", "OP_NETWORK_SET_PARAMS", net(params{"gateway": "none"}))
	r.refuses("OpPrereqError", "address 192.0.2.5 of network net is not set aside", "OP_NETWORK_SET_PARAMS", net(params{"remove_reserved_ips": []any{"192.0.2.5"}}))

	connect := func() params {
		return params{"network_name": "net", "group_name": "default", "network_mode": "bridged", "network_link": "br3"}
	}
	r.must("null", "OP_NETWORK_CONNECT", connect())
	r.must("null", "OP_NETWORK_CONNECT", connect())
	r.logged(" - WARNING: Network 'net' is already mapped to group 'default'")
	r.must(`["node1"]`, "OP_INSTANCE_CREATE", creating(params{"nics": []any{params{"network": "net", "ip": "pool"}}, "start": false}))
	r.refuses("OpPrereqError", "Network 'net' is connected to the following node groups: default", "OP_NETWORK_REMOVE", net(params{}))
	part := params{"network_name": "net", "group_name": "default"}
	r.refuses("OpPrereqError", "IP addresses from network 'net', which is about to be disconnected from node group 'default', are in use: one",
		"OP_NETWORK_DISCONNECT", part)
	r.must("null", "OP_INSTANCE_REMOVE", one(nil))
	r.must("null", "OP_NETWORK_DISCONNECT", part)
	r.must("null", "OP_NETWORK_DISCONNECT", part)
	r.logged(" - WARNING: Network 'net' is not mapped to group 'default'")
	r.must(`["node1"]`, "OP_INSTANCE_CREATE", creating(params{"nics": []any{params{"ip": "192.0.2.3"}}, "start": false}))
	r.refuses("OpPrereqError", "IP addresses from network 'net', which is about to be connected to node group 'default', are in use: one (192.0.2.3)",
		"OP_NETWORK_CONNECT", connect())
	r.must(`"web"`, "OP_NETWORK_RENAME", net(params{"new_name": "web"}))
	r.must("null", "OP_NETWORK_REMOVE", params{"network_name": "web"})
	r.refuses("OpPrereqError", "Network 'web' not known", "OP_NETWORK_REMOVE", params{"network_name": "web"})
}
