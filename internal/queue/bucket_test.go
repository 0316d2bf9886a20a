package queue_test

import (
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/queue"
)

// A place in a bucket that was meant for a job which then goes another way is
// taken by the next one.
func TestPlaceInABucketIsPassedOn(t *testing.T) {
	for name, divert := range map[string]func(*rig, job.ID){
		"cancelled": func(r *rig, id job.ID) {
			_, err := r.q.Cancel(ctx, id, false, queue.By{})
			r.check(err)
		},
		"paused": func(r *rig, id job.ID) {
			r.held(id, r.rule(0, `"PAUSE"`, `[["jobid",["=","id",`+id.String()+`]]]`))
		},
	} {
		t.Run(name, func(t *testing.T) {
			r, next, last, urgent := promised(t)
			divert(r, next)
			r.finish(urgent, 0, nil)
			r.began(last, 0)
			r.finish(last, 0, nil)
			r.status(last, job.Success)
		})
	}
}

// A place in a bucket that is free goes to who comes first when there is a slot, also where
// that changed meanwhile.
func TestPlaceInABucketFollowsPriorities(t *testing.T) {
	for name, change := range map[string]func(r *rig, next, last job.ID) error{
		"the one behind becomes urgent": func(r *rig, _, last job.ID) error {
			_, err := r.q.ChangePriority(ctx, last, -5, queue.By{})
			return err
		},
		"the first one can wait": func(r *rig, next, _ job.ID) error {
			_, err := r.q.ChangePriority(ctx, next, 5, queue.By{})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			r, next, last, urgent := promised(t)
			r.check(change(r, next, last))
			r.finish(urgent, 0, nil)
			r.began(last, 0)
			r.status(next, job.Queued)
			r.finish(last, 0, nil)
			r.began(next, 0)
			r.finish(next, 0, nil)
			r.status(next, job.Success)
		})
	}
}

// promised has two jobs wait for a free place in a bucket of one, which is meant for the next
// of them, while an urgent job has the only slot.
func promised(t *testing.T) (r *rig, next, last, urgent job.ID) {
	t.Helper()
	r = newRig(t, 1)
	r.rule(1, `["RATE_LIMIT",1]`, `[["reason",["=","reason","bulk"]]]`)
	first := r.submit(because("bulk"))
	r.began(first, 0)
	next, last = r.submit(because("bulk")), r.submit(because("bulk"))
	urgent = r.submit(strings.Replace(dummy, `"result"`, `"priority":-10,"result"`, 1))
	r.finish(first, 0, nil)
	r.began(urgent, 0)
	return r, next, last, urgent
}

// What depends on a job that is refused depends on nothing, and says so.
func TestDependingOnARefusedJob(t *testing.T) {
	r := newRig(t, 1)
	out, err := r.q.SubmitMany(ctx, []queue.Submission{
		{Ops: parse(t, after(2, `[]`))},
		{Ops: parse(t, after(3, `[]`)), Key: "k"},
		{Ops: parse(t, after(2, `[]`))},
		{Ops: parse(t, after(3, `[]`)), Key: "k"},
	})
	r.check(err)
	for i, refused := range []bool{false, true, true, true} {
		if got := out[i].Err != nil; got != refused {
			t.Errorf("job %d: %v", i, out[i])
		}
	}
	if j := r.status(1, job.Error); !strings.Contains(string(j.Ops[0].Result), "Job 2 not found") {
		t.Errorf("the job that depends on a refused one: %s", j.Ops[0].Result)
	}
}

// A job that waits for two others, of which one ends with the other, is ended
// once.
func TestCancelGoesThroughDependents(t *testing.T) {
	r := newRig(t, 1)
	r.began(r.submit(dummy), 0)
	base := r.submit(dummy)
	next := r.submit(depending(base))
	both := r.submit(strings.Replace(depending(base), `[[`, `[[`+next.String()+`,["success"]],[`, 1))
	_, err := r.q.Cancel(ctx, base, false, queue.By{})
	r.check(err)
	r.status(next, job.Canceled)
	r.status(both, job.Canceled)
}

func TestRejectGoesThroughDependents(t *testing.T) {
	r := newRig(t, 1)
	r.began(r.submit(dummy), 0)
	base := r.submit(dummy)
	next := r.submit(depending(base))
	r.rule(0, `"REJECT"`, `[["jobid",["<=","id","watermark"]]]`)
	r.status(base, job.Canceled)
	r.status(next, job.Canceled)
}
