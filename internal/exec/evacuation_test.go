package exec

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/evacuation"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/hypervisor"
)

// children carries out the jobs that an opcode has submitted, one after the other, and returns what they say of themselves.
func (r *rig) children() (said []string) {
	r.Helper()
	jobs := r.submitted
	r.submitted = nil
	for _, ops := range jobs {
		for _, op := range ops {
			if _, err := r.run(op.ID, op.Params); err != nil {
				r.Fatalf("%s%v: %v", op.ID, op.Params, err)
			}
			said = append(said, fmt.Sprintf("%s %s %s%s", strings.TrimPrefix(op.ID, "OP_INSTANCE_"), op.Str("instance_name"), op.Str("target_node"), op.Str("remote_node")))
		}
		said = append(said, "")
	}
	return said
}

// Each mode has what it means leave, and tells before what goes where.
func TestEvacuation(t *testing.T) {
	r := moveable(t)
	r.must(`["node2","node1"]`, "OP_INSTANCE_CREATE", params{"instance_name": "other", "mode": "create", "pnode": "node2", "snode": "node1",
		"disk_template": "drbd", "disks": []any{params{"size": 8}}, "nics": []any{}, "os_type": "noop+default", "start": true})
	r.must(`{"jobs":[[true,101]]}`, "OP_NODE_EVACUATE", params{"node_name": "node1", "mode": "secondary-only", "remote_node": "node3"})
	r.logged(" - INFO: Evacuating instances from node 'node1': other", " - INFO: other: second copies of its disks to node3 (it was asked for)")
	if got := r.children(); !slices.Equal(got, []string{"REPLACE_DISKS other node3", ""}) {
		t.Errorf("%q", got)
	}
	if _, err := r.run("OP_NODE_EVACUATE", params{"node_name": "node1", "mode": "all", "iallocator": "hail"}); err != nil {
		t.Fatal(err)
	}
	if got := r.children(); !slices.Equal(got, []string{"MIGRATE pair ", "REPLACE_DISKS pair node3", "", "MIGRATE san node3", ""}) {
		t.Errorf("%q", got)
	}
	node1 := r.keeper.Snapshot().NodeNamed("node1").UUID
	if left := evacuation.Instances(r.keeper.Snapshot(), node1, evacuation.Everything); len(left) > 0 || r.state("node1", "pair") != "" || r.state("node1", "san") != "" {
		t.Errorf("it leaves %+v", left)
	}
	for _, name := range []string{"pair", "san"} {
		if node := nodeName(r.keeper.Snapshot(), r.instance(name).PrimaryNode); r.state(node, name) != hypervisor.Running {
			t.Errorf("%s does not run on %s", name, node)
		}
	}
	r.must(`{"jobs":[]}`, "OP_NODE_EVACUATE", params{"node_name": "node1", "mode": "all"})
	r.logged(" - INFO: No instances to evacuate from node 'node1'")
}

// From a node that is away everything leaves, too.
func TestEvacuationOfTheDead(t *testing.T) {
	r := dead(t)
	if _, err := r.run("OP_NODE_EVACUATE", params{"node_name": "node1", "mode": "all"}); err != nil {
		t.Fatal(err)
	}
	r.children()
	if left := evacuation.Instances(r.keeper.Snapshot(), r.keeper.Snapshot().NodeNamed("node1").UUID, evacuation.Everything); len(left) > 0 {
		t.Errorf("it leaves %+v", left)
	}
	if i := r.instance("pair"); r.state("node2", "pair") != hypervisor.Running || nodeName(r.keeper.Snapshot(), i.SecondaryNodes()[0]) != "node3" || i.StaleOn(i.SecondaryNodes()[0]) >= 0 {
		t.Errorf("the inventory has %+v", i)
	}
}

// If anything cannot leave an evacuation does nothing, and says of each why; a migration of a node moves the rest.
func TestWhatCannotLeaveANode(t *testing.T) {
	r := moveable(t)
	r.create("local", true)
	r.mirrored("still", false)
	r.refuses("OpPrereqError", "Unable to evacuate instances local (its disks (file) are on node1 alone) "+
		"(nothing was moved; what can be is moved one by one: drover instance migrate, failover, replace-disks)", "OP_NODE_EVACUATE", params{"node_name": "node1", "mode": "primary-only"})
	if len(r.submitted) > 0 || len(r.log) != 5 {
		t.Errorf("%d jobs were submitted, said was %q", len(r.submitted), r.log)
	}
	r.must(`{"jobs":[[false,"local cannot leave: its disks (file) are on node1 alone"],[true,101],[true,102],[false,"still cannot leave: it is not running; drover instance failover moves it"]]}`,
		"OP_NODE_MIGRATE", params{"node_name": "node1", "mode": "live"})
	if got := r.children(); !slices.Equal(got, []string{"MIGRATE pair ", "", "MIGRATE san node3", ""}) {
		t.Errorf("%q", got)
	}
}

func TestEvacuationsThatAreRefused(t *testing.T) {
	r := moveable(t)
	for text, p := range map[string]params{
		"Can not use evacuated node as a new secondary node":                         {"mode": "secondary-only", "remote_node": "node1"},
		"Without the use of an iallocator only secondary instances can be evacuated": {"mode": "all", "remote_node": "node2"},
		"Do not specify both, iallocator and node":                                   {"mode": "secondary-only", "remote_node": "node2", "iallocator": "hail"},
		"Can't compute node evacuation using iallocator 'dice': it is not there":     {"mode": "all", "iallocator": "dice"},
	} {
		p["node_name"] = "node1"
		if _, err := r.run("OP_NODE_EVACUATE", p); err == nil || !strings.Contains(err.Error(), text) || len(r.submitted) > 0 {
			t.Errorf("%v comes to %v", p, err)
		}
	}
	for text, p := range map[string]params{
		"Only one of the 'live' and 'mode' parameters are accepted": {"live": true, "mode": "live"},
		"The instances are on node node1":                           {"target_node": "node1"},
	} {
		p["node_name"] = "node1"
		if _, err := r.run("OP_NODE_MIGRATE", p); err == nil || !strings.Contains(err.Error(), text) || len(r.submitted) > 0 {
			t.Errorf("%v comes to %v", p, err)
		}
	}
}

// planned has instances leave by their jobs, and returns how its dry run has told that they do; false where it was refused as the dry run has told,
// and nothing was done.
func (r *rig) planned(rt *rapid.T, id string, p params) (plan []planned, carried bool) {
	r.Helper()
	dry, _, refused := r.all.Check(r.Context(), r.env(r.opcode(id, p)))
	_, err := r.run(id, p)
	if fmt.Sprint(err) != fmt.Sprint(refused) {
		rt.Fatalf("its dry run comes to %v, it to %v", refused, err)
	}
	if err != nil {
		if !fault.Is(err, fault.Exhausted) || len(r.submitted) > 0 {
			rt.Fatalf("%v, and %d jobs", err, len(r.submitted))
		}
		return nil, false
	}
	var told struct {
		Plan []planned `json:"plan"`
	}
	if err := json.Unmarshal(dry, &told); err != nil {
		rt.Fatal(err)
	}
	r.children()
	return told.Plan, true
}

// In any cluster an evacuation comes to what its dry run has told: it leaves nothing of what it means, or nothing is done and every instance that
// cannot leave is named; and nothing runs on two nodes.
func TestEvacuationsComeToWhatWasPlanned(t *testing.T) {
	nodes := []string{"node1", "node2", "node3", "node4"}
	rapid.Check(t, func(rt *rapid.T) {
		r := newRig(t, nodes...)
		names := r.populate(rt, nodes)
		p := params{"node_name": rapid.SampledFrom(nodes).Draw(rt, "node"), "mode": rapid.SampledFrom([]string{"primary-only", "secondary-only", "all"}).Draw(rt, "mode")}
		plan, carried := r.planned(rt, "OP_NODE_EVACUATE", p)
		if !carried {
			return
		}
		snap := r.keeper.Snapshot()
		if left := evacuation.Instances(snap, snap.NodeNamed(p["node_name"].(string)).UUID, evacuation.Mode(p["mode"].(string))); len(left) > 0 {
			rt.Fatalf("%v leaves %s there", p, left[0].Name)
		}
		for _, c := range plan {
			inst := r.instance(c.Instance)
			for i, m := range c.Moves {
				at := nodeName(snap, inst.PrimaryNode)
				if m.Do == evacuation.ReplaceSecondary {
					at = nodeName(snap, inst.SecondaryNodes()[0])
				}
				if at != m.To {
					rt.Fatalf("move %d of %+v comes to %s", i, c, at)
				}
			}
		}
		r.alone(rt, nodes, names)
	})
}

// populate makes instances as they are drawn, and returns their names.
func (r *rig) populate(rt *rapid.T, nodes []string) (names []string) {
	r.Helper()
	for i := range rapid.IntRange(1, 5).Draw(rt, "instances") {
		p := creating(params{"instance_name": fmt.Sprint("i", i), "start": rapid.Bool().Draw(rt, "start"), "pnode": rapid.SampledFrom(nodes).Draw(rt, "primary"),
			"disk_template": rapid.SampledFrom([]string{"drbd", "drbd", "ext", "diskless", "file"}).Draw(rt, "template"),
			"beparams":      params{"memory": rapid.SampledFrom([]int{128, 2048, 4096}).Draw(rt, "memory")}})
		switch p["disk_template"] {
		case cluster.DiskDRBD:
			p["snode"] = rapid.SampledFrom(nodes).Draw(rt, "secondary")
		case cluster.DiskExt:
			p["disks"] = []any{params{"size": 8, "provider": "san"}}
		case cluster.DiskDiskless:
			p["disks"] = []any{}
		}
		if _, err := r.run("OP_INSTANCE_CREATE", p); err == nil {
			names = append(names, fmt.Sprint("i", i))
		}
	}
	return names
}

// alone checks that each instance runs where the inventory says, if it is to run, and nowhere else.
func (r *rig) alone(rt *rapid.T, nodes, names []string) {
	r.Helper()
	for _, name := range names {
		inst := r.instance(name)
		for _, node := range nodes {
			want := inst.AdminState == cluster.AdminUp && nodeName(r.keeper.Snapshot(), inst.PrimaryNode) == node
			if runs := r.state(node, name) == hypervisor.Running; runs != want {
				rt.Fatalf("%s runs on %s: %t", name, node, runs)
			}
		}
	}
}
