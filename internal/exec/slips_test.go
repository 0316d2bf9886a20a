package exec

import (
	"testing"

	"github.com/drover-project/drover/internal/job"
)

// What the reference refuses because something would be mixed up, dropped or gone without
// being asked, is refused here too.
func TestSlipsAreRefused(t *testing.T) {
	r := newRig(t)
	r.must("null", "OP_NODE_ADD", params{"node_name": "node9.example"})
	r.create("one", false)
	nic := func(change ...any) params { return params{"instance_name": "one", "nics": []any{change}} }
	disk := func(values params) params {
		return params{"instance_name": "one", "disks": []any{[]any{"add", int64(-1), values}}}
	}
	made := func(p params) params {
		p["instance_name"], p["pnode"] = "two", "node1"
		return creating(p)
	}
	for name, tc := range map[string]struct {
		text, id string
		p        params
	}{
		"a short name":      {"Node node9.example is already in the configuration", "OP_NODE_ADD", params{"node_name": "node9"}},
		"attach":            {"Attach operation is not supported for NICs (to make a new one, say add)", "OP_INSTANCE_SET_PARAMS", nic("attach", int64(0), params{})},
		"detach and set":    {"No settings should be passed when removing or detaching a disk", "OP_INSTANCE_SET_PARAMS", params{"instance_name": "one", "disks": []any{[]any{"detach", int64(0), params{"name": "x"}}}}},
		"detach":            {"Detach operation is not supported for NICs (to remove it, say so)", "OP_INSTANCE_SET_PARAMS", nic("detach", int64(0), params{})},
		"detach of none":    {"Cannot find NIC with identifier nosuch", "OP_INSTANCE_SET_PARAMS", nic("detach", "nosuch", params{})},
		"detach too far":    {"Got NIC index 7, but there are only 1", "OP_INSTANCE_SET_PARAMS", nic("detach", int64(7), params{})},
		"attach by a name":  {"Only positive integer or -1 is accepted", "OP_INSTANCE_SET_PARAMS", nic("attach", "eth9", params{})},
		"removed and set":   {"No settings should be passed when removing or detaching a NIC", "OP_INSTANCE_SET_PARAMS", nic("remove", int64(0), params{"ip": "192.0.2.1"})},
		"a numeric NIC":     {"Invalid name '12'. Purely numeric NIC names are not allowed", "OP_INSTANCE_SET_PARAMS", nic("modify", int64(0), params{"name": "12"})},
		"a disk of no size": {"Required disk parameter 'size' missing", "OP_INSTANCE_SET_PARAMS", params{"instance_name": "one", "disks": []any{[]any{"add", int64(0), params{}}}}},
		"a numeric disk":    {"Invalid name '3'. Purely numeric disk names are not allowed", "OP_INSTANCE_CREATE", made(params{"disks": []any{params{"size": 8, "name": "3"}}})},
		"a numeric new":     {"Invalid name '7'. Purely numeric NIC names are not allowed", "OP_INSTANCE_CREATE", made(params{"nics": []any{params{"name": "7"}}})},
		"given twice":       {"The OS parameter 'test_param' is given in osparams and in osparams_secret", "OP_INSTANCE_CREATE", made(params{"osparams": params{"test_param": "x"}, "osparams_secret": params{"test_param": "y"}})},
		"nothing":           {"The OS parameter 'test_param' must be a text, got null", "OP_INSTANCE_CREATE", made(params{"osparams": params{"test_param": nil}})},
		"a number":          {"The OS parameter 'test_param' must be a text, got 5", "OP_INSTANCE_CREATE", made(params{"osparams": params{"test_param": 5}})},
		"spindles":          {"Spindles in instance disks cannot be specified when exclusive storage is not active", "OP_INSTANCE_SET_PARAMS", disk(params{"size": 32, "spindles": 2})},
		"a provider":        {"The 'provider' option is only valid for the ext disk template, not file", "OP_INSTANCE_SET_PARAMS", disk(params{"size": 32, "provider": "x"})},
		"a relative image":  {"Zeroing image must be an absolute path or a URL", "OP_CLUSTER_SET_PARAMS", params{"zeroing_image": "x"}},
	} {
		before := r.dump()
		_, err := r.run(tc.id, tc.p)
		if err == nil {
			t.Errorf("%s was taken", name)
		} else if _, text, _ := job.DecodeError(job.EncodeError(err)); text != tc.text {
			t.Errorf("%s: %v, want %s", name, err, tc.text)
		}
		if r.dump() != before {
			t.Errorf("%s changed the inventory", name)
		}
	}
}

// "memory" stands for both, whatever they are: the public Ansible module sends all three.
func TestMemoryWins(t *testing.T) {
	r := newRig(t)
	r.must(`["node1"]`, "OP_INSTANCE_CREATE", creating(params{"beparams": params{"memory": 128, "minmem": 64, "maxmem": 256}}))
	if be := r.instance("one").BEParams; be["minmem"] != int64(128) || be["maxmem"] != int64(128) {
		t.Errorf("parameters are %v", be)
	}
}
