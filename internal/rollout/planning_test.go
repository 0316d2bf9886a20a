package rollout

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/deploy/course"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/store"
	"github.com/drover-project/drover/internal/store/faultstore"
)

// ofPlans chooses the transactions that store pieces of plans.
func ofPlans(tx store.Tx) bool {
	return slices.ContainsFunc(tx.Put, func(p store.Put) bool { return p.Key.Kind == KindPlan })
}

// pieces are the keys of the pieces of plans in the store.
func (r *rig) pieces() (keys []string) {
	r.Helper()
	for o, err := range r.store.List(r.Context(), KindPlan, store.Options{}) {
		if err != nil {
			r.Fatal(err)
		}
		keys = append(keys, o.ID)
	}
	return keys
}

// meddling is a store before whose n-th transaction with pieces of plans somebody does something, from 1.
type meddling struct {
	store.Store
	n    int
	does func(n int)
}

func (s *meddling) Enqueue(tx store.Tx, done func(store.Revision, error)) {
	if ofPlans(tx) {
		s.n++
		s.does(s.n)
	}
	s.Store.Enqueue(tx, done)
}

// meddle has something done before transactions with pieces of plans, from now on.
func (r *rig) meddle(does func(n int)) { r.engine.cfg.Store = &meddling{Store: r.store, does: does} }

// TestWhatChangesWhilePlanningIsPlannedAnew changes a graph while a plan of it is stored, once, and each time: the plan is of what there is, or is refused
// and leaves nothing behind.
func TestWhatChangesWhilePlanningIsPlannedAnew(t *testing.T) {
	r := web(t)
	changes := 0
	change := func() {
		changes++
		graph := strings.Replace(webGraph, "id: motd", fmt.Sprint("id: motd", changes), 1)
		if _, err := r.engine.PutGraph(r.Context(), "web", []course.File{{Path: "web.yaml", Text: graph}}, by); err != nil {
			t.Error(err)
		}
	}
	r.meddle(func(n int) {
		if n == 1 {
			change()
		}
	})
	d := r.plan(Wish{Environment: "prod"})
	tasks, err := r.engine.Tasks(t.Context(), d.ID)
	if err != nil || d.ID != 1 || !slices.ContainsFunc(tasks, func(x course.Task) bool { return x.Task == "motd1" }) {
		t.Errorf("planned anew it is deployment %d with %+v, %v", d.ID, tasks, err)
	}
	before := r.pieces()
	r.meddle(func(int) { change() })
	_, _, err = r.engine.Plan(t.Context(), Wish{Environment: "prod"}, by)
	r.refused(err, fault.Conflict, "the environment prod cannot be planned, for it changes meanwhile: a task graph was changed")
	if now := r.pieces(); r.engine.known().Newest() != 1 || !slices.Equal(now, before) {
		t.Errorf("the newest is %d; of plans there was %v and is %v", r.engine.known().Newest(), before, now)
	}
	if changes != 1+mostPlanned {
		t.Errorf("it was planned %d times", changes-1)
	}
	r.meddle(func(int) {
		if err := r.engine.DeleteEnvironment(r.Context(), "prod", by); err != nil {
			t.Error(err)
		}
	})
	_, _, err = r.engine.Plan(t.Context(), Wish{Environment: "prod"}, by)
	r.refused(err, fault.NotFound, `there is no environment "prod"`)
	if now := r.pieces(); !slices.Equal(now, before) {
		t.Errorf("of plans there was %v and is %v", before, now)
	}
}

// TestALargePlanIsStoredInPortions has others write between two portions of a plan, which counts as a whole or not at all: also when the
// controller dies after the first.
func TestALargePlanIsStoredInPortions(t *testing.T) {
	r := newRig(t, 1)
	long := strings.Repeat("x", 2000)
	r.graph("g", "- {id: a, type: shell, version: 2.1.0, role: '*', parameters: {cmd: "+long+"}}")
	r.environment("e", simulatedNodes(1200, 1), "g")
	r.meddle(func(n int) {
		if n == 2 {
			r.environment("other", simulatedNodes(1, 1))
			if id := r.engine.known().Newest(); id != 0 {
				t.Errorf("before it is whole, deployment %d is told of", id)
			}
		}
	})
	r.plan(Wish{Environment: "e"})
	if r.engine.known().Environment("other") == nil {
		t.Error("the plan was stored at once")
	}
	if keys := r.pieces(); !slices.Equal(keys, []string{"1/0", "1/1", "1/2"}) {
		t.Errorf("stored are %v", keys)
	}

	dead := r.store.Inject(faultstore.Fault{Do: faultstore.CrashAfter, Err: fault.New(fault.Fenced, "another leads"), When: ofPlans})
	if _, _, err := r.engine.Plan(t.Context(), Wish{Environment: "e"}, by); !fault.Is(err, fault.Fenced) {
		t.Fatalf("a controller that died answers %v", err)
	}
	<-dead
	r.another()
	if keys := r.pieces(); len(keys) <= 3 || len(keys) >= 6 {
		t.Fatalf("a controller that died between two portions left %v", keys)
	}
	if d := r.plan(Wish{Environment: "e", Nodes: []string{"1"}}); d.ID != 2 || d.Steps != 1 {
		t.Errorf("the next plan is %+v", d)
	}
	if keys := r.pieces(); !slices.Equal(keys, []string{"1/0", "1/1", "1/2", "2/0"}) {
		t.Errorf("stored are %v", keys)
	}
}

// large is a controller with an environment whose plan takes three portions, and a small one, of whose plan the first portion is stored and the second is
// not. What is returned lets it go on, and waits for its end.
func large(t *testing.T) (r *rig, goOn func() (*course.Deployment, error)) {
	t.Helper()
	r = newRig(t, 1)
	r.graph("g", "- {id: a, type: shell, version: 2.1.0, role: '*', parameters: {cmd: "+strings.Repeat("x", 2000)+"}}")
	r.environment("large", simulatedNodes(1200, 1), "g")
	r.environment("small", simulatedNodes(1, 1), "g")
	struck, gate := make(chan struct{}), make(chan struct{})
	r.meddle(func(n int) {
		if n == 2 {
			close(struck)
			<-gate
		}
	})
	type planned struct {
		d   *course.Deployment
		err error
	}
	done := make(chan planned, 1)
	go func() {
		d, _, err := r.engine.Plan(r.Context(), Wish{Environment: "large"}, by)
		done <- planned{d, err}
	}()
	<-struck
	open := sync.OnceFunc(func() { close(gate) })
	t.Cleanup(open)
	return r, func() (*course.Deployment, error) {
		open()
		p := <-done
		return p.d, p.err
	}
}

// TestPlansAreStoredBesideOneAnother plans and begins another environment while a large plan is stored: neither waits for the other, and each has a number
// of its own.
func TestPlansAreStoredBesideOneAnother(t *testing.T) {
	r, goOn := large(t)
	small := r.plan(Wish{Environment: "small"})
	if _, err := r.engine.Begin(t.Context(), small.ID, by); err != nil {
		t.Fatal(err)
	}
	if p := r.end(small.ID); p.Status != course.Done || len(r.began(small.ID)) != 1 {
		t.Errorf("it is %s: %s", p.Status, p.Why)
	}
	d, err := goOn()
	if err != nil || d.ID != 1 || small.ID != 2 {
		t.Fatalf("the large one is %+v (%v), the small one %+v", d, err, small)
	}
	tasks, err := r.engine.Tasks(t.Context(), d.ID)
	if err != nil || len(tasks) != 1200 {
		t.Errorf("%d tasks, %v", len(tasks), err)
	}
	if d := r.plan(Wish{Environment: "small"}); d.ID != 3 {
		t.Errorf("the next one is deployment %d", d.ID)
	}
}

// TestWhatADeadControllerLeavesOfAPlanGoes has a controller die while it stores a plan, and a later one was done: what is stored of the first goes, and what
// is stored of a deployment that cannot be read stays.
func TestWhatADeadControllerLeavesOfAPlanGoes(t *testing.T) {
	r, goOn := large(t)
	small := r.plan(Wish{Environment: "small"})
	dead := r.store.Inject(faultstore.Fault{Do: faultstore.CrashBefore, Err: fault.New(fault.Fenced, "another leads"), When: ofPlans})
	if _, err := goOn(); !fault.Is(err, fault.Fenced) {
		t.Fatalf("a controller that died answers %v", err)
	}
	<-dead
	left := r.pieces()
	r.another()
	if now := r.pieces(); !slices.Equal(now, []string{"2/0"}) || len(left) < 2 {
		t.Errorf("of the plans there was %v and is %v", left, now)
	}
	newest := r.plan(Wish{Environment: "small"})
	if newest.ID != small.ID+1 {
		t.Errorf("the next one is deployment %d", newest.ID)
	}
	damage := store.Tx{Put: []store.Put{{Key: store.Key{Kind: KindDeployment, ID: small.Key()}, Value: []byte("[]")}}}
	if _, err := store.Commit(t.Context(), r.store, damage); err != nil {
		t.Fatal(err)
	}
	r.another()
	if now := r.pieces(); r.engine.known().Deployment(small.ID) != nil || !slices.Equal(now, []string{"2/0", "3/0"}) {
		t.Errorf("of the plans there is %v", now)
	}
}

// TestWhoLeavesAPlan leaves before it is computed, which ends it, and while it is stored, which does not.
func TestWhoLeavesAPlan(t *testing.T) {
	r := web(t)
	ctx, leave := context.WithCancelCause(t.Context())
	gate := make(chan struct{})
	struck := r.store.Inject(faultstore.Fault{Do: faultstore.Hold, When: ofPlans, Gate: gate})
	planned := make(chan error, 1)
	go func() {
		_, _, err := r.engine.Plan(ctx, Wish{Environment: "prod"}, by)
		planned <- err
	}()
	<-struck
	leave(errLeft)
	if err := <-planned; !errors.Is(err, errLeft) {
		t.Errorf("who has left is answered with %v", err)
	}
	close(gate)
	if d := r.plan(Wish{Environment: "prod"}); d.ID != 2 { // behind the first
		t.Errorf("the next one is deployment %d", d.ID)
	}
	if d, err := r.engine.Deployment(t.Context(), 1); err != nil || d.Status != course.Planned {
		t.Errorf("the plan whose client left is %+v, %v", d, err)
	}
	if _, _, err := r.engine.Plan(ctx, Wish{Environment: "prod"}, by); !errors.Is(err, errLeft) || r.engine.known().Newest() != 2 {
		t.Errorf("a plan of one who has left before is answered with %v; the newest is %d", err, r.engine.known().Newest())
	}
}

// whileChanging is a store that has a graph put anew when a plan is stored, and keeps that from being stored until it is let.
type whileChanging struct {
	store.Store
	change      func()
	holds, lets chan struct{}
	once        *sync.Once
}

func (s whileChanging) Enqueue(tx store.Tx, done func(store.Revision, error)) {
	if ofPlans(tx) {
		s.once.Do(func() {
			go s.change()
			<-s.holds
			time.AfterFunc(50*time.Millisecond, func() { close(s.lets) }) // until whoever stores the plan waits
		})
	}
	if slices.ContainsFunc(tx.Put, func(p store.Put) bool { return p.Key.Kind == KindGraph }) {
		close(s.holds)
		<-s.lets
	}
	s.Store.Enqueue(tx, done)
}

// TestAPlanIsComparedBehindWhatIsBeingChanged: whether its graph is the one that there is, is known when a change of that is stored.
func TestAPlanIsComparedBehindWhatIsBeingChanged(t *testing.T) {
	r := web(t)
	changed := make(chan error, 1)
	r.engine.cfg.Store = whileChanging{r.store, func() {
		_, err := r.engine.PutGraph(r.Context(), "web", []course.File{{Path: "web.yaml", Text: strings.Replace(webGraph, "id: motd", "id: greeting", 1)}}, by)
		changed <- err
	}, make(chan struct{}), make(chan struct{}), &sync.Once{}}
	d := r.plan(Wish{Environment: "prod"})
	if err := <-changed; err != nil {
		t.Fatal(err)
	}
	tasks, err := r.engine.Tasks(t.Context(), d.ID)
	if err != nil || !slices.ContainsFunc(tasks, func(x course.Task) bool { return x.Task == "greeting" }) {
		t.Errorf("planned is %+v, %v", tasks, err)
	}
}

// TestDeploymentsWhoseNumbersBeginAlike: what is stored of the tenth is none of the first's.
func TestDeploymentsWhoseNumbersBeginAlike(t *testing.T) {
	r := newRig(t, 1)
	tx := store.Tx{}
	for _, id := range []int64{1, 2, 10, 11, 100} {
		for step := range int32(2) {
			x := &course.Record{Deployment: id, Step: step, State: course.Ready}
			tx.Put = append(tx.Put, put(KindRecord, x.Key(), x), put(KindPlan, chunkKey(id, int(step)), "piece"))
		}
	}
	if _, err := store.Commit(t.Context(), r.store, tx); err != nil {
		t.Fatal(err)
	}
	var got []string
	if err := r.engine.Plans.Records(t.Context(), 1, func(x *course.Record) { got = append(got, x.Key()) }); err != nil || !slices.Equal(got, []string{"1/0", "1/1"}) {
		t.Errorf("records of the first are %v, %v", got, err)
	}
	if err := r.engine.clearPlan(t.Context(), 1); err != nil || !slices.Equal(r.pieces(), []string{"10/0", "10/1", "100/0", "100/1", "11/0", "11/1", "2/0", "2/1"}) {
		t.Errorf("without the plan of the first there are %v, %v", r.pieces(), err)
	}
}
