package rollout

import (
	"context"
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
	"github.com/drover-project/drover/internal/queue"
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
	r := web(t)
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
