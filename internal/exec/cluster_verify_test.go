package exec

import (
	"context"
	"slices"
	"testing"

	"github.com/drover-project/drover/internal/agent"
	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/hypervisor"
)

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
		r.refuses("OpPrereqError", "Node group 'nosuch' not found", id, params{"group_name": "nosuch"})
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
	notes := []string{"* Verifying instance status", "* Other Notes", "  - NOTICE: 1 non-redundant instance(s) found.", "* Hooks Results"}
	r.logged(slices.Concat(begin, notes)...)
	a, err := r.fleet.Agent("node1")
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Stop(t.Context(), agent.Order{}, thingOf(r.instance("one")), hypervisor.Stop{}, nil); err != nil {
		t.Fatal(err)
	}
	if err := a.Start(t.Context(), agent.Order{}, hypervisor.Spec{Name: "stranger", UUID: "theirs"}, nil); err != nil {
		t.Fatal(err)
	}
	r.down["node2"] = true
	r.setNode("node3", func(n *cluster.Node) { n.Offline = true })
	r.must("false", "OP_CLUSTER_VERIFY_GROUP", verify)
	r.logged(slices.Concat(begin, []string{"  - ERROR: node node2: while contacting node: Can't contact node node2: node node2 does not answer",
		"* Verifying instance status", "  - ERROR: node node1: unknown instance stranger on this node (theirs, nobody says which job made it); it is left alone, for nobody says which job made it; next: drover node orphans node1",
		"  - ERROR: instance one: instance not running on its primary node node1", "* Other Notes",
		"  - NOTICE: 1 non-redundant instance(s) found.", "  - NOTICE: 1 offline node(s) found.", "* Hooks Results"})...)
	r.must("null", "OP_GROUP_ADD", params{"group_name": "rack2"})
	r.must("true", "OP_CLUSTER_VERIFY_GROUP", params{"group_name": "rack2"})
	r.logged("* Verifying group 'rack2'", "* Empty node group, skipping verification")
}

// troubled is a node that says of each of its instances what is wrong with it.
type troubled struct {
	anyNode
}

func (n troubled) Instances(ctx context.Context) ([]hypervisor.Instance, error) {
	list, err := n.anyNode.Instances(ctx)
	for i := range list {
		list[i].Trouble = "its TPM has ended"
	}
	return list, err
}

// TestVerifyTellsTrouble: what a node says is wrong with an instance that runs is told.
func TestVerifyTellsTrouble(t *testing.T) {
	r := newRig(t)
	r.create("one", true)
	r.wrap = func(n Node) Node { return troubled{n} }
	r.must("false", "OP_CLUSTER_VERIFY_GROUP", params{"group_name": "default"})
	r.logged("* Verifying group 'default'", "* Gathering data (1 nodes)", "* Verifying node status", "* Verifying instance status",
		"  - ERROR: instance one: its TPM has ended", "* Other Notes", "  - NOTICE: 1 non-redundant instance(s) found.", "* Hooks Results")
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
	if err := a.Drop(t.Context(), agent.Order{}, thingOf(r.instance("one")), []string{disk}); err != nil {
		t.Fatal(err)
	}
	snap := r.keeper.Snapshot()
	r.down["node2"] = true
	r.must(`[{"`+snap.NodeNamed("node2").UUID+`":"Can't contact node node2: node node2 does not answer"},[],{"one":[["`+
		snap.NodeNamed("node1").UUID+`","`+disk+`"]]}]`, "OP_GROUP_VERIFY_DISKS", params{"group_name": "default"})
}

// losing is a node that lists disks by its notes, and finds none of an instance when it looks.
type losing struct {
	anyNode
	of string
}

func (n losing) Instance(ctx context.Context, of hypervisor.Thing) (hypervisor.Instance, error) {
	i, err := n.anyNode.Instance(ctx, of)
	if of.Name == n.of {
		i.Disks = nil
	}
	return i, err
}

// Info tells that what is there is not only pretended.
func (n losing) Info(ctx context.Context) (hypervisor.Node, error) {
	info, err := n.anyNode.Info(ctx)
	info.StandsIn = false
	return info, err
}

// Disks that a node has noted and lost are told of, and nothing makes them anew but what is asked to.
func TestDisksThatAreNotedAndLost(t *testing.T) {
	r := newRig(t, "node1", "node2")
	r.create("one", false)
	r.create("whole", false)
	r.mirrored("pair", false)
	r.wrap = func(n Node) Node { return losing{losing{n, "one"}, "pair"} }
	node1, node2 := r.keeper.Snapshot().NodeNamed("node1").UUID, r.keeper.Snapshot().NodeNamed("node2").UUID
	one, pair := r.instance("one").Disks[0].UUID, r.instance("pair").Disks[0].UUID
	r.must(`[{},[],{"one":[["`+node1+`","`+one+`"]],"pair":[["`+node1+`","`+pair+`"],["`+node2+`","`+pair+`"]]}]`, "OP_GROUP_VERIFY_DISKS", params{"group_name": "default"})
	r.must("false", "OP_CLUSTER_VERIFY_GROUP", params{"group_name": "default"})
	r.logged("* Verifying group 'default'", "* Gathering data (2 nodes)", "* Verifying node status", "* Verifying instance status",
		"  - ERROR: instance one: disk/0 is not on node node1; next: drover instance recreate-disks one makes the disks that are missing anew, empty",
		"  - ERROR: instance pair: disk/0 is not on node node1; next: drover instance replace-disks --mode replace_on_primary pair copies its disks from the other node",
		"  - ERROR: instance pair: disk/0 is not on node node2; next: drover instance replace-disks --mode replace_on_secondary pair copies its disks from the other node",
		"* Other Notes", "  - NOTICE: 2 non-redundant instance(s) found.", "* Hooks Results")
	r.refuses("OpPrereqError", "Disk 0 of instance one can't grow: node node1 has lost it (drover instance recreate-disks one makes the disks that are missing anew, empty)",
		"OP_INSTANCE_GROW_DISK", params{"instance_name": "one", "disk": 0, "amount": 8})
	r.wrap = func(n Node) Node {
		if n.Node() == "node2" {
			return losing{n, "pair"}
		}
		return n
	}
	r.refuses("OpPrereqError", "Disk 0 of instance pair can't grow: node node2 has lost it (drover instance replace-disks --mode replace_on_secondary pair copies its disks from the other node)",
		"OP_INSTANCE_GROW_DISK", params{"instance_name": "pair", "disk": 0, "amount": 8})
}
