package rollout

import (
	"context"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/agent"
	"github.com/drover-project/drover/internal/deploy/course"
	"github.com/drover-project/drover/internal/exec"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/inventory"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/picture"
	"github.com/drover-project/drover/internal/queue"
	"github.com/drover-project/drover/internal/reason"
	"github.com/drover-project/drover/internal/store/faultstore"
	"github.com/drover-project/drover/internal/store/sqlite"
	"github.com/drover-project/drover/internal/testkit"
)

// rig is a controller with simulated nodes.
type rig struct {
	testing.TB
	store  *faultstore.Store
	engine *Engine
	queue  *queue.Queue
	keeper *inventory.Keeper
	// functions are the operator's own; patience is the queue's.
	functions fs.FS
	patience  time.Duration
	epoch     int64 // of the engine

	sim   *simulation
	close func()
}

// simulation is what the nodes do with tasks.
type simulation struct {
	mu   sync.Mutex
	ran  []string // node/task, in the order in which they began
	does func(ctx context.Context, node string, t agent.Task) error
	// has is what nodes have of what a check is about; nil for all of it. away are the names of nodes that cannot be reached.
	has  func(ctx context.Context, node string, c agent.Check) (agent.Finding, error)
	away map[string]bool
}

// nodePort is what a simulated node lacks.
type nodePort = exec.Node

// simulated is a simulated node.
type simulated struct {
	nodePort
	name string
	sim  *simulation
}

func (n simulated) Node() string { return n.name }

func (n simulated) Away() time.Duration {
	n.sim.mu.Lock()
	defer n.sim.mu.Unlock()
	if n.sim.away[n.name] {
		return time.Minute
	}
	return 0
}

func (n simulated) Compare(ctx context.Context, c agent.Check) (agent.Finding, error) {
	n.sim.mu.Lock()
	has := n.sim.has
	n.sim.mu.Unlock()
	if has == nil {
		return agent.Finding{}, nil
	}
	return has(ctx, n.name, c)
}

func (n simulated) RunTask(ctx context.Context, _ agent.Order, t agent.Task, log func(string)) error {
	n.sim.mu.Lock()
	n.sim.ran = append(n.sim.ran, fmt.Sprintf("%s/%d", n.name, t.Step))
	does := n.sim.does
	n.sim.mu.Unlock()
	log("simulated")
	if does == nil {
		return nil
	}
	return does(ctx, n.name, t)
}

var by = By{Account: reason.Account{Surface: "test", Name: "alice"}, Trail: reason.Trail{{Source: "user", Reason: "release 7", Time: 1}}}

// preview computes what a plan would be.
func (r *rig) preview(w Wish) (*Preview, error) {
	compute, err := r.engine.Preview(r.Context(), w, by)
	if err != nil {
		return nil, err
	}
	return compute()
}

// newRig starts a controller with so many nodes, called node1 and so on, on a new store.
func newRig(t testing.TB, nodes int) *rig {
	t.Helper()
	s, err := sqlite.Open(t.TempDir(), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	r := &rig{TB: t, store: faultstore.New(s), sim: &simulation{}}
	r.open(nodes)
	t.Cleanup(func() { r.close() })
	return r
}

// open starts the controller; with nodes it makes a cluster.
func (r *rig) open(nodes int) {
	r.Helper()
	ctx := r.Context()
	shown := picture.New()
	must := func(err error) {
		r.Helper()
		if err != nil {
			r.Fatal(err)
		}
	}
	var err error
	r.keeper, err = inventory.Open(ctx, r.store, 0, shown)
	must(err)
	uuids := 0
	newUUID := func() string { uuids++; return fmt.Sprintf("00000000-0000-4000-8000-%012d", uuids) }
	if nodes > 0 {
		setup := inventory.Setup{Name: "c", Hypervisors: []string{"fake"}, DiskTemplates: []string{"diskless"}, Now: time.Now(), NewUUID: newUUID}
		for i := range nodes {
			setup.Nodes = append(setup.Nodes, fmt.Sprintf("node%d", i+1))
		}
		must(r.keeper.Bootstrap(ctx, setup))
	}
	r.engine, err = Open(ctx, Config{Store: r.store, Epoch: r.epoch, Picture: shown, Now: time.Now, Log: slog.New(slog.DiscardHandler), Functions: r.functions,
		Nodes: r.node})
	must(err)
	executors := r.engine.Executors()
	executors["OP_TEST_DELAY"] = exec.Executor{Prepare: func(context.Context, *exec.Env) (exec.Plan, error) {
		return exec.Plan{Do: func(context.Context) (any, error) { return nil, nil }}, nil
	}}
	r.queue, err = queue.Open(ctx, queue.Config{Store: r.store, Inventory: r.keeper, Picture: shown, Executors: executors,
		Nodes: r.node, Now: time.Now, NewUUID: newUUID, Log: slog.New(slog.DiscardHandler), Patience: r.patience})
	must(err)
	r.queue.Run()
	r.engine.Run(r.queue)
	r.close = func() {
		r.engine.Close()
		r.queue.Close()
		r.keeper.Close()
	}
}

func (r *rig) node(name string) (exec.Node, error) { return simulated{name: name, sim: r.sim}, nil }

func (r *rig) graph(name, text string) {
	r.Helper()
	if _, err := r.engine.PutGraph(r.Context(), name, []course.File{{Path: name + ".yaml", Text: text}}, by); err != nil {
		r.Fatal(err)
	}
}

func (r *rig) environment(name, text string, graphs ...string) {
	r.Helper()
	if _, err := r.engine.PutEnvironment(r.Context(), name, course.File{Path: name + ".yaml", Text: text}, graphs, by); err != nil {
		r.Fatal(err)
	}
}

func (r *rig) plan(w Wish) *course.Deployment {
	r.Helper()
	d, _, err := r.engine.Plan(r.Context(), w, by)
	if err != nil {
		r.Fatal(err)
	}
	return d
}

// start begins a deployment of an environment.
func (r *rig) start(w Wish) int64 {
	r.Helper()
	d := r.plan(w)
	if _, err := r.engine.Begin(r.Context(), d.ID, by); err != nil {
		r.Fatal(err)
	}
	return d.ID
}

// patience is how long a test waits for what has to come.
var patience = testkit.Patience()

// until waits for a deployment to be as it is wanted.
func (r *rig) until(id int64, what string, f func(*course.Progress) bool) *course.Progress {
	r.Helper()
	ctx, cancel := context.WithTimeout(r.Context(), patience)
	defer cancel()
	for {
		changed := r.engine.cfg.Picture.Changed()
		p, err := r.engine.Progress(ctx, id)
		if err != nil {
			r.Fatal(err)
		}
		if f(p) {
			return p
		}
		select {
		case <-changed:
		case <-ctx.Done():
			r.Fatalf("deployment %d never was %s; it is %s (%s), %v", id, what, p.Status, p.Why, p.States)
		}
	}
}

// end waits for the end of a deployment.
func (r *rig) end(id int64) *course.Progress {
	r.Helper()
	return r.until(id, "over", func(p *course.Progress) bool { return !p.Status.Active() && p.Status != course.Planned })
}

// states are the tasks of a deployment with their states, as "node/task state".
func (r *rig) states(id int64) string {
	r.Helper()
	tasks, err := r.engine.Tasks(r.Context(), id)
	if err != nil {
		r.Fatal(err)
	}
	var out []string
	for _, t := range tasks {
		out = append(out, t.Node+"/"+t.Task+" "+string(t.State))
	}
	slices.Sort(out)
	return strings.Join(out, "\n")
}

// began are the tasks that nodes began since the last call, as "node/task" of a deployment, in order.
func (r *rig) began(id int64) []string {
	r.Helper()
	tasks, err := r.engine.Tasks(r.Context(), id)
	if err != nil {
		r.Fatal(err)
	}
	r.sim.mu.Lock()
	defer r.sim.mu.Unlock()
	var out []string
	for _, x := range r.sim.ran {
		var step int
		if _, err := fmt.Sscanf(filepath.Base(x), "%d", &step); err != nil {
			r.Fatal(err)
		}
		out = append(out, tasks[step].Node+"/"+tasks[step].Task)
	}
	r.sim.ran = nil
	return out
}

func (r *rig) simulate(f func(ctx context.Context, node string, t agent.Task) error) {
	r.sim.mu.Lock()
	defer r.sim.mu.Unlock()
	r.sim.does = f
}

// refused expects an error of a code that says something.
func (r *rig) refused(err error, code fault.Code, says string) {
	r.Helper()
	if !fault.Is(err, code) || !strings.Contains(err.Error(), says) {
		r.Errorf("got %v, want %s and %q", err, code, says)
	}
}

func (r *rig) job(id int64) *job.Job {
	r.Helper()
	j, err := r.queue.Job(r.Context(), job.ID(id))
	if err != nil {
		r.Fatal(err)
	}
	return j
}
