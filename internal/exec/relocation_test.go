package exec

import (
	"context"
	"maps"
	"reflect"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/hypervisor"
	"github.com/drover-project/drover/internal/placement"
	"github.com/drover-project/drover/internal/store/format"
)

// dead marks node1 as offline, and has nobody reach it.
func dead(t *testing.T) *rig {
	t.Helper()
	r := moveable(t)
	r.mark("node1", func(n *cluster.Node) { n.Offline = true })
	r.down["node1"] = true
	return r
}

// mark changes a node in the inventory.
func (r *rig) mark(name string, change func(*cluster.Node)) {
	r.Helper()
	n := r.keeper.Snapshot().NodeNamed(name).Clone()
	change(n)
	if err := r.keeper.Update(r.Context(), func(*cluster.Snapshot) ([]cluster.Change, error) { return []cluster.Change{cluster.Put(n)}, nil }); err != nil {
		r.Fatal(err)
	}
}

// moveable is a rig of three nodes with an instance whose disks are mirrored, and one whose disks every node reaches.
func moveable(t *testing.T) *rig {
	t.Helper()
	r := newRig(t, "node1", "node2", "node3")
	r.mirrored("pair", true)
	r.shared("san", true)
	r.keeper.OnChange(func(*cluster.Snapshot) {
		_ = r.called() // a controller may die behind a commit, and not undo it
	})
	return r
}

// broken has a migration of an instance break off: it runs on node2, and the inventory says node1.
func broken(t *testing.T) *rig {
	t.Helper()
	r := moveable(t)
	for _, name := range []string{"pair", "san"} {
		inst := r.instance(name)
		spec := specOf(r.keeper.Snapshot().Cluster(), inst, nil, nil)
		for node, do := range map[string]func(Node) error{
			"node1": func(n Node) error {
				return n.Stop(t.Context(), r.env(nil).Order(), thingOf(inst), hypervisor.Stop{}, nil)
			},
			"node2": func(n Node) error {
				if err := n.Prepare(t.Context(), r.env(nil).Order(), thingOf(inst), spec.Disks); err != nil {
					return err
				}
				return n.Start(t.Context(), r.env(nil).Order(), spec, nil)
			},
		} {
			n, err := Local(r.fleet)(node)
			if err == nil {
				err = do(n)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	return r
}

// TestMovesKilledAnywhere: whatever moves comes to what it comes to undisturbed, and runs on no two nodes on the way.
func TestMovesKilledAnywhere(t *testing.T) {
	for name, tc := range map[string]struct {
		begin func(*testing.T) *rig
		id    string
		p     params
	}{
		"failover of what is mirrored outside":        {moveable, "OP_INSTANCE_FAILOVER", params{"instance_name": "san", "target_node": "node2"}},
		"migration of what is mirrored outside":       {moveable, "OP_INSTANCE_MIGRATE", params{"instance_name": "san", "target_node": "node2"}},
		"failover from a node that is away":           {dead, "OP_INSTANCE_FAILOVER", params{"instance_name": "pair"}},
		"failover from a node that is away, of a SAN": {dead, "OP_INSTANCE_FAILOVER", params{"instance_name": "san", "target_node": "node3"}},
		"migration that comes to a failover":          {dead, "OP_INSTANCE_MIGRATE", params{"instance_name": "pair", "allow_failover": true}},
		"cleanup":                                     {broken, "OP_INSTANCE_MIGRATE", params{"instance_name": "pair", "cleanup": true}},
		"cleanup of what is mirrored outside":         {broken, "OP_INSTANCE_MIGRATE", params{"instance_name": "san", "cleanup": true}},
		"creation of what is mirrored":                {moveable, "OP_INSTANCE_CREATE", creating(params{"disk_template": "drbd", "instance_name": "new", "pnode": "node2", "snode": "node3", "start": true})},
		"removal of what is mirrored":                 {moveable, "OP_INSTANCE_REMOVE", params{"instance_name": "pair"}},
		"growing of what is mirrored":                 {moveable, "OP_INSTANCE_GROW_DISK", params{"instance_name": "pair", "disk": 0, "amount": 8}},
		"another disk of what is mirrored":            {moveable, "OP_INSTANCE_SET_PARAMS", params{"instance_name": "pair", "disks": []any{[]any{"add", params{"size": 4}}}}},
	} {
		t.Run(name, func(t *testing.T) { killedAnywhere(t, tc.begin, tc.id, tc.p, false) })
	}
}

// What was failed over from a node that is away is up on the other one, says what to do when the node is back, and does not go back to the copy that is
// out of date.
func TestFailoverFromTheDead(t *testing.T) {
	r := dead(t)
	if waits := r.all.Nodes(r.opcode("OP_INSTANCE_FAILOVER", params{"instance_name": "pair"}), r.keeper.Snapshot()); len(waits) != 1 || nodeName(r.keeper.Snapshot(), waits[0]) != "node2" {
		t.Errorf("it waits for the agents of %v", waits)
	}
	r.must("null", "OP_INSTANCE_FAILOVER", params{"instance_name": "pair"})
	r.logged("Failover instance pair",
		"* checking disk consistency between source and target",
		"* shutting down instance on source node",
		" - WARNING: Could not shutdown instance pair on node node1, proceeding anyway; please make sure node node1 is down; error details: Node is marked offline",
		"* activating the instance's disks on target node node2",
		"* starting the instance on the target node node2",
		" - INFO: When node node1 is back: drover instance replace-disks --mode replace_on_secondary pair stops what runs of the instance there, and copies its disks anew")
	inst := r.instance("pair")
	if r.state("node2", "pair") != hypervisor.Running || nodeName(r.keeper.Snapshot(), inst.PrimaryNode) != "node2" || inst.StaleOn(inst.SecondaryNodes()[0]) != 0 {
		t.Errorf("node2 has it %q, the inventory %+v", r.state("node2", "pair"), inst)
	}
	if got := r.lastReason("node2", "pair"); got != "testing OP_INSTANCE_FAILOVER "+"gnt:daemon:noded:start" {
		t.Errorf("the reason file says %q", got)
	}
	delete(r.down, "node1")
	r.mark("node1", func(n *cluster.Node) { n.Offline = false })
	_, err := r.run("OP_INSTANCE_FAILOVER", params{"instance_name": "pair"})
	if !fault.Is(err, fault.WrongState) || !strings.Contains(err.Error(), "runs on node node1, which is not its primary node (node2)") {
		t.Errorf("back to a node that runs it: %v", err)
	}
	r.must("null", "OP_INSTANCE_MIGRATE", params{"instance_name": "pair", "cleanup": true})
	if r.state("node1", "pair") != hypervisor.Stopped || r.state("node2", "pair") != hypervisor.Running {
		t.Errorf("behind the cleanup node1 has it %s, node2 %s", r.state("node1", "pair"), r.state("node2", "pair"))
	}
	for _, id := range []string{"OP_INSTANCE_FAILOVER", "OP_INSTANCE_MIGRATE"} {
		_, err = r.run(id, params{"instance_name": "pair"})
		if !fault.Is(err, fault.WrongState) || !strings.Contains(err.Error(), "Disk 0 is degraded") {
			t.Errorf("%s to a copy that is out of date: %v", id, err)
		}
	}
}

// Who is asked to fail over from a node that does not answer and is not marked says what is to be done, and does nothing; upon the operator's word
// it does.
func TestFailoverFromASilentNode(t *testing.T) {
	r := moveable(t)
	r.down["node1"] = true
	before := r.dump()
	_, err := r.run("OP_INSTANCE_FAILOVER", params{"instance_name": "pair"})
	if err == nil || r.dump() != before || !strings.Contains(err.Error(), "Could not shutdown instance pair on node node1") || !strings.Contains(err.Error(), "drover node offline node1") {
		t.Errorf("it ends with %v", err)
	}
	r.must("null", "OP_INSTANCE_FAILOVER", params{"instance_name": "pair", "ignore_consistency": true})
	if r.state("node2", "pair") != hypervisor.Running || r.instance("pair").StaleOn(r.keeper.Snapshot().NodeNamed("node1").UUID) != 0 {
		t.Errorf("node2 has it %q", r.state("node2", "pair"))
	}
}

func TestMigration(t *testing.T) {
	r := moveable(t)
	for _, name := range []string{"pair", "san"} {
		r.must("null", "OP_INSTANCE_MIGRATE", params{"instance_name": name, "target_node": "node2"})
		if name == "pair" {
			r.logged("Migrating instance pair", "* checking disk consistency between source and target", "* preparing node2 to accept the instance",
				"* migrating instance to node2", "* starting memory transfer", "* memory transfer complete", "* done")
		}
		if r.state("node2", name) != hypervisor.Running || r.state("node1", name) == hypervisor.Running || r.instance(name).AdminState != cluster.AdminUp {
			t.Errorf("%s is %q on node1, and %q on node2", name, r.state("node1", name), r.state("node2", name))
		}
		if got := r.lastReason("node2", name); got != "testing OP_INSTANCE_MIGRATE gnt:daemon:noded:migrate" {
			t.Errorf("the reason file of %s says %q", name, got)
		}
	}
	if inst := r.instance("pair"); nodeName(r.keeper.Snapshot(), inst.SecondaryNodes()[0]) != "node1" || inst.StaleOn(inst.SecondaryNodes()[0]) >= 0 {
		t.Errorf("the inventory has %+v", inst.Disks[0])
	}
	if r.state("node1", "san") != "" {
		t.Error("node1 still knows what it does not need any more")
	}
	r.must("null", "OP_INSTANCE_MIGRATE", params{"instance_name": "pair"}) // and back
	// Where none is asked for placement chooses, and says why.
	r.must("null", "OP_INSTANCE_FAILOVER", params{"instance_name": "san", "iallocator": "hail"})
	if r.state("node3", "san") != hypervisor.Running || !strings.Contains(strings.Join(r.log, "\n"), " - INFO: Selected nodes for instance san: node3 (most free memory") {
		t.Errorf("%q", r.log)
	}
}

// A migration that fails leaves the instance where it was, running; one whose new node cannot be told to let go does not start it on the old one.
func TestMigrationThatFails(t *testing.T) {
	for _, name := range []string{"pair", "san"} {
		for _, method := range []string{"receive", "start"} {
			for _, after := range []bool{false, true} {
				r := moveable(t)
				before := r.whole()
				r.failOn("node2", method, after)
				_, err := r.run("OP_INSTANCE_MIGRATE", params{"instance_name": name, "target_node": "node2"})
				if err == nil || r.whole() != before {
					t.Errorf("%s, %s fails behind it %v: %v\n%s\nbefore\n%s", name, method, after, err, r.whole(), before)
				}
			}
		}
		r := moveable(t)
		before := r.whole()
		r.failOn("node1", "send", false)
		if _, err := r.run("OP_INSTANCE_MIGRATE", params{"instance_name": name, "target_node": "node2"}); err == nil || r.whole() != before {
			t.Errorf("%s: %v\n%s\nbefore\n%s", name, err, r.whole(), before)
		}
	}
}

func TestWhatIsNeededHoldsTheRest(t *testing.T) {
	r := moveable(t)
	r.wrap = func(n Node) Node {
		return answering{n, func(verb string) error {
			if verb == stopInstance && n.Node() == "node2" {
				return errBroken
			}
			return nil
		}}
	}
	r.failOn("node2", "start", true) // it runs there, and nobody is told
	_, err := r.run("OP_INSTANCE_MIGRATE", params{"instance_name": "pair"})
	if err == nil || r.state("node1", "pair") != hypervisor.Stopped || r.state("node2", "pair") != hypervisor.Running {
		t.Errorf("%v; it is %s on node1, %s on node2", err, r.state("node1", "pair"), r.state("node2", "pair"))
	}
	r.logs(" - WARNING: It may run there, so it is not started on node node1 again; next: drover instance migrate --cleanup pair")
	r.wrap = nil
	r.failOn("node2", "", false)
	r.must("null", "OP_INSTANCE_MIGRATE", params{"instance_name": "pair", "cleanup": true})
	if inst := r.instance("pair"); nodeName(r.keeper.Snapshot(), inst.PrimaryNode) != "node2" || len(r.runningTwice()) > 0 {
		t.Errorf("behind the cleanup it is on %s", nodeName(r.keeper.Snapshot(), inst.PrimaryNode))
	}
}

// What cannot be moved is refused in the reference's words.
func TestRelocationsAreRefused(t *testing.T) {
	r := moveable(t)
	r.create("up", true)
	r.mirrored("idle", false)
	r.mark("node3", func(n *cluster.Node) { n.Drained = true })
	for _, tc := range []struct {
		id   string
		p    params
		text string
	}{
		{"OP_INSTANCE_FAILOVER", params{"instance_name": "nosuch"}, "Instance 'nosuch' not known"},
		{"OP_INSTANCE_FAILOVER", params{"instance_name": "up"}, "Instance's disk layout 'file' does not allow failovers (its disks are on node1 alone)"},
		{"OP_INSTANCE_MIGRATE", params{"instance_name": "up"}, "Instance's disk layout 'file' does not allow migrations (its disks are on node1 alone)"},
		{"OP_INSTANCE_FAILOVER", params{"instance_name": "pair", "target_node": "node3"}, "Instances with disk types drbd cannot be failed over to arbitrary nodes (neither an iallocator nor a target node can be passed) (the second copy of its disks is on node2)"},
		{"OP_INSTANCE_MIGRATE", params{"instance_name": "pair", "iallocator": "hail"}, "Instances with disk types drbd cannot be migrated to arbitrary nodes (neither an iallocator nor a target node can be passed) (the second copy of its disks is on node2)"},
		{"OP_INSTANCE_MIGRATE", params{"instance_name": "san", "target_node": "node1"}, "Cannot migrate instance san to its primary (node1)"},
		{"OP_INSTANCE_MIGRATE", params{"instance_name": "san", "target_node": "node2", "iallocator": "hail"}, "Do not specify both, iallocator and node"},
		{"OP_INSTANCE_MIGRATE", params{"instance_name": "san", "target_node": "node3"}, "Can't use drained node: node3"},
		{"OP_INSTANCE_MIGRATE", params{"instance_name": "idle"}, "Can't migrate, please use failover: Instance idle is not running (drover instance failover idle)"},
		{"OP_INSTANCE_MIGRATE", params{"instance_name": "pair", "live": true, "mode": "live"}, "Only one of the 'live' and 'mode' parameters are accepted"},
		{"OP_INSTANCE_FAILOVER", params{"instance_name": "pair", "cleanup": true}, "A failover that broke off leaves nothing to clean up (fail the instance over again; a migration that broke off is cleaned up by a migration with cleanup)"},
		{"OP_INSTANCE_MIGRATE", params{"instance_name": "idle", "cleanup": true}, "Instance does not seem to be running at all; in this case it's safer to repair by running 'gnt-instance stop' to ensure disk shutdown, and then restarting it"},
	} {
		before := r.dump()
		if _, err := r.run(tc.id, tc.p); err == nil || err.Error() != tc.text || r.dump() != before {
			t.Errorf("%s%v:\n got %v\nwant %s", tc.id, tc.p, err, tc.text)
		}
	}
	r.must("null", "OP_INSTANCE_MIGRATE", params{"instance_name": "idle", "allow_failover": true})
	if r.state("node2", "idle") != hypervisor.Stopped || nodeName(r.keeper.Snapshot(), r.instance("idle").PrimaryNode) != "node2" {
		t.Error("what does not run was not failed over")
	}
}

// A copy that is not complete is not failed over to, and a creation that waits ends when it is complete.
func TestCopiesAreWaitedFor(t *testing.T) {
	r := moveable(t)
	behind := 8
	r.wrap = func(n Node) Node {
		return lagging{n, func() int { return behind }}
	}
	_, err := r.run("OP_INSTANCE_FAILOVER", params{"instance_name": "pair"})
	if !fault.Is(err, fault.WrongState) || !strings.HasPrefix(err.Error(), "Disk 0 is degraded on target node, aborting failover: 8M of 8M are not copied yet") {
		t.Errorf("%v", err)
	}
	r.wrap = func(n Node) Node {
		return lagging{n, func() int { behind = max(0, behind-4); return behind }}
	}
	behind = 12
	r.must(`["node2","node3"]`, "OP_INSTANCE_CREATE", creating(params{"disk_template": "drbd", "instance_name": "new", "pnode": "node2", "snode": "node3"}))
	r.logs(" - INFO: Waiting for instance new to sync disks")
	r.logs(" - INFO: - device disk/0:  0.00% done, no time estimate")
	r.logs(" - INFO: Instance new's disks are in sync")
}

// Both nodes of a mirrored instance are chosen in one decision, which is kept; and the numbers of its devices are free on both.
func TestMirroredCreations(t *testing.T) {
	r := moveable(t)
	d, _, err := r.decides(params{"instance_name": "new", "mode": "create", "disk_template": "drbd", "disks": []any{params{"size": 8}}, "nics": []any{}, "os_type": "noop"})
	if err != nil || d.Mirror == nil || d.Mirror.UUID == d.UUID || d.Mirror.UUID == "" {
		t.Fatalf("%+v, %v", d, err)
	}
	for _, name := range []string{"a", "b"} {
		r.mirrored(name, false)
	}
	seen := map[string]bool{}
	for inst := range r.keeper.Snapshot().Instances() {
		for i := range inst.Disks {
			id, is := readDRBD(&inst.Disks[i])
			if !is {
				continue
			}
			for _, node := range []string{id.a, id.b} {
				for what, n := range map[string]int64{"minor": id.minor(node), "port": id.port} {
					if key := node + what + string(rune(n)); seen[key] {
						t.Errorf("%s has the %s %d of another on %s", inst.Name, what, n, nodeName(r.keeper.Snapshot(), node))
					} else {
						seen[key] = true
					}
				}
			}
		}
	}
	for _, tc := range []struct {
		p    params
		text string
	}{
		{params{"pnode": "node1"}, "The networked disk templates need a mirror node (name both nodes, or none: then both are chosen)"},
		{params{"pnode": "node1", "snode": "node1"}, "The secondary node cannot be the primary node"},
		{params{"snode": "node1"}, "A secondary node is named, and no primary node (name both nodes, or none: then both are chosen)"},
		{params{"disk_template": "ext", "pnode": "node1"}, "Missing provider for template 'ext'"},
	} {
		p := params{"instance_name": "refused", "mode": "create", "disk_template": "drbd", "disks": []any{params{"size": 8}}, "nics": []any{}, "os_type": "noop"}
		maps.Copy(p, tc.p)
		if _, err := r.run("OP_INSTANCE_CREATE", p); err == nil || err.Error() != tc.text {
			t.Errorf("%v: %v", tc.p, err)
		}
	}
	r.mark("node3", func(n *cluster.Node) { n.Drained = true })
	r.mark("node2", func(n *cluster.Node) { n.Drained = true })
	d, _, err = r.decides(params{"instance_name": "last", "mode": "create", "disk_template": "drbd", "disks": []any{params{"size": 8}}, "nics": []any{}, "os_type": "noop"})
	if err == nil || d.Node != "" || d.Nodes[2].Fails != placement.Mirror {
		t.Errorf("with one node left: %+v, %v", d, err)
	}
}

// lagging is a node whose copies of mirrored disks are so many MiB behind.
// machineNode is a node that runs machines, and keeps their disks.
type machineNode struct {
	anyNode

	templates []string
}

func (n machineNode) Info(ctx context.Context) (hypervisor.Node, error) {
	info, err := n.anyNode.Info(ctx)
	info.Hypervisor, info.StandsIn, info.Templates = "kvm", false, n.templates
	return info, err
}

// What a machine keeps beside its disks is on its node alone, so its disks are not moved without that. Removing them there would remove them.
func TestDisksOfMachinesStayWhereTheyAre(t *testing.T) {
	r := moveable(t)
	for _, machines := range []string{"node1", "node2"} {
		r.wrap = func(n Node) Node {
			if n.Node() == machines {
				return machineNode{n, nil}
			}
			return n
		}
		before := r.dump()
		for _, op := range []string{"OP_INSTANCE_FAILOVER", "OP_INSTANCE_MIGRATE"} {
			_, err := r.run(op, params{"instance_name": "san", "target_node": "node2"})
			if !fault.Is(err, fault.Unsupported) || !strings.Contains(err.Error(), "on node node1 alone") || r.dump() != before {
				t.Errorf("%s, where %s runs machines: %v", op, machines, err)
			}
		}
	}
}

// A node is not given disks of a template that it does not keep, and no template is taken that nobody makes.
func TestTemplatesThatAreNotThere(t *testing.T) {
	r := moveable(t)
	r.wrap = func(n Node) Node { return machineNode{n, []string{"file", "sharedfile"}} }
	for _, tc := range []struct {
		p    params
		text string
	}{
		{params{"disk_template": "plain", "pnode": "node1"}, "Node node1 keeps no disks of template 'plain' (it has: file, sharedfile)"},
		{params{"disk_template": "drbd", "pnode": "node1", "snode": "node2"}, "Node node1 keeps no disks of template 'drbd' (it has: file, sharedfile)"},
		{params{"disk_template": "rbd"}, "Disks of template 'rbd' can't be made: there is no client of Ceph; sharedfile keeps disks in a directory that several nodes reach, which may be CephFS (use one of drbd, ext, file, plain, sharedfile)"},
	} {
		r.must("null", "OP_CLUSTER_SET_PARAMS", params{"enabled_disk_templates": []any{"file", "plain", "drbd", "ext", "rbd", "diskless"}})
		p := params{"instance_name": "refused", "mode": "create", "disks": []any{params{"size": 8}}, "nics": []any{}, "os_type": "noop"}
		maps.Copy(p, tc.p)
		if _, err := r.run("OP_INSTANCE_CREATE", p); err == nil || err.Error() != tc.text {
			t.Errorf("%v: %v", tc.p, err)
		}
	}
}

// What a storage provider is told of a disk is what was said, as text, and goes to the node with it.
func TestWhatProvidersAreTold(t *testing.T) {
	r := moveable(t)
	r.must(`["node1"]`, "OP_INSTANCE_CREATE", params{"instance_name": "new", "mode": "create", "pnode": "node1", "disk_template": "ext", "nics": []any{}, "os_type": "noop",
		"disks": []any{params{"size": 8, "name": "data", "provider": "san", "tier": "gold", "lun": 7}}})
	inst := r.instance("new")
	got := diskOf(&inst.Disks[0]).External
	want := hypervisor.External{Provider: "san", Name: inst.Disks[0].UUID + ".ext.disk0", Label: "data", Params: map[string]string{"tier": "gold", "lun": "7"}}
	if got == nil || !reflect.DeepEqual(*got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	p := params{"instance_name": "other", "mode": "create", "pnode": "node1", "disk_template": "ext", "nics": []any{}, "os_type": "noop", "disks": []any{params{"size": 8, "provider": "san", "tier": []any{"gold"}}}}
	if _, err := r.run("OP_INSTANCE_CREATE", p); !fault.Is(err, fault.Mistyped) || !strings.Contains(err.Error(), "'tier'") {
		t.Error(err)
	}
}

type lagging struct {
	anyNode

	behind func() int
}

func (n lagging) Instance(ctx context.Context, of hypervisor.Thing) (hypervisor.Instance, error) {
	i, err := n.anyNode.Instance(ctx, of)
	for k := range i.Disks {
		if i.Disks[k].From != "" {
			i.Disks[k].Behind = n.behind()
		}
	}
	return i, err
}

// Mirrored disks are made from the format on that every program which may lead keeps all of: one of before would forget whose copy is out of date.
func TestMirroredDisksWaitForTheirFormat(t *testing.T) {
	r := newRig(t, "node1", "node2")
	before := r.dump()
	env := r.env(r.opcode("OP_INSTANCE_CREATE", creating(params{"disk_template": "drbd", "instance_name": "new", "pnode": "node1", "snode": "node2"})))
	env.Format = format.Mirrors - 1
	if _, err := r.all.Run(r.Context(), env); !fault.Is(err, fault.WrongState) || !strings.Contains(err.Error(), "mirrored disks need format 5 of the store, which has 4") || r.dump() != before {
		t.Errorf("it comes to %v", err)
	}
	r.mirrored("new", true)
}
