package exec

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"testing"

	"github.com/drover-project/drover/internal/agent"
	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/hypervisor"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/opcode"
	"github.com/drover-project/drover/internal/store"
	"github.com/drover-project/drover/internal/work"
)

// several are the requests of the opcodes that do several things, on the cluster of the rig that killable makes.
var several = map[string]params{
	"OP_INSTANCE_CREATE":    creating(params{"instance_name": "new", "nics": []any{params{"network": "net", "ip": "pool"}}}),
	"OP_INSTANCE_REMOVE":    {"instance_name": "up"},
	"OP_INSTANCE_RENAME":    {"instance_name": "down", "new_name": "other"},
	"OP_INSTANCE_STARTUP":   {"instance_name": "down"},
	"OP_INSTANCE_SHUTDOWN":  {"instance_name": "up"},
	"OP_INSTANCE_REBOOT":    {"instance_name": "up", "reboot_type": "full"},
	"OP_INSTANCE_REINSTALL": {"instance_name": "down", "os_type": "noop"},
	"OP_INSTANCE_SET_PARAMS": {"instance_name": "fed", "beparams": params{"vcpus": 2}, "disks": []any{[]any{"add", 1, params{"size": 4}}, []any{"remove", 0, params{}}, []any{"detach", 1, params{}},
		[]any{"attach", 0, params{"name": "spare"}}}},
	"OP_INSTANCE_GROW_DISK":     {"instance_name": "down", "disk": 0, "amount": 8},
	"OP_NODE_CLEAR_ORPHANS":     {"node_name": "node1"},
	"OP_IMAGE_ADD":              {"image_name": "new", "source": startable},
	"OP_BACKUP_EXPORT":          {"instance_name": "up", "target_node": "node2", "long_sleep": true, "remove_instance": true},
	"OP_INSTANCE_FAILOVER":      {"instance_name": "pair"},
	"OP_INSTANCE_MIGRATE":       {"instance_name": "pair"},
	"OP_INSTANCE_REPLACE_DISKS": {"instance_name": "pair", "mode": "replace_on_secondary"},

	"OP_INSTANCE_ACTIVATE_DISKS": {"instance_name": "pair", "wait_for_sync": true},
	"OP_INSTANCE_MOVE":           {"instance_name": "up", "target_node": "node2"},
	"OP_INSTANCE_RECREATE_DISKS": {"instance_name": "lost", "disks": []any{[]any{0, params{"size": 12}}}},
}

// killable is a rig on whose cluster each of them succeeds, and each of the samples.
func killable(t *testing.T) *rig {
	t.Helper()
	r := newRig(t, "node1", "node2", "node3", "node8", "node9")
	r.must("null", "OP_GROUP_ADD", params{"group_name": "far", "alloc_policy": "unallocable"})
	r.must("null", "OP_GROUP_ASSIGN_NODES", params{"group_name": "far", "nodes": []any{"node8", "node9"}})
	r.create("up", true)
	r.create("down", false)
	r.mirrored("pair", true)
	r.mirrored("lost", false)
	r.lose("lost", "node1", "node2")
	r.create("fed", false)
	r.must(`[["disk/1","add:size=16,mode=rw"],["disk/2","add:size=20,mode=rw"]]`, "OP_INSTANCE_SET_PARAMS", ofDisks("fed", []any{"add", 1, params{"size": 16}}, []any{"add", 2, params{"size": 20, "name": "spare"}}))
	r.must(`[["disk/2","detach"]]`, "OP_INSTANCE_SET_PARAMS", ofDisks("fed", []any{"detach", params{}}))
	r.create("active", false)
	r.must(r.device("active"), "OP_INSTANCE_ACTIVATE_DISKS", params{"instance_name": "active"})
	r.network("net", "192.0.2.0/28", "")
	r.must("null", "OP_NETWORK_ADD", params{"network_name": "free", "network": "203.0.113.0/28"})
	r.must("null", "OP_GROUP_ADD", params{"group_name": "empty"})
	r.must("null", "OP_TAGS_SET", params{"kind": "cluster", "tags": []any{"there"}})
	if _, err := r.run("OP_IMAGE_ADD", params{"image_name": "there", "source": startable}); err != nil {
		t.Fatal(err)
	}
	r.onNode("node1", "left", "left-behind", life)
	r.onNode("node1", "left2", "left-as-well", life)
	r.setNode("node9", func(n *cluster.Node) { n.NDParams = cluster.Params{"oob_program": "/oob"} })
	var had []string
	var refuse error
	r.wrap = func(n Node) Node { return stoppedOnly{plugs{n, &had, &refuse}, t} }
	r.keeper.OnChange(func(*cluster.Snapshot) {
		_ = r.called() // a controller may die behind a commit, and not undo it
	})
	return r
}

// stoppedOnly is a node on which no operating system is installed on a machine that runs, whoever asks for it.
type stoppedOnly struct {
	anyNode

	t *testing.T
}

func (n stoppedOnly) Install(ctx context.Context, order agent.Order, spec hypervisor.Spec, os string, params map[string]string, log func(string)) error {
	if i, err := n.Instance(ctx, spec.Thing()); err == nil && i.Active() {
		n.t.Errorf("%s is installed while it runs", spec.Name)
	}
	return n.anyNode.Install(ctx, order, spec, os, params, log)
}

// term is one controller that carries an opcode out, or goes on with it. It is killed when so many things happened: calls of a
// driver begin or end, and transactions are written.
type term struct {
	*rig
	until, happened int
	kill            context.CancelFunc
}

// happens counts one thing, and refuses it if the controller is dead by then.
func (l *term) happens() error {
	l.happened++
	if l.happened >= l.until {
		l.kill()
		return fault.New(fault.Unavailable, "the controller was killed")
	}
	return nil
}

// lived is what an opcode came to in one life: how it ended, and its steps. dead says that the controller was killed.
type lived struct {
	result string
	err    error
	dead   bool
	steps  []job.Step
	orders []given
}

// live carries the opcode out in a new life, or goes on with what the store has of it.
func (r *rig) live(op *opcode.Opcode, epoch int64, resumed bool, until int) (out lived) {
	r.Helper()
	ctx, kill := context.WithCancel(r.Context())
	defer kill()
	l := &term{rig: r, until: until, kill: kill}
	happens := l.happens
	r.onCall.Store(&happens)
	defer r.onCall.Store(nil)
	env := r.env(op)
	env.Job, env.Epoch, env.Resumed, env.Stepwise, env.Term = 77, epoch, resumed, true, ctx
	env.Show = func(s []job.Step) { out.steps = s }
	key := store.Key{Kind: KindWork, ID: RecordID(env.Job, env.Index)}
	env.Keep = func(_ context.Context, w *work.Work) error {
		if err := l.happens(); err != nil {
			return err
		}
		text, err := w.Encode()
		if err == nil {
			_, err = store.Commit(r.Context(), r.store, store.Tx{Put: []store.Put{{Key: key, Value: text}}})
		}
		return err
	}
	if resumed {
		env.Kept = r.kept(env)
	}
	var err error
	if env.Locks, err = r.all.Locks(op, r.keeper.Snapshot()); err != nil && env.Kept == nil {
		r.Fatal(err)
	}
	wrap := r.wrap
	defer func() { r.wrap = wrap }()
	r.wrap = func(n Node) Node {
		if n = (heard{n, &out.orders, r.keeper.Snapshot()}); wrap != nil {
			n = wrap(n)
		}
		return n
	}
	result, err := r.all.Run(ctx, env)
	out.result, out.err, out.dead = string(result), err, ctx.Err() != nil
	return out
}

// kept reads what the store has of an opcode.
func (r *rig) kept(env *Env) *Kept {
	r.Helper()
	var k Kept
	found := false
	for _, kind := range []store.Kind{KindWork, KindStep} {
		o, err := r.store.Get(r.Context(), store.Key{Kind: kind, ID: RecordID(env.Job, env.Index)})
		if fault.Is(err, fault.NotFound) {
			continue
		}
		if err == nil && kind == KindWork {
			k.Work, err = work.Decode(o.Value)
		} else if err == nil {
			err = json.Unmarshal(o.Value, &k.Progress)
		}
		if err != nil {
			r.Fatal(err)
		}
		found = true
	}
	if !found {
		return nil
	}
	if err := k.Readable(); err != nil {
		r.Fatal(err)
	}
	return &k
}

// whole is what a cluster comes to: what the inventory says of instances, and what nodes have, without what differs from run to run.
func (r *rig) whole() string {
	r.Helper()
	snap := r.keeper.Snapshot()
	out := fmt.Sprintln(snap.Cluster().Name, snap.Cluster().Tags, snap.Cluster().MaxRunningJobs)
	for n := range snap.Nodes() {
		out += fmt.Sprintln(n.Name, n.Drained, n.Powered, snap.Group(n.Group).Name)
	}
	for g := range snap.Groups() {
		out += fmt.Sprintln(g.Name, g.AllocPolicy, len(g.Networks))
	}
	for n := range snap.Networks() {
		out += fmt.Sprintln(n.Name, n.Gateway, n.Reserved)
	}
	for inst := range r.keeper.Snapshot().Instances() {
		out += fmt.Sprintf("%s %s %v %s %s %d nics:", inst.Name, inst.AdminState, inst.DisksActive, inst.OS, inst.BEParams, len(inst.Disks))
		for _, node := range instanceNodes(inst) {
			out += fmt.Sprint(" on ", nodeName(snap, node), inst.StaleOn(node))
		}
		for i := range inst.Disks {
			out += fmt.Sprint(" ", inst.Disks[i].Size)
		}
		for i := range inst.NICs {
			out += " " + inst.NICs[i].IP
		}
		out += "\n"
	}
	for d := range snap.Disks() {
		out += fmt.Sprintln("detached", d.Disk.Name, d.Disk.Size, d.Former)
	}
	for _, name := range []string{"node1", "node2", "node3"} {
		a, err := r.fleet.Agent(name)
		var list []hypervisor.Instance
		if err == nil {
			list, err = a.Instances(r.Context())
		}
		if err != nil {
			r.Fatal(err)
		}
		for _, i := range list {
			called := i.Name
			if i.Detached() {
				called = "a detached disk"
			}
			out += fmt.Sprintf("%s has %s %s", name, called, i.State)
			for _, d := range i.Disks {
				out += fmt.Sprint(" ", d.Size)
			}
			out += "\n"
			if i.Detached() && snap.Disk(i.UUID) != nil {
				continue
			}
			if inst := snap.Instance(i.UUID); inst == nil || inst.Name != i.Name {
				out += "the inventory does not know it\n"
			}
		}
	}
	return out
}

// TestKilledAnywhere kills the controller at each boundary of each opcode: at each call of a driver, before and behind it, and before each
// commit, once and in the life that goes on with it, too. The opcode comes to what it comes to undisturbed.
func TestKilledAnywhere(t *testing.T) {
	for id, p := range samples {
		if id == "OP_TEST_DELAY" || id == "OP_TEST_DUMMY" || id == "OP_TEST_JQUEUE" {
			continue // they change nothing, and what they wait for or fail with is not at stake
		}
		if of, many := several[id]; many {
			p = of
		}
		t.Run(id, func(t *testing.T) { killedAnywhere(t, killable, id, p, !testing.Short()) })
	}
	if left := slices.DeleteFunc(slices.Collect(maps.Keys(several)), func(id string) bool { return samples[id] != nil }); len(left) > 0 {
		t.Errorf("no samples of %v", left)
	}
}

// killedAnywhere holds an opcode to coming to what it comes to undisturbed, wherever its controllers are killed.
// With twice the one that goes on is killed, too.
func killedAnywhere(t *testing.T, begin func(*testing.T) *rig, id string, p params, twice bool) {
	undisturbed := begin(t)
	before := undisturbed.whole()
	want := undisturbed.live(undisturbed.opcode(id, p), 1, false, 1000)
	if want.err != nil {
		t.Fatal(want.err)
	}
	whole, kills := undisturbed.whole(), 0
	stride := 2 // as on a board of chess: all pairs of boundaries with make soak
	if os.Getenv("DROVER_SOAK") != "" {
		stride = 1
	}
	for first, over := 1, false; !over; first++ {
		for second := 1 + first%stride; ; second += stride {
			r := begin(t)
			got, deaths := r.livesOn(r.opcode(id, p), first, second)
			if kills += deaths; got.err != nil || got.result != want.result || r.whole() != whole {
				t.Fatalf("killed at %d and %d: %s, %v\n%s\nwant %s\n%s", first, second, got.result, got.err, r.whole(), want.result, whole)
			}
			if over = deaths == 0; deaths < 2 || !twice {
				break
			}
		}
	}
	if kills == 0 && whole != before {
		t.Error("it was never killed")
	}
}

// runningTwice are the instances that run on several nodes which are in service.
func (r *rig) runningTwice() (names []string) {
	r.Helper()
	runs := map[string]string{}
	for n := range r.keeper.Snapshot().Nodes() {
		a, err := r.fleet.Agent(n.Name)
		var list []hypervisor.Instance
		if err == nil && !n.Offline {
			list, err = a.Instances(r.Context())
		}
		if err != nil {
			r.Fatal(err)
		}
		for _, i := range list {
			if on := runs[i.UUID]; i.Active() && on != "" {
				names = append(names, i.Name+" on "+on+" and "+n.Name)
			} else if i.Active() {
				runs[i.UUID] = n.Name
			}
		}
	}
	return names
}

// livesOn carries an opcode out by a controller that is killed at the first, one that is killed at the second, and one that is not, as
// far as it takes them; deaths is how many were killed.
func (r *rig) livesOn(op *opcode.Opcode, first, second int) (got lived, deaths int) {
	r.Helper()
	before := len(r.runningTwice())
	begun := 0 // the furthest step that an earlier life gave an order for
	for epoch, until := range []int{first, second, 1000} {
		done := 0
		if kept := r.kept(&Env{Job: 77}); kept != nil && kept.Work != nil {
			done = kept.Progress.Of(kept.Work).Done
		}
		got = r.live(op, int64(epoch)+1, epoch > 0, until)
		if twice := r.runningTwice(); len(twice) > before {
			r.Errorf("killed at %d and %d: behind life %d there run %v", first, second, epoch+1, twice)
		}
		furthest := begun
		for _, g := range got.orders {
			if !g.undo && g.try == 0 && (g.step < done || g.verb == installSystem && g.step < begun) {
				r.Errorf("killed at %d and %d: life %d gives the order %+v, though %d steps are done and step %d was begun", first, second, epoch+1, g, done, begun)
			}
			furthest = max(furthest, g.step)
		}
		begun = furthest
		if !got.dead {
			break
		}
		deaths++
	}
	return got, deaths
}
