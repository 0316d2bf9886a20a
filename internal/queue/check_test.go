package queue_test

import (
	"slices"
	"testing"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/queue"
)

// A check makes no job, so neither a rule nor a drained queue keeps it waiting; what is
// refused names the jobs that may change that.
func TestChecksNeedNoJob(t *testing.T) {
	r := newRig(t, 1)
	r.beforeLook = func() {}
	r.rule(0, `"PAUSE"`, `[["jobid",[">","id",0]]]`)
	about := r.submit(`{"OP_ID":"OP_INSTANCE_REBOOT","instance_name":"web1.example","reboot_type":"hard"}`)
	r.submit(shutdown("web10"))
	r.check(r.q.SetDrained(ctx, true, queue.By{}))
	found, err := r.q.Check(ctx, parse(t, dummy, `{"OP_ID":"OP_INSTANCE_REBOOT","instance_name":"Web1","reboot_type":"hard"}`))
	r.check(err)
	if found[0].Err != nil || string(found[0].Result) != "null" {
		t.Errorf("the first: %+v", found[0])
	}
	if !fault.Is(found[1].Err, fault.NotFound) || !slices.Equal(found[1].Pending, []job.ID{about}) {
		t.Errorf("the second: %+v", found[1])
	}
	if n := r.q.Jobs().Len(); n != 2 {
		t.Errorf("there are %d jobs", n)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.runs) > 0 {
		t.Errorf("ran: %v", r.runs)
	}
}

// A queue that takes no requests checks nothing either.
func TestNoChecksOnceClosed(t *testing.T) {
	r := newRig(t, 1)
	r.q.Close()
	if _, err := r.q.Check(ctx, parse(t, dummy)); !fault.Is(err, fault.Unavailable) {
		t.Errorf("a closed queue answers %v", err)
	}
}
