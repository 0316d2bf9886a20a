package exec

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/agent"
	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/hypervisor"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/reason"
	"github.com/drover-project/drover/internal/store"
	"github.com/drover-project/drover/internal/store/faultstore"
	"github.com/drover-project/drover/internal/work"
)

// answering is a node that may answer some orders with an error, in place of carrying them out.
type answering struct {
	anyNode

	answer func(verb string) error
}

func (n answering) Prepare(ctx context.Context, order agent.Order, of hypervisor.Thing, disks []hypervisor.Disk) error {
	if err := n.answer(prepareDisks); err != nil {
		return err
	}
	return n.anyNode.Prepare(ctx, order, of, disks)
}

func (n answering) Stop(ctx context.Context, order agent.Order, of hypervisor.Thing, how hypervisor.Stop, trail reason.Trail) error {
	if err := n.answer(stopInstance); err != nil {
		return err
	}
	return n.anyNode.Stop(ctx, order, of, how, trail)
}

func (n answering) Remove(ctx context.Context, order agent.Order, of hypervisor.Thing) error {
	if err := n.answer(removeFromNode); err != nil {
		return err
	}
	return n.anyNode.Remove(ctx, order, of)
}

func (n answering) Instances(ctx context.Context) ([]hypervisor.Instance, error) {
	if err := n.answer(listing); err != nil {
		return nil, err
	}
	return n.anyNode.Instances(ctx)
}

// listing is no verb of a step: a node is asked what it has.
const listing = "list"

// refusing has the node of a rig answer one verb with an error of a code, and returns the orders that it is given.
func (r *rig) refusing(verb string, code fault.Code) *[]string {
	orders := new([]string)
	r.wrap = func(n Node) Node {
		return answering{n, func(given string) error {
			if *orders = append(*orders, given); given == verb {
				return fault.New(code, "said on purpose")
			}
			return nil
		}}
	}
	return orders
}

// A removal that goes on whatever fails on the node does not go on where nobody knows what became of an order, nor where the node follows another
// controller: the node may have the instance still, and who leads may be about to use it. It stays in the inventory, and nothing else is ordered of it.
func TestWhatIsUnknownIsNoFailureToIgnore(t *testing.T) {
	for _, code := range []fault.Code{fault.Unavailable, fault.Fenced} {
		for verb, given := range map[string][]string{stopInstance: {stopInstance}, removeFromNode: {stopInstance, removeFromNode}} {
			r := newRig(t)
			r.create("one", true)
			before := r.dump()
			orders := r.refusing(verb, code)
			_, err := r.run("OP_INSTANCE_REMOVE", one(params{"ignore_failures": true}))
			if !fault.Is(err, code) || r.dump() != before || !slices.Equal(*orders, given) {
				t.Errorf("%s is answered with %s: it ends with %v, behind the orders %q, and the inventory is\n%s\nbefore\n%s", verb, code, err, *orders, r.dump(), before)
			}
		}
	}
}

// An opcode whose order is refused, for the node follows another controller, ends as fenced: it gives no orders that take anything back, for what became of
// it is the other one's, which goes on with it.
func TestWhatIsFencedIsLeftToWhoLeads(t *testing.T) {
	r := newRig(t)
	orders := r.refusing(prepareDisks, fault.Fenced)
	_, err := r.run("OP_INSTANCE_CREATE", creating(nil))
	if !fault.Is(err, fault.Fenced) || !slices.Equal(*orders, []string{prepareDisks}) {
		t.Errorf("it ends with %v, behind the orders %q", err, *orders)
	}
	if slices.ContainsFunc(r.log, func(line string) bool { return strings.HasPrefix(line, " - WARNING:") }) {
		t.Errorf("it says %q", r.log)
	}
}

// Where something else is under the name of what is taken back, and nothing of that is there any more, it was taken back: nobody is told to look for it.
func TestWhatIsSomebodyElsesIsNotLeft(t *testing.T) {
	r := newRig(t)
	r.wrap = func(n Node) Node {
		return answering{n, func(verb string) error {
			switch verb {
			case prepareDisks:
				return errBroken
			case removeFromNode:
				return fault.New(fault.Exists, "another one has the name")
			}
			return nil
		}}
	}
	var steps []job.Step
	env := r.env(r.opcode("OP_INSTANCE_CREATE", creating(nil)))
	env.Show = func(s []job.Step) { steps = s }
	r.log = nil
	_, err := r.all.Run(t.Context(), env)
	if err == nil || steps[0].State != job.StepUndone || slices.ContainsFunc(r.log, func(line string) bool { return strings.HasPrefix(line, " - WARNING:") }) {
		t.Errorf("it ends with %v, shows %+v and says %q", err, steps, r.log)
	}
}

// What may not be done twice is on record as done before the next order is given. If that cannot be stored the order is not given: a controller that went
// on would install anew beneath a machine that runs.
func TestNoOrderIsGivenBehindWhatIsNotNoted(t *testing.T) {
	r := newRig(t)
	env := r.env(r.opcode("OP_INSTANCE_CREATE", creating(params{"start": true})))
	env.Stepwise, env.Keep = true, func(context.Context, *work.Work) error { return nil }
	struck := r.store.Inject(faultstore.Fault{Err: fault.New(fault.Conflict, "refused on purpose"), When: func(tx store.Tx) bool {
		return len(tx.Put) == 1 && tx.Put[0].Kind == KindStep
	}})
	if _, err := r.all.Run(t.Context(), env); err == nil || !strings.Contains(err.Error(), "refused on purpose") {
		t.Errorf("it ends with %v", err)
	}
	<-struck
	if got := r.state("node1", "one"); got != hypervisor.Stopped || r.instance("one").AdminState != cluster.AdminDown {
		t.Errorf("the instance is %s, and marked %s", got, r.instance("one").AdminState)
	}
}

// A removal that goes on whatever fails on the node does so under the next controller, too.
func TestWhatIsToleratedIsSoBehindARestart(t *testing.T) {
	r := newRig(t)
	r.create("one", true)
	op := r.opcode("OP_INSTANCE_REMOVE", one(params{"ignore_failures": true}))
	if got := r.live(op, 1, false, 2); !got.dead {
		t.Fatalf("it was not killed: %v", got.err)
	}
	r.failOn("node1", "remove", false)
	r.log = nil
	if got := r.live(op, 2, true, 1000); got.err != nil {
		t.Errorf("under the next controller it ends with %v", got.err)
	}
	r.logged("Warning: can't remove instance's disks: the driver is broken on purpose")
	if r.keeper.Snapshot().InstanceNamed("one") != nil {
		t.Error("the instance is still in the inventory")
	}
}

// What is added to the inventory while a node tells what it has is known when the list is there: it is not called an orphan, which people would be told how
// to remove.
func TestWhatCameMeanwhileIsNoOrphan(t *testing.T) {
	r := newRig(t)
	r.wrap = func(n Node) Node {
		return answering{n, func(verb string) error {
			if verb == listing && r.wrap != nil {
				r.wrap = nil
				_, err := r.all.Run(t.Context(), r.env(r.opcode("OP_INSTANCE_CREATE", creating(nil))))
				r.changed = nil // that had locks of its own
				return err
			}
			return nil
		}}
	}
	r.must("[]", "OP_NODE_ORPHANS", params{"node_name": "node1"})
}
