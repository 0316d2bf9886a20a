package queue_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/audit"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/queue"
	"github.com/drover-project/drover/internal/store"
	"github.com/drover-project/drover/internal/store/faultstore"
	"github.com/drover-project/drover/internal/testkit"
)

// brief is how long the queue bears a failing store in tests that wait for its
// end: some attempts.
const brief = 150 * time.Millisecond

// newFaultyRig is a rig whose store fails as it is told.
func newFaultyRig(t testing.TB, maxRunning int) (*rig, *faultstore.Store) {
	t.Helper()
	return newPatientRig(t, maxRunning, brief)
}

func newPatientRig(t testing.TB, maxRunning int, patience time.Duration) (*rig, *faultstore.Store) {
	t.Helper()
	var faulty *faultstore.Store
	r := newRigWith(t, maxRunning, func(r *rig) {
		r.storePatience = patience
		r.wrap = func(s store.Store) store.Store {
			faulty = faultstore.New(s)
			return faulty
		}
	})
	return r, faulty
}

// touches chooses the transactions that write or delete an object.
func touches(kind store.Kind, id string) func(store.Tx) bool {
	key := store.Key{Kind: kind, ID: id}
	return func(tx store.Tx) bool {
		return slices.Contains(tx.Delete, key) || slices.ContainsFunc(tx.Put, func(p store.Put) bool { return p.Key == key })
	}
}

// stall keeps all answers of the store from now on until it is called again.
func stall(t testing.TB, r *rig, faulty *faultstore.Store) (goOn func()) {
	t.Helper()
	gate := make(chan struct{})
	held := faulty.Inject(faultstore.Fault{Do: faultstore.Hold, When: touches(queue.KindQueue, "flags"), Gate: gate})
	answer := handedOver(func(ctx context.Context) error { return r.q.SetDrained(ctx, false, queue.By{}) })
	soon(t, held)
	return func() {
		close(gate)
		r.check(soon(t, answer))
	}
}

func TestFailuresOfTheStoreLoseNothing(t *testing.T) {
	for effect, name := range map[faultstore.Effect]string{faultstore.FailBefore: "before", faultstore.FailAfter: "after"} {
		t.Run(name, func(t *testing.T) {
			r, faulty := newFaultyRig(t, 1)
			for skip := range 6 {
				faulty.Inject(faultstore.Fault{Do: effect, Skip: 2 * skip, When: func(tx store.Tx) bool { return len(tx.Put) > 0 }})
			}
			var ids []job.ID
			for range 6 {
				ids = append(ids, r.submit(dummy, delay))
			}
			for _, id := range ids {
				r.began(id, 0)
				r.finish(id, 0, nil)
				r.status(id, job.Success)
			}
			r.crash()
			for _, id := range ids {
				r.status(id, job.Success)
			}
		})
	}
}

// TestAnOutageOfTheStoreIsOutlasted: however long the store fails, the queue goes on when it
// works again. Who waits meanwhile is told, and who comes then is refused.
func TestAnOutageOfTheStoreIsOutlasted(t *testing.T) {
	for name, err := range map[string]error{
		"away":    fault.New(fault.Unavailable, "the store is away"),
		"no room": fault.New(fault.Exhausted, "the disk is full"),
	} {
		t.Run(name, func(t *testing.T) {
			r, faulty := newFaultyRig(t, 2)
			ends, goes := r.submit(dummy), r.submit(dummy)
			r.began(ends, 0)
			r.began(goes, 0)
			over := faulty.Outage(err)
			for _, want := range []string{"was not confirmed in time", "is tried again"} { // the second is not taken in, for the first has shown the outage
				_, err := r.q.Submit(ctx, queue.Submission{Ops: parse(t, delay), Key: "twice"})
				if !fault.Is(err, fault.Unavailable) || !strings.Contains(err.Error(), want) {
					t.Errorf("a submission is told %v, not %q", err, want)
				}
			}
			r.finish(ends, 0, nil) // which cannot be stored
			if err := r.q.Health(); err == nil {
				t.Error("all is said to be well")
			}
			over()
			r.status(ends, job.Success)
			for limit := time.Now().Add(testkit.Patience()); r.q.Health() != nil && time.Now().Before(limit); { // what is stored is seen a moment before the queue hears of it
				time.Sleep(time.Millisecond)
			}
			id := r.submit(delay)
			r.finish(goes, 0, nil)
			r.status(goes, job.Success)
			r.finish(id, 0, nil)
			r.status(id, job.Success)
			if err := r.q.Health(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestAnOutageHoldsUpNoStop: what cannot be stored when the queue closes is given up.
func TestAnOutageHoldsUpNoStop(t *testing.T) {
	r, faulty := newFaultyRig(t, 1)
	running := r.submit(dummy)
	r.began(running, 0)
	faulty.Inject(faultstore.Fault{Do: faultstore.CrashBefore})
	if _, err := r.q.Submit(ctx, queue.Submission{Ops: parse(t, delay)}); !fault.Is(err, fault.Unavailable) {
		t.Errorf("submission to a broken store: %v", err)
	}
	r.crash()
	r.status(running, job.Error)
	if r.q.Jobs().Len() != 1 {
		t.Errorf("%d jobs, of which one was acknowledged", r.q.Jobs().Len())
	}
}

// A write that fails twice, while a later write of the same job succeeds and
// is settled in between, must not remove the job.
func TestWritingAgainKeepsAJobThatEnded(t *testing.T) {
	r, faulty := newFaultyRig(t, 1)
	r.began(r.submit(dummy), 0)
	goOn := stall(t, r, faulty)
	faulty.Inject(faultstore.Fault{Do: faultstore.FailBefore, When: touches(queue.KindJob, "2")})
	again := faulty.Inject(faultstore.Fault{Do: faultstore.FailBefore, Skip: 2, When: touches(queue.KindJob, "2")})
	submitted := handedOver(func(ctx context.Context) error {
		_, err := r.q.Submit(ctx, queue.Submission{Ops: parse(t, dummy)})
		return err
	})
	cancelled := handedOver(func(ctx context.Context) error {
		_, err := r.q.Cancel(ctx, 2, false, queue.By{})
		return err
	})
	goOn()
	r.check(soon(t, cancelled))
	r.check(soon(t, submitted))
	soon(t, again)
	r.crash()
	r.status(2, job.Canceled)
}

// A write of a rule that fails, while a later change of it succeeds, must not
// bring back what the rule was.
func TestWritingAgainKeepsARuleAsItIs(t *testing.T) {
	r, faulty := newFaultyRig(t, 1)
	goOn := stall(t, r, faulty)
	faulty.Inject(faultstore.Fault{Do: faultstore.FailBefore, When: touches(queue.KindFilter, paused)})
	var changed []<-chan error
	for priority := range 2 {
		changed = append(changed, handedOver(func(ctx context.Context) error {
			_, _, err := r.q.PutFilter(ctx, paused, rule(t, priority, `"PAUSE"`, `[]`), queue.By{})
			return err
		}))
	}
	goOn()
	for _, done := range changed {
		r.check(soon(t, done))
	}
	r.crash()
	if rules := r.shown.Load().Rules; len(rules) != 1 || rules[0].Priority != 1 {
		t.Errorf("rules after a restart: %v", rules)
	}
}

// TestWritingAgainShowsLocksAsTheyAre: a write fails by which a job came to wait for a lock, and one behind it succeeds by which it waits no
// more. When the first is written again it does not bring the job back to where it waited.
func TestWritingAgainShowsLocksAsTheyAre(t *testing.T) {
	r, faulty := newPatientRig(t, 2, patience)
	r.began(r.submit(shutdown("web1")), 0)
	goOn := stall(t, r, faulty)
	faulty.Inject(faultstore.Fault{Do: faultstore.FailBefore, When: touches(queue.KindJob, "2")})
	submitted := handedOver(func(ctx context.Context) error {
		_, err := r.q.Submit(ctx, queue.Submission{Ops: parse(t, shutdown("web1"))})
		return err
	})
	cancelled := handedOver(func(ctx context.Context) error {
		_, err := r.q.Cancel(ctx, 2, false, queue.By{})
		return err
	})
	goOn()
	r.check(soon(t, cancelled))
	r.check(soon(t, submitted)) // it was written again
	for l := range r.shown.Load().Locks.All() {
		if len(l.Pending) > 0 {
			t.Errorf("%v wait for %s", l.Pending, l.Name)
		}
	}
}

func TestCloseSettlesWhatIsWrittenAgain(t *testing.T) {
	r, faulty := newFaultyRig(t, 1)
	goOn := stall(t, r, faulty)
	faulty.Inject(faultstore.Fault{Do: faultstore.FailBefore, When: touches(queue.KindJob, "1")})
	submitted := handedOver(func(ctx context.Context) error {
		_, err := r.q.Submit(ctx, queue.Submission{Ops: parse(t, delay)})
		return err
	})
	closed := r.closeInBackground()
	goOn()
	soon(t, closed)
	r.check(soon(t, submitted))
}

// closeInBackground begins to close the queue; it takes no requests any more
// when this returns.
func (r *rig) closeInBackground() <-chan struct{} {
	closed := make(chan struct{})
	go func() {
		r.q.Close()
		close(closed)
	}()
	impatient, end := context.WithCancel(ctx) // an answer may wait for the store
	end()
	for {
		if _, err := r.q.Cancel(impatient, 999_999, false, queue.By{}); fault.Is(err, fault.Unavailable) {
			return closed
		}
	}
}

func TestSubmissionKeyIsAnsweredWhenItsJobIsDurable(t *testing.T) {
	r, faulty := newFaultyRig(t, 1)
	goOn := stall(t, r, faulty)
	for range 20 {
		faulty.Inject(faultstore.Fault{Do: faultstore.FailBefore, When: touches(queue.KindJob, "1")})
	}
	submit := func(ctx context.Context) error {
		_, err := r.q.Submit(ctx, queue.Submission{Ops: parse(t, delay), Key: "k"})
		return err
	}
	first, second := handedOver(submit), handedOver(submit)
	goOn()
	for _, answer := range []<-chan error{first, second} {
		if err := soon(t, answer); !fault.Is(err, fault.Unavailable) {
			t.Errorf("a job that could not be stored was answered with %v", err)
		}
	}
}

// TestARepeatedSubmissionWaitsForItsJob: a submission comes again while its job is on its way to the store, which fails once. The second
// answer waits, as the first one does, until the job is there; whoever asks again needs no third try.
func TestARepeatedSubmissionWaitsForItsJob(t *testing.T) {
	r, faulty := newPatientRig(t, 1, patience)
	goOn := stall(t, r, faulty)
	faulty.Inject(faultstore.Fault{Do: faultstore.FailBefore, When: touches(queue.KindJob, "1")})
	submit := func(ctx context.Context) error {
		id, err := r.q.Submit(ctx, queue.Submission{Ops: parse(t, delay), Key: "k"})
		if err == nil && id != 1 {
			t.Errorf("it is answered with job %d", id)
		}
		return err
	}
	first, second := handedOver(submit), handedOver(submit)
	goOn()
	r.check(soon(t, second))
	r.check(soon(t, first))
}

func TestUnreadableSubmissionKeyMakesNoSecondJob(t *testing.T) {
	r, faulty := newFaultyRig(t, 1)
	sub := queue.Submission{Ops: parse(t, delay), Key: "k"}
	id, err := r.q.Submit(ctx, sub)
	r.check(err)
	r.status(id, job.Success)
	if ok, err := r.q.Archive(ctx, id, queue.By{}); !ok || err != nil {
		t.Fatal(ok, err)
	}
	faulty.FailReads(faultstore.ReadFault{})
	if again, err := r.q.Submit(ctx, sub); !fault.Is(err, fault.Unavailable) {
		t.Errorf("submitted again: job %d, %v", again, err)
	}
}

// A dependency that cannot be read fails no job: what it came to is asked for
// once, when the job comes, and a job that cannot be told is not taken.
func TestUnreadableDependencyFailsNothing(t *testing.T) {
	r, faulty := newFaultyRig(t, 1)
	base := r.submit(delay)
	r.status(base, job.Success)
	if ok, err := r.q.Archive(ctx, base, queue.By{}); !ok || err != nil {
		t.Fatal(ok, err)
	}
	id := r.submit(depending(base), depending(base))
	r.began(id, 0)
	faulty.FailReads(faultstore.ReadFault{})
	if _, err := r.q.Submit(ctx, queue.Submission{Ops: parse(t, depending(base))}); !fault.Is(err, fault.Unavailable) {
		t.Errorf("a dependency that cannot be read: %v", err)
	}
	r.finish(id, 0, nil)
	r.began(id, 1)
	r.finish(id, 1, nil)
	r.status(id, job.Success)
}

func depending(on job.ID) string {
	return strings.Replace(dummy, `"result"`, fmt.Sprintf(`"depends":[[%d,["success"]]],"result"`, on), 1)
}

// A job that was decided to run, and whose decision becomes durable when the
// queue has begun to close, has not begun: it runs after the next start.
func TestAStopPunishesNoJobThatHasNotBegun(t *testing.T) {
	r, faulty := newFaultyRig(t, 1)
	goOn := stall(t, r, faulty)
	submitted := handedOver(func(ctx context.Context) error {
		_, err := r.q.Submit(ctx, queue.Submission{Ops: parse(t, dummy)})
		return err
	})
	closed := r.closeInBackground()
	goOn()
	r.check(soon(t, submitted))
	soon(t, closed)
	r.crash()
	r.began(1, 0)
	r.finish(1, 0, nil)
	if j := r.status(1, job.Success); r.runs["1/0"] != 1 || len(j.Ops[0].Log) != 0 {
		t.Errorf("ran %d times, log %v", r.runs["1/0"], j.Ops[0].Log)
	}
}

// Opcodes that run when the queue closes get the time that the configuration
// gives them, and what follows of their jobs is left to the next start.
func TestACloseGivesOpcodesTime(t *testing.T) {
	r := newRigWith(t, 1, func(r *rig) { r.grace = patience })
	id := r.submit(dummy, dummy)
	r.began(id, 0)
	closed := r.closeInBackground()
	if err := r.q.SetDrained(ctx, true, queue.By{}); !fault.Is(err, fault.Unavailable) {
		t.Errorf("a request to a closing queue: %v", err)
	}
	r.finish(id, 0, nil)
	soon(t, closed)
	r.crash()
	r.began(id, 1)
	r.finish(id, 1, nil)
	r.status(id, job.Success)
}

// An object that cannot be read takes nothing else with it: of a job, the
// others go on; in place of a rule, everything is held until somebody looks.
func TestUnreadableObjectsAreLeftOut(t *testing.T) {
	r := newRig(t, 1)
	r.began(r.submit(dummy), 0)
	queued := r.submit(dummy)
	waits := r.submit(depending(queued))
	put := func(kind store.Kind, id, text string) {
		_, err := store.Commit(ctx, r.store, store.Tx{Put: []store.Put{{Key: store.Key{Kind: kind, ID: id}, Value: []byte(text)}}})
		r.check(err)
	}
	put(queue.KindJob, queued.String(), `{"id":2,"ops":[{"input":{"OP_ID":"OP_NOPE"}}]}`)
	put(queue.KindFilter, "11111111-1111-1111-1111-111111111111", `{"action":7}`)
	r.crash()
	if n := len(r.q.Unreadable()); n != 2 {
		t.Errorf("%d unreadable: %v", n, r.q.Unreadable())
	}
	next := r.submit(dummy)
	if next != waits+1 {
		t.Errorf("the next id is %d", next)
	}
	r.held(next, "11111111-1111-1111-1111-111111111111")
	r.check(r.q.DeleteFilter(ctx, "11111111-1111-1111-1111-111111111111", queue.By{}))
	r.began(next, 0)
	r.finish(next, 0, nil)
	if j := r.status(next, job.Success); j.ID != next || r.q.Jobs().Get(waits).Status() != job.Queued {
		t.Error("a job went on though nobody can tell how the one ended on which it depends")
	}
}

// No id is given twice, wherever the job is that has it and whatever lies beside
// it.
func TestNoIDIsGivenTwice(t *testing.T) {
	put := func(kind store.Kind, id, text string) func(r *rig, newest job.ID) {
		return func(r *rig, _ job.ID) {
			_, err := store.Commit(ctx, r.store, store.Tx{Put: []store.Put{{Key: store.Key{Kind: kind, ID: id}, Value: []byte(text)}}})
			r.check(err)
		}
	}
	for what, happens := range map[string]func(r *rig, newest job.ID){
		"nothing":               func(*rig, job.ID) {},
		"a job without a name":  put(queue.KindJob, "x", `{}`),
		"the newest is damaged": put(queue.KindJob, "2", `{"id":2,"ops":7}`),
		"the newest is archived": func(r *rig, newest job.ID) {
			_, err := r.q.Archive(ctx, newest, queue.By{})
			r.check(err)
		},
		"all are archived": func(r *rig, _ job.ID) {
			_, _, err := r.q.AutoArchive(ctx, -1, time.Minute, queue.By{})
			r.check(err)
		},
		"all are archived, beside what is no job": func(r *rig, _ job.ID) {
			_, _, err := r.q.AutoArchive(ctx, -1, time.Minute, queue.By{})
			r.check(err)
			put(queue.KindArchived, "x", `{}`)(r, 0)
			put(queue.KindArchived, "y", `{}`)(r, 0)
		},
	} {
		t.Run(what, func(t *testing.T) {
			r := newRig(t, 1)
			r.status(r.submit(delay), job.Success)
			newest := r.submit(delay)
			r.status(newest, job.Success)
			happens(r, newest)
			r.crash()
			if id := r.submit(delay); id != newest+1 {
				t.Errorf("the next id is %d, behind %d", id, newest)
			}
		})
	}
}

// An opcode that completes while the controller shuts down leaves the rest of
// its job to the next start, also when that depends on an archived job.
func TestShutdownBetweenOpcodes(t *testing.T) {
	r := newRig(t, 1)
	base := r.submit(delay)
	r.status(base, job.Success)
	if ok, err := r.q.Archive(ctx, base, queue.By{}); !ok || err != nil {
		t.Fatal(ok, err)
	}
	id := r.submit(strings.Replace(depending(base), `"result"`, `"comment":"`+stubborn+`","result"`, 1), dummy)
	r.began(id, 0)
	closed := r.closeInBackground()
	r.finish(id, 0, nil)
	soon(t, closed)
	r.crash()
	r.began(id, 1)
	r.finish(id, 1, nil)
	r.status(id, job.Success)
}

// Who is told that a job cannot be cancelled any more is not told so before its end is durable.
func TestAnAnswerWaitsForWhatItRestsUpon(t *testing.T) {
	r, faulty := newFaultyRig(t, 1)
	r.began(r.submit(dummy), 0) // takes the only slot
	id := r.submit(dummy)
	goOn := stall(t, r, faulty)
	first := handedOver(func(ctx context.Context) error {
		_, err := r.q.Cancel(ctx, id, false, queue.By{})
		return err
	})
	p := &probe{Context: ctx, waiting: make(chan struct{})}
	second := make(chan queue.Answer, 1)
	go func() {
		a, err := r.q.Cancel(p, id, false, queue.By{})
		if err != nil {
			t.Error(err)
		}
		second <- a
	}()
	select {
	case <-p.waiting:
	case a := <-second:
		t.Errorf("answered %v while the first cancel is not durable", a)
		second <- a
	}
	goOn()
	r.check(soon(t, first))
	if a := soon(t, second); a.OK {
		t.Errorf("the second cancel was answered %v", a)
	}
	r.status(id, job.Canceled)
}

// Nor is who is told that a rule is not there, before its deletion is durable.
func TestARefusalWaitsForWhatItRestsUpon(t *testing.T) {
	r, faulty := newFaultyRig(t, 1)
	rule := r.rule(1, `"PAUSE"`, `[["opcode",["=","OP_ID","OP_TEST_DUMMY"]]]`)
	goOn := stall(t, r, faulty)
	first := handedOver(func(ctx context.Context) error { return r.q.DeleteFilter(ctx, rule, queue.By{}) })
	p := &probe{Context: ctx, waiting: make(chan struct{})}
	second := make(chan error, 1)
	go func() { second <- r.q.DeleteFilter(p, rule, queue.By{}) }()
	select {
	case <-p.waiting:
	case err := <-second:
		t.Errorf("answered %v while the first deletion is not durable", err)
		second <- err
	}
	goOn()
	r.check(soon(t, first))
	if err := soon(t, second); !fault.Is(err, fault.NotFound) {
		t.Errorf("the second deletion was answered %v", err)
	}
}

// A controller that deletes a rule and loses the lead before that is durable tells nobody that the rule is not there: it is.
func TestARefusalUponWhatIsLostIsNone(t *testing.T) {
	r, faulty := newFaultyRig(t, 1)
	rule := r.rule(1, `"PAUSE"`, `[["opcode",["=","OP_ID","OP_TEST_DUMMY"]]]`)
	goOn := stall(t, r, faulty)
	faulty.Inject(faultstore.Fault{Do: faultstore.CrashBefore, Err: fault.New(fault.Fenced, "another leads"), When: touches(queue.KindFilter, rule)})
	first := handedOver(func(ctx context.Context) error { return r.q.DeleteFilter(ctx, rule, queue.By{}) })
	p := &probe{Context: ctx, waiting: make(chan struct{})}
	second := make(chan error, 1)
	go func() { second <- r.q.DeleteFilter(p, rule, queue.By{}) }()
	soon(t, p.waiting)
	goOn()
	if err := soon(t, first); !fault.Is(err, fault.Unavailable) {
		t.Errorf("the first deletion was answered %v", err)
	}
	if err := soon(t, second); !fault.Is(err, fault.Unavailable) {
		t.Errorf("the second deletion was answered %v", err)
	}
}

func TestKillBeforeTheOpcodeBegan(t *testing.T) {
	r, faulty := newFaultyRig(t, 1)
	goOn := stall(t, r, faulty)
	submitted := handedOver(func(ctx context.Context) error {
		_, err := r.q.Submit(ctx, queue.Submission{Ops: parse(t, dummy)})
		return err
	})
	killed := handedOver(func(ctx context.Context) error {
		a, err := r.q.Cancel(ctx, 1, true, queue.By{})
		if !a.OK {
			t.Errorf("answer %v", a)
		}
		return err
	})
	goOn()
	r.check(soon(t, submitted))
	r.check(soon(t, killed))
	if j := r.status(1, job.Error); !strings.Contains(string(j.Ops[0].Result), "killed on request") {
		t.Errorf("killed job: %s", j.Ops[0].Result)
	}
}

// Something that an opcode left behind writes to the log when its job has long
// ended.
func TestLateLogMessageLeavesTheJobAlone(t *testing.T) {
	r := newRig(t, 1)
	id := r.submit(dummy)
	r.began(id, 0)
	r.finish(id, 0, nil)
	r.status(id, job.Success)
	r.gate(id, 0).env.Infof("too late")
	r.crash()
	if j := r.status(id, job.Success); len(j.Ops[0].Log) != 0 {
		t.Errorf("log %v", j.Ops[0].Log)
	}
}

// failing makes every transaction fail until it is called again.
func failing(faulty *faultstore.Store) (works func()) {
	var over atomic.Bool
	const many = 1000
	for range many {
		faulty.Inject(faultstore.Fault{Do: faultstore.FailBefore, When: func(tx store.Tx) bool { return !over.Load() && len(tx.Put) > 0 }})
	}
	return func() { over.Store(true) }
}

// A store that is out for a while loses nobody's request: it is answered when
// the store is back, and health tells of the outage while it lasts.
func TestAnOutageIsSatOut(t *testing.T) {
	r, faulty := newPatientRig(t, 1, 0)
	works := failing(faulty)
	submitted := handedOver(func(ctx context.Context) error {
		_, err := r.q.Submit(ctx, queue.Submission{Ops: parse(t, delay)})
		return err
	})
	for r.q.Health() == nil {
		runtime.Gosched()
	}
	if err := r.q.Health(); !fault.Is(err, fault.Unavailable) || !strings.Contains(err.Error(), "injected") {
		t.Errorf("health during the outage: %v", err)
	}
	works()
	r.check(soon(t, submitted))
	if err := r.q.Health(); err != nil {
		t.Errorf("health after the outage: %v", err)
	}
	r.status(1, job.Success)
}

// What the store will never take costs the one job, not the queue.
func TestARefusalOfTheStoreCostsOneJob(t *testing.T) {
	r, faulty := newFaultyRig(t, 2)
	refuse := func(id string) {
		faulty.Inject(faultstore.Fault{Do: faultstore.FailBefore, When: touches(queue.KindJob, id), Err: fault.New(fault.TooLarge, "far too large")})
	}
	refuse("1")
	if _, err := r.q.Submit(ctx, queue.Submission{Ops: parse(t, dummy), Key: "k"}); !fault.Is(err, fault.TooLarge) {
		t.Errorf("a job that the store refuses: %v", err)
	}
	id, err := r.q.Submit(ctx, queue.Submission{Ops: parse(t, dummy), Key: "k"})
	r.check(err)
	r.began(id, 0)
	refuse(id.String())
	r.finish(id, 0, nil)
	next := r.submit(dummy)
	r.began(next, 0)
	r.finish(next, 0, nil)
	r.status(next, job.Success)
	r.crash()
	if _, err := r.q.Job(ctx, 1); !fault.Is(err, fault.NotFound) {
		t.Errorf("the refused job: %v", err)
	}
}

// TestAFencedQueueSaysSo: a controller that has lost the lead stands by.
func TestAFencedQueueSaysSo(t *testing.T) {
	r, faulty := newFaultyRig(t, 1)
	faulty.Inject(faultstore.Fault{Do: faultstore.FailBefore, Err: fault.New(fault.Fenced, "injected"), When: touches(queue.KindJob, "1")})
	if _, err := r.q.Submit(ctx, queue.Submission{Ops: parse(t, dummy)}); !fault.Is(err, fault.Unavailable) {
		t.Errorf("the client is told %v", err)
	}
	if err := r.q.Failed(ctx); !fault.Is(err, fault.Fenced) {
		t.Errorf("the queue stopped with %v", err)
	}
}

// Who asks for something else with a known key is not told of the old job because the store
// cannot be read just then.
func TestUnreadableJobOfAKeyIsNoAnswer(t *testing.T) {
	r, faulty := newFaultyRig(t, 1)
	id, err := r.q.Submit(ctx, queue.Submission{Ops: parse(t, delay), Key: "k"})
	r.check(err)
	r.status(id, job.Success)
	if ok, err := r.q.Archive(ctx, id, queue.By{}); !ok || err != nil {
		t.Fatal(ok, err)
	}
	reads := 0 // the first tells whether the key is known
	defer faulty.FailReads(faultstore.ReadFault{When: func(kind store.Kind, _ string) bool {
		if kind == queue.KindArchived {
			reads++
		}
		return kind == queue.KindArchived && reads > 1
	}})()
	if again, err := r.q.Submit(ctx, queue.Submission{Ops: parse(t, dummy), Key: "k"}); !fault.Is(err, fault.Unavailable) || !strings.Contains(err.Error(), "job 1") {
		t.Errorf("another request with the key: job %d, %v", again, err)
	}
}

// What the queue keeps beside jobs and rules takes nothing else with it either: the queue is
// drained until somebody looks, no id is given twice, and the list of events has a gap that says
// so.
func TestDamageBesideJobsCostsItselfOnly(t *testing.T) {
	r := newRig(t, 1)
	r.check(r.q.SetDrained(ctx, true, alice("a")))
	r.check(r.q.SetDrained(ctx, false, alice("b")))
	for _, key := range []store.Key{queue.FlagsKey, queue.FloorKey, {Kind: queue.KindEvent, ID: "2"}} {
		_, err := store.Commit(ctx, r.store, store.Tx{Put: []store.Put{{Key: key, Value: []byte("{")}}})
		r.check(err)
	}
	r.crash()
	told := strings.Join(r.q.Unreadable(), "\n")
	if !strings.Contains(told, "queue flags: ") || !strings.Contains(told, "queue floor: ") {
		t.Errorf("told of as unreadable: %s", told)
	}
	if _, err := r.q.Submit(ctx, queue.Submission{Ops: parse(t, delay)}); !fault.Is(err, fault.Drained) || !strings.Contains(err.Error(), "nobody knows") {
		t.Errorf("nobody knows whether it is drained: %v", err)
	}
	r.check(r.q.SetDrained(ctx, false, alice("looked")))
	if id := r.submit(delay); id <= queue.Jump {
		t.Errorf("the next job is %d", id)
	}
	var whats []audit.Verb
	for _, e := range r.events() {
		whats = append(whats, e.What)
	}
	if want := []audit.Verb{audit.QueueDrain, audit.Unreadable, audit.QueueUndrain}; !slices.Equal(whats, want) {
		t.Errorf("events: %v, want %v", whats, want)
	}
}

// Who is refused by a drained queue is told who drained it, when and why, also after a crash.
func TestADrainedQueueSaysWhoAndWhy(t *testing.T) {
	r := newRig(t, 1)
	r.check(r.q.SetDrained(ctx, true, alice("disk swap, ask Ada")))
	r.check(r.q.SetDrained(ctx, true, queue.By{}))
	r.crash()
	if _, err := r.q.Submit(ctx, queue.Submission{Ops: parse(t, delay)}); err == nil || !strings.Contains(err.Error(), "drained by alice (192.0.2.7) over rapi on 20") ||
		!strings.Contains(err.Error(), "disk swap, ask Ada") {
		t.Errorf("refused: %v", err)
	}
	r.check(r.q.SetDrained(ctx, false, queue.By{}))
	r.submit(delay)
}
