package exec

import (
	"testing"

	"github.com/drover-project/drover/internal/cluster"
)

func TestGroups(t *testing.T) {
	r := newRig(t, "node1", "node2")
	group := func(p params) params {
		if p["group_name"] == nil {
			p["group_name"] = "rack2"
		}
		return p
	}
	r.must("null", "OP_GROUP_ADD", group(params{"alloc_policy": "last_resort", "ndparams": params{"ssh_port": 5}}))
	g := r.keeper.Snapshot().GroupNamed("rack2")
	if g.AllocPolicy != "last_resort" || g.NDParams["ssh_port"] != int64(5) {
		t.Fatalf("group is %+v", g)
	}
	r.refuses("OpPrereqError", "Desired group name 'rack2' already exists as a node group (UUID: "+g.UUID+")", "OP_GROUP_ADD", group(params{}))
	r.must(`[["ndparams",{}],["diskparams",{"plain":{"stripes":2}}],["alloc_policy","preferred"],["ipolicy",{"vcpu-ratio":3}]]`, "OP_GROUP_SET_PARAMS",
		group(params{"alloc_policy": "preferred", "ndparams": params{"ssh_port": "default"}, "diskparams": params{"plain": params{"stripes": 2}}, "ipolicy": params{"vcpu-ratio": 3}}))
	r.refuses("OpPrereqError", "Please pass at least one modification", "OP_GROUP_SET_PARAMS", group(params{}))
	r.must("[]", "OP_GROUP_SET_PARAMS", group(params{"ndparams": params{}, "diskparams": params{}, "ipolicy": params{}}))
	r.refuses("OpPrereqError", "Node group 'nosuch' not found", "OP_GROUP_SET_PARAMS", params{"group_name": "nosuch", "alloc_policy": "preferred"})
	for text, p := range map[string]params{
		"Unknown parameter 'nosuch'":                       {"diskparams": params{"drbd": params{"nosuch": 1}}},
		"'resync-rate' (value abc) is not a valid integer": {"diskparams": params{"drbd": params{"resync-rate": "abc"}}},
	} {
		r.refuses("TypeEnforcementError", text, "OP_GROUP_SET_PARAMS", group(p))
	}
	for text, policy := range map[string]params{
		"Invalid instance policy: Invalid disk template(s) nosuch":                                   {"disk-templates": []any{"nosuch"}},
		"Invalid instance policy: a ratio must be a number above 0, got 0":                           {"spindle-ratio": 0},
		"Invalid instance policy: standard sizes are a setting of the cluster, groups have none":     {"std": params{}},
		"Invalid instance policy: Missing instance specification: min":                               {"minmax": []any{params{}}},
		"Invalid instance policy: Invalid specification of min/max values for memory-size: 32768/16": {"minmax": []any{turnedPolicy()}},
	} {
		r.refuses("OpPrereqError", text, "OP_GROUP_SET_PARAMS", group(params{"ipolicy": policy}))
	}
	r.must("null", "OP_GROUP_ASSIGN_NODES", group(params{"nodes": []any{"node2"}}))
	if r.keeper.Snapshot().NodeNamed("node2").Group != g.UUID {
		t.Fatal("node2 did not move")
	}
	r.refuses("OpPrereqError", "Group 'rack2' not empty, has the following nodes: node2", "OP_GROUP_REMOVE", group(params{}))
	r.refuses("OpPrereqError", "Node 'nosuch' not known", "OP_GROUP_ASSIGN_NODES", group(params{"nodes": []any{"nosuch"}}))
	r.must("null", "OP_GROUP_ASSIGN_NODES", params{"group_name": "default", "nodes": []any{"node2"}})
	d := r.keeper.Snapshot().GroupNamed("default").UUID
	r.refuses("OpPrereqError", "Desired new name 'default' clashes with existing node group (UUID: "+d+")", "OP_GROUP_RENAME", group(params{"new_name": "default"}))
	r.must(`"rack3"`, "OP_GROUP_RENAME", group(params{"new_name": "rack3"}))
	r.must("null", "OP_GROUP_REMOVE", params{"group_name": "rack3"})
	r.refuses("OpPrereqError", "Group 'default' not empty, has the following nodes: node1, node2", "OP_GROUP_REMOVE", params{"group_name": "default"})
}

func TestAssignRefusesToTearInstances(t *testing.T) {
	r := newRig(t, "node1", "node2")
	r.create("one", false)
	r.must("null", "OP_GROUP_ADD", params{"group_name": "rack2"})
	second := r.keeper.Snapshot().NodeNamed("node2").UUID
	r.update(func(snap *cluster.Snapshot) []cluster.Change {
		i := snap.InstanceNamed("one").Clone()
		i.Disks[0].Type = cluster.DiskDRBD
		i.Disks[0].Nodes = []string{i.PrimaryNode, second}
		return []cluster.Change{cluster.Put(i)}
	})
	move := params{"group_name": "rack2", "node_uuids": []any{second}, "nodes": []any{"node2"}}
	r.refuses("OpPrereqError", "The following instances get split by this change and --force was not given: one", "OP_GROUP_ASSIGN_NODES", move)
	move["force"] = true
	r.must("null", "OP_GROUP_ASSIGN_NODES", move)
}

// turnedPolicy is a pair of bounds the wrong way round.
func turnedPolicy() params {
	low, high := params{}, params{}
	for _, name := range cluster.PolicySpecs() {
		low[name], high[name] = 1, 2
	}
	low["memory-size"], high["memory-size"] = 32768, 16
	return params{"min": low, "max": high}
}
