package queue_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/drover-project/drover/internal/exec"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/hypervisor/fake"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/opcode"
	"github.com/drover-project/drover/internal/queue"
	"github.com/drover-project/drover/internal/store"
	"github.com/drover-project/drover/internal/store/faultstore"
	"github.com/drover-project/drover/internal/store/format"
	"github.com/drover-project/drover/internal/testkit/controller"
)

// lives are controllers one after the other on one directory, whose opcodes do what they do in the program.
type lives struct {
	*testing.T
	*controller.Controller

	dir    string
	format int
	// stop ends the controller at a call of a driver.
	stop fake.Call
}

func (l *lives) open() (reached <-chan struct{}, die func()) {
	l.Helper()
	at, dies, stop := make(chan struct{}), make(chan struct{}), l.stop
	l.Controller = controller.Start(l.Context(), l.T, controller.Options{Dir: l.dir, Format: func() int { return max(l.format, format.First) },
		OnCall: func(_ string, c fake.Call) error {
			if c.Method == stop.Method && c.After == stop.After && stop.Method != "" {
				close(at)
				<-dies
				return errors.New("the controller is dead")
			}
			return nil
		}})
	return at, func() { close(dies) }
}

// killed runs an opcode until the driver's call, ends the controller there, and begins the next one.
func (l *lives) killed(id string, params map[string]any, at fake.Call) job.ID {
	l.Helper()
	l.check(l.Close())
	l.stop = at
	reached, die := l.open()
	number := l.submit(id, params)
	<-reached
	ended := make(chan error, 1)
	go func() { ended <- l.Close() }()
	l.check(l.Queue.Failed(l.Context())) // it is told to end
	die()
	l.check(<-ended)
	l.stop = fake.Call{}
	l.open()
	return number
}

func (l *lives) check(err error) {
	l.Helper()
	if err != nil {
		l.Fatal(err)
	}
}

func (l *lives) submit(id string, params map[string]any) job.ID {
	l.Helper()
	op, err := opcode.FromMap(id, params)
	l.check(err)
	number, err := l.Queue.Submit(l.Context(), queue.Submission{Ops: []*opcode.Opcode{op}})
	l.check(err)
	return number
}

func (l *lives) ends(id job.ID) *job.Job {
	l.Helper()
	j, err := l.Queue.Wait(l.Context(), id, (*job.Job).Final)
	l.check(err)
	return j
}

// records are the ids of what is kept of opcodes.
func (l *lives) records() (out []string) {
	l.Helper()
	for _, kind := range []store.Kind{exec.KindWork, exec.KindStep} {
		for o, err := range l.Store.List(l.Context(), kind, store.Options{}) {
			l.check(err)
			out = append(out, string(o.Kind)+" "+o.ID)
		}
	}
	return out
}

func newLives(t *testing.T, f int) *lives {
	l := &lives{T: t, dir: t.TempDir(), format: f}
	l.open()
	t.Cleanup(func() { l.check(l.Close()) })
	j := l.ends(l.submit("OP_INSTANCE_CREATE", map[string]any{"instance_name": "one", "mode": "create", "disk_template": "file",
		"disks": []any{map[string]any{"size": 8}}, "nics": []any{}, "os_type": "noop", "start": false, "name_check": false, "ip_check": false}))
	if j.Status() != job.Success {
		t.Fatalf("%s", j.Encode())
	}
	return l
}

// A job whose controller ends in the midst of an opcode goes on where it was: its steps are shown and kept, its locks are those it had,
// and of what was kept nothing is left behind its end.
func TestOpcodesGoOnWhereTheyWere(t *testing.T) {
	for _, after := range []bool{false, true} {
		l := newLives(t, format.Steps)
		id := l.killed("OP_INSTANCE_RENAME", map[string]any{"instance_name": "one", "new_name": "two", "name_check": false, "ip_check": false}, fake.Call{Method: "rename", After: after})
		j := l.ends(id)
		op := &j.Ops[0]
		if j.Status() != job.Success || len(op.Steps) != 2 || op.Steps[0].State != job.StepDone || op.Steps[1].State != job.StepDone {
			t.Errorf("after %v: it ends as %s", after, j.Encode())
		}
		if l.Keeper.Snapshot().InstanceNamed("two") == nil || l.Keeper.Snapshot().InstanceNamed("one") != nil {
			t.Error("it was not renamed")
		}
		if len(op.Log) == 0 || !strings.Contains(string(op.Log[0].Payload), "it goes on: with step 1 of 2, rename instance one to two on its node") {
			t.Errorf("its log is %v", op.Log)
		}
		if left := l.records(); len(left) > 0 {
			t.Errorf("left is %v", left)
		}
	}
}

// What had been done is not begun again: an instance that is in the inventory already could not be created there a second time.
func TestOpcodesDoNotBeginAnew(t *testing.T) {
	l := newLives(t, format.Steps)
	id := l.killed("OP_INSTANCE_CREATE", map[string]any{"instance_name": "two", "mode": "create", "disk_template": "file",
		"disks": []any{map[string]any{"size": 8}}, "nics": []any{}, "os_type": "noop", "start": true, "name_check": false, "ip_check": false}, fake.Call{Method: "start"})
	if l.Keeper.Snapshot().InstanceNamed("two") == nil {
		t.Fatal("it was not in the inventory when its controller ended")
	}
	if j := l.ends(id); j.Status() != job.Success {
		t.Errorf("it ends as %s", j.Encode())
	}
}

// Below the format nothing is kept, and a program of before would find what it knows: such an opcode is lost, as it was.
func TestBelowTheFormatNothingIsKept(t *testing.T) {
	l := newLives(t, format.First)
	id := l.killed("OP_INSTANCE_RENAME", map[string]any{"instance_name": "one", "new_name": "two", "name_check": false, "ip_check": false}, fake.Call{Method: "rename"})
	j := l.ends(id)
	if j.Status() != job.Error || !strings.Contains(string(j.Ops[0].Result), "it is not run again") || j.Ops[0].Stepwise || len(l.records()) > 0 {
		t.Errorf("it ends as %s, kept are %v", j.Encode(), l.records())
	}
	// One that began under the format is gone on with, whatever the format is said to be by then.
	l.format = format.Steps
	l.check(l.Close())
	l.open()
	l.ends(l.submit("OP_INSTANCE_GROW_DISK", map[string]any{"instance_name": "one", "disk": 0, "amount": 8}))
	if left := l.records(); len(left) > 0 {
		t.Errorf("left is %v", left)
	}
}

// What is kept of opcodes that do not run is removed at the next start; what cannot be read ends its own job alone, and says so.
func TestRecordsThatAreOfNoUse(t *testing.T) {
	l := newLives(t, format.Steps)
	l.stop = fake.Call{}
	_, err := store.Commit(l.Context(), l.Store, store.Tx{Put: []store.Put{
		{Key: store.Key{Kind: exec.KindWork, ID: "1/0"}, Value: []byte(`{"steps":[{"verb":"start","text":"x"}]}`)},
		{Key: store.Key{Kind: exec.KindStep, ID: "77/3"}, Value: []byte(`{"done":1}`)},
	}})
	l.check(err)
	l.check(l.Close())
	l.open()
	l.ends(l.submit("OP_TEST_DELAY", map[string]any{"duration": 0.001})) // behind what the start wrote
	if left := l.records(); len(left) > 0 {
		t.Errorf("left is %v", left)
	}

	l.check(l.Close())
	l.stop = fake.Call{Method: "rename"}
	reached, die := l.open()
	id := l.submit("OP_INSTANCE_RENAME", map[string]any{"instance_name": "one", "new_name": "two", "name_check": false, "ip_check": false})
	<-reached
	for _, r := range l.records() {
		_, err := store.Commit(l.Context(), l.Store, store.Tx{Put: []store.Put{{Key: store.Key{Kind: exec.KindWork, ID: strings.Fields(r)[1]}, Value: []byte(`{"steps":[]}`)}}})
		l.check(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- l.Close() }()
	l.check(l.Queue.Failed(context.Background()))
	die()
	l.check(<-ended)
	l.stop = fake.Call{}
	l.open()
	if j := l.ends(id); j.Status() != job.Error || !strings.Contains(string(j.Ops[0].Result), "what it did cannot be told") {
		t.Errorf("it ends as %s", j.Encode())
	}
	if j := l.ends(l.submit("OP_TEST_DELAY", map[string]any{"duration": 0.001})); j.Status() != job.Success {
		t.Errorf("another job ends as %s", j.Encode())
	}
}

// Jobs that an opcode submits are submitted once, also when it goes on behind a restart, and nobody else has their keys.
func TestChildrenAreSubmittedOnce(t *testing.T) {
	l := newLives(t, format.Steps)
	parent := l.submit("OP_CLUSTER_VERIFY", nil)
	j := l.ends(parent)
	before := l.Queue.Jobs().Len()
	// As if the controller had ended before that was stored.
	running := j.Resume(0)
	running.Ended = 0
	running.Ops[0].Status, running.Ops[0].Result, running.Ops[0].End = job.Running, nil, 0
	l.check(l.Close())
	l.open()
	_, err := store.Commit(l.Context(), l.Store, store.Tx{Put: []store.Put{{Key: store.Key{Kind: queue.KindJob, ID: parent.String()}, Value: running.Head()}}})
	l.check(err)
	l.check(l.Close())
	l.open()
	again := l.ends(parent)
	if again.Status() != job.Success || string(again.Ops[0].Result) != string(j.Ops[0].Result) || l.Queue.Jobs().Len() != before {
		t.Errorf("it ends as %s with %d jobs, not %s with %d", again.Ops[0].Result, l.Queue.Jobs().Len(), j.Ops[0].Result, before)
	}
	op, err := opcode.FromMap("OP_TEST_DELAY", map[string]any{"duration": 0.001})
	l.check(err)
	if _, err := l.Queue.Submit(l.Context(), queue.Submission{Ops: []*opcode.Opcode{op}, Key: "opcode/9/0/0"}); !fault.Is(err, fault.Invalid) {
		t.Error("a client took the key of an opcode's job")
	}
}

// A job that is killed while its steps are on their way to the store has begun nothing: no node is given an order, also none that would take something back.
func TestWhatIsKilledBeforeItsStepsAreKeptHasNotBegun(t *testing.T) {
	l := newLives(t, format.Steps)
	l.check(l.Close())
	var faulty *faultstore.Store
	var orders atomic.Int64
	l.Controller = controller.Start(l.Context(), l.T, controller.Options{Dir: l.dir, Format: func() int { return format.Steps },
		WrapQueue: func(s store.Store) store.Store {
			faulty = faultstore.New(s)
			return faulty
		},
		OnCall: func(_ string, c fake.Call) error {
			if c.Method == "rename" {
				orders.Add(1)
			}
			return nil
		}})
	gate := make(chan struct{})
	keeps := faulty.Inject(faultstore.Fault{Do: faultstore.Hold, Gate: gate, When: func(tx store.Tx) bool {
		return slices.ContainsFunc(tx.Put, func(p store.Put) bool { return p.Kind == exec.KindWork })
	}})
	id := l.submit("OP_INSTANCE_RENAME", map[string]any{"instance_name": "one", "new_name": "two", "name_check": false, "ip_check": false})
	<-keeps
	ends, written := make(chan struct{}), 0
	faulty.Inject(faultstore.Fault{When: func(tx store.Tx) bool { // it only looks: the first is the kill
		if touches(queue.KindJob, id.String())(tx) {
			if written++; written == 2 {
				close(ends)
			}
		}
		return false
	}})
	killed := make(chan error, 1)
	go func() {
		_, err := l.Queue.Cancel(l.Context(), id, true, queue.By{})
		killed <- err
	}()
	<-ends
	close(gate)
	l.check(<-killed)
	if j := l.ends(id); j.Status() != job.Error || orders.Load() != 0 {
		t.Errorf("it ends as %s, behind %d orders", j.Encode(), orders.Load())
	}
	if left := l.records(); len(left) > 0 {
		t.Errorf("left is %v", left)
	}
}
