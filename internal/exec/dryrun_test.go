package exec

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"testing"

	"github.com/drover-project/drover/internal/hypervisor"
	"github.com/drover-project/drover/internal/testkit"
)

// samples has a request for every opcode of the catalogue that succeeds on the
// cluster that killable makes.
var samples = map[string]params{
	"OP_INSTANCE_CREATE":        {"instance_name": "new", "mode": "create", "disks": []any{params{"size": 8}}, "nics": []any{params{"network": "net", "ip": "pool"}}, "os_type": "noop"},
	"OP_INSTANCE_REMOVE":        {"instance_name": "up"},
	"OP_INSTANCE_RENAME":        {"instance_name": "down", "new_name": "other"},
	"OP_INSTANCE_STARTUP":       {"instance_name": "down"},
	"OP_INSTANCE_SHUTDOWN":      {"instance_name": "up"},
	"OP_INSTANCE_REBOOT":        {"instance_name": "up", "reboot_type": "hard"},
	"OP_INSTANCE_REINSTALL":     {"instance_name": "down", "os_type": "noop"},
	"OP_INSTANCE_SET_PARAMS":    {"instance_name": "down", "beparams": params{"vcpus": 2}, "disks": []any{[]any{"remove", params{}}}, "nics": []any{[]any{"add", params{}}}},
	"OP_INSTANCE_GROW_DISK":     {"instance_name": "down", "disk": 0, "amount": 8},
	"OP_INSTANCE_QUERY_DATA":    {},
	"OP_INSTANCE_CONSOLE":       {"instance_name": "up"},
	"OP_INSTANCE_FAILOVER":      {"instance_name": "pair"},
	"OP_INSTANCE_MIGRATE":       {"instance_name": "pair"},
	"OP_INSTANCE_REPLACE_DISKS": {"instance_name": "pair", "mode": "replace_on_secondary"},
	"OP_NODE_EVACUATE":          {"node_name": "node1", "mode": "secondary-only"},
	"OP_NODE_MIGRATE":           {"node_name": "node1"},
	"OP_GROUP_EVACUATE":         {"group_name": "empty"},
	"OP_BACKUP_PREPARE":         {"instance_name": "up", "mode": "local"},
	"OP_BACKUP_EXPORT":          {"instance_name": "up", "target_node": "node2", "long_sleep": true},
	"OP_BACKUP_REMOVE":          {"instance_name": "up"},
	"OP_QUERY":                  {"what": "node", "fields": []any{"name"}},
	"OP_QUERY_FIELDS":           {"what": "node"},
	"OP_CLUSTER_QUERY":          {},
	"OP_CLUSTER_CONFIG_QUERY":   {"output_fields": []any{"cluster_name"}},
	"OP_CLUSTER_SET_PARAMS":     {"max_running_jobs": 3},
	"OP_CLUSTER_RENAME":         {"name": "other.example"},
	"OP_CLUSTER_REDIST_CONF":    {},
	"OP_CLUSTER_RENEW_CRYPTO":   {"node_certificates": true, "rapi_certificate": true},
	"OP_CLUSTER_VERIFY":         {},
	"OP_CLUSTER_VERIFY_CONFIG":  {},
	"OP_CLUSTER_VERIFY_GROUP":   {"group_name": "default"},
	"OP_CLUSTER_VERIFY_DISKS":   {},
	"OP_GROUP_VERIFY_DISKS":     {"group_name": "default"},
	"OP_OS_DIAGNOSE":            {"output_fields": []any{"name"}},
	"OP_NODE_ADD":               {"node_name": "node4"},
	"OP_NODE_REMOVE":            {"node_name": "node3"},
	"OP_NODE_SET_PARAMS":        {"node_name": "node2", "drained": true},
	"OP_NODE_ORPHANS":           {"node_name": "node1"},
	"OP_NODE_CLEAR_ORPHANS":     {"node_name": "node1"},
	"OP_GROUP_ADD":              {"group_name": "new"},
	"OP_GROUP_REMOVE":           {"group_name": "empty"},
	"OP_GROUP_RENAME":           {"group_name": "empty", "new_name": "other"},
	"OP_GROUP_SET_PARAMS":       {"group_name": "empty", "alloc_policy": "last_resort"},
	"OP_GROUP_ASSIGN_NODES":     {"group_name": "empty", "nodes": []any{"node3"}},
	"OP_NETWORK_ADD":            {"network_name": "new", "network": "198.51.100.0/24"},
	"OP_NETWORK_REMOVE":         {"network_name": "free"},
	"OP_NETWORK_RENAME":         {"network_name": "free", "new_name": "other"},
	"OP_NETWORK_SET_PARAMS":     {"network_name": "free", "gateway": "203.0.113.1"},
	"OP_NETWORK_CONNECT":        {"network_name": "free", "group_name": "default", "network_mode": "bridged", "network_link": "br1"},
	"OP_NETWORK_DISCONNECT":     {"network_name": "net", "group_name": "default"},
	"OP_IMAGE_ADD":              {"image_name": "new", "source": startable},
	"OP_IMAGE_REMOVE":           {"image_name": "there"},
	"OP_TAGS_GET":               {"kind": "cluster"},
	"OP_TAGS_SEARCH":            {"pattern": "."},
	"OP_TAGS_SET":               {"kind": "cluster", "tags": []any{"new"}},
	"OP_TAGS_DEL":               {"kind": "cluster", "tags": []any{"there"}},
	"OP_TEST_DELAY":             {"duration": 1000},
	"OP_TEST_DUMMY":             {"result": 1, "messages": []any{"x"}, "fail": true, "submit_jobs": []any{[]any{params{"OP_ID": "OP_CLUSTER_QUERY"}}}},
	"OP_TEST_ALLOCATOR":         {"direction": "in", "mode": "relocate", "name": "pair"},
	"OP_TEST_JQUEUE":            {"fail": true},

	"OP_CLUSTER_POST_INIT":            {},
	"OP_CLUSTER_ACTIVATE_MASTER_IP":   {},
	"OP_CLUSTER_DEACTIVATE_MASTER_IP": {},

	"OP_NODE_POWERCYCLE":    {"node_name": "node2"},
	"OP_OOB_COMMAND":        {"node_names": []any{"node9", "node8"}, "command": "power-off", "ignore_status": true},
	"OP_RESTRICTED_COMMAND": {"command": "says", "nodes": []any{"node1"}},

	"OP_NODE_QUERYVOLS":       {"output_fields": []any{"name"}},
	"OP_NODE_QUERY_STORAGE":   {"output_fields": []any{"name"}, "storage_type": "file"},
	"OP_NODE_MODIFY_STORAGE":  {"node_name": "node2", "storage_type": "lvm-pv", "name": "/dev/fake0", "changes": params{"allocatable": false}},
	"OP_REPAIR_NODE_STORAGE":  {"node_name": "node2", "storage_type": "lvm-vg", "name": "xenvg"},
	"OP_EXT_STORAGE_DIAGNOSE": {"output_fields": []any{"name"}},
	"OP_TEST_OS_PARAMS":       {"osparams_secret": params{"root": "x"}},

	"OP_INSTANCE_MULTI_ALLOC":      {"instances": []any{params{"OP_ID": "OP_INSTANCE_CREATE", "instance_name": "new", "mode": "create", "disks": []any{}, "nics": []any{}, "os_type": "noop"}}},
	"OP_INSTANCE_CHANGE_GROUP":     {"instance_name": "pair", "target_groups": []any{"far"}},
	"OP_INSTANCE_ACTIVATE_DISKS":   {"instance_name": "pair", "wait_for_sync": true},
	"OP_INSTANCE_DEACTIVATE_DISKS": {"instance_name": "active"},
	"OP_INSTANCE_RECREATE_DISKS":   {"instance_name": "lost"},
	"OP_CLUSTER_REPAIR_DISK_SIZES": {},
	"OP_DISK_REMOVE":               {"disk": "spare"},
	"OP_INSTANCE_MOVE":             {"instance_name": "up", "target_node": "node2"},
}

// alone are opcodes that succeed on clusters of their own alone, without instances, or with real ones: destroy_test.go and image_capture_test.go have for them what is held
// of samples.
var alone = map[string]bool{"OP_CLUSTER_DESTROY": true, "OP_IMAGE_CAPTURE": true}

// startable is an image of 512 bytes, where everybody reaches it, whoever the checkout is open to.
var startable = func() string {
	content, err := os.ReadFile(filepath.Join("testdata", "startable.img"))
	if err != nil {
		panic(err)
	}
	dir, err := testkit.MakeOpenDir()
	if err != nil {
		panic(err)
	}
	path := filepath.Join(dir, "startable.img")
	if err := os.WriteFile(path, content, 0o644); err != nil {
		panic(err)
	}
	return path
}()

func TestMain(m *testing.M) {
	code := m.Run()
	_ = os.RemoveAll(filepath.Dir(startable)) // it is small
	os.Exit(code)
}

// A dry run succeeds where the opcode would, changes neither the inventory nor
// a node, and submits nothing; so does asking for the locks, and a check without a job.
func TestDryRunsChangeNothing(t *testing.T) {
	r := killable(t)
	before, nodes := r.dump(), r.nodeStates()
	for id := range r.all {
		p, ok := samples[id]
		if alone[id] {
			continue
		}
		if !ok {
			t.Errorf("%s has no sample", id)
			continue
		}
		p = maps.Clone(p)
		p["dry_run"] = true
		if _, err := r.all.Locks(r.opcode(id, p), r.keeper.Snapshot()); err != nil {
			t.Errorf("locks of %s: %v", id, err)
		}
		if _, err := r.run(id, p); err != nil {
			t.Errorf("%s: %v", id, err)
		}
		if _, _, err := r.all.Check(r.Context(), r.env(r.opcode(id, samples[id]))); err != nil {
			t.Errorf("check of %s: %v", id, err)
		}
		if r.dump() != before || r.nodeStates() != nodes || len(r.submitted) > 0 {
			t.Fatalf("a dry run of %s left traces", id)
		}
	}
}

// nodeStates returns what the nodes have, as text.
func (r *rig) nodeStates() string {
	r.Helper()
	var all []any
	for _, name := range []string{"node1", "node2", "node3"} {
		a, err := r.fleet.Agent(name)
		var list []hypervisor.Instance
		if err == nil {
			list, err = a.Instances(r.Context())
		}
		if err != nil {
			r.Fatal(err)
		}
		kept, err := a.Exports(r.Context())
		if err != nil {
			r.Fatal(err)
		}
		all = append(all, list, kept)
	}
	text, err := json.Marshal(all)
	if err != nil {
		r.Fatal(err)
	}
	return string(text)
}
