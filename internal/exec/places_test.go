package exec

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/drover-project/drover/internal/agent"
	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/hypervisor"
)

// placed are the parameters of a creation whose node is chosen.
func placed(name string, memory int, changes params) params {
	p := creating(params{"instance_name": name, "pnode": nil, "beparams": params{"memory": memory}, "no_install": true, "nics": []any{}})
	maps.Copy(p, changes)
	return p
}

// nodesOf counts the instances of each node.
func (r *rig) nodesOf() map[string]int {
	out := map[string]int{}
	for inst := range r.keeper.Snapshot().Instances() {
		out[r.keeper.Snapshot().Node(inst.PrimaryNode).Name]++
	}
	return out
}

// A hundred creations that choose at the same time, before any of them has made anything,
// fill ten nodes evenly, to the last place; one more finds none.
func TestCreationsSeeOneAnother(t *testing.T) {
	var nodes []string
	for i := range 10 {
		nodes = append(nodes, fmt.Sprintf("node%d", i+1))
	}
	r := newRig(t, nodes...)
	const count, memory = 100, 716 // ten on each node, which has 7168 MiB for instances
	var chosen sync.WaitGroup
	chosen.Add(count)
	arrives := map[string]func(){}
	r.wrap = func(n Node) Node {
		return beforePrepare{n, func(name string) { arrives[name](); chosen.Wait() }}
	}
	var ended sync.WaitGroup
	var begin []func()
	for i := range count {
		name := fmt.Sprintf("i%d", i)
		arrives[name] = sync.OnceFunc(chosen.Done)
		env := r.env(r.opcode("OP_INSTANCE_CREATE", placed(name, memory, params{"start": i%2 == 0, "no_install": i%2 == 1})))
		begin = append(begin, func() {
			defer arrives[name]() // who does not get as far holds up nobody
			if _, err := r.all.Run(t.Context(), env); err != nil {
				t.Error(err)
			}
		})
	}
	for _, f := range begin {
		ended.Go(f)
	}
	ended.Wait()
	if got := r.nodesOf(); len(got) != 10 || slices.ContainsFunc(nodes, func(n string) bool { return got[n] != count/10 }) {
		t.Errorf("the nodes have %v", got)
	}
	r.wrap = nil
	r.refuses("OpPrereqError", "Can't find a node for the instance: of 10 candidates 10 with too little memory (716 MiB needed, at best 8 on node1) (drover instance add with --explain tells what is in the way on each node)", "OP_INSTANCE_CREATE", placed("late", memory, nil))
}

// A place that was chosen is free again when nothing comes of it: the creation was tried
// only, refused, failed, or is over and its instance gone.
func TestPlacesAreGivenBack(t *testing.T) {
	r := newRig(t)
	const all = 7168
	for name, try := range map[string]func(){
		"tried only": func() { r.must(`["node1"]`, "OP_INSTANCE_CREATE", placed("one", all, params{"dry_run": true})) },
		"refused": func() {
			r.refuses("OpPrereqError", "OS 'nosuch' not in supported OS list for node node1", "OP_INSTANCE_CREATE", placed("one", all, params{"os_type": "nosuch"}))
		},
		"failed": func() {
			r.failOn("node1", "prepare", false)
			r.refuses("OpExecError", "Could not create the disks of instance one on node node1: the driver is broken on purpose", "OP_INSTANCE_CREATE", placed("one", all, nil))
			r.failOn("node1", "", false)
		},
		"made and gone": func() {
			r.must(`["node1"]`, "OP_INSTANCE_CREATE", placed("one", all, nil))
			r.must("null", "OP_INSTANCE_REMOVE", one(nil))
		},
	} {
		t.Run(name, func(t *testing.T) {
			r.TB = t
			try()
			r.must(`["node1"]`, "OP_INSTANCE_CREATE", placed("next", all, nil))
			r.must("null", "OP_INSTANCE_REMOVE", params{"instance_name": "next"})
		})
	}
}

// fullNode is a node on which something happens before disks are made, which may refuse
// them.
type fullNode struct {
	anyNode
	prepare func(node string) error
}

func (n fullNode) Prepare(ctx context.Context, order agent.Order, of hypervisor.Thing, disks []hypervisor.Disk) error {
	if err := n.prepare(n.Node()); err != nil {
		return err
	}
	return n.anyNode.Prepare(ctx, order, of, disks)
}

// A creation whose place was taken chooses again, and leaves nothing on the node that it
// had chosen; one that was told its node does not.
func TestWhosePlaceWasTakenChoosesAgain(t *testing.T) {
	disks := func(*rig) func(string) error {
		return func(node string) error {
			if node == "node1" {
				return fault.New(fault.Exhausted, "not enough disk space")
			}
			return nil
		}
	}
	memory := func(r *rig) func(string) error {
		return func(node string) error {
			if node != "node1" || r.keeper.Snapshot().InstanceNamed("other") != nil {
				return nil
			}
			snap := r.keeper.Snapshot()
			other := &cluster.Instance{Meta: cluster.NewMeta("other", 1), Name: "other", PrimaryNode: snap.NodeNamed("node1").UUID,
				AdminState: cluster.AdminDown, Hypervisor: "fake", BEParams: cluster.Params{"maxmem": int64(6000), "minmem": int64(6000)}}
			return r.keeper.Update(r.Context(), func(*cluster.Snapshot) ([]cluster.Change, error) { return []cluster.Change{cluster.Put(other)}, nil })
		}
	}
	for name, test := range map[string]struct {
		prepare func(*rig) func(string) error
		said    string
	}{
		"disk space": {disks, " - INFO: Node node1 is passed over: Could not create the disks of instance one on node node1: not enough disk space"},
		"memory":     {memory, " - INFO: Node node1 is passed over: The memory that was free for instance one is promised to others by now"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, "node1", "node2")
			r.wrap = func(n Node) Node { return fullNode{n, test.prepare(r)} }
			r.must(`["node2"]`, "OP_INSTANCE_CREATE", placed("one", 2000, nil))
			r.logs(test.said)
			if r.state("node1", "one") != "" || r.onItsNode("one").Name != "one" || r.nodesOf()["node2"] != 1 {
				t.Errorf("node1 has %s, the nodes have %v", r.state("node1", "one"), r.nodesOf())
			}
		})
	}
	r := newRig(t, "node1", "node2")
	r.wrap = func(n Node) Node { return fullNode{n, disks(r)} }
	r.refuses("OpExecError", "Could not create the disks of instance one on node node1: not enough disk space", "OP_INSTANCE_CREATE",
		placed("one", 2000, params{"pnode": "node1"}))
	r.wrap = func(n Node) Node {
		return fullNode{n, func(string) error { return fault.New(fault.Exhausted, "not enough disk space") }}
	}
	_, err := r.run("OP_INSTANCE_CREATE", placed("one", 2000, nil))
	if err == nil || !strings.HasPrefix(err.Error(), "Can't find a node for the instance") {
		t.Errorf("where no node has room: %v", err)
	}
}

// What is put on a node by name counts for those who choose.
func TestPlacesThatWereToldCount(t *testing.T) {
	r := newRig(t, "node1", "node2")
	var chosen string
	r.wrap = func(n Node) Node {
		return fullNode{n, func(node string) error {
			if r.wrap = nil; node == "node1" {
				env := r.env(r.opcode("OP_INSTANCE_CREATE", placed("two", 1000, params{"dry_run": true})))
				result, err := r.all.Run(r.Context(), env)
				chosen = string(result)
				return err
			}
			return nil
		}}
	}
	r.must(`["node1"]`, "OP_INSTANCE_CREATE", placed("one", 1000, params{"pnode": "node1"}))
	if chosen != `["node2"]` {
		t.Errorf("the other goes to %s, while the one has its disks made on node1", chosen)
	}
}

// A creation whose place was taken chooses again also when its controller dies, wherever that is: the next one finds that there is no
// room, too, and goes on to choose.
func TestWhosePlaceWasTakenChoosesAgainBehindARestart(t *testing.T) {
	deaths := 0
	for until := 1; ; until++ {
		r := newRig(t, "node1", "node2")
		r.wrap = func(n Node) Node {
			return fullNode{n, func(node string) error {
				if node == "node1" {
					return fault.New(fault.Exhausted, "not enough disk space")
				}
				return nil
			}}
		}
		got, died := r.livesOn(r.opcode("OP_INSTANCE_CREATE", placed("one", 2000, nil)), until, 1000)
		if got.err != nil || got.result != `["node2"]` {
			t.Fatalf("killed at %d: %s, %v\n%q", until, got.result, got.err, r.log)
		}
		if r.state("node1", "one") != "" || r.onItsNode("one").Name != "one" {
			t.Errorf("killed at %d: node1 has %s", until, r.state("node1", "one"))
		}
		if deaths += died; died == 0 {
			break
		}
	}
	if deaths < 6 {
		t.Errorf("it was killed %d times", deaths)
	}
	// One that was told its node is not planned again, for there is nothing to choose.
	r := newRig(t, "node1", "node2")
	r.wrap = func(n Node) Node {
		return fullNode{n, func(string) error { return fault.New(fault.Exhausted, "not enough disk space") }}
	}
	got, _ := r.livesOn(r.opcode("OP_INSTANCE_CREATE", placed("one", 2000, params{"pnode": "node1"})), 2, 1000)
	if got.err == nil || got.err.Error() != "Could not create the disks of instance one on node node1: not enough disk space" ||
		slices.ContainsFunc(r.log, func(line string) bool { return strings.Contains(line, "passed over") }) {
		t.Errorf("one that was told its node: %v, with %q", got.err, r.log)
	}
}

// Behind a restart nobody remembers which others of a group were being made. One that came where the instance is going has it choose again, unless it was told its node.
func TestWhoseCompanyCameBehindARestartChoosesAgain(t *testing.T) {
	apart := []any{"drover:placed:apart:g"}
	for node, want := range map[string]string{"": `["node2"]`, "node1": `["node1"]`} {
		r := newRig(t, "node1", "node2")
		more := params{"tags": apart}
		if node != "" {
			more["pnode"] = node
		}
		op := r.opcode("OP_INSTANCE_CREATE", placed("one", 2000, more))
		if got := r.live(op, 1, false, 3); !got.dead || r.state("node1", "one") == "" {
			t.Fatalf("it was to be killed when its disks are made on node1: %v", got.err)
		}
		r.update(func(snap *cluster.Snapshot) []cluster.Change {
			other := &cluster.Instance{Meta: cluster.NewMeta("other", 1), Name: "other", PrimaryNode: snap.NodeNamed("node1").UUID, AdminState: cluster.AdminDown, Hypervisor: "fake"}
			other.Tags = cluster.NewTags("drover:placed:apart:g")
			return []cluster.Change{cluster.Put(other)}
		})
		r.log = nil
		if got := r.live(op, 2, true, 1000); got.err != nil || got.result != want {
			t.Errorf("under the next controller it comes to %s, %v", got.result, got.err)
		}
		if node == "" {
			r.logs(" - INFO: Node node1 is passed over: Instance one cannot come to node node1 any more: it has as many as may be on one node of drover:placed:apart:g, which other has")
		}
	}
}

// Behind a restart nobody remembers which places were chosen. One whose memory was promised to others meanwhile finds that out when it is added, and
// chooses again: the node would have promised more than it has.
func TestWhoseMemoryWasPromisedBehindARestartChoosesAgain(t *testing.T) {
	r := newRig(t, "node1", "node2")
	op := r.opcode("OP_INSTANCE_CREATE", placed("one", 2000, nil))
	if got := r.live(op, 1, false, 3); !got.dead || r.state("node1", "one") == "" {
		t.Fatalf("it was to be killed when its disks are made on node1: %v", got.err)
	}
	r.update(func(snap *cluster.Snapshot) []cluster.Change {
		return []cluster.Change{cluster.Put(&cluster.Instance{Meta: cluster.NewMeta("other", 1), Name: "other", PrimaryNode: snap.NodeNamed("node1").UUID,
			AdminState: cluster.AdminDown, Hypervisor: "fake", BEParams: cluster.Params{"maxmem": int64(6000), "minmem": int64(6000)}})}
	})
	r.log = nil
	if got := r.live(op, 2, true, 1000); got.err != nil || got.result != `["node2"]` {
		t.Errorf("under the next controller it comes to %s, %v", got.result, got.err)
	}
	r.logs(" - INFO: Node node1 is passed over: The memory that was free for instance one is promised to others by now")
	if r.state("node1", "one") != "" || r.onItsNode("one").Name != "one" {
		t.Errorf("node1 has %s of it", r.state("node1", "one"))
	}
}
