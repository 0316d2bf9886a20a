package exec

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/drover-project/drover/internal/agent"
	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/placement"
	"github.com/drover-project/drover/internal/work"
)

// reporting is a node whose reports are another's.
type reporting struct {
	anyNode

	change func(*agent.State) error
}

func (n reporting) State(ctx context.Context, fresh bool) (agent.State, error) {
	s, err := n.anyNode.State(ctx, fresh)
	if err == nil {
		err = n.change(&s)
	}
	return s, err
}

// decides runs a creation and returns what was decided.
func (r *rig) decides(p params) (placement.Decision, *work.Work, error) {
	r.Helper()
	env := r.env(r.opcode("OP_INSTANCE_CREATE", p))
	var told json.RawMessage
	var kept *work.Work
	env.Placed = func(decision json.RawMessage) { told = decision }
	env.Stepwise, env.Keep = true, func(_ context.Context, w *work.Work) error { kept = w; return nil }
	_, err := r.all.Run(r.Context(), env)
	if told == nil {
		r.Fatalf("nothing was decided: %v", err)
	}
	d, bad := placement.Decode(told)
	if bad != nil {
		r.Fatal(bad)
	}
	if kept != nil && string(kept.Placement) != string(told) {
		r.Errorf("with the work %s is kept", kept.Placement)
	}
	return *d, kept, err
}

// A creation goes by what nodes report and what the inventory says of each, not by memory alone; what was decided is told, and kept with the
// work, whether it was done or refused.
func TestPlacementOfCreations(t *testing.T) {
	r := newRig(t, "node1", "node2", "node3", "node4")
	r.wrap = func(n Node) Node {
		return reporting{n, func(s *agent.State) error {
			switch n.Node() {
			case "node1":
				s.Node.DiskFree = 10
			case "node2":
				return fault.New(fault.Unavailable, "no answer")
			case "node3":
				s.Node.MemoryFree = 500
			}
			return nil
		}}
	}
	d, kept, err := r.decides(placed("one", 400, params{"disks": []any{params{"size": 100}}}))
	if err != nil || d.Node != "node4" || kept == nil || len(d.Nodes) != 4 || d.Nodes[1].Node != "node3" || d.Nodes[2].Fails != placement.Disk || d.Nodes[3].Fails != placement.Unreported {
		t.Errorf("%+v, %v", d, err)
	}
	r.logs(" - WARNING: Node node2 is passed over: no answer")
	if d, kept, err = r.decides(placed("two", 600, params{"pnode": "node3", "disks": []any{params{"size": 100}}})); err != nil || kept == nil ||
		r.onItsNode("two").Name == "" || len(d.Nodes) != 1 || d.Nodes[0].Fails != placement.Memory {
		t.Errorf("a node that was asked for: %+v, %v", d, err)
	}
	d, kept, err = r.decides(placed("three", 8000, nil))
	if !fault.Is(err, fault.Exhausted) || d.Node != "" || kept != nil || len(d.Nodes) != 4 {
		t.Errorf("where nothing fits: %+v, %v", d, err)
	}
}

// A node that does not have what the hypervisor parameters ask for is passed over.
func TestPlacementHeedsWhatNodesTake(t *testing.T) {
	r := newRig(t, "node1", "node2")
	r.update(func(snap *cluster.Snapshot) []cluster.Change {
		c := snap.Cluster().Clone()
		c.HVParams["fake"] = cluster.Params{"cpu_type": "EPYC"}
		return []cluster.Change{cluster.Put(c)}
	})
	r.wrap = func(n Node) Node {
		return reporting{n, func(s *agent.State) error {
			s.Node.Takes = map[string][]string{"cpu_type": {map[string]string{"node1": "Haswell", "node2": "EPYC"}[n.Node()]}}
			return nil
		}}
	}
	d, _, err := r.decides(placed("one", 100, nil))
	if err != nil || d.Node != "node2" || d.Nodes[1].Text() != "cpu_type=EPYC is needed, and it has Haswell" {
		t.Errorf("%+v, %v", d, err)
	}
}

// Who gives an instance what its node does not take is told so at once.
func TestWhatANodeDoesNotTakeIsTold(t *testing.T) {
	r := newRig(t, "node1")
	r.create("one", false)
	r.update(func(snap *cluster.Snapshot) []cluster.Change {
		inst := snap.InstanceNamed("one").Clone()
		inst.Hypervisor = "kvm"
		return []cluster.Change{cluster.Put(inst)}
	})
	r.wrap = func(n Node) Node {
		return reporting{n, func(s *agent.State) error {
			s.Node.Takes = map[string][]string{"vnc_tls": {"false"}}
			return nil
		}}
	}
	r.must(`[["hv/vnc_tls",true]]`, "OP_INSTANCE_SET_PARAMS", params{"instance_name": "one", "hvparams": params{"vnc_tls": true}})
	r.logs(" - WARNING: Node node1 does not take this: vnc_tls=true is needed, and it has false. The instance will not start there")
}

// Two that choose at the same time heed each other's exclusive tags.
func TestPlacementHeedsTagsOfClaims(t *testing.T) {
	r := newRig(t, "node1", "node2")
	r.must("null", "OP_TAGS_SET", params{"kind": "cluster", "name": nil, "tags": []any{placement.ExclusionPrefix + "service"}})
	var second placement.Decision
	r.wrap = func(n Node) Node {
		return fullNode{n, func(string) error {
			var err error
			r.wrap = nil
			second, _, err = r.decides(placed("two", 100, params{"tags": []any{"service:web"}}))
			return err
		}}
	}
	first, _, err := r.decides(placed("one", 100, params{"tags": []any{"service:web"}}))
	if err != nil || first.Node == second.Node || first.Node == "" || second.Node == "" {
		t.Errorf("they go to %s and %s, %v", first.Node, second.Node, err)
	}
	if _, _, err := r.decides(placed("three", 100, params{"tags": []any{"service:web"}})); !fault.Is(err, fault.Exhausted) {
		t.Errorf("the third: %v", err)
	}
}

// What lies outside of every policy is a wrong request, and no node is asked about it.
func TestPlacementOutsideOfPolicies(t *testing.T) {
	r := newRig(t)
	r.wrap = func(n Node) Node {
		return reporting{n, func(*agent.State) error { t.Error("a node is asked"); return nil }}
	}
	if d, _, err := r.decides(placed("one", 1<<20, nil)); !fault.Is(err, fault.Invalid) || d.Nodes[0].Fails != placement.Policy {
		t.Errorf("%+v, %v", d, err)
	}
}
