package rollout

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/drover-project/drover/internal/agent"
	"github.com/drover-project/drover/internal/deploy/course"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/store"
	"github.com/drover-project/drover/internal/store/faultstore"
)

// TestLostAnswersOfChangesAreLookedUp has the store lose its answer to each change of environments, graphs and deployments, made and not made: the
// change is done, and told of, once, and whoever leads next shows what this controller showed.
func TestLostAnswersOfChangesAreLookedUp(t *testing.T) {
	for name, effect := range map[string]faultstore.Effect{"made": faultstore.FailAfter, "not made": faultstore.FailBefore} {
		t.Run(name, func(t *testing.T) {
			r := web(t)
			losing := func(what string, do func() error) {
				t.Helper()
				struck, before := r.store.Inject(faultstore.Fault{Do: effect, When: func(tx store.Tx) bool { return ofKinds(tx) }}), r.events()
				if err := do(); err != nil {
					t.Fatalf("%s: %v", what, err)
				}
				<-struck
				want := before + 1
				if what == "planning" || what == "ending" { // of which nobody is told
					want = before
				}
				if told := r.events(); told != want {
					t.Errorf("%s: there are %d events, and were %d", what, told, before)
				}
			}
			losing("putting a graph", func() error {
				_, err := r.engine.PutGraph(r.Context(), "web", []course.File{{Path: "web.yaml", Text: webGraph}}, by)
				return err
			})
			losing("putting an environment", func() error {
				_, err := r.engine.PutEnvironment(r.Context(), "prod", course.File{Path: "prod.yaml", Text: webEnvironment}, []string{"web"}, by)
				return err
			})
			var id int64
			losing("planning", func() error {
				d, _, err := r.engine.Plan(t.Context(), Wish{Environment: "prod"}, by)
				if err == nil {
					id = d.ID
				}
				return err
			})
			reached, gate := make(chan struct{}, 1), make(chan struct{})
			r.simulate(func(_ context.Context, node string, _ agent.Task) error {
				if node == "node3" {
					reached <- struct{}{}
					<-gate
				}
				return nil
			})
			losing("beginning", func() error {
				_, err := r.engine.Begin(t.Context(), id, by)
				return err
			})
			<-reached
			losing("stopping", func() error {
				_, err := r.engine.Stop(t.Context(), id, by)
				return err
			})
			losing("ending", func() error {
				close(gate)
				if p := r.end(id); p.Status != course.Halted {
					t.Errorf("it is %s: %s", p.Status, p.Why)
				}
				return nil
			})
			if began := r.began(id); len(began) > 8 {
				t.Errorf("tasks were begun twice: %v", began)
			}
			shown := r.shown()
			r.another()
			if again := r.shown(); again != shown {
				t.Errorf("this controller showed\n%s\nand the next one shows\n%s", shown, again)
			}
			losing("deleting", func() error { return r.engine.DeleteEnvironment(t.Context(), "prod", by) })
			shown = r.shown()
			r.another()
			if again := r.shown(); again != shown {
				t.Errorf("behind the end of the environment this controller showed\n%s\nand the next one shows\n%s", shown, again)
			}
		})
	}
}

// TestNothingIsStoredInAnothersTerm: by the controller that led before, and does not know yet that another leads.
func TestNothingIsStoredInAnothersTerm(t *testing.T) {
	r := web(t)
	r.close()
	lease, err := r.store.AcquireLease(t.Context(), "leader", "me", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	r.epoch = lease.Epoch
	r.open(0)
	id := r.plan(Wish{Environment: "prod"}).ID
	if err := r.store.ReleaseLease(t.Context(), lease); err != nil {
		t.Fatal(err)
	}
	shown := r.shown()
	for what, change := range map[string]func() error{
		"a graph": func() error {
			_, err := r.engine.PutGraph(t.Context(), "web", []course.File{{Path: "web.yaml", Text: webGraph}}, by)
			return err
		},
		"an environment": func() error {
			_, err := r.engine.PutEnvironment(t.Context(), "prod", course.File{Path: "prod.yaml", Text: webEnvironment}, nil, by)
			return err
		},
		"an environment's end": func() error { return r.engine.DeleteEnvironment(t.Context(), "prod", by) },
		"a plan": func() error {
			_, _, err := r.engine.Plan(t.Context(), Wish{Environment: "prod"}, by)
			return err
		},
		"a beginning": func() error {
			_, err := r.engine.Begin(t.Context(), id, by)
			return err
		},
	} {
		if err := change(); !fault.Is(err, fault.Fenced) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if now := r.shown(); now != shown {
		t.Errorf("it shows\n%s\nand showed\n%s", now, shown)
	}
}

// ofKinds tells whether a transaction is one of the engine's own.
func ofKinds(tx store.Tx) bool {
	for _, p := range tx.Put {
		switch p.Key.Kind {
		case KindEnvironment, KindGraph, KindDeployment:
			return true
		}
	}
	for _, k := range tx.Delete {
		if k.Kind == KindEnvironment {
			return true
		}
	}
	return false
}

// events is how many are stored of what somebody did over the engine itself.
func (r *rig) events() (n int) {
	r.Helper()
	for event, err := range r.queue.Stored.Events(r.Context()) {
		if err != nil {
			r.Fatal(err)
		}
		if event.Surface == by.Account.Surface { // and not the controller, which cancels jobs
			n++
		}
	}
	return n
}

// shown is what the picture has of environments, graphs and deployments, as a text.
func (r *rig) shown() string {
	r.Helper()
	text := ""
	now := r.engine.known()
	for d := range now.Deployments() {
		text += string(put(KindDeployment, d.Key(), d).Value) + "\n"
	}
	for g := range now.Graphs() {
		text += string(put(KindGraph, g.Name, g).Value) + "\n"
	}
	for x := range now.Environments() {
		text += string(put(KindEnvironment, x.Name, x).Value) + "\n"
	}
	return text
}

// TestClientsWaitForAStoreWithABound has a store tell nothing for long: clients hear that, in turn, and what they asked for is done when it
// tells again, one after the other.
func TestClientsWaitForAStoreWithABound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &Engine{changing: make(baton, 1)}
		silent := make(chan struct{})
		var order []string
		asks := func(what string) error {
			return e.patiently(t.Context(), func(context.Context) error {
				<-silent
				order = append(order, what)
				return nil
			})
		}
		for _, what := range []string{"first", "second"} {
			if err := asks(what); !fault.Is(err, fault.Unavailable) {
				t.Errorf("the %s is answered with %v", what, err)
			}
		}
		close(silent)
		synctest.Wait()
		if len(order) != 2 || order[0] != "first" {
			t.Errorf("done were %v", order)
		}
		if err := asks("third"); err != nil {
			t.Error(err)
		}
	})
}
