package exec

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/hypervisor"
	"github.com/drover-project/drover/internal/testkit"
	"github.com/drover-project/drover/internal/testkit/stores"
)

func TestRename(t *testing.T) {
	r := newRig(t)
	r.create("one", true)
	rename := one(params{"new_name": "Two.example."})
	r.refuses("OpPrereqError", "Instance 'one' is marked to be up, cannot rename", "OP_INSTANCE_RENAME", rename)
	r.must("null", "OP_INSTANCE_SHUTDOWN", one(nil))
	r.failOn("node1", "rename", false)
	r.refuses("OpExecError", "Could not rename instance one on node node1: the driver is broken on purpose", "OP_INSTANCE_RENAME", rename)
	r.failOn("node1", "", false)
	r.must(`"two.example"`, "OP_INSTANCE_RENAME", rename)
	if r.instance("two.example").Disks == nil || r.state("node1", "two.example") != hypervisor.Stopped || r.state("node1", "one") != "" {
		t.Fatal("the instance was not renamed on its node")
	}
	r.must("null", "OP_INSTANCE_STARTUP", params{"instance_name": "two"})
	r.create("one", false)
	r.refuses("OpPrereqError", "Instance 'two.example' is already in the cluster", "OP_INSTANCE_RENAME", rename)
}

func TestReinstallAndGrow(t *testing.T) {
	r := newRig(t)
	r.create("one", true)
	r.refuses("OpPrereqError", "Instance 'one' is marked to be up, cannot reinstall", "OP_INSTANCE_REINSTALL", one(nil))
	r.must("null", "OP_INSTANCE_SHUTDOWN", one(nil))
	r.refuses("OpPrereqError", "OS 'nosuch' not in supported OS list for node node1", "OP_INSTANCE_REINSTALL", one(params{"os_type": "nosuch"}))
	r.must("null", "OP_INSTANCE_REINSTALL", one(params{"os_type": "noop", "osparams": params{"test_param": "b"}}))
	if i := r.instance("one"); i.OS != "noop" || i.OSParams["test_param"] != "b" {
		t.Fatalf("instance is %+v", i)
	}
	r.must("null", "OP_INSTANCE_GROW_DISK", one(params{"disk": 0, "amount": 16}))
	r.logged("Growing disk 0 of instance 'one' by 16M to 24M")
	r.must("null", "OP_INSTANCE_GROW_DISK", one(params{"disk": 0, "amount": 32, "absolute": true}))
	if got := r.instance("one").Disks[0].Size; got != 32 {
		t.Fatalf("size is %d", got)
	}
	r.refuses("OpPrereqError", "Requested size (8M) is smaller than current disk size (32M)", "OP_INSTANCE_GROW_DISK", one(params{"disk": 0, "amount": 8, "absolute": true}))
	r.refuses("OpPrereqError", "Invalid disk index 1: the instance has 1 disks", "OP_INSTANCE_GROW_DISK", one(params{"disk": 1, "amount": 8}))
	r.failOn("node1", "prepare", false)
	r.refuses("OpExecError", "Grow request failed on node node1: the driver is broken on purpose", "OP_INSTANCE_GROW_DISK", one(params{"disk": 0, "amount": 8}))
}

// The answer has the keys that a recorded one of the reference has.
func TestConformanceOfInstanceData(t *testing.T) { stores.Each(t, instanceDataConforms) }

func instanceDataConforms(t *testing.T, url string) {
	t.Helper()
	data := testkit.ReadConformance(t, "golden", "rapi", "instance_info_job.json")
	var recorded struct {
		Response struct {
			Results []map[string]map[string]any `json:"opresult"`
		}
	}
	if err := json.Unmarshal(data, &recorded); err != nil {
		t.Fatal(err)
	}
	r := newRigOn(t, url)
	r.create("one", true)
	for _, static := range []bool{true, false} {
		text, err := r.run("OP_INSTANCE_QUERY_DATA", params{"instances": []any{"one"}, "static": static})
		if err != nil {
			t.Fatal(err)
		}
		var got map[string]map[string]any
		if err := json.Unmarshal([]byte(text), &got); err != nil {
			t.Fatal(err)
		}
		want := recorded.Response.Results[0]["rapi1.gntpeer.example"]
		if a, b := slices.Sorted(maps.Keys(got["one"])), slices.Sorted(maps.Keys(want)); !slices.Equal(a, b) {
			t.Fatalf("keys are\n%v\nwant\n%v", a, b)
		}
		if nics := got["one"]["nics"].([]any); len(nics[0].([]any)) != len(want["nics"].([]any)[0].([]any)) {
			t.Errorf("an interface is %v", nics[0])
		}
		if state := got["one"]["run_state"]; (state == nil) != static {
			t.Errorf("static %v: run state is %v", static, state)
		}
		t.Logf("static %v: %d keys passed", static, len(want))
	}
	r.refuses("OpPrereqError", "Instance 'nosuch' not known", "OP_INSTANCE_QUERY_DATA", params{"instances": []any{"nosuch"}})
	r.down["node1"] = true
	text, err := r.run("OP_INSTANCE_QUERY_DATA", nil)
	if err != nil || !strings.Contains(text, `"run_state":null`) {
		t.Fatalf("with the node down: %s, %v", text, err)
	}
}

func TestConsole(t *testing.T) {
	r := newRig(t)
	r.create("one", false)
	r.refuses("OpPrereqError", "Instance one is not running (state ADMIN_down)", "OP_INSTANCE_CONSOLE", one(nil))
	r.must("null", "OP_INSTANCE_STARTUP", one(nil))
	r.must(`{"instance":"one","kind":"msg","message":"Console not available for fake hypervisor"}`, "OP_INSTANCE_CONSOLE", one(nil))
}

func TestRenameToTheSameName(t *testing.T) {
	r := newRig(t)
	r.create("one", false)
	r.must(`"one"`, "OP_INSTANCE_RENAME", one(params{"new_name": "ONE"}))
	r.refuses("OpPrereqError", "IP address check requires a name check", "OP_INSTANCE_RENAME", one(params{"new_name": "two", "name_check": false}))
	r.refuses("OpPrereqError", "Invalid hostname 'un known' (1 to 255 of: letters a-z, digits, dot, dash, underscore; no empty label)", "OP_INSTANCE_RENAME", params{"instance_name": "one", "new_name": "un known", "name_check": true})
	r.refuses("OpPrereqError", "The given name (unknown) does not resolve: no such host (name_check: false takes any name)",
		"OP_INSTANCE_RENAME", one(params{"new_name": "unknown"}))
	r.must(`"unknown"`, "OP_INSTANCE_RENAME", one(params{"new_name": "unknown", "name_check": false, "ip_check": false}))
}

func TestNamesAreFoundAsStored(t *testing.T) {
	r := newRig(t)
	r.create("One.Example.", false)
	for _, name := range []string{"ONE.example", "one.EXAMPLE.", "One", "one"} {
		r.must("null", "OP_INSTANCE_STARTUP", params{"instance_name": name})
		r.must("null", "OP_TAGS_SET", params{"kind": "instance", "name": name, "tags": []any{"x"}})
	}
	r.refuses("OpPrereqError", "Instance 'Two' not known", "OP_INSTANCE_STARTUP", params{"instance_name": "Two"})
}

func TestQueryDataTellsOfNetworks(t *testing.T) {
	r := newRig(t)
	uuid := r.network("net", "192.0.2.0/29", "192.0.2.1")
	r.must(`["node1"]`, "OP_INSTANCE_CREATE", creating(params{"nics": []any{params{"network": "net", "ip": "pool"}, params{}}, "start": false}))
	got, err := r.run("OP_INSTANCE_QUERY_DATA", params{"instances": []any{"one"}})
	if err != nil {
		t.Fatal(err)
	}
	var data map[string]struct {
		NICs [][]any `json:"nics"`
	}
	if err := json.Unmarshal([]byte(got), &data); err != nil {
		t.Fatal(err)
	}
	network, _ := data["one"].NICs[0][8].(map[string]any)
	if network["name"] != "net" || network["uuid"] != uuid || network["gateway"] != "192.0.2.1" || network["network6"] != nil ||
		network["reservations"] != "00100000" || data["one"].NICs[1][8] != nil {
		t.Fatalf("networks are %v", data)
	}
}
