package queue_test

import (
	"testing"

	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/jobfilter"
	"github.com/drover-project/drover/internal/opcode"
	"github.com/drover-project/drover/internal/queue"
)

// Jobs that an opcode submits are a part of its work: they are taken also while
// the queue is drained, and are as urgent as it is.
func TestChildrenAreTakenWhileDrained(t *testing.T) {
	r := newRig(t, 1)
	op := *parse(t, dummy)[0]
	op.Priority = -7
	parent, err := r.q.Submit(ctx, queue.Submission{Ops: []*opcode.Opcode{&op}})
	r.check(err)
	r.began(parent, 0)
	r.check(r.q.SetDrained(ctx, true, queue.By{}))
	children, err := r.gate(parent, 0).env.Submit(ctx, [][]*opcode.Opcode{parse(t, delay)})
	r.check(err)
	if len(children) != 1 || children[0].Err != nil {
		t.Fatalf("children %+v", children)
	}
	if got := r.q.Jobs().Get(children[0].ID).Priority(); got != -7 {
		t.Errorf("the child has priority %d", got)
	}
	r.finish(parent, 0, nil)
	r.status(children[0].ID, job.Success)
}

// A rule about jobs to come is previewed with the id that is the newest now, as
// it would be put in force with.
func TestPreviewKnowsTheWatermark(t *testing.T) {
	r := newRig(t, 1)
	r.began(r.submit(dummy), 0)
	r.submit(dummy)
	f, err := r.q.PreviewFilters(ctx, queue.FilterChange{Edits: []jobfilter.Edit{
		{Verb: jobfilter.Put, Parts: rule(t, 0, `"REJECT"`, `[["jobid",[">","id","watermark"]]]`)},
	}}, 0)
	r.check(err)
	if len(f.Jobs) != 0 || f.Unaffected != 2 {
		t.Errorf("a rule for jobs to come would do something to %d jobs of the present, and nothing to %d", len(f.Jobs), f.Unaffected)
	}
	r.finish(1, 0, nil)
	r.began(2, 0)
	r.finish(2, 0, nil)
}
