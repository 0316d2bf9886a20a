package allocator_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/allocator"
	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/fault"
)

func TestAnAnswerIsReadStrictly(t *testing.T) {
	a, err := allocator.Read([]byte(`{"success": true, "info": "fine", "result": ["a"], "more": 1}`))
	if err != nil || !a.Success || a.Info != "fine" || !reflect.DeepEqual(a.Result, []any{"a"}) {
		t.Errorf("got %+v, %v", a, err)
	}
	if a, err = allocator.Read([]byte(`{"success": true, "info": "", "nodes": ["b"]}`)); err != nil || !reflect.DeepEqual(a.Result, []any{"b"}) {
		t.Errorf("as programs of before have it: %+v, %v", a, err)
	}
	if a, err = allocator.Read([]byte(`{"success": false, "info": "full", "result": null}`)); err != nil || a.Success || a.Result != nil {
		t.Errorf("no result of a failure: %+v, %v", a, err)
	}
	for text, why := range map[string]string{
		``: "", `x`: "", `[]`: "", `null`: "not a dict", `{} {}`: "",
		`{"info": "", "result": []}`:                                          "missing key 'success'",
		`{"success": true, "result": []}`:                                     "missing key 'info'",
		`{"success": true, "info": ""}`:                                       "missing key 'result'",
		`{"success": "true", "info": "", "result": []}`:                       "success",
		`{"success": null, "info": "", "result": []}`:                         "success: null",
		`{"success": true, "info": null, "result": []}`:                       "info: null",
		`{"success": true, "info": 5, "result": []}`:                          "info",
		`{"success": true, "Success": false, "info": "", "Result": []}`:       "missing key 'result'",
		`{"success": true, "success": false, "info": "", "result": ["node"]}`: "",
	} {
		if _, err := allocator.Read([]byte(text)); !fault.Is(err, fault.Failed) || !strings.HasPrefix(err.Error(), "Can't parse iallocator results: "+why) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestNodesAreEachOnceAndThere(t *testing.T) {
	there := func(name string) bool { return len(name) == 1 }
	got, err := allocator.Answer{Result: []any{"a", "b", "c"}}.Nodes(3, there)
	if err != nil || !reflect.DeepEqual(got, []string{"a", "b", "c"}) {
		t.Errorf("got %v, %v", got, err)
	}
	for _, tc := range []struct {
		result any
		want   string
	}{
		{nil, "expected a list of node names, got null"},
		{map[string]any{}, "expected a list of node names, got {}"},
		{[]any{"a", 5.0, "c"}, `expected a list of node names, got ["a",5,"c"]`},
		{[]any{strings.Repeat("x", 1000), nil, "c"}, `got ["xxx`},
		{[]any{"a", "b"}, "invalid number of nodes (2), required 3"},
		{[]any{"a", "b", "c", "d"}, "invalid number of nodes (4), required 3"},
		{[]any{"a", "b", "none"}, "a node that there is not: none"},
		{[]any{"a", "b", "a"}, "the node a twice"},
		{[]any{"a", "b", "b"}, "the node b twice"},
	} {
		names, err := allocator.Answer{Result: tc.result}.Nodes(3, there)
		if names != nil || !fault.Is(err, fault.Failed) || !strings.Contains(err.Error(), tc.want) || len(err.Error()) > 300 {
			t.Errorf("%v: %v, %v", tc.result, names, err)
		}
	}
}

// snapshot is a cluster of four nodes: one that is well, has an instance that runs with less than it is to have, one that is to run and does not, and one that is
// down; one that is offline, one that tells nothing, and one that runs no instances.
func snapshot() *cluster.Snapshot {
	c := cluster.New(cluster.Init{Name: "c.example.com", UUID: "c", Time: 5, MasterNode: "n1", Hypervisors: []string{"fake"}, DiskTemplates: []string{"drbd"}})
	g := cluster.NewGroup("g", cluster.DefaultGroup, 5)
	g.Networks["net2"], g.Networks["net1"] = cluster.Params{}, cluster.Params{}
	g.Tags = cluster.NewTags("b", "a")
	s := cluster.Empty().With(cluster.Put(c), cluster.Put(g))
	for _, uuid := range []string{"n1", "n2", "n3", "n4"} {
		n := cluster.NewNode(uuid, "node"+uuid[1:], "192.0.2."+uuid[1:], "g", 5)
		n.Offline, n.VMCapable = uuid == "n2", uuid != "n4"
		s = s.With(cluster.Put(n))
	}
	for uuid, admin := range map[string]string{"less": cluster.AdminUp, "dead": cluster.AdminUp, "more": cluster.AdminUp, "down": cluster.AdminDown} {
		i := &cluster.Instance{Meta: cluster.NewMeta(uuid, 5), Name: uuid + ".example.com", OS: "noop", Hypervisor: "fake", PrimaryNode: "n1", AdminState: admin,
			BEParams: cluster.Params{"maxmem": int64(1000), "vcpus": int64(2)}}
		i.Disks = []cluster.Disk{{UUID: "d" + uuid, Type: cluster.DiskDRBD, Size: 64, Mode: "rw", Nodes: []string{"n1", "n3"}}}
		i.NICs = []cluster.NIC{{UUID: "nic" + uuid, MAC: "aa:00:00:00:00:01", Params: cluster.Params{}}}
		s = s.With(cluster.Put(i))
	}
	return s
}

// of is a part of a document as programs read it.
func of(t *testing.T, document any, path ...string) map[string]any {
	t.Helper()
	text, err := json.Marshal(document)
	var out map[string]any
	if err == nil {
		err = json.Unmarshal(text, &out)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range path {
		var ok bool
		if out, ok = out[key].(map[string]any); !ok {
			t.Fatalf("no %s of %v", key, path)
		}
	}
	return out
}

func TestADocumentTellsTheWholeCluster(t *testing.T) {
	told := map[string]allocator.Node{"n4": {Memory: 1}, "n2": {Memory: 1}, "n1": {Memory: 8000, MemoryReserved: 500, MemoryFree: 5000, Disk: 100, DiskFree: 90, CPUs: 8, CPUsReserved: 1,
		Used: map[string]int64{"less": 400, "more": 1200, "down": 700}}}
	request := map[string]any{"type": "allocate"}
	doc := allocator.Document(snapshot(), told, request)
	top := of(t, doc)
	if top["version"] != 2.0 || top["cluster_name"] != "c.example.com" || !reflect.DeepEqual(top["request"], any(request)) || len(of(t, doc, "nodes")) != 4 || len(of(t, doc, "instances")) != 4 {
		t.Errorf("it is %v", top)
	}
	if g := of(t, doc, "nodegroups", "g"); !reflect.DeepEqual(g["networks"], []any{"net1", "net2"}) || !reflect.DeepEqual(g["tags"], []any{"a", "b"}) || g["name"] != cluster.DefaultGroup {
		t.Errorf("the group is %v", g)
	}
	node := of(t, doc, "nodes", "node1")
	for key, want := range map[string]any{
		// what is to run and has not all of its memory yet: 600 of one, all of another, nothing of one that has more
		"free_memory": 5000.0 - 600 - 1000, "i_pri_memory": 4000.0, "i_pri_up_memory": 3000.0, "total_memory": 8000.0, "reserved_memory": 500.0,
		"total_disk": 100.0, "free_disk": 90.0, "total_cpus": 8.0, "reserved_cpus": 1.0, "offline": false, "group": "g", "primary_ip": "192.0.2.1",
	} {
		if node[key] != want {
			t.Errorf("%s is %v, want %v", key, node[key], want)
		}
	}
	for name, offline := range map[string]bool{"node2": true, "node3": true, "node4": false} {
		n := of(t, doc, "nodes", name)
		if _, has := n["free_memory"]; has || n["offline"] != offline {
			t.Errorf("%s is %v", name, n)
		}
	}
	i := of(t, doc, "instances", "less.example.com")
	for key, want := range map[string]any{
		"nodes": []any{"node1", "node3"}, "memory": 1000.0, "vcpus": 2.0, "disk_template": "drbd", "disk_space_total": 64.0 + 128, "tags": []any{},
		"nics":  []any{map[string]any{"mac": "aa:00:00:00:00:01", "ip": nil, "mode": "bridged", "link": "br0", "bridge": "br0"}},
		"disks": []any{map[string]any{"dev_type": "drbd", "size": 64.0, "mode": "rw", "spindles": nil}},
	} {
		if !reflect.DeepEqual(i[key], want) {
			t.Errorf("%s is %v, want %v", key, i[key], want)
		}
	}
}

func TestRequests(t *testing.T) {
	s := snapshot()
	one := allocator.New{Instance: s.Instance("less"), NICs: []any{}, Template: cluster.DiskDRBD}
	plain := one
	plain.Template, plain.Group = cluster.DiskPlain, "g1"
	r := of(t, allocator.ToAllocate(s.Cluster(), one))
	if r["type"] != "allocate" || r["required_nodes"] != 2.0 || r["group_name"] != nil || r["name"] != "less.example.com" || r["memory"] != 1000.0 {
		t.Errorf("it is %v", r)
	}
	all, _ := of(t, allocator.ToMultiAllocate(s.Cluster(), []allocator.New{one, plain}))["instances"].([]any)
	if len(all) != 2 {
		t.Fatalf("there are %v", all)
	}
	if second, _ := all[1].(map[string]any); second["required_nodes"] != 1.0 || second["group_name"] != "g1" || second["type"] != nil {
		t.Errorf("the second is %v", second)
	}
	for want, r := range map[string]map[string]any{
		`{"disk_space_total":192,"name":"less.example.com","relocate_from":["node3"],"required_nodes":1,"type":"relocate"}`: allocator.ToRelocate(s.Instance("less"), []string{"node3"}),
		`{"evac_mode":"all","instances":[],"type":"node-evacuate"}`:                                                         allocator.ToEvacuate(nil, "all"),
		`{"instances":["a"],"target_groups":[],"type":"change-group"}`:                                                      allocator.ToChangeGroup([]string{"a"}, nil),
	} {
		if text, err := json.Marshal(r); err != nil || string(text) != want {
			t.Errorf("it is %s, %v; want %s", text, err, want)
		}
	}
}
