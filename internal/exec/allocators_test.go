package exec

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/placement"
)

// oracle is the only program that chooses nodes: it says what it is told to, and notes what it is asked.
type oracle struct {
	says    string
	err     error
	asked   map[string]any
	options []string
}

func (*oracle) Has(name string) bool { return name == "oracle" }

func (o *oracle) Run(_ context.Context, _ string, options []string, input []byte) ([]byte, error) {
	o.options, o.asked = options, nil
	if err := json.Unmarshal(input, &o.asked); err != nil {
		return nil, err
	}
	return []byte(o.says), o.err
}

func withOracle(t *testing.T) (*rig, *oracle) {
	t.Helper()
	r, o := newRig(t, "node1", "node2", "node3"), &oracle{}
	r.all = All(r.source, Names{Resolve: resolve, Answers: answers, Allocators: o})
	return r, o
}

func placeless(more params) params {
	p := params{"instance_name": "new", "mode": "create", "disk_template": "drbd", "disks": []any{params{"size": 8}}, "nics": []any{}, "os_type": "noop+default"}
	maps.Copy(p, more)
	return p
}

// A program chooses where the opcode names it, or the cluster does; the decision says that it did, and placement what it thinks of that.
func TestProgramsChooseNodes(t *testing.T) {
	r, o := withOracle(t)
	o.says = `{"success": true, "info": "the stars say so", "result": ["node3", "node1"]}`
	r.network("net", "192.0.2.0/28", "")
	env := r.env(r.opcode("OP_INSTANCE_CREATE", placeless(params{"iallocator": "oracle", "nics": []any{params{"network": "net", "ip": "pool"}}})))
	var decision *placement.Decision
	env.Placed = func(text json.RawMessage) { decision, _ = placement.Decode(text) }
	if _, err := r.all.Run(t.Context(), env); err != nil {
		t.Fatal(err)
	}
	if got := r.at("new"); got != "node3 node1" {
		t.Errorf("it is at %s", got)
	}
	if !slices.Contains(r.log, " - INFO: Selected nodes for instance new via iallocator oracle: node3, node1 (the stars say so)") {
		t.Errorf("said is %q", r.log)
	}
	if decision == nil || decision.Node != "node3" || decision.Why != "iallocator oracle chose it: the stars say so" || len(decision.Nodes) != 1 {
		t.Errorf("decided is %+v", decision)
	}
	request, _ := o.asked["request"].(map[string]any)
	if request["type"] != "allocate" || request["name"] != "new" || request["required_nodes"] != 2.0 || request["disk_space_total"] != 136.0 || request["memory"] != 128.0 {
		t.Errorf("asked is %v", request)
	}
	if nic := request["nics"].([]any)[0].(map[string]any); nic["network"] != r.keeper.Snapshot().NetworkNamed("net").UUID {
		t.Errorf("its interface is %v", nic)
	}
	r.must("null", "OP_CLUSTER_SET_PARAMS", params{"default_iallocator": "oracle", "default_iallocator_params": params{"seed": 5, "quick": nil}})
	o.says = `{"success": true, "info": "", "nodes": ["node2"]}`
	r.must(`["node2"]`, "OP_INSTANCE_CREATE", placeless(params{"instance_name": "other", "disk_template": "file"}))
	if !slices.Equal(o.options, []string{"--quick", "--seed=5"}) {
		t.Errorf("options are %q", o.options)
	}
	r.refuses("OpPrereqError", "Invalid default iallocator script 'nosuch' specified (hail, which is placement, is there; and the programs in the directories of the setting iallocators)",
		"OP_CLUSTER_SET_PARAMS", params{"default_iallocator": "nosuch"})
}

// A cluster's default program that is gone is missed, and nothing else chooses in its place.
func TestADefaultProgramThatIsGone(t *testing.T) {
	r, _ := withOracle(t)
	r.must("null", "OP_CLUSTER_SET_PARAMS", params{"default_iallocator": "oracle"})
	r.all = All(r.source, Names{Resolve: resolve, Answers: answers})
	r.refuses("OpExecError", "Failure while running the iallocator script: iallocator module 'oracle' not found in the search path (it is the cluster's default; the setting iallocators says where programs are, and iallocator=hail is placement)",
		"OP_INSTANCE_CREATE", placeless(nil))
	r.must(`["node1"]`, "OP_INSTANCE_CREATE", placeless(params{"iallocator": "hail", "disk_template": "file"}))
}

// Whatever a program says that is no answer is told, and nothing is made.
func TestAnswersThatAreNone(t *testing.T) {
	r, o := withOracle(t)
	for says, want := range map[string]string{
		"": "Can't parse iallocator results", "rubbish": "Can't parse iallocator results", "[]": "Can't parse iallocator results", "null": "Can't parse iallocator results: not a dict",
		`{"success": true, "info": ""}`:                                              "missing key 'result'",
		`{"success": 1, "info": "", "result": []}`:                                   "Can't parse iallocator results: success",
		`{"success": true, "success": false, "info": "", "result": []}`:              "Can't parse iallocator results",
		`{"success": true, "info": "", "result": {}}`:                                "iallocator returned invalid result, expected a list of node names, got {}",
		`{"success": true, "info": "", "result": [1, 2]}`:                            "expected a list of node names",
		`{"success": true, "info": "", "result": ["node1"]}`:                         "iallocator returned invalid number of nodes (1), required 2",
		`{"success": true, "info": "", "result": ["node1", "node9"]}`:                "iallocator returned a node that there is not: node9",
		`{"success": true, "info": "", "result": ["node1", "node1"]}`:                "iallocator returned the node node1 twice",
		`{"success": false, "info": "no room", "result": []}`:                        "Can't compute nodes using iallocator 'oracle': no room",
		`{"success": false, "info": "` + strings.Repeat("x", 5000) + `","result":0}`: "Can't compute nodes using iallocator 'oracle': xxx",
	} {
		o.says = says
		before := r.dump()
		_, err := r.run("OP_INSTANCE_CREATE", placeless(params{"iallocator": "oracle"}))
		if err == nil || !strings.Contains(err.Error(), want) || len(err.Error()) > 1000 || r.dump() != before || len(r.changed) > 0 {
			t.Errorf("%.200q comes to %.1100v", says, err)
		}
	}
	o.says, o.err = "", fault.New(fault.Failed, "iallocator module 'oracle' failed: it took longer than 1m0s")
	r.refuses("OpExecError", "Failure while running the iallocator script: iallocator module 'oracle' failed: it took longer than 1m0s", "OP_INSTANCE_CREATE", placeless(params{"iallocator": "oracle"}))
	o.says, o.err = `{"success": true, "info": "", "result": ["node1", "node2"]}`, nil
	r.update(func(snap *cluster.Snapshot) []cluster.Change {
		other := &cluster.Instance{Meta: cluster.NewMeta("other", 1), Name: "other", PrimaryNode: snap.NodeNamed("node1").UUID, AdminState: cluster.AdminDown, Hypervisor: "fake"}
		other.Tags = cluster.NewTags("drover:placed:apart:g")
		return []cluster.Change{cluster.Put(other)}
	})
	r.refuses("OpPrereqError", "iallocator oracle chose node node1 for the instance: it has as many as may be on one node of drover:placed:apart:g, which other has (programs do not know the tags drover:placed:; placement, which chooses where there is no program, does)", "OP_INSTANCE_CREATE",
		placeless(params{"iallocator": "oracle", "tags": []any{"drover:placed:apart:g"}}))
	r.must(`[["master_candidate","False"],["drained","True"]]`, "OP_NODE_SET_PARAMS", params{"node_name": "node2", "drained": true})
	r.refuses("OpPrereqError", "Can't use drained node: node2", "OP_INSTANCE_CREATE", placeless(params{"iallocator": "oracle"}))
}

func TestAllocatorIsTested(t *testing.T) {
	r, o := withOracle(t)
	r.mirrored("pair", true)
	about := func(more params) params {
		p := params{"direction": "out", "iallocator": "oracle", "mode": "allocate", "name": "x", "memory": 128, "vcpus": 1, "os": "noop", "disk_template": "drbd",
			"disks": []any{params{"size": 64, "mode": "rw"}}, "nics": []any{params{"mac": "00:11:22:33:44:55"}}}
		maps.Copy(p, more)
		return p
	}
	o.says = "anything at all"
	for mode, want := range map[string]string{
		"allocate":       `{"disk_space_total":192,"disk_template":"drbd","disks":[{"dev_type":"drbd","mode":"rw","size":64}],"group_name":null,"hypervisor":"fake","memory":128,"name":"x","nics":[{"ip":null,"mac":"00:11:22:33:44:55"}],"os":"noop","required_nodes":2,"spindle_use":1,"tags":[],"type":"allocate","vcpus":1}`,
		"relocate":       `{"disk_space_total":136,"name":"pair","relocate_from":["node2"],"required_nodes":1,"type":"relocate"}`,
		"node-evacuate":  `{"evac_mode":"all","instances":["pair"],"type":"node-evacuate"}`,
		"change-group":   `{"instances":["pair"],"target_groups":["` + r.keeper.Snapshot().GroupNamed("default").UUID + `"],"type":"change-group"}`,
		"multi-allocate": "",
	} {
		p := about(params{"mode": mode, "instances": []any{"pair"}, "evac_mode": "all", "target_groups": []any{"default"}, "count": 2})
		if mode == "relocate" {
			p["name"] = "pair"
		}
		r.must(`"anything at all"`, "OP_TEST_ALLOCATOR", p)
		got, err := json.Marshal(o.asked["request"])
		if err != nil || want != "" && string(got) != want {
			t.Errorf("%s asks\n%s\nwant\n%s", mode, got, want)
		}
		p["direction"] = "in"
		shown, err := r.run("OP_TEST_ALLOCATOR", p)
		if err != nil || !strings.Contains(shown, `\"type\":\"`+mode) {
			t.Errorf("%s shows %.300s, %v", mode, shown, err)
		}
	}
	for text, p := range map[string]params{
		"Missing allocator name": {"iallocator": nil}, "Instance 'pair' is already in the cluster": {"name": "pair"},
		"Invalid contents of the 'disks' parameter":        {"disks": []any{params{"size": 64}}},
		"iallocator module 'hail' not found":               {"iallocator": "hail"},
		"Missing instances":                                {"mode": "change-group"},
		"Invalid test allocator mode 'allocate-secondary'": {"mode": "allocate-secondary"},
		"Instance name nosuch not found":                   {"mode": "relocate", "name": "nosuch"},
	} {
		if _, err := r.run("OP_TEST_ALLOCATOR", about(p)); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%v comes to %v", p, err)
		}
	}
}

// The document has of every node, instance and group what the reference's has.
// A number too large is refused before anything is made of it.
func TestAllocatorsAreAskedAboutSoMany(t *testing.T) {
	r := newRig(t)
	r.refusesLike("OpPrereqError", "an allocator is asked about 10000 instances at most", "OP_TEST_ALLOCATOR", params{"direction": "in", "mode": "multi-allocate", "name": "many",
		"count": int64(1) << 40, "disks": []any{}, "nics": []any{}, "memory": 128, "vcpus": 1, "os": "noop", "disk_template": "diskless", "hypervisor": "fake"})
}

func TestDocumentForAllocators(t *testing.T) {
	r, o := withOracle(t)
	r.mirrored("pair", true)
	r.create("still", false)
	r.must("null", "OP_TEST_DELAY", params{"duration": 0.0001})
	if _, err := r.run("OP_TEST_ALLOCATOR", params{"direction": "out", "iallocator": "oracle", "mode": "node-evacuate", "name": "x", "instances": []any{"pair"}, "evac_mode": "all"}); err != nil {
		t.Fatal(err)
	}
	keys := func(v any, path ...string) (names []string) {
		for _, p := range path {
			v = v.(map[string]any)[p]
		}
		for name := range v.(map[string]any) {
			names = append(names, name)
		}
		slices.Sort(names)
		return names
	}
	group := r.keeper.Snapshot().GroupNamed("default").UUID
	for _, c := range []struct {
		want string
		path []string
	}{
		{"cluster_name cluster_tags enabled_hypervisors instances ipolicy nodegroups nodes request version", nil},
		{"alloc_policy ipolicy name networks tags", []string{"nodegroups", group}},
		{"drained free_disk free_memory free_spindles group i_pri_memory i_pri_up_memory master_candidate master_capable ndparams offline primary_ip reserved_cpus reserved_memory secondary_ip tags total_cpus total_disk total_memory total_spindles vm_capable", []string{"nodes", "node1"}},
		{"admin_state disk_space_total disk_template disks disks_active hypervisor memory nics nodes os spindle_use tags vcpus", []string{"instances", "pair"}},
	} {
		if got := strings.Join(keys(o.asked, c.path...), " "); got != c.want {
			t.Errorf("%v has\n%s\nwant\n%s", c.path, got, c.want)
		}
	}
	node := o.asked["nodes"].(map[string]any)["node1"].(map[string]any)
	if node["i_pri_memory"] != 256.0 || node["i_pri_up_memory"] != 128.0 || o.asked["version"] != 2.0 {
		t.Errorf("node1 is %v", node)
	}
	pair := o.asked["instances"].(map[string]any)["pair"].(map[string]any)
	if nodes := fmt.Sprint(pair["nodes"]); nodes != "[node1 node2]" {
		t.Errorf("pair is %v", pair)
	}
}
