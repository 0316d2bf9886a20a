package exec

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/agent"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/hypervisor"
	"github.com/drover-project/drover/internal/job"
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
	if !slices.Equal(tries, []int{0, 1}) || len(slices.Compact(slices.Clone(steps))) != 3 {
		t.Errorf("kept are the tries %v, the orders have the steps %v", tries, steps)
	}
	if k := r.kept(env); k == nil || k.Progress.Try != 1 {
		t.Errorf("how far it came is kept as %+v", k)
	}
}

// TestHowFarAnotherTryCameSaysNothing: the controller ended between keeping the steps of another try and noting how far that came. What is noted is of the
// try before, so the opcode begins with its first step: here one that cannot be done any more.
func TestHowFarAnotherTryCameSaysNothing(t *testing.T) {
	r := killable(t)
	inst := r.instance("down")
	for try, lost := range map[int]bool{0: false, 1: true} {
		env := r.env(r.opcode("OP_INSTANCE_REINSTALL", params{"instance_name": "down", "osparams_secret": params{"root": "<redacted>"}}))
		env.Resumed, env.Stepwise = true, true
		env.Kept = &Kept{Work: &work.Work{Try: try, Steps: []work.Step{
			onNode(installSystem, inst.PrimaryNode, inst.UUID, "install it", installArgs{Given: true}), inInventory(setSystem, inst.UUID, "remember it", nil),
		}}, Progress: work.Progress{Try: 0, Done: 1}}
		if _, err := r.all.Run(t.Context(), env); (err != nil) != lost {
			t.Errorf("try %d, of which try 0 came behind the first step: %v", try, err)
		}
	}
}

// A controller whose term ends while it takes something back says nothing of what is left: the next one goes on with it.
func TestWhatIsBeingTakenBackIsLeftToTheNext(t *testing.T) {
	r := killable(t)
	before := r.whole()
	op := r.opcode("OP_INSTANCE_CREATE", several["OP_INSTANCE_CREATE"])
	if got := r.live(op, 1, false, 3); !got.dead {
		t.Fatal("it was not killed")
	}
	again := func(ctx context.Context, epoch int64) (steps []job.Step, err error) {
		env := r.env(op)
		env.Job, env.Epoch, env.Term = 77, epoch, ctx
		env.Kept, env.Resumed, env.Undo, env.Stepwise = r.kept(env), true, true, true
		env.Show = func(s []job.Step) { steps = s }
		r.log = nil
		_, err = r.all.Run(ctx, env)
		return steps, err
	}
	ctx, stop := context.WithCancel(t.Context())
	stops := func() error {
		stop()
		return fault.New(fault.Unavailable, "the controller was killed")
	}
	r.onCall.Store(&stops)
	steps, err := again(ctx, 2)
	r.onCall.Store(nil)
	if err == nil || slices.ContainsFunc(steps[1:], func(s job.Step) bool { return s.State == job.StepLeft }) ||
		slices.ContainsFunc(r.log, func(line string) bool { return strings.Contains(line, "WARNING") }) {
		t.Errorf("it ends with %v, says %q and shows %+v", err, r.log, steps)
	}
	if _, err := again(t.Context(), 3); !errors.Is(err, error(errKilled)) || r.whole() != before {
		t.Errorf("under the next controller it ends with %v:\n%s\nbefore:\n%s", err, r.whole(), before)
	}
}

// distant is a node that cannot be reached at the moment.
type distant struct{ anyNode }

func (distant) Away() time.Duration { return time.Minute }

// A job whose order waits for a node that is away says so: for whom, and for how long at most.
func TestAnOrderThatWaitsForItsNodeSaysSo(t *testing.T) {
	r := newRig(t, "node1")
	r.must(`["node1"]`, "OP_INSTANCE_CREATE", placed("one", 128, nil))
	r.wrap = func(n Node) Node { return distant{n} }
	r.must("null", "OP_INSTANCE_STARTUP", params{"instance_name": "one"})
	if len(r.log) != 1 || !strings.Contains(r.log[0], "Node node1 is away: \"start instance one") || !strings.Contains(r.log[0], "waits for it, for 1m0s at most") {
		t.Errorf("the log is %q", r.log)
	}
}
