package queue_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/opcode"
	"github.com/drover-project/drover/internal/queue"
	"github.com/drover-project/drover/internal/schedule"
)

func TestJobRunsItsOpcodesInTurn(t *testing.T) {
	r := newRig(t, 2)
	id := r.submit(dummy, dummy)
	r.began(id, 0)
	r.finish(id, 0, nil)
	r.began(id, 1)
	r.finish(id, 1, nil)
	j := r.status(id, job.Success)
	if string(j.Ops[1].Result) != `"OP_TEST_DUMMY"` || j.Started == 0 || j.Ended < j.Started || j.Ops[0].Exec == 0 {
		t.Errorf("job %s", j.Encode())
	}
}

func TestFailureEndsTheJob(t *testing.T) {
	r := newRig(t, 2)
	id := r.submit(dummy, dummy)
	r.began(id, 0)
	r.finish(id, 0, fault.New(fault.Failed, "no luck"))
	j := r.status(id, job.Error)
	if got := string(j.Ops[0].Result) + string(j.Ops[1].Result); got != `["OpExecError",["no luck"]]["OpExecError",["Preceding opcode failed"]]` {
		t.Errorf("results %s", got)
	}
}

func TestEmptyJobSucceedsAtOnce(t *testing.T) {
	r := newRig(t, 2)
	r.status(r.submit(), job.Success)
}

func TestPriorityThenID(t *testing.T) {
	r := newRig(t, 1)
	first := r.submit(dummy)
	r.began(first, 0)
	low := r.submit(dummy)
	normal := r.submit(dummy)
	high := r.submit(strings.Replace(dummy, `"result"`, `"priority":-10,"result"`, 1))
	hurried := r.submit(dummy)
	for id, priority := range map[job.ID]int{low: 10, hurried: -15} {
		if a, err := r.q.ChangePriority(ctx, id, priority, queue.By{}); err != nil || !a.OK {
			t.Fatal(a, err)
		}
	}
	last := first
	for _, id := range []job.ID{hurried, high, normal, low} {
		r.finish(last, 0, nil)
		r.began(id, 0)
		last = id
	}
	r.finish(last, 0, nil)
}

func TestWaitingForALockTakesNoSlot(t *testing.T) {
	r := newRig(t, 2)
	holder := r.submit(shutdown("web1"))
	r.began(holder, 0)
	var waiters []job.ID
	for range 5 {
		waiters = append(waiters, r.submit(shutdown("web1")))
	}
	r.status(waiters[4], job.Waiting)
	other := r.submit(dummy)
	r.began(other, 0)
	x, err := r.q.Explain(ctx, waiters[1])
	r.check(err)
	if x.Locks.Waits == nil || x.Locks.Waits.Name != "instance/web1" || !strings.Contains(x.Why, "held by job 1") {
		t.Errorf("explanation %+v", x)
	}
	r.finish(other, 0, nil)
	last := holder
	for _, id := range waiters {
		r.finish(last, 0, nil)
		r.began(id, 0)
		last = id
	}
	r.finish(last, 0, nil)
	r.status(last, job.Success)
}

func TestDependencies(t *testing.T) {
	r := newRig(t, 5)
	base := r.submit(dummy)
	ok, bad, either := r.submit(after(base, `["success"]`)), r.submit(after(base, `["error"]`)), r.submit(after(base, `[]`))
	unknown := r.submit(after(99, `[]`))
	if j := r.status(unknown, job.Error); !strings.Contains(string(j.Ops[0].Result), "Job 99 not found") {
		t.Errorf("unknown dependency: %s", j.Ops[0].Result)
	}
	x, err := r.q.Explain(ctx, ok)
	r.check(err)
	if x.Step != schedule.WaitDependency || len(x.Change) == 0 {
		t.Errorf("explanation %+v", x)
	}
	r.finish(base, 0, nil)
	r.status(ok, job.Success)
	r.status(either, job.Success)
	if j := r.status(bad, job.Error); !strings.Contains(string(j.Ops[0].Result), "finished with status 'success'") {
		t.Errorf("unmet dependency: %s", j.Ops[0].Result)
	}
	canceled := r.submit(dummy)
	follower := r.submit(after(canceled, `["success"]`))
	r.began(canceled, 0)
	r.finish(canceled, 0, errors.New("x"))
	r.status(follower, job.Error)
}

func TestDependencyOnACanceledJobCancels(t *testing.T) {
	r := newRig(t, 1)
	busy := r.submit(dummy)
	r.began(busy, 0)
	base := r.submit(dummy)
	follower := r.submit(after(base, `["success"]`))
	a, err := r.q.Cancel(ctx, base, false, queue.By{})
	r.check(err)
	if !a.OK || a.Message != "Dequeued job 2" {
		t.Errorf("answer %v", a)
	}
	r.finish(busy, 0, nil)
	r.status(follower, job.Canceled)
}

func TestCircleIsRefused(t *testing.T) {
	r := newRig(t, 1)
	out, err := r.q.SubmitMany(ctx, []queue.Submission{
		{Ops: parse(t, after(2, `[]`))}, {Ops: parse(t, after(-1, `[]`))}, {Ops: parse(t, after(3, `[]`))}, {Ops: parse(t, delay)},
	})
	r.check(err)
	for i, want := range []string{"wait for itself", "wait for itself", "itself", ""} {
		if got := out[i].Err; want == "" && got != nil || want != "" && (got == nil || !strings.Contains(got.Error(), want)) {
			t.Errorf("job %d: %v, want %q", i, got, want)
		}
	}
	if out[3].ID != 4 {
		t.Errorf("the last job got id %d", out[3].ID)
	}
}

func TestCancelAtEachStage(t *testing.T) {
	r := newRig(t, 1)
	running := r.submit(shutdown("web1"), shutdown("web1"))
	r.began(running, 0)
	queued := r.submit(dummy)
	for id, want := range map[job.ID]queue.Answer{
		queued:  {OK: true, Message: "Dequeued job 2"},
		running: {OK: false, Message: "Job no longer waiting, can't cancel (informed it anyway)"},
		42:      {OK: false, Message: "Job 42 not found in queue"},
	} {
		if got, err := r.q.Cancel(ctx, id, false, queue.By{}); err != nil || got != want {
			t.Errorf("cancel %d: %v %v", id, got, err)
		}
	}
	r.finish(running, 0, nil)
	j := r.status(running, job.Canceled)
	if j.Ops[0].Status != job.Success || string(j.Ops[1].Result) != `"Job canceled by request"` {
		t.Errorf("running job became %s", j.Encode())
	}

	r.setMax(2)
	holder := r.submit(shutdown("web2"))
	r.began(holder, 0)
	waiting := r.submit(shutdown("web2"))
	r.status(waiting, job.Waiting)
	if got, err := r.q.Cancel(ctx, waiting, false, queue.By{}); err != nil || got.Message != "Job successfully cancelled" {
		t.Errorf("cancel of a waiting job: %v %v", got, err)
	}
	r.status(waiting, job.Canceled)
	if got, err := r.q.Cancel(ctx, holder, true, queue.By{}); err != nil || !got.OK {
		t.Errorf("kill: %v %v", got, err)
	}
	if j := r.status(holder, job.Error); !strings.Contains(string(j.Ops[0].Result), "killed on request") {
		t.Errorf("killed job: %s", j.Ops[0].Result)
	}
}

func TestDrain(t *testing.T) {
	r := newRig(t, 1)
	r.check(r.q.SetDrained(ctx, true, queue.By{}))
	if _, err := r.q.Submit(ctx, queue.Submission{Ops: parse(t, delay)}); !fault.Is(err, fault.Drained) {
		t.Errorf("submission to a drained queue: %v", err)
	}
	id, err := r.q.Submit(ctx, queue.Submission{Ops: parse(t, delay), IgnoreDrain: true})
	r.check(err)
	r.status(id, job.Success)
	r.crash()
	if !r.shown.Load().Flags.Drained {
		t.Error("the drain flag was forgotten")
	}
	r.check(r.q.SetDrained(ctx, false, queue.By{}))
	r.check(r.q.SetDrained(ctx, false, queue.By{}))
}

func TestSubmissionKeyIsIdempotent(t *testing.T) {
	r := newRig(t, 1)
	sub := queue.Submission{Ops: parse(t, delay), Key: "deploy-42-ü"}
	other := queue.Submission{Ops: parse(t, dummy), Key: sub.Key}
	first, err := r.q.Submit(ctx, sub)
	r.check(err)
	again := func(when string) {
		t.Helper()
		if id, err := r.q.Submit(ctx, sub); err != nil || id != first {
			t.Errorf("%s: job %d, %v; want job %d", when, id, err, first)
		}
		if id, err := r.q.Submit(ctx, other); !fault.Is(err, fault.Conflict) || !strings.Contains(err.Error(), "TEST_DELAY") {
			t.Errorf("%s: another request with the key is answered with %d, %v", when, id, err)
		}
	}
	again("live")
	r.status(first, job.Success)
	r.crash()
	again("after a restart")
	if ok, err := r.q.Archive(ctx, first, queue.By{}); !ok || err != nil {
		t.Fatal(ok, err)
	}
	again("archived")
	r.crash()
	again("archived, after a restart")
}

func TestSubmissionKeyWithinOneSubmission(t *testing.T) {
	r := newRig(t, 1)
	const key = "deploy-42"
	out, err := r.q.SubmitMany(ctx, []queue.Submission{{Ops: parse(t, delay), Key: key}, {Ops: parse(t, dummy), Key: key}, {Ops: parse(t, delay), Key: key}})
	r.check(err)
	if out[0].Err != nil || out[2].Err != nil || out[0].ID != out[2].ID {
		t.Errorf("the same request twice: %+v", out)
	}
	if !fault.Is(out[1].Err, fault.Conflict) || !strings.Contains(out[1].Err.Error(), "TEST_DELAY") {
		t.Errorf("another request with the key: %+v", out[1])
	}
}

func TestWhatNothingCarriesOutIsRefused(t *testing.T) {
	r := newRig(t, 1)
	if id, err := r.q.Submit(ctx, queue.Submission{Ops: append(parse(t, delay), &opcode.Opcode{ID: "OP_OF_NOBODY"})}); !fault.Is(err, fault.Unsupported) {
		t.Errorf("job %d, %v", id, err)
	}
}

func TestArchive(t *testing.T) {
	r := newRig(t, 1)
	done, running := r.submit(delay), r.submit(dummy)
	r.status(done, job.Success)
	r.began(running, 0)
	for id, want := range map[job.ID]bool{running: false, 77: false} {
		if ok, err := r.q.Archive(ctx, id, queue.By{}); ok != want || err != nil {
			t.Errorf("archive %d: %v %v", id, ok, err)
		}
	}
	if n, left, err := r.q.AutoArchive(ctx, -1, time.Minute, queue.By{}); n != 1 || left != 0 || err != nil {
		t.Errorf("AutoArchive: %d, %d, %v", n, left, err)
	}
	if j, err := r.q.Job(ctx, done); err != nil || !j.Archived || j.Status() != job.Success {
		t.Errorf("archived job: %v %v", j, err)
	}
	if r.q.Jobs().Len() != 1 {
		t.Errorf("%d jobs are live", r.q.Jobs().Len())
	}
	r.finish(running, 0, nil)
	r.status(running, job.Success)
	r.crash()
	if id := r.submit(delay); id != 3 {
		t.Errorf("the next id is %d", id)
	}
}

func TestCrash(t *testing.T) {
	r := newRig(t, 1)
	lost := r.submit(dummy, delay)
	r.began(lost, 0)
	queued := r.submit(delay)
	held := r.rule(1, `"PAUSE"`, `[["opcode",["=","OP_ID","OP_INSTANCE_SHUTDOWN"]]]`)
	paused := r.submit(shutdown("web1"))
	r.held(paused, held)
	r.crash()
	j := r.status(lost, job.Error)
	if !strings.Contains(string(j.Ops[0].Result), "controller ended") || string(j.Ops[1].Result) != `["OpExecError",["Preceding opcode failed"]]` {
		t.Errorf("lost job %s", j.Encode())
	}
	if trail := j.Ops[0].Input.Reason; !strings.Contains(trail[len(trail)-1].Reason, "controller ended") {
		t.Errorf("trail %v", trail)
	}
	r.status(queued, job.Success)
	if h := r.held(paused, held).Hold; h.Since > job.At(time.Now()) || h.Since == 0 {
		t.Errorf("held since %d", h.Since)
	}
}

// What a crash interrupted goes on first, under its locks: not behind a job that is more
// urgent, nor behind a rule that was made meanwhile, and a cancel is told that it has begun.
func TestWhatACrashInterruptedGoesOnFirst(t *testing.T) {
	r := newRig(t, 2)
	half := r.submit(`{"OP_ID":"OP_INSTANCE_STARTUP","instance_name":"web1"}`)
	r.began(half, 0)
	urgent := r.submit(`{"OP_ID":"OP_INSTANCE_SHUTDOWN","instance_name":"web1","priority":-10}`)
	r.status(urgent, job.Waiting)
	hold := r.rule(1, `"PAUSE"`, `[["jobid",[">","id",0]]]`)
	r.held(urgent, hold)
	r.crash()
	r.began(half, 0)
	if !r.gate(half, 0).env.Resumed {
		t.Error("the opcode is not told that it had begun before")
	}
	if a, err := r.q.Cancel(ctx, half, false, queue.By{}); err != nil || a.OK || !strings.Contains(a.Message, "informed") {
		t.Errorf("a cancel is answered %+v, %v", a, err)
	}
	r.check(r.q.DeleteFilter(ctx, hold, queue.By{}))
	r.status(urgent, job.Waiting)
	r.finish(half, 0, fault.New(fault.WrongState, "the instance runs"))
	j := r.status(half, job.Error)
	if class, _, _ := job.DecodeError(j.Ops[0].Result); class != "OpExecError" {
		t.Errorf("it ends with %s, as if nothing had been begun", j.Ops[0].Result)
	}
	r.finish(urgent, 0, nil)
	r.status(urgent, job.Success)
}

// A message is in the log of its job however near to the end it was left: a hundred opcodes at once end about when their
// messages are to be written.
func TestNoMessageIsLostToTheEnd(t *testing.T) {
	const jobs, rounds = 100, 4
	r := newRig(t, jobs)
	for range rounds {
		ids := make([]job.ID, jobs)
		for i := range ids {
			ids[i] = r.submit(dummy)
		}
		var all sync.WaitGroup
		for i, id := range ids {
			all.Go(func() {
				g := r.gate(id, 0)
				<-g.began
				g.env.Logf("almost over")
				time.Sleep(5*time.Millisecond + time.Duration(i-jobs/2)*10*time.Microsecond)
				g.end <- nil
			})
		}
		all.Wait()
		for _, id := range ids {
			if j := r.status(id, job.Success); len(j.Ops[0].Log) != 1 {
				t.Fatalf("job %d has the log %v", id, j.Ops[0].Log)
			}
		}
	}
}

func TestLogMessagesShowWhileTheOpcodeRuns(t *testing.T) {
	r := newRig(t, 1)
	id := r.submit(resumable)
	r.began(id, 0)
	env := r.gate(id, 0).env
	env.Infof("one")
	env.Infof("two")
	r.reaches(id, "running with two messages", func(j *job.Job) bool { return j.Status() == job.Running && j.LastSerial() == 2 })
	env.Infof("three")
	r.crash()
	r.began(id, 0)
	r.gate(id, 0).env.Infof("five")
	r.finish(id, 0, nil)
	if j := r.status(id, job.Success); len(j.Ops[0].Log) != 5 || string(j.Ops[0].Log[2].Payload) != `" - INFO: three"` {
		t.Errorf("job %s", j.Encode())
	}
}

func TestWritesGrowWhileJobsMove(t *testing.T) {
	r := newRig(t, 1)
	before := r.q.Writes()
	if r.q.Jobs(); r.q.Writes() != before {
		t.Error("reading counts as a write")
	}
	id := r.submit(dummy)
	r.began(id, 0)
	submitted := r.q.Writes()
	r.finish(id, 0, nil)
	r.status(id, job.Success)
	if ended := r.q.Writes(); submitted <= before || ended <= submitted {
		t.Errorf("%d at first, %d once the job ran, %d at its end", before, submitted, ended)
	}
}

// TestAQuietQueueTakesWhatItDoesNotBegin: what runs comes to its end, what comes is taken and begins when the queue is opened again.
func TestAQuietQueueTakesWhatItDoesNotBegin(t *testing.T) {
	r := newRig(t, 2)
	runs := r.submit(dummy)
	r.began(runs, 0)
	over, end := context.WithCancel(t.Context())
	end()
	r.q.Quiesce(over) // it gives up waiting
	quiet := make(chan struct{})
	go func() {
		r.q.Quiesce(t.Context())
		close(quiet)
	}()
	later := r.submit(dummy)
	select {
	case <-quiet:
		t.Error("it is quiet while something runs")
	default:
	}
	r.finish(runs, 0, nil)
	r.status(runs, job.Success)
	<-quiet
	if j, err := r.q.Job(ctx, later); err != nil || j.Status() != job.Queued {
		t.Errorf("what came later is %v, %v", j, err)
	}
	r.crash()
	r.began(later, 0)
	r.finish(later, 0, nil)
	r.status(later, job.Success)
}
