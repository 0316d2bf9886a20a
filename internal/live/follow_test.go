package live_test

import (
	"context"
	"fmt"
	"iter"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/agent"
	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/hypervisor/fake"
	"github.com/drover-project/drover/internal/inventory"
	"github.com/drover-project/drover/internal/live"
	"github.com/drover-project/drover/internal/query"
	"github.com/drover-project/drover/internal/store"
	"github.com/drover-project/drover/internal/testkit"
	"github.com/drover-project/drover/internal/testkit/controller"
)

// patience is how long a test waits for what must come. It only ends tests that
// would hang: a machine may be under load, or stand still for half a minute.
var patience = testkit.Patience()

// rig is a cluster of two nodes on a store of its own.
type rig struct {
	testing.TB
	fleet  *agent.Fleet
	keeper *inventory.Keeper
	*live.Querier
	// hook sees each call of a node's driver.
	hook atomic.Pointer[func(node string, c fake.Call)]
}

func newRig(t testing.TB, keep store.Revision) *rig {
	t.Helper()
	return newRigOn(t, keep, nil)
}

// newRigOn makes a rig whose store is wrapped.
func newRigOn(t testing.TB, keep store.Revision, wrap func(store.Store) store.Store) *rig {
	t.Helper()
	r := &rig{TB: t}
	var ids atomic.Int64
	c := controller.New(t, controller.Options{Keep: keep, Wrap: wrap, Patience: time.Millisecond,
		Cluster: "c.example.com", Nodes: []string{"node1.example.com", "node2.example.com"}, Templates: []string{"diskless"},
		NewUUID: func() string { return fmt.Sprintf("00000000-0000-0000-0000-%012d", ids.Add(1)) },
		OnCall: func(node string, c fake.Call) error {
			if hook := r.hook.Load(); hook != nil {
				(*hook)(node, c)
			}
			return nil
		}})
	r.keeper, r.Querier, r.fleet = c.Keeper, c.Querier, c.Fleet
	return r
}

// change changes the inventory.
func (r *rig) change(changes ...cluster.Change) {
	r.Helper()
	err := r.keeper.Update(r.Context(), func(*cluster.Snapshot) ([]cluster.Change, error) { return changes, nil })
	if err != nil {
		r.Fatal(err)
	}
}

func put(name, state string) cluster.Change {
	return cluster.Put(&cluster.Instance{Meta: cluster.NewMeta("uuid-"+name, 1), Name: name, AdminState: state})
}

func words(u *live.Update) string {
	var out []string
	if u.Reset {
		out = append(out, "reset")
	}
	for _, e := range u.Events {
		out = append(out, e.Type+" "+e.ID)
	}
	return strings.Join(out, ", ")
}

var instances = query.Request{What: "instance", Fields: []string{"name", "admin_state"}}

func (r *rig) next(since store.Revision) *live.Update {
	r.Helper()
	return nextOf(r, r.Querier, since)
}

func nextOf(r *rig, q *live.Querier, since store.Revision) *live.Update {
	r.Helper()
	ctx, cancel := context.WithTimeout(r.Context(), patience)
	defer cancel()
	u, err := q.Next(ctx, instances, since)
	if err != nil {
		r.Fatal(err)
	}
	return u
}

// restarted is a querier on the same state that nobody has asked anything yet.
func (r *rig) restarted() *live.Querier {
	return &live.Querier{Queue: r.Queue, Picture: r.Picture, Deployments: r.Querier.Deployments, Store: r.Store, Nodes: r.Nodes, Log: r.Querier.Log}
}

func TestNextTellsWhatIsNew(t *testing.T) {
	r := newRig(t, 0)
	r.change(put("a", "up"), put("b", "up"))
	u := r.next(0)
	if got := words(u); got != "reset, enter uuid-a, enter uuid-b" {
		t.Errorf("at first: %s", got)
	}
	before := u.Revision
	for _, step := range []struct {
		change cluster.Change
		want   string
	}{
		{put("b", "down"), "change uuid-b"},
		{put("c", "up"), "enter uuid-c"},
		{cluster.Delete(cluster.KindInstance, "uuid-a"), "leave uuid-a"},
	} {
		r.change(step.change)
		u = r.next(u.Revision)
		if got := words(u); got != step.want {
			t.Errorf("got %s, want %s", got, step.want)
		}
	}
	if got := words(r.next(before)); got != "change uuid-b, enter uuid-c, leave uuid-a" {
		t.Errorf("from before: %s", got)
	}
	// A controller that did not see the client before reads the store's feed.
	if got := words(nextOf(r, r.restarted(), before)); got != "change uuid-b, change uuid-c, leave uuid-a" {
		t.Errorf("from before, elsewhere: %s", got)
	}
	// It starts anew where something changed that all rows may depend on.
	r.change(cluster.Put(cluster.NewGroup("g", "more", 1)))
	if got := words(nextOf(r, r.restarted(), before)); got != "reset, enter uuid-b, enter uuid-c" {
		t.Errorf("from before, elsewhere: %s", got)
	}
}

// TestNextNeverShowsOldRowsUnderANewRevision asks on while one writer changes one
// row again and again: each answer must hold what its revision wrote.
func TestNextNeverShowsOldRowsUnderANewRevision(t *testing.T) {
	r := newRig(t, 0)
	r.change(put("a", "0"))
	const rounds = 200
	states := make(chan map[store.Revision]string, 1)
	go func() {
		written := map[store.Revision]string{}
		for n := 1; n <= rounds; n++ {
			r.change(put("a", strconv.Itoa(n)))
			written[store.Revision(r.Picture.Load().Revision)] = strconv.Itoa(n)
		}
		states <- written
	}()
	seen := map[store.Revision]string{}
	for u := r.next(0); ; u = r.next(u.Revision) {
		last := u.Events[len(u.Events)-1]
		seen[u.Revision] = string(last.Row)
		if strings.Contains(string(last.Row), fmt.Sprintf(`"%d"`, rounds)) {
			break
		}
	}
	written := <-states
	for revision, row := range seen {
		if state, ok := written[revision]; ok && !strings.Contains(row, fmt.Sprintf("%q", state)) {
			t.Errorf("revision %d wrote %s, and the answer with it was %s", revision, state, row)
		}
	}
}

func TestNextWaits(t *testing.T) {
	r := newRig(t, 0)
	u := r.next(0)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	again, err := r.Next(ctx, instances, u.Revision)
	if err != nil || again.Revision != u.Revision || words(again) != "" {
		t.Errorf("without news: %+v, %v", again, err)
	}
	type result struct {
		u   *live.Update
		err error
	}
	done := make(chan result, 1)
	go func() {
		u, err := r.Next(t.Context(), instances, u.Revision)
		done <- result{u, err}
	}()
	r.change(put("a", "up"))
	select {
	case got := <-done:
		if got.err != nil || words(got.u) != "enter uuid-a" {
			t.Errorf("got %+v", got)
		}
	case <-time.After(patience):
		t.Error("the change was not seen")
	}
}

func TestNextStartsAnewWhenTheFeedIsGone(t *testing.T) {
	r := newRig(t, 1)
	u := r.next(0)
	for n := range 400 { // a store may keep more than it must, and trim the feed seldom
		r.change(put("a", fmt.Sprint("state", n)))
	}
	if got := words(nextOf(r, r.restarted(), u.Revision)); got != "reset, enter uuid-a" {
		t.Errorf("got %s", got)
	}
}

func TestFollow(t *testing.T) {
	r := newRig(t, 0)
	r.change(put("a", "up"))
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	only := instances
	only.Filter = nil
	next, stop := iter.Pull2(r.Follow(ctx, only, 0))
	defer stop()
	for _, step := range []struct {
		change []cluster.Change
		want   string
	}{
		{nil, "reset, enter uuid-a"},
		{[]cluster.Change{put("b", "up")}, "enter uuid-b"},
		{[]cluster.Change{put("b", "down")}, "change uuid-b"},
		// A change of nothing that is shown is no news.
		{[]cluster.Change{cluster.Put(cluster.NewGroup("g", "more", 1)), cluster.Delete(cluster.KindInstance, "uuid-a")}, "leave uuid-a"},
	} {
		if step.change != nil {
			r.change(step.change...)
		}
		u, err, ok := next()
		if err != nil || !ok || words(u) != step.want {
			t.Fatalf("got %+v, %v, %v; want %s", u, err, ok, step.want)
		}
	}
	cancel()
	if u, err, ok := next(); ok {
		t.Errorf("after the end: %+v, %v", u, err)
	}
}

func TestFollowRefusesBadQueries(t *testing.T) {
	r := newRig(t, 0)
	for u, err := range r.Follow(t.Context(), query.Request{What: "nosuch"}, 0) {
		if !fault.Is(err, fault.Invalid) {
			t.Errorf("got %+v, %v", u, err)
		}
	}
}
