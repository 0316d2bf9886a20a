package queue_test

import (
	"fmt"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/bench"
	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/queue"
	"github.com/drover-project/drover/internal/testkit"
)

// unit is the time of one fdatasync on the disk of the tests' directories.
func unit(b *testing.B) time.Duration {
	b.Helper()
	u, err := bench.Fdatasync(b.TempDir(), 500)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(u.Microseconds()), "us/fdatasync")
	return u
}

// reportMedian reports the median of times in fdatasyncs.
func reportMedian(b *testing.B, u time.Duration, took []time.Duration) {
	b.Helper()
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2])/float64(u), "fdatasyncs/median")
	b.ReportMetric(float64(took[len(took)*99/100])/float64(u), "fdatasyncs/p99")
}

// cpuTime is the processor time that the process has used: unlike the time on
// the clock it says the same on a machine with other work.
func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		b.Fatal(err)
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// addInstances puts instances into the inventory.
func (r *rig) addInstances(n int) {
	r.t.Helper()
	r.check(r.keeper.Update(ctx, func(s *cluster.Snapshot) ([]cluster.Change, error) {
		node := s.Cluster().MasterNode
		changes := make([]cluster.Change, n)
		for i := range changes {
			changes[i] = cluster.Put(&cluster.Instance{
				Meta: cluster.Meta{UUID: testkit.NewUUID()}, Name: fmt.Sprintf("bench%d.example", i), PrimaryNode: node,
			})
		}
		return changes, nil
	}))
}

// BenchmarkSubmitAlone is one client that waits for each acknowledgement.
func BenchmarkSubmitAlone(b *testing.B) {
	r := newRig(b, 20)
	u := unit(b)
	var took []time.Duration
	for b.Loop() {
		start := time.Now()
		r.submit(delay)
		took = append(took, time.Since(start))
	}
	reportMedian(b, u, took)
}

// BenchmarkNoopJob is one client that submits a job and waits for its end.
func BenchmarkNoopJob(b *testing.B) {
	for _, instances := range []int{0, 10_000} {
		b.Run(fmt.Sprintf("instances=%d", instances), func(b *testing.B) {
			r := newRig(b, 20)
			if instances > 0 {
				r.addInstances(instances)
			}
			u := unit(b)
			var took []time.Duration
			for b.Loop() {
				start := time.Now()
				r.status(r.submit(delay), job.Success)
				took = append(took, time.Since(start))
			}
			reportMedian(b, u, took)
		})
	}
}

// BenchmarkNoopJobs is many clients that submit jobs, one or a hundred at a time, and wait for their end, with as many
// slots as a new cluster has and with more: a job has its slot while its start becomes durable.
func BenchmarkNoopJobs(b *testing.B) {
	for _, c := range []struct{ clients, atOnce, slots int }{{200, 1, 20}, {64, 1, 100}, {8, 100, 20}, {8, 100, 100}} {
		b.Run(fmt.Sprintf("clients=%d,at_once=%d,slots=%d", c.clients, c.atOnce, c.slots), func(b *testing.B) {
			r := newRig(b, c.slots)
			u := unit(b)
			subs := make([]queue.Submission, c.atOnce)
			for i := range subs {
				subs[i].Ops = parse(b, delay)
			}
			var all sync.WaitGroup
			work := make(chan struct{}, c.clients)
			for range c.clients {
				all.Go(func() {
					for range work {
						if err := r.runAll(subs); err != nil {
							b.Error(err)
						}
					}
				})
			}
			n, cpu := 0, cpuTime(b)
			for ; b.Loop(); n++ {
				if n%c.atOnce == 0 {
					work <- struct{}{}
				}
			}
			close(work)
			all.Wait()
			b.ReportMetric(float64((cpuTime(b)-cpu).Microseconds())/float64(n), "us-cpu/job")
			perSecond := float64(n) / b.Elapsed().Seconds()
			b.ReportMetric(perSecond, "jobs/s")
			b.ReportMetric(perSecond*u.Seconds(), "jobs/fdatasync")
		})
	}
}

// runAll submits jobs together and waits for their ends.
func (r *rig) runAll(subs []queue.Submission) error {
	out, err := r.q.SubmitMany(ctx, subs)
	for _, o := range out {
		if err == nil {
			err = o.Err
		}
		if err == nil {
			_, err = r.q.Wait(ctx, o.ID, (*job.Job).Final)
		}
	}
	return err
}

// fill puts jobs into the queue that a rule holds.
func (r *rig) fill(n int) {
	r.t.Helper()
	r.rule(9, `"PAUSE"`, `[["opcode",["=","OP_ID","OP_TEST_DUMMY"]]]`)
	r.refill(n)
}

// refill puts more of them into it.
func (r *rig) refill(n int) {
	r.t.Helper()
	const batch = 1000
	for range n / batch {
		subs := make([]queue.Submission, batch)
		for i := range subs {
			subs[i].Ops = parse(r.t, because("filled"))
		}
		_, err := r.q.SubmitMany(ctx, subs)
		r.check(err)
	}
}

// BenchmarkRedecide asks 50 rules about 100,000 queued jobs again. With effect,
// the rule also lets go of all of them and takes them over.
func BenchmarkRedecide(b *testing.B) {
	r := newRig(b, 20)
	for i := range 49 {
		r.rule(i%8, `"PAUSE"`, fmt.Sprintf(`[["jobid",[">","id","watermark"]],["opcode",["=","OP_ID","OP_TEST_DUMMY"]],["reason",["=","reason","topic %d"]]]`, i))
	}
	r.fill(100_000)
	for name, predicates := range map[string]string{
		"no effect": `[["reason",["=","reason","nothing has this"]]]`, "all jobs": `[["reason",["=","reason","filled"]]]`,
	} {
		b.Run(name, func(b *testing.B) {
			cpu := cpuTime(b)
			for b.Loop() {
				uuid := r.rule(0, `"PAUSE"`, predicates)
				r.check(r.q.DeleteFilter(ctx, uuid, queue.By{}))
			}
			b.ReportMetric(float64((cpuTime(b)-cpu).Milliseconds())/float64(2*b.N), "ms-cpu/change")
			b.ReportMetric(float64(b.Elapsed().Milliseconds())/float64(2*b.N), "ms/change")
		})
	}
}

// BenchmarkRuleTakesEffect adds a rule that lets one of 10,000 held jobs go,
// and waits until that runs.
func BenchmarkRuleTakesEffect(b *testing.B) {
	r := newRig(b, 20)
	r.fill(10_000)
	u := unit(b)
	var took []time.Duration
	for id := job.ID(1); b.Loop(); id++ {
		start := time.Now()
		uuid := r.rule(0, `"ACCEPT"`, fmt.Sprintf(`[["jobid",["=","id",%d]]]`, id))
		r.began(id, 0)
		took = append(took, time.Since(start))
		r.check(r.q.DeleteFilter(ctx, uuid, queue.By{}))
		r.finish(id, 0, nil)
	}
	reportMedian(b, u, took)
}

// BenchmarkCancel ends waiting jobs, 10,000 of them and then as many more.
func BenchmarkCancel(b *testing.B) {
	const jobs = 10_000
	r := newRig(b, 20)
	r.fill(jobs)
	u := unit(b)
	var took []time.Duration
	for id := job.ID(1); b.Loop(); id++ {
		start := time.Now()
		_, err := r.q.Cancel(ctx, id, false, queue.By{})
		r.check(err)
		took = append(took, time.Since(start))
		if id%jobs == 0 { // none is left
			b.StopTimer()
			r.refill(jobs)
			b.StartTimer()
		}
	}
	reportMedian(b, u, took)
}

// BenchmarkRunningJob measures the memory of a job that runs.
func BenchmarkRunningJob(b *testing.B) {
	const jobs = 2000
	for b.Loop() {
		r := newRig(b, jobs)
		r.submit(delay)
		before := memory()
		var ids []job.ID
		for range jobs {
			ids = append(ids, r.submit(dummy))
		}
		for _, id := range ids {
			r.began(id, 0)
		}
		b.ReportMetric(float64(memory()-before)/jobs, "bytes/job")
	}
}

// BenchmarkWaitingJobs measures the memory of a job that waits, with all that is
// kept beside it and shown of it: for a slot, as a flood leaves them; for a rule;
// for a lock that another one has.
func BenchmarkWaitingJobs(b *testing.B) {
	const jobs, batch = 100_000, 1000
	trail := func(i int) string {
		return fmt.Sprintf(`"reason":[["gnt:user","OPS-%d",%d],["gnt:client:gnt-instance","shutdown",%d]]`, i, 1_700_000_000_000_000_000+i, 1_700_000_000_000_000_001+i)
	}
	for _, c := range []struct {
		waits string
		one   func(i int) string
	}{
		{"slot", func(i int) string {
			return fmt.Sprintf(`{"OP_ID":"OP_TEST_DELAY","duration":0.000001,"on_master":true,"on_nodes":[],%s}`, trail(i/100))
		}},
		{"slot,instances", func(i int) string {
			return fmt.Sprintf(`{"OP_ID":"OP_INSTANCE_SHUTDOWN","instance_name":"web%d.example.com",%s}`, i, trail(i/100))
		}},
		{"rule", func(i int) string {
			return fmt.Sprintf(`{"OP_ID":"OP_TEST_DUMMY","result":%d,"messages":[],"fail":false,"submit_jobs":[],%s}`, i, trail(i/100))
		}},
	} {
		b.Run(c.waits, func(b *testing.B) {
			for b.Loop() {
				r := newRig(b, 1)
				r.rule(9, `"PAUSE"`, `[["opcode",["=","OP_ID","OP_TEST_DUMMY"]]]`)
				r.began(r.submit(shutdown("busy.example.com")), 0) // it has the slot
				before := memory()
				for first := 0; first < jobs; first += batch {
					subs := make([]queue.Submission, batch)
					for i := range subs {
						subs[i].Ops = parse(b, c.one(first+i))
					}
					_, err := r.q.SubmitMany(ctx, subs)
					r.check(err)
				}
				b.ReportMetric(float64(memory()-before)/jobs, "bytes/job")
				if n := r.q.Jobs().Len(); n != jobs+1 {
					b.Fatalf("%d jobs", n)
				}
			}
		})
	}
}

// memory is what live objects and stacks take.
func memory() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc + m.StackInuse
}

// BenchmarkOpen opens a queue with 10,000 archived jobs, and with 10,000 that
// have ended and are not archived.
func BenchmarkOpen(b *testing.B) {
	for _, archived := range []bool{true, false} {
		b.Run(fmt.Sprintf("archived=%v", archived), func(b *testing.B) {
			r := newRig(b, 20)
			r.fill(10_000)
			r.cancelAll()
			if archived {
				_, _, err := r.q.AutoArchive(ctx, -1, time.Minute, queue.By{})
				r.check(err)
			}
			for b.Loop() {
				r.crash()
			}
		})
	}
}

// cancelAll cancels all jobs, many at a time.
func (r *rig) cancelAll() {
	var all sync.WaitGroup
	ids := make(chan job.ID)
	for range 100 {
		all.Go(func() {
			for id := range ids {
				if _, err := r.q.Cancel(ctx, id, false, queue.By{}); err != nil {
					r.t.Error(err)
				}
			}
		})
	}
	for j := range r.q.Jobs().All() {
		ids <- j.ID
	}
	close(ids)
	all.Wait()
}

// BenchmarkRedecideDependents asks a rule about 20,000 jobs that wait for one.
func BenchmarkRedecideDependents(b *testing.B) {
	r := newRig(b, 1)
	base := r.submit(dummy)
	const jobs, batch = 20_000, 1000
	for range jobs / batch {
		subs := make([]queue.Submission, batch)
		for i := range subs {
			subs[i].Ops = parse(b, depending(base))
		}
		_, err := r.q.SubmitMany(ctx, subs)
		r.check(err)
	}
	for b.Loop() {
		r.check(r.q.DeleteFilter(ctx, r.rule(0, `"PAUSE"`, `[["jobid",[">","id",1]]]`), queue.By{}))
	}
	b.ReportMetric(float64(b.Elapsed().Milliseconds())/float64(2*b.N), "ms/change")
}
