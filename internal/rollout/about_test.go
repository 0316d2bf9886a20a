package rollout

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/drover-project/drover/internal/agent"
	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/deploy/course"
)

// members puts an environment with these nodes, which are UIDs with a role, as in 1:web.
func (r *rig) members(nodes ...string) {
	r.Helper()
	out := []string{}
	for i, n := range nodes {
		uid, role, _ := strings.Cut(n, ":")
		out = append(out, fmt.Sprintf(`"%s": {"uid": "%s", "roles": ["%s"], "name": "node%d.example.com"}`, uid, uid, role, i+1))
	}
	hosts := []string{}
	for i, n := range nodes {
		uid, _, _ := strings.Cut(n, ":")
		hosts = append(hosts, fmt.Sprintf(`"%s": "node%d"`, uid, i+1))
	}
	r.environment("e", fmt.Sprintf(`{"common": {}, "nodes": {%s}, "hosts": {%s}}`, strings.Join(out, ", "), strings.Join(hosts, ", ")), "g")
}

// runs are the tasks on nodes that a plan lets run.
func (r *rig) runs(w Wish) string {
	r.Helper()
	shown, err := r.preview(w)
	if err != nil {
		r.Fatal(err)
	}
	var out []string
	for _, x := range shown.Tasks {
		if x.State != course.Skipped {
			out = append(out, x.Node+"/"+x.Task)
		}
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

// TestATaskRunsWhenNodesComeAndGo: conditions see all nodes of the environment, those of now and those that were there at the task's last success, whichever
// of them took part.
func TestATaskRunsWhenNodesComeAndGo(t *testing.T) {
	r := newRig(t, 4)
	r.graph("g", "- {id: a, type: shell, version: 2.1.0, role: web, condition: {yaql_exp: 'changed($.nodes.where($.role = db).uid)'}}")
	for _, step := range []struct {
		name  string
		nodes []string
		wish  Wish
		runs  string
	}{
		{"the first time", []string{"1:web", "2:web", "3:db"}, Wish{}, "1/a 2/a"},
		{"nothing has changed", []string{"1:web", "2:web", "3:db"}, Wish{}, ""},
		{"another node of the role", []string{"1:web", "2:web", "3:db", "4:db"}, Wish{Nodes: []string{"1"}}, "1/a"},
		{"for one of them it was done", []string{"1:web", "2:web", "3:db", "4:db"}, Wish{}, "2/a"},
		{"for both", []string{"1:web", "2:web", "3:db", "4:db"}, Wish{}, ""},
		{"a node of another role", []string{"1:web", "2:web", "3:db", "4:web"}, Wish{}, "1/a 2/a 4/a"},
		{"the same nodes, told in another order", []string{"3:db", "1:web", "2:web", "4:web"}, Wish{Force: true}, "1/a 2/a 4/a"},
		{"and nothing has changed", []string{"3:db", "1:web", "2:web", "4:web"}, Wish{}, ""},
	} {
		r.members(step.nodes...)
		step.wish.Environment = "e"
		if got := r.runs(step.wish); got != step.runs {
			t.Errorf("%s: %q runs, want %q", step.name, got, step.runs)
		}
		r.end(r.start(step.wish))
	}
}

// TestAllSeeTheNodes, whichever processor computes what is theirs.
func TestAllSeeTheNodes(t *testing.T) {
	const many = 20
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(4))
	r := newRig(t, many)
	r.graph("g", fmt.Sprintf("- {id: a, type: shell, version: 2.1.0, role: web, condition: {yaql_exp: '$.nodes.len() = %d'}}", many))
	var nodes []string
	for i := range many {
		nodes = append(nodes, fmt.Sprintf("%d:web", i+1))
	}
	r.members(nodes...)
	if got := strings.Fields(r.runs(Wish{Environment: "e"})); len(got) != many {
		t.Errorf("it runs on %d nodes: %q", len(got), got)
	}
}

// TestPartsOfAbsentNodesAreReferredTo: what a deployment keeps of nodes that take no part in it is not taken for what nothing refers to.
func TestPartsOfAbsentNodesAreReferredTo(t *testing.T) {
	of := &referring{deployments: []*course.Deployment{{Common: "a", Nodes: []course.Node{{Part: "b"}}, Absent: []course.Node{{Part: "c"}}}}}
	var found []course.Digest
	of.eachDigest(func(d *course.Digest) { found = append(found, *d) })
	if !slices.Equal(slices.Compact(slices.Sorted(slices.Values(found))), []course.Digest{"a", "b", "c"}) {
		t.Errorf("it refers to %q", found)
	}
}

// TestHowFarAnEnvironmentHasComeIsKept: new until something has succeeded, then what became of its latest deployment as a whole, whatever is done in part.
func TestHowFarAnEnvironmentHasComeIsKept(t *testing.T) {
	r := newRig(t, 2)
	r.graph("g", `
- {id: told, type: shell, version: 2.1.0, role: '*', parameters: {task: told, status: {yaql_exp: $.environment.status}}}
- {id: last, type: shell, version: 2.1.0, role: '*', requires: [told], parameters: {task: last}}`)
	r.graph("disks", "- {id: disks, type: shell, version: 2.1.0, role: '*', parameters: {task: disks}}")
	r.members("1:web", "2:web")
	r.environment("e", `{"graphs": ["g", "provision=disks"], "common": {}, "nodes": {"1": {"roles": ["web"]}, "2": {"roles": ["web"]}}, "hosts": {"1": "node1", "2": "node2"}}`)
	var mu sync.Mutex
	var told []string
	failing := ""
	r.simulate(func(_ context.Context, _ string, x agent.Task) error {
		var given struct{ Task, Status string }
		if err := json.Unmarshal(x.Parameters, &given); err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		if given.Status != "" {
			told = append(told, given.Status)
		}
		if given.Task == failing {
			return errors.New("it fails")
		}
		return nil
	})
	for _, step := range []struct {
		name    string
		failing string
		wish    Wish
		sees    string // what the tasks are told; nothing if none runs that tells it
		after   string
	}{
		{"a first one, of which nothing succeeds", "told", Wish{}, "new", "new"},
		{"a first one that fails at its end", "last", Wish{}, "new", "partially_deployed"},
		{"what was done in part counts for nothing", "", Wish{Only: []string{"last"}}, "", "partially_deployed"},
		{"on a node", "", Wish{Nodes: []string{"1"}}, "partially_deployed", "partially_deployed"},
		{"of another type", "", Wish{Type: "provision"}, "", "partially_deployed"},
		{"only looked at", "", Wish{Mode: course.DryRun}, "partially_deployed", "partially_deployed"},
		{"as a whole", "", Wish{}, "partially_deployed", "operational"},
		{"another type fails", "disks", Wish{Type: "provision"}, "", "operational"},
		{"again as a whole", "", Wish{}, "operational", "operational"},
		{"and it fails", "told", Wish{}, "operational", "partially_deployed"},
	} {
		mu.Lock()
		told, failing = nil, step.failing
		mu.Unlock()
		step.wish.Environment = "e"
		r.end(r.start(step.wish))
		for _, sees := range told {
			if sees != step.sees {
				t.Errorf("%s: a task is told %q, want %q", step.name, sees, step.sees)
			}
		}
		if (len(told) > 0) != (step.sees != "") && step.wish.Mode != course.DryRun {
			t.Errorf("%s: tasks are told %q, want %q", step.name, told, step.sees)
		}
		known := r.engine.known()
		if got := known.StatusOf(known.Environment("e")); string(got) != step.after {
			t.Errorf("%s: then it is %s, want %s", step.name, got, step.after)
		}
	}
	if err := r.engine.DeleteEnvironment(t.Context(), "e", by); err != nil {
		t.Fatal(err)
	}
	r.members("1:web", "2:web")
	known := r.engine.known()
	if got := known.StatusOf(known.Environment("e")); got != "new" {
		t.Errorf("another environment of the name is %s", got)
	}
}

// TestAnEnvironmentOfOtherMachinesIsNew: where no success counts, for all nodes are other machines than then, it is as before the first one.
func TestAnEnvironmentOfOtherMachinesIsNew(t *testing.T) {
	r := newRig(t, 2)
	r.graph("g", "- {id: a, type: shell, version: 2.1.0, role: '*', condition: {yaql_exp: $.environment.status = new}}")
	r.members("1:web", "2:web")
	r.end(r.start(Wish{Environment: "e"}))
	if got := r.runs(Wish{Environment: "e"}); got != "" {
		t.Errorf("%q runs in what was deployed", got)
	}
	for i, name := range []string{"node1", "node2"} {
		r.alter(name, func(n *cluster.Node) { n.UUID = fmt.Sprintf("00000000-0000-4000-8000-00000000aaa%d", i) })
	}
	if got := r.runs(Wish{Environment: "e"}); got != "1/a 2/a" {
		t.Errorf("%q runs on other machines", got)
	}
}

// TestTheConsoleSeesNodesAndStatus evaluates as tasks do.
func TestTheConsoleSeesNodesAndStatus(t *testing.T) {
	r := newRig(t, 3)
	r.graph("g", "- {id: a, type: shell, version: 2.1.0, role: '*'}")
	r.members("1:web", "2:db", "master:master")
	r.end(r.start(Wish{Environment: "e", Nodes: []string{"1"}}))
	for expression, want := range map[string]string{
		"$.nodes.role":            `["web","db"]`,
		"$.environment.status":    `"partially_deployed"`,
		"changed($.nodes)":        `false`,
		"old($.environment.name)": `"e"`,
		"new($.environment.status) = old($.environment.status)": `false`,
	} {
		a, err := r.engine.Eval(t.Context(), Question{Expression: expression, New: At{Environment: "e"}, Node: "1"})
		if err != nil || string(a.Value) != want {
			t.Errorf("%s is %s (%v), want %s", expression, a.Value, err, want)
		}
	}
}
