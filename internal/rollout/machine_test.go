package rollout

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/agent"
	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/deploy/course"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/store"
	"github.com/drover-project/drover/internal/store/faultstore"
)

// machines is an environment of two nodes on the first two of three hosts, deployed.
func machines(t *testing.T) *rig {
	t.Helper()
	r := newRig(t, 3)
	r.graph("g", "- {id: a, type: shell, version: 2.1.0, role: '*', condition: {yaql_exp: changed($.v)}}")
	r.hosts("node1", "node2")
	r.end(r.start(Wish{Environment: "e"}))
	return r
}

// hosts puts the environment with its nodes on these hosts.
func (r *rig) hosts(hosts ...string) {
	r.Helper()
	nodes, on := []string{}, []string{}
	for i, host := range hosts {
		nodes = append(nodes, fmt.Sprintf(`"%d": {"uid": "%d", "roles": ["n"]}`, i+1, i+1))
		on = append(on, fmt.Sprintf(`"%d": %q`, i+1, host))
	}
	r.environment("e", fmt.Sprintf(`{"common": {"v": 1}, "nodes": {%s}, "hosts": {%s}}`, strings.Join(nodes, ", "), strings.Join(on, ", ")), "g")
}

// alter changes a node of the cluster.
func (r *rig) alter(name string, change func(*cluster.Node)) {
	r.Helper()
	err := r.keeper.Update(r.Context(), func(snap *cluster.Snapshot) ([]cluster.Change, error) {
		n, err := snap.FindNode(name)
		if err != nil {
			return nil, err
		}
		next := n.Clone()
		change(next)
		out := []cluster.Change{cluster.Put(next)}
		if next.UUID != n.UUID {
			out = append([]cluster.Change{cluster.Delete(cluster.KindNode, n.UUID)}, out...)
		}
		return out, nil
	})
	if err != nil {
		r.Fatal(err)
	}
}

// running are the tasks of a plan that would run, as "node/task".
func running(p *Preview) string {
	var runs []string
	for _, x := range p.Tasks {
		if x.State != course.Skipped {
			runs = append(runs, x.Node+"/"+x.Task)
		}
	}
	return strings.Join(runs, " ")
}

// joined is an agent that has joined with a key.
func joined(key string) func(*cluster.Node) {
	return func(n *cluster.Node) {
		n.Agent = &cluster.NodeAgent{Token: &cluster.JoinToken{Hash: "hash", Key: key}, Serial: "01"}
	}
}

// TestWhatIsDeployedBelongsToMachines: a node that is another machine than the one that was deployed runs everything, and that is told; one that is the
// same machine does not.
func TestWhatIsDeployedBelongsToMachines(t *testing.T) {
	const second = "node 2 is another machine than the one that was deployed; nothing counts as done there"
	for _, c := range []struct {
		name   string
		change func(r *rig)
		runs   string
		warns  []string
	}{
		{"nothing has changed", func(*rig) {}, "", nil},
		{"another host", func(r *rig) { r.hosts("node1", "node3") }, "2/a", []string{second}},
		{"moved there and back", func(r *rig) { r.hosts("node1", "node3"); r.hosts("node1", "node2") }, "", nil},
		{"out of the environment and back", func(r *rig) { r.hosts("node1"); r.hosts("node1", "node2") }, "2/a", nil},
		{"taken out and back", func(r *rig) {
			if err := r.engine.DeleteNode(r.Context(), "e", "2", by); err != nil {
				r.Fatal(err)
			}
			r.hosts("node1", "node2")
		}, "2/a", nil},
		{"the host left the cluster and came again", func(r *rig) {
			r.alter("node2", func(n *cluster.Node) { n.UUID = "00000000-0000-4000-8000-00000000aaaa" })
		}, "2/a", []string{second}},
		{"its agent joined", func(r *rig) { r.alter("node2", joined("key")) }, "", nil}, // nothing is known of before
		{"its agent joined with another key", func(r *rig) {
			r.alter("node2", joined("key"))
			r.end(r.start(Wish{Environment: "e", Force: true}))
			r.alter("node2", joined("")) // a token that nobody has used yet
			if d := r.plan(Wish{Environment: "e"}); d.Runs != 0 {
				r.Errorf("a new token has %d tasks run", d.Runs)
			}
			r.alter("node2", joined("other"))
		}, "2/a", []string{second}},
		{"successes of an earlier version", func(r *rig) { r.withoutMachines() }, "", nil},
		{"successes of an earlier version, another host", func(r *rig) { r.withoutMachines(); r.hosts("node3", "node2") }, "1/a",
			[]string{strings.Replace(second, "node 2", "node 1", 1)}},
		{"forgotten", func(r *rig) {
			if x, err := r.engine.Forget(r.Context(), "e", "2", by); err != nil || x.Tasks != 1 {
				r.Errorf("forgotten is %+v (%v)", x, err)
			}
		}, "2/a", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := machines(t)
			c.change(r)
			shown, err := r.preview(Wish{Environment: "e"})
			if err != nil {
				t.Fatal(err)
			}
			if got := running(shown); got != c.runs || !slices.Equal(shown.Warnings, append([]string{}, c.warns...)) {
				t.Errorf("%q runs, with %q; want %q with %q", got, shown.Warnings, c.runs, c.warns)
			}
			r.end(r.start(Wish{Environment: "e"}))
			if d := r.plan(Wish{Environment: "e"}); d.Runs != 0 {
				t.Errorf("when it was deployed %d tasks run again", d.Runs)
			}
		})
	}
}

// TestANodeThatLeftWhileItWasDeployed: what succeeds on a node that is none of the environment any more is not what a later node of its UID has.
func TestANodeThatLeftWhileItWasDeployed(t *testing.T) {
	for what, leave := range map[string]func(*rig) error{
		"taken out": func(r *rig) error { return r.engine.DeleteNode(r.Context(), "e", "2", by) },
		"put without it": func(r *rig) error {
			r.hosts("node1")
			return nil
		},
	} {
		t.Run(what, func(t *testing.T) {
			r := machines(t)
			reached, gate := make(chan struct{}), make(chan struct{})
			r.simulate(func(_ context.Context, node string, _ agent.Task) error {
				if node == "node2" {
					close(reached)
					<-gate
				}
				return nil
			})
			id := r.start(Wish{Environment: "e", Force: true})
			<-reached
			if err := leave(r); err != nil {
				t.Fatal(err)
			}
			close(gate)
			if p := r.end(id); p.Status != course.Done {
				t.Fatalf("it is %s: %s", p.Status, p.Why)
			}
			r.simulate(nil)
			r.hosts("node1", "node2")
			if shown, err := r.preview(Wish{Environment: "e"}); err != nil || running(shown) != "2/a" {
				t.Errorf("%q runs (%v)", running(shown), err)
			}
		})
	}
}

// TestANodeLeavesWithItsSuccesses: or stays, where one of the two cannot be stored. What comes under its UID later is new.
func TestANodeLeavesWithItsSuccesses(t *testing.T) {
	without := course.File{Path: "e.yaml", Text: `{"common": {"v": 1}, "nodes": {"1": {"uid": "1", "roles": ["n"]}}, "hosts": {"1": "node1"}}`}
	for what, leave := range map[string]func(*rig) error{
		"taken out": func(r *rig) error { return r.engine.DeleteNode(r.Context(), "e", "2", by) },
		"put without it": func(r *rig) error {
			_, err := r.engine.PutEnvironment(r.Context(), "e", without, []string{"g"}, by)
			return err
		},
	} {
		t.Run(what, func(t *testing.T) {
			r := machines(t)
			for _, struck := range []func(store.Tx) bool{
				func(tx store.Tx) bool { return deletes(tx, KindSuccess) },
				func(tx store.Tx) bool {
					return slices.ContainsFunc(tx.Put, func(p store.Put) bool { return p.Key.Kind == KindEnvironment })
				},
			} {
				r.store.Inject(faultstore.Fault{Do: faultstore.FailBefore, When: struck, Err: fault.New(fault.TooLarge, "no room")})
				r.refused(leave(r), fault.TooLarge, "no room")
				if r.engine.known().Environment("e").Node("2") == nil {
					t.Error("the node has left, and who had it leave is told that it has not")
				}
			}
			if err := leave(r); err != nil {
				t.Fatal(err)
			}
			r.hosts("node1", "node2")
			if shown, err := r.preview(Wish{Environment: "e"}); err != nil || running(shown) != "2/a" {
				t.Errorf("%q runs (%v)", running(shown), err)
			}
		})
	}
}

// TestWhatSucceedsOnTheMasterCounts: it is a node of every environment, also where the file tells nothing of it.
func TestWhatSucceedsOnTheMasterCounts(t *testing.T) {
	r := newRig(t, 1)
	r.graph("g", "- {id: a, type: shell, version: 2.1.0, role: master, condition: {yaql_exp: changed($.v)}}")
	r.environment("e", "common: {v: 1}\nhosts: {\"1\": node1}\nnodes: {\"1\": {uid: \"1\", roles: [n]}}", "g")
	for _, runs := range []int{1, 0} {
		d := r.plan(Wish{Environment: "e"})
		if d.Runs != runs {
			t.Fatalf("%d tasks run, not %d", d.Runs, runs)
		}
		if _, err := r.engine.Begin(t.Context(), d.ID, by); err != nil {
			t.Fatal(err)
		}
		if p := r.end(d.ID); p.Status != course.Done {
			t.Fatalf("it is %s: %s", p.Status, p.Why)
		}
	}
}

// TestAPlanIsForItsMachines: a plan is refused when a node has come to be another machine since, and so is to go on with what was stopped.
func TestAPlanIsForItsMachines(t *testing.T) {
	const refusal = "node 2 is another machine than the one that deployment"
	for _, c := range []struct {
		name    string
		change  func(*cluster.Node)
		refused bool
	}{
		{"nothing has changed", func(*cluster.Node) {}, false},
		{"its agent joined", joined("key"), false},
		{"the host left the cluster and came again", func(n *cluster.Node) { n.UUID = "00000000-0000-4000-8000-00000000aaaa" }, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := machines(t)
			planned := r.plan(Wish{Environment: "e", Force: true})
			r.alter("node2", c.change)
			_, err := r.engine.Begin(t.Context(), planned.ID, by)
			if c.refused {
				r.refused(err, fault.Conflict, refusal)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			r.end(planned.ID)
		})
	}
	t.Run("with another key", func(t *testing.T) {
		r := machines(t)
		r.alter("node2", joined("key"))
		planned := r.plan(Wish{Environment: "e", Force: true})
		r.alter("node2", joined("other"))
		_, err := r.engine.Begin(t.Context(), planned.ID, by)
		r.refused(err, fault.Conflict, refusal)
	})
	t.Run("what failed goes on", func(t *testing.T) {
		r := machines(t)
		r.simulate(func(_ context.Context, node string, _ agent.Task) error {
			if node == "node2" {
				return fault.New(fault.Failed, "the disk is full")
			}
			return nil
		})
		id := r.start(Wish{Environment: "e", Force: true})
		if p := r.end(id); p.Status != course.Broken {
			t.Fatalf("it is %s", p.Status)
		}
		if _, err := r.engine.Resume(t.Context(), id, true, by); err != nil {
			t.Fatal(err)
		}
		r.end(id)
		r.alter("node2", func(n *cluster.Node) { n.UUID = "00000000-0000-4000-8000-00000000aaaa" })
		_, err := r.engine.Resume(t.Context(), id, true, by)
		r.refused(err, fault.Conflict, refusal)
	})
}

// withoutMachines has all successes be as earlier versions kept them.
func (r *rig) withoutMachines() {
	r.Helper()
	tx := store.Tx{}
	for o, err := range r.store.List(r.Context(), KindSuccess, store.Options{}) {
		var s map[string]any
		if err != nil || json.Unmarshal(o.Value, &s) != nil || s["machine"] == nil {
			r.Fatalf("a success is %s (%v)", o.Value, err)
		}
		delete(s, "machine")
		tx.Put = append(tx.Put, put(KindSuccess, o.ID, s))
	}
	if _, err := store.Commit(r.Context(), r.store, tx); err != nil {
		r.Fatal(err)
	}
}

// TestForget: plans of before are refused, what is not there cannot be forgotten, and differences tell of hosts.
func TestForget(t *testing.T) {
	r := machines(t)
	d := r.plan(Wish{Environment: "e"})
	if _, err := r.engine.Forget(t.Context(), "e", "1", by); err != nil {
		t.Fatal(err)
	}
	_, err := r.engine.Begin(t.Context(), d.ID, by)
	r.refused(err, fault.Conflict, "the environment is at generation 2, not 1")
	if x, err := r.engine.Forget(t.Context(), "e", "1", by); err != nil || x.Tasks != 0 {
		t.Errorf("forgotten twice is %+v (%v)", x, err)
	}
	_, err = r.engine.Forget(t.Context(), "e", "9", by)
	r.refused(err, fault.NotFound, `has no node "9"`)
	_, err = r.engine.Forget(t.Context(), "f", "9", by)
	r.refused(err, fault.NotFound, `no environment "f"`)
	r.hosts("node1", "node3")
	found, err := r.engine.Diff(t.Context(), At{Deployment: 1}, At{Environment: "e"})
	if err != nil || len(found) != 1 || fmt.Sprint(found[0]) != fmt.Sprint(Difference{Node: "2", Old: "node2", New: "node3", Host: true}) {
		t.Errorf("the states differ in %+v (%v)", found, err)
	}
}

// TestForgettingANodeWhoseNameGoesOn: what succeeded on the node 1 is forgotten, and not what did on the node 1/a, nor in an environment whose name goes on.
func TestForgettingANodeWhoseNameGoesOn(t *testing.T) {
	r := newRig(t, 1)
	r.graph("g", "- {id: a, type: shell, version: 2.1.0, role: '*', condition: {yaql_exp: changed($.v)}}")
	for _, e := range []string{"e", "e.2"} {
		r.environment(e, `{"common": {"v": 1}, "nodes": {"1": {"uid": "1", "roles": ["n"]}, "1/a": {"uid": "1/a", "roles": ["n"]}}, "hosts": {"1": "node1", "1/a": "node1"}}`, "g")
		r.end(r.start(Wish{Environment: e}))
	}
	if x, err := r.engine.Forget(t.Context(), "e", "1", by); err != nil || x.Tasks != 1 {
		t.Errorf("forgotten is %+v (%v)", x, err)
	}
	for e, want := range map[string]int{"e": 1, "e.2": 0} {
		if d := r.plan(Wish{Environment: e}); d.Runs != want {
			t.Errorf("in %s %d tasks run, not %d", e, d.Runs, want)
		}
	}
}
