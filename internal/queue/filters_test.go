package queue_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/jobfilter"
	"github.com/drover-project/drover/internal/queue"
	"github.com/drover-project/drover/internal/schedule"
)

const (
	newJobs = `["jobid",[">","id","watermark"]]`
	dummies = `["opcode",["=","OP_ID","OP_TEST_DUMMY"]]`
)

func TestDrainByRule(t *testing.T) {
	r := newRig(t, 1)
	before := r.submit(dummy)
	r.began(before, 0)
	queued := r.submit(delay)
	uuid := r.rule(0, `"REJECT"`, `[`+newJobs+`]`)
	j := r.status(r.submit(delay), job.Canceled)
	if class, why, ok := job.DecodeError(j.Ops[0].Result); !ok || class != "OpExecError" || !strings.Contains(why, uuid) {
		t.Errorf("result %s", j.Ops[0].Result)
	}
	if log := j.Ops[0].Log; len(log) != 1 || !strings.Contains(string(log[0].Payload), uuid) {
		t.Errorf("log %v", log)
	}
	r.finish(before, 0, nil)
	r.status(before, job.Success)
	r.status(queued, job.Success)
	r.check(r.q.DeleteFilter(ctx, uuid, queue.By{}))
	r.status(r.submit(delay), job.Success)
}

func TestSoftDrainByRule(t *testing.T) {
	r := newRig(t, 1)
	uuid := r.rule(0, `"PAUSE"`, `[`+newJobs+`]`)
	id := r.submit(delay)
	r.held(id, uuid)
	x, err := r.q.Explain(ctx, id)
	r.check(err)
	if x.Step != schedule.Hold || x.Held == nil || x.Held.Rule != uuid || len(x.Rules) != 1 || len(x.Change) == 0 {
		t.Errorf("explanation %+v", x)
	}
	r.check(r.q.DeleteFilter(ctx, uuid, queue.By{}))
	r.status(id, job.Success)
	if err := r.q.DeleteFilter(ctx, uuid, queue.By{}); !fault.Is(err, fault.NotFound) {
		t.Errorf("deleting twice: %v", err)
	}
}

func TestPauseAllButOneMaintenance(t *testing.T) {
	r := newRig(t, 5)
	r.rule(0, `"ACCEPT"`, `[["reason",["=~","reason","maintenance pink bunny"]]]`)
	uuid := r.rule(1, `"PAUSE"`, `[`+newJobs+`]`)
	other := r.submit(because("something else"))
	r.held(other, uuid)
	bunny := r.submit(because("for maintenance pink bunny, step 2"))
	r.began(bunny, 0)
	r.finish(bunny, 0, nil)
	r.status(bunny, job.Success)
}

func TestRejectCancelsWhatIsQueued(t *testing.T) {
	r := newRig(t, 1)
	busy := r.submit(delay, dummy, delay)
	r.began(busy, 1)
	queued := r.submit(shutdown("web1"))
	r.rule(1, `"REJECT"`, `[["opcode",["=","OP_ID","OP_INSTANCE_SHUTDOWN"]]]`)
	r.status(queued, job.Canceled)

	uuid := r.rule(1, `"REJECT"`, `[`+dummies+`]`)
	r.check(r.q.DeleteFilter(ctx, uuid, queue.By{}))
	r.finish(busy, 1, nil)
	j := r.status(busy, job.Canceled)
	if j.Ops[1].Status != job.Success || !strings.Contains(string(j.Ops[2].Result), uuid) {
		t.Errorf("the running job became %s", j.Encode())
	}
}

func TestPauseBetweenOpcodes(t *testing.T) {
	r := newRig(t, 1)
	id := r.submit(shutdown("web1"), shutdown("web1"))
	r.began(id, 0)
	uuid := r.rule(1, `"PAUSE"`, `[]`)
	r.finish(id, 0, nil)
	j := r.held(id, uuid)
	if j.Ops[0].Status != job.Success || j.Ops[1].Status != job.Queued {
		t.Errorf("paused job %s", j.Encode())
	}
	if held := slices.Collect(r.shown.Load().Locks.All()); len(held) != 0 {
		t.Errorf("locks are kept: %v", held)
	}
	r.check(r.q.DeleteFilter(ctx, uuid, queue.By{}))
	r.began(id, 1)
	r.finish(id, 1, nil)
	r.status(id, job.Success)
}

func TestPauseTakesAWaiterOffItsLock(t *testing.T) {
	r := newRig(t, 2)
	holder := r.submit(shutdown("web1"))
	r.began(holder, 0)
	waiting := r.submit(shutdown("web1"))
	r.status(waiting, job.Waiting)
	uuid := r.rule(1, `"PAUSE"`, `[["jobid",["=","id",2]]]`)
	if j := r.held(waiting, uuid); j.Status() != job.Queued {
		t.Errorf("held job is %s", j.Status())
	}
	third := r.submit(shutdown("web1"))
	r.finish(holder, 0, nil)
	r.began(third, 0)
	r.check(r.q.DeleteFilter(ctx, uuid, queue.By{}))
	r.status(waiting, job.Waiting)
	r.finish(third, 0, nil)
	r.began(waiting, 0)
	r.finish(waiting, 0, nil)
}

func TestRateLimit(t *testing.T) {
	r := newRig(t, 10)
	uuid := r.rule(1, `["RATE_LIMIT",2]`, `[`+dummies+`]`)
	var ids []job.ID
	for range 5 {
		ids = append(ids, r.submit(dummy))
	}
	r.began(ids[0], 0)
	r.began(ids[1], 0)
	r.held(ids[4], uuid)
	r.status(r.submit(delay), job.Success)
	x, err := r.q.Explain(ctx, ids[3])
	r.check(err)
	if b := x.Buckets; len(b) != 1 || b[0].Place != 2 || len(b[0].InFlight) != 2 {
		t.Errorf("buckets %+v", b)
	}
	for i, id := range ids {
		r.finish(id, 0, nil)
		if i+2 < len(ids) {
			r.began(ids[i+2], 0)
		}
	}
	r.status(ids[4], job.Success)
}

// TestAdHocLimit shows that a paused job takes no place in its ad-hoc bucket.
func TestAdHocLimit(t *testing.T) {
	r := newRig(t, 10)
	limited := because("rate-limit:1:maint")
	paused := r.rule(1, `"PAUSE"`, `[["jobid",["=","id",1]]]`)
	first := r.submit(limited)
	r.held(first, paused)
	second, third := r.submit(limited), r.submit(limited)
	r.began(second, 0)
	x, err := r.q.Explain(ctx, third)
	r.check(err)
	if x.Step != schedule.WaitBucket || !strings.Contains(x.Why, "rate-limit:1:maint") {
		t.Errorf("explanation %+v", x)
	}
	r.finish(second, 0, nil)
	r.began(third, 0)
	r.finish(third, 0, nil)
	r.status(third, job.Success)
}

// TestBucketPassesOn covers a place that the next in line cannot take because
// it waits in another bucket: it goes to the one behind.
func TestBucketPassesOn(t *testing.T) {
	r := newRig(t, 10)
	text := func(labels ...string) string {
		trail := ""
		for i, l := range labels {
			if i > 0 {
				trail += ","
			}
			trail += fmt.Sprintf(`["user","rate-limit:1:%s",1]`, l)
		}
		return strings.Replace(dummy, `}`, `,"reason":[`+trail+`]}`, 1)
	}
	a, b := r.submit(text("a")), r.submit(text("b"))
	r.began(a, 0)
	r.began(b, 0)
	both := r.submit(text("a", "b"))
	behind := r.submit(text("a"))
	r.finish(a, 0, nil)
	r.began(behind, 0)
	r.finish(behind, 0, nil)
	r.finish(b, 0, nil)
	r.began(both, 0)
	r.finish(both, 0, nil)
}

func TestRulesSurviveARestart(t *testing.T) {
	r := newRig(t, 1)
	r.submit(delay)
	in := rule(t, 3, `"PAUSE"`, `[["reason",["=~","reason","für Müller 😀"]]]`)
	in.Reason = nil
	uuid, _, err := r.q.PutFilter(ctx, "", in, queue.By{})
	r.check(err)
	r.crash()
	rules := r.shown.Load().Rules
	if len(rules) != 1 || rules[0].UUID != uuid || rules[0].Watermark != 1 || rules[0].Reason[0].Source != "luxid" {
		t.Fatalf("rules %+v", rules)
	}
	r.held(r.submit(because("wartet für Müller 😀!")), uuid)
	if _, _, err := r.q.PutFilter(ctx, "not a uuid", in, queue.By{}); !fault.Is(err, fault.Invalid) {
		t.Errorf("a bad uuid: %v", err)
	}
	if _, _, err := r.q.PutFilter(ctx, uuid, rule(t, 0, `"CONTINUE"`, `[]`), queue.By{}); err != nil {
		t.Fatal(err)
	}
	if rules := r.shown.Load().Rules; len(rules) != 1 || rules[0].Watermark != 2 {
		t.Errorf("replaced: %+v", rules)
	}
}

func TestPreviewChangesNothing(t *testing.T) {
	r := newRig(t, 1)
	done := r.submit(delay)
	r.status(done, job.Success)
	if ok, err := r.q.Archive(ctx, done, queue.By{}); !ok || err != nil {
		t.Fatal(ok, err)
	}
	busy := r.submit(dummy)
	r.began(busy, 0)
	queued := r.submit(shutdown("web1"))
	f, err := r.q.PreviewFilters(ctx, queue.FilterChange{Edits: []jobfilter.Edit{{Verb: jobfilter.Put, Parts: rule(t, 0, `"REJECT"`, `[]`)}}}, 1)
	r.check(err)
	if len(f.Jobs) != 2 || f.Jobs[1].ID != queued || f.Headline == "" {
		t.Errorf("forecast %+v", f)
	}
	if len(r.shown.Load().Rules) != 0 || r.q.Jobs().Get(queued).Final() {
		t.Error("the preview had an effect")
	}
	r.finish(busy, 0, nil)
	r.began(queued, 0)
	r.finish(queued, 0, nil)
}
