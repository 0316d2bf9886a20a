package history

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/testkit"
)

// BenchmarkTakeOver has leaders end in several ways, and measures how long a client of
// another controller is answered nothing meanwhile.
func BenchmarkTakeOver(b *testing.B) {
	g := newGroup(b, testkit.Build(b))
	for _, end := range []struct {
		name string
		of   func(leads *member, others []*member)
	}{
		{"stopped", func(leads *member, _ []*member) { leads.stop() }},
		{"killed", func(leads *member, _ []*member) { leads.kill() }},
		{"killed-and-a-standby-cut-off", func(leads *member, others []*member) {
			others[1].line.set(true)
			leads.kill()
		}},
	} {
		var all []time.Duration
		for range b.N {
			leads, others := g.leader()
			rest(g, time.Second) // who came back stands by for its turn, too
			all = append(all, g.pause(others[0], func() { end.of(leads, others) }))
			others[1].line.set(false)
			leads.start()
		}
		slices.Sort(all)
		b.Log(end.name, all)
		b.ReportMetric(float64(all[len(all)/2].Milliseconds()), "ms-"+end.name)
		b.ReportMetric(float64(all[len(all)-1].Milliseconds()), "ms-at-worst-"+end.name)
	}
	b.ReportMetric(0, "ns/op")
}

// pause has the leader end while a client asks a standby one thing after the other, and
// returns the longest time without an answer until another leads.
func (g *group) pause(standby *member, end func()) (longest time.Duration) {
	g.Helper()
	ctx, stop := context.WithCancel(g.Context())
	defer stop()
	before, asked := len(g.checkTerms()), make(chan struct{})
	go func() {
		defer close(asked)
		for last := time.Now(); ctx.Err() == nil; {
			if standby.ask(g.Context(), new(any), "QueryClusterInfo") == nil {
				longest = max(longest, time.Since(last))
				last = time.Now()
			}
		}
	}()
	end()
	g.until("another leads", func() bool { return len(g.checkTerms()) > before })
	standby.answers()
	stop()
	<-asked
	return longest
}
