package exec

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/agent"
	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/hypervisor"
	"github.com/drover-project/drover/internal/hypervisor/fake"
	"github.com/drover-project/drover/internal/inventory"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/lock"
	"github.com/drover-project/drover/internal/opcode"
	"github.com/drover-project/drover/internal/picture"
	"github.com/drover-project/drover/internal/query"
	"github.com/drover-project/drover/internal/reason"
	"github.com/drover-project/drover/internal/store/faultstore"
	"github.com/drover-project/drover/internal/store/format"
	"github.com/drover-project/drover/internal/testkit/stores"
)

// rig is a cluster of fake nodes on a real store.
type rig struct {
	uploads Uploads

	testing.TB
	dir       string
	store     *faultstore.Store
	keeper    *inventory.Keeper
	fleet     *agent.Fleet
	all       Catalogue
	submitted [][]*opcode.Opcode
	jobs      job.ID // the latest that ran an opcode

	mu    sync.Mutex
	uuids int
	log   []string
	// broken fails the driver calls of a node whose method and phase it names.
	broken map[string]fake.Call
	// changed are the changes that drivers were asked for since an opcode began.
	changed []change
	// onCall is asked before a driver changes something, and when it has; nil for nobody.
	onCall atomic.Pointer[func() error]
	// wrap stands between opcodes and a node.
	wrap func(Node) Node
	// down are the nodes that do not answer.
	down    map[string]bool
	oob     controllers
	machine machine
}

// life is that of the rig's store.
const life = "life-of-the-rig"

var errBroken = errors.New("the driver is broken on purpose")

func newRig(t testing.TB, nodes ...string) *rig {
	t.Helper()
	return newRigOn(t, "", nodes...)
}

// newRigOn is newRig on the store that a URL names.
func newRigOn(t testing.TB, url string, nodes ...string) *rig {
	t.Helper()
	if len(nodes) == 0 {
		nodes = []string{"node1"}
	}
	r := &rig{TB: t, dir: t.TempDir(), broken: map[string]fake.Call{}, down: map[string]bool{}}
	s := faultstore.New(stores.Open(t, url))
	r.store = s
	var err error
	if r.keeper, err = inventory.Open(t.Context(), s, 0, picture.New()); err != nil {
		t.Fatal(err)
	}
	err = r.keeper.Bootstrap(t.Context(), inventory.Setup{Name: "cluster.example", Nodes: nodes,
		Hypervisors: []string{"fake"}, DiskTemplates: []string{"diskless", "file", "plain", "drbd", "ext"},
		Now: time.Unix(1000, 0), NewUUID: r.newUUID})
	if err != nil {
		t.Fatal(err)
	}
	r.fleet = agent.NewFleet(r.openAgent)
	r.oob.called = r.called
	r.all = All(r.source, Names{Resolve: resolve, Answers: answers, OutOfBand: &r.oob, Machine: &r.machine})
	t.Cleanup(func() {
		r.keeper.Close()
		if err := errors.Join(r.fleet.Close(), s.Close()); err != nil {
			t.Error(err)
		}
	})
	return r
}

// resolve knows every name that does not begin with "un"; short.X is the alias
// of something else.
func resolve(_ context.Context, name string) (full, address string, err error) {
	switch low := strings.ToLower(name); {
	case strings.HasPrefix(low, "un"):
		return "", "", errors.New("no such host")
	case strings.HasPrefix(low, "short"):
		return name + ".example", "192.0.2.88", nil
	case strings.HasPrefix(low, "alias"):
		return "other.example", "192.0.2.88", nil
	case strings.HasPrefix(low, "busy"):
		return name, "192.0.2.99", nil
	}
	return name, "192.0.2.77", nil
}

func answers(_ context.Context, address string) bool { return address == "192.0.2.99" }

func (r *rig) newUUID() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.uuids++
	return fmt.Sprintf("00000000-0000-4000-8000-%012x", r.uuids)
}

func (r *rig) openAgent(node string) (*agent.Agent, error) {
	dir := filepath.Join(r.dir, node)
	driver, err := fake.Open(fake.Config{Dir: filepath.Join(dir, "fake"), Memory: 8192, Fault: func(c fake.Call) error {
		r.mu.Lock()
		defer r.mu.Unlock()
		if !observes(c.Method) && !c.After {
			r.changed = append(r.changed, change{node, c.Name, c.Method})
		}
		if !observes(c.Method) {
			if err := r.called(); err != nil {
				return err
			}
		}
		if b, ok := r.broken[node]; ok && b.Method == c.Method && b.After == c.After {
			return errBroken
		}
		return nil
	}})
	if err != nil {
		return nil, err
	}
	return agent.New(agent.Config{Node: node, Dir: dir, Driver: driver, PowercycleDelay: time.Hour, Now: func() time.Time { return time.Unix(3000, 0) }})
}

// called asks whoever wants to know of changes.
func (r *rig) called() error {
	if f := r.onCall.Load(); f != nil {
		return (*f)()
	}
	return nil
}

// failOn makes a driver method of a node fail, before or after its effect; an
// empty method mends the node.
func (r *rig) failOn(node, method string, after bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.broken[node] = fake.Call{Method: method, After: after}
}

// change is a change that a driver was asked for.
type change struct{ node, instance, method string }

// observes reports whether a method of a driver only looks.
func observes(method string) bool {
	return slices.Contains([]string{"node", "instance", "named", "instances", "units", "volumes", "providers"}, method)
}

// mustHold checks that the opcode asked for the locks of every node, and of
// every instance, on which it changed anything.
func (r *rig) mustHold(op *opcode.Opcode, request lock.Request) {
	r.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if slices.Contains(request, lock.Want{Name: bgl, Mode: lock.Exclusive}) {
		return
	}
	covered := func(level lock.Level, item string) bool {
		return slices.ContainsFunc(request, func(w lock.Want) bool {
			return w.Name.Level == level && (w.Name.Item == item || w.Name.Item == lock.All)
		})
	}
	for _, c := range r.changed {
		node := r.keeper.Snapshot().NodeNamed(c.node)
		if node == nil || !covered(lock.Node, node.UUID) || !covered(lock.NodeRes, node.UUID) {
			r.Fatalf("%s changes something on %s (%s of %s) and did not ask for its locks: %v", op.ID, c.node, c.method, c.instance, request)
		}
		if op.ID == "OP_NODE_CLEAR_ORPHANS" || op.ID == "OP_DISK_REMOVE" || c.instance == "" {
			continue // what the inventory does not know has no lock: whoever could add it shares the node's; nor is there one for what is of no instance
		}
		// Whoever makes a name locks its first label, whatever else it is given.
		label, _, _ := strings.Cut(c.instance, ".")
		naming := op.ID == "OP_INSTANCE_CREATE" || op.ID == "OP_INSTANCE_RENAME"
		if !covered(lock.Instance, c.instance) && !(naming && covered(lock.Instance, label)) {
			r.Fatalf("%s changes instance %s (%s) and did not ask for its lock: %v", op.ID, c.instance, c.method, request)
		}
	}
}

func (r *rig) nodes(name string) (Node, error) {
	if r.down[name] {
		return nil, fault.New(fault.Unavailable, "node %s does not answer", name)
	}
	n, err := Local(r.fleet)(name)
	if err == nil && r.wrap != nil {
		n = r.wrap(n)
	}
	return n, err
}

// source is what queries are answered from: of the nodes, their operating
// systems.
func (r *rig) source(ctx context.Context) *query.Source {
	snap := r.keeper.Snapshot()
	return &query.Source{Inventory: snap, Runtime: query.Runtime{SoftwareVersion: "1"},
		Live: func(_ query.Need, nodes []string) map[string]query.NodeState {
			out := map[string]query.NodeState{}
			for _, uuid := range nodes {
				out[uuid] = r.oses(ctx, snap.Node(uuid).Name)
			}
			return out
		}}
}

func (r *rig) oses(ctx context.Context, node string) query.NodeState {
	if r.down[node] {
		return query.NodeState{Failed: "it does not answer"}
	}
	a, err := r.fleet.Agent(node)
	if err != nil {
		return query.NodeState{Failed: err.Error()}
	}
	list, err := a.OSes(ctx)
	if err != nil {
		return query.NodeState{Failed: err.Error()}
	}
	state := query.NodeState{OS: map[string]query.OSState{}}
	for _, o := range list {
		state.OS[o.Name] = query.OSState{Valid: o.Problem == "", Variants: o.Variants}
	}
	return state
}

// env returns what the opcode would find.
func (r *rig) env(op *opcode.Opcode) *Env {
	r.jobs++
	return &Env{
		Job: r.jobs, Life: life, Format: format.Newest, Op: op, Inventory: r.keeper, Nodes: r.nodes, Uploads: r.uploads,
		Log: func(kind string, payload any) {
			r.mu.Lock()
			defer r.mu.Unlock()
			if kind != job.LogMessage {
				payload = fmt.Sprint(kind, payload)
			}
			r.log = append(r.log, payload.(string))
		},
		Release: func(...lock.Name) {},
		Submit: func(_ context.Context, jobs [][]*opcode.Opcode) ([]Submitted, error) {
			out := make([]Submitted, len(jobs))
			for i := range jobs {
				r.submitted = append(r.submitted, jobs[i])
				out[i].ID = job.ID(100 + len(r.submitted))
				if len(jobs[i]) == 0 {
					out[i].Err = errors.New("an empty job")
				}
			}
			return out, nil
		},
		Now:     func() time.Time { return time.Unix(2000, 0) },
		NewUUID: r.newUUID,
	}
}

// params is shorthand for the parameters of an opcode.
type params = map[string]any

func (r *rig) opcode(id string, p params) *opcode.Opcode {
	r.Helper()
	all := params{"reason": []any{[]any{"user", "testing " + id, int64(5)}}}
	maps.Copy(all, p)
	op, err := opcode.FromMap(id, all)
	if err != nil {
		r.Fatalf("%s: %v", id, err)
	}
	return op
}

// run works out which locks the opcode needs and carries it out; log holds its
// messages afterwards.
func (r *rig) run(id string, p params) (string, error) {
	r.Helper()
	op := r.opcode(id, p)
	r.log, r.changed = nil, nil
	request, err := r.all.Locks(op, r.keeper.Snapshot())
	if err != nil && fault.CodeOf(err) == fault.Internal {
		r.Fatalf("locks of %s: %v", id, err)
	}
	result, err := r.all.Run(r.Context(), r.env(op))
	r.mustHold(op, request)
	return string(result), err
}

// must runs an opcode that has to succeed with this result.
func (r *rig) must(want, id string, p params) {
	r.Helper()
	got, err := r.run(id, p)
	if err != nil {
		r.Fatalf("%s%v: %v", id, p, err)
	}
	if got != want {
		r.Fatalf("%s%v = %s, want %s", id, p, got, want)
	}
}

// refuses runs an opcode that has to fail with this result on the wire, and
// checks that the inventory is as it was.
func (r *rig) refuses(class, text, id string, p params) {
	r.Helper()
	before := r.dump()
	got, err := r.run(id, p)
	if err == nil {
		r.Fatalf("%s%v = %s, want an error", id, p, got)
	}
	gotClass, gotText, _ := job.DecodeError(job.EncodeError(err))
	if gotClass != class || gotText != text {
		r.Fatalf("%s%v:\n got %s: %s\nwant %s: %s", id, p, gotClass, gotText, class, text)
	}
	if after := r.dump(); after != before {
		r.Fatalf("%s%v failed and changed the inventory\n from %s\n to   %s", id, p, before, after)
	}
}

// dump returns the whole inventory as text.
func (r *rig) dump() string {
	r.Helper()
	snap := r.keeper.Snapshot()
	all := []any{snap.Cluster(), slices.Collect(snap.Groups()), slices.Collect(snap.Nodes()),
		slices.Collect(snap.Networks()), slices.Collect(snap.Instances()), slices.Collect(snap.Images()), slices.Collect(snap.Disks())}
	text, err := json.Marshal(all)
	if err != nil {
		r.Fatal(err)
	}
	return string(text)
}

// create makes an instance on node1, started or not.
func (r *rig) create(name string, start bool) {
	r.Helper()
	r.must(`["node1"]`, "OP_INSTANCE_CREATE", params{"instance_name": name, "mode": "create", "pnode": "node1",
		"disk_template": "file", "disks": []any{params{"size": 8}}, "nics": []any{params{}}, "os_type": "noop+default", "start": start})
}

// mirrored makes an instance on node1 whose disks have their second copies on node2, started or not.
func (r *rig) mirrored(name string, start bool) {
	r.Helper()
	r.must(`["node1","node2"]`, "OP_INSTANCE_CREATE", params{"instance_name": name, "mode": "create", "pnode": "node1", "snode": "node2",
		"disk_template": "drbd", "disks": []any{params{"size": 8}}, "nics": []any{params{}}, "os_type": "noop+default", "start": start})
}

// shared makes an instance on node1 whose disks every node reaches, started or not.
func (r *rig) shared(name string, start bool) {
	r.Helper()
	r.must(`["node1"]`, "OP_INSTANCE_CREATE", params{"instance_name": name, "mode": "create", "pnode": "node1",
		"disk_template": "ext", "disks": []any{params{"size": 8, "provider": "san"}}, "nics": []any{params{}}, "os_type": "noop+default", "start": start})
}

func (r *rig) instance(name string) *cluster.Instance {
	r.Helper()
	inst := r.keeper.Snapshot().InstanceNamed(name)
	if inst == nil {
		r.Fatalf("there is no instance %s", name)
	}
	return inst
}

// state returns what a node says of an instance, empty if it knows none.
func (r *rig) state(node, name string) hypervisor.State {
	r.Helper()
	a, err := r.fleet.Agent(node)
	if err != nil {
		r.Fatal(err)
	}
	list, err := a.Named(r.Context(), name)
	switch {
	case err != nil || len(list) > 1:
		r.Fatalf("%s has %+v, %v", node, list, err)
	case len(list) == 0:
		return ""
	}
	return list[0].State
}

// lastReason returns the source of the last entry of an instance's reason
// file, empty when there is no file.
func (r *rig) lastReason(node, name string) string {
	r.Helper()
	data, err := os.ReadFile(filepath.Join(r.dir, node, "instance-reason", name))
	if os.IsNotExist(err) {
		return ""
	}
	var trail reason.Trail
	if err == nil {
		err = json.Unmarshal(data, &trail)
	}
	if err != nil {
		r.Fatal(err)
	}
	return trail[0].Reason + " " + trail[len(trail)-1].Source
}

func (r *rig) logged(want ...string) {
	r.Helper()
	if !slices.Equal(r.log, want) {
		r.Fatalf("log is\n%s\nwant\n%s", strings.Join(r.log, "\n"), strings.Join(want, "\n"))
	}
}
