package exec

import (
	"context"
	"slices"
	"testing"

	"github.com/drover-project/drover/internal/agent"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/hypervisor"
	"github.com/drover-project/drover/internal/work"
)

// counting notes which orders a node is given about disks, and may refuse them.
type counting struct {
	anyNode

	order func(o agent.Order, what string) error
}

func (n counting) Prepare(ctx context.Context, o agent.Order, of hypervisor.Thing, disks []hypervisor.Disk) error {
	if err := n.order(o, "prepare on "+n.Node()); err != nil {
		return err
	}
	return n.anyNode.Prepare(ctx, o, of, disks)
}

func (n counting) Remove(ctx context.Context, o agent.Order, of hypervisor.Thing) error {
	if err := n.order(o, "remove on "+n.Node()); err != nil {
		return err
	}
	return n.anyNode.Remove(ctx, o, of)
}

// A work that is planned again, since the node had no room, is another one: how far the one before came says nothing of it, and its orders
// have other names, as have those that take something back.
func TestEachTryIsAWorkOfItsOwn(t *testing.T) {
	r := newRig(t, "node1", "node2")
	var orders []string
	var steps []int
	r.wrap = func(n Node) Node {
		return counting{n, func(o agent.Order, what string) error {
			orders, steps = append(orders, what), append(steps, o.Step)
			if what == "prepare on node1" {
				return fault.New(fault.Exhausted, "not enough disk space")
			}
			return nil
		}}
	}
	env := r.env(r.opcode("OP_INSTANCE_CREATE", placed("one", 2000, nil)))
	var tries []int
	env.Stepwise = true
	env.Keep = func(_ context.Context, w *work.Work) error {
		tries = append(tries, w.Try)
		return nil
	}
	if _, err := r.all.Run(t.Context(), env); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(orders, []string{"prepare on node1", "remove on node1", "prepare on node2"}) {
		t.Errorf("the nodes were ordered to %q", orders)
	}
	slices.Sort(steps)
	if !slices.Equal(tries, []int{0, 1}) || len(slices.Compact(steps)) != 3 {
		t.Errorf("kept are the tries %v, the orders have the steps %v", tries, steps)
	}
	if k := r.kept(env); k == nil || k.Progress.Try != 1 {
		t.Errorf("how far it came is kept as %+v", k)
	}
}
