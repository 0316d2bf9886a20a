package app_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/app"
	"github.com/drover-project/drover/internal/testkit/pgserver"
)

var noop = map[string]any{"OP_ID": "OP_TEST_DELAY", "duration": 1e-9, "no_locks": true, "reason": []any{}}

// BenchmarkStores has no-op jobs done, handed in by some clients a hundred at a
// time, with an embedded store and with PostgreSQL on the same disk.
func BenchmarkStores(b *testing.B) {
	const clients, perCall = 8, 100
	rate := func(url string) float64 {
		c := startWith(b, app.Options{Data: b.TempDir(), Store: url, Log: slog.New(slog.DiscardHandler)})
		defer func() {
			if err := c.stop(); err != nil {
				b.Error(err)
			}
		}()
		begun := time.Now()
		var all sync.WaitGroup
		for range clients {
			client := c.dial(b)
			all.Go(func() {
				list := slices.Repeat([]any{[]any{noop}}, perCall)
				for range b.N {
					if err := client.Call(b.Context(), "SubmitManyJobs", []any{list}, new(any)); err != nil {
						b.Error(err)
					}
				}
			})
		}
		all.Wait()
		c.delay(b) // runs when those before it have run
		return float64(clients*perCall*b.N) / time.Since(begun).Seconds()
	}
	embedded, postgres := rate(""), rate(pgserver.Start(b, true).URL("bench"))
	b.ReportMetric(embedded, "jobs/s-embedded")
	b.ReportMetric(postgres, "jobs/s-postgres")
	b.ReportMetric(postgres/embedded, "postgres/embedded")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkForwarding asks the leader and a standby in turn, over LUXI, and
// compares the medians.
func BenchmarkForwarding(b *testing.B) {
	both := groupOf(b, pgserver.Start(b, true).URL("bench"), 2)
	defer func() {
		for _, c := range slices.Backward(both) {
			if err := c.stop(); err != nil {
				b.Error(err)
			}
		}
	}()
	for _, method := range []struct {
		name, call string
		args       []any
		writes     bool
	}{
		{"a submission", "SubmitJob", []any{[]any{noop}}, false},
		{"a question", "QueryTags", []any{"cluster", ""}, false},
		{"a question while jobs are handed in", "QueryTags", []any{"cluster", ""}, true},
		{"a question for the leader", "QueryClusterInfo", []any{}, false},
		{"a list for the leader", "Query", []any{"lock", []string{"name", "mode", "owner", "pending"}, nil}, false},
	} {
		b.Run(method.name, func(b *testing.B) {
			if method.writes {
				defer both[0].busy(b)()
			}
			var took [2][]time.Duration
			for i, c := range both {
				client := c.dial(b)
				for range b.N {
					begun := time.Now()
					if err := client.Call(b.Context(), method.call, method.args, new(any)); err != nil {
						b.Fatal(err)
					}
					took[i] = append(took[i], time.Since(begun))
				}
				slices.Sort(took[i])
			}
			leader, standby := took[0][b.N/2], took[1][b.N/2]
			b.ReportMetric(leader.Seconds()*1e6, "us-leader")
			b.ReportMetric(standby.Seconds()*1e6, "us-standby")
			b.ReportMetric(float64(standby)/float64(leader), "standby/leader")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// BenchmarkForwardingRAPI changes something over the leader and a standby in turn, each
// time over a connection of its own as the stock client does, and compares the medians.
func BenchmarkForwardingRAPI(b *testing.B) {
	both := groupOf(b, pgserver.Start(b, true).URL("bench"), 2)
	defer func() {
		for _, c := range slices.Backward(both) {
			if err := c.stop(); err != nil {
				b.Error(err)
			}
		}
	}()
	var took [2][]time.Duration
	for range b.N {
		for i, c := range both {
			begun := time.Now()
			if status, _ := c.write(b, "secret", "bench"); status != http.StatusOK {
				b.Fatal(status)
			}
			took[i] = append(took[i], time.Since(begun))
		}
	}
	for i := range took {
		slices.Sort(took[i])
	}
	leader, standby := took[0][b.N/2], took[1][b.N/2]
	b.ReportMetric(leader.Seconds()*1e3, "ms-leader")
	b.ReportMetric(standby.Seconds()*1e3, "ms-standby")
	b.ReportMetric(float64(standby)/float64(leader), "standby/leader")
	b.ReportMetric(0, "ns/op")
}

// busy hands jobs in, one after the other, until it is told to stop.
func (c cluster) busy(b *testing.B) (stop func()) {
	b.Helper()
	ctx, cancel := context.WithCancel(b.Context())
	client, done := c.dial(b), make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			if err := client.Call(b.Context(), "SubmitJob", []any{[]any{noop}}, new(any)); err != nil {
				b.Error(err)
				return
			}
		}
	}()
	return func() {
		cancel()
		<-done
	}
}

// BenchmarkStandbyLag changes something over the leader, while jobs are handed in at
// 2,000 a second as long as the machine can do them, and asks a standby for an
// answer that is not older. What that takes longer than an answer that may be older
// is how far the standby's picture lags.
func BenchmarkStandbyLag(b *testing.B) {
	both := groupOf(b, pgserver.Start(b, true).URL("bench"), 2)
	defer func() {
		for _, c := range slices.Backward(both) {
			if err := c.stop(); err != nil {
				b.Error(err)
			}
		}
	}()
	ctx, stop := context.WithCancel(b.Context())
	var load sync.WaitGroup
	handed := 0
	client := both[0].dial(b)
	begun := time.Now()
	load.Go(func() {
		const perCall, calls = 100, 20
		tick := time.NewTicker(time.Second / calls)
		defer tick.Stop()
		list := slices.Repeat([]any{[]any{noop}}, perCall)
		for ctx.Err() == nil {
			if err := client.Call(b.Context(), "SubmitManyJobs", []any{list}, new(any)); err != nil {
				b.Error(err)
				return
			}
			handed += perCall
			<-tick.C
		}
	})
	asking := trusting()
	var waited, plain []time.Duration
	for range b.N {
		_, changed := both[0].write(b, "secret", "lag")
		waited = append(waited, both[1].readStale(b, asking, changed.Get("Drover-Revision")))
		plain = append(plain, both[1].readStale(b, asking, "0"))
	}
	stop()
	load.Wait()
	b.ReportMetric(float64(handed)/time.Since(begun).Seconds(), "jobs/s")
	slices.Sort(waited)
	slices.Sort(plain)
	b.ReportMetric((waited[b.N/2]-plain[b.N/2]).Seconds()*1e3, "ms-lag-p50")
	b.ReportMetric((waited[b.N*9/10]-plain[b.N/2]).Seconds()*1e3, "ms-lag-p90")
	b.ReportMetric(0, "ns/op")
}

// readStale asks a controller for what it knows that is not older than a revision,
// and returns how long that took.
func (c cluster) readStale(tb testing.TB, asking *http.Client, revision string) time.Duration {
	tb.Helper()
	r, err := http.NewRequestWithContext(tb.Context(), http.MethodGet, c.ready.RAPI+"/2/query/node?fields=name", http.NoBody)
	if err != nil {
		tb.Fatal(err)
	}
	r.SetBasicAuth("op", "secret")
	r.Header.Set("Drover-Stale", "1")
	r.Header.Set("Drover-Revision", revision)
	begun := time.Now()
	answer, err := asking.Do(r)
	if err != nil {
		tb.Fatal(err)
	}
	_, err = io.Copy(io.Discard, answer.Body)
	took := time.Since(begun)
	if err = errors.Join(err, answer.Body.Close()); err != nil || answer.StatusCode != http.StatusOK {
		tb.Fatalf("%s, %v", answer.Status, err)
	}
	return took
}
