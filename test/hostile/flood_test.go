package hostile

import (
	"cmp"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/luxiwire"
	"github.com/drover-project/drover/internal/testkit"
)

// clients is how many send a flood at once.
const clients = 4

// floodRequests is how many requests a flood has in the normal tests. In a soak it
// lasts for soakFlood, or longer.
const (
	floodRequests = 20
	soakFlood     = 20 * time.Second
)

// maxDelay is what a flood may add to the median of another client's worst second,
// beside what a machine adds whose processors are as busy with something else.
const maxDelay = 50 * time.Millisecond

// flood is what its clients send, again and again.
type flood struct {
	what string
	next func(h hostility) request
	// among says that there are many jobs before it begins.
	among bool
	// job is what a job that it leaves to wait may take of memory, in bytes; smallJob
	// if it is not set.
	job int64
}

// What a small job may take of memory while it waits, and one that has ended, in
// bytes (internal/queue: BenchmarkWaitingJobs, BenchmarkHistory).
const (
	smallJob = 2 << 10
	endedJob = 300
)

// collector is the part of the memory in use that may be garbage: see GOGC below.
const collector = 20

func always(r request) func(hostility) request { return func(hostility) request { return r } }

// largeText is in a submission that is as large as one may be without counting as
// memory in flight for longer than it is read.
const largeText = 200 << 10

var manyJobs = flood{what: "submissions of a hundred jobs",
	next: always(submitMany(strings.Split(strings.Repeat(nothing+"\n", 99)+nothing, "\n")...))}

var floods = []flood{
	{what: "random requests", next: hostility.request},
	{what: "random requests about servers", next: hostility.serverRequest},
	manyJobs,
	{what: "submissions that are as large as they may be", job: 2 * largeText,
		next: always(submit(`{"OP_ID":"OP_TEST_DUMMY","result":` + quote(strings.Repeat("x", largeText)) + `,"messages":[],"fail":false,"reason":[["gnt:user","x",1]]}`))},
	{what: "frames that are too large", next: always(request{luxi: strings.Repeat("x", 17*mib)})},
	{what: "texts of keys", next: always(request{luxi: `{` + times(100_000, `"0":0`) + `}`})},
	{what: "searches for patterns of many states", among: true,
		next: always(luxi("Query", `"job"`, `["id"]`, `["=~","reason",`+quote(`[ab]*a[ab]{1000}c`)+`]`))},
	{what: "all jobs with all that is known of them", among: true,
		next: always(luxi("Query", `"job"`, `["id","ops","opresult","oplog","reason","summary"]`, "null"))},
	{what: "rules that come and run away", next: func(h hostility) request {
		if h.IntN(2) == 0 {
			return rule(slow)
		}
		return submit(trailed(runaway))
	}},
}

// delays are how long somebody waited, by the second in which it was over.
type delays struct {
	begun     time.Time
	bySeconds map[int][]time.Duration
	count     int
}

func (d *delays) add(begun time.Time) {
	now := time.Now()
	second := int(now.Sub(d.begun) / time.Second)
	d.bySeconds[second] = append(d.bySeconds[second], now.Sub(begun))
	d.count++
}

// worst is the median of the worst second.
func (d *delays) worst() time.Duration {
	worst := time.Duration(0)
	for _, all := range d.bySeconds {
		slices.Sort(all)
		worst = max(worst, all[len(all)/2])
	}
	return worst
}

// submitting hands in jobs one after the other while something else goes on, and
// once at least.
func (g *target) submitting(t *testing.T, others func()) *delays {
	t.Helper()
	client, err := luxiwire.Dial(t.Context(), g.Ready.LUXI)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close() }() // it has its answers
	over := make(chan struct{})
	go func() {
		defer close(over)
		others()
	}()
	d := &delays{begun: time.Now(), bySeconds: map[int][]time.Duration{}}
	for {
		begun := time.Now()
		if _, err := handIn(t.Context(), client, nothing); err != nil {
			t.Errorf("another client's job is not taken: %v", err)
			<-over
			return d
		}
		d.add(begun)
		select {
		case <-over:
			return d
		case <-time.After(5 * time.Millisecond): // somebody with something to do, no flood
		}
	}
}

// until tells whether a flood goes on, given how many requests were sent.
type until func(sent int64) bool

func length(t *testing.T) func() until {
	t.Helper()
	soak := os.Getenv("DROVER_SOAK")
	if soak == "" {
		return func() until { return func(sent int64) bool { return sent < floodRequests } }
	}
	long, err := time.ParseDuration(soak)
	if err != nil {
		t.Fatalf("DROVER_SOAK: %v", err)
	}
	long = max(soakFlood, long/time.Duration(2*len(floods)+1))
	return func() until {
		end := time.Now().Add(long)
		return func(int64) bool { return time.Now().Before(end) }
	}
}

// pour sends a flood.
func (g *target) pour(t *testing.T, f flood, goesOn until) {
	t.Helper()
	var sent atomic.Int64
	var all sync.WaitGroup
	for i := range clients {
		h := hostility{rand.New(rand.NewPCG(seed(t), uint64(i)))}
		all.Go(func() {
			for goesOn(sent.Add(1)) {
				r := f.next(h)
				got, err := g.send(t.Context(), r)
				if err != nil || got.blamesUs() {
					t.Errorf("%s: %s %.300s %v", r, got.verdict, got.text, err)
					return
				}
			}
		})
	}
	all.Wait()
}

// busy keeps the processors as busy as a flood does, without the controller.
func busy(goesOn until) {
	var rounds atomic.Int64
	var all sync.WaitGroup
	for range clients {
		all.Go(func() {
			sum := uint64(1)
			for goesOn(rounds.Add(1)) {
				for range 2_000_000 {
					sum = sum*6364136223846793005 + 1442695040888963407
				}
			}
			rounds.Add(int64(sum & 1)) // so that it is computed
		})
	}
	all.Wait()
}

// TestFloods measures what others feel of floods, each by a controller of its own.
// How much memory it takes, and how long others wait, is asserted in a soak alone: see
// the package.
func TestFloods(t *testing.T) {
	bin := testkit.Build(t)
	t.Logf("DROVER_HOSTILE_SEED=%d", seed(t))
	goesOn, soak := length(t), os.Getenv("DROVER_SOAK") != ""
	g := start(t, bin, t.TempDir())
	g.bystander(t)
	noise := g.submitting(t, func() { busy(goesOn()) })
	g.Kill()
	t.Logf("beside busy processors: worst second %v of %d submissions", noise.worst(), noise.count)
	for _, f := range floods {
		t.Run("memory/"+f.what, func(t *testing.T) {
			// It is to tell what is held, not what the collector has not got round to.
			t.Setenv("GOGC", strconv.Itoa(collector))
			_, grown, allowed := suffer(t, bin, f, goesOn)
			t.Logf("%d MiB more at most, of %d", grown>>20, allowed>>20)
			if grown > allowed && soak {
				t.Errorf("the process grows by %d MiB; the limit is %d, with what its jobs need", grown>>20, allowed>>20)
			}
		})
		t.Run("delay/"+f.what, func(t *testing.T) {
			felt, grown, _ := suffer(t, bin, f, goesOn)
			t.Logf("worst second %v of %d submissions (beside busy processors %v); %d MiB more at most",
				felt.worst(), felt.count, noise.worst(), grown>>20)
			if delay := felt.worst() - noise.worst(); delay > maxDelay && soak {
				t.Errorf("others wait %v longer than beside busy processors; the limit is %v", delay, maxDelay)
			}
		})
	}
}

// suffer starts a controller and floods it. It returns what another client felt, and
// by how much the process grew and might grow.
func suffer(t *testing.T, bin string, f flood, goesOn func() until) (felt *delays, grown, allowed int64) {
	t.Helper()
	g := start(t, bin, t.TempDir())
	defer g.Kill()
	g.bystander(t)
	if f.among {
		g.pour(t, manyJobs, goesOn())
	}
	grown, allowed = g.growing(t, f, func() {
		felt = g.submitting(t, func() { g.pour(t, f, goesOn()) })
	})
	g.withoutRules(t)
	g.bystander(t)
	return felt, grown, allowed
}

// growing returns by how much the process grows at most while a flood goes on, and
// by how much it may: by maxGrowth, by what the jobs need that are there more than
// before, and by the garbage that the collector leaves beside all of it.
func (g *target) growing(t *testing.T, f flood, whileFlooded func()) (grown, allowed int64) {
	t.Helper()
	before, _ := g.memory(t)
	waitingBefore, endedBefore, err := g.jobs()
	if err != nil {
		t.Fatal(err)
	}
	g.forgetPeak()
	var needed int64
	look := func() {
		waiting, ended, err := g.jobs()
		if err != nil {
			t.Error(err)
		}
		needed = max(needed, max(0, waiting-waitingBefore)*cmp.Or(f.job, smallJob)+max(0, ended-endedBefore)*endedJob)
	}
	var looking sync.WaitGroup
	over := make(chan struct{})
	looking.Go(func() { // for they come and go
		for {
			select {
			case <-over:
				return
			case <-time.After(time.Second):
				look()
			}
		}
	})
	whileFlooded()
	close(over)
	looking.Wait()
	look()
	_, peak := g.memory(t)
	return peak - before, maxGrowth + needed + (before+needed)*collector/100
}

// jobs is how many there are that have not ended, and that have.
func (g *target) jobs() (waiting, ended int64, err error) {
	resp, err := g.http.Get(g.Ready.RAPI + "/metrics")
	if err != nil {
		return 0, 0, err
	}
	defer func() { _ = resp.Body.Close() }() // it was read
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, 0, err
	}
	for line := range strings.Lines(string(text)) {
		status, figure, _ := strings.Cut(strings.TrimSpace(line), "\"} ")
		status, ours := strings.CutPrefix(status, `drover_jobs{status="`)
		if !ours {
			continue
		}
		n, err := strconv.ParseFloat(figure, 64)
		if err != nil {
			return 0, 0, fmt.Errorf("%q: %w", line, err)
		}
		switch status {
		case "success", "error", "canceled":
			ended += int64(n)
		default:
			waiting += int64(n)
		}
	}
	return waiting, ended, nil
}
