package exec

import (
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/fault"
)

func TestModifyParameters(t *testing.T) {
	r := newRig(t)
	r.create("one", false)
	r.must(`[["be/maxmem",256]]`, "OP_INSTANCE_SET_PARAMS", one(params{"beparams": params{"maxmem": 256}}))
	i := r.instance("one")
	if i.BEParams["maxmem"] != int64(256) || i.Serial != 2 || i.MTime != 2000e9 {
		t.Fatalf("instance is %+v", i)
	}
	r.must(`[["be/maxmem","default"],["os","noop+default"],["os/test_param","b"],["os_private/test_param","\u003credacted\u003e"]]`, "OP_INSTANCE_SET_PARAMS",
		one(params{"beparams": params{"maxmem": "default"}, "os_name": "noop+default", "osparams": params{"test_param": "b"}, "osparams_private": params{"test_param": "q"}}))
	i = r.instance("one")
	if len(i.BEParams) != 0 || i.OSParams["test_param"] != "b" || i.OSParamsPrivate["test_param"] != "q" {
		t.Fatalf("instance is %+v", i)
	}
	r.must(`[["admin_state","offline"]]`, "OP_INSTANCE_SET_PARAMS", one(params{"offline": true}))
	r.refuses("OpPrereqError", "Instance 'one' is marked to be offline, can't use instance from outside down, up states", "OP_INSTANCE_STARTUP", one(nil))
	r.must(`[["admin_state","down"]]`, "OP_INSTANCE_SET_PARAMS", one(params{"offline": false}))
	r.must("null", "OP_INSTANCE_STARTUP", one(nil))
	r.refuses("OpPrereqError", "Instance 'one' is marked to be up, can't change to offline without being down first", "OP_INSTANCE_SET_PARAMS", one(params{"offline": true}))
}

// TestRuntimeMemory: what runs is given another memory between its bounds, in the reference's words; a change that fails gives it back.
func TestRuntimeMemory(t *testing.T) {
	r := newRig(t)
	r.create("one", true)
	set := func(p params) params { return one(p) }
	r.must(`[["be/maxmem",512],["be/minmem",64]]`, "OP_INSTANCE_SET_PARAMS", set(params{"beparams": params{"minmem": 64, "maxmem": 512}}))
	r.must("null", "OP_INSTANCE_REBOOT", one(params{"reboot_type": "hard"}))
	memory := func(want int) {
		t.Helper()
		a, err := r.fleet.Agent("node1")
		if err != nil {
			t.Fatal(err)
		}
		if got, err := a.Instance(t.Context(), thingOf(r.instance("one"))); err != nil || got.Memory != want {
			t.Errorf("it has %d MiB, %v; want %d", got.Memory, err, want)
		}
	}
	memory(512)
	r.must(`[["runtime_memory",100]]`, "OP_INSTANCE_SET_PARAMS", set(params{"runtime_mem": 100}))
	memory(100)
	for _, bad := range []int{63, 513} {
		r.refuses("OpPrereqError", "Instance one must have memory between 64 and 512 MB of memory unless --force is given", "OP_INSTANCE_SET_PARAMS", set(params{"runtime_mem": bad}))
	}
	r.must(`[["runtime_memory",32]]`, "OP_INSTANCE_SET_PARAMS", set(params{"runtime_mem": 32, "force": true}))
	memory(32)
	r.must(`[["runtime_memory",600],["be/maxmem",640]]`, "OP_INSTANCE_SET_PARAMS", set(params{"runtime_mem": 600, "beparams": params{"maxmem": 640}, "dry_run": true}))
	r.refuses("OpExecError", "Cannot modify instance runtime memory: instance one was started with at most 512 MiB of memory, and cannot have 600 (another maxmem counts from its next start on)", "OP_INSTANCE_SET_PARAMS",
		set(params{"runtime_mem": 600, "beparams": params{"maxmem": 640}}))
	r.refuses("OpPrereqError", "Not enough memory on node node1 for ballooning memory for instance one: needed 9968 MiB, available 7136 MiB", "OP_INSTANCE_SET_PARAMS",
		set(params{"runtime_mem": 10000, "force": true}))
	r.refusing(prepareDisks, fault.Environment)
	r.refuses("OpExecError", "Could not create the disks of instance one: said on purpose", "OP_INSTANCE_SET_PARAMS",
		set(params{"runtime_mem": 64, "disks": []any{[]any{"add", params{"size": 4}}}}))
	memory(32)
	r.wrap = nil
	r.must("null", "OP_INSTANCE_SHUTDOWN", one(nil))
	r.refuses("OpPrereqError", "Instance one is not running", "OP_INSTANCE_SET_PARAMS", set(params{"runtime_mem": 100}))
	r.must("null", "OP_INSTANCE_STARTUP", one(nil))
	memory(512)
}

// TestUncheckedLinks: of an interface of Open vSwitch nobody looks whether its link is there, and the job says so.
func TestUncheckedLinks(t *testing.T) {
	r := newRig(t)
	r.create("one", false)
	change := func(nics ...any) {
		if _, err := r.run("OP_INSTANCE_SET_PARAMS", params{"instance_name": "one", "nics": nics}); err != nil {
			t.Fatal(err)
		}
	}
	change([]any{"add", -1, params{"mode": "openvswitch"}})
	r.logged(" - INFO: OVS links are currently not checked for correctness")
	change([]any{"modify", 1, params{"link": "br7"}}, []any{"add", -1, params{"mode": "bridged"}})
	r.logged(" - INFO: OVS links are currently not checked for correctness")
}

func TestModifyRefusals(t *testing.T) {
	r := newRig(t)
	r.create("one", false)
	r.must("null", "OP_NETWORK_ADD", params{"network_name": "lone", "network": "192.0.2.0/28"})
	group := r.keeper.Snapshot().GroupNamed("default").UUID
	cases := []struct {
		text    string
		changes params
	}{
		{"No changes submitted", params{}},
		{"Instance one is not running", params{"runtime_mem": 128}},
		{"Instance allocation to group " + group + " (default) violates policy: memory-size value 1 is not in range [16, 32768]", params{"beparams": params{"minmem": 1}}},
		{"minmem (128 MiB) is more than maxmem (64 MiB)", params{"beparams": params{"maxmem": 64}}},
		{"Instance allocation to group " + group + " (default) violates policy: cpu-count value 99 is not in range [1, 8]", params{"beparams": params{"vcpus": 99}}},
		{"OS 'nosuch' not in supported OS list for node node1", params{"os_name": "nosuch"}},
		{"Got NIC index 7, but there are only 1", params{"nics": []any{[]any{7, params{"ip": "none"}}}}},
		{"Got disk index 1, but there are only 1", params{"disks": []any{[]any{"remove", 1, params{}}}}},
		{"Only positive integer or -1 is accepted", params{"nics": []any{[]any{"add", "nosuch", params{}}}}},
		{"No netparams found for the network lone, probably not connected (connect it to node group 'default')", params{"nics": []any{[]any{"add", params{"network": "lone"}}}}},
		{"Invalid IP address '' (an interface without an address has 'none')", params{"nics": []any{[]any{"add", params{"ip": ""}}}}},
		{"If network is given, no vlan is allowed to be passed (the interface gets that of the network in the group of its node)",
			params{"nics": []any{[]any{"add", params{"network": "lone", "vlan": ".7"}}}}},
		{"Cannot find NIC with identifier nosuch", params{"nics": []any{[]any{"modify", "nosuch", params{}}}}},
		{"Disk size change not possible, use grow-disk", params{"disks": []any{[]any{0, params{"size": 99}}}}},
		{"Only one NIC add/attach/remove/detach operation is supported at a time (give each its index: [action, index, values])",
			params{"nics": []any{[]any{"remove", params{}}, []any{"remove", params{}}}}},
		{"NIC name 'a' already used", params{"nics": []any{[]any{"add", 0, params{"name": "a"}}, []any{"add", 0, params{"name": "a"}}}}},
		{"disk name 'a' already used", params{"disks": []any{[]any{"add", 0, params{"size": 4, "name": "a"}}, []any{"add", 0, params{"size": 4, "name": "a"}}}}},
		{"Required disk parameter 'size' missing", params{"disks": []any{[]any{"add", params{}}}}},
	}
	for _, c := range cases {
		r.refuses("OpPrereqError", c.text, "OP_INSTANCE_SET_PARAMS", one(c.changes))
	}
	for text, changes := range map[string]params{
		"Unknown parameter 'x'":                                           {"hvparams": params{"x": 1}},
		"The OS parameter 'test_param' must be a text, got null":          {"osparams_private": params{"test_param": nil}},
		"'vcpus' (value many) is not a valid integer":                     {"beparams": params{"vcpus": "many"}},
		"Unknown parameter 'vg' (name and mode of a disk can be changed)": {"disks": []any{[]any{0, params{"vg": "x"}}}},
	} {
		r.refuses("TypeEnforcementError", text, "OP_INSTANCE_SET_PARAMS", one(changes))
	}
	for _, id := range []string{"OP_INSTANCE_SET_PARAMS", "OP_INSTANCE_REINSTALL"} {
		r.refuses("OpExecError", "OS Parameters validation failed on node node1: The following parameters are not supported by the OS noop: nosuch",
			id, one(params{"osparams": params{"nosuch": "1"}}))
	}
	r.must(`["node1"]`, "OP_INSTANCE_CREATE", creating(params{"instance_name": "none", "disks": []any{}, "disk_template": "diskless", "start": false}))
	r.refuses("OpPrereqError", "Must specify disk type on diskless instance (disks are added to instances that were made with a disk template)",
		"OP_INSTANCE_SET_PARAMS", params{"instance_name": "none", "disks": []any{[]any{"add", params{"size": 8}}}})
}

func TestModifyAnswersAsClientsKnowIt(t *testing.T) {
	r := newRig(t)
	r.create("one", false)
	r.must(`[["be/memory","256m"]]`, "OP_INSTANCE_SET_PARAMS", one(params{"beparams": params{"memory": "256m"}, "hotplug_if_possible": true}))
	r.logged(" - WARNING: Hotplug is not supported by this hypervisor", " - INFO: Modification will take place without hotplugging.")
	if be := r.instance("one").BEParams; be["minmem"] != int64(256) || be["maxmem"] != int64(256) {
		t.Fatalf("backend parameters are %v", be)
	}
	r.must(`[["be/memory",null]]`, "OP_INSTANCE_SET_PARAMS", one(params{"beparams": params{"memory": nil}}))
	if be := r.instance("one").BEParams; be["minmem"] != int64(256) {
		t.Fatalf("backend parameters are %v", be)
	}
	r.must(`[["NIC/0","remove"]]`, "OP_INSTANCE_SET_PARAMS", one(params{"nics": []any{[]any{"remove", "-1", params{}}}}))
}

func TestModifyDisks(t *testing.T) {
	r := newRig(t)
	r.create("one", false)
	first := r.instance("one").Disks[0].UUID
	r.must(`[["disk/1","add:size=1024,mode=rw"],["disk/0","add:size=4,mode=ro"]]`, "OP_INSTANCE_SET_PARAMS",
		one(params{"disks": []any{[]any{"add", params{"size": "1g", "name": "data"}}, []any{"add", 0, params{"size": 4, "mode": "ro"}}}}))
	d := r.instance("one").Disks
	if len(d) != 3 || d[0].Size != 4 || d[1].UUID != first || d[2].Name != "data" || d[2].IVName != "disk/2" || d[2].Type != "file" {
		t.Fatalf("disks are %+v", d)
	}
	r.must("null", "OP_INSTANCE_STARTUP", one(nil)) // the node has them all
	r.refuses("OpPrereqError", "Instance 'one' is marked to be up, can't remove volume from a running instance without using hotplug (stop it first)", "OP_INSTANCE_SET_PARAMS",
		one(params{"disks": []any{[]any{"remove", params{}}}}))
	r.must(`[["disk.mode/2","ro"],["disk.name/2",null]]`, "OP_INSTANCE_SET_PARAMS",
		one(params{"disks": []any{[]any{"modify", "data", params{"mode": "ro", "name": "none"}}}}))
	r.logged(" - INFO: The changed disks are seen by instance one after its next start")
	r.must("null", "OP_INSTANCE_SHUTDOWN", one(nil))
	r.must(`[["disk/2","remove"],["disk/0","remove"]]`, "OP_INSTANCE_SET_PARAMS",
		one(params{"disks": []any{[]any{"remove", -1, params{}}, []any{"remove", 0, params{}}}}))
	if d := r.instance("one").Disks; len(d) != 1 || d[0].UUID != first || d[0].IVName != "disk/0" {
		t.Fatalf("disks are %+v", d)
	}
}

func TestModifyDisksFailures(t *testing.T) {
	r := newRig(t)
	r.create("one", false)
	r.failOn("node1", "prepare", false)
	r.refuses("OpExecError", "Could not create the disks of instance one: the driver is broken on purpose", "OP_INSTANCE_SET_PARAMS",
		one(params{"disks": []any{[]any{"add", params{"size": 4}}}}))
	r.failOn("node1", "drop", false)
	gone := r.instance("one").Disks[0].UUID
	r.must(`[["disk/0","remove"]]`, "OP_INSTANCE_SET_PARAMS", one(params{"disks": []any{[]any{"remove", params{}}}}))
	r.logged("Warning: can't remove instance's disks: the driver is broken on purpose",
		" - WARNING: Disks that instance one does not have may be left on node node1: "+gone+"; next: drover node orphans node1, drover node clear-orphans node1 "+gone)
	r.failOn("node1", "", false)
	r.must("null", "OP_INSTANCE_REMOVE", one(nil))
	r.create("one", false)
	before := r.dump()
	r.must(`[["disk/1","add:size=4,mode=rw"]]`, "OP_INSTANCE_SET_PARAMS", one(params{"dry_run": true, "disks": []any{[]any{"add", params{"size": 4}}}}))
	if r.dump() != before {
		t.Fatal("a dry run changed the inventory")
	}
}

func TestModifyNICs(t *testing.T) {
	r := newRig(t)
	r.create("one", false)
	network := r.network("net", "192.0.2.0/29", "")
	old := r.instance("one").NICs[0]
	nic := func(change ...any) params { return one(params{"nics": []any{change}}) }
	got, err := r.run("OP_INSTANCE_SET_PARAMS", nic("add", params{"network": "net", "ip": "pool", "name": "eth1"}))
	if err != nil {
		t.Fatal(err)
	}
	added := r.instance("one").NICs[1]
	if want := `[["nic.1","add:mac=` + added.MAC + `,ip=192.0.2.1,mode=bridged,link=br7,network=net"]]`; got != want {
		t.Fatalf("got %s, want %s", got, want)
	}
	r.must(`[["nic.link/0","br9"],["nic.mode/0","bridged"],["nic.vlan/0",""]]`, "OP_INSTANCE_SET_PARAMS", nic(0, params{"link": "br9"}))
	if got := r.instance("one").NICs[0]; got.UUID != old.UUID || got.MAC != old.MAC || got.Params["link"] != "br9" {
		t.Fatalf("interface is %+v", got)
	}
	const connected = `["nic.link/1","br7"],["nic.mode/1","bridged"],["nic.vlan/1",""]]`
	r.must(`[["nic.ip/1","192.0.2.5"],`+connected, "OP_INSTANCE_SET_PARAMS", nic("modify", "eth1", params{"ip": "192.0.2.5"}))
	if n := r.keeper.Snapshot().Network(network); n.Taken(1) || !n.Taken(5) {
		t.Fatalf("addresses are %s", n.Map())
	}
	r.must(`[["nic.mac/1","aa:00:00:01:02:03"],`+connected, "OP_INSTANCE_SET_PARAMS", nic(1, params{"mac": "AA:00:00:01:02:03"}))
	r.refuses("OpPrereqError", "MAC address aa:00:00:01:02:03 already in use in cluster", "OP_INSTANCE_SET_PARAMS", nic(0, params{"mac": "aa:00:00:01:02:03"}))
	r.must(`[["nic.mac/1","aa:00:00:01:02:03"],`+connected, "OP_INSTANCE_SET_PARAMS", nic(1, params{"mac": "aa:00:00:01:02:03"}))
	r.must(`[["nic.ip/1",null],["nic.network/1",null],["nic.link/1","br0"],["nic.mode/1","bridged"],["nic.vlan/1",""]]`, "OP_INSTANCE_SET_PARAMS", nic(1, params{"network": "none"}))
	if n := r.keeper.Snapshot().Network(network); n.Taken(5) {
		t.Fatalf("the address was not given back: %s", n.Map())
	}
	r.must(`[["NIC/0","remove"]]`, "OP_INSTANCE_SET_PARAMS", nic("remove", 0, params{}))
	if n := r.instance("one").NICs; len(n) != 1 || n[0].Name != "eth1" {
		t.Fatalf("interfaces are %+v", n)
	}
}

func TestModifyOnOfflineNode(t *testing.T) {
	r := newRig(t, "node1", "node2")
	r.create("one", false)
	r.setNode("node1", func(n *cluster.Node) { n.Offline = true })
	r.must(`[["be/vcpus",2]]`, "OP_INSTANCE_SET_PARAMS", one(params{"beparams": params{"vcpus": 2}}))
	r.refuses("OpPrereqError", "Can't use offline node: node1", "OP_INSTANCE_SET_PARAMS", one(params{"disks": []any{[]any{"add", params{"size": 4}}}}))
	for _, id := range []string{"OP_INSTANCE_STARTUP", "OP_INSTANCE_SHUTDOWN", "OP_INSTANCE_REMOVE"} {
		r.refuses("OpPrereqError", "Can't use offline node: node1", id, one(nil))
	}
	r.refuses("OpPrereqError", "Can't use offline node: node1", "OP_INSTANCE_REBOOT", one(params{"reboot_type": "hard"}))
	r.must("null", "OP_INSTANCE_STARTUP", one(params{"ignore_offline_nodes": true}))
	r.logged(" - WARNING: Primary node node1 is offline, only marking the instance as started")
	if r.instance("one").AdminState != "up" {
		t.Fatal("the wanted state was not remembered")
	}
	r.must("null", "OP_INSTANCE_SHUTDOWN", one(params{"ignore_offline_nodes": true}))
	r.must("null", "OP_INSTANCE_REMOVE", one(params{"ignore_failures": true}))
	if !strings.Contains(r.log[0], "Can't use offline node: node1") {
		t.Fatalf("log is %q", r.log)
	}
}
