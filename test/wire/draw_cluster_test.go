//go:build ganeti

package wire

// tags sets and deletes tags of things.
func tags(d *draw) *call {
	kind := pick(d, "cluster", "instance", "instance", "node", "nodegroup", "network", "nosuch")
	names := map[string][]any{"cluster": {nil, "", "x"}, "instance": {"w1.example", "w3", "nosuch", nil}, "node": {"node1", "node1.drover.example", "nosuch"}, "nodegroup": {"g1", "default", "nosuch"},
		"network": {"net1", "net2", "nosuch"}, "nosuch": {"x"}}
	params := object{"kind": kind, "tags": d.tagList()}
	if name := pick(d, names[kind]...); name != nil {
		params["name"] = name
	}
	if d.chance(10) {
		return d.submit("tags", op("OP_TAGS_SEARCH", object{"pattern": pick[any](d, "web", ".", "(", "", "x", nil, 5)}))
	}
	return d.submit("tags", op(pick(d, "OP_TAGS_SET", "OP_TAGS_DEL"), params))
}

func (d *draw) tagList() any {
	if d.chance(6) {
		return pick[any](d, nil, "web", list{5}, list{nil})
	}
	out := list{}
	for range 1 + d.IntN(2) {
		out = append(out, pick(d, "web", "web", "env:prod", "a", "b", "a b", "", "x@y-z+1/2*3._", "#", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"))
	}
	return out
}

func group(d *draw) []*call {
	name := pick[any](d, "g1", "g1", "default", "gx", "nosuch", "", nil)
	params := object{"group_name": name}
	for range d.few() {
		switch d.IntN(6) {
		case 0:
			params["alloc_policy"] = pick[any](d, "preferred", "last_resort", "unallocable", "x", nil)
		case 1:
			params["ndparams"] = pick[any](d, object{}, object{"oob_program": "/bin/true"}, object{"ssh_port": 23}, object{"nosuch": 1}, object{"ovs": "x"}, object{"spindle_count": 2}, object{"oob_program": "default"})
		case 2:
			params["diskparams"] = pick[any](d, object{}, object{"drbd": object{"metavg": "x"}}, object{"drbd": object{"nosuch": 1}}, object{"nosuch": object{}}, object{"plain": object{"stripes": 2}}, object{"plain": object{"stripes": "x"}})
		case 3:
			params["ipolicy"] = pick[any](d, object{}, object{"vcpu-ratio": 3}, object{"vcpu-ratio": "x"}, object{"spindle-ratio": 12}, object{"disk-templates": list{"file", "diskless"}}, object{"nosuch": 1}, object{"disk-templates": list{"nosuch"}}, object{"vcpu-ratio": "default"})
		default:
			params[pick(d, "nosuch", "dry_run", "hv_state", "disk_state")] = pick[any](d, true, object{}, nil)
		}
	}
	switch d.IntN(6) {
	case 0, 1, 2:
		return []*call{d.submit("group", op("OP_GROUP_SET_PARAMS", params))}
	case 3:
		params["group_name"] = pick[any](d, "gx", "gx", "g1", "", nil)
		return []*call{d.submit("group", op("OP_GROUP_ADD", params)), d.submit("group", op("OP_GROUP_REMOVE", object{"group_name": "gx"}))}
	case 4:
		return []*call{d.submit("group", op("OP_GROUP_RENAME", object{"group_name": name, "new_name": pick[any](d, "g1", "default", "", nil)}))}
	}
	return []*call{d.submit("group", pick(d, op("OP_GROUP_ASSIGN_NODES", object{"group_name": name, "nodes": pick[any](d, list{"nosuch"}, list{}, "x", list{"node1"}), "force": d.chance(30)}),
		op("OP_GROUP_REMOVE", object{"group_name": pick(d, "default", "nosuch", "gx")}), op("OP_GROUP_VERIFY_DISKS", object{"group_name": name})))}
}

func network(d *draw) []*call {
	name := pick[any](d, "net1", "net1", "net2", "net2", "nosuch", "", nil)
	params := object{"network_name": name}
	switch d.IntN(6) {
	case 0, 1, 2:
		for range d.few() {
			switch d.IntN(6) {
			case 0:
				params["gateway"] = pick[any](d, "192.0.2.1", "192.0.2.2", "192.0.3.1", "203.0.113.9", "x", "none", "")
			case 1:
				params["add_reserved_ips"] = pick[any](d, list{"192.0.2.9"}, list{"192.0.3.4"}, list{}, list{"203.0.113.9"}, list{"x"}, list{"192.0.2.9", "192.0.2.10"}, "x")
			case 2:
				params["remove_reserved_ips"] = pick[any](d, list{"192.0.2.9"}, list{"192.0.3.4"}, list{"192.0.2.1"}, list{"192.0.2.0"}, list{"203.0.113.9"}, list{"x"})
			case 3:
				params["mac_prefix"] = pick[any](d, "aa:00:55", "AA:00:56", "x", "none", "", nil)
			case 4:
				params[pick(d, "network6", "gateway6")] = pick[any](d, "2001:db8::/64", "2001:db8::1", "x", "192.0.2.0/24", nil)
			default:
				params[pick(d, "dry_run", "nosuch", "network")] = pick[any](d, true, "192.0.2.0/24", nil)
			}
		}
		return []*call{d.submit("network", op("OP_NETWORK_SET_PARAMS", params))}
	case 3:
		params["network_name"] = pick[any](d, "netx", "netx", "net1", "", nil)
		params["network"] = pick[any](d, "198.51.100.0/28", "198.51.100.0/24", "198.51.100.0/31", "198.51.100.1/24", "10.0.0.0/8", "x", nil, "2001:db8::/64")
		if d.chance(50) {
			params[pick(d, "gateway", "mac_prefix", "add_reserved_ips", "tags", "conflicts_check", "network6", "gateway6")] = pick[any](d, "198.51.100.1", "203.0.113.1", "aa:00:57", list{"198.51.100.3"}, list{"web"}, list{"a b"}, false, nil, "2001:db8::/64")
		}
		return []*call{d.submit("network", op("OP_NETWORK_ADD", params)), d.submit("network", op("OP_NETWORK_REMOVE", object{"network_name": "netx"}))}
	case 4:
		connect := object{"network_name": name, "group_name": pick[any](d, "default", "g1", "nosuch", nil), "network_mode": pick[any](d, "bridged", "routed", "x", nil), "network_link": pick[any](d, "br0", "", nil)}
		if d.chance(20) {
			connect[pick(d, "conflicts_check", "network_vlan", "nosuch")] = pick[any](d, true, "7", nil)
		}
		return []*call{d.submit("network", op("OP_NETWORK_CONNECT", connect)), d.submit("network", op("OP_NETWORK_DISCONNECT", object{"network_name": "net2", "group_name": "g1"}))}
	}
	return []*call{d.submit("network", pick(d, op("OP_NETWORK_DISCONNECT", object{"network_name": name, "group_name": pick(d, "default", "g1", "nosuch")}), op("OP_NETWORK_REMOVE", object{"network_name": pick(d, "net1", "nosuch", "netx")})))}
}

func node(d *draw) *call {
	params := object{"node_name": pick[any](d, "node1", "node1.drover.example", "nosuch", "", nil)}
	switch d.IntN(5) {
	case 0:
		return d.submit("node", op("OP_NODE_ADD", object{"node_name": pick[any](d, "node1", "node1.drover.example", "", nil, "no such"), "readd": false}))
	case 1:
		return d.submit("node", op("OP_NODE_REMOVE", params))
	}
	for range d.few() {
		switch d.IntN(3) {
		case 0:
			params[pick(d, "drained", "offline", "master_candidate", "master_capable", "vm_capable", "powered", "auto_promote", "force")] = pick[any](d, true, false, "x", nil)
		case 1:
			params["ndparams"] = pick[any](d, object{}, object{"oob_program": "/bin/true"}, object{"ssh_port": 22}, object{"nosuch": 1}, object{"spindle_count": 2}, object{"oob_program": "default"}, object{"ovs": true})
		default:
			params[pick(d, "secondary_ip", "nosuch", "dry_run", "hv_state", "disk_state")] = pick[any](d, "x", "192.0.2.200", true, object{}, nil)
		}
	}
	return d.submit("node", op("OP_NODE_SET_PARAMS", params))
}

func clusterParams(d *draw) *call {
	params := object{}
	for range d.few() {
		switch d.IntN(12) {
		case 0:
			params["candidate_pool_size"] = pick[any](d, 10, 5, 0, -1, "x", nil)
		case 1:
			params["beparams"] = pick[any](d, object{}, object{"vcpus": 2}, object{"vcpus": "x"}, object{"nosuch": 1}, object{"memory": 64}, object{"auto_balance": false})
		case 2:
			params["hvparams"] = pick[any](d, object{}, object{"fake": object{}}, object{"fake": object{"nosuch": 1}}, object{"nosuch": object{}}, object{"kvm": object{"acpi": false}}, object{"fake": object{"migration_mode": "live"}})
		case 3:
			params["nicparams"] = pick[any](d, object{}, object{"link": "br0"}, object{"mode": "x"}, object{"nosuch": 1}, object{"vlan": "7"}, object{"mode": "bridged"})
		case 4:
			params["ipolicy"] = pick[any](d, object{}, object{"vcpu-ratio": 100000.0}, object{"vcpu-ratio": 50}, object{"spindle-ratio": "x"}, object{"nosuch": 1}, object{"disk-templates": list{"nosuch"}})
		case 5:
			params["ndparams"] = pick[any](d, object{}, object{"ssh_port": 23}, object{"nosuch": 1}, object{"oob_program": "/x"})
		case 6:
			params["osparams"] = pick[any](d, object{}, object{"noop": object{"test_param": "c"}}, object{"noop": object{"nosuch": "c"}}, object{"noop+default": object{}}, object{"nosuch": object{"x": "y"}})
		case 7:
			params[pick(d, "hidden_os", "blacklisted_os")] = pick[any](d, list{}, list{list{"add", "other"}}, list{list{"remove", "other"}}, list{list{"x", "other"}}, "x", list{list{"add"}})
		case 8:
			params["mac_prefix"] = pick[any](d, "aa:00:00", "aa:00:01", "x", "", nil)
		case 9:
			params[pick(d, "enabled_hypervisors", "enabled_disk_templates")] = pick[any](d, list{"fake"}, list{"file", "diskless"}, list{"nosuch"}, "x", list{"fake", "fake"})
		case 10:
			params[pick(d, "maintain_node_health", "prealloc_wipe_disks", "enabled_user_shutdown")] = pick[any](d, true, false, "x", nil)
		default:
			params[pick(d, "reserved_lvs", "default_iallocator", "default_iallocator_params", "max_running_jobs", "max_tracked_jobs", "zeroing_image", "compression_tools", "install_image", "nosuch", "dry_run",
				"force", "file_storage_dir", "shared_file_storage_dir", "gluster_storage_dir", "diskparams", "enabled_data_collectors", "data_collector_interval")] =
				pick[any](d, list{}, list{"x"}, "hail", "nosuch", "", object{}, 20, 0, -1, true, nil, "/srv/x")
		}
	}
	return d.submit("cluster", op("OP_CLUSTER_SET_PARAMS", params))
}

// asking are opcodes that only ask, or look after the cluster. One that was given another name is given back its own.
func asking(d *draw) []*call {
	o := pick(d,
		op("OP_CLUSTER_QUERY", object{}), op("OP_CLUSTER_CONFIG_QUERY", object{"output_fields": pick[any](d, list{"cluster_name"}, list{"nosuch"}, list{}, "x")}), op("OP_CLUSTER_VERIFY_CONFIG", object{}),
		op("OP_OS_DIAGNOSE", object{"output_fields": pick[any](d, list{"name", "valid", "variants"}, list{"name"}, list{"nosuch"}, "x"), "names": pick[any](d, list{}, list{"noop"}, list{"nosuch"})}),
		op("OP_QUERY", object{"what": pick(d, "instance", "node", "group", "nosuch"), "fields": pick[any](d, list{"name"}, list{"name", "tags"}, list{"nosuch"}, "x"), "qfilter": nil}),
		op("OP_QUERY_FIELDS", object{"what": pick(d, "instance", "lock", "nosuch"), "fields": pick[any](d, list{"name"}, list{"nosuch"}, "x")}),
		op("OP_CLUSTER_REDIST_CONF", object{}), op("OP_CLUSTER_REPAIR_DISK_SIZES", object{"instances": pick[any](d, list{}, list{"w1"}, list{"nosuch"})}),
		op("OP_NODE_QUERYVOLS", object{"nodes": list{}, "output_fields": list{"name"}}), op("OP_NOSUCH", object{}), op("OP_CLUSTER_RENAME", object{"name": pick[any](d, "dev.drover.example", "nosuch", "")}))
	calls := []*call{d.submit("asking", o)}
	if o["OP_ID"] == "OP_CLUSTER_RENAME" {
		calls = append(calls, d.prepare("OP_CLUSTER_RENAME", object{"name": "dev.drover.example"}))
	}
	return calls
}
