package queue_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/queue"
	"github.com/drover-project/drover/internal/store"
	"github.com/drover-project/drover/internal/store/faultstore"
	"github.com/drover-project/drover/internal/testkit"
)

// errDamaged is what a store says of what is not what was written.
var errDamaged error = fault.New(fault.WrongState, "the store is damaged")

// TestDamageIsNotWaitedFor: a job that is damaged stays, and is told at once; the others move into the archive.
func TestDamageIsNotWaitedFor(t *testing.T) {
	r, faulty := newPatientRig(t, 1, time.Hour)
	var ids []job.ID
	for range 4 {
		id := r.submit(delay)
		r.status(id, job.Success)
		ids = append(ids, id)
	}
	bad := ids[1]
	mend := faulty.FailReads(faultstore.ReadFault{Err: errDamaged, When: func(kind store.Kind, id string) bool { return kind == queue.KindJob && id == bad.String() }})
	ctx, cancel := context.WithTimeout(ctx, testkit.Patience())
	defer cancel()
	n, left, err := r.q.AutoArchive(ctx, -1, time.Minute, queue.By{})
	if n != 3 || left != 0 || !fault.Is(err, fault.WrongState) || !strings.Contains(err.Error(), "job "+bad.String()+" ") {
		t.Errorf("%d moved, %d are left: %v", n, left, err)
	}
	if ok, err := r.q.Archive(ctx, bad, queue.By{}); ok || !fault.Is(err, fault.WrongState) {
		t.Errorf("the damaged one moved: %v, %v", ok, err)
	}
	mend()
	if ok, err := r.q.Archive(ctx, bad, queue.By{}); !ok || err != nil {
		t.Errorf("the mended one moved: %v, %v", ok, err)
	}
}

// TestAStoreThatIsDamagedEndsTheQueue: what cannot be written there can never be, so nobody waits for it.
func TestAStoreThatIsDamagedEndsTheQueue(t *testing.T) {
	r, faulty := newPatientRig(t, 1, time.Hour)
	faulty.Inject(faultstore.Fault{Do: faultstore.CrashBefore, Err: errDamaged})
	ctx, cancel := context.WithTimeout(ctx, testkit.Patience())
	defer cancel()
	if _, err := r.q.Submit(ctx, queue.Submission{Ops: parse(t, dummy)}); !fault.Is(err, fault.Unavailable) || !strings.Contains(err.Error(), "damaged") {
		t.Errorf("a submission: %v", err)
	}
	if err := r.q.Failed(ctx); err == nil || !strings.Contains(err.Error(), "damaged") {
		t.Errorf("the queue: %v", err)
	}
}
