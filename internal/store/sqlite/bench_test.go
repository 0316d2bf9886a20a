package sqlite_test

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/store"
	"github.com/drover-project/drover/internal/store/sqlite"
)

// A job of the size that the queue writes.
var benchValue = []byte(`{"id":1,"ops":"` + strings.Repeat("x", 680) + `"}`)

func openBench(b *testing.B) *sqlite.Store {
	b.Helper()
	s, err := sqlite.Open(b.TempDir(), sqlite.Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := s.Close(); err != nil {
			b.Error(err)
		}
	})
	return s
}

// fdatasync measures the median time of an appended 4 KiB block made durable on
// the disk of a directory: the unit of the figures here.
func fdatasync(b *testing.B) time.Duration {
	b.Helper()
	f, err := os.Create(filepath.Join(b.TempDir(), "raw"))
	if err != nil {
		b.Fatal(err)
	}
	defer func() {
		if err := f.Close(); err != nil {
			b.Error(err)
		}
	}()
	const n = 1000
	block := make([]byte, 4096)
	took := make([]time.Duration, n)
	for i := range took {
		start := time.Now()
		if _, err := f.Write(block); err != nil {
			b.Fatal(err)
		}
		if err := syscall.Fdatasync(int(f.Fd())); err != nil {
			b.Fatal(err)
		}
		took[i] = time.Since(start)
	}
	slices.Sort(took)
	return took[n/2]
}

func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		b.Fatal(err)
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

func benchTx(i int) store.Tx {
	return store.Tx{Put: []store.Put{{Key: store.Key{Kind: "job", ID: strconv.Itoa(i)}, Value: benchValue}}}
}

// BenchmarkCommitAlone is one client that waits for each commit.
func BenchmarkCommitAlone(b *testing.B) {
	s := openBench(b)
	unit := fdatasync(b)
	took := make([]time.Duration, 0, b.N)
	for i := 0; b.Loop(); i++ {
		start := time.Now()
		if _, err := store.Commit(b.Context(), s, benchTx(i)); err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(start))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2])/float64(unit), "fdatasyncs/median")
	b.ReportMetric(float64(took[len(took)*99/100])/float64(unit), "fdatasyncs/p99")
	b.ReportMetric(float64(unit.Microseconds()), "us/fdatasync")
}

// BenchmarkCommitGrouped is a queue at work: at most 1,000 transactions in flight, each job is
// written three times. An operation is one transaction.
func BenchmarkCommitGrouped(b *testing.B) {
	s := openBench(b)
	unit := fdatasync(b)
	inFlight := make(chan struct{}, 1000)
	var all sync.WaitGroup
	cpu := cpuTime(b)
	n := 0
	for ; b.Loop(); n++ {
		inFlight <- struct{}{}
		all.Add(1)
		s.Enqueue(benchTx(n/3-n%3*100), func(_ store.Revision, err error) {
			if err != nil {
				b.Error(err)
			}
			<-inFlight
			all.Done()
		})
	}
	all.Wait()
	b.ReportMetric(float64((cpuTime(b)-cpu).Microseconds())/float64(n), "us-cpu/op")
	perSecond := float64(n) / b.Elapsed().Seconds()
	b.ReportMetric(perSecond, "puts/s")
	b.ReportMetric(perSecond*unit.Seconds(), "puts/fdatasync")
}

// BenchmarkWatch follows grouped commits; an operation is one change seen.
func BenchmarkWatch(b *testing.B) {
	s := openBench(b)
	go func() {
		for i := range b.N {
			s.Enqueue(benchTx(i), nil)
		}
	}()
	seen := 0
	for changes, err := range s.Watch(b.Context(), 0) {
		if err != nil {
			b.Fatal(err)
		}
		if seen += len(changes); seen >= b.N {
			break
		}
	}
}

// BenchmarkReplay reads the feed of the last 10,000 commits from the database.
func BenchmarkReplay(b *testing.B) {
	s := openBench(b)
	const n = 10_000
	for i := range n {
		s.Enqueue(benchTx(i), nil)
	}
	if _, err := store.Commit(b.Context(), s, store.Tx{}); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		seen := 0
		for after := store.Revision(0); seen < n; {
			changes, err := s.Changes(b.Context(), after, 1000)
			if err != nil {
				b.Fatal(err)
			}
			seen += len(changes)
			after = changes[len(changes)-1].Revision
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/change")
}

// BenchmarkList reads 10,000 objects, as a controller does when it starts.
func BenchmarkList(b *testing.B) {
	s := openBench(b)
	const n = 10_000
	for i := range n {
		s.Enqueue(benchTx(i), nil)
	}
	if _, err := store.Commit(b.Context(), s, store.Tx{}); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		for _, err := range s.List(b.Context(), "job", store.Options{}) {
			if err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/object")
}

// BenchmarkGet reads one object.
func BenchmarkGet(b *testing.B) {
	s := openBench(b)
	if _, err := store.Commit(b.Context(), s, benchTx(1)); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := s.Get(b.Context(), store.Key{Kind: "job", ID: "1"}); err != nil {
			b.Fatal(err)
		}
	}
}
