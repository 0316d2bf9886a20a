package queue_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/queue"
	"github.com/drover-project/drover/internal/store"
	"github.com/drover-project/drover/internal/store/faultstore"
	"github.com/drover-project/drover/internal/store/sqlite"
)

// bulky is an opcode so large that nothing but the least of its job stays in
// memory when it has ended.
func bulky() string {
	return `{"OP_ID":"OP_TEST_DELAY","duration":1,"comment":"` + strings.Repeat("x", 5<<20) + `","reason":[["user","ticket",1]]}`
}

// Of a job that has ended little stays in memory; whoever asks for it gets all
// of it.
func TestEndedJobsAreReadFromTheStore(t *testing.T) {
	r := newRig(t, 1)
	id, err := r.q.Submit(ctx, queue.Submission{Ops: parse(t, bulky()), Key: "once"})
	r.check(err)
	check := func(j *job.Job) {
		t.Helper()
		if j.Brief() != nil || j.Status() != job.Success || len(*j.Ops[0].Input.Comment) != 5<<20 || j.Key != "once" {
			t.Errorf("job %d is %s, with %d opcodes", j.ID, j.Status(), len(j.Ops))
		}
	}
	kept := func() *job.Job {
		t.Helper()
		j := r.q.Jobs().Get(id)
		if j.Brief() == nil || j.Status() != job.Success || j.Ended == 0 {
			t.Fatalf("job %d is %s in memory, whole: %v", id, j.Status(), j.Brief() == nil)
		}
		return j
	}
	for range 2 { // before and after a restart
		check(r.status(id, job.Success)) // by Wait
		check(r.whole(id))
		over, stop := context.WithCancel(ctx)
		stop()
		j, err := r.q.Wait(over, id, func(*job.Job) bool { return false })
		r.check(err)
		check(j)
		if why, known := kept().Brief().Reason(); !known || why != "user: ticket" {
			t.Errorf("its reason is %q", why)
		}
		if x, err := r.q.Explain(ctx, id); err != nil || x.Status != job.Success {
			t.Errorf("%+v, %v", x, err)
		}
		if again, err := r.q.Submit(ctx, queue.Submission{Ops: parse(t, bulky()), Key: "once"}); again != id || err != nil {
			t.Errorf("its key made job %d, %v", again, err)
		}
		r.status(r.submit(after(id, `["success"]`)), job.Success)
		if answer, err := r.q.Cancel(ctx, id, false, queue.By{}); answer.OK || err != nil {
			t.Errorf("cancelled after its end: %+v, %v", answer, err)
		}
		r.crash()
	}
	if n, left, err := r.q.AutoArchive(ctx, 0, time.Hour, queue.By{}); n != 3 || left != 0 || err != nil {
		t.Fatal(n, left, err)
	}
	if j := r.whole(id); !j.Archived {
		t.Error("it is not archived")
	} else {
		check(j)
	}
	if again, err := r.q.Submit(ctx, queue.Submission{Ops: parse(t, bulky()), Key: "once"}); again != id || err != nil {
		t.Errorf("the key of the archived job made job %d, %v", again, err)
	}
}

// A job that ended, and of which little is in memory, is neither lost nor
// written again by a write that failed before.
func TestWritingAgainKeepsABriefJob(t *testing.T) {
	r, faulty := newPatientRig(t, 1, patience)
	r.began(r.submit(dummy), 0)
	gate := make(chan struct{})
	faulty.Inject(faultstore.Fault{Do: faultstore.FailBefore, Gate: gate, When: touches(queue.KindJob, "2")})
	submitted := handedOver(func(ctx context.Context) error {
		_, err := r.q.Submit(ctx, queue.Submission{Ops: parse(t, bulky())})
		return err
	})
	canceled := handedOver(func(ctx context.Context) error {
		_, err := r.q.Cancel(ctx, 2, false, queue.By{})
		return err
	})
	close(gate)
	r.check(soon(t, submitted))
	r.check(soon(t, canceled))
	r.crash()
	if j := r.whole(2); j.Status() != job.Canceled || j.Brief() != nil {
		t.Errorf("job 2 is %s", j.Status())
	}
}

// BenchmarkHistory opens a queue with very many jobs that have ended, and tells
// what they cost.
func BenchmarkHistory(b *testing.B) {
	for _, c := range []struct{ ended, archived int }{{100_000, 1_000_000}, {1_000_000, 0}} {
		b.Run(fmt.Sprintf("ended=%d,archived=%d", c.ended, c.archived), func(b *testing.B) {
			r := &rig{t: b, dir: b.TempDir(), gates: map[string]*gate{}}
			writeHistory(b, filepath.Join(r.dir, "store"), c.archived, c.ended)
			r.open() // makes the inventory
			r.close()
			r.core, r.q, r.shown, r.keeper, r.store = nil, nil, nil, nil, nil
			before := heap()
			for b.Loop() {
				begun := time.Now()
				r.open()
				b.ReportMetric(time.Since(begun).Seconds(), "s/open")
				resident := residentMiB(b)
				b.ReportMetric(float64(heap()-before)/float64(c.ended), "B/ended")
				b.ReportMetric(resident, "MiB-resident")
				if n := r.q.Jobs().Len(); n != c.ended {
					b.Fatalf("%d jobs", n)
				}
				r.close()
			}
		})
	}
}

// BenchmarkPruning has jobs done, one behind another, while an archive of a million is pruned, and while it is not, in turns. What
// counts is the slowest of them.
func BenchmarkPruning(b *testing.B) {
	const archived, jobs = 1_000_000, 1000
	r := &rig{t: b, dir: b.TempDir(), gates: map[string]*gate{}}
	writeHistory(b, filepath.Join(r.dir, "store"), archived, 0)
	r.open()
	defer r.close()
	var alone, beside, usual, usually time.Duration
	gone, pruned := 0, time.Duration(0)
	for b.Loop() {
		median, slowest := r.timed(jobs)
		alone, usual = max(alone, slowest), usual+median
		pruning, stop := context.WithCancel(b.Context())
		begun, over := time.Now(), make(chan queue.Pruning)
		go func() {
			p, err := r.q.Prune(pruning, queue.Retention{Before: job.Never, Keep: 1}, time.Hour, queue.By{})
			if err == nil || p.Jobs == 0 {
				b.Errorf("%d jobs were pruned before those beside it had ended: %v", p.Jobs, err)
			}
			over <- p
		}()
		median, slowest = r.timed(jobs)
		beside, usually = max(beside, slowest), usually+median
		stop()
		gone += (<-over).Jobs
		pruned += time.Since(begun)
	}
	b.ReportMetric(float64(alone.Microseconds())/1000, "ms-slowest-alone")
	b.ReportMetric(float64(beside.Microseconds())/1000, "ms-slowest-beside")
	b.ReportMetric(beside.Seconds()/alone.Seconds(), "slowest-beside/alone")
	b.ReportMetric(usually.Seconds()/usual.Seconds(), "median-beside/alone")
	b.ReportMetric(float64(gone)/pruned.Seconds(), "pruned/s")
	b.ReportMetric(0, "ns/op")
}

// timed has jobs done, one behind another, and tells how long one took as a rule and at most.
func (r *rig) timed(jobs int) (median, slowest time.Duration) {
	var took []time.Duration
	for range jobs {
		begun := time.Now()
		r.status(r.submit(delay), job.Success)
		took = append(took, time.Since(begun))
	}
	slices.Sort(took)
	return took[jobs/2], took[jobs-1]
}

// heap returns how much memory is in use.
func heap() int64 {
	debug.FreeOSMemory()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc) // far below
}

// residentMiB is the memory that the process has now.
func residentMiB(b *testing.B) float64 {
	b.Helper()
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		b.Skip(err)
	}
	pages, err := strconv.Atoi(strings.Fields(string(text))[1])
	if err != nil {
		b.Fatal(err)
	}
	return float64(pages*os.Getpagesize()) / (1 << 20)
}

// writeHistory fills a store with jobs that ended, each for its own reason.
func writeHistory(b *testing.B, dir string, archived, ended int) {
	b.Helper()
	s, err := sqlite.Open(dir, sqlite.Options{})
	if err != nil {
		b.Fatal(err)
	}
	const atOnce = 1000
	for first := 1; first <= archived+ended; first += atOnce {
		var tx store.Tx
		for id := first; id < first+atOnce; id++ {
			at := time.Unix(1_700_000_000+int64(id), 0)
			kind := queue.KindJob
			if id <= archived {
				kind = queue.KindArchived
			}
			op := parse(b, fmt.Sprintf(`{"OP_ID":"OP_INSTANCE_STARTUP","instance_name":"web%d.example.com","reason":[["gnt:user","OPS-%d",1],["gnt:library:rlib2:instance_startup","",2]]}`, id%1000, id))
			j := job.New(job.ID(id), op, "", at).BeginWait(0, job.At(at)+1).BeginRun(0, job.At(at)+2).Succeed(0, []byte("null"), job.At(at)+3)
			tx.Put = append(tx.Put, store.Put{Key: store.Key{Kind: kind, ID: j.ID.String()}, At: int64(j.Ended), Value: j.Head()})
		}
		if _, err := store.Commit(ctx, s, tx); err != nil {
			b.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
}
