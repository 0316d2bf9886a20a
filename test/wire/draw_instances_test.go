//go:build ganeti

package wire

import "strings"

// instanceName names an instance: those of the fixture, some that may be there, and none.
func (d *draw) instanceName() string {
	return pick(d, "w1.example", "w1.example", "w2.example", "w2.example", "w3.example", "w3.example", "w4.example", "w4.example", "w1", "w1.example", "w2.example", "w3.example", "w4.example", "w1.example", "w2.example", "w3.example", "w4.example", "x1.example", "nosuch")
}

// spec is a creation that works, if the name is free.
func spec(name string, changes object) object {
	params := object{"instance_name": name, "mode": "create", "os_type": "noop+default", "disk_template": "diskless", "disks": list{}, "nics": list{}, "pnode": "node1.drover.example",
		"ip_check": false, "name_check": false, "beparams": object{"memory": 64, "vcpus": 1}, "start": false, "hypervisor": "fake"}
	for key, value := range changes {
		params[key] = value
	}
	return op("OP_INSTANCE_CREATE", params)
}

func (d *draw) beparams() any {
	out := object{}
	for range d.few() {
		switch d.IntN(9) {
		case 0:
			out["memory"] = pick[any](d, 64, 32, "64", "128M", 128.0, "x", 0, nil, "default")
		case 1:
			out["vcpus"] = pick[any](d, 1, 2, "2", 1.0, 99, -1, "x", nil, "default", true)
		case 2:
			out["minmem"] = pick[any](d, 32, 16, 8, "32", "default")
		case 3:
			out["maxmem"] = pick[any](d, 128, 256, 64, "1G", "default")
		case 4:
			out["auto_balance"] = pick[any](d, true, false, "true", "False", "no", "yes", nil, "default", 1)
		case 5:
			out["always_failover"] = pick[any](d, true, false, "default")
		case 6:
			out["spindle_use"] = pick[any](d, 1, 2, 0, 99, "default")
		case 7:
			out[pick(d, "nosuch", "", "Memory")] = 1
		default:
			out["vcpus"] = pick[any](d, 1, 2, 3)
		}
	}
	return out
}

func (d *draw) hvparams() any {
	return pick[any](d, object{}, object{"migration_mode": "live"}, object{"migration_mode": "x"}, object{"nosuch": 1}, object{"acpi": true}, object{"kernel_path": "/x"}, object{"migration_mode": "default"}, object{"migration_mode": nil})
}

func (d *draw) osparams() any {
	return pick[any](d, object{}, object{"test_param": "v"}, object{"test_param": "default"}, object{"nosuch": "v"}, object{"test_param": 5}, object{"test_param": nil})
}

func (d *draw) nic() object {
	out := object{}
	for range d.few() {
		switch d.IntN(7) {
		case 0:
			out["ip"] = pick[any](d, "192.0.2.5", "192.0.2.9", "198.51.100.7", "none", "pool", "x", "", nil)
		case 1:
			out["mac"] = pick[any](d, "auto", "generate", "aa:00:00:11:22:33", "AA:00:00:11:22:34", "x", nil)
		case 2:
			out["mode"] = pick[any](d, "bridged", "routed", "openvswitch", "x", nil)
		case 3:
			out["link"] = pick[any](d, "br0", "br0", "", nil)
		case 4:
			out["network"] = pick[any](d, "net1", "net2", "nosuch", "none", nil)
		case 5:
			out["name"] = pick[any](d, "eth0", "eth1", "none", "7", "", nil)
		default:
			out[pick(d, "nosuch", "vlan", "bridge")] = pick[any](d, "x", "1", nil)
		}
	}
	return out
}

func (d *draw) disk() object {
	if d.chance(50) {
		return object{"size": pick[any](d, 4, 8, 32, 32, 5, "8", "8M", 0, -4, nil, "x", 1.5)}
	}
	out := object{"size": 8}
	if d.chance(70) {
		out[pick(d, "mode", "name", "spindles", "provider", "nosuch", "vg", "adopt", "access")] = pick[any](d, "rw", "ro", "data", "x", 1, "7", nil)
	}
	return out
}

// create makes an instance, mostly one that can be made, and takes it away again.
func create(d *draw) []*call {
	name := pick(d, "x1.example", "x1.example", "x2.example", "x2.example", "w1.example", "-x", "x y", "X1.example", "")
	o := spec(name, object{})
	odd := d.few()
	if !strings.HasPrefix(name, "x") || strings.Contains(name, " ") {
		odd = 0 // the name is odd enough
	}
	for range odd {
		switch d.IntN(14) {
		case 0:
			o["disk_template"], o["disks"] = "file", list{d.disk()}
		case 1:
			o["nics"] = list{d.nic()}
		case 2:
			o["beparams"] = d.beparams()
		case 3:
			o["hvparams"] = d.hvparams()
		case 4:
			o["osparams"] = d.osparams()
		case 5:
			o["os_type"] = pick[any](d, "noop+default", "noop", "nosuch", "noop+x", "", nil)
		case 6:
			o["disk_template"] = pick[any](d, "plain", "drbd", "nosuch", nil, "sharedfile", "file")
		case 7:
			o["pnode"] = pick[any](d, "node1", "nosuch", nil, "")
		case 8:
			o["hypervisor"] = pick[any](d, "kvm", "nosuch", nil, "xen-pvm")
		case 9:
			o["dry_run"] = true
		case 10:
			o["tags"] = pick[any](d, list{"web", "env:prod"}, list{"a b"}, list{""}, list{"web", "web"}, "x", nil)
		case 11:
			o["mode"] = pick[any](d, "import", "nosuch", nil, "remote-import")
		case 12:
			o["start"], o["no_install"] = d.chance(70), d.chance(50)
		default:
			o[pick(d, "wait_for_sync", "ignore_ipolicy", "name_check", "opportunistic_locking", "iallocator", "snode", "file_driver", "file_storage_dir", "forthcoming", "nosuch", "instance_communication", "force_variant")] =
				pick[any](d, true, false, "hail", "node1", "loop", "sub", "../x", nil)
		}
	}
	made := d.submit("create", o)
	if name != "w1.example" && d.chance(50) {
		return []*call{made, d.submit("create", op("OP_INSTANCE_REMOVE", object{"instance_name": name}))}
	}
	return []*call{made}
}

// modify changes an instance.
func modify(d *draw) *call {
	params := object{"instance_name": d.instanceName()}
	for range d.few() {
		switch d.IntN(9) {
		case 0, 1:
			params["beparams"] = d.beparams()
		case 2:
			params["hvparams"] = d.hvparams()
		case 3:
			params[pick(d, "osparams", "osparams_private")] = d.osparams()
		case 4, 5:
			params["nics"] = d.changes(func() any { return d.nic() })
		case 6:
			params["disks"] = d.changes(func() any { return d.disk() })
		case 7:
			params["os_name"] = pick[any](d, "noop+default", "nosuch", "noop", "")
		default:
			params[pick(d, "offline", "online", "force", "hotplug_if_possible", "dry_run", "nosuch", "ignore_ipolicy", "runtime_mem", "pnode", "remote_node", "disk_template", "wait_for_sync")] =
				pick[any](d, true, false, 64, "node1", "file", nil)
		}
	}
	return d.submit("modify", op("OP_INSTANCE_SET_PARAMS", params))
}

// changes are changes of a list of interfaces or disks.
func (d *draw) changes(values func() any) any {
	if d.chance(8) {
		return pick[any](d, list{}, "x", list{5}, list{list{}}, list{list{"add"}}, list{list{"foo", object{}}}, list{list{"add", object{}}, list{"add", object{}}}, nil, list{list{"add", -1}}, list{list{"modify", 0, "x"}})
	}
	at := pick[any](d, -1, -1, 0, 0, 0, 1, 7, "eth0", "data", "0", "-1", "nosuch")
	switch d.IntN(7) {
	case 0, 1:
		return list{list{"add", -1, values()}}
	case 2:
		return list{list{"remove", at, object{}}}
	case 3, 4:
		return list{list{"modify", at, values()}}
	case 5:
		return pick(d, list{list{pick[any](d, 0, -1, 7, "add"), values()}}, list{list{"remove", object{}}})
	}
	return list{list{pick(d, "attach", "detach", "add"), at, object{}}}
}

// power starts and stops instances, and more that is done to one.
func power(d *draw) *call {
	name := object{"instance_name": d.instanceName()}
	set := func(key string, v any) {
		if d.chance(35) {
			name[key] = v
		}
	}
	switch d.IntN(16) {
	case 0, 1, 2:
		set("force", true)
		set("no_remember", true)
		set(pick(d, "beparams", "hvparams"), pick[any](d, d.beparams(), d.hvparams()))
		set("ignore_offline_nodes", true)
		set("startup_paused", pick[any](d, false, "x", true))
		return d.submit("power", op("OP_INSTANCE_STARTUP", name))
	case 3, 4, 5:
		set("timeout", pick[any](d, 0, 1, -1, "x"))
		set("no_remember", true)
		set("force", true)
		return d.submit("power", op("OP_INSTANCE_SHUTDOWN", name))
	case 6, 7:
		name["reboot_type"] = pick[any](d, "hard", "soft", "full", "x", nil)
		set("ignore_secondaries", true)
		set("shutdown_timeout", pick[any](d, 0, 1))
		return d.submit("power", op("OP_INSTANCE_REBOOT", name))
	case 8:
		set("os_type", pick[any](d, "noop+default", "nosuch", "noop"))
		set("osparams", d.osparams())
		return d.submit("power", op("OP_INSTANCE_REINSTALL", name))
	case 9:
		name["new_name"] = pick[any](d, "w1.example", "x1.example", "x y", "", nil)
		name["name_check"], name["ip_check"] = d.chance(10), false
		return d.submit("power", op("OP_INSTANCE_RENAME", name))
	case 10:
		return d.submit("power", op("OP_INSTANCE_CONSOLE", name))
	case 11, 12:
		name["disk"], name["amount"] = pick[any](d, 0, 0, 1, -1, 99, "x"), pick[any](d, 4, 8, 0, -4, "4", 5)
		set("absolute", true)
		return d.submit("power", op("OP_INSTANCE_GROW_DISK", name))
	case 13:
		return d.submit("power", op("OP_INSTANCE_QUERY_DATA", object{"instances": pick[any](d, list{}, list{"nosuch"}, "x"), "static": true}))
	case 14:
		return d.submit("power", op(pick(d, "OP_INSTANCE_FAILOVER", "OP_INSTANCE_MIGRATE", "OP_INSTANCE_ACTIVATE_DISKS", "OP_INSTANCE_DEACTIVATE_DISKS", "OP_INSTANCE_RECREATE_DISKS", "OP_BACKUP_PREPARE", "OP_INSTANCE_MOVE"), name))
	}
	name["instance_name"] = pick(d, "x1.example", "x2.example", "nosuch")
	set("ignore_failures", true)
	return d.submit("power", op("OP_INSTANCE_REMOVE", name))
}
