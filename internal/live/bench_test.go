package live_test

import (
	"fmt"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/opcode"
	"github.com/drover-project/drover/internal/qlang"
	"github.com/drover-project/drover/internal/query"
	"github.com/drover-project/drover/internal/state"
)

// BenchmarkWatchers has 20 clients follow queries of 10,000 jobs, and changes one
// job after the other until all have seen it. It prints what the clients would cost
// together at 100 changes a second, in hundredths of one processor: the time of
// all processors, that of making the changes included.
func BenchmarkWatchers(b *testing.B) {
	const jobs, clients, perSecond = 10_000, 20, 100
	for _, c := range []struct {
		name  string
		query func(n int) query.Request
	}{
		{"same query", func(int) query.Request { return query.Request{What: "job", Fields: jobColumns} }},
		{"20 queries", func(n int) query.Request {
			return query.Request{What: "job", Fields: jobColumns, Filter: below(b, jobs+n+1)}
		}},
		{"20 queries, sorted, first 50", func(n int) query.Request {
			return query.Request{What: "job", Fields: jobColumns, Filter: below(b, jobs+n+1),
				Options: query.Options{Sort: query.ParseSort([]string{"-id"}), Limit: 50}}
		}},
	} {
		b.Run(c.name, func(b *testing.B) {
			r := newRig(b, 0)
			revision := r.Picture.Load().Revision
			publish := func(jobs ...*job.Job) {
				revision++
				r.Picture.Committed(&state.Change{Revision: revision, Jobs: jobs})
				r.Picture.Publish()
			}
			publish(manyJobs(jobs)...)
			var all sync.WaitGroup
			var seen sync.WaitGroup
			seen.Add(clients)
			for n := range clients {
				all.Go(func() {
					for u, err := range r.Follow(b.Context(), c.query(n), 0) {
						if err != nil {
							b.Error(err)
						}
						if u != nil {
							seen.Done()
						}
					}
				})
			}
			seen.Wait()
			begun := cpu()
			b.ResetTimer()
			for i := range b.N {
				seen.Add(clients)
				publish(aJob(jobs-i%50, 2+i))
				seen.Wait()
			}
			b.StopTimer()
			each := (cpu() - begun) / time.Duration(b.N)
			b.ReportMetric(float64(each.Microseconds()), "cpu-µs/change")
			b.ReportMetric(100*perSecond*each.Seconds(), "%core@100/s")
		})
	}
}

var jobColumns = []string{"id", "status", "summary", "priority", "received_ts", "start_ts", "end_ts", "reason"}

func below(b *testing.B, id int) qlang.Node {
	b.Helper()
	n, err := qlang.ParseText(fmt.Sprintf("id < %d", id))
	if err != nil {
		b.Fatal(err)
	}
	return n
}

func aJob(id, turn int) *job.Job {
	op := &opcode.Opcode{ID: "OP_TEST_DELAY", Params: map[string]any{"duration": 0.0}}
	return &job.Job{ID: job.ID(id), Received: job.Time(turn), Ops: []job.Op{{Input: op, Status: job.Running}}}
}

func manyJobs(n int) []*job.Job {
	out := make([]*job.Job, n)
	for i := range out {
		out[i] = aJob(i+1, 1)
	}
	return out
}

// cpu is the time of all processors that this process has used.
func cpu() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
