package rollout

import (
	"slices"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/deploy/course"
	"github.com/drover-project/drover/internal/fault"
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
	r.refused(r.engine.DeleteGraph("disks", by), fault.WrongState, "the environment e uses the task graph disks")
	for _, graphs := range [][]string{{"provision=missing"}, {"=web"}, {"a b=web"}} {
		if _, err := r.engine.PutEnvironment("f", course.File{Path: "f.yaml", Text: "nodes: {}"}, graphs, by); err == nil {
			t.Errorf("an environment with the graphs %v was taken", graphs)
		}
	}
}

// TestAHostThatIsNotThere has a task carried out by a node that the cluster lacks: it fails, and the others run.
func TestAHostThatIsNotThere(t *testing.T) {
	r := newRig(t, 1)
	r.graph("g", "- {id: a, type: shell, version: 2.1.0, role: '*'}\n- {id: b, type: shell, version: 2.1.0, role: '*', requires: [a]}")
	r.environment("e", "nodes: {\"1\": {uid: \"1\", roles: [n]}, \"2\": {uid: \"2\", roles: [n]}}\nhosts: {\"1\": node1, \"2\": node9}", "g")
	id := r.start(Wish{Environment: "e"})
	p := r.end(id)
	if want := "1/a ready\n1/b ready\n2/a error\n2/b blocked"; p.Status != course.Broken || r.states(id) != want {
		t.Fatalf("%s:\n%s\nwant\n%s", p.Status, r.states(id), want)
	}
	if len(p.Unsuccessful) != 1 || !strings.Contains(p.Unsuccessful[0].Error, "node9") {
		t.Errorf("told is %+v", p.Unsuccessful)
	}
}
