package exec

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/hypervisor"
	"github.com/drover-project/drover/internal/lock"
)

// creating returns the parameters of a small creation, with changes; nil takes
// a parameter away.
func creating(changes params) params {
	p := params{"instance_name": "one", "mode": "create", "pnode": "node1", "disk_template": "file",
		"disks": []any{params{"size": 8}}, "nics": []any{params{}}, "os_type": "noop+default"}
	for k, v := range changes {
		p[k] = v
		if v == nil {
			delete(p, k)
		}
	}
	return p
}

func TestCreate(t *testing.T) {
	r := newRig(t)
	r.must(`["node1"]`, "OP_INSTANCE_CREATE", creating(params{"instance_name": "ONE.example.", "beparams": params{"memory": "1g", "vcpus": "default"},
		"disks": []any{params{"size": 8}, params{"size": "1.5g", "mode": "ro", "name": "data"}}, "tags": []any{"b", "a"}}))
	r.logged("* disk 0, size 8M", "* disk 1, size 1.5G", "* creating instance disks...", "adding instance one.example to cluster config",
		"adding disks to cluster config", " - INFO: Waiting for instance one.example to sync disks",
		" - INFO: Instance one.example's disks are in sync", "* running the instance OS create scripts...", "* starting instance...")
	i := r.instance("one.example")
	if i.AdminState != "up" || i.OS != "noop+default" || i.Hypervisor != "fake" || len(i.Tags) != 2 || i.Serial != 2 ||
		len(i.BEParams) != 2 || i.BEParams["maxmem"] != int64(1024) || i.CTime != 2000e9 {
		t.Errorf("instance is %+v", i)
	}
	d := i.Disks[1]
	if len(i.Disks) != 2 || d.Size != 1536 || d.Mode != "ro" || d.Name != "data" || d.IVName != "disk/1" || d.Nodes[0] != i.PrimaryNode {
		t.Errorf("disk is %+v", d)
	}
	if len(i.NICs) != 1 || i.NICs[0].MAC[:9] != "aa:00:00:" || len(i.NICs[0].MAC) != 17 {
		t.Errorf("interfaces are %+v", i.NICs)
	}
	if r.state("node1", "one.example") != hypervisor.Running {
		t.Error("it does not run")
	}
	if got := r.lastReason("node1", "one.example"); got != "testing OP_INSTANCE_CREATE gnt:daemon:noded:start" {
		t.Errorf("reason is %q", got)
	}
}

func TestCreateWithoutInstallation(t *testing.T) {
	r := newRig(t)
	r.must(`["node1"]`, "OP_INSTANCE_CREATE", creating(params{"no_install": true, "disks": []any{}, "disk_template": "diskless", "start": false}))
	r.logged("* creating instance disks...", "adding instance one to cluster config", "adding disks to cluster config")
	r.must(`["node1"]`, "OP_INSTANCE_CREATE", creating(params{"instance_name": "none", "disks": []any{}, "disk_template": "diskless", "start": false}))
	r.logged("* creating instance disks...", "adding instance none to cluster config", "adding disks to cluster config")
	r.must(`["node1"]`, "OP_INSTANCE_CREATE", creating(params{"instance_name": "two", "no_install": true, "wait_for_sync": false}))
	r.logged(" - INFO: No-installation mode selected, disabling startup", "* disk 0, size 8M", "* creating instance disks...",
		"adding instance two to cluster config", "adding disks to cluster config")
}

func TestCreatePrerequisites(t *testing.T) {
	r := newRig(t, "node1", "node2", "node3")
	r.create("exists", false)
	r.setNode("node2", func(n *cluster.Node) { n.Offline = true })
	r.setNode("node3", func(n *cluster.Node) { n.Drained = true })
	cases := []struct {
		text    string
		changes params
	}{
		{"Instance 'exists' is already in the cluster", params{"instance_name": "exists"}},
		{"Invalid hostname 'a b' (1 to 255 of: letters a-z, digits, dot, dash, underscore; no empty label)", params{"instance_name": "a b"}},
		{"No export found for relative path one (drover backup list shows which there are)", params{"mode": "import"}},
		{"Instance 'exists' is already in the cluster", params{"instance_name": "Exists", "mode": "import"}},
		{"Node 'nosuch' not known", params{"pnode": "nosuch"}},
		{"Can't use offline node: node2", params{"pnode": "node2"}},
		{"Can't use drained node: node3", params{"pnode": "node3"}},
		{"Do not specify both, iallocator and node", params{"iallocator": "hail"}},
		{"Selected hypervisor (kvm) not enabled in the cluster (fake)", params{"hypervisor": "kvm"}},
		{"Disk template 'rbd' is not enabled in cluster. Enabled disk templates are: diskless,file,plain,drbd,ext", params{"disk_template": "rbd"}},
		{"A diskless instance can't have disks", params{"disk_template": "diskless"}},
		{"Missing disk size", params{"disks": []any{params{}}}},
		{"Invalid disk size 'big'", params{"disks": []any{params{"size": "big"}}}},
		{"No guest OS or OS image specified", params{"os_type": nil}},
		{"No guest OS or OS image specified", params{"os_type": nil, "no_install": true}},
		{"Opportunistic locking is only available in combination with an instance allocator", params{"opportunistic_locking": true}},
		{"Network '' not found", params{"instance_communication": true}},
		{"Compression tool not allowed, tools allowed are [gzip, gzip-fast, gzip-slow]", params{"compress": "nosuch"}},
		{"Specified VLAN parameter is invalid : x (N, .N, .N:M or :N:M)", params{"nics": []any{params{"vlan": "x"}}}},
		{"NIC name 'a' already used", params{"nics": []any{params{"name": "a"}, params{"name": "a"}}}},
		{"disk name 'a' already used", params{"disks": []any{params{"size": 8, "name": "a"}, params{"size": 8, "name": "a"}}}},
		{"file_storage_dir '/abs' is no directory within the cluster's (give it relative to the cluster's file storage directory, without ..)",
			params{"file_storage_dir": "/abs"}},
		{"file_storage_dir '../x' is no directory within the cluster's (give it relative to the cluster's file storage directory, without ..)",
			params{"file_storage_dir": "../x"}},
		{"Cannot do IP address check without a name check", params{"name_check": false}},
		{"The given name (unknown) does not resolve: no such host (name_check: false takes any name)", params{"instance_name": "unknown"}},
		{"IP address 192.0.2.99 of instance busy already in use", params{"instance_name": "busy"}},
		{"Resolved hostname 'other.example' does not look the same as given hostname 'alias'", params{"instance_name": "alias"}},
		{"OS 'nosuch' not in supported OS list for node node1", params{"os_type": "nosuch"}},
		{"Unsupported OS variant (one of: default)", params{"os_type": "noop+x"}},
		{"Invalid MAC address 'xx'", params{"nics": []any{params{"mac": "xx"}}}},
		{"Invalid IP address 'fe80::x'", params{"nics": []any{params{"ip": "fe80::x"}}}},
		{"if ip=pool, parameter network must be passed too", params{"nics": []any{params{"ip": "pool"}}}},
		{"Routed nic mode requires an ip address if not attached to a network", params{"nics": []any{params{"mode": "routed"}}}},
		{"Network 'nosuch' not found", params{"nics": []any{params{"network": "nosuch"}}}},
		{"Not enough memory on node node1 for creating instance one: needed 8000 MiB, available 7168 MiB", params{"beparams": params{"memory": 8000}}},
	}
	for _, c := range cases {
		r.refuses("OpPrereqError", c.text, "OP_INSTANCE_CREATE", creating(c.changes))
		if r.state("node1", "one") != "" {
			t.Fatalf("%v left something on the node", c.changes)
		}
	}
	for _, c := range []struct {
		class, text string
		changes     params
	}{
		{"TypeEnforcementError", "Unknown parameter 'color'", params{"beparams": params{"color": "red"}}},
		{"TypeEnforcementError", "Unknown parameter 'nosuch'", params{"disks": []any{params{"size": 8, "nosuch": 1}}}},
		{"TagError", "Tag contains invalid characters (\"a b\": letters, digits and _ . + * / : @ - are allowed)", params{"tags": []any{"a b"}}},
		{"OpExecError", "OS Parameters validation failed on node node1: The following parameters are not supported by the OS noop: nosuch",
			params{"osparams": params{"nosuch": "1"}}},
		{"OpExecError", "Failure while running the iallocator script: iallocator module 'nosuch' not found in the search path",
			params{"iallocator": "nosuch", "pnode": nil}},
	} {
		r.refuses(c.class, c.text, "OP_INSTANCE_CREATE", creating(c.changes))
	}
}

func TestCreateWithNameCheck(t *testing.T) {
	r := newRig(t)
	r.must(`["node1"]`, "OP_INSTANCE_CREATE", creating(params{"instance_name": "SHORT", "start": false, "nics": []any{params{"ip": "auto"}}}))
	if i := r.instance("short.example"); r.log[0] != " - INFO: Resolved given name 'SHORT' to 'SHORT.example'" || i.NICs[0].IP != "192.0.2.88" {
		t.Fatalf("instance is %+v, log %q", i, r.log)
	}
	r.refuses("OpPrereqError", "IP address set to auto but name checks have been skipped", "OP_INSTANCE_CREATE",
		creating(params{"name_check": false, "ip_check": false, "nics": []any{params{"ip": "auto"}}}))
	// Whoever may be given the same full name waits.
	a, err := r.all.Locks(r.opcode("OP_INSTANCE_CREATE", creating(params{"instance_name": "a"})), r.keeper.Snapshot())
	b, err2 := r.all.Locks(r.opcode("OP_INSTANCE_RENAME", params{"instance_name": "short", "new_name": "a.example"}), r.keeper.Snapshot())
	name := want(lock.Instance, "a", lock.Exclusive)
	if err != nil || err2 != nil || !slices.Contains(a, name) || !slices.Contains(b, name) {
		t.Fatalf("locks are %v and %v (%v, %v)", a, b, err, err2)
	}
}

func TestCreateTakesWhatItHasNoUseFor(t *testing.T) {
	r := newRig(t)
	r.must(`["node1"]`, "OP_INSTANCE_CREATE", creating(params{"snode": "nosuch", "beparams": params{"vcpus": "auto"}, "disks": []any{params{"size": 1}},
		"file_storage_dir": "sub/", "nics": []any{params{"vlan": "5"}}, "start": false}))
	i := r.instance("one")
	if r.log[0] != " - WARNING: Secondary node will be ignored on non-mirrored disk template" || len(i.BEParams) != 0 || i.Disks[0].Size != 4 ||
		i.NICs[0].Params["vlan"] != ".5" || !strings.HasPrefix(i.Disks[0].LogicalID[1].(string), "/srv/ganeti/file-storage/sub/one/") {
		t.Fatalf("instance is %+v, log %q", i, r.log)
	}
}

func TestCreateKeepsToThePolicy(t *testing.T) {
	r := newRig(t)
	group := r.keeper.Snapshot().GroupNamed("default")
	big := params{"beparams": params{"vcpus": 9}, "start": false}
	r.refuses("OpPrereqError", "Instance allocation to group "+group.UUID+" (default) violates policy: cpu-count value 9 is not in range [1, 8]",
		"OP_INSTANCE_CREATE", creating(big))
	big["ignore_ipolicy"] = true
	r.must(`["node1"]`, "OP_INSTANCE_CREATE", creating(big))
}

func TestCreateDryRun(t *testing.T) {
	r := newRig(t, "node1", "node2")
	before := r.dump()
	r.must(`["node1"]`, "OP_INSTANCE_CREATE", creating(params{"pnode": nil, "dry_run": true}))
	r.logged(" - INFO: Selected nodes for instance one: node1 (most free memory, 7168 MiB, of 2 candidates)",
		" - INFO: dry-run mode requested, not actually executing the operation")
	if r.dump() != before || r.state("node1", "one") != "" {
		t.Fatal("a dry run left traces")
	}
}

func TestCreateSpreadsOverNodes(t *testing.T) {
	r := newRig(t, "node1", "node2", "node3")
	r.setNode("node3", func(n *cluster.Node) { n.VMCapable = false })
	for i, want := range []string{`["node1"]`, `["node2"]`, `["node1"]`} {
		r.must(want, "OP_INSTANCE_CREATE", creating(params{"instance_name": string(rune('a' + i)), "pnode": nil, "start": false}))
	}
	r.down["node2"] = true
	r.must(`["node1"]`, "OP_INSTANCE_CREATE", creating(params{"instance_name": "d", "pnode": nil, "start": false}))
	if r.log[0] != " - WARNING: Node node2 is passed over: Can't contact node node2: node node2 does not answer" {
		t.Fatalf("log is %q", r.log)
	}
}

func TestCreateFailures(t *testing.T) {
	r := newRig(t)
	r.failOn("node1", "prepare", false)
	r.refuses("OpExecError", "Could not create the disks of instance one on node node1: the driver is broken on purpose", "OP_INSTANCE_CREATE", creating(nil))
	r.failOn("node1", "start", false)
	if _, err := r.run("OP_INSTANCE_CREATE", creating(nil)); err == nil || err.Error() != "Could not start instance: the driver is broken on purpose" {
		t.Fatalf("start: %v", err)
	}
	if r.instance("one").AdminState != "down" || r.state("node1", "one") != hypervisor.Stopped {
		t.Fatal("an instance that did not start is not as it was before")
	}
}

func TestCreateWithFailingScript(t *testing.T) {
	r := newRig(t)
	if _, err := r.fleet.Agent("node1"); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(r.dir, "node1", "os", "failing")
	if err := os.MkdirAll(dir, 0o750); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"ganeti_api_version": "20\n", "create": "#!/bin/sh\necho create script fails on purpose\nexit 1\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	_, err := r.run("OP_INSTANCE_CREATE", creating(params{"os_type": "failing"}))
	want := "Could not add os for instance one on node node1: OS create script failed (exited with exit code 1), last lines in the log file:\ncreate script fails on purpose"
	if err == nil || err.Error() != want {
		t.Fatalf("got %v", err)
	}
}

func TestCreateInNetwork(t *testing.T) {
	r := newRig(t)
	network := r.network("net", "192.0.2.0/29", "192.0.2.1")
	nic := func(p params) params { return creating(params{"start": false, "nics": []any{p}}) }
	r.must(`["node1"]`, "OP_INSTANCE_CREATE", nic(params{"network": "net", "ip": "pool"}))
	got := r.instance("one").NICs[0]
	if got.IP != "192.0.2.2" || got.Network != network || got.Params["link"] != "br7" || got.MAC[:8] != "aa:00:02" {
		t.Fatalf("interface is %+v", got)
	}
	two := nic(params{"network": "net", "ip": "192.0.2.2"})
	two["instance_name"] = "two"
	r.refuses("OpPrereqError", "IP address 192.0.2.2 already in use or does not belong to network net", "OP_INSTANCE_CREATE", two)
	outside := nic(params{"ip": "192.0.2.4"})
	outside["instance_name"] = "two"
	r.refuses("OpPrereqError", "The requested IP address (192.0.2.4) belongs to network net, but the target NIC does not.", "OP_INSTANCE_CREATE", outside)
	mac := nic(params{"mac": got.MAC})
	mac["instance_name"] = "two"
	r.refuses("OpPrereqError", "MAC address "+got.MAC+" already in use in cluster", "OP_INSTANCE_CREATE", mac)
	twice := creating(params{"instance_name": "two", "start": false, "nics": []any{params{"mac": "aa:00:00:01:02:03"}, params{"mac": "AA:00:00:01:02:03"}}})
	r.refuses("OpPrereqError", "MAC address aa:00:00:01:02:03 already in use in cluster", "OP_INSTANCE_CREATE", twice)
	r.must("null", "OP_INSTANCE_REMOVE", one(nil))
	if free := r.keeper.Snapshot().Network(network).FreeCount(); free != 5 {
		t.Fatalf("%d addresses are free after removal", free)
	}
}

// network makes a network that is connected to the default group.
func (r *rig) network(name, subnet, gateway string) string {
	r.Helper()
	n, err := cluster.NewNetwork(r.newUUID(), name, subnet, gateway, 1)
	if err != nil {
		r.Fatal(err)
	}
	n.MACPrefix = "aa:00:02"
	r.update(func(snap *cluster.Snapshot) []cluster.Change {
		g := snap.GroupNamed("default").Clone()
		g.Networks[n.UUID] = cluster.Params{"mode": "bridged", "link": "br7", "vlan": ""}
		return []cluster.Change{cluster.Put(n), cluster.Put(g)}
	})
	return n.UUID
}

func (r *rig) update(change func(*cluster.Snapshot) []cluster.Change) {
	r.Helper()
	err := r.keeper.Update(r.Context(), func(snap *cluster.Snapshot) ([]cluster.Change, error) { return change(snap), nil })
	if err != nil {
		r.Fatal(err)
	}
}

func (r *rig) setNode(name string, alter func(*cluster.Node)) {
	r.Helper()
	r.update(func(snap *cluster.Snapshot) []cluster.Change {
		n := snap.NodeNamed(name).Clone()
		alter(n)
		return []cluster.Change{cluster.Put(n)}
	})
}

func TestRemove(t *testing.T) {
	r := newRig(t)
	r.create("one", true)
	r.must("null", "OP_INSTANCE_REMOVE", one(params{"dry_run": true}))
	if r.state("node1", "one") != hypervisor.Running {
		t.Fatal("a dry run stopped the instance")
	}
	r.must("null", "OP_INSTANCE_REMOVE", one(nil))
	r.logged()
	if r.keeper.Snapshot().InstanceNamed("one") != nil || r.state("node1", "one") != "" {
		t.Fatal("the instance is still there")
	}
	if got := r.lastReason("node1", "one"); got != "" {
		t.Fatalf("the reason file of an instance that is gone: %q", got)
	}
}

func TestRemoveFailures(t *testing.T) {
	r := newRig(t)
	r.create("one", true)
	r.failOn("node1", "stop", false)
	r.refuses("OpExecError", "Could not shutdown instance one on node node1: the driver is broken on purpose", "OP_INSTANCE_REMOVE", one(nil))
	r.failOn("node1", "remove", false)
	r.refuses("OpExecError", "Can't remove instance's disks: the driver is broken on purpose", "OP_INSTANCE_REMOVE", one(nil))
	r.must("null", "OP_INSTANCE_REMOVE", one(params{"ignore_failures": true}))
	r.logged("Warning: can't remove instance's disks: the driver is broken on purpose")
	if r.keeper.Snapshot().InstanceNamed("one") != nil {
		t.Fatal("the instance is still in the inventory")
	}
}
