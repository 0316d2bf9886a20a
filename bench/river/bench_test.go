package river

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/drover-project/drover/internal/testkit/pgserver"
)

// How both are offered jobs: by so many clients, each of which hands in so many at a time and waits until they are durable.
const (
	clients = 4
	perCall = 1000
)

// setting is one of the two with a number of jobs that may run at a time.
type setting struct {
	name string
	// slow says that fewer jobs are enough to know its rate.
	slow bool
	// before says that the jobs are handed in before the time begins.
	before bool
	// run has n jobs done in the schema that a URL names. What counts of it is what it has timed.
	run func(b *testing.B, url string, n int, timed func(work func()))
}

var rivers = []setting{
	{name: "River 100 workers as delivered", slow: true, run: riverSetting{workers: 100}.run},
	{name: "River 100 workers", run: riverSetting{workers: 100, eager: true}.run},
	{name: "River 1000 workers", run: riverSetting{workers: 1000, eager: true}.run},
	{name: "River 2000 workers", run: riverSetting{workers: 2000, eager: true}.run},
	{name: "River 2000 workers inserted before", before: true, run: riverSetting{workers: 2000, eager: true, before: true}.run},
}

var drovers = []setting{
	{name: "Drover 20 slots as delivered", run: droverSetting{slots: 20}.run},
	{name: "Drover 100 slots", run: droverSetting{slots: 100}.run},
	{name: "Drover 1000 slots", run: droverSetting{slots: 1000}.run},
	{name: "Drover 2000 slots", run: droverSetting{slots: 2000}.run},
	{name: "Drover 2000 slots handed in before", before: true, run: droverSetting{slots: 2000, before: true}.run},
}

// rounds is how often each setting has its turn; it counts with its median.
const rounds = 3

// BenchmarkNoopJobs has jobs done by both with several settings, as many jobs as it is told (-benchtime 50000x), and compares
// the best of the one with the best of the other. The time is that from the first job handed in to the last one whose end is
// durable; or, compared apart, from the moment when all that were handed in may begin.
func BenchmarkNoopJobs(b *testing.B) {
	server := pgserver.Start(b, true)
	rates := map[string][]float64{}
	for round := range rounds {
		for i, s := range slices.Concat(rivers, drovers) {
			var rate float64
			b.Run(s.name, func(b *testing.B) {
				rate = measure(b, server, "s"+strconv.Itoa(round)+"_"+strconv.Itoa(i)+"_"+strconv.Itoa(b.N), s)
			})
			rates[s.name] = append(rates[s.name], rate)
		}
	}
	best := func(of []setting, before bool) (most float64) {
		for _, s := range of {
			if s.before == before {
				slices.Sort(rates[s.name])
				most = max(most, rates[s.name][rounds/2])
			}
		}
		return most
	}
	for name, before := range map[string]bool{"the best of both": false, "the best of both handed in before": true} {
		b.Run(name, func(b *testing.B) {
			b.ReportMetric(best(rivers, before), "jobs/s-river")
			b.ReportMetric(best(drovers, before), "jobs/s-drover")
			b.ReportMetric(best(drovers, before)/best(rivers, before), "drover/river")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// measure runs one setting in a schema of its own, and returns how many jobs it did in a second. What came before is no
// burden of it.
func measure(b *testing.B, server *pgserver.Server, schema string, s setting) (rate float64) {
	b.Helper()
	n := b.N
	if s.slow {
		n = max(n/10, 1)
	}
	conn, err := pgx.Connect(b.Context(), server.URL(schema))
	check(b, err)
	defer func() { check(b, conn.Close(context.Background())) }()
	for _, statement := range []string{"CREATE SCHEMA " + schema, "CHECKPOINT"} {
		_, err = conn.Exec(b.Context(), statement)
		check(b, err)
	}
	s.run(b, server.URL(schema), n, func(work func()) {
		before := spent(b, conn)
		begun := time.Now()
		work()
		rate = float64(n) / time.Since(begun).Seconds()
		after := spent(b, conn)
		b.ReportMetric(float64(after.log-before.log)/float64(n), "log-bytes/job")
		b.ReportMetric(float64((after.own-before.own).Microseconds())/float64(n), "us-cpu/job")
		b.ReportMetric(float64((after.server-before.server).Microseconds())/float64(n), "us-cpu-server/job")
	})
	b.ReportMetric(rate, "jobs/s")
	b.ReportMetric(0, "ns/op")
	_, err = conn.Exec(b.Context(), "DROP SCHEMA "+schema+" CASCADE")
	check(b, err)
	return rate
}

// cost is what was spent until a moment: bytes of the server's log, and processor time of this process and of the server,
// which say the same on a busy machine as on an idle one.
type cost struct {
	log         int64
	own, server time.Duration
}

func spent(b *testing.B, conn *pgx.Conn) (c cost) {
	b.Helper()
	check(b, conn.QueryRow(b.Context(), "SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::bigint").Scan(&c.log))
	rows, err := conn.Query(b.Context(), "SELECT pid FROM pg_stat_activity")
	check(b, err)
	pids, err := pgx.CollectRows(rows, pgx.RowTo[int])
	check(b, err)
	for _, pid := range pids {
		c.server += processorTime(b, pid)
	}
	c.own = processorTime(b, os.Getpid())
	return c
}

// processorTime is what a process has used, or nothing if it has ended (proc(5): fields 14 and 15, in hundredths of a second).
func processorTime(b *testing.B, pid int) (used time.Duration) {
	b.Helper()
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if errors.Is(err, fs.ErrNotExist) {
		return 0
	}
	check(b, err)
	// The second field is a name in parentheses, which may hold anything.
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	for _, ticks := range fields[11:13] {
		n, err := strconv.Atoi(ticks)
		check(b, err)
		used += time.Duration(n) * time.Second / 100
	}
	return used
}

// hand has n jobs handed in by the clients.
func hand(b *testing.B, n int, call func(n int) error) {
	b.Helper()
	work := make(chan int, n/perCall+1)
	for left := n; left > 0; left -= perCall {
		work <- min(left, perCall)
	}
	close(work)
	var all sync.WaitGroup
	for range clients {
		all.Go(func() {
			for n := range work {
				if err := call(n); err != nil {
					b.Error(err)
				}
			}
		})
	}
	all.Wait()
}

func check(b *testing.B, err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}
