package rollout

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/drover-project/drover/internal/agent"
	"github.com/drover-project/drover/internal/deploy/course"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/store"
)

const driftGraph = `
- id: serve
  type: shell
  version: 2.1.0
  role: '*'
  condition: {yaql_exp: changed($.port)}
  parameters: {cmd: serve}
  check: {cmd: 'serves "$1"', args: [{yaql_exp: $.port}]}
- id: motd
  type: upload_file
  version: 2.1.0
  role: '*'
  condition: {yaql_exp: changed($.motd)}
  parameters: {path: /etc/motd, data: {yaql_exp: $.motd}}
  requires: [serve]
- id: tls
  type: shell
  version: 2.1.0
  role: '*'
  condition: {yaql_exp: changed($.port) and $.tls}
  parameters: {cmd: tls}
  check: 'false'
- id: once
  type: shell
  version: 2.1.0
  role: '*'
  condition: {yaql_exp: changed($.port)}
  parameters: {cmd: once}
- id: always
  type: shell
  version: 2.1.0
  role: '*'
  parameters: {cmd: always}
  check: 'false'
`

// drifting is a rig with three nodes on which all is done.
func drifting(t *testing.T) *rig {
	t.Helper()
	r := newRig(t, 3)
	r.graph("g", driftGraph)
	r.environment("e", "common: {port: 80, motd: hello, tls: false, db: {password: correct-horse}}\nhosts: {a: node1, b: node2, c: node3}\n"+
		"nodes: {a: {uid: a, roles: [n]}, b: {uid: b, roles: [n]}, c: {uid: c, roles: [n]}}", "g")
	if p := r.end(r.start(Wish{Environment: "e"})); p.Status != course.Done {
		t.Fatal(p.Why)
	}
	return r
}

// asks is what nodes are asked, and have; each question is kept.
func (r *rig) has(f func(ctx context.Context, node string, c agent.Check) (agent.Finding, error)) {
	r.sim.mu.Lock()
	defer r.sim.mu.Unlock()
	r.sim.has = f
}

// whys are the tasks that run with the reasons.
func whys(tasks []course.Task) (out []string) {
	for _, t := range tasks {
		if t.State != course.Skipped {
			out = append(out, t.Node+"/"+t.Task+": "+t.Why)
		}
	}
	slices.Sort(out)
	return out
}

// TestWhatDiffersOnMachinesRuns: it is asked of what is wanted and would not run; what differs runs, and what cannot be asked is named.
func TestWhatDiffersOnMachinesRuns(t *testing.T) {
	r := drifting(t)
	var asked atomic.Int32
	r.has(func(_ context.Context, node string, c agent.Check) (agent.Finding, error) {
		asked.Add(1)
		what := node + " " + c.Type
		if c.Command != nil {
			what += " " + string(c.Command)
		} else {
			what += " " + string(c.Parameters)
		}
		switch what {
		case `node1 shell {"args":[80],"cmd":"serves \"$1\""}`:
			return agent.Finding{Differs: true, Summary: "it serves 81,\nnot correct-horse", Difference: []string{"81", "the password is correct-horse"}}, nil
		case `node1 upload_file {"cwd":"/","data":"hello","path":"/etc/motd"}`, `node2 shell {"args":[80],"cmd":"serves \"$1\""}`:
			return agent.Finding{}, nil
		case `node2 upload_file {"cwd":"/","data":"hello","path":"/etc/motd"}`:
			return agent.Finding{}, fault.New(fault.Failed, "the disk with correct-horse is gone")
		}
		t.Errorf("asked is %s", what)
		return agent.Finding{}, nil
	})
	r.sim.mu.Lock()
	r.sim.away = map[string]bool{"node3": true}
	r.sim.mu.Unlock()
	shown, err := r.engine.Compare(t.Context(), Wish{Environment: "e"}, by)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"a/always: unconditional", "a/serve: differs on the machine: it serves 81, not <redacted>", "b/always: unconditional", "c/always: unconditional"}
	if got := whys(shown.Tasks); !slices.Equal(got, want) || shown.Deployment.Runs != 4 || !shown.Deployment.Drift {
		t.Errorf("%q, want %q; %+v", got, want, shown.Deployment)
	}
	drift := &course.Drift{Compared: 3, Uncompared: 3,
		Differ: []course.Differs{{Task: "serve", Node: "a", Host: "node1", Summary: "it serves 81, not <redacted>", Difference: []string{"81", "the password is <redacted>"}}},
		Unknown: []course.Unknown{{Task: "motd", Node: "b", Host: "node2", Why: "the disk with <redacted> is gone"},
			{Task: "serve", Node: "c", Host: "node3", Why: "node node3 cannot be reached"}, {Task: "motd", Node: "c", Host: "node3", Why: "node node3 cannot be reached"}}}
	if !reflect.DeepEqual(shown.Drift, drift) {
		t.Errorf("told is %+v", shown.Drift)
	}
	if n := asked.Load(); n != 4 {
		t.Errorf("%d questions were asked", n)
	}
	made, err := r.engine.PlanAndTell(t.Context(), Wish{Environment: "e", Drift: true}, by)
	if err != nil || !reflect.DeepEqual(made.Drift, drift) {
		t.Fatalf("%+v, %v", made, err)
	}
	id := made.Deployment.ID
	if _, err := r.engine.Begin(t.Context(), id, by); err != nil {
		t.Fatal(err)
	}
	r.began(1)
	if p := r.end(id); p.Status != course.Done || p.States[course.Ready] != 4 || !p.Drift {
		t.Errorf("%+v", p)
	}
	if x, err := r.engine.Explain(t.Context(), id, "serve", "a"); err != nil || string(x.Parameters) != `{"cmd":"serve","cwd":"/"}` {
		t.Errorf("%+v, %v", x, err)
	}
	trail := fmt.Sprint(r.job(mustTask(t, r, id, "serve", "a").Job).Ops[0].Input.Reason)
	if !strings.Contains(trail, "it serves 81, not <redacted>") || strings.Contains(trail, "correct-horse") {
		t.Errorf("the trail is %s", trail)
	}
}

func mustTask(t *testing.T, r *rig, id int64, task, node string) course.Task {
	t.Helper()
	tasks, err := r.engine.Tasks(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(tasks, func(x course.Task) bool { return x.Task == task && x.Node == node })
	if i < 0 {
		t.Fatalf("there is no %s on %s", task, node)
	}
	return tasks[i]
}

// TestAskingMachinesChangesNothing: a comparison stores nothing, and a plan that asks refuses what changes meanwhile.
func TestAskingMachinesChangesNothing(t *testing.T) {
	r := drifting(t)
	stored := func() (n int) {
		t.Helper()
		for _, kind := range []store.Kind{KindDeployment, KindPlan, KindPart, KindRecord, KindSuccess} {
			for _, err := range r.store.List(t.Context(), kind, store.Options{}) {
				if err != nil {
					t.Fatal(err)
				}
				n++
			}
		}
		return n
	}
	before := stored()
	if _, err := r.engine.Compare(t.Context(), Wish{Environment: "e", Mode: course.DryRun}, by); err != nil {
		t.Fatal(err)
	}
	if after := stored(); after != before {
		t.Errorf("%d objects became %d", before, after)
	}
	if got := r.began(1); len(got) != 12 { // of the first deployment
		t.Errorf("%q", got)
	}
	for _, c := range []struct {
		change func() error
		says   string
	}{
		{func() error {
			_, err := r.engine.PutGraph(context.Background(), "g", []course.File{{Path: "g.yaml", Text: driftGraph}}, by)
			return err
		}, "a task graph was changed"},
		{func() error {
			r.end(r.start(Wish{Environment: "e"}))
			return nil
		}, "deployment 2 ran since"},
		{func() error {
			_, err := r.engine.PutEnvironment(context.Background(), "e", course.File{Path: "e.yaml", Text: "common: {port: 81}\nhosts: {a: node1}\nnodes: {a: {uid: a, roles: [n]}}"}, nil, by)
			return err
		}, "the environment is at generation 2, not 1"},
	} {
		r.has(func(context.Context, string, agent.Check) (agent.Finding, error) {
			return agent.Finding{Differs: true, Summary: "x"}, c.change()
		})
		_, err := r.engine.PlanAndTell(t.Context(), Wish{Environment: "e", Drift: true, Nodes: []string{"a"}, Only: []string{"motd"}}, by)
		r.refused(err, fault.Conflict, "the environment e changed while its machines were asked: "+c.says)
	}
}

// TestWhatMachinesAreNotAsked refuses wishes under which nothing is to be asked, and asks nothing of an environment that is being deployed.
func TestWhatMachinesAreNotAsked(t *testing.T) {
	r := drifting(t)
	r.has(func(_ context.Context, node string, c agent.Check) (agent.Finding, error) {
		t.Errorf("%s is asked %s", node, c.Command)
		return agent.Finding{}, nil
	})
	_, err := r.engine.Compare(t.Context(), Wish{Environment: "e", Force: true}, by)
	r.refused(err, fault.Invalid, "with force")
	_, err = r.engine.Compare(t.Context(), Wish{Environment: "e", Refreshed: []string{"x"}}, by)
	r.refused(err, fault.Invalid, "no machine")
	_, err = r.engine.Compare(t.Context(), Wish{Environment: "nowhere"}, by)
	r.refused(err, fault.NotFound, "nowhere")
	_, err = r.preview(Wish{Environment: "e", Drift: true})
	r.refused(err, fault.Invalid, "a preview asks no machines")
	if x, err := r.engine.Compare(t.Context(), Wish{Environment: "e", Only: []string{"once"}}, by); err != nil || x.Drift.Uncompared != 3 || x.Deployment.Runs != 0 {
		t.Errorf("%+v, %v", x, err)
	}
	release := make(chan struct{})
	r.simulate(func(context.Context, string, agent.Task) error { <-release; return nil })
	id := r.start(Wish{Environment: "e"})
	_, err = r.engine.Compare(t.Context(), Wish{Environment: "e"}, by)
	close(release)
	r.refused(err, fault.WrongState, "is under way")
	r.end(id)
}

// TestAMachineThatGoesAwayIsNotAskedAgain: what is left of it is not known for the same reason; and who leaves has all be given up.
func TestAMachineThatGoesAwayIsNotAskedAgain(t *testing.T) {
	r := newRig(t, 1)
	var graph strings.Builder
	const many = 50
	for i := range many {
		fmt.Fprintf(&graph, "- {id: t%d, type: shell, version: 2.1.0, role: '*', condition: {yaql_exp: changed($.port)}, parameters: {cmd: x}, check: x}\n", i)
	}
	r.graph("g", graph.String())
	r.environment("e", "common: {port: 80}\nhosts: {a: node1}\nnodes: {a: {uid: a, roles: [n]}}", "g")
	r.end(r.start(Wish{Environment: "e"}))
	var asked atomic.Int32
	r.has(func(context.Context, string, agent.Check) (agent.Finding, error) {
		asked.Add(1)
		return agent.Finding{}, fault.New(fault.Unavailable, "node node1 went away")
	})
	x, err := r.engine.Compare(t.Context(), Wish{Environment: "e"}, by)
	if err != nil || len(x.Drift.Unknown) != many || asked.Load() > 2*checksAtOnce {
		t.Errorf("%d of %d were asked: %v", asked.Load(), many, err)
	}
	for _, u := range x.Drift.Unknown {
		if u.Why != "node node1 went away" {
			t.Errorf("%+v", u)
		}
	}
	ctx, leave := context.WithCancel(t.Context())
	r.has(func(ctx context.Context, _ string, _ agent.Check) (agent.Finding, error) {
		leave()
		<-ctx.Done()
		return agent.Finding{}, context.Cause(ctx)
	})
	if _, err := r.engine.Compare(ctx, Wish{Environment: "e"}, by); err == nil {
		t.Error("who left is answered")
	}
}
