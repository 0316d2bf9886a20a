package rollout

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/drover-project/drover/internal/agent"
	"github.com/drover-project/drover/internal/deploy/course"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/store"
	"github.com/drover-project/drover/internal/store/faultstore"
)

// request is something that a client asks for of the environment prod and its only deployment.
type request struct {
	before  course.Status // the deployment, when it is asked for
	ask     func(context.Context, *Engine) error
	writes  func(store.Tx) bool // the transaction with which it is done
	results course.Status       // the deployment, in the end; empty for none that anybody can look at
}

// requests are those that begin, stop, resume and delete.
func requests() map[string]request {
	of := func(do func(*Engine, context.Context, int64, By) (*course.Deployment, error)) func(context.Context, *Engine) error {
		return func(ctx context.Context, e *Engine) error {
			_, err := do(e, ctx, 1, by)
			return err
		}
	}
	resume := func(retry bool) func(context.Context, *Engine) error {
		return func(ctx context.Context, e *Engine) error {
			_, err := e.Resume(ctx, 1, retry, by)
			return err
		}
	}
	remove := func(ctx context.Context, e *Engine) error { return e.DeleteEnvironment(ctx, "prod", by) }
	removes := func(kind store.Kind) func(store.Tx) bool {
		return func(tx store.Tx) bool {
			return slices.ContainsFunc(tx.Delete, func(k store.Key) bool { return k.Kind == kind })
		}
	}
	return map[string]request{
		"begin":                         {course.Planned, of((*Engine).Begin), ofDeployments, course.Done},
		"stop":                          {course.Running, of((*Engine).Stop), ofDeployments, course.Halted},
		"resume":                        {course.Halted, resume(false), ofDeployments, course.Done},
		"retry":                         {course.Halted, resume(true), ofDeployments, course.Done},
		"delete":                        {course.Halted, remove, removes(KindEnvironment), course.Halted},
		"delete, with what succeeded":   {course.Halted, remove, removes(KindSuccess), course.Halted},
		"delete one that never has run": {course.Planned, remove, removes(KindEnvironment), course.Planned},
	}
}

// at is a controller with a deployment in a status. What it has begun goes on when it is let.
func at(t *testing.T, status course.Status) (r *rig, let func()) {
	t.Helper()
	r = web(t)
	reached, gate := make(chan struct{}, 2), make(chan struct{})
	r.simulate(func(_ context.Context, node string, _ agent.Task) error {
		if node == "node3" {
			reached <- struct{}{}
			<-gate
		}
		return nil
	})
	let = sync.OnceFunc(func() {
		r.simulate(nil)
		close(gate)
	})
	t.Cleanup(let)
	d := r.plan(Wish{Environment: "prod"})
	if status == course.Planned {
		return r, let
	}
	if _, err := r.engine.Begin(t.Context(), d.ID, by); err != nil {
		t.Fatal(err)
	}
	<-reached
	r.until(d.ID, "done elsewhere", func(p *course.Progress) bool { return p.States[course.Ready] >= 3 })
	if status == course.Running {
		return r, let
	}
	if _, err := r.engine.Stop(t.Context(), d.ID, by); err != nil {
		t.Fatal(err)
	}
	let()
	if p := r.end(d.ID); p.Status != course.Halted {
		t.Fatalf("it is %s: %s", p.Status, p.Why)
	}
	return r, let
}

// comes waits until the deployment is as it is to be in the end, and its environment there or not; nothing is begun besides.
func (r *rig) comes(to course.Status, environment bool) {
	r.Helper()
	if to.Active() { // it goes on as before
		to = course.Done
	}
	if d := r.engine.known().Deployment(1); d.Status.Active() {
		r.end(1)
	}
	n := r.underWay()
	if d := r.engine.known().Deployment(1); d.Status != to || n > 0 || (r.engine.known().Environment("prod") != nil) != environment {
		r.Errorf("it is %s (%s), not %s, and %d are under way; the environment is %v", d.Status, d.Why, to, n, r.engine.known().Environment("prod"))
	}
}

// underWay counts the deployments that are driven, as whoever drives them knows it: one that has just ended is shown before it is let go.
func (r *rig) underWay() (n int) {
	r.Helper()
	if err := r.engine.act(r.Context(), func() error { n = len(r.engine.runs); return nil }); err != nil {
		r.Fatal(err)
	}
	return n
}

// TestWhatIsToldIsWhatIs has the store refuse each request, the controller die before it is stored and behind that, and the client leave meanwhile. What was
// refused is not done, now and under the next controller, and can be asked for again; what is stored is done to its end.
func TestWhatIsToldIsWhatIs(t *testing.T) {
	for name, q := range requests() {
		deletes := q.before == q.results
		t.Run(name+", refused", func(t *testing.T) {
			r, let := at(t, q.before)
			before := r.shown()
			r.store.Inject(faultstore.Fault{Do: faultstore.FailBefore, Err: fault.New(fault.TooLarge, "there is no room"), When: q.writes})
			if err := q.ask(t.Context(), r.engine); !fault.Is(err, fault.TooLarge) {
				t.Fatalf("it is answered with %v", err)
			}
			if after := r.shown(); after != before {
				t.Errorf("refused, and there is\n%s\nfor\n%s", after, before)
			}
			if err := q.ask(t.Context(), r.engine); err != nil {
				t.Fatalf("asked for again it is answered with %v", err)
			}
			let()
			r.comes(q.results, !deletes)
		})
		t.Run(name+", refused, and let be", func(t *testing.T) {
			r, let := at(t, q.before)
			r.store.Inject(faultstore.Fault{Do: faultstore.FailBefore, Err: fault.New(fault.TooLarge, "there is no room"), When: q.writes})
			if err := q.ask(t.Context(), r.engine); !fault.Is(err, fault.TooLarge) {
				t.Fatalf("it is answered with %v", err)
			}
			let()
			r.comes(q.before, true)
			r.another()
			r.comes(q.before, true)
		})
		for when, effect := range map[string]faultstore.Effect{"before": faultstore.CrashBefore, "behind": faultstore.CrashAfter} {
			t.Run(name+", the controller dies "+when, func(t *testing.T) {
				r, let := at(t, q.before)
				before := r.shown()
				dead := r.store.Inject(faultstore.Fault{Do: effect, Err: fault.New(fault.Fenced, "another leads"), When: q.writes})
				if err := q.ask(t.Context(), r.engine); !fault.Is(err, fault.Fenced) {
					t.Fatalf("it is answered with %v", err)
				}
				<-dead
				if after := r.shown(); after != before {
					t.Errorf("of a controller that died there is\n%s\nfor\n%s", after, before)
				}
				let()
				r.another()
				switch {
				case effect == faultstore.CrashBefore:
					r.comes(q.before, true)
				case name == "delete, with what succeeded": // of which some is forgotten; the environment goes last
					r.comes(q.results, true)
				default:
					r.comes(q.results, !deletes)
				}
			})
		}
		t.Run(name+", the client leaves", func(t *testing.T) {
			r, let := at(t, q.before)
			gate := make(chan struct{})
			struck := r.store.Inject(faultstore.Fault{Do: faultstore.Hold, When: q.writes, Gate: gate})
			ctx, leave := context.WithCancelCause(t.Context())
			answer := make(chan error, 1)
			go func() { answer <- q.ask(ctx, r.engine) }()
			<-struck
			leave(errLeft)
			if err := <-answer; !errors.Is(err, errLeft) {
				t.Errorf("who has left is answered with %v", err)
			}
			close(gate)
			if err := r.engine.patiently(t.Context(), func(context.Context) error { return nil }); err != nil { // behind it
				t.Fatal(err)
			}
			if err := r.engine.act(t.Context(), func() error { return nil }); err != nil {
				t.Fatal(err)
			}
			let()
			r.comes(q.results, !deletes)
		})
	}
}

// TestAnAttemptBeginsWithoutWhatWasCancelled: which tasks were cancelled stands in the deployment that is over, and not in one that has begun again.
func TestAnAttemptBeginsWithoutWhatWasCancelled(t *testing.T) {
	r, _ := at(t, course.Halted)
	var written []*course.Deployment
	r.store.Inject(faultstore.Fault{When: func(tx store.Tx) bool {
		for _, p := range tx.Put {
			if x := (&course.Deployment{}); p.Key.Kind == KindDeployment && json.Unmarshal(p.Value, x) == nil {
				written = append(written, x)
			}
		}
		return false
	}})
	before, err := read[course.Deployment](t.Context(), r.engine.Reader, KindDeployment, "1")
	if err != nil || len(before.Cancelled) == 0 {
		t.Fatalf("cancelled were %v, %v", before.Cancelled, err)
	}
	if _, err := r.engine.Resume(t.Context(), 1, false, by); err != nil {
		t.Fatal(err)
	}
	r.end(1)
	if len(written) != 2 || written[0].Status != course.Running || len(written[0].Cancelled) > 0 || written[0].Ended != 0 || written[0].Counts != nil {
		t.Errorf("written were %+v", written)
	}
}
