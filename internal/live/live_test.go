package live_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/drover-project/drover/internal/agent"
	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/hypervisor"
	"github.com/drover-project/drover/internal/hypervisor/fake"
	"github.com/drover-project/drover/internal/query"
	"github.com/drover-project/drover/internal/query/items"
)

// asked is a query for what only nodes know.
var asked = query.Request{What: "instance", Fields: []string{"name", "oper_state", "oper_ram"}}

// onBoth puts an instance on each node, and returns the nodes' names.
func (r *rig) onBoth() []string {
	r.Helper()
	var names []string
	for n := range r.keeper.Snapshot().Nodes() {
		name := "on-" + n.Name
		r.change(cluster.Put(&cluster.Instance{Meta: cluster.NewMeta("uuid-"+name, 1), Name: name, AdminState: "up", PrimaryNode: n.UUID}))
		names = append(names, n.Name)
	}
	slices.Sort(names)
	return names
}

// rows returns the answer as text.
func (r *rig) rows(ctx context.Context, q query.Request) string {
	r.Helper()
	result, err := r.Query(ctx, q)
	if err != nil {
		r.Fatal(err)
	}
	return valuesOf(result)
}

func valuesOf(result *query.Result) string {
	return strings.ReplaceAll(string(result.AppendValues(nil)), ".example.com", "")
}

func (r *rig) onCall(hook func(node string, c fake.Call)) { r.hook.Store(&hook) }

func (r *rig) start(node string) {
	r.Helper()
	a, err := r.fleet.Agent(node)
	if err == nil {
		err = a.Start(r.Context(), agent.Order{}, hypervisor.Spec{Name: "on-" + node, UUID: "uuid-on-" + node, Memory: 64, VCPUs: 1}, nil)
	}
	if err != nil {
		r.Fatal(err)
	}
}

func TestQueriesReadReportsWithoutAsking(t *testing.T) {
	r := newRig(t, 0)
	nodes := r.onBoth()
	var calls atomic.Int64
	r.onCall(func(_ string, c fake.Call) {
		if c.Method == "instances" && !c.After {
			calls.Add(1)
		}
	})
	const stopped = `[["on-node1",false,null],["on-node2",false,null]]`
	for range 100 {
		if got := r.rows(t.Context(), asked); got != stopped {
			t.Fatalf("got %s", got)
		}
	}
	// One report of each node when it is opened; heartbeats are far apart.
	if got := calls.Load(); got > 6 {
		t.Errorf("the nodes were asked %d times for 100 queries", got)
	}
	// Who wants to know what is true now has them asked, both.
	before, fresh := calls.Load(), asked
	fresh.Fresh = true
	if got := r.rows(t.Context(), fresh); got != stopped {
		t.Errorf("fresh: got %s", got)
	}
	if got := calls.Load(); got < before+2 {
		t.Errorf("the nodes were asked %d times more for a fresh answer", got-before)
	}
	// What was changed is seen by the next query.
	r.start(nodes[0])
	if got, want := r.rows(t.Context(), asked), `[["on-node1",true,64],["on-node2",false,null]]`; got != want {
		t.Errorf("after a start: got %s, want %s", got, want)
	}
}

func TestANodeThatHangsCostsItsRowsOnly(t *testing.T) {
	r := newRig(t, 0)
	nodes := r.onBoth()
	for _, n := range nodes {
		r.start(n)
	}
	const both = `[["on-node1",true,64],["on-node2",true,64]]`
	if got := r.rows(t.Context(), asked); got != both {
		t.Fatalf("got %s", got)
	}
	hung, release := make(chan struct{}, 1), make(chan struct{})
	r.onCall(func(node string, c fake.Call) {
		if node == nodes[1] && c.Method == "node" && !c.After {
			select {
			case hung <- struct{}{}:
			default:
			}
			<-release
		}
	})
	defer close(release)
	r.start(nodes[1]) // makes what is known of it out of date
	// The end of this context stands for the time that a node is given.
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-hung
		cancel()
	}()
	src := r.Source(t.Context())
	src.Live = r.Source(ctx).Live
	result, err := items.All.Run(src, asked.What, asked.Fields, nil, query.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := valuesOf(result), `[["on-node1",true,64],["on-node2",null,null]]`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// The end of a query's context is an error, not an answer with the rows that
// were there until then.
func TestAQueryEndsWithItsContext(t *testing.T) {
	r := newRig(t, 0)
	r.onBoth()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, q := range []query.Request{asked, {What: "job", Fields: []string{"id", "archived"}}} {
		result, err := r.Query(ctx, q)
		if !fault.Is(err, fault.Canceled) || !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "given up") {
			t.Errorf("%s: got %v, %v", q.What, result, err)
		}
	}
}
