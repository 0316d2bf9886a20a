package rollout

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/agent"
	"github.com/drover-project/drover/internal/deploy/course"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/state"
	"github.com/drover-project/drover/internal/store"
	"github.com/drover-project/drover/internal/store/faultstore"
)

// stored counts what the store has of deployments: heads, pieces of plans, records, parts of states.
func (r *rig) stored() string {
	r.Helper()
	var out []string
	for _, kind := range []store.Kind{KindDeployment, KindPlan, KindRecord, KindPart} {
		n := 0
		for _, err := range r.store.List(r.Context(), kind, store.Options{}) {
			if err != nil {
				r.Fatal(err)
			}
			n++
		}
		out = append(out, strconv.Itoa(n))
	}
	return strings.Join(out, " ")
}

// version puts the environment e with a value, of which the task a takes note and the task b does not.
func (r *rig) version(v int) {
	r.Helper()
	r.environment("e", fmt.Sprintf(`{"common": {"v": %d, "w": 0}, "nodes": {"1": {"uid": "1", "roles": ["n"]}}, "hosts": {"1": "node1"}}`, v), "g")
}

// versions is an environment that was deployed with the values from 1 to n, in deployments of these numbers: b succeeded in the first one alone.
func versions(t *testing.T, n int) *rig {
	t.Helper()
	r := newRig(t, 1)
	r.graph("g", `
- {id: a, type: shell, version: 2.1.0, role: '*', condition: {yaql_exp: changed($.v)}}
- {id: b, type: shell, version: 2.1.0, role: '*', condition: {yaql_exp: changed($.w)}}`)
	for v := range n {
		r.version(v + 1)
		if id := r.start(Wish{Environment: "e"}); id != int64(v+1) || r.end(id).Status != course.Done {
			t.Fatalf("deployment %d is not what it should be", id)
		}
	}
	return r
}

func (r *rig) numbers() (out []int64) {
	r.Helper()
	all, err := r.engine.Deployments(r.Context())
	if err != nil {
		r.Fatal(err)
	}
	for _, d := range all {
		out = append(out, d.ID)
	}
	return out
}

// TestDeploymentsAreRemoved: with their plans, records and those parts of states that nothing else has, unless something is decided by them.
func TestDeploymentsAreRemoved(t *testing.T) {
	r := versions(t, 3)
	planned := r.plan(Wish{Environment: "e", Mode: course.Noop}) // the newest
	if got := r.stored(); got != "4 4 4 4" {
		t.Fatalf("stored is %s", got)
	}
	for id, why := range map[int64]string{
		1:          "tasks of the environment e last succeeded in it", // b
		3:          "it is the latest one of the environment e",
		planned.ID: "it is the newest of all",
		9:          "there is no deployment 9",
	} {
		code := fault.WrongState
		if id == 9 {
			code = fault.NotFound
		}
		_, err := r.engine.Delete(t.Context(), []int64{2, id}, false, by)
		r.refused(err, code, why)
	}
	_, err := r.engine.Delete(t.Context(), nil, false, by)
	r.refused(err, fault.Invalid, "no deployment is named")
	for _, dry := range []bool{true, false} {
		if got := r.stored(); got != "4 4 4 4" {
			t.Fatalf("what was refused, or only shown, left %s", got)
		}
		went, err := r.engine.Delete(t.Context(), []int64{2, 2}, dry, by)
		if err != nil || len(went.Deployments) != 1 || went.Deployments[0].ID != 2 || went.Deployments[0].Status != course.Done || went.Deployments[0].Over == 0 {
			t.Fatalf("went %+v, %v", went, err)
		}
	}
	if got := r.stored(); got != "3 3 3 3" { // of the parts its common one
		t.Errorf("stored is %s", got)
	}
	_, err = r.engine.Progress(t.Context(), 2)
	r.refused(err, fault.NotFound, "there is no deployment 2: it was removed")
	_, err = r.engine.Delete(t.Context(), []int64{2}, false, by)
	r.refused(err, fault.NotFound, "there is no deployment 2")
	events := 0
	for e, err := range r.queue.Stored.Events(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if e.What == "deployment.delete" && e.Object == "2" && e.Name == "e" {
			events++
		}
	}
	if events != 1 {
		t.Errorf("%d events tell of it", events)
	}
	r.another()
	if got := r.numbers(); !slices.Equal(got, []int64{1, 3, planned.ID}) {
		t.Errorf("the next controller has %v", got)
	}
	if d := r.plan(Wish{Environment: "e"}); d.Runs != 0 || d.ID != planned.ID+1 {
		t.Errorf("deployment %d does %d tasks", d.ID, d.Runs)
	}
}

// TestOldDeploymentsAreRemoved: those to which nothing happened since a moment, until the time for it is over.
func TestOldDeploymentsAreRemoved(t *testing.T) {
	r := versions(t, 5)
	between := time.Unix(0, r.engine.known().Deployment(3).Over()+1)
	for _, x := range []struct {
		before time.Time
		limit  time.Duration
		dry    bool
		went   []int64
		spared int
		more   bool
	}{
		{time.Unix(0, 1), time.Minute, false, nil, 0, false},
		{between, time.Minute, true, []int64{2, 3}, 1, false},
		{between, 0, false, nil, 1, true},
		{between, time.Minute, false, []int64{2, 3}, 1, false},
		{between, time.Minute, false, nil, 1, false},
		{time.Now(), time.Minute, false, []int64{4}, 2, false},
	} {
		got, err := r.engine.Prune(t.Context(), x.before, x.limit, x.dry, by)
		if err != nil {
			t.Fatal(err)
		}
		var went []int64
		for _, d := range got.Deployments {
			went = append(went, d.ID)
		}
		if !slices.Equal(went, x.went) || got.Spared != x.spared || got.More != x.more {
			t.Errorf("%+v: %+v", x, got)
		}
	}
	if got := r.numbers(); !slices.Equal(got, []int64{1, 5}) {
		t.Errorf("there are %v", got)
	}
}

// TestTheNextControllerFinishesARemoval: who dies while a deployment is removed leaves it whole, or gone, and nothing of it stays.
func TestTheNextControllerFinishesARemoval(t *testing.T) {
	for what, struck := range map[string]func(tx store.Tx) bool{
		"before the head":  func(tx store.Tx) bool { return deletes(tx, KindDeployment) },
		"before the plan":  func(tx store.Tx) bool { return deletes(tx, KindPlan) },
		"before the tasks": func(tx store.Tx) bool { return deletes(tx, KindRecord) },
	} {
		t.Run(what, func(t *testing.T) {
			r := versions(t, 3)
			died := r.store.Inject(faultstore.Fault{Do: faultstore.CrashBefore, Err: fault.New(fault.Fenced, "another leads"), When: struck})
			_, err := r.engine.Delete(t.Context(), []int64{2}, false, by)
			r.refused(err, fault.Fenced, "another leads")
			<-died
			r.another()
			want, left := "2 2 3 3", []int64{1, 3}
			if what == "before the head" {
				want, left = "3 3 4 4", []int64{1, 2, 3}
			}
			if got := r.numbers(); !slices.Equal(got, left) || r.stored() != want {
				t.Errorf("there are %v, stored is %s", got, r.stored())
			}
		})
	}
}

func deletes(tx store.Tx, kind store.Kind) bool {
	return slices.ContainsFunc(tx.Delete, func(k store.Key) bool { return k.Kind == kind })
}

// TestPartsThatAnotherHasStay: a state to which an environment came back, or with which another deployment was planned meanwhile, stays whole.
func TestPartsThatAnotherHasStay(t *testing.T) {
	r := versions(t, 3)
	r.version(2) // the parts of deployment 2
	if _, err := r.engine.Delete(t.Context(), []int64{2}, false, by); err != nil {
		t.Fatal(err)
	}
	if d := r.plan(Wish{Environment: "e"}); d.Runs != 1 {
		t.Errorf("%d tasks run", d.Runs)
	}
	if _, err := r.engine.State(t.Context(), "e"); err != nil {
		t.Error(err)
	}
}

// TestPartsOfSeveralThatGo: what only those have that go together goes with the last of them; what was planned meanwhile keeps its own.
func TestPartsOfSeveralThatGo(t *testing.T) {
	r := versions(t, 3)
	r.version(2)
	r.end(r.start(Wish{Environment: "e"})) // 4, with the parts of 2
	r.version(5)
	r.end(r.start(Wish{Environment: "e"}))
	if _, err := r.engine.Delete(t.Context(), []int64{2, 4}, false, by); err != nil {
		t.Fatal(err)
	}
	if got := r.stored(); !strings.HasSuffix(got, " 4") { // the common ones of 1, 3 and 5, and the node's
		t.Errorf("stored is %s", got)
	}
	r = versions(t, 3)
	old := r.engine.known().Deployment(2)
	u, err := r.engine.countUses(t.Context(), []*course.Deployment{old})
	if err != nil {
		t.Fatal(err)
	}
	r.version(2)
	d := r.plan(Wish{Environment: "e"})
	r.version(6) // the plan alone has them
	if err := r.engine.patiently(t.Context(), func(ctx context.Context) error { return r.engine.removeOne(ctx, old, u, by) }); err != nil {
		t.Fatal(err)
	}
	if _, err := r.engine.Diff(t.Context(), At{Deployment: d.ID}, At{Environment: "e"}); err != nil {
		t.Error(err)
	}
}

// TestPartsOfAPlanThatWasSlow: a plan that has its number already is stored when it has been counted what has which part, behind one with a higher number.
func TestPartsOfAPlanThatWasSlow(t *testing.T) {
	r := newRig(t, 1)
	r.graph("g", "- {id: a, type: shell, version: 2.1.0, role: '*', condition: {yaql_exp: changed($.v)}}")
	r.version(1)
	first := r.plan(Wish{Environment: "e"})
	old := r.engine.known().Deployment(first.ID)
	r.environment("other", `{"nodes": {"1": {"uid": "1", "roles": ["other"], "v": 1}}, "hosts": {"1": "node1"}}`, "g")
	var u *uses
	r.meddle(func(n int) {
		if n > 1 {
			return
		}
		quick, _, err := r.engine.Plan(t.Context(), Wish{Environment: "other"}, by)
		if err != nil || quick.ID != 3 {
			t.Errorf("the quick one is %+v, %v", quick, err)
		}
		if u, err = r.engine.countUses(t.Context(), []*course.Deployment{old}); err != nil {
			t.Error(err)
		}
	})
	if slow := r.plan(Wish{Environment: "e"}); slow.ID != 2 {
		t.Fatalf("the slow one is deployment %d", slow.ID)
	}
	r.version(2) // the slow plan alone has them
	if err := r.engine.patiently(t.Context(), func(ctx context.Context) error { return r.engine.removeOne(ctx, old, u, by) }); err != nil {
		t.Fatal(err)
	}
	if _, err := r.engine.Diff(t.Context(), At{Deployment: 2}, At{Environment: "e"}); err != nil {
		t.Error(err)
	}
}

// TestPartsOfSeveralThatGoAtOnce, each asked for by somebody else: what both have goes with the last of them.
func TestPartsOfSeveralThatGoAtOnce(t *testing.T) {
	r := versions(t, 3)
	r.version(2)
	r.end(r.start(Wish{Environment: "e"})) // 4, with the parts of 2
	r.version(5)
	r.end(r.start(Wish{Environment: "e"}))
	gate := make(chan struct{})
	held := r.store.Inject(faultstore.Fault{Do: faultstore.Hold, Gate: gate, When: func(tx store.Tx) bool {
		return slices.Contains(tx.Delete, store.Key{Kind: KindDeployment, ID: "2"})
	}})
	var both sync.WaitGroup
	remove := func(id int64) {
		both.Go(func() {
			if _, err := r.engine.Delete(t.Context(), []int64{id}, false, by); err != nil {
				t.Error(err)
			}
		})
	}
	remove(2)
	<-held // it has counted
	if r.engine.removing.TryLock() {
		t.Error("another may count meanwhile")
		r.engine.removing.Unlock()
	}
	remove(4)
	close(gate)
	both.Wait()
	if got := r.stored(); !strings.HasSuffix(got, " 4") { // the common ones of 1, 3 and 5, and the node's
		t.Errorf("stored is %s", got)
	}
}

// TestWhatBecameNeededStays: it was decided that a deployment may go, and meanwhile something is decided by it.
func TestWhatBecameNeededStays(t *testing.T) {
	r := versions(t, 2)
	r.plan(Wish{Environment: "e"})
	_, err := r.engine.remove(t.Context(), []*course.Deployment{r.engine.known().Deployment(2)}, 0, false, time.Time{}, by)
	r.refused(err, fault.Conflict, "deployment 2 stays: it is the latest one of the environment e")
	// It is told with what went before.
	_, err = r.engine.remove(t.Context(), []*course.Deployment{r.engine.known().Deployment(1), r.engine.known().Deployment(2)}, 0, false, time.Time{}, by)
	r.refused(err, fault.Conflict, "deployment 2 stays: it is the latest one of the environment e (removed before: 1)")
}

// TestWhatCannotBeReadMayHaveAnyPart: while a deployment or an environment cannot be read, no part of a state goes, and deployments do.
func TestWhatCannotBeReadMayHaveAnyPart(t *testing.T) {
	for _, key := range []store.Key{{Kind: KindDeployment, ID: "4"}, {Kind: KindEnvironment, ID: "other"}} {
		r := versions(t, 3)
		if _, err := store.Commit(t.Context(), r.store, store.Tx{Put: []store.Put{{Key: key, Value: []byte(`7`)}}}); err != nil {
			t.Fatal(err)
		}
		if _, err := r.engine.Delete(t.Context(), []int64{2}, false, by); err != nil {
			t.Fatal(err)
		}
		if got := r.stored(); !strings.HasSuffix(got, " 3 4") {
			t.Errorf("with a damaged %s stored is %s", key.Kind, got)
		}
	}
}

// TestADeploymentThatGoesOnIsNotRemoved: who has just been begun, or tried again, is as it was.
func TestADeploymentThatGoesOnIsNotRemoved(t *testing.T) {
	r := versions(t, 1)
	r.version(2)
	running := make(chan struct{})
	r.simulate(func(ctx context.Context, _ string, _ agent.Task) error {
		close(running)
		<-ctx.Done()
		return ctx.Err()
	})
	id := r.start(Wish{Environment: "e"})
	<-running
	r.plan(Wish{Environment: "e", Mode: course.Noop})
	_, err := r.engine.Delete(t.Context(), []int64{id}, false, by)
	r.refused(err, fault.WrongState, "it is under way")
	known := r.engine.known().Deployment(1) // it was looked at before it changed
	r.engine.cfg.Picture.Committed(nextOf(known))
	r.engine.cfg.Picture.Publish()
	_, err = r.engine.remove(t.Context(), []*course.Deployment{known}, 0, false, time.Time{}, by)
	r.refused(err, fault.Conflict, "deployment 1 was changed at this moment")
}

// TestManyGapsAreLookedAtOnce: numbers without a deployment are looked at by the next controller, and by the one after it only where something may have
// been left.
func TestManyGapsAreLookedAtOnce(t *testing.T) {
	r := versions(t, 3)
	last := *r.engine.known().Deployment(3)
	last.ID = mostGaps + 10
	left := store.Put{Key: store.Key{Kind: KindRecord, ID: course.RecordKey(7, 0)}, Value: []byte(`{}`)}
	tx := store.Tx{Put: []store.Put{put(KindDeployment, last.Key(), last), left}}
	commit := func(tx store.Tx) {
		t.Helper()
		if _, err := store.Commit(t.Context(), r.store, tx); err != nil {
			t.Fatal(err)
		}
	}
	there := func() bool {
		_, err := r.store.Get(t.Context(), left.Key)
		return err == nil
	}
	commit(tx)
	r.another()
	if there() {
		t.Error("what was left of a deployment stays")
	}
	commit(store.Tx{Put: []store.Put{left}})
	r.another()
	if !there() {
		t.Error("it is looked again where nothing can be left")
	}
	if _, err := r.engine.Delete(t.Context(), []int64{2}, false, by); err != nil {
		t.Fatal(err)
	}
	r.another()
	if there() {
		t.Error("it is not looked where something may be left")
	}
}

// nextOf is a change of a deployment in which it is another value.
func nextOf(d *course.Deployment) *state.Change {
	next := *d
	return &state.Change{Deployments: []*course.Deployment{&next}}
}
