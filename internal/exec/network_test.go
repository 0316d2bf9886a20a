package exec

import (
	"net/netip"
	"testing"
)

// TestAPoolLeavesOutWhatIsTaken: the addresses of nodes, and the one at which the cluster itself is reached.
func TestAPoolLeavesOutWhatIsTaken(t *testing.T) {
	r := newRig(t)
	c := r.keeper.Snapshot().Cluster()
	ip, err := netip.ParseAddr(c.MasterIP)
	if err != nil {
		t.Fatal(err)
	}
	around := netip.PrefixFrom(ip, 24).Masked().String()
	r.must("null", "OP_NETWORK_ADD", params{"network_name": "net", "network": around})
	r.must("null", "OP_NETWORK_ADD", params{"network_name": "all", "network": around, "conflicts_check": false})
	host := int(ip.As4()[3])
	if !r.keeper.Snapshot().NetworkNamed("net").Taken(host) || r.keeper.Snapshot().NetworkNamed("all").Taken(host) {
		t.Errorf("%s may be given out", ip)
	}
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
		`network "x" is no IPv4 network in CIDR form`:  {"network": "x"},
		"gateway6 'x' is no IPv6 address":              {"network": "192.0.2.0/28", "gateway6": "x"},
		"network6 'x' is no IPv6 network in CIDR form": {"network": "192.0.2.0/28", "network6": "x"},
		"Invalid MAC address prefix 'x'":               {"network": "192.0.2.0/28", "mac_prefix": "x"},
		`gateway "192.0.2.15" is the first or the last address of 192.0.2.0/28, which no machine can have`: {"network": "192.0.2.0/28", "gateway": "192.0.2.15"},
	} {
		p["network_name"] = "other"
		r.refuses("OpPrereqError", text, "OP_NETWORK_ADD", p)
	}
	r.refuses("AddressPoolError", "Cannot reserve IP address 10.0.0.1: 192.0.2.0/28 does not contain 10.0.0.1", "OP_NETWORK_ADD",
		params{"network_name": "other", "network": "192.0.2.0/28", "add_reserved_ips": []any{"10.0.0.1"}})
	r.must("null", "OP_NETWORK_SET_PARAMS", net(params{"gateway": "192.0.2.2", "gateway6": "none", "mac_prefix": "none"}))
	r.must("null", "OP_NETWORK_SET_PARAMS", net(params{"remove_reserved_ips": []any{"192.0.2.9"}}))
	n = r.keeper.Snapshot().NetworkNamed("net")
	if n.Gateway != "192.0.2.2" || n.Taken(1) || !n.Taken(2) || n.Taken(9) || n.MACPrefix != "" || n.Gateway6 != "" {
		t.Fatalf("network is %+v", n)
	}
	r.must("null", "OP_NETWORK_SET_PARAMS", net(params{"gateway": "192.0.2.2"}))
	r.logged(" - WARNING: Gateway is already 192.0.2.2")
	r.must("null", "OP_NETWORK_SET_PARAMS", net(params{"gateway": "none"}))
	r.logged()
	r.must("null", "OP_NETWORK_SET_PARAMS", net(params{"add_reserved_ips": []any{"192.0.2.6", "192.0.2.6", "10.0.0.1"}, "remove_reserved_ips": []any{"192.0.2.5"}}))
	r.logged(" - WARNING: Cannot reserve IP address 192.0.2.6: IP 192.0.2.6 is already externally reserved",
		" - WARNING: Cannot reserve IP address 10.0.0.1: 192.0.2.0/28 does not contain 10.0.0.1",
		" - WARNING: Cannot release IP address 192.0.2.5: IP 192.0.2.5 is not externally reserved")
	r.refuses("OpPrereqError", "Gateway IP address '192.0.2.6' is already reserved", "OP_NETWORK_SET_PARAMS", net(params{"gateway": "192.0.2.6"}))
	r.refuses("OpPrereqError", "'' is no IP address (a network without a gateway has 'none')", "OP_NETWORK_SET_PARAMS", net(params{"gateway": ""}))
	r.refuses("AddressPoolError", "192.0.2.0/28 does not contain 10.0.0.1", "OP_NETWORK_SET_PARAMS", net(params{"gateway": "10.0.0.1"}))
	r.refuses("OpPrereqError", "Cannot modify gateway and reserved ips at once", "OP_NETWORK_SET_PARAMS",
		net(params{"gateway": "192.0.2.3", "add_reserved_ips": []any{"192.0.2.4"}}))
	r.must("null", "OP_NETWORK_SET_PARAMS", net(params{"remove_reserved_ips": []any{"192.0.2.6"}}))

	connect := func() params {
		return params{"network_name": "net", "group_name": "default", "network_mode": "bridged", "network_link": "br3"}
	}
	lost := connect()
	lost["network_vlan"] = "five"
	r.refuses("OpPrereqError", "Specified VLAN parameter is invalid : five (N, .N, .N:M or :N:M)", "OP_NETWORK_CONNECT", lost)
	r.must("null", "OP_NETWORK_CONNECT", connect())
	r.must("null", "OP_NETWORK_CONNECT", connect())
	r.logged(" - WARNING: Network 'net' is already mapped to group 'default'")
	r.must(`["node1"]`, "OP_INSTANCE_CREATE", creating(params{"nics": []any{params{"network": "net", "ip": "pool"}}, "start": false}))
	r.refuses("OpPrereqError", "Network still connected (disconnect 'net' from the following node groups: default)", "OP_NETWORK_REMOVE", net(params{}))
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
	r.refuses("OpPrereqError", "Network 'web' not found", "OP_NETWORK_REMOVE", params{"network_name": "web"})
}
