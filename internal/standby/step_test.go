package standby_test

import (
	"context"
	"iter"
	"testing"

	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/jobfilter"
	"github.com/drover-project/drover/internal/queue"
	"github.com/drover-project/drover/internal/standby"
	"github.com/drover-project/drover/internal/store"
	"github.com/drover-project/drover/internal/testkit/controller"
)

// TestTheLastChangeOfAStepCounts: of several changes of one object in a step of the feed, as in a commit of many transactions, the
// picture has what the last one made of it, and no sooner says that it is of that revision.
func TestTheLastChangeOfAStepCounts(t *testing.T) {
	r := rig{t, controller.New(t, controller.Options{})}
	var pause jobfilter.Rule
	var err error
	pause.Action, err = jobfilter.ParseAction([]byte(`"PAUSE"`))
	r.check(err)
	uuid, _, err := r.leads.Queue.PutFilter(t.Context(), "", pause, queue.By{})
	r.check(err)
	id := r.submit(delay)
	keys := []store.Key{{Kind: queue.KindJob, ID: id.String()}, {Kind: queue.KindFilter, ID: uuid}}
	before, err := r.leads.Store.Revision(t.Context())
	r.check(err)
	var step store.Progress
	take := func() {
		for _, key := range keys {
			o, err := r.leads.Store.Get(t.Context(), key)
			r.check(err)
			step.Changes = append(step.Changes, store.Change{Revision: o.Revision, Key: key, Value: o.Value})
			step.Revision = max(step.Revision, o.Revision)
		}
	}
	open := func() *standby.Follower {
		f, err := standby.Open(t.Context(), r.leads.Store, func(_ context.Context, after store.Revision) iter.Seq2[store.Progress, error] {
			return func(yield func(store.Progress, error) bool) {
				if after != before {
					t.Errorf("it follows from %d, not from %d", after, before)
				}
				yield(step, nil)
			}
		})
		r.check(err)
		return f
	}
	f := open()
	for _, priority := range []int{5, 3} {
		_, err := r.leads.Queue.ChangePriority(t.Context(), id, priority, queue.By{})
		r.check(err)
		pause.Priority = priority
		_, _, err = r.leads.Queue.PutFilter(t.Context(), uuid, pause, queue.By{})
		r.check(err)
		take()
	}
	r.check(f.Run(t.Context()))
	s := f.Picture().Load()
	if s.Revision != int64(step.Revision) {
		t.Fatalf("the picture is of revision %d, not %d", s.Revision, step.Revision)
	}
	if j := s.Jobs.Get(id); j == nil || j.Ops[0].Priority != 3 {
		t.Errorf("the job is %+v", describe(j))
	}
	if len(s.Rules) != 1 || s.Rules[0].Priority != 3 {
		t.Errorf("the rules are %+v", s.Rules)
	}
}

func describe(j *job.Job) any {
	if j == nil {
		return nil
	}
	return j.Ops
}
