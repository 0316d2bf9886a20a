package hostile

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"slices"
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
}

func always(r request) func(hostility) request { return func(hostility) request { return r } }

var floods = []flood{
	{"random requests", hostility.request},
	{"random requests about servers", hostility.serverRequest},
	{"submissions of a hundred jobs", always(submitMany(strings.Split(strings.Repeat(nothing+"\n", 99)+nothing, "\n")...))},
	{"submissions that are as large as they may be", always(submit(`{"OP_ID":"OP_TEST_DUMMY","result":` + quote(strings.Repeat("x", 200<<10)) + `,"messages":[],"fail":false,"reason":[["gnt:user","x",1]]}`))},
	{"frames that are too large", always(request{luxi: strings.Repeat("x", 17*mib)})},
	{"texts of keys", always(request{luxi: `{` + times(100_000, `"0":0`) + `}`})},
	{"searches for patterns of many states", always(luxi("Query", `"job"`, `["id"]`, `["=~","reason",`+quote(`[ab]*a[ab]{1000}c`)+`]`))},
	{"all jobs with all that is known of them", always(luxi("Query", `"job"`, `["id","ops","opresult","oplog","reason","summary"]`, "null"))},
	{"rules that come and run away", func(h hostility) request {
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
		var id int
		if err := client.Call(t.Context(), "SubmitJob", []any{[]any{json.RawMessage(nothing)}}, &id); err != nil {
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
	long = max(soakFlood, long/time.Duration(len(floods)+1))
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

// TestFloods measures what others feel of floods. How long they wait is asserted in
// a soak alone: see the package.
func TestFloods(t *testing.T) {
	g := start(t, testkit.Build(t), t.TempDir())
	t.Logf("DROVER_HOSTILE_SEED=%d", seed(t))
	g.bystander(t)
	goesOn := length(t)
	noise := g.submitting(t, func() { busy(goesOn()) })
	t.Logf("beside busy processors: worst second %v of %d submissions", noise.worst(), noise.count)
	for _, f := range floods {
		t.Run(f.what, func(t *testing.T) {
			before, _ := g.memory(t)
			g.forgetPeak()
			felt := g.submitting(t, func() { g.pour(t, f, goesOn()) })
			_, peak := g.memory(t)
			t.Logf("worst second %v of %d submissions (beside busy processors %v); %d MiB more at most", felt.worst(), felt.count, noise.worst(), (peak-before)>>20)
			if delay := felt.worst() - noise.worst(); delay > maxDelay && os.Getenv("DROVER_SOAK") != "" {
				t.Errorf("others wait %v longer than beside busy processors; the limit is %v", delay, maxDelay)
			}
			g.withoutRules(t)
			g.bystander(t)
		})
	}
}
