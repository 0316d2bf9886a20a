package rollout

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/agent"
	"github.com/drover-project/drover/internal/deploy/course"
	"github.com/drover-project/drover/internal/exec"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/opcode"
	"github.com/drover-project/drover/internal/queue"
	"github.com/drover-project/drover/internal/state"
	"github.com/drover-project/drover/internal/store"
	"github.com/drover-project/drover/internal/store/faultstore"
)

// another lets another controller lead over what is stored.
func (r *rig) another() {
	r.Helper()
	r.close()
	r.store = faultstore.New(r.store.Store)
	r.open(0)
}

// TestWhatWasRecordedIsNotDoneAgain kills a controller when a success is stored and the end of its job is not: of a task that
// another one waits for, and of the last one, with which the deployment is over when the next controller looks at it.
func TestWhatWasRecordedIsNotDoneAgain(t *testing.T) {
	for last, graph := range map[bool]string{
		true:  "- {id: a, type: shell, version: 2.1.0, role: '*', parameters: {cmd: x}}",
		false: "- {id: a, type: shell, version: 2.1.0, role: '*'}\n- {id: b, type: shell, version: 2.1.0, role: '*', requires: [a]}",
	} {
		r := newRig(t, 1)
		r.graph("g", graph)
		r.environment("e", "hosts: {\"1\": node1}\nnodes: {\"1\": {uid: \"1\", roles: [n]}}", "g")
		recorded := r.store.Inject(faultstore.Fault{Do: faultstore.CrashAfter, Err: fault.New(fault.Fenced, "another leads"), When: func(tx store.Tx) bool {
			return slices.ContainsFunc(tx.Put, func(p store.Put) bool { return p.Key.Kind == KindRecord })
		}})
		id := r.start(Wish{Environment: "e"})
		<-recorded
		r.another()
		p := r.end(id)
		if p.Status != course.Done {
			t.Fatalf("%s: %s\n%s", p.Status, p.Why, r.states(id))
		}
		tasks, err := r.engine.Tasks(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.queue.Wait(t.Context(), job.ID(tasks[0].Job), (*job.Job).Final); err != nil {
			t.Fatal(err)
		}
		j := r.job(tasks[0].Job)
		if j.Status() != job.Success || !strings.Contains(texts(j), "it is not run again") {
			t.Errorf("the last: %t; the job is %s (%s), its log\n%s", last, j.Status(), j.Ops[0].Result, texts(j))
		}
		if began := r.began(id); slices.Index(began, "1/a") != 0 || slices.Contains(began[1:], "1/a") {
			t.Errorf("the last: %t; the node began %v", last, began)
		}
	}
}

// texts is the log of a job.
func texts(j *job.Job) string {
	b := strings.Builder{}
	for _, l := range j.Ops[0].Log {
		b.Write(append(l.Payload, '\n'))
	}
	return b.String()
}

// TestJobsThatEndWhileNobodyLeads has jobs of a deployment end while nothing looks at deployments: well, badly, and cancelled
// before they began, of which no record is kept. The next controller lets the deployment go on.
func TestJobsThatEndWhileNobodyLeads(t *testing.T) {
	r := newRig(t, 4)
	r.graph("web", strings.Replace(webGraph, ", strategy: {type: one_by_one}", "", 1)) // else a node gets its job when the one before has ended
	r.environment("prod", webEnvironment, "web")
	gate := make(chan struct{})
	open := sync.OnceFunc(func() { close(gate) })
	defer open()
	r.simulate(func(_ context.Context, node string, _ agent.Task) error {
		<-gate
		if node == "node4" {
			return fault.New(fault.Failed, "the disk is full")
		}
		return nil
	})
	id := r.start(Wish{Environment: "prod"})
	p := r.until(id, "given its jobs", func(p *course.Progress) bool { return p.States[course.Given] == 8 })
	r.engine.Close()
	tasks, err := r.engine.Tasks(t.Context(), p.ID)
	if err != nil {
		t.Fatal(err)
	}
	last := tasks[slices.IndexFunc(tasks, func(t course.Task) bool { return t.Node == "4" && t.Task == "web" })]
	if _, err := r.queue.Cancel(t.Context(), job.ID(last.Job), false, by); err != nil {
		t.Fatal(err)
	}
	open()
	for _, j := range r.engine.outstanding() {
		if _, err := r.queue.Wait(t.Context(), j, (*job.Job).Final); err != nil {
			t.Fatal(err)
		}
	}
	r.another()
	p = r.end(id)
	want := "1/motd ready\n1/web ready\n2/motd ready\n2/web ready\n3/database ready\n3/motd ready\n4/motd error\n4/web stopped"
	if got := r.states(id); p.Status != course.Broken || p.Why != "1 task failed, 1 was cancelled" || got != want || p.States[course.Stopped] != 1 {
		t.Errorf("%s: %s\n%s", p.Status, p.Why, got)
	}
	if len(r.engine.known().Deployment(id).Cancelled) > 0 {
		t.Error("which tasks were cancelled is in the picture")
	}
	if p := r.until(id, "looked at", func(*course.Progress) bool { return true }); len(p.Cancelled) > 0 {
		t.Error("which tasks were cancelled is told twice")
	}
	r.simulate(nil)
	if _, err := r.engine.Resume(t.Context(), id, false, by); err != nil {
		t.Fatal(err)
	}
	want = strings.Replace(want, "4/web stopped", "4/web ready", 1)
	if p, got := r.end(id), r.states(id); p.Attempt != 2 || got != want {
		t.Errorf("resumed it is %s: %s\n%s", p.Status, p.Why, got)
	}
}

// TestAFailureOfThisAttemptCountsForTheNextController kills a controller between the failure of a task and the end of the
// deployment: the task is not run again, and what depends on it does not begin.
func TestAFailureOfThisAttemptCountsForTheNextController(t *testing.T) {
	r := web(t)
	gate := make(chan struct{})
	open := sync.OnceFunc(func() { close(gate) })
	defer open()
	var databases atomic.Int32
	r.simulate(func(_ context.Context, node string, task agent.Task) error {
		if strings.Contains(string(task.Parameters), "install") {
			databases.Add(1)
			return fault.New(fault.Failed, "the disk is full")
		}
		if node == "node1" {
			<-gate
		}
		return nil
	})
	id := r.start(Wish{Environment: "prod"})
	r.until(id, "failed in part", func(p *course.Progress) bool { return p.States[course.Failed] == 1 })
	closed := make(chan struct{})
	go func() {
		r.another()
		close(closed)
	}()
	open()
	<-closed
	p := r.end(id)
	want := "1/motd ready\n1/web blocked\n2/motd ready\n2/web blocked\n3/database error\n3/motd ready\n4/motd ready\n4/web blocked"
	if got := r.states(id); p.Status != course.Broken || got != want || databases.Load() != 1 {
		t.Errorf("%s, the database was begun %d times\n%s", p.Status, databases.Load(), got)
	}
}

// TestJobsThatTheQueueDoesNotTakeAreSubmittedAgain has a store that cannot tell for a while whether jobs were submitted before: the
// deployment goes on when it can, and one that is stopped meanwhile ends.
func TestJobsThatTheQueueDoesNotTakeAreSubmittedAgain(t *testing.T) {
	r := web(t)
	r.patience = 20 * time.Millisecond
	r.another()
	keys := func(kind store.Kind, _ string) bool { return kind == queue.KindSubmission }
	mend := r.store.FailReads(faultstore.ReadFault{When: keys})
	id := r.start(Wish{Environment: "prod"})
	if p, err := r.engine.Progress(t.Context(), id); err != nil || p.Status != course.Running || p.States[course.Waiting] != 8 {
		t.Fatalf("without jobs it is %+v (%v)", p, err)
	}
	mend()
	if p := r.end(id); p.Status != course.Done {
		t.Errorf("%s: %s\n%s", p.Status, p.Why, r.states(id))
	}
	defer r.store.FailReads(faultstore.ReadFault{When: keys})()
	stopped := r.start(Wish{Environment: "prod", Force: true})
	if _, err := r.engine.Stop(t.Context(), stopped, by); err != nil {
		t.Fatal(err)
	}
	if p := r.end(stopped); p.Status != course.Halted || len(r.began(stopped)) != 8 {
		t.Errorf("%s: %s\n%s", p.Status, p.Why, r.states(stopped))
	}
}

// TestATaskOfADeploymentThatHasJustEnded carries a task out that was prepared while its deployment was under way, and begins when that is
// over: what was recorded is not done again, and what nobody recorded is not done.
func TestATaskOfADeploymentThatHasJustEnded(t *testing.T) {
	r := newRig(t, 1)
	r.graph("g", "- {id: a, type: shell, version: 2.1.0, role: '*', parameters: {cmd: x}}")
	r.environment("e", "hosts: {\"1\": node1}\nnodes: {\"1\": {uid: \"1\", roles: [n]}}", "g")
	id := r.start(Wish{Environment: "e"})
	r.end(id)
	d, err := r.engine.Deployment(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	d.Status = course.Running // as it was when the task was prepared
	before, err := r.engine.load(t.Context(), d)
	if err != nil {
		t.Fatal(err)
	}
	tasks, err := r.engine.Tasks(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	r.began(id)
	for of, want := range map[job.ID]fault.Code{job.ID(tasks[0].Job): "", job.ID(tasks[0].Job + 1): fault.WrongState} {
		env := &exec.Env{Job: of, Op: r.job(tasks[0].Job).Ops[0].Input, Log: func(string, any) {}}
		if _, err := r.engine.carry(t.Context(), env, simulated{name: "node1", sim: r.sim}, before, d, 0); want == "" && err != nil || want != "" && !fault.Is(err, want) {
			t.Errorf("job %d ends with %v", of, err)
		}
	}
	if began := r.began(id); len(began) > 0 {
		t.Errorf("%v were begun again", began)
	}
}

// TestATaskOfAnAttemptThatIsOver carries a task out that was prepared in an attempt that has ended since, while the next one is under way: it is not done in
// its name, too.
func TestATaskOfAnAttemptThatIsOver(t *testing.T) {
	r := newRig(t, 1)
	r.graph("g", "- {id: a, type: shell, version: 2.1.0, role: '*', parameters: {cmd: x}}")
	r.environment("e", "hosts: {\"1\": node1}\nnodes: {\"1\": {uid: \"1\", roles: [n]}}", "g")
	r.simulate(func(context.Context, string, agent.Task) error { return fault.New(fault.Failed, "the disk is full") })
	id := r.start(Wish{Environment: "e"})
	r.end(id)
	d, err := r.engine.Deployment(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	before, err := r.engine.load(t.Context(), d)
	if err != nil {
		t.Fatal(err)
	}
	tasks, err := r.engine.Tasks(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	first := r.job(tasks[0].Job)
	reached, gate := make(chan struct{}), make(chan struct{})
	open := sync.OnceFunc(func() { close(gate) })
	defer open()
	r.simulate(func(context.Context, string, agent.Task) error {
		close(reached)
		<-gate
		return nil
	})
	if _, err := r.engine.Resume(t.Context(), id, true, by); err != nil {
		t.Fatal(err)
	}
	<-reached
	r.began(id)
	r.simulate(nil)
	for of, want := range map[job.ID]string{first.ID: "the disk is full", first.ID + 100: "deployment 1 is not under way"} {
		env := &exec.Env{Job: of, Op: first.Ops[0].Input, Log: func(string, any) {}}
		if _, err := r.engine.carry(t.Context(), env, simulated{name: "node1", sim: r.sim}, before, d, 0); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("job %d ends with %v", of, err)
		}
	}
	for name, params := range map[string]map[string]any{"another attempt": {"attempt": int64(1)}, "another task": {"task": "b"}, "another node": {"node": "2"}, "another step": {"step": int64(1)}} {
		op := *first.Ops[0].Input
		op.Params = maps.Clone(op.Params)
		op.Params["attempt"] = int64(2)
		maps.Copy(op.Params, params)
		if _, err := r.engine.prepare(t.Context(), &exec.Env{Job: 99, Op: &op, Log: func(string, any) {}}); !fault.Is(err, fault.WrongState) {
			t.Errorf("a job for %s is prepared: %v", name, err)
		}
	}
	if began := r.began(id); len(began) > 0 {
		t.Errorf("%v were begun again", began)
	}
	open()
	if p := r.end(id); p.Status != course.Done {
		t.Errorf("it is %s: %s", p.Status, p.Why)
	}
}

// TestJobsThatWereTakenAllTheSame has jobs be there, and end, that the queue seemed not to have taken: when they are submitted again that is found out.
func TestJobsThatWereTakenAllTheSame(t *testing.T) {
	r := newRig(t, 1)
	r.graph("g", "- {id: a, type: shell, version: 2.1.0, role: '*', parameters: {cmd: x}}")
	r.environment("e", "hosts: {\"1\": node1}\nnodes: {\"1\": {uid: \"1\", roles: [n]}}", "g")
	r.patience = 20 * time.Millisecond
	r.another()
	mend := r.store.FailReads(faultstore.ReadFault{When: func(kind store.Kind, _ string) bool { return kind == queue.KindSubmission }})
	id := r.start(Wish{Environment: "e"})
	mend()
	op, err := r.engine.opcode(r.engine.runOf(id), 0, masterOf(r.engine.inventory()))
	if err != nil {
		t.Fatal(err)
	}
	out, err := r.queue.SubmitMany(t.Context(), []queue.Submission{{Ops: []*opcode.Opcode{op}, IgnoreDrain: true, Key: "deployment-1-1-0"}})
	if err != nil || out[0].Err != nil {
		t.Fatal(err, out)
	}
	if _, err := r.queue.Wait(t.Context(), out[0].ID, (*job.Job).Final); err != nil {
		t.Fatal(err)
	}
	if p := r.end(id); p.Status != course.Done {
		t.Errorf("%s: %s\n%s", p.Status, p.Why, r.states(id))
	}
	if began := r.began(id); len(began) != 1 {
		t.Errorf("begun were %v", began)
	}
}

// TestAnEndThatCouldNotBeStoredTouchesNoNextAttempt: it is stored with the request that finds the deployment ended, and the next attempt goes on by itself.
func TestAnEndThatCouldNotBeStoredTouchesNoNextAttempt(t *testing.T) {
	r := web(t)
	refused := make(chan struct{})
	ended := r.store.Inject(faultstore.Fault{Do: faultstore.FailBefore, Err: fault.New(fault.WrongState, "damage"), When: func(tx store.Tx) bool {
		return slices.ContainsFunc(tx.Put, func(p store.Put) bool {
			return p.Key.Kind == KindDeployment && strings.Contains(string(p.Value), `"status":"error"`)
		})
	}})
	r.simulate(func(_ context.Context, node string, _ agent.Task) error {
		if node == "node4" {
			return fault.New(fault.Failed, "the disk is full")
		}
		return nil
	})
	id := r.start(Wish{Environment: "prod"})
	<-ended
	if _, err := r.engine.Stop(t.Context(), id, by); err != nil {
		t.Fatal(err)
	}
	if p := r.end(id); p.Status != course.Halted {
		t.Fatalf("it is %s: %s", p.Status, p.Why)
	}
	reached, gate := make(chan struct{}, 8), make(chan struct{})
	r.simulate(func(context.Context, string, agent.Task) error {
		reached <- struct{}{}
		<-gate
		return nil
	})
	if _, err := r.engine.Resume(t.Context(), id, true, by); err != nil {
		t.Fatal(err)
	}
	<-reached
	r.engine.later(func() { close(refused) }) // behind what was to be tried again
	<-refused
	if d := r.engine.known().Deployment(id); d.Status != course.Running || d.Attempt != 2 || r.engine.runOf(id) == nil {
		t.Errorf("it is %s in attempt %d: %s", d.Status, d.Attempt, d.Why)
	}
	close(gate)
	if p := r.end(id); p.Status != course.Done {
		t.Errorf("in the end it is %s: %s", p.Status, p.Why)
	}
}

// TestJobsThatEndBehindTooManyChanges has a job end, and more change than anybody keeps, while deployments are not looked at.
func TestJobsThatEndBehindTooManyChanges(t *testing.T) {
	r := web(t)
	reached, gate := make(chan struct{}, 8), make(chan struct{})
	open := sync.OnceFunc(func() { close(gate) })
	defer open()
	r.simulate(func(context.Context, string, agent.Task) error {
		reached <- struct{}{}
		<-gate
		return nil
	})
	id := r.start(Wish{Environment: "prod", Only: []string{"motd"}})
	<-reached
	tasks, err := r.engine.Tasks(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	busy, free := make(chan struct{}), make(chan struct{})
	looked := make(chan error, 1)
	go func() {
		looked <- r.engine.act(r.Context(), func() error {
			close(busy)
			<-free
			return nil
		})
	}()
	<-busy
	open()
	for i := range tasks {
		if tasks[i].Job == 0 {
			continue
		}
		if _, err := r.queue.Wait(t.Context(), job.ID(tasks[i].Job), (*job.Job).Final); err != nil {
			t.Fatal(err)
		}
	}
	now := r.engine.cfg.Picture.Load().Revision
	for range 10_001 {
		r.engine.cfg.Picture.Committed(&state.Change{Revision: now})
	}
	r.engine.cfg.Picture.Publish()
	close(free)
	if err := <-looked; err != nil {
		t.Fatal(err)
	}
	if p := r.end(id); p.Status != course.Done || p.States[course.Ready] != 4 {
		t.Errorf("it is %s: %s %v", p.Status, p.Why, p.States)
	}
}

// TestATaskOfWhomNobodyCanTellIsNotRecorded: a node that follows another leader, or cannot be reached, says nothing of how a task ended.
func TestATaskOfWhomNobodyCanTellIsNotRecorded(t *testing.T) {
	r := newRig(t, 1)
	r.graph("g", "- {id: a, type: shell, version: 2.1.0, role: '*', parameters: {cmd: x}}")
	r.environment("e", "hosts: {\"1\": node1}\nnodes: {\"1\": {uid: \"1\", roles: [n]}}", "g")
	reached, gate := make(chan struct{}), make(chan struct{})
	open := sync.OnceFunc(func() { close(gate) })
	defer open()
	r.simulate(func(context.Context, string, agent.Task) error {
		close(reached)
		<-gate
		return nil
	})
	id := r.start(Wish{Environment: "e"})
	<-reached
	tasks, err := r.engine.Tasks(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	env := &exec.Env{Job: job.ID(tasks[0].Job), Op: r.job(tasks[0].Job).Ops[0].Input, Log: func(string, any) {}}
	for _, code := range []fault.Code{fault.Unavailable, fault.Fenced} {
		r.simulate(func(context.Context, string, agent.Task) error { return fault.New(code, "nobody knows") })
		run := r.engine.runOf(id)
		if _, err := r.engine.carry(t.Context(), env, simulated{name: "node1", sim: r.sim}, run, run.d, 0); !fault.Is(err, code) {
			t.Errorf("%s: it ends with %v", code, err)
		}
		if x := r.engine.known().Task(id, 0).Record; x != nil {
			t.Errorf("%s: recorded is %+v", code, x)
		}
	}
	open()
	if p := r.end(id); p.Status != course.Done {
		t.Errorf("it is %s: %s", p.Status, p.Why)
	}
}

// TestADrainedQueueTakesTheJobsOfADeployment: what was begun comes to its end, while no other job is taken.
func TestADrainedQueueTakesTheJobsOfADeployment(t *testing.T) {
	r := web(t)
	if err := r.queue.SetDrained(t.Context(), true, by); err != nil {
		t.Fatal(err)
	}
	if p := r.end(r.start(Wish{Environment: "prod"})); p.Status != course.Done {
		t.Errorf("it is %s: %s", p.Status, p.Why)
	}
}
