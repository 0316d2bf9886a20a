package exec

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/drover-project/drover/internal/evacuation"
	"github.com/drover-project/drover/internal/hypervisor"
)

// grouped is a cluster of three groups: default has node1 to node3, far has node4 and node5, and third has node6.
func grouped(t testing.TB) *rig {
	t.Helper()
	r := newRig(t, "node1", "node2", "node3", "node4", "node5", "node6")
	r.group("far", "node4", "node5")
	r.group("third", "node6")
	return r
}

func (r *rig) group(name string, nodes ...string) {
	r.Helper()
	r.must("null", "OP_GROUP_ADD", params{"group_name": name})
	if len(nodes) > 0 {
		r.must("null", "OP_GROUP_ASSIGN_NODES", params{"group_name": name, "nodes": toAny(nodes), "force": true})
	}
}

func toAny(texts []string) (out []any) {
	for _, s := range texts {
		out = append(out, s)
	}
	return out
}

// at are the nodes of an instance, the primary one first.
func (r *rig) at(name string) string {
	r.Helper()
	var names []string
	for _, uuid := range instanceNodes(r.instance(name)) {
		names = append(names, nodeName(r.keeper.Snapshot(), uuid))
	}
	return strings.Join(names, " ")
}

// An instance comes to another group with all that it has, running, and the plan is told before.
func TestChangeOfGroup(t *testing.T) {
	r := grouped(t)
	r.mirrored("pair", true)
	r.shared("san", true)
	r.must(`{"jobs":[[true,101]]}`, "OP_INSTANCE_CHANGE_GROUP", params{"instance_name": "pair"})
	if len(r.log) != 1 || !strings.HasPrefix(r.log[0], " - INFO: pair comes to group far: second copies of its disks to node4 (most free memory") {
		t.Errorf("said is %q", r.log)
	}
	if got := r.children(); !slices.Equal(got, []string{"REPLACE_DISKS pair node4", "MIGRATE pair ", "REPLACE_DISKS pair node5", ""}) {
		t.Errorf("%q", got)
	}
	if got := r.at("pair"); got != "node4 node5" || r.state("node4", "pair") != hypervisor.Running || r.state("node1", "pair") != "" || r.state("node2", "pair") != "" {
		t.Errorf("pair is at %s", got)
	}
	r.must(`{"jobs":[[true,101]]}`, "OP_INSTANCE_CHANGE_GROUP", params{"instance_name": "san", "target_groups": []any{"third", "third"}, "iallocator": "hail"})
	r.children()
	if got := r.at("san"); got != "node6" || r.state("node6", "san") != hypervisor.Running {
		t.Errorf("san is at %s", got)
	}
}

func TestGroupIsEvacuated(t *testing.T) {
	r := grouped(t)
	r.mirrored("pair", true)
	r.shared("san", true)
	r.mirrored("still", false)
	if _, err := r.run("OP_GROUP_EVACUATE", params{"group_name": "default", "target_groups": []any{"far"}, "sequential": true, "force_failover": true, "early_release": true}); err != nil {
		t.Fatal(err)
	}
	for i, ops := range r.submitted {
		for _, op := range ops {
			if depends := len(op.Depends) == 1 && op.Depends[0].Job == -1 && slices.Equal(op.Depends[0].Statuses, []string{"error", "success"}); depends != (i > 0) {
				t.Errorf("job %d depends on %v", i, op.Depends)
			}
			if op.ID == "OP_INSTANCE_REPLACE_DISKS" && !op.Bool("early_release") {
				t.Error("locks are not released early")
			}
		}
	}
	if got := r.children(); !slices.Equal(got, []string{"REPLACE_DISKS pair node4", "FAILOVER pair ", "REPLACE_DISKS pair node5", "",
		"FAILOVER san node5", "", "REPLACE_DISKS still node4", "FAILOVER still ", "REPLACE_DISKS still node5", ""}) {
		t.Errorf("%q", got)
	}
	if left := evacuation.InstancesOf(r.keeper.Snapshot(), r.keeper.Snapshot().GroupNamed("default").UUID); len(left) > 0 {
		t.Errorf("it leaves %+v", left)
	}
	r.must(`{"jobs":[]}`, "OP_GROUP_EVACUATE", params{"group_name": "default"})
	r.logged(" - INFO: No instances to evacuate from group 'default'")
}

func TestRegroupingsThatAreRefused(t *testing.T) {
	r := grouped(t)
	r.mirrored("pair", true)
	for _, c := range []struct {
		id, text string
		p        params
	}{
		{"OP_INSTANCE_CHANGE_GROUP", "Can't use group(s) 'default' as targets, they are used by the instance 'pair'", params{"instance_name": "pair", "target_groups": []any{"far", "default"}}},
		{"OP_INSTANCE_CHANGE_GROUP", "Can't compute solution for changing group of instance 'pair' using iallocator 'dice': it is not there", params{"instance_name": "pair", "iallocator": "dice"}},
		{"OP_INSTANCE_CHANGE_GROUP", "Node group 'nosuch' not found", params{"instance_name": "pair", "target_groups": []any{"nosuch"}}},
		{"OP_INSTANCE_CHANGE_GROUP", "Instance 'nosuch' not known", params{"instance_name": "nosuch"}},
		{"OP_INSTANCE_CHANGE_GROUP", "Unable to evacuate instances pair (group third: of 6 candidates 5 in another group (default), 1 beside which no node can have the second copy of the disks",
			params{"instance_name": "pair", "target_groups": []any{"third"}}},
		{"OP_GROUP_EVACUATE", "Group to be evacuated (default) can not be used as a target group (targets are far, default)", params{"group_name": "default", "target_groups": []any{"far", "default"}}},
		{"OP_GROUP_EVACUATE", "Can't compute solution for evacuating group 'default' using iallocator 'dice': it is not there", params{"group_name": "default", "iallocator": "dice"}},
		{"OP_GROUP_EVACUATE", "Node group 'nosuch' not found", params{"group_name": "nosuch"}},
	} {
		if _, err := r.run(c.id, c.p); err == nil || !strings.Contains(err.Error(), c.text) || len(r.submitted) > 0 {
			t.Errorf("%s%v comes to %v", c.id, c.p, err)
		}
	}
	alone := newRig(t)
	alone.create("local", false)
	alone.refuses("OpPrereqError", "There are no possible target groups", "OP_INSTANCE_CHANGE_GROUP", params{"instance_name": "local"})
	alone.refuses("OpPrereqError", "There are no possible target groups", "OP_GROUP_EVACUATE", params{"group_name": "default"})
}

// What is planned holds the locks of all that it is made upon.
func TestRegroupingHoldsWhatItLooksAt(t *testing.T) {
	r := grouped(t)
	r.mirrored("pair", true)
	for id, p := range map[string]params{"OP_INSTANCE_CHANGE_GROUP": {"instance_name": "pair"}, "OP_GROUP_EVACUATE": {"group_name": "default"}} {
		for _, c := range []struct {
			groups []any
			want   string
		}{
			{nil, "[instance/pair nodegroup/[lockset] node/[lockset] node-res/[lockset]"},
			{[]any{"third"}, "[instance/pair nodegroup/default node/node1 node-res/node1 node/node2 node-res/node2 node/node3 node-res/node3 nodegroup/third node/node6 node-res/node6"},
		} {
			q := maps.Clone(p)
			q["target_groups"] = c.groups
			request, err := r.all.Locks(r.opcode(id, q), r.keeper.Snapshot())
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, w := range request {
				name := w.Name.String()
				for g := range r.keeper.Snapshot().Groups() {
					name = strings.ReplaceAll(name, g.UUID, g.Name)
				}
				for n := range r.keeper.Snapshot().Nodes() {
					name = strings.ReplaceAll(name, n.UUID, n.Name)
				}
				got = append(got, name)
			}
			slices.Sort(got)
			want := append(strings.Fields(strings.Trim(c.want, "[]")), bgl.String())
			if c.groups == nil {
				want = []string{"instance/pair", "nodegroup/[lockset]", "node/[lockset]", "node-res/[lockset]", bgl.String()}
			}
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Errorf("%s%v locks %q, want %q", id, q, got, want)
			}
		}
	}
}

// spoil may drain a node, and have a group refuse what is large.
func (r *rig) spoil(rt *rapid.T) {
	r.Helper()
	var err error
	if rapid.IntRange(0, 3).Draw(rt, "drained") == 0 {
		_, err = r.run("OP_NODE_SET_PARAMS", params{"node_name": "node3", "drained": true})
	}
	if err == nil && rapid.IntRange(0, 2).Draw(rt, "strict") == 0 {
		_, err = r.run("OP_GROUP_SET_PARAMS", params{"group_name": rapid.SampledFrom([]string{"default", "far"}).Draw(rt, "of"), "ipolicy": params{"minmax": []any{params{
			"min": params{"memory-size": 128, "cpu-count": 1, "disk-count": 0, "disk-size": 1, "nic-count": 0, "spindle-use": 1},
			"max": params{"memory-size": 2048, "cpu-count": 8, "disk-count": 16, "disk-size": 1048576, "nic-count": 8, "spindle-use": 12}}}}})
	}
	if err != nil {
		rt.Fatal(err)
	}
}

// In any cluster an evacuation of a group comes to what its dry run has told: nothing of it is left there and each instance is in one group, where it
// was told to come; or nothing is done.
func TestGroupsAreLeftAsPlanned(t *testing.T) {
	nodes := []string{"node1", "node2", "node3", "node4", "node5"}
	rapid.Check(t, func(rt *rapid.T) {
		r := newRig(t, nodes...)
		r.group("far", nodes[rapid.IntRange(2, 4).Draw(rt, "far"):]...)
		if rapid.Bool().Draw(rt, "three") {
			r.group("third", "node2")
		}
		names := r.populate(rt, nodes)
		r.spoil(rt)
		p := params{"group_name": rapid.SampledFrom([]string{"default", "far"}).Draw(rt, "group"), "force_failover": rapid.Bool().Draw(rt, "failover")}
		plan, carried := r.planned(rt, "OP_GROUP_EVACUATE", p)
		if !carried {
			return
		}
		snap := r.keeper.Snapshot()
		if left := evacuation.InstancesOf(snap, snap.GroupNamed(p["group_name"].(string)).UUID); len(left) > 0 {
			rt.Fatalf("%v leaves %s there", p, left[0].Name)
		}
		for _, c := range plan {
			inst := r.instance(c.Instance)
			if got := evacuation.GroupsOf(snap, inst); len(got) != 1 || snap.Group(got[0]).Name != c.Group {
				rt.Fatalf("%+v comes to %v", c, got)
			}
			last := c.Moves[len(c.Moves)-1]
			at := nodeName(snap, inst.PrimaryNode)
			if last.Do == evacuation.ReplaceSecondary {
				at = nodeName(snap, inst.SecondaryNodes()[0])
			}
			if at != last.To {
				rt.Fatalf("%+v comes to %s", c, at)
			}
		}
		r.alone(rt, nodes, names)
	})
}
