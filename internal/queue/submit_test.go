package queue_test

import (
	"context"
	"fmt"
	"runtime/metrics"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/opcode"
	"github.com/drover-project/drover/internal/queue"
	"github.com/drover-project/drover/internal/queue/machine"
	"github.com/drover-project/drover/internal/store"
)

func (r *rig) submitMany(subs ...queue.Submission) []queue.Outcome {
	r.t.Helper()
	out, err := r.q.SubmitMany(ctx, subs)
	r.check(err)
	return out
}

// Relative ids count places of the submission, whatever becomes of those jobs:
// they never point at a stranger's.
func TestRelativeIDsCountPlaces(t *testing.T) {
	r := newRig(t, 5)
	old, err := r.q.Submit(ctx, queue.Submission{Ops: parse(t, delay), Key: "known"})
	r.check(err)
	stranger := r.submit(delay)
	r.status(stranger, job.Success)
	next := queue.Submission{Ops: parse(t, after(-1, `["success"]`))}
	long := queue.Submission{Ops: parse(t, delay), Key: strings.Repeat("k", machine.MaxKey+1)}
	refused := queue.Submission{Ops: parse(t, delay), Refused: fault.New(fault.Denied, "a reserved source")}
	nonsense := queue.Submission{Ops: parse(t, after(-1000, `[]`))}
	for name, first := range map[string]queue.Submission{"key": long, "refused": refused, "nonsense": nonsense} {
		out := r.submitMany(first, next)
		if out[0].Err == nil || out[1].Err != nil {
			t.Fatalf("%s: outcomes %v", name, out)
		}
		j := r.status(out[1].ID, job.Error)
		if _, why, _ := job.DecodeError(j.Ops[0].Result); !strings.Contains(why, "not found: it was refused") {
			t.Errorf("%s: the job behind the refused one ended with %q", name, why)
		}
	}
	out := r.submitMany(queue.Submission{Ops: parse(t, dummy), Key: "known"}, next)
	if out[0].ID != old || out[1].Err != nil {
		t.Fatalf("outcomes %v", out)
	}
	j := r.status(out[1].ID, job.Success)
	if on := j.Dependencies(); len(on) != 1 || on[0] != old {
		t.Errorf("depends on %v, want %d", on, old)
	}
	out = r.submitMany(queue.Submission{Ops: parse(t, delay), Key: "new"}, queue.Submission{Ops: parse(t, delay), Key: "new"}, next)
	if out[0] != out[1] || r.status(out[2].ID, job.Success).Dependencies()[0] != out[0].ID {
		t.Errorf("one key twice: %v", out)
	}
	before := r.submit(after(-1, `["success"]`))
	if on := r.status(before, job.Success).Dependencies()[0]; on != out[2].ID {
		t.Errorf("-1 of a single job is job %d, want %d", on, out[2].ID)
	}
}

// A dependency on an id that is not given yet fails at once, also of a job that
// a rule holds: it could close a circle later.
func TestNobodyWaitsForTheFuture(t *testing.T) {
	r := newRig(t, 1)
	r.rule(1, `"PAUSE"`, `[["jobid",["=","id",1]]]`)
	id := r.submit(strings.Replace(after(2, `[]`), `"duration"`, `"reason":[["user","x",1]],"duration"`, 1))
	if j := r.status(id, job.Error); !strings.Contains(string(j.Ops[0].Result), "Job 2 not found") {
		t.Errorf("ended with %s", j.Ops[0].Result)
	}
	r.status(r.submit(after(1, `["error"]`)), job.Success)
}

// A known key is answered with its job whatever else holds.
func TestKnownKeyIsAnsweredWhileDrained(t *testing.T) {
	r := newRig(t, 1)
	sub := queue.Submission{Ops: parse(t, delay), Key: "k"}
	id, err := r.q.Submit(ctx, sub)
	r.check(err)
	r.check(r.q.SetDrained(ctx, true, queue.By{}))
	if again, err := r.q.Submit(ctx, sub); again != id || err != nil {
		t.Errorf("known key while drained: %d, %v", again, err)
	}
}

// readSlowly is a store of which the first read of a submission key takes long: meanwhile is what happens until it returns.
type readSlowly struct {
	store.Store
	first     atomic.Bool // behind the first read
	meanwhile func()
}

func (s *readSlowly) Get(ctx context.Context, key store.Key) (store.Object, error) {
	o, err := s.Store.Get(ctx, key)
	if key.Kind == queue.KindSubmission && !s.first.Swap(true) {
		s.meanwhile()
	}
	return o, err
}

// TestAKeyIsLookedUpAgainBehindAnArchival has a job come, end and go into the archive while the same submission, which was
// sent twice, waits for the store to tell that nobody has its key. What it was told is of before: it is that job.
func TestAKeyIsLookedUpAgainBehindAnArchival(t *testing.T) {
	slow := &readSlowly{}
	r := newRigWith(t, 1, func(r *rig) {
		r.wrap = func(s store.Store) store.Store {
			slow.Store = s
			return slow
		}
	})
	sub := queue.Submission{Ops: parse(t, delay), Key: "k"}
	var first job.ID
	slow.meanwhile = func() {
		var err error
		first, err = r.q.Submit(ctx, sub)
		r.check(err)
		r.status(first, job.Success)
		if ok, err := r.q.Archive(ctx, first, queue.By{}); !ok || err != nil {
			t.Errorf("it stays out of the archive: %v", err)
		}
	}
	if again, err := r.q.Submit(ctx, sub); err != nil || first == 0 || again != first {
		t.Errorf("job %d, %v; want job %d", again, err, first)
	}
}

// Ids that refused submissions used up are not given again behind a rule's
// watermark.
func TestADrainRuleHoldsAfterARestart(t *testing.T) {
	r := newRig(t, 1)
	r.submitMany(make([]queue.Submission, 2)...)
	for range 5 {
		r.submitMany(queue.Submission{Refused: fault.New(fault.Invalid, "no")})
	}
	r.rule(0, `"REJECT"`, `[`+newJobs+`]`)
	r.crash()
	r.status(r.submit(delay), job.Canceled)
}

func TestKeysAreChecked(t *testing.T) {
	r := newRig(t, 1)
	for _, key := range []string{"a\x01b", "a\tb", "\xff", "\xe9", "a\u200bb", "\u2028", strings.Repeat("x", 257)} {
		if _, err := r.q.Submit(ctx, queue.Submission{Ops: parse(t, delay), Key: key}); !fault.Is(err, fault.Invalid) && !fault.Is(err, fault.TooLarge) {
			t.Errorf("key %q: %v", key, err)
		}
	}
	for _, key := range []string{"deploy 42", "für Müller 😀", strings.Repeat("x", 256)} {
		_, err := r.q.Submit(ctx, queue.Submission{Ops: parse(t, delay), Key: key})
		r.check(err)
	}
}

// What a submission may have is bounded, and the error names the bound.
func TestSubmissionsAreBounded(t *testing.T) {
	r := newRig(t, 1)
	op := parse(t, delay)[0]
	depending := *op
	depending.Depends = make([]opcode.Dependency, job.MaxDependencies+1)
	for i := range depending.Depends {
		depending.Depends[i].Job = int64(i + 1)
	}
	large := op.With("on_nodes", []any{strings.Repeat("<", job.MaxInput)})
	many := make([]*opcode.Opcode, job.MaxOpcodes+1)
	for i := range many {
		many[i] = op
	}
	for name, c := range map[string]struct {
		subs  []queue.Submission
		limit int
	}{
		"jobs":         {make([]queue.Submission, machine.MaxJobs+1), machine.MaxJobs},
		"opcodes":      {[]queue.Submission{{Ops: many}}, job.MaxOpcodes},
		"dependencies": {[]queue.Submission{{Ops: []*opcode.Opcode{&depending}}}, job.MaxDependencies},
		"input":        {[]queue.Submission{{Ops: []*opcode.Opcode{large}}}, job.MaxInput},
	} {
		out, err := r.q.SubmitMany(ctx, c.subs)
		if err == nil {
			err = out[0].Err
		}
		if !fault.Is(err, fault.TooLarge) || !strings.Contains(err.Error(), strconv.Itoa(c.limit)) {
			t.Errorf("%s: %v", name, err)
		}
	}
	r.status(r.submit(delay), job.Success)
}

// chain submits n jobs that each wait for the one before, the first for a job
// that runs.
func (r *rig) chain(n int) {
	r.t.Helper()
	r.began(r.submit(dummy), 0)
	sub := queue.Submission{Ops: parse(r.t, after(-1, `[]`))}
	for n > 0 {
		some := make([]queue.Submission, min(n, 1000))
		for i := range some {
			some[i] = sub
		}
		r.submitMany(some...)
		n -= len(some)
	}
}

// TestASubmissionBehindAChainAllocatesWhatOneAlwaysDoes: looking for circles walked, and copied, all
// of the chain.
func TestASubmissionBehindAChainAllocatesWhatOneAlwaysDoes(t *testing.T) {
	const submissions = 20
	allocated := func(chain int) uint64 {
		r := newRig(t, 1)
		r.chain(chain)
		bytes := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
		metrics.Read(bytes)
		before := bytes[0].Value.Uint64()
		for range submissions {
			r.submit(after(-1, `[]`))
		}
		metrics.Read(bytes)
		return (bytes[0].Value.Uint64() - before) / submissions
	}
	few, many := allocated(100), allocated(3000)
	t.Logf("a submission allocates %d bytes behind 100 jobs, %d behind 3000", few, many)
	if many > 3*few+1<<20 { // what came before may still be written
		t.Errorf("a submission allocates %d bytes behind 100 jobs, %d behind 3000", few, many)
	}
}

// BenchmarkSubmitBehindAChain is one client that submits jobs which wait for the
// last of a chain.
func BenchmarkSubmitBehindAChain(b *testing.B) {
	for _, n := range []int{0, 1000, 8000} {
		b.Run(fmt.Sprintf("chain=%d", n), func(b *testing.B) {
			r := newRig(b, 1)
			r.chain(n)
			for b.Loop() {
				r.submit(after(-1, `[]`))
			}
		})
	}
}
