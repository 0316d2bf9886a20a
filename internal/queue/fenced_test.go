package queue_test

import (
	"context"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/queue"
	"github.com/drover-project/drover/internal/store"
	"github.com/drover-project/drover/internal/store/faultstore"
)

// A leader that is told once that another leads writes nothing a second time, however patient it is with a store that fails: what
// was refused may not come to be later.
func TestAFencedQueueWritesNothingAgain(t *testing.T) {
	r, faulty := newPatientRig(t, 1, time.Hour)
	faulty.Inject(faultstore.Fault{Do: faultstore.FailBefore, Err: fault.New(fault.Fenced, "injected"), When: touches(queue.KindJob, "1")})
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if _, err := r.q.Submit(limited, queue.Submission{Ops: parse(t, dummy)}); !fault.Is(err, fault.Unavailable) || limited.Err() != nil {
		t.Errorf("the client is told %v", err)
	}
	if err := r.q.Failed(limited); !fault.Is(err, fault.Fenced) {
		t.Errorf("the queue stopped with %v", err)
	}
	if o, err := faulty.Get(ctx, store.Key{Kind: queue.KindJob, ID: "1"}); !fault.Is(err, fault.NotFound) {
		t.Errorf("it was written again: revision %d, %v", o.Revision, err)
	}
}

// A rule whose time is over ends by itself, also if the store refused its end once.
func TestARuleThatCouldNotEndEndsLater(t *testing.T) {
	r, faulty := newFaultyRig(t, 1)
	pause := rule(t, 1, `"PAUSE"`, `[["opcode",["=","OP_ID","OP_TEST_DELAY"]]]`)
	pause.Until = time.Now().Add(300 * time.Millisecond)
	uuid, _, err := r.q.PutFilter(ctx, "", pause, queue.By{})
	r.check(err)
	id := r.submit(delay)
	struck := faulty.Inject(faultstore.Fault{Do: faultstore.FailBefore, Err: fault.New(fault.TooLarge, "injected"), When: touches(queue.KindFilter, uuid)})
	soon(t, struck)
	r.status(id, job.Success)
	if rules := r.shown.Load().Rules; len(rules) > 0 {
		t.Errorf("the rules are %+v", rules)
	}
}
