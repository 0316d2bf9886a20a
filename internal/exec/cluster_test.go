package exec

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/testkit"
	"github.com/drover-project/drover/internal/testkit/stores"
)

// The answer has the keys that a recorded one of the reference has, and values
// of the same kinds.
func TestConformanceOfClusterInfo(t *testing.T) { stores.Each(t, clusterInfoConforms) }

func clusterInfoConforms(t *testing.T, url string) {
	t.Helper()
	data := testkit.ReadConformance(t, "golden", "luxi", "QueryClusterInfo.json")
	var recorded struct {
		Response struct{ Result map[string]any }
	}
	if err := json.Unmarshal(data, &recorded); err != nil {
		t.Fatal(err)
	}
	want := recorded.Response.Result
	r := newRigOn(t, url)
	text, err := r.run("OP_CLUSTER_QUERY", nil)
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal([]byte(text), &got); err != nil {
		t.Fatal(err)
	}
	if a, b := slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)); !slices.Equal(a, b) {
		t.Fatalf("keys are\n%v\nwant\n%v", a, b)
	}
	passed := 0
	for key, value := range want {
		if a, b := kindOf(got[key]), kindOf(value); a != b {
			t.Errorf("%s is %s, want %s", key, a, b)
			continue
		}
		passed++
	}
	t.Logf("%d of %d keys passed", passed, len(want))
}

func kindOf(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "bool"
	case float64:
		return "number"
	case string:
		return "text"
	case []any:
		return "list"
	}
	return "object"
}

func TestClusterConfigQuery(t *testing.T) {
	r := newRig(t)
	r.must(`["cluster.example","node1",false,null,null]`, "OP_CLUSTER_CONFIG_QUERY",
		params{"output_fields": []any{"cluster_name", "master_node", "drain_flag", "watcher_pause", "volume_group_name"}})
	r.refuses("OpPrereqError", "Unknown output fields selected: nosuch", "OP_CLUSTER_CONFIG_QUERY", params{"output_fields": []any{"nosuch"}})
}

func TestClusterModify(t *testing.T) {
	r := newRig(t)
	r.create("one", false)
	set := func(p params) { r.must("null", "OP_CLUSTER_SET_PARAMS", p) }
	set(params{"candidate_pool_size": 5, "max_running_jobs": 7, "maintain_node_health": true, "vg_name": "xenvg", "mac_prefix": "AA:00:09"})
	set(params{"enabled_hypervisors": []any{"fake", "kvm"}, "enabled_disk_templates": []any{"file"}, "reserved_lvs": []any{"a"}})
	set(params{"hvparams": params{"kvm": params{"acpi": "no"}}, "beparams": params{"memory": "1g"}, "nicparams": params{"link": "br5"},
		"ndparams": params{"ssh_port": 23}, "osparams": params{"noop": params{"test_param": "b"}},
		"ipolicy": params{"vcpu-ratio": 4, "std": params{"cpu-count": 2}}, "hv_state": params{}, "disk_state": params{}})
	set(params{"diskparams": params{"drbd": params{"resync-rate": "1000"}}, "os_hvp": params{"noop": params{"kvm": params{"acpi": false}}},
		"uid_pool": []any{[]any{5, 9}}, "instance_communication_network": ""})
	set(params{"add_uids": []any{[]any{1, 3}}, "remove_uids": []any{[]any{5, 9}}, "osparams": params{"unknown": params{"x": "y"}}})
	r.logged(" - INFO: OS unknown not found on node node1, validation skipped")
	set(params{"candidate_pool_size": 5}) // all are checked at each change
	r.logged(" - INFO: OS unknown not found on node node1, validation skipped")
	set(params{"hidden_os": []any{[]any{"add", "b"}, []any{"add", "a"}}, "enabled_data_collectors": params{"drbd": false},
		"data_collector_interval": params{"drbd": 9}})
	set(params{"hidden_os": []any{[]any{"remove", "b"}, []any{"remove", "b"}, []any{"add", "a"}}, "blacklisted_os": []any{[]any{"remove", "c"}}})
	r.logged(" - INFO: OS unknown not found on node node1, validation skipped", "OS b not found in hidden OS list, ignoring", "OS a already in hidden OS list, ignoring", "OS c not found in blacklisted OS list, ignoring")
	c := r.keeper.Snapshot().Cluster()
	be := c.BEParams[cluster.DefaultProfile]
	checks := map[string]bool{
		"numbers":    c.PoolSize == 5 && c.MaxRunningJobs == 7 && c.MaintainHealth && c.VolumeGroup == "xenvg" && c.MACPrefix == "aa:00:09",
		"lists":      len(c.EnabledHypervisors) == 2 && len(c.EnabledDiskTemplates) == 1 && c.ReservedLVs[0] == "a" && slices.Equal(c.HiddenOS, []string{"a"}),
		"parameters": c.HVParams["kvm"]["acpi"] == false && be["minmem"] == int64(1024) && be["maxmem"] == int64(1024) && be["vcpus"] == int64(1),
		"others": c.NICParams["default"]["link"] == "br5" && c.NDParams["ssh_port"] == int64(23) && c.OSParams["noop"]["test_param"] == "b" &&
			c.IPolicy["vcpu-ratio"] == int64(4) && c.IPolicy["minmax"] != nil,
		"tables": c.DiskParams["drbd"]["resync-rate"] == int64(1000) && c.OSHVP["noop"]["kvm"]["acpi"] == false && len(c.UIDPool) == 1 &&
			c.UIDPool[0] == [2]int64{1, 3},
		"standard":   c.IPolicy["std"].(map[string]any)["cpu-count"] == int64(2) && c.IPolicy["std"].(map[string]any)["nic-count"] == int64(1),
		"collectors": c.Collectors["drbd"] == cluster.Collector{Interval: 9} && c.Collectors["lv"].Active,
	}
	for what, ok := range checks {
		if !ok {
			t.Errorf("%s were not set: %+v", what, c)
		}
	}
}

func TestClusterModifyRefusals(t *testing.T) {
	r := newRig(t)
	r.create("one", false)
	cases := []struct {
		text string
		p    params
	}{
		{"Parameter 'hv_state' of the cluster can't be changed yet", params{"hv_state": params{"fake": params{}}}},
		{"CIDR netmask (99) not valid (1 to 32 bits)", params{"master_netmask": 99}},
		{"Invalid default iallocator script 'nosuch' specified (hail, which is placement, is there; and the programs in the directories of the setting iallocators)", params{"default_iallocator": "nosuch"}},
		{"The tools 'bad name' contain illegal characters: only alphanumeric values, dashes, and underscores are allowed",
			params{"compression_tools": []any{"gzip", "bad name"}}},
		{"Install image must be an absolute path or a URL", params{"install_image": "image"}},
		{"User-ID range to be removed is not found in the current user-ID pool: (1, 2)", params{"remove_uids": []any{[]any{1, 2}}}},
		{"Lower user-ID boundary 5 is higher than the higher boundary 2", params{"add_uids": []any{[]any{5, 2}}}},
		{"Invalid instance policy: Invalid disk template(s) nosuch", params{"ipolicy": params{"disk-templates": []any{"nosuch"}}}},
		{"Invalid instance policy: Empty minmax specifications", params{"ipolicy": params{"minmax": []any{}}}},
		{"Invalid instance policy: Missing instance specs parameters for min: memory-size, cpu-count, disk-count, disk-size, nic-count, spindle-use",
			params{"ipolicy": params{"minmax": []any{params{"min": params{}, "max": params{}}}}}},
		{"Invalid instance policy: Invalid std specifications: they lie outside all bounds", params{"ipolicy": params{"std": params{"memory-size": 1}}}},
		{"Invalid instance policy: a ratio must be a number above 0, got x", params{"ipolicy": params{"vcpu-ratio": "x"}}},
		{"Invalid MAC address prefix 'x'", params{"mac_prefix": "x"}},
		{"Enabled hypervisors list must contain at least one member", params{"enabled_hypervisors": []any{}}},
		{"Cannot disable hypervisor 'fake', because there is at least one instance using it: one", params{"enabled_hypervisors": []any{"kvm"}}},
		{"Cannot disable disk template 'file', because there is at least one instance using it: one", params{"enabled_disk_templates": []any{"plain"}}},
		{"Unknown hypervisor 'x'", params{"hvparams": params{"x": params{}}}},
		{"parameter 'vcpus' of the cluster can't be set to its default", params{"beparams": params{"vcpus": "default"}}},
		{"Unknown data collector 'x'", params{"enabled_data_collectors": params{"x": true}}},
		{"Invalid instance policy: Invalid keys in ipolicy: x", params{"ipolicy": params{"x": 1}}},
	}
	for _, c := range cases {
		c.p["max_running_jobs"] = 3 // must not be set either
		r.refuses("OpPrereqError", c.text, "OP_CLUSTER_SET_PARAMS", c.p)
	}
	for text, p := range map[string]params{
		"Unknown parameter 'nosuch'":                                    {"diskparams": params{"drbd": params{"nosuch": 1}}},
		"'resync-rate' (value x) is not a valid integer":                {"diskparams": params{"drbd": params{"resync-rate": "x"}}},
		"Unknown parameter 'acpii' (did you mean \"acpi\"?)":            {"os_hvp": params{"noop": params{"kvm": params{"acpii": 1}}}},
		"'vcpus' (value many) is not a valid integer":                   {"beparams": params{"vcpus": "many"}},
		"'minmem' (value x) is not a valid size. error: Invalid format": {"beparams": params{"minmem": "x"}},
	} {
		r.refuses("TypeEnforcementError", text, "OP_CLUSTER_SET_PARAMS", p)
	}
	r.refuses("OpExecError", "OS Parameters validation failed on node node1: The following parameters are not supported by the OS noop: nosuch",
		"OP_CLUSTER_SET_PARAMS", params{"osparams": params{"noop": params{"nosuch": "1"}}})
}

func TestOSDiagnose(t *testing.T) {
	r := newRig(t, "node1", "node2")
	r.must(`[["noop",["default"]]]`, "OP_OS_DIAGNOSE", params{"output_fields": []any{"name", "variants"}})
	r.must(`[]`, "OP_OS_DIAGNOSE", params{"output_fields": []any{"name"}, "names": []any{"other"}})
	r.must(`[["noop",true,true]]`, "OP_OS_DIAGNOSE", params{"output_fields": []any{"name", "valid", "valid"}, "names": []any{"noop"}})
	r.refuses("OpPrereqError", "Unknown output fields selected: x", "OP_OS_DIAGNOSE", params{"output_fields": []any{"x"}})

	if err := os.MkdirAll(filepath.Join(r.dir, "node2", "os", "partial"), 0o750); err != nil {
		t.Fatal(err)
	}
	r.must(`[["noop"]]`, "OP_OS_DIAGNOSE", params{"output_fields": []any{"name"}})
	r.must(`[["noop",true],["partial",false]]`, "OP_OS_DIAGNOSE", params{"output_fields": []any{"name", "valid"}})
	r.must("null", "OP_CLUSTER_SET_PARAMS", params{"hidden_os": []any{[]any{"add", "noop"}}})
	r.must(`[]`, "OP_OS_DIAGNOSE", params{"output_fields": []any{"name"}})
	r.must(`[["noop",true]]`, "OP_OS_DIAGNOSE", params{"output_fields": []any{"name", "hidden"}})
	r.must("null", "OP_CLUSTER_SET_PARAMS", params{"hidden_os": []any{[]any{"remove", "noop"}}})

	r.setNode("node2", func(n *cluster.Node) { n.Offline = true })
	r.must(`[["noop"]]`, "OP_OS_DIAGNOSE", params{"output_fields": []any{"name"}})
	r.down["node1"] = true
	r.must(`[]`, "OP_OS_DIAGNOSE", params{"output_fields": []any{"name"}})
}

func TestQuery(t *testing.T) {
	r := newRig(t, "node1", "node2")
	r.must(`{"fields":[{"name":"name","title":"Node","kind":"text","doc":"Name of the node"}],"data":[[[0,"node2"]]]}`, "OP_QUERY",
		params{"what": "node", "fields": []any{"name"}, "qfilter": []any{"=", "name", "node2"}})
	r.must(`{"fields":[{"name":"name","title":"Group","kind":"text","doc":"Name of the group"}]}`, "OP_QUERY_FIELDS",
		params{"what": "group", "fields": []any{"name"}})
	if _, err := r.run("OP_QUERY", params{"what": "node", "fields": []any{"name"}, "qfilter": []any{"~", "name"}}); !fault.Is(err, fault.Invalid) {
		t.Fatalf("a bad filter: %v", err)
	}
}

func TestClusterRename(t *testing.T) {
	r := newRig(t)
	r.must(`"new.example"`, "OP_CLUSTER_RENAME", params{"name": "New.example"})
	r.refuses("OpPrereqError", "Neither the name nor the IP address of the cluster has changed", "OP_CLUSTER_RENAME", params{"name": "new.example"})
}
