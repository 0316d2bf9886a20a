package rollout

import (
	"context"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/agent"
	"github.com/drover-project/drover/internal/deploy/course"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/store"
	"github.com/drover-project/drover/internal/store/faultstore"
	"github.com/drover-project/drover/internal/testkit"
)

// TestNothingBeginsUponWhatIsBeingChanged begins a plan while a change of its graph is stored and not yet shown: whether it may begin is decided behind
// that change, so it is refused.
func TestNothingBeginsUponWhatIsBeingChanged(t *testing.T) {
	r := web(t)
	id := r.plan(Wish{Environment: "prod"}).ID
	gate := make(chan struct{})
	struck := r.store.Inject(faultstore.Fault{Do: faultstore.Hold, Gate: gate, When: func(tx store.Tx) bool {
		return slices.ContainsFunc(tx.Put, func(p store.Put) bool { return p.Key.Kind == KindGraph })
	}})
	put, begun := make(chan error, 1), make(chan error, 1)
	go func() {
		_, err := r.engine.PutGraph(r.Context(), "web", []course.File{{Path: "web.yaml", Text: webGraph}}, by)
		put <- err
	}()
	<-struck
	go func() {
		_, err := r.engine.Begin(r.Context(), id, by)
		begun <- err
	}()
	for busy := false; !busy; { // until the goroutine that drives deployments is at it, and waits
		select {
		case r.engine.acts <- func() {}:
		case <-time.After(50 * time.Millisecond):
			busy = true
		}
	}
	close(gate)
	if err := <-put; err != nil {
		t.Fatal(err)
	}
	r.refused(<-begun, fault.Conflict, "a task graph was changed")
}

// listing is a store that has something done when successes have been listed, once.
type listing struct {
	store.Store
	then *sync.Once
	does func()
}

func (s listing) List(ctx context.Context, kind store.Kind, opts store.Options) iter.Seq2[store.Object, error] {
	return func(yield func(store.Object, error) bool) {
		for o, err := range s.Store.List(ctx, kind, opts) {
			if !yield(o, err) {
				return
			}
		}
		if kind == KindSuccess {
			s.then.Do(s.does)
		}
	}
}

// TestAPlanIsOfTheMomentOfItsBasis has a deployment come to its end when the successes have been read of which another one is planned: the basis is that of
// before, so it is planned anew, of all that has succeeded.
func TestAPlanIsOfTheMomentOfItsBasis(t *testing.T) {
	r := web(t)
	gate := make(chan struct{})
	open := sync.OnceFunc(func() { close(gate) })
	defer open()
	r.simulate(func(_ context.Context, _ string, _ agent.Task) error {
		<-gate
		return nil
	})
	first := r.start(Wish{Environment: "prod"})
	r.engine.Reader.cfg.Store = listing{r.store, &sync.Once{}, func() {
		open()
		r.end(first)
	}}
	if d := r.plan(Wish{Environment: "prod"}); d.Runs != 4 || d.Basis.LatestEnded == 0 {
		t.Errorf("behind deployment %d the next one has %d tasks to run, of the basis %+v", first, d.Runs, d.Basis)
	}
}

// recording is a store before whose transactions with a task's failure somebody does something.
type recording struct {
	store.Store
	does func()
}

func (s recording) Enqueue(tx store.Tx, done func(store.Revision, error)) {
	if slices.ContainsFunc(tx.Put, func(p store.Put) bool {
		return p.Key.Kind == KindRecord && strings.Contains(string(p.Value), `"state":"error"`)
	}) {
		s.does()
	}
	s.Store.Enqueue(tx, done)
}

// TestATaskFindsItsDeploymentUnderWay has a node begin a task while the deployment is still being begun: there can be no job for another task, whose
// node has a role without a name, and that is not written down before.
func TestATaskFindsItsDeploymentUnderWay(t *testing.T) {
	r := newRig(t, 2)
	r.graph("g", "- {id: a, type: shell, version: 2.1.0, role: '*'}")
	r.environment("e", "nodes: {\"1\": {uid: \"1\", roles: [n]}, \"2\": {uid: \"2\", roles: [n, '']}}\nhosts: {\"1\": node1, \"2\": node2}", "g")
	began := make(chan struct{}, 1)
	r.simulate(func(context.Context, string, agent.Task) error {
		began <- struct{}{}
		return nil
	})
	r.engine.cfg.Store = recording{r.store, func() {
		select {
		case <-began:
		case <-time.After(testkit.Patience()):
			t.Error("the job that was taken does not begin")
		}
	}}
	id := r.start(Wish{Environment: "e"})
	r.end(id)
	if got := r.states(id); got != "1/a ready\n2/a error" {
		t.Errorf("got\n%s", got)
	}
}

// TestASuccessIsKeptWithItsRecord: that a task succeeded, and that the state of the deployment is the task's old state from then on, is one transaction:
// a controller that dies leaves both or none.
func TestASuccessIsKeptWithItsRecord(t *testing.T) {
	r := web(t)
	var kept []string
	r.store.Inject(faultstore.Fault{When: func(tx store.Tx) bool {
		var kinds []string
		for _, p := range tx.Put {
			if p.Key.Kind == KindRecord || p.Key.Kind == KindSuccess {
				kinds = append(kinds, string(p.Key.Kind))
			}
		}
		if slices.Sort(kinds); len(kinds) > 0 {
			kept = append(kept, strings.Join(kinds, " and "))
		}
		return false
	}})
	r.end(r.start(Wish{Environment: "prod"}))
	both := string(KindRecord) + " and " + string(KindSuccess)
	if len(kept) != 8 || slices.ContainsFunc(kept, func(kinds string) bool { return kinds != both }) {
		t.Errorf("of 8 tasks are kept %q", kept)
	}
}
