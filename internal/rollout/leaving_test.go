package rollout

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/drover-project/drover/internal/agent"
	"github.com/drover-project/drover/internal/deploy/course"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/store"
	"github.com/drover-project/drover/internal/store/faultstore"
	"github.com/drover-project/drover/internal/testkit"
)

// ofDeployments chooses the transactions that change the status of a deployment.
func ofDeployments(tx store.Tx) bool {
	return slices.ContainsFunc(tx.Put, func(p store.Put) bool { return p.Key.Kind == KindDeployment })
}

// errLeft is what ends the context of a client that leaves.
var errLeft = errors.New("the client has left")

// leaving makes a request whose client leaves while the driving goroutine is busy with something else, so that the request has
// not been taken up.
func (r *rig) leaving(request func(ctx context.Context) error) {
	r.Helper()
	ctx, leave := context.WithCancelCause(r.Context())
	busy, free := make(chan struct{}), make(chan struct{})
	go func() {
		_ = r.engine.act(r.Context(), func() error { // it has nothing to fail with
			close(busy)
			<-free
			return nil
		})
	}()
	<-busy
	leave(errLeft)
	if err := request(ctx); !errors.Is(err, errLeft) {
		r.Errorf("a request that was not taken up is answered with %v", err)
	}
	close(free)
}

// leavingLate makes a request whose client leaves when what it asks for has been stored and nobody has been told.
func (r *rig) leavingLate(request func(ctx context.Context) error) {
	r.Helper()
	ctx, leave := context.WithCancelCause(r.Context())
	told := make(chan struct{})
	struck := r.store.Inject(faultstore.Fault{Do: faultstore.Hold, When: ofDeployments, Gate: told})
	answer := make(chan error, 1)
	go func() { answer <- request(ctx) }()
	<-struck
	leave(errLeft)
	if err := <-answer; !errors.Is(err, errLeft) {
		r.Errorf("a client that has left is answered with %v", err)
	}
	close(told)
}

// TestWhoLeavesLeavesNothingHalfDone has clients leave at the two moments that matter, before their request is taken up and while
// it is stored: then the deployment is as it was, or goes on as was asked, and never counts as running with nobody to drive it.
func TestWhoLeavesLeavesNothingHalfDone(t *testing.T) {
	r := web(t)
	begin := func(id int64) func(context.Context) error {
		return func(ctx context.Context) error {
			_, err := r.engine.Begin(ctx, id, by)
			return err
		}
	}
	first := r.plan(Wish{Environment: "prod"}).ID
	r.leaving(begin(first))
	if d, err := r.engine.Deployment(r.Context(), first); err != nil || d.Status != course.Planned {
		t.Fatalf("nobody began it, and it is %v, %v", d, err)
	}
	r.leavingLate(begin(first))
	if p := r.end(first); p.Status != course.Done || len(r.began(first)) != 8 {
		t.Fatalf("begun by one who left: %s, %s", p.Status, r.states(first))
	}

	reached, gate := make(chan struct{}, 1), make(chan struct{})
	r.simulate(func(_ context.Context, node string, _ agent.Task) error {
		if node == "node3" {
			reached <- struct{}{}
			<-gate
		}
		return nil
	})
	second := r.start(Wish{Environment: "prod", Force: true})
	<-reached
	stop := func(ctx context.Context) error {
		_, err := r.engine.Stop(ctx, second, by)
		return err
	}
	r.leaving(stop)
	if d, err := r.engine.Deployment(r.Context(), second); err != nil || d.Status != course.Running {
		t.Fatalf("nobody stopped it, and it is %v, %v", d, err)
	}
	r.leavingLate(stop)
	r.until(second, "stopping", func(p *course.Progress) bool { return p.Status == course.Stopping })
	close(gate)
	if p := r.end(second); p.Status != course.Halted {
		t.Fatalf("stopped by one who left: %s, %s", p.Status, p.Why)
	}

	r.simulate(nil)
	resume := func(ctx context.Context) error {
		_, err := r.engine.Resume(ctx, second, true, by)
		return err
	}
	r.leaving(resume)
	if d, err := r.engine.Deployment(r.Context(), second); err != nil || d.Status != course.Halted || d.Attempt != 1 {
		t.Fatalf("nobody resumed it, and it is %v, %v", d, err)
	}
	r.leavingLate(resume)
	again := func(p *course.Progress) bool { return p.Attempt == 2 && !p.Status.Active() }
	if p := r.until(second, "over again", again); p.Status != course.Done {
		t.Fatalf("resumed by one who left: %s, %s", p.Status, r.states(second))
	}
}

// TestWhoLeavesEndsTheWaitingNotTheDoing has a client leave before what it asked for has had its turn.
func TestWhoLeavesEndsTheWaitingNotTheDoing(t *testing.T) {
	ctx, leave := context.WithCancelCause(t.Context())
	leave(errLeft)
	e, done := &Engine{changing: make(baton, 1)}, make(chan error, 1)
	e.changing.Lock()
	if err := e.patiently(ctx, func(ctx context.Context) error { done <- ctx.Err(); return nil }); !errors.Is(err, errLeft) {
		t.Errorf("who has left is answered with %v", err)
	}
	e.changing.Unlock()
	if err := <-done; err != nil {
		t.Errorf("what was asked for has ended with its client: %v", err)
	}
}

// TestAnAttemptIsOfADeploymentAsItIs has a deployment run to its end while another begin of it was being made ready.
func TestAnAttemptIsOfADeploymentAsItIs(t *testing.T) {
	r := web(t)
	id := r.plan(Wish{Environment: "prod"}).ID
	known := r.engine.known().Deployment(id)
	old, err := r.engine.whole(t.Context(), known)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.engine.Begin(t.Context(), id, by); err != nil {
		t.Fatal(err)
	}
	r.end(id)
	_, err = r.engine.attempt(known, old, by, func(*course.Deployment, course.Basis) error { return nil })
	r.refused(err, fault.Conflict, "deployment 1 was changed at this moment")
}

// slowStates is a store that reads states when it is let.
type slowStates struct {
	store.Store
	asked chan struct{}
	let   chan struct{}
}

func (s slowStates) Get(ctx context.Context, key store.Key) (store.Object, error) {
	if key.Kind == KindPart {
		s.asked <- struct{}{}
		<-s.let
	}
	return s.Store.Get(ctx, key)
}

// TestAPlanHoldsUpNobody has others do what they like while plans are computed, and whoever waits for a turn leave. What is changed meanwhile is planned
// anew.
func TestAPlanHoldsUpNobody(t *testing.T) {
	r := web(t)
	slow := slowStates{r.store, make(chan struct{}), make(chan struct{})}
	r.engine.cfg.Store, r.engine.Reader.cfg.Store = slow, slow
	planned, made := make(chan error, mostComputing), make(chan int64, mostComputing)
	for range mostComputing {
		go func() {
			d, _, err := r.engine.Plan(t.Context(), Wish{Environment: "prod"}, by)
			if err == nil {
				made <- d.ID
			}
			planned <- err
		}()
		<-slow.asked
	}
	ctx, leave := context.WithCancelCause(t.Context())
	leave(errLeft)
	if _, _, err := r.engine.Plan(ctx, Wish{Environment: "prod"}, by); !errors.Is(err, errLeft) {
		t.Errorf("a plan too many is answered with %v", err)
	}
	r.graph("web", webGraph)
	r.environment("other", webEnvironment, "web")
	if len(r.engine.changing) != 0 {
		t.Error("who computes a plan holds what others need")
	}
	if len(r.engine.trying) != 0 {
		t.Error("who computes a plan holds up expressions")
	}
	go func() {
		for range slow.asked { // the rest of what the plans read
		}
	}()
	defer close(slow.asked)
	close(slow.let)
	for range mostComputing {
		if err := <-planned; err != nil {
			t.Fatal(err)
		}
	}
	id := <-made // which may be any: a number that was meant for a plan that had to be made anew is given to none
	if _, err := r.engine.Begin(t.Context(), id, by); err != nil {
		t.Errorf("what was planned anew cannot begin: %v", err)
	}
	r.end(id)
}

// TestExpressionsDoNotWaitForPlans has as many plans under way as may be.
func TestExpressionsDoNotWaitForPlans(t *testing.T) {
	r := web(t)
	for range mostComputing {
		if err := r.engine.planning.begin(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience())
	defer cancel()
	if _, err := r.engine.Eval(ctx, Question{Expression: "1 + 1", New: At{Environment: "prod"}, Node: "1"}); err != nil {
		t.Error(err)
	}
}

// TestAFilterOfNodesIsBounded plans by a graph whose filter would take all memory.
func TestAFilterOfNodesIsBounded(t *testing.T) {
	r := newRig(t, 1)
	r.graph("g", "node_filter: 'range(3000000000).toList().len() > 0'\ntasks:\n- {id: a, type: shell, version: 2.1.0, role: '*', parameters: {cmd: 'true'}}")
	r.environment("e", "hosts: {\"1\": node1}\nnodes: {\"1\": {uid: \"1\", roles: [n]}}", "g")
	_, _, err := r.engine.Plan(t.Context(), Wish{Environment: "e"}, by)
	r.refused(err, fault.Invalid, "node_filter of the graph, on node 1: Collection length exceeds 10000 elements")
	_, err = r.engine.PutGraph(r.Context(), "h", []course.File{{Path: "h.yaml", Text: "node_filter: '$.uid in ['\ntasks: []"}}, by)
	r.refused(err, fault.Invalid, "node_filter of the graph: h.yaml:1:")
}
