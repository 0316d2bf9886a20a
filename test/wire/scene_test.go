//go:build ganeti

package wire

import (
	"slices"
	"strings"
)

// The cluster that calls are about: four instances, two networks, two groups. It is made
// anew, as far as needed, where the two have come to differ.

var fixture = map[string]object{
	"w1.example": {"disk_template": "file", "disks": list{object{"size": 32}}, "nics": list{object{"name": "eth0"}, object{}}, "start": true, "tags": list{"web", "env:prod"}},
	"w2.example": {"nics": list{object{"ip": "198.51.100.7"}}, "start": true, "beparams": object{"memory": 64, "vcpus": 2}},
	"w3.example": {"nics": list{object{"network": "net1", "ip": "192.0.2.2"}}, "tags": list{"web"}},
	"w4.example": {"no_install": true},
}

var instances = []string{"w1.example", "w2.example", "w3.example", "w4.example", "x1.example", "x2.example", "-x", "x y"}

// prepare is a job whose outcome nobody looks at.
func (d *draw) prepare(id string, params object) *call {
	c := d.submit("prepare", op(id, params))
	c.Prepare = true
	return c
}

// renew removes an instance, and makes it as it was if it is one of the fixture.
func (d *draw) renew(name string) []*call {
	calls := []*call{d.prepare("OP_INSTANCE_REMOVE", object{"instance_name": name, "ignore_failures": true, "shutdown_timeout": 0})}
	if changes, ok := fixture[name]; ok {
		c := d.submit("prepare", spec(name, changes))
		c.Prepare = true
		calls = append(calls, c)
	}
	return calls
}

// surroundings makes networks and groups anew, and with them the instances that are
// in them.
func (d *draw) surroundings() []*call {
	calls := []*call{d.prepare("OP_INSTANCE_REMOVE", object{"instance_name": "w3.example", "ignore_failures": true})}
	for _, name := range []string{"x1.example", "x2.example", "w1.example", "w2.example"} { // they may have come into a network
		calls = append(calls, d.renew(name)...)
	}
	for _, network := range []string{"net1", "net2", "netx"} {
		for _, group := range []string{"default", "g1", "gx"} {
			calls = append(calls, d.prepare("OP_NETWORK_DISCONNECT", object{"network_name": network, "group_name": group}))
		}
		calls = append(calls, d.prepare("OP_NETWORK_REMOVE", object{"network_name": network}))
	}
	calls = append(calls, d.prepare("OP_GROUP_ASSIGN_NODES", object{"group_name": "default", "nodes": list{"node1"}, "force": true}))
	for _, group := range []string{"g1", "gx"} {
		calls = append(calls, d.prepare("OP_GROUP_REMOVE", object{"group_name": group}))
	}
	calls = append(calls, d.prepare("OP_GROUP_ADD", object{"group_name": "g1"}),
		d.prepare("OP_NETWORK_ADD", object{"network_name": "net1", "network": "192.0.2.0/28", "gateway": "192.0.2.1"}),
		d.prepare("OP_NETWORK_ADD", object{"network_name": "net2", "network": "192.0.3.0/29"}),
		d.prepare("OP_NETWORK_CONNECT", object{"network_name": "net1", "group_name": "default", "network_mode": "bridged", "network_link": "br0"}))
	calls = append(calls, d.group("default")...)
	return append(calls, d.renew("w3.example")...)
}

// group resets what a group has of its own.
func (d *draw) group(name string) []*call {
	return []*call{
		d.prepare("OP_GROUP_SET_PARAMS", object{"group_name": name, "alloc_policy": "preferred", "ndparams": defaults("oob_program", "ssh_port", "spindle_count", "ovs")}),
		d.prepare("OP_GROUP_SET_PARAMS", object{"group_name": name, "ipolicy": defaults("vcpu-ratio", "spindle-ratio", "disk-templates")}),
		d.prepare("OP_GROUP_SET_PARAMS", object{"group_name": name, "diskparams": object{"drbd": object{"metavg": "xenvg"}, "plain": object{"stripes": 1}}}),
	}
}

func defaults(names ...string) object {
	out := object{}
	for _, name := range names {
		out[name] = "default"
	}
	return out
}

// settings resets what calls change of the cluster and of its node.
func (d *draw) settings() []*call {
	set := func(params object) *call { return d.prepare("OP_CLUSTER_SET_PARAMS", params) }
	calls := []*call{
		set(object{"candidate_pool_size": 10}), set(object{"beparams": object{"memory": 128, "vcpus": 1, "auto_balance": true, "always_failover": false, "spindle_use": 1}}),
		set(object{"hvparams": object{"fake": object{"migration_mode": "live"}, "kvm": object{"acpi": true}}}), set(object{"nicparams": object{"mode": "bridged", "link": "br0", "vlan": ""}}),
		set(object{"ipolicy": object{"vcpu-ratio": 100000, "spindle-ratio": 100000, "disk-templates": list{"diskless", "file"}}}), set(object{"ndparams": object{"ssh_port": 22, "oob_program": "", "spindle_count": 1}}),
		set(object{"osparams": object{"noop": object{"test_param": "default"}}}), set(object{"osparams": object{"noop": nil}}), set(object{"osparams": object{"nosuch": nil}}), set(object{"hidden_os": list{list{"remove", "other"}}}),
		set(object{"blacklisted_os": list{list{"remove", "other"}}}), set(object{"mac_prefix": "aa:00:00"}), set(object{"maintain_node_health": false, "prealloc_wipe_disks": false, "enabled_user_shutdown": false}),
		set(object{"reserved_lvs": list{}, "default_iallocator": "hail", "default_iallocator_params": object{}, "max_running_jobs": 20, "max_tracked_jobs": 25}), set(object{"zeroing_image": ""}),
		set(object{"compression_tools": list{"gzip", "gzip-fast", "gzip-slow"}}), set(object{"install_image": ""}), set(object{"file_storage_dir": "/srv/ganeti/file-storage"}), set(object{"shared_file_storage_dir": ""}),
		set(object{"enabled_disk_templates": list{"diskless", "file"}}), set(object{"enabled_hypervisors": list{"fake"}}),
		d.prepare("OP_NODE_SET_PARAMS", object{"node_name": "node1", "ndparams": defaults("oob_program", "ssh_port", "spindle_count", "ovs")}), d.prepare("OP_NODE_SET_PARAMS", object{"node_name": "node1", "vm_capable": true}),
	}
	return slices.Concat(calls, d.untag("cluster", nil), d.untag("node", "node1"), d.untag("nodegroup", "default"))
}

// untag takes all tags that calls set from a thing: one by one, for one that is not there
// would keep the others from going.
func (d *draw) untag(kind string, name any) []*call {
	var calls []*call
	for _, tag := range []string{"web", "env:prod", "a", "b", "x", "x@y-z+1/2*3._"} {
		calls = append(calls, d.prepare("OP_TAGS_DEL", object{"kind": kind, "name": name, "tags": list{tag}}))
	}
	return calls
}

// all makes everything anew.
func (d *draw) all() []*call {
	calls := d.settings()
	for _, name := range instances {
		calls = append(calls, d.prepare("OP_INSTANCE_REMOVE", object{"instance_name": name, "ignore_failures": true}))
	}
	calls = append(calls, d.surroundings()...)
	return append(calls, d.renew("w4.example")...)
}

// The questions by which the state of the two is compared.
var stateFields = map[string]list{
	"instance": {"name", "admin_state", "admin_state_source", "oper_state", "status", "os", "hypervisor", "pnode", "disk_template", "tags", "custom_beparams", "custom_hvparams",
		"disk.sizes", "disk.names", "nic.ips", "nic.names", "nic.modes", "nic.links", "nic.vlans", "nic.networks.names", "be/maxmem", "be/minmem", "be/vcpus"},
	"node":    {"name", "role", "drained", "offline", "master_candidate", "master_capable", "vm_capable", "tags", "group", "pinst_list", "custom_ndparams", "powered"},
	"group":   {"name", "alloc_policy", "custom_diskparams", "custom_ipolicy", "custom_ndparams", "node_list", "tags"},
	"network": {"name", "network", "gateway", "network6", "gateway6", "mac_prefix", "map", "external_reservations", "group_list", "inst_list", "tags"},
	"filter":  {"priority", "predicates", "action"},
}

// looks says what the state is looked at in after calls of a class.
var looks = map[string][]string{
	"create": {"instance", "network"}, "modify": {"instance", "network"}, "power": {"instance", "network"}, "tags": {"instance", "node", "group", "network", "cluster tags"},
	"group": {"group", "node"}, "network": {"network", "group"}, "node": {"node", "group"}, "cluster": {"cluster", "instance"},
	"rule": {"filter"}, "rule at work": {"filter"}, "rapi write": {"instance", "network", "group", "node", "cluster", "cluster tags", "filter"},
}

// state asks how things are.
func (d *draw) state(of []string) []*call {
	var calls []*call
	for _, kind := range of {
		c := d.luxi("state of "+kind, "Query", kind, stateFields[kind], nil)
		switch kind {
		case "cluster":
			c.LUXI = &luxiCall{Method: "QueryClusterInfo", Args: encode(list{})}
		case "cluster tags":
			c.LUXI = &luxiCall{Method: "QueryTags", Args: encode(list{"cluster", ""})}
		}
		c.State = true
		calls = append(calls, c)
	}
	return calls
}

// mend is what makes the two alike again, where the answers to these questions differ.
func (d *draw) mend(differ []*call, names map[string]bool) []*call {
	var calls []*call
	done := map[string]bool{}
	once := func(what string, make func() []*call) {
		if !done[what] {
			done[what] = true
			calls = append(calls, make()...)
		}
	}
	for _, c := range differ {
		switch strings.TrimPrefix(c.Class, "state of ") {
		case "instance":
			for _, name := range instances {
				if names[name] {
					once(name, func() []*call { return d.renew(name) })
				}
			}
		case "network", "group":
			once("surroundings", d.surroundings)
		case "filter":
			once("rules", d.withoutRules)
		default:
			once("settings", d.settings)
		}
	}
	for _, c := range calls {
		c.Mends = true
	}
	return calls
}

// withoutRules deletes all rules that calls made, on whichever side they are.
func (d *draw) withoutRules() []*call {
	var calls []*call
	for _, id := range d.scene.made {
		c := d.luxi("prepare", "DeleteFilter", "{rule:"+id+"}")
		c.Prepare = true
		calls = append(calls, c)
	}
	d.scene.made, d.scene.rules = nil, nil
	return calls
}
