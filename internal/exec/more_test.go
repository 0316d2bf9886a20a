package exec

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/hypervisor"
	"github.com/drover-project/drover/internal/testkit"
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
	r.must("null", "OP_INSTANCE_REINSTALL", one(params{"os_type": "noop", "osparams": params{"a": "b"}}))
	if i := r.instance("one"); i.OS != "noop" || i.OSParams["a"] != "b" {
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
func TestConformanceOfInstanceData(t *testing.T) {
	data := testkit.ReadConformance(t, "golden", "rapi", "instance_info_job.json")
	var recorded struct {
		Response struct {
			Results []map[string]map[string]any `json:"opresult"`
		}
	}
	if err := json.Unmarshal(data, &recorded); err != nil {
		t.Fatal(err)
	}
	r := newRig(t)
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
		if a, b := sortedKeys(got["one"]), sortedKeys(want); !slices.Equal(a, b) {
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

func TestVerifySubmitsJobs(t *testing.T) {
	r := newRig(t)
	r.must("null", "OP_GROUP_ADD", params{"group_name": "rack2"})
	r.must(`{"jobs":[[true,101],[true,102],[true,103]]}`, "OP_CLUSTER_VERIFY", params{"verbose": true, "ignore_errors": []any{"ENODERPC"}})
	second := r.submitted[2][0]
	if second.Str("group_name") != "rack2" || second.Depends[0].Job != -2 || !second.Bool("verbose") || len(second.Strings("ignore_errors")) != 1 {
		t.Fatalf("submitted %+v", second)
	}
	r.must(`{"jobs":[[true,104]]}`, "OP_CLUSTER_VERIFY", params{"group_name": "rack2"})
	r.must(`{"jobs":[[true,105],[true,106]]}`, "OP_CLUSTER_VERIFY_DISKS", nil)
	r.must(`{"jobs":[[true,107]]}`, "OP_CLUSTER_VERIFY_DISKS", params{"group_name": "rack2"})
	for _, id := range []string{"OP_CLUSTER_VERIFY", "OP_CLUSTER_VERIFY_DISKS"} {
		r.refuses("OpPrereqError", "Node group 'nosuch' not known", id, params{"group_name": "nosuch"})
	}
}

func TestVerifyConfig(t *testing.T) {
	r := newRig(t)
	r.create("one", false)
	r.must("true", "OP_CLUSTER_VERIFY_CONFIG", nil)
	r.logged("* Verifying cluster config", "* Verifying hypervisor parameters", "* Verifying all nodes belong to an existing group")
	r.setNode("node1", func(n *cluster.Node) { n.Group = "lost" })
	r.update(func(snap *cluster.Snapshot) []cluster.Change {
		i := snap.InstanceNamed("one").Clone()
		i.PrimaryNode, i.HVParams, i.NICs[0].Network = "gone", cluster.Params{"x": true}, "away"
		return []cluster.Change{cluster.Put(i)}
	})
	r.must("false", "OP_CLUSTER_VERIFY_CONFIG", params{"error_codes": true, "ignore_errors": []any{"ECLUSTERDANGLINGNODES"}})
	r.logged("* Verifying cluster config", "  - ERROR:ECLUSTERDANGLINGINST:instance:one:its node gone does not exist",
		"  - ERROR:ECLUSTERCFG:instance:one:the network away of interface 0 does not exist", "* Verifying hypervisor parameters",
		"  - ERROR:ECLUSTERCFG:instance:one:hypervisor fake: Unknown parameter 'x'", "* Verifying all nodes belong to an existing group",
		"  - WARNING:ECLUSTERDANGLINGNODES:node:node1:the node's group lost does not exist")
}

func TestVerifyGroup(t *testing.T) {
	r := newRig(t, "node1", "node2", "node3")
	r.create("one", true)
	verify := params{"group_name": "default"}
	r.must("true", "OP_CLUSTER_VERIFY_GROUP", verify)
	begin := []string{"* Verifying group 'default'", "* Gathering data (3 nodes)", "* Verifying node status"}
	notes := []string{"* Verifying instance status", "* Other Notes", "  - NOTICE: 1 non-redundant instance(s) found."}
	r.logged(slices.Concat(begin, notes)...)
	a, err := r.fleet.Agent("node1")
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Stop(t.Context(), "one", hypervisor.Stop{}, nil); err != nil {
		t.Fatal(err)
	}
	if err := a.Start(t.Context(), hypervisor.Spec{Name: "stranger"}, nil); err != nil {
		t.Fatal(err)
	}
	r.down["node2"] = true
	r.setNode("node3", func(n *cluster.Node) { n.Offline = true })
	r.must("false", "OP_CLUSTER_VERIFY_GROUP", verify)
	r.logged(slices.Concat(begin, []string{"  - ERROR: node node2: while contacting node: Can't contact node node2: node node2 does not answer",
		"* Verifying instance status", "  - ERROR: node node1: unknown instance stranger on this node",
		"  - ERROR: instance one: instance not running on its primary node node1", "* Other Notes",
		"  - NOTICE: 1 non-redundant instance(s) found.", "  - NOTICE: 1 offline node(s) found."})...)
	r.must("null", "OP_GROUP_ADD", params{"group_name": "rack2"})
	r.must("true", "OP_CLUSTER_VERIFY_GROUP", params{"group_name": "rack2"})
	r.logged("* Verifying group 'rack2'", "* Empty node group, skipping verification")
}

func TestVerifyDisks(t *testing.T) {
	r := newRig(t, "node1", "node2")
	r.create("one", false)
	r.must(`[{},[],{}]`, "OP_GROUP_VERIFY_DISKS", params{"group_name": "default"})
	a, err := r.fleet.Agent("node1")
	if err != nil {
		t.Fatal(err)
	}
	disk := r.instance("one").Disks[0].UUID
	if err := a.Drop(t.Context(), "one", []string{disk}); err != nil {
		t.Fatal(err)
	}
	snap := r.keeper.Snapshot()
	r.down["node2"] = true
	r.must(`[{"`+snap.NodeNamed("node2").UUID+`":"Can't contact node node2: node node2 does not answer"},[],{"one":[["`+
		snap.NodeNamed("node1").UUID+`","`+disk+`"]]}]`, "OP_GROUP_VERIFY_DISKS", params{"group_name": "default"})
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

func TestClusterRenameAndRedistribute(t *testing.T) {
	r := newRig(t)
	r.must("null", "OP_CLUSTER_REDIST_CONF", nil)
	r.must(`"new.example"`, "OP_CLUSTER_RENAME", params{"name": "New.example"})
	r.refuses("OpPrereqError", "Neither the name nor the IP address of the cluster has changed", "OP_CLUSTER_RENAME", params{"name": "new.example"})
}

func TestTagsSearch(t *testing.T) {
	r := newRig(t)
	r.create("one", false)
	for _, p := range []params{{"kind": "cluster"}, {"kind": "instance", "name": "one"}, {"kind": "node", "name": "node1"}} {
		p["tags"] = []any{"env:prod", "x"}
		r.must("null", "OP_TAGS_SET", p)
	}
	r.must(`[["/cluster","env:prod"],["/instances/one","env:prod"],["/nodes/node1","env:prod"]]`, "OP_TAGS_SEARCH", params{"pattern": "^env:"})
	r.must(`[]`, "OP_TAGS_SEARCH", params{"pattern": "nothing"})
	if _, err := r.run("OP_TAGS_SEARCH", params{"pattern": "("}); err == nil {
		t.Fatal("a broken pattern was taken")
	}
}

func TestConsole(t *testing.T) {
	r := newRig(t)
	r.create("one", false)
	r.refuses("OpPrereqError", "Instance one is not running (state down)", "OP_INSTANCE_CONSOLE", one(nil))
	r.must("null", "OP_INSTANCE_STARTUP", one(nil))
	r.must(`{"instance":"one","kind":"msg","message":"Console not available for fake hypervisor"}`, "OP_INSTANCE_CONSOLE", one(nil))
}
