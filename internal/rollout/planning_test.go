package rollout

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

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
