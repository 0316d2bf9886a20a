package queue_test

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/exec"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/inventory"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/picture"
	"github.com/drover-project/drover/internal/queue"
	"github.com/drover-project/drover/internal/store"
	"github.com/drover-project/drover/internal/store/faultstore"
	"github.com/drover-project/drover/internal/testkit"
	"github.com/drover-project/drover/internal/testkit/stores"
)

// A leader that does not know yet that another leads does not say of its picture that it is as new as what that one wrote: whoever was told of that would
// be shown what was there before.
func TestAFencedQueueCatchesUpWithNothing(t *testing.T) {
	s := stores.Open(t, "")
	lease, err := s.AcquireLease(ctx, "leader", "me", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	shown := picture.New()
	keeper, err := inventory.Open(ctx, s, lease.Epoch, shown)
	if err != nil {
		t.Fatal(err)
	}
	q, err := queue.Open(ctx, queue.Config{Store: s, Epoch: lease.Epoch, Life: "life", Inventory: keeper, Picture: shown, Executors: exec.Catalogue{},
		Nodes: func(string) (exec.Node, error) { return nil, fault.New(fault.Unavailable, "no nodes here") },
		Now:   time.Now, NewUUID: testkit.NewUUID, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		q.Close()
		keeper.Close()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	q.Run()
	if err := q.CatchUp(ctx); err != nil {
		t.Fatalf("while it leads: %v", err)
	}
	before := shown.Load().Revision
	_, err = store.Commit(ctx, s, store.Tx{Put: []store.Put{{Key: store.Key{Kind: "other", ID: "one"}, Value: []byte("theirs")}}})
	if err := errors.Join(err, s.ReleaseLease(ctx, lease)); err != nil {
		t.Fatal(err)
	}
	if err := q.CatchUp(ctx); !fault.Is(err, fault.Fenced) || shown.Load().Revision != before {
		t.Errorf("it catches up with revision %d from %d, %v", shown.Load().Revision, before, err)
	}
}

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

// A store that refuses the end of a rule for good is not asked for it again and again.
func TestARuleThatCannotEndIsLeftForAWhile(t *testing.T) {
	r, faulty := newFaultyRig(t, 1)
	pause := rule(t, 1, `"PAUSE"`, `[["opcode",["=","OP_ID","OP_TEST_DELAY"]]]`)
	pause.Until = time.Now().Add(300 * time.Millisecond)
	uuid, _, err := r.q.PutFilter(ctx, "", pause, queue.By{})
	r.check(err)
	var tries atomic.Int32
	ends := touches(queue.KindFilter, uuid)
	counted := func(tx store.Tx) bool {
		is := ends(tx)
		if is {
			tries.Add(1)
		}
		return is
	}
	faulty.Inject(faultstore.Fault{When: counted, Skip: 1 << 30}) // strikes never
	refusal := faultstore.Fault{Do: faultstore.FailBefore, Err: fault.New(fault.TooLarge, "injected"), When: ends}
	struck := faulty.Inject(refusal)
	for range 1000 {
		faulty.Inject(refusal)
	}
	soon(t, struck)
	for i := range 100 { // the store has time for as many ends
		r.check(r.q.SetDrained(ctx, i%2 == 0, queue.By{}))
	}
	if n := tries.Load(); n > 10 {
		t.Errorf("the end was tried %d times", n)
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

// TestAFencedQueueStartsNothing: a job was to run, and that is durable. What was decided behind it is refused, since another leads, and the queue hears of
// both at the same moment: the job does not begin.
func TestAFencedQueueStartsNothing(t *testing.T) {
	r, faulty := newPatientRig(t, 3, patience)
	gate := make(chan struct{})
	held := faulty.Inject(faultstore.Fault{Do: faultstore.Hold, When: touches(queue.KindQueue, "flags"), Gate: gate})
	drained := handedOver(func(ctx context.Context) error { return r.q.SetDrained(ctx, false, queue.By{}) })
	soon(t, held)
	faulty.Inject(faultstore.Fault{Do: faultstore.FailBefore, When: touches(queue.KindJob, "2"), Err: fault.New(fault.Fenced, "another leads")})
	submit := func(ctx context.Context) error {
		_, err := r.q.Submit(ctx, queue.Submission{Ops: parse(t, dummy)})
		return err
	}
	first, second := handedOver(submit), handedOver(submit)
	asked, goOn := make(chan struct{}), make(chan struct{})
	r.beforeLocks = sync.OnceFunc(func() { // the queue hears of nothing meanwhile
		close(asked)
		<-goOn
	})
	third := make(chan error, 1)
	go func() {
		_, err := r.q.Submit(ctx, queue.Submission{Ops: parse(t, shutdown("web1"))})
		third <- err
	}()
	soon(t, asked)
	close(gate)
	_, err := store.Commit(ctx, faulty, store.Tx{}) // behind both answers
	r.check(err)
	close(goOn)
	r.check(soon(t, drained))
	r.check(soon(t, first))
	if err := soon(t, second); err == nil {
		t.Error("what another leads over is acknowledged")
	}
	_ = soon(t, third) // whether it is taken is no matter here
	r.status(1, job.Queued)
	r.mu.Lock()
	defer r.mu.Unlock()
	if n := r.runs["1/0"]; n != 0 {
		t.Errorf("it has begun %d times", n)
	}
}
