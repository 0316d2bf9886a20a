package rollout

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/agent"
	"github.com/drover-project/drover/internal/deploy/course"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/state"
	"github.com/drover-project/drover/internal/store"
	"github.com/drover-project/drover/internal/store/faultstore"
)

// TestGraphsOfTypes deploys by the graphs of one type of an environment.
func TestGraphsOfTypes(t *testing.T) {
	r := newRig(t, 1)
	for name, task := range map[string]string{"web": "serve", "disks": "partition", "check": "ping"} {
		r.graph(name, "- {id: "+task+", type: shell, version: 2.1.0, role: '*', reexecute_on: [upgrade], condition: {yaql_exp: changed($.uid)}}")
	}
	r.environment("e", "nodes: {\"1\": {uid: \"1\", roles: [n]}}\nhosts: {\"1\": node1}", "web", "provision=disks", "provision=check", "default=check")
	for _, c := range []struct {
		wish Wish
		want []string
	}{
		{Wish{}, []string{"1/ping", "1/serve"}},
		{Wish{Type: "provision"}, []string{"1/partition"}}, // the check has succeeded already
		{Wish{Type: "default"}, nil},
		{Wish{Type: "default", Events: []string{"upgrade"}}, []string{"1/ping", "1/serve"}},
		{Wish{Graphs: []string{"disks"}, Force: true}, []string{"1/partition"}},
	} {
		c.wish.Environment = "e"
		id := r.start(c.wish)
		if p := r.end(id); p.Status != course.Done {
			t.Fatalf("%+v: %s", c.wish, p.Why)
		}
		began := r.began(id)
		slices.Sort(began)
		if !slices.Equal(began, c.want) {
			t.Errorf("%+v: %v began, want %v", c.wish, began, c.want)
		}
	}
	_, _, err := r.engine.Plan(t.Context(), Wish{Environment: "e", Type: "deletion"}, by)
	r.refused(err, fault.Invalid, "the environment e has no task graph of the type deletion")
	r.refused(r.engine.DeleteGraph(r.Context(), "disks", by), fault.WrongState, "the environment e uses the task graph disks")
	for _, graphs := range [][]string{{"provision=missing"}, {"=web"}, {"a b=web"}} {
		if _, err := r.engine.PutEnvironment(r.Context(), "f", course.File{Path: "f.yaml", Text: "nodes: {}"}, graphs, by); err == nil {
			t.Errorf("an environment with the graphs %v was taken", graphs)
		}
	}
}

// TestAHostThatIsNotThere has hosts name a node that the cluster lacks, which is warned of and no plan is made with; and one that
// leaves the cluster after the plan was made, whose task fails while the others run.
func TestAHostThatIsNotThere(t *testing.T) {
	r := newRig(t, 1)
	r.graph("g", "- {id: a, type: shell, version: 2.1.0, role: '*'}\n- {id: b, type: shell, version: 2.1.0, role: '*', requires: [a]}")
	const env = "nodes: {\"1\": {uid: \"1\", roles: [n]}, \"2\": {uid: \"2\", roles: [n]}}\nhosts: {\"1\": node1, \"2\": node9}"
	kept, err := r.engine.PutEnvironment(r.Context(), "e", course.File{Path: "e.yaml", Text: env}, []string{"g"}, by)
	if want := "hosts names node9 for node 2, which is no node of the cluster; tasks cannot run on it"; err != nil || !slices.Equal(kept.Warnings, []string{want}) {
		t.Errorf("warned of is %v (%v)", kept, err)
	}
	_, _, err = r.engine.Plan(t.Context(), Wish{Environment: "e"}, by)
	r.refused(err, fault.Invalid, "task a is to run on node 2, for which hosts names node9, which is no node of the cluster")
	r.environment("e", strings.Replace(env, "node9", "node1", 1), "g")
	id := r.plan(Wish{Environment: "e"}).ID
	d, err := r.engine.Deployment(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	d.Nodes[1].Host = "node9"
	if _, err := store.Commit(t.Context(), r.store, store.Tx{Put: []store.Put{put(KindDeployment, d.Key(), d)}}); err != nil {
		t.Fatal(err)
	}
	if _, err := r.engine.Begin(t.Context(), id, by); err != nil {
		t.Fatal(err)
	}
	p := r.end(id)
	if want := "1/a ready\n1/b ready\n2/a error\n2/b blocked"; p.Status != course.Broken || r.states(id) != want {
		t.Fatalf("%s:\n%s\nwant\n%s", p.Status, r.states(id), want)
	}
	if len(p.Unsuccessful) != 1 || !strings.Contains(p.Unsuccessful[0].Error, "node9") {
		t.Errorf("told is %+v", p.Unsuccessful)
	}
}

// TestWhatMovedOnIsTold looks at what is said of a deployment that may go on when its graph or its environment has changed.
func TestWhatMovedOnIsTold(t *testing.T) {
	r := web(t)
	r.simulate(func(_ context.Context, node string, _ agent.Task) error {
		if node == "node3" {
			return fault.New(fault.Failed, "the disk is full")
		}
		return nil
	})
	planned := r.plan(Wish{Environment: "prod"}).ID
	before := r.start(Wish{Environment: "prod"})
	r.end(before)
	id := r.start(Wish{Environment: "prod"})
	says := func(id int64, want string) {
		t.Helper()
		p, err := r.engine.Progress(t.Context(), id)
		if err != nil || p.Moved != want {
			t.Errorf("of deployment %d it is said that %q (%v), want %q", id, p.Moved, err, want)
		}
	}
	r.end(id)
	says(id, "")
	says(planned, "deployment 3 ran since")
	says(before, "deployment 3 ran since")
	r.graph("web", webGraph)
	says(id, "a task graph was changed")
	r.environment("prod", webEnvironment)
	says(id, "the environment is at generation 2, not 1")
	r.simulate(nil)
	if _, err := r.engine.Resume(t.Context(), id, true, by); err != nil {
		t.Fatal(err)
	}
	r.end(id)
	says(id, "") // it cannot go on any more
}

// TestAnEnvironmentIsRemovedInPortions removes an environment in which very many tasks have succeeded, at first from a store that
// takes no more in the midst of it. What it leaves is no old state of the next environment of that name.
func TestAnEnvironmentIsRemovedInPortions(t *testing.T) {
	r := web(t)
	r.end(r.start(Wish{Environment: "prod"}))
	const many = 2*deletedAtOnce + 100
	tx := store.Tx{}
	for i := range many {
		s := course.Success{Environment: "prod", Node: "1", Task: fmt.Sprint("more", i), Deployment: 1}
		tx.Put = append(tx.Put, put(KindSuccess, s.Key(), s))
	}
	if err := r.engine.commit(tx, &state.Change{}); err != nil {
		t.Fatal(err)
	}
	r.another()
	largest := 0
	ofSuccesses := func(tx store.Tx) bool {
		n := 0
		for _, k := range tx.Delete {
			if k.Kind == KindSuccess {
				n++
			}
		}
		largest = max(largest, n)
		return n > 0
	}
	struck := r.store.Inject(faultstore.Fault{Do: faultstore.FailBefore, When: ofSuccesses, Skip: 1, Err: fault.New(fault.TooLarge, "no more of these")})
	r.refused(r.engine.DeleteEnvironment(t.Context(), "prod", by), fault.TooLarge, "")
	select {
	case <-struck:
	default:
		t.Fatal("successes were not deleted in portions")
	}
	if _, err := r.engine.environment(t.Context(), "prod"); err != nil {
		t.Errorf("the environment whose removal failed: %v", err)
	}
	r.store.Inject(faultstore.Fault{Do: faultstore.FailBefore, When: ofSuccesses, Skip: 100})
	if err := r.engine.DeleteEnvironment(t.Context(), "prod", by); err != nil {
		t.Fatal(err)
	}
	if largest == 0 || largest > deletedAtOnce {
		t.Errorf("%d successes were deleted at once", largest)
	}
	r.another()
	r.environment("prod", webEnvironment, "web")
	if d := r.plan(Wish{Environment: "prod"}); d.Runs != 8 {
		t.Errorf("in a new environment of the name %d of 8 tasks run", d.Runs)
	}
}
