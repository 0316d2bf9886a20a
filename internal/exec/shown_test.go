package exec

import (
	"context"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/drover-project/drover/internal/agent"
	"github.com/drover-project/drover/internal/agent/exports"
	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/export"
	"github.com/drover-project/drover/internal/hypervisor"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/reason"
	"github.com/drover-project/drover/internal/work"
)

// given is an order that a node got: what it came to, as a verb of steps, and for which step it was.
type given struct {
	node, verb, of string
	step, try      int
	undo           bool
}

// heard is a node that notes the orders that it gets. Which verb each is it tells by itself.
type heard struct {
	anyNode

	orders *[]given
	snap   *cluster.Snapshot // before
}

func (n heard) note(order agent.Order, verb, of string) {
	next := given{n.Node(), verb, of, (order.Step - 1) % work.MaxSteps, (order.Step - 1) / work.MaxSteps / 2, (order.Step-1)/work.MaxSteps%2 == 1}
	if len(*n.orders) == 0 || verb != copyDumps || (*n.orders)[len(*n.orders)-1] != next { // which comes for each piece
		*n.orders = append(*n.orders, next)
	}
}

func (n heard) Prepare(ctx context.Context, order agent.Order, of hypervisor.Thing, disks []hypervisor.Disk) error {
	n.note(order, prepareDisks, of.UUID)
	return n.anyNode.Prepare(ctx, order, of, disks)
}

func (n heard) Drop(ctx context.Context, order agent.Order, of hypervisor.Thing, disks []string) error {
	n.note(order, dropDisks, of.UUID)
	return n.anyNode.Drop(ctx, order, of, disks)
}

func (n heard) Install(ctx context.Context, order agent.Order, spec hypervisor.Spec, os string, params map[string]string, log func(string)) error {
	n.note(order, installSystem, spec.UUID)
	return n.anyNode.Install(ctx, order, spec, os, params, log)
}

func (n heard) InstallImage(ctx context.Context, order agent.Order, spec hypervisor.Spec, image agent.Image, params map[string]string, log func(string)) error {
	n.note(order, installSystem, spec.UUID)
	return n.anyNode.InstallImage(ctx, order, spec, image, params, log)
}

func (n heard) FetchImage(ctx context.Context, order agent.Order, image agent.Image, log func(string)) (agent.Image, error) {
	n.note(order, fetchImage, "")
	return n.anyNode.FetchImage(ctx, order, image, log)
}

func (n heard) SnapshotDisks(ctx context.Context, order agent.Order, of hypervisor.Thing, id string) error {
	n.note(order, snapshotDisks, of.UUID)
	return n.anyNode.SnapshotDisks(ctx, order, of, id)
}

func (n heard) ReleaseSnapshot(ctx context.Context, order agent.Order, of hypervisor.Thing, id string) error {
	n.note(order, releaseDisks, of.UUID)
	return n.anyNode.ReleaseSnapshot(ctx, order, of, id)
}

func (n heard) DumpDisk(ctx context.Context, order agent.Order, spec hypervisor.Spec, d agent.Dump, params map[string]string, log func(string)) error {
	n.note(order, dumpDisk, spec.UUID)
	return n.anyNode.DumpDisk(ctx, order, spec, d, params, log)
}

func (n heard) ImportDisk(ctx context.Context, order agent.Order, spec hypervisor.Spec, d agent.Dump, params map[string]string, log func(string)) error {
	n.note(order, importDisk, spec.UUID)
	return n.anyNode.ImportDisk(ctx, order, spec, d, params, log)
}

func (n heard) FinishExport(ctx context.Context, order agent.Order, id string, e export.Export) error {
	n.note(order, finishExport, n.snap.InstanceNamed(e.Name).UUID)
	return n.anyNode.FinishExport(ctx, order, id, e)
}

func (n heard) KeepDump(ctx context.Context, order agent.Order, to exports.Place, piece agent.Piece) error {
	n.note(order, copyDumps, "")
	return n.anyNode.KeepDump(ctx, order, to, piece)
}

func (n heard) DiscardExport(ctx context.Context, order agent.Order, id string) error {
	n.note(order, discardExport, "")
	return n.anyNode.DiscardExport(ctx, order, id)
}

func (n heard) RemoveExport(ctx context.Context, order agent.Order, name string) error {
	n.note(order, removeExport, "")
	return n.anyNode.RemoveExport(ctx, order, name)
}

func (n heard) Start(ctx context.Context, order agent.Order, spec hypervisor.Spec, trail reason.Trail) error {
	n.note(order, startInstance, spec.UUID)
	return n.anyNode.Start(ctx, order, spec, trail)
}

func (n heard) Stop(ctx context.Context, order agent.Order, of hypervisor.Thing, how hypervisor.Stop, trail reason.Trail) error {
	n.note(order, stopInstance, of.UUID)
	return n.anyNode.Stop(ctx, order, of, how, trail)
}

func (n heard) RebootSoft(ctx context.Context, order agent.Order, of hypervisor.Thing, trail reason.Trail) error {
	n.note(order, restartInstance, of.UUID)
	return n.anyNode.RebootSoft(ctx, order, of, trail)
}

func (n heard) RebootHard(ctx context.Context, order agent.Order, spec hypervisor.Spec, how hypervisor.Stop, trail reason.Trail) error {
	n.note(order, restartInstance, spec.UUID)
	return n.anyNode.RebootHard(ctx, order, spec, how, trail)
}

func (n heard) Rename(ctx context.Context, order agent.Order, of hypervisor.Thing, to string) error {
	n.note(order, renameOnNode, of.UUID)
	return n.anyNode.Rename(ctx, order, of, to)
}

func (n heard) Balloon(ctx context.Context, order agent.Order, of hypervisor.Thing, memory int) error {
	n.note(order, balloonInstance, of.UUID)
	return n.anyNode.Balloon(ctx, order, of, memory)
}

func (n heard) Receive(ctx context.Context, order agent.Order, spec hypervisor.Spec) error {
	n.note(order, receiveInstance, spec.UUID)
	return n.anyNode.Receive(ctx, order, spec)
}

func (n heard) Send(ctx context.Context, order agent.Order, of hypervisor.Thing, trail reason.Trail) error {
	n.note(order, sendInstance, of.UUID)
	return n.anyNode.Send(ctx, order, of, trail)
}

func (n heard) Remove(ctx context.Context, order agent.Order, of hypervisor.Thing) error {
	n.note(order, removeFromNode, of.UUID)
	return n.anyNode.Remove(ctx, order, of)
}

func (n heard) Powercycle(ctx context.Context, order agent.Order) (string, error) {
	n.note(order, powercycleNode, "")
	return n.anyNode.Powercycle(ctx, order)
}

func (n heard) SetAllocatable(ctx context.Context, order agent.Order, device string, may bool) error {
	n.note(order, setAllocatable, "")
	return n.anyNode.SetAllocatable(ctx, order, device, may)
}

func (n heard) RepairStorage(ctx context.Context, order agent.Order, group string) error {
	n.note(order, repairUnit, "")
	return n.anyNode.RepairStorage(ctx, order, group)
}

func (n heard) RunCommand(ctx context.Context, order agent.Order, name string) (string, error) {
	n.note(order, runCommand, "")
	return n.anyNode.RunCommand(ctx, order, name)
}

func (n heard) RenameSystem(ctx context.Context, order agent.Order, spec hypervisor.Spec, os, former string, params map[string]string, log func(string)) error {
	n.note(order, renameSystem, spec.UUID)
	return n.anyNode.RenameSystem(ctx, order, spec, os, former, params, log)
}

// What a dry run shows is what is carried out, step by step, for any request on any cluster: nodes get the orders of the steps that
// name them, in this order and no others, the inventory changes what the others are about, and what is refused gives none. Where a node
// fails it is the first of them, and those that take them back.
func TestStepsThatAreShownAreCarriedOut(t *testing.T) {
	carried := map[string]int{}
	for _, id := range slices.Sorted(maps.Keys(newRig(t).all)) {
		if samples[id] == nil && !alone[id] {
			t.Errorf("%s has no sample", id)
		}
	}
	check := func(rt *rapid.T) {
		r := newRig(t, []string{"node1", "node2", "node3"}[:rapid.IntRange(1, 3).Draw(rt, "nodes")]...)
		r.network("net", "192.0.2.0/29", "192.0.2.1")
		r.network("free", "203.0.113.0/29", "")
		r.must("null", "OP_GROUP_ADD", params{"group_name": "empty"})
		for range rapid.IntRange(8, 20).Draw(rt, "requests") {
			id, p, gone := request(rt, r)
			done, lost := r.shownIsDone(rt, id, p)
			if carried[id] += done; lost || gone {
				return // what comes next would fail upon what nothing has told it of
			}
		}
	}
	missing := func() (ids []string) {
		for id := range several {
			if carried[id] == 0 {
				ids = append(ids, id)
			}
		}
		return ids
	}
	rapid.Check(t, check)
	for range 15 { // what needs much to come together is drawn now and then
		if testing.Short() || t.Failed() || len(missing()) == 0 {
			return
		}
		rapid.Check(t, check)
	}
	if ids := missing(); len(ids) > 0 {
		t.Errorf("never carried out to their end: %v", ids)
	}
}

// request chooses an opcode, those of several steps more often, and what it is to do on a cluster, and whether disks, or room for them, are
// gone then.
func request(rt *rapid.T, r *rig) (id string, p params, gone bool) {
	ids := slices.Sorted(maps.Keys(samples))
	if rapid.IntRange(0, 3).Draw(rt, "steps") > 0 {
		ids = slices.Sorted(maps.Keys(several))
	}
	snap := r.keeper.Snapshot()
	if snap.InstanceNamed("a") == nil && snap.InstanceNamed("b") == nil {
		ids = append(ids, "OP_INSTANCE_CREATE", "OP_INSTANCE_CREATE", "OP_INSTANCE_CREATE")
	}
	d := drawing{rt, snap}
	id = rapid.SampledFrom(ids).Draw(rt, "opcode")
	p = maps.Clone(samples[id])
	for name := range p {
		if d.named(name) {
			p[name] = d.name(name)
		}
	}
	if more := requests[id]; more != nil {
		maps.Copy(p, more(d))
	}
	if id == "OP_NODE_CLEAR_ORPHANS" && rapid.Bool().Draw(rt, "left") {
		node := p["node_name"].(string)
		if n := snap.NodeNamed(node); n != nil && !n.Offline {
			r.onNode(node, "left", r.newUUID(), life)
		}
	}
	if id == "OP_INSTANCE_RECREATE_DISKS" && rapid.IntRange(0, 3).Draw(rt, "lost") > 0 {
		if inst := snap.InstanceNamed(p["instance_name"].(string)); inst != nil && inst.AdminState != cluster.AdminUp {
			for _, uuid := range instanceNodes(inst) {
				r.lose(inst.Name, snap.Node(uuid).Name)
				gone = true
			}
		}
	}
	if id == "OP_NODE_MODIFY_STORAGE" { // a device that gives out no room is no figure of its node, so a choice of nodes finds out when it makes disks
		gone = true
	}
	return id, p, gone
}

// drawing chooses values on a cluster.
type drawing struct {
	*rapid.T

	snap *cluster.Snapshot
}

func (d drawing) one(what string, of ...any) any { return rapid.SampledFrom(of).Draw(d.T, what) }

func (d drawing) yes(what string) bool { return rapid.Bool().Draw(d.T, what) }

func (drawing) named(param string) bool {
	return slices.Contains([]string{"instance_name", "node_name", "group_name", "network_name", "new_name"}, param)
}

// name is the name of something that there is, mostly.
func (d drawing) name(param string) string {
	var names []string
	switch param {
	case "instance_name":
		names = []string{"a", "b", "c"}
	case "node_name":
		names = []string{"node1", "node2", "node3", "node4"}
	case "group_name":
		names = []string{"default", "empty", "new"}
	case "network_name":
		names = []string{"net", "free", "new"}
	default:
		names = []string{"a", "b", "empty", "net", "other"}
	}
	return rapid.SampledFrom(names).Draw(d.T, param)
}

// disks are changes of an instance's disks.
func (d drawing) disks() any {
	list := []any{}
	for range rapid.IntRange(0, 2).Draw(d.T, "disk changes") {
		list = append(list, d.one("disk change", []any{"add", 0, params{"size": 4}}, []any{"add", 1, params{"size": 6, "name": "x"}},
			[]any{"remove", 0, params{}}, []any{0, params{"mode": "ro"}}, []any{1, params{"mode": "ro"}}))
	}
	return list
}

func (d drawing) nic() params {
	return d.one("nic", params{"network": "net", "ip": "pool"}, params{}, params{"network": "net", "ip": "192.0.2.3"}, params{"link": "br3"}).(params)
}

// requests draw what differs from the samples, but for names.
var requests = map[string]func(drawing) params{
	"OP_INSTANCE_CREATE": func(d drawing) params {
		p := params{"start": d.yes("start"), "nics": []any{d.nic()}, "no_install": rapid.IntRange(0, 3).Draw(d.T, "no install") == 0}
		for range rapid.IntRange(0, 2).Draw(d.T, "more disks") {
			p["disks"] = []any{params{"size": 4}, params{"size": 8}}
		}
		mirrored := d.yes("mirrored")
		if mirrored {
			p["disk_template"] = cluster.DiskDRBD
		}
		if d.yes("placed") {
			p["pnode"] = d.name("node_name")
			if mirrored {
				p["snode"] = d.name("node_name")
			}
		}
		if rapid.IntRange(0, 4).Draw(d.T, "memory") == 0 {
			p["beparams"] = params{"memory": d.one("MiB", 64, 4096, 100000)}
		}
		return p
	},
	"OP_INSTANCE_REMOVE": func(d drawing) params { return params{"ignore_failures": d.yes("ignore failures")} },
	"OP_INSTANCE_STARTUP": func(d drawing) params {
		return params{"no_remember": d.yes("no remember"), "startup_paused": d.yes("paused")}
	},
	"OP_INSTANCE_SHUTDOWN": func(d drawing) params {
		return params{"no_remember": d.yes("no remember"), "force": d.yes("force"), "timeout": d.one("timeout", 0, 120)}
	},
	"OP_INSTANCE_REBOOT":    func(d drawing) params { return params{"reboot_type": d.one("type", "soft", "hard", "full")} },
	"OP_INSTANCE_REINSTALL": func(d drawing) params { return params{"os_type": d.one("os", "noop", "noop+default", "nosuch")} },
	"OP_INSTANCE_SET_PARAMS": func(d drawing) params {
		p := params{"disks": d.disks(), "nics": []any{}, "beparams": params{"vcpus": d.one("vcpus", 1, 2, 4)}}
		if d.yes("change nics") {
			p["nics"] = []any{[]any{d.one("nic change", "add", "remove", 0), d.nic()}}
		}
		if rapid.IntRange(0, 4).Draw(d.T, "offline") == 0 {
			p["offline"] = d.yes("is offline")
		}
		return p
	},
	"OP_INSTANCE_GROW_DISK": func(d drawing) params {
		return params{"disk": d.one("disk", 0, 1), "amount": d.one("amount", 0, 4, 16), "absolute": d.yes("absolute")}
	},
	"OP_NODE_SET_PARAMS": func(d drawing) params {
		return d.one("node is", params{"drained": true}, params{"drained": false}, params{"drained": nil, "offline": true}, params{"drained": nil, "offline": false}).(params)
	},
	"OP_GROUP_ASSIGN_NODES": func(d drawing) params { return params{"nodes": []any{d.name("node_name")}, "force": d.yes("force")} },
	"OP_CLUSTER_SET_PARAMS": func(d drawing) params { return params{"max_running_jobs": d.one("jobs", 1, 20)} },
	"OP_TAGS_SET":           func(d drawing) params { return params{"tags": []any{d.one("tag", "x", "y")}} },
	"OP_TAGS_DEL":           func(d drawing) params { return params{"tags": []any{d.one("tag", "x", "y", "z")}} },
	"OP_TEST_DELAY":         func(drawing) params { return params{"duration": 0.0001} },
	"OP_TEST_DUMMY":         func(d drawing) params { return params{"fail": d.yes("fail")} },

	"OP_INSTANCE_RECREATE_DISKS": func(d drawing) params {
		return d.one("disks on", params{}, params{"iallocator": "hail"}, params{"nodes": []any{d.name("node_name")}},
			params{"disks": []any{[]any{0, params{"size": 12}}}}).(params)
	},
	"OP_INSTANCE_MOVE": func(d drawing) params {
		return params{"target_node": d.name("node_name"), "ignore_consistency": d.yes("ignore consistency")}
	},
	"OP_INSTANCE_DEACTIVATE_DISKS": func(d drawing) params { return params{"force": d.yes("force")} },
}

// shownIsDone asks what an opcode will do, and has it done, with a node that fails or without. It returns 1 if it went to its end. Lost says
// that a node has removed something and said that it has not: what is asked of that from then on is no matter of steps.
func (r *rig) shownIsDone(rt *rapid.T, id string, p params) (done int, lost bool) {
	r.Helper()
	op := r.opcode(id, p)
	_, err := r.all.Locks(op, r.keeper.Snapshot())
	if err != nil {
		return 0, false // nothing begins without its locks
	}
	orders := []given{}
	r.wrap = func(n Node) Node { return heard{n, &orders, r.keeper.Snapshot()} }
	defer func() { r.wrap = nil }()
	r.mu.Lock()
	uuids := r.uuids
	r.mu.Unlock()
	_, planned, refused := r.all.Check(r.Context(), r.env(op))
	if len(orders) > 0 {
		rt.Fatalf("a dry run of %s%v gives orders: %+v", id, p, orders)
	}
	r.mu.Lock()
	r.uuids = uuids // what is drawn is no part of the comparison
	r.mu.Unlock()
	method := rapid.SampledFrom([]string{"", "", "", "", "start", "stop", "reboot", "prepare", "drop", "rename", "remove"}).Draw(rt, "broken")
	node := rapid.SampledFrom([]string{"node1", "node2"}).Draw(rt, "on")
	behind := rapid.Bool().Draw(rt, "behind")
	r.failOn(node, method, behind)
	defer r.failOn(node, "", false)

	before := r.keeper.Snapshot()
	var shown, kept []job.Step
	env := r.env(r.opcode(id, p))
	env.Stepwise = true
	env.Show = func(s []job.Step) { shown = s }
	env.Keep = func(_ context.Context, w *work.Work) error {
		kept = env.shownSteps(w, work.Progress{})
		return nil
	}
	_, err = r.all.Run(r.Context(), env)
	rt.Logf("%s%v: %v, orders %+v", id, p, err, orders)
	if refused != nil {
		if err == nil || err.Error() != refused.Error() || len(orders) > 0 || shown != nil {
			rt.Fatalf("%s%v was to be refused (%v), and comes to %v, with %+v and %+v", id, p, refused, err, orders, shown)
		}
		return 0, false
	}
	if err != nil && method == "" && p["fail"] != true {
		rt.Fatalf("%s%v was to come to %+v, and comes to %v", id, p, planned, err)
	}
	r.compareSteps(rt, planned, shown, kept, err == nil)
	r.compareOrders(rt, planned, orders, err == nil)
	r.compareInventory(rt, planned, before)
	if err != nil {
		return 0, behind && (method == "remove" || method == "drop")
	}
	return 1, false
}

// compareSteps holds what is shown while an opcode runs, and what is kept of it, to what was shown before.
func (r *rig) compareSteps(rt *rapid.T, planned, shown, kept []job.Step, whole bool) {
	r.Helper()
	if kept != nil && !slices.Equal(kept, planned) {
		rt.Fatalf("kept are %+v, planned %+v", kept, planned)
	}
	if len(planned) < 2 && shown == nil {
		return // one step is not shown while it runs
	}
	if len(shown) != len(planned) {
		rt.Fatalf("carried out are %+v, planned %+v", shown, planned)
	}
	for i, was := range planned {
		is := shown[i]
		if was.State != job.StepPlanned || whole && is.State != job.StepDone && is.State != job.StepLeft || is.State == job.StepRunning || is.State == job.StepDone && (is.From == 0 || is.To == 0) {
			rt.Fatalf("step %d was %s and is %s, %d to %d", i, was.State, is.State, is.From, is.To)
		}
		is.State, is.From, is.To = was.State, 0, 0
		if was != is {
			rt.Fatalf("step %d was shown as %+v and carried out as %+v", i, was, is)
		}
	}
}

// compareOrders holds the orders that nodes got to the steps that were shown: each is that of its step, they come in turn, and what
// takes steps back comes behind them, in the opposite order. What is discarded of an export is of no instance.
func (r *rig) compareOrders(rt *rapid.T, planned []job.Step, orders []given, whole bool) {
	r.Helper()
	var due []int // the steps that are orders
	for i := range planned {
		if planned[i].Node != "" && planned[i].Verb != awaitSync { // which only looks
			due = append(due, i)
		}
	}
	forth := slices.DeleteFunc(slices.Clone(orders), func(g given) bool { return g.undo })
	back := slices.DeleteFunc(slices.Clone(orders), func(g given) bool { return !g.undo })
	if !slices.Equal(orders, slices.Concat(forth, back)) || len(forth) > len(due) || whole && (len(forth) < len(due) || len(back) > 0) {
		rt.Fatalf("the orders are %+v, planned %+v", orders, planned)
	}
	for k, g := range forth {
		s := planned[due[k]]
		if want := (given{s.Node, s.Verb, s.Of, due[k], 0, false}); g != want {
			rt.Fatalf("order %d is %+v, planned is %+v", k, g, want)
		}
	}
	for k, g := range back {
		if s := planned[g.step]; g.node != s.Node || g.of != s.Of && g.verb != discardExport || k > 0 && back[k-1].step <= g.step {
			rt.Fatalf("taken back is %+v, planned were %+v", back, planned)
		}
	}
}

// compareInventory holds the instances that are others than before to the steps that change the inventory.
func (r *rig) compareInventory(rt *rapid.T, planned []job.Step, before *cluster.Snapshot) {
	r.Helper()
	if planned == nil {
		return // it is one change of the inventory, or none
	}
	after := r.keeper.Snapshot()
	for _, pair := range [][2]*cluster.Snapshot{{before, after}, {after, before}} {
		for inst := range pair[0].Instances() {
			stays := pair[1].Instance(inst.UUID) == inst
			if !stays && !slices.ContainsFunc(planned, func(s job.Step) bool { return s.Node == "" && s.Of == inst.UUID }) {
				rt.Fatalf("instance %s was changed, and no step says so: %+v", inst.Name, planned)
			}
		}
	}
}
