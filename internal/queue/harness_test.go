package queue_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/exec"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/inventory"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/jobfilter"
	"github.com/drover-project/drover/internal/lock"
	"github.com/drover-project/drover/internal/opcode"
	"github.com/drover-project/drover/internal/picture"
	"github.com/drover-project/drover/internal/queue"
	"github.com/drover-project/drover/internal/store"
	"github.com/drover-project/drover/internal/store/format"
	"github.com/drover-project/drover/internal/testkit"
	"github.com/drover-project/drover/internal/testkit/controller"
)

// rig is a queue on a real store, with opcodes that do what a test tells
// them: each says that it began, and ends when it is told to.
type rig struct {
	t      testing.TB
	dir    string
	core   *controller.Controller
	store  store.Store
	keeper *inventory.Keeper
	shown  *picture.Picture
	q      *queue.Queue
	wrap   func(store.Store) store.Store
	// storePatience is how long the queue bears a store that fails; half a minute
	// if it is not set.
	storePatience time.Duration
	// eventsByAge is the queue's.
	eventsByAge bool
	// beforeLocks is called when it is asked which locks OP_INSTANCE_SHUTDOWN needs, under the queue's mutex, if it is set.
	beforeLocks func()
	// beforeLook is called before OP_INSTANCE_REBOOT looks for its instance.
	beforeLook func()
	// format is that of the store; the first one if it is not set, under which what opcodes did is not kept.
	format int
	// told is up to which revision others were told, if it is set.
	told func() store.Revision
	// grace is how long opcodes may go on when the queue closes.
	grace time.Duration

	mu    sync.Mutex
	gates map[string]*gate
	runs  map[string]int // how often each opcode ran, over all lives of the queue
}

// gate is one run of one opcode.
type gate struct {
	began chan struct{}
	end   chan error
	env   *exec.Env // once it began
}

func newRig(t testing.TB, maxRunning int) *rig {
	t.Helper()
	return newRigWith(t, maxRunning, func(*rig) {})
}

// newRigWith is a rig that is set up before it is opened. Only its first store is
// wrapped, not that of its next lives.
func newRigWith(t testing.TB, maxRunning int, set func(*rig)) *rig {
	t.Helper()
	r := &rig{t: t, dir: t.TempDir(), gates: map[string]*gate{}}
	set(r)
	r.open()
	r.wrap = nil
	t.Cleanup(func() { r.close() })
	r.setMax(maxRunning)
	return r
}

func (r *rig) open() {
	r.t.Helper()
	r.core = controller.Start(ctx, r.t, controller.Options{
		Dir: r.dir, WrapQueue: r.wrap, Cluster: "test", Nodes: []string{"node1", "node2"}, Templates: []string{"diskless"},
		Executors: func(*controller.Controller) exec.Catalogue { return r.catalogue() },
		Reach:     func(string) (exec.Node, error) { return nil, fault.New(fault.Unavailable, "no nodes here") },
		Log:       slog.New(slog.NewTextHandler(r.t.Output(), nil)), Patience: r.storePatience, Grace: r.grace,
		Told: r.told, EventsByAge: r.eventsByAge,
		Format: func() int { return max(r.format, format.First) },
	})
	r.store, r.keeper, r.shown, r.q = r.core.Store, r.core.Keeper, r.core.Picture, r.core.Queue
}

func (r *rig) close() { r.check(r.core.Close()) }

// crash ends the queue without letting opcodes end, and opens it again.
func (r *rig) crash() {
	r.t.Helper()
	r.close()
	r.gates = map[string]*gate{}
	r.open()
}

func (r *rig) setMax(n int) {
	r.t.Helper()
	r.check(r.keeper.Update(ctx, func(s *cluster.Snapshot) ([]cluster.Change, error) {
		c := *s.Cluster()
		c.MaxRunningJobs = int64(n)
		return []cluster.Change{cluster.Put(&c)}, nil
	}))
}

func (r *rig) check(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

var ctx = context.Background()

// catalogue makes OP_TEST_DUMMY an opcode that a test controls,
// OP_INSTANCE_SHUTDOWN the same with the instance locked, OP_TEST_JQUEUE the same
// but resumable, and OP_INSTANCE_STARTUP both; OP_INSTANCE_REBOOT locks an instance
// of the inventory, and looks at it when a test lets it (beforeLook). OP_TEST_DELAY ends at once, and is resumable.
func (r *rig) catalogue() exec.Catalogue {
	controlled := func(_ context.Context, env *exec.Env) (exec.Plan, error) {
		return exec.Plan{Do: func(ctx context.Context) (any, error) { return env.Op.ID, r.run(ctx, env) }}, nil
	}
	ownInstance := func(op *opcode.Opcode, _ *cluster.Snapshot) (lock.Request, error) {
		return lock.Request{{Name: lock.Name{Level: lock.Instance, Item: op.Str("instance_name")}, Mode: lock.Exclusive}}, nil
	}
	return exec.Catalogue{
		"OP_TEST_DUMMY":  {Prepare: controlled, Why: "the test says so"},
		"OP_TEST_JQUEUE": {Prepare: controlled, Resumable: true, Why: "the test says so"},
		"OP_TEST_DELAY": {Resumable: true, Why: "waiting again does no harm", Prepare: func(context.Context, *exec.Env) (exec.Plan, error) {
			return exec.Plan{Do: func(context.Context) (any, error) { return nil, nil }}, nil
		}},
		"OP_INSTANCE_SHUTDOWN": {Prepare: controlled, Why: "the test says so", Locks: func(op *opcode.Opcode, snap *cluster.Snapshot) (lock.Request, error) {
			if r.beforeLocks != nil {
				r.beforeLocks()
			}
			return ownInstance(op, snap)
		}},
		"OP_INSTANCE_REBOOT": {Why: "the test says so", Locks: func(op *opcode.Opcode, snap *cluster.Snapshot) (lock.Request, error) {
			if snap.InstanceNamed(op.Str("instance_name")) == nil {
				return nil, fault.New(fault.NotFound, "not known")
			}
			return ownInstance(op, snap)
		}, Prepare: func(ctx context.Context, env *exec.Env) (exec.Plan, error) {
			r.beforeLook()
			if env.Inventory.Snapshot().InstanceNamed(env.Op.Str("instance_name")) == nil {
				return exec.Plan{}, fault.New(fault.NotFound, "not known")
			}
			return controlled(ctx, env)
		}},
		"OP_INSTANCE_STARTUP": {Prepare: controlled, Resumable: true, Why: "the test says so", Locks: ownInstance},
	}
}

func (r *rig) gate(id job.ID, index int) *gate {
	r.mu.Lock()
	defer r.mu.Unlock()
	key := fmt.Sprintf("%d/%d", id, index)
	g := r.gates[key]
	if g == nil {
		g = &gate{began: make(chan struct{}), end: make(chan error, 1)}
		r.gates[key] = g
	}
	return g
}

func (r *rig) run(ctx context.Context, env *exec.Env) error {
	g := r.gate(env.Job, env.Index)
	g.env = env
	r.count(env)
	close(g.began)
	if c := env.Op.Comment; c != nil && *c == stubborn {
		return <-g.end
	}
	select {
	case err := <-g.end:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (r *rig) count(env *exec.Env) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.runs == nil {
		r.runs = map[string]int{}
	}
	r.runs[fmt.Sprintf("%d/%d", env.Job, env.Index)]++
}

// stubborn is the comment of opcodes that do not end because they are told to.
const stubborn = "stubborn"

// probe is a context that tells when somebody begins to wait for its end. The
// queue does so when it has carried a request out and waits for it to be
// durable.
type probe struct {
	context.Context
	once    sync.Once
	waiting chan struct{}
}

func (p *probe) Done() <-chan struct{} {
	p.once.Do(func() { close(p.waiting) })
	return p.Context.Done()
}

// handedOver makes a request and returns when the queue has carried it out,
// though it may not be durable yet; the channel gives the answer.
func handedOver(request func(context.Context) error) <-chan error {
	p := &probe{Context: ctx, waiting: make(chan struct{})}
	answer := make(chan error, 1)
	go func() { answer <- request(p) }()
	<-p.waiting
	return answer
}

// patience is how long a test waits for what must come. It only ends tests that
// would hang: a machine may be under load, or stand still for half a minute.
var patience = testkit.Patience()

// soon gives what a channel gives.
func soon[T any](t testing.TB, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(patience):
		t.Fatal("nothing came")
		panic("unreachable")
	}
}

// began waits until an opcode runs.
func (r *rig) began(id job.ID, index int) {
	r.t.Helper()
	select {
	case <-r.gate(id, index).began:
	case <-time.After(patience):
		x, err := r.q.Explain(ctx, id)
		r.t.Fatalf("opcode %d of job %d did not begin: %+v %v", index, id, x, err)
	}
}

// finish lets an opcode end.
func (r *rig) finish(id job.ID, index int, err error) { r.gate(id, index).end <- err }

// reaches waits until a job fits.
func (r *rig) reaches(id job.ID, what string, fits func(*job.Job) bool) *job.Job {
	r.t.Helper()
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	j, err := r.q.Wait(limited, id, fits)
	r.check(err)
	if !fits(j) {
		x, err := r.q.Explain(ctx, id)
		r.t.Fatalf("job %d is %s, not %s: %+v %v", id, j.Status(), what, x, err)
	}
	return j
}

func (r *rig) status(id job.ID, want job.Status) *job.Job {
	r.t.Helper()
	return r.reaches(id, string(want), func(j *job.Job) bool { return j.Status() == want })
}

func (r *rig) held(id job.ID, rule string) *job.Job {
	r.t.Helper()
	return r.reaches(id, "held by "+rule, func(j *job.Job) bool { return j.Hold != nil && j.Hold.Rule == rule })
}

func (r *rig) submit(ops ...string) job.ID {
	r.t.Helper()
	id, err := r.q.Submit(ctx, queue.Submission{Ops: parse(r.t, ops...)})
	r.check(err)
	return id
}

func (r *rig) rule(priority int, action, predicates string) string {
	r.t.Helper()
	uuid, _, err := r.q.PutFilter(ctx, "", rule(r.t, priority, action, predicates), queue.By{})
	r.check(err)
	return uuid
}

func rule(t testing.TB, priority int, action, predicates string) jobfilter.Rule {
	t.Helper()
	a, err := jobfilter.ParseAction([]byte(action))
	if err != nil {
		t.Fatal(err)
	}
	p, err := jobfilter.ParsePredicates([]byte(predicates))
	if err != nil {
		t.Fatal(err)
	}
	return jobfilter.Rule{Priority: priority, Action: a, Predicates: p}
}

func parse(t testing.TB, texts ...string) []*opcode.Opcode {
	t.Helper()
	var ops []*opcode.Opcode
	for _, text := range texts {
		op, err := opcode.Parse([]byte(text), opcode.Options{})
		if err != nil {
			t.Fatal(err)
		}
		ops = append(ops, op)
	}
	return ops
}

const (
	dummy = `{"OP_ID":"OP_TEST_DUMMY","result":1,"messages":[],"fail":false,"submit_jobs":[]}`
	delay = `{"OP_ID":"OP_TEST_DELAY","duration":1}`
)

func because(text string) string {
	return fmt.Sprintf(`{"OP_ID":"OP_TEST_DUMMY","result":1,"messages":[],"fail":false,"submit_jobs":[],"reason":[["user",%q,1]]}`, text)
}

func shutdown(instance string) string {
	return fmt.Sprintf(`{"OP_ID":"OP_INSTANCE_SHUTDOWN","instance_name":%q}`, instance)
}

func after(id job.ID, statuses string) string {
	return fmt.Sprintf(`{"OP_ID":"OP_TEST_DELAY","duration":1,"depends":[[%d,%s]]}`, id, statuses)
}
