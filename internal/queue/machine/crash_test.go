package machine

import (
	"flag"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
)

var killed = flag.Int("killed", 10_000, "in how many histories TestKilledAnywhere kills the controller")

// TestKilledAnywhere kills the controller in the middle of random histories:
// before a commit, between the transactions of one, after it and before
// anybody is told, and after some were. The machine that is then made of what is
// durable must have everything that was acknowledged, and run nothing twice
// that its log does not tell of; it goes on with the history from there.
// A failure names the history and the moment.
func TestKilledAnywhere(t *testing.T) {
	n := *killed
	if testing.Short() {
		n /= 50
	}
	const thorough = 50 // histories that are killed at each of their moments
	var all sync.WaitGroup
	var deaths atomic.Int64
	workers := runtime.GOMAXPROCS(0)
	for w := range workers {
		all.Go(func() {
			for seed := 1 + w; seed <= n && !t.Failed(); seed += workers {
				died, err := killIn(uint64(seed), seed <= thorough)
				if deaths.Add(died); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	t.Logf("%d histories, killed %d times", n, deaths.Load())
}

// killIn kills the controller at some moments of a history, each time in a
// history of its own; at all of them if it is to be thorough. It returns how often.
func killIn(seed uint64, thorough bool) (deaths int64, err error) {
	whole := newHistory(seed, func(string, ...any) {})
	if err := whole.live(); err != nil {
		return 0, fmt.Errorf("history %d: %w", seed, err)
	}
	const some = 2
	step := max(1, whole.points/some)
	if thorough {
		step = 1
	}
	for at := 1 + int(seed)%step; at <= whole.points; at += step {
		h := newHistory(seed, func(string, ...any) {})
		h.killAt = at
		deaths++
		if err := h.live(); err != nil {
			return deaths, fmt.Errorf("history %d, killed at moment %d: %w", seed, at, err)
		}
	}
	return deaths, nil
}

// kill unwinds what a history was doing when its controller died.
type kill struct{}

// point is a moment at which the controller can be killed.
func (h *world) point() {
	if h.points++; h.points == h.killAt {
		panic(kill{})
	}
}

// orKilled does something. If the controller is killed meanwhile, the next one
// finds what is durable.
func (h *world) orKilled(do func()) {
	defer func() {
		switch p := recover(); p {
		case nil:
		case kill{}:
			h.open()
		default:
			panic(p)
		}
	}()
	do()
}
