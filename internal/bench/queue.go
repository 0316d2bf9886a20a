package bench

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/drover-project/drover/internal/fault"
)

// The targets, as ratios to one fdatasync, rates, times and sizes.
const (
	submitTarget  = 4
	noopTarget    = 12
	jobsTarget    = 3000
	rapiTarget    = 5000
	effectTarget  = 50 * time.Millisecond
	memoryTarget  = 80 << 20
	clients       = 8
	fdatasyncRuns = 500
)

// runner carries out a run.
type runner struct {
	options
	controller
	report Report
	unit   time.Duration
	label  string // reason of this run's jobs
}

// measurement is one part of a run.
type measurement func(*runner, context.Context) error

// ofQueue are the measurements of the job queue.
var ofQueue = []measurement{(*runner).memory, (*runner).alone, (*runner).sustained, (*runner).overRAPI, (*runner).rules}

func run(ctx context.Context, o options, parts []measurement) (Report, error) {
	c, err := find(o.readyFile)
	if err != nil {
		return Report{}, err
	}
	r := &runner{options: o, controller: c, label: "bench " + rand.Text()}
	if r.unit, err = Fdatasync(c.dir, fdatasyncRuns); err != nil {
		return Report{}, err
	}
	r.report.Fdatasync[0] = milliseconds(r.unit)
	for _, measure := range parts {
		if err := measure(r, ctx); err != nil {
			return Report{}, err
		}
	}
	after, err := Fdatasync(c.dir, fdatasyncRuns)
	r.report.Fdatasync[1] = milliseconds(after)
	return r.report, err
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// latency adds a figure for the median of times, with a target in fdatasyncs.
func (r *runner) latency(name string, took []time.Duration, target float64) {
	slices.Sort(took)
	median := took[len(took)/2]
	ratio := float64(median) / float64(r.unit)
	r.add(Figure{Name: name, Value: milliseconds(median), Unit: "ms", Fdatasyncs: ratio,
		Target: fmt.Sprintf("< %g fdatasyncs", target), Met: ratio < target})
}

// rate adds a figure for a rate, with a target per second.
func (r *runner) rate(name string, n int, took time.Duration, target float64) {
	perSecond := float64(n) / took.Seconds()
	r.add(Figure{Name: name, Value: perSecond, Unit: "1/s", Fdatasyncs: perSecond * r.unit.Seconds(),
		Target: fmt.Sprintf(">= %g/s", target), Met: perSecond >= target})
}

func (r *runner) add(f Figure) { r.report.Figures = append(r.report.Figures, f) }

// memory looks at what the controller takes while it is idle.
func (r *runner) memory(context.Context) error {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", r.PID))
	if err != nil {
		return fault.New(fault.Environment, "cannot see the memory of the controller (process %d): %w", r.PID, err)
	}
	for line := range strings.Lines(string(text)) {
		rest, found := strings.CutPrefix(line, "VmRSS:")
		if !found {
			continue
		}
		kB, err := strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 64)
		if err != nil {
			return fault.New(fault.Internal, "cannot read the memory of the controller: %w", err)
		}
		r.add(Figure{Name: "memory before the run", Value: kB / 1024, Unit: "MiB", Target: "< 80 MiB", Met: kB*1024 < memoryTarget})
	}
	return nil
}

// alone measures one client that does one thing after the other.
func (r *runner) alone(ctx context.Context) error {
	c, err := r.dial(ctx)
	if err != nil {
		return err
	}
	defer c.close()
	submit, whole := make([]time.Duration, r.rounds), make([]time.Duration, r.rounds)
	for i := range whole {
		start := time.Now()
		id, err := c.submit(ctx)
		if err != nil {
			return err
		}
		submit[i] = time.Since(start)
		if err := c.succeeded(ctx, id); err != nil {
			return err
		}
		whole[i] = time.Since(start)
	}
	r.latency("submit a job over LUXI, median", submit, submitTarget)
	r.latency("submit a no-op job and wait for its end over LUXI, median", whole, noopTarget)
	return nil
}

// batch is how many jobs a client submits at once for the sustained rate.
const batch = 50

// sustained measures how many jobs go through, submitted by several clients.
func (r *runner) sustained(ctx context.Context) error {
	n := max(r.jobs/batch, 1) * batch
	took, err := timed(func() error { return r.throughput(ctx, n) })
	if err != nil {
		return err
	}
	r.rate(fmt.Sprintf("no-op jobs from submission to end over LUXI, %d clients, %d jobs", clients, n), n, took, jobsTarget)
	return nil
}

// throughput has several clients share n jobs, each from its submission to its end.
func (r *runner) throughput(ctx context.Context, n int) error {
	return r.together(n/batch, func(batches <-chan struct{}) error {
		c, err := r.dial(ctx)
		if err != nil {
			return err
		}
		defer c.close()
		for range batches {
			ids, err := c.submitMany(ctx, batch)
			if err != nil {
				return err
			}
			if err := c.succeeded(ctx, ids...); err != nil {
				return err
			}
		}
		return nil
	})
}

// together lets several clients share so many pieces of work.
func (r *runner) together(pieces int, client func(<-chan struct{}) error) error {
	work := make(chan struct{}, pieces)
	for range pieces {
		work <- struct{}{}
	}
	close(work)
	failures := make([]error, clients)
	var all sync.WaitGroup
	for i := range failures {
		all.Go(func() { failures[i] = client(work) })
	}
	all.Wait()
	for _, err := range failures {
		if err != nil {
			return err
		}
	}
	return nil
}

// overRAPI measures submissions over RAPI by several clients that keep their
// connections.
func (r *runner) overRAPI(ctx context.Context) error {
	n := max(r.jobs, 1)
	var ids []int64
	took, err := timed(func() (err error) { ids, err = r.submissions(ctx, n); return err })
	if err != nil {
		return err
	}
	r.rate(fmt.Sprintf("submissions over RAPI, %d keep-alive clients, %d jobs", clients, n), n, took, rapiTarget)
	c, err := r.dial(ctx)
	if err != nil {
		return err
	}
	defer c.close()
	return c.succeeded(ctx, ids...)
}

// submissions has several clients share n submissions over RAPI, and returns the jobs.
func (r *runner) submissions(ctx context.Context, n int) (all []int64, err error) {
	ids := make(chan int64, n)
	err = r.together(n, func(work <-chan struct{}) error {
		c := r.newRAPI()
		defer c.http.CloseIdleConnections()
		for range work {
			id, err := c.submit(ctx)
			if err != nil {
				return err
			}
			ids <- id
		}
		return nil
	})
	close(ids)
	for id := range ids {
		all = append(all, id)
	}
	return all, err
}

// rules measures how fast a rule takes hold and lets go, and a cancel.
func (r *runner) rules(ctx context.Context) error {
	c, err := r.dial(ctx)
	if err != nil {
		return err
	}
	defer c.close()
	var add, release, cancel []time.Duration
	for range max(r.rounds/10, 3) {
		start := time.Now()
		rule, err := c.pause(ctx, r.label)
		if err != nil {
			return err
		}
		add = append(add, time.Since(start))
		err = r.held(ctx, c, rule, &release, &cancel)
		if err != nil {
			_ = c.call(ctx, "DeleteFilter", nil, rule) // the first error says more
			return err
		}
	}
	r.effect("a new filter rule is in force, median", add)
	r.effect("a held job ends after its rule is deleted, median", release)
	r.effect("a held job is cancelled, median", cancel)
	return nil
}

// held submits jobs that the rule holds, cancels one and lets the other go.
func (r *runner) held(ctx context.Context, c *client, rule string, release, cancel *[]time.Duration) error {
	ids, err := c.submitMany(ctx, 2)
	if err != nil {
		return err
	}
	for _, id := range ids {
		if status, err := c.status(ctx, id); err != nil || status != "queued" {
			return fault.New(fault.Failed, "job %d should be held and is %s", id, status)
		}
	}
	start := time.Now()
	if err := c.call(ctx, "CancelJob", nil, ids[0]); err != nil {
		return err
	}
	if status, err := c.end(ctx, ids[0]); err != nil || status != "canceled" {
		return fault.New(fault.Failed, "job %d was cancelled and is %s", ids[0], status)
	}
	*cancel = append(*cancel, time.Since(start))
	start = time.Now()
	if err := c.call(ctx, "DeleteFilter", nil, rule); err != nil {
		return err
	}
	err = c.succeeded(ctx, ids[1])
	*release = append(*release, time.Since(start))
	return err
}

// effect adds a figure for the median of times, with the target of 50 ms.
func (r *runner) effect(name string, took []time.Duration) {
	slices.Sort(took)
	median := took[len(took)/2]
	r.add(Figure{Name: name, Value: milliseconds(median), Unit: "ms", Fdatasyncs: float64(median) / float64(r.unit),
		Target: "< 50 ms", Met: median < effectTarget})
}
