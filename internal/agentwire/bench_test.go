package agentwire

import (
	"context"
	"io"
	"log/slog"
	"net"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/console"
	"github.com/drover-project/drover/internal/hypervisor"
)

// BenchmarkCall has a node carry out calls that do nothing, over a link of both ends in this process.
func BenchmarkCall(b *testing.B) {
	for _, inFlight := range []int{1, 32} {
		b.Run(strconv.Itoa(inFlight), func(b *testing.B) {
			ca := newHouse(b)
			hub, l := ca.hub(slog.New(slog.DiscardHandler))
			h := newHandler(b, idle{})
			dial(b, dialer("node1", l, ca.config("node1"), h))
			b.Cleanup(h.Close)
			n := NewClient("node1", hub.Conn("node1"), 0)
			if err := n.Delay(b.Context(), 0); err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			b.SetParallelism(inFlight)
			used := processorTime(b)
			b.ResetTimer()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if err := n.Delay(b.Context(), 0); err != nil {
						b.Error(err)
					}
				}
			})
			b.ReportMetric(float64((processorTime(b)-used).Microseconds())/float64(b.N), "us-cpu/op")
		})
	}
}

// idle is a node that does nothing.
type idle struct{ Served }

func (idle) Node() string { return "node1" }

func (idle) Delay(context.Context, time.Duration) error { return nil }

// processorTime is what the process has used.
func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// drawing is a node whose machine draws without end on its screen, and echoes on its serial line what is typed.
type drawing struct {
	Served
	line *console.Line
}

func (drawing) Node() string { return "node1" }

func (d drawing) ReadConsole(ctx context.Context, _ hypervisor.Thing, at uint64, _ time.Duration) (console.Piece, error) {
	return d.line.Read(ctx, at), nil
}

func (d drawing) TypeConsole(_ context.Context, _ hypervisor.Thing, keys []byte) error {
	_, err := d.line.Write(keys)
	return err
}

func (drawing) OpenScreen(context.Context, hypervisor.Thing) (io.ReadWriteCloser, error) {
	ours, machine := net.Pipe()
	go func() { _, _ = io.Copy(machine, endless("a screen that changes all over")) }()
	return ours, nil
}

// paced are the bytes of a reader, as many a second.
type paced struct {
	io.Reader
	perSecond int
	begun     time.Time
	n         int
}

func (p *paced) Read(into []byte) (int, error) {
	if p.begun.IsZero() {
		p.begun = time.Now()
	}
	n, err := p.Reader.Read(into[:min(len(into), 16<<10)])
	p.n += n
	time.Sleep(time.Until(p.begun.Add(time.Duration(p.n) * time.Second / time.Duration(p.perSecond))))
	return n, err
}

// narrow is a way to an address that carries so many bytes a second in each direction, and holds few.
func narrow(b *testing.B, to string, perSecond int) net.Listener {
	b.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			here, err := l.Accept()
			if err != nil {
				return
			}
			there, err := net.Dial("tcp", to)
			if err != nil {
				_ = here.Close()
				continue
			}
			for _, way := range [][2]net.Conn{{here, there}, {there, here}} {
				const few = 32 << 10
				if err := way[0].(*net.TCPConn).SetReadBuffer(few); err != nil {
					b.Error(err)
				}
				all.Go(func() {
					_, _ = io.Copy(struct{ io.Writer }{way[1]}, &paced{Reader: way[0], perSecond: perSecond})
					_, _ = way[0].Close(), way[1].Close()
				})
			}
		}
	})
	b.Cleanup(all.Wait)
	b.Cleanup(func() { _ = l.Close() })
	return l
}

// BenchmarkConsoleBesideAScreen types on the serial line of a machine, and waits for the echo of each key, while somebody looks at a screen that changes all the time: over the one
// connection of their node, on loopback and over 12.5 MB/s.
func BenchmarkConsoleBesideAScreen(b *testing.B) {
	const slow = 12_500_000
	for _, c := range []struct {
		name        string
		screens     int
		way, viewer int // bytes a second, 0 for as many as there can be
	}{
		{"alone", 0, 0, 0},
		{"beside one that is drawn as it can be", 1, 0, 0},
		{"beside one whose viewer is slow", 1, 0, slow},
		{"alone over a narrow way", 0, slow, 0},
		{"beside one over a narrow way", 1, slow, 0},
	} {
		b.Run(c.name, func(b *testing.B) { typing(b, c.screens, c.way, c.viewer) })
	}
}

func typing(b *testing.B, screens, way, viewer int) {
	b.Helper()
	ca := newHouse(b)
	hub, l := ca.hub(slog.New(slog.DiscardHandler))
	if way > 0 {
		l = narrow(b, l.Addr().String(), way)
	}
	h := newHandler(b, drawing{line: new(console.Line)})
	dial(b, dialer("node1", l, ca.config("node1"), h))
	b.Cleanup(h.Close)
	n, of := NewClient("node1", hub.Conn("node1"), 0), hypervisor.Thing{UUID: "u", Name: "one"}

	var looking sync.WaitGroup
	for range screens {
		s, err := n.OpenScreen(b.Context(), of)
		if err != nil {
			b.Fatal(err)
		}
		var from io.Reader = s
		if viewer > 0 {
			from = &paced{Reader: s, perSecond: viewer}
		}
		if _, err := io.CopyN(io.Discard, from, 8<<20); err != nil { // what is kept on the way is full
			b.Fatal(err)
		}
		looking.Go(func() { _, _ = io.Copy(io.Discard, from) })
		b.Cleanup(looking.Wait)
		b.Cleanup(func() { _ = s.Close() })
	}
	if err := n.TypeConsole(b.Context(), of, []byte("x")); err != nil {
		b.Fatal(err)
	}
	came := make(chan time.Time)
	go func() {
		for at := uint64(0); ; {
			p, err := n.ReadConsole(b.Context(), of, at, time.Hour)
			if err != nil {
				return
			}
			at = p.Next
			select {
			case came <- time.Now():
			case <-b.Context().Done():
				return
			}
		}
	}()
	<-came
	var took []time.Duration
	for b.Loop() {
		begun := time.Now()
		if err := n.TypeConsole(b.Context(), of, []byte("x")); err != nil {
			b.Fatal(err)
		}
		took = append(took, (<-came).Sub(begun))
		time.Sleep(time.Millisecond) // somebody types
	}
	slices.Sort(took)
	const milli = float64(time.Millisecond)
	b.ReportMetric(float64(took[len(took)/2])/milli, "ms-median")
	b.ReportMetric(float64(took[len(took)*99/100])/milli, "ms-of-one-in-100")
	b.ReportMetric(0, "ns/op")
}
