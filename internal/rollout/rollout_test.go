package rollout

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"

	"github.com/drover-project/drover/internal/agent"
	"github.com/drover-project/drover/internal/deploy/course"
	"github.com/drover-project/drover/internal/fault"
)

const webGraph = `
- id: database
  type: shell
  version: 2.1.0
  role: [database]
  condition: {yaql_exp: changed($.database)}
  parameters: {cmd: install}
- id: web
  type: shell
  version: 2.1.0
  role: ['/(primary-)?web/']
  condition: {yaql_exp: 'changedAny($.web, $.ip)'}
  cross-depends:
  - {name: database, role: database}
  parameters: {cmd: serve, strategy: {type: one_by_one}}
- id: motd
  type: upload_file
  version: 2.1.0
  role: '*'
  parameters: {path: /etc/motd, data: hello}
`

const webEnvironment = `
hosts: {"1": node1, "2": node2, "3": node3, "4": node4}
common: {web: {port: 80}, database: {version: 15}}
nodes:
  "1": {uid: "1", roles: [primary-web], ip: 10.0.0.1}
  "2": {uid: "2", roles: [web], ip: 10.0.0.2}
  "3": {uid: "3", roles: [database], ip: 10.0.0.3}
  "4": {uid: "4", roles: [web], ip: 10.0.0.4}
`

func web(t *testing.T) *rig {
	t.Helper()
	r := newRig(t, 4)
	r.graph("web", webGraph)
	r.environment("prod", webEnvironment, "web")
	return r
}

func TestARolloutAndTheNext(t *testing.T) {
	r := web(t)
	first := r.start(Wish{Environment: "prod"})
	if p := r.end(first); p.Status != course.Done || p.States[course.Ready] != 8 || p.Why != "" {
		t.Fatalf("%s: %s %v", p.Status, p.Why, p.States)
	}
	began := r.began(first)
	for _, x := range []string{"1/web", "2/web", "4/web"} {
		if slices.Index(began, "3/database") > slices.Index(began, x) {
			t.Errorf("%s began before the database: %v", x, began)
		}
	}
	tasks, err := r.engine.Tasks(t.Context(), first)
	if err != nil {
		t.Fatal(err)
	}
	j := r.job(tasks[0].Job)
	trail := j.Ops[0].Input.Reason
	if trail[0].Reason != "release 7" || !strings.Contains(trail[1].Reason, "deployment 1 of prod by alice over test: task "+tasks[0].Task+" on node ") {
		t.Errorf("the trail of a job is %v", trail)
	}
	// Nothing changed: only what is unconditional runs.
	second := r.start(Wish{Environment: "prod"})
	r.end(second)
	if began := r.began(second); len(began) != 4 || slices.ContainsFunc(began, func(s string) bool { return !strings.HasSuffix(s, "/motd") }) {
		t.Errorf("with nothing changed %v ran", began)
	}
	// A setting changed: what its conditions ask for runs, and is compared with the first run, since the second skipped it.
	r.environment("prod", strings.Replace(webEnvironment, "port: 80", "port: 81", 1))
	third := r.start(Wish{Environment: "prod", Only: []string{"web"}})
	r.end(third)
	if began := r.began(third); !slices.Equal(began, []string{"1/web", "2/web", "4/web"}) {
		t.Errorf("after a change of the port %v ran", began)
	}
}

func TestFailureStopsWhatDependsOnIt(t *testing.T) {
	r := web(t)
	r.simulate(func(_ context.Context, node string, _ agent.Task) error {
		if node == "node3" {
			return fault.New(fault.Failed, "the disk is full")
		}
		return nil
	})
	id := r.start(Wish{Environment: "prod"})
	p := r.end(id)
	if p.Status != course.Broken {
		t.Fatalf("%s, %s", p.Status, r.states(id))
	}
	want := "1/motd ready\n1/web blocked\n2/motd ready\n2/web blocked\n3/database error\n3/motd error\n4/motd ready\n4/web blocked"
	if got := r.states(id); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if len(p.Unsuccessful) != 2 || !strings.Contains(p.Unsuccessful[0].Error, "the disk is full") {
		t.Errorf("what failed: %+v", p.Unsuccessful)
	}
	r.began(id)
	r.simulate(nil)
	if _, err := r.engine.Resume(t.Context(), id, true, by); err != nil {
		t.Fatal(err)
	}
	if p := r.end(id); p.Status != course.Done || p.Attempt != 2 {
		t.Fatalf("retried: %s %s", p.Status, r.states(id))
	}
	if began := r.began(id); len(began) != 5 || slices.Contains(began, "1/motd") {
		t.Errorf("the retry ran %v", began)
	}
}

func TestOneByOne(t *testing.T) {
	r := web(t)
	running := make(chan string, 10)
	gate := make(chan struct{})
	r.simulate(func(_ context.Context, node string, task agent.Task) error {
		if strings.Contains(string(task.Parameters), "serve") {
			running <- node
			<-gate
		}
		return nil
	})
	id := r.start(Wish{Environment: "prod"})
	for range 3 {
		<-running
		select {
		case other := <-running:
			t.Errorf("%s runs besides", other)
		default:
		}
		gate <- struct{}{}
	}
	if p := r.end(id); p.Status != course.Done {
		t.Error(r.states(id))
	}
}

// TestSoManyAtATime: with an amount a task comes on each node after the one that is so many before, and on the first ones after none.
func TestSoManyAtATime(t *testing.T) {
	r := newRig(t, 1)
	r.graph("g", "- {id: a, type: shell, version: 2.1.0, role: '*', parameters: {cmd: x, strategy: {type: parallel, amount: 2}}}")
	r.environment("e", simulatedNodes(5, 1), "g")
	c, err := r.engine.Plans.Course(t.Context(), r.plan(Wish{Environment: "e"}))
	if err != nil {
		t.Fatal(err)
	}
	var waits []string
	for i, after := range c.After[:len(c.Steps)] {
		for _, a := range after {
			if int(a) < len(c.Steps) {
				waits = append(waits, c.Steps[i].Node+" for "+c.Steps[a].Node)
			}
		}
	}
	if got := strings.Join(waits, ", "); got != "2 for 0, 3 for 1, 4 for 2" {
		t.Errorf("nodes wait: %s", got)
	}
}

// TestAFailedNodeGivesItsTurnAway: how many nodes may fail says the tolerance of their group, and not the order in which they have their turn.
func TestAFailedNodeGivesItsTurnAway(t *testing.T) {
	r := newRig(t, 1)
	r.graph("g", "- {id: all, type: group, role: ['*'], fault_tolerance: 2}\n"+
		"- {id: a, type: shell, version: 2.1.0, role: '*', parameters: {cmd: x, strategy: {type: one_by_one}}}")
	r.environment("e", simulatedNodes(3, 1), "g")
	var begun atomic.Bool
	r.simulate(func(context.Context, string, agent.Task) error {
		if !begun.Swap(true) {
			return errors.New("no")
		}
		return nil
	})
	id := r.start(Wish{Environment: "e"})
	if p := r.end(id); p.Status != course.Broken || p.Why != "1 task failed" || p.States[course.Ready] != 2 {
		t.Errorf("%s %s\n%s", p.Status, p.Why, r.states(id))
	}
}

func TestStopAndResume(t *testing.T) {
	r := web(t)
	reached, gate := make(chan struct{}, 4), make(chan struct{})
	r.simulate(func(_ context.Context, node string, _ agent.Task) error {
		if node == "node3" {
			reached <- struct{}{}
			<-gate
		}
		return nil
	})
	id := r.start(Wish{Environment: "prod"})
	<-reached
	_, err := r.engine.Begin(t.Context(), r.plan(Wish{Environment: "prod"}).ID, by)
	r.refused(err, fault.WrongState, "deployment 1 of the environment prod is under way")
	if _, err := r.engine.Stop(t.Context(), id, by); err != nil {
		t.Fatal(err)
	}
	close(gate)
	if p := r.end(id); p.Status != course.Halted || p.Why != "stopped by alice over test" {
		t.Fatalf("%s %s\n%s", p.Status, p.Why, r.states(id))
	}
	done := r.began(id)
	if _, err := r.engine.Resume(t.Context(), id, false, by); err != nil {
		t.Fatal(err)
	}
	if p := r.end(id); p.Status != course.Done {
		t.Fatalf("%s %s\n%s", p.Status, p.Why, r.states(id))
	}
	for _, x := range r.began(id) {
		if slices.Contains(done, x) {
			t.Errorf("%s ran again", x)
		}
	}
}

// TestAStopEndsNothingThatRuns: what a node is at when the deployment is stopped is not killed there, and counts when it has ended.
func TestAStopEndsNothingThatRuns(t *testing.T) {
	r := newRig(t, 1)
	r.graph("g", "- {id: a, type: shell, version: 2.1.0, role: '*'}\n- {id: b, type: shell, version: 2.1.0, role: '*', requires: [a]}")
	r.environment("e", "hosts: {\"1\": node1}\nnodes: {\"1\": {uid: \"1\", roles: [n]}}", "g")
	reached, gate := make(chan struct{}), make(chan struct{})
	r.simulate(func(ctx context.Context, _ string, _ agent.Task) error {
		close(reached)
		<-gate
		return context.Cause(ctx) // as of a command that was killed
	})
	id := r.start(Wish{Environment: "e"})
	<-reached
	if _, err := r.engine.Stop(t.Context(), id, by); err != nil {
		t.Fatal(err)
	}
	close(gate)
	if p := r.end(id); p.Status != course.Halted || r.states(id) != "1/a ready\n1/b stopped" {
		t.Errorf("%s: %s\n%s", p.Status, p.Why, r.states(id))
	}
}

func TestPlansOfAStateThatMovedOn(t *testing.T) {
	r := web(t)
	old := r.plan(Wish{Environment: "prod"})
	r.environment("prod", strings.Replace(webEnvironment, "port: 80", "port: 81", 1))
	_, err := r.engine.Begin(t.Context(), old.ID, by)
	r.refused(err, fault.Conflict, "the environment is at generation 2, not 1")
	one, other := r.plan(Wish{Environment: "prod"}), r.plan(Wish{Environment: "prod"})
	if _, err := r.engine.Begin(t.Context(), one.ID, by); err != nil {
		t.Fatal(err)
	}
	r.end(one.ID)
	_, err = r.engine.Begin(t.Context(), other.ID, by)
	r.refused(err, fault.Conflict, "deployment 2 ran since")
	_, err = r.engine.Begin(t.Context(), one.ID, by)
	r.refused(err, fault.WrongState, "was begun already")
	third := r.plan(Wish{Environment: "prod"})
	r.graph("web", webGraph)
	_, err = r.engine.Begin(t.Context(), third.ID, by)
	r.refused(err, fault.Conflict, "a task graph was changed")
}

// TestPlansWhileSuccessesMoveOn plans while a deployment runs, and after it failed: what succeeds later is not in these plans.
func TestPlansWhileSuccessesMoveOn(t *testing.T) {
	r := web(t)
	reached, gate := make(chan struct{}, 1), make(chan struct{})
	r.simulate(func(_ context.Context, node string, _ agent.Task) error {
		if node != "node3" {
			return nil
		}
		reached <- struct{}{}
		<-gate
		return fault.New(fault.Failed, "the disk is full")
	})
	first := r.start(Wish{Environment: "prod"})
	<-reached
	during := r.plan(Wish{Environment: "prod"})
	go func() {
		for range reached { // its other task
		}
	}()
	defer close(reached)
	close(gate)
	r.end(first)
	_, err := r.engine.Begin(t.Context(), during.ID, by)
	r.refused(err, fault.Conflict, "deployment 1 went on since")
	failed := r.plan(Wish{Environment: "prod"})
	r.simulate(nil)
	if _, err := r.engine.Resume(t.Context(), first, true, by); err != nil {
		t.Fatal(err)
	}
	r.end(first)
	_, err = r.engine.Begin(t.Context(), failed.ID, by)
	r.refused(err, fault.Conflict, "deployment 1 went on since")
}

func TestDryRunsAreNoSuccesses(t *testing.T) {
	r := web(t)
	for _, mode := range []course.Mode{course.DryRun, course.Noop} {
		r.simulate(func(_ context.Context, _ string, task agent.Task) error {
			if task.Dry != (mode == course.DryRun) || task.Noop != (mode == course.Noop) {
				return errors.New("the node was told otherwise")
			}
			return nil
		})
		if p := r.end(r.start(Wish{Environment: "prod", Mode: mode})); p.Status != course.Done || p.States[course.Ready] != 8 {
			t.Errorf("%s: %s %v", mode, p.Status, p.States)
		}
	}
	if d := r.plan(Wish{Environment: "prod"}); d.Runs != 8 {
		t.Errorf("after dry runs %d tasks run", d.Runs)
	}
}

// TestWhatIsToleratedIsNoSuccess: a task whose failure is none of the node is carried out again by the next deployment, though nothing has changed.
func TestWhatIsToleratedIsNoSuccess(t *testing.T) {
	r := newRig(t, 1)
	r.graph("g", "- {id: a, type: shell, version: 2.1.0, role: '*', fail_on_error: false, condition: {yaql_exp: changed($.v)}}")
	r.environment("e", "common: {v: 1}\nhosts: {\"1\": node1}\nnodes: {\"1\": {uid: \"1\", roles: [n]}}", "g")
	r.simulate(func(context.Context, string, agent.Task) error { return fault.New(fault.Failed, "the disk is full") })
	if p := r.end(r.start(Wish{Environment: "e"})); p.Status != course.Done || p.States[course.Tolerated] != 1 {
		t.Fatalf("%s: %s %v", p.Status, p.Why, p.States)
	}
	r.simulate(nil)
	for _, runs := range []int{1, 0} {
		d := r.plan(Wish{Environment: "e"})
		if d.Runs != runs {
			t.Fatalf("the next one has %d tasks to run, not %d", d.Runs, runs)
		}
		if _, err := r.engine.Begin(t.Context(), d.ID, by); err != nil {
			t.Fatal(err)
		}
		r.end(d.ID)
	}
}

// TestFunctionsOfTheOperator deploys by a condition that calls a function of the operator's own; a plan that was made with
// another version of it is refused.
func TestFunctionsOfTheOperator(t *testing.T) {
	r := newRig(t, 1)
	version := func(v string) {
		t.Helper()
		r.close()
		r.functions = fstest.MapFS{"own.yaml": {Data: []byte("version: " + v + "\nfunctions: {isWeb: {params: [roles], value: web in $roles}}")}}
		r.open(0)
	}
	version("1.0.0")
	r.graph("g", "- {id: a, type: shell, version: 2.1.0, role: '*', condition: {yaql_exp: isWeb($.roles)}}")
	r.environment("e", "nodes: {\"1\": {roles: [web], name: node1}, \"2\": {roles: [db], name: node1}}", "g")
	old := r.plan(Wish{Environment: "e"})
	if old.Runs != 1 || old.Steps != 2 {
		t.Errorf("%d of %d tasks run", old.Runs, old.Steps)
	}
	version("1.1.0")
	_, err := r.engine.Begin(t.Context(), old.ID, by)
	r.refused(err, fault.Conflict, "the functions of its expressions are [own.yaml 1.1.0], not [own.yaml 1.0.0]")
	if p := r.end(r.start(Wish{Environment: "e"})); p.Status != course.Done {
		t.Error(p.Why)
	}
}

// TestStoredPlansAgreeWithNewOnes plans twice of the same state: both plans have the same steps, for the same reasons.
func TestStoredPlansAgreeWithNewOnes(t *testing.T) {
	r := web(t)
	told := func() []course.Task {
		t.Helper()
		tasks, err := r.engine.Tasks(t.Context(), r.plan(Wish{Environment: "prod"}).ID)
		if err != nil {
			t.Fatal(err)
		}
		for i := range tasks {
			tasks[i].Deployment = 0
		}
		return tasks
	}
	first := told()
	r.close()
	r.open(0)
	if again := told(); !reflect.DeepEqual(first, again) {
		t.Errorf("planned again it is\n%+v\nwas\n%+v", again, first)
	}
}

// TestNobodyIsToldOfWhatIsNotShown: whoever is woken by a change looks once, and would wait for ever for one that comes
// into view a little later.
func TestNobodyIsToldOfWhatIsNotShown(t *testing.T) {
	r := newRig(t, 1)
	changed := r.engine.cfg.Picture.Changed()
	put := make(chan error, 1)
	go func() {
		_, err := r.engine.PutGraph(r.Context(), "g", []course.File{{Path: "g.yaml", Text: webGraph}}, by)
		put <- err
	}()
	<-changed
	if _, err := r.engine.Graph(t.Context(), "g"); err != nil {
		t.Errorf("the picture changed before the graph was shown: %v", err)
	}
	if err := <-put; err != nil {
		t.Fatal(err)
	}
}
