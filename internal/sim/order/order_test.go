package order_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/drover-project/drover/internal/sim/order"
)

// race has goroutines, timers, cases and maps come in whatever order, and tells in which.
func race(t *testing.T, seed uint64) string {
	var told strings.Builder
	order.Begin(seed)
	synctest.Test(t, func(*testing.T) {
		var mu sync.Mutex
		tell := func(format string, args ...any) {
			mu.Lock()
			defer mu.Unlock()
			fmt.Fprintf(&told, format+" ", args...)
		}
		var all sync.WaitGroup
		a, b := make(chan int), make(chan int)
		set := map[int]bool{}
		for i := range 12 {
			set[i] = true
			all.Go(func() {
				time.Sleep(time.Duration(i%3) * time.Millisecond)
				tell("g%d", i)
				[]chan int{a, b}[i%2] <- i
			})
		}
		all.Go(func() {
			for range 12 {
				select {
				case n := <-a:
					tell("a%d", n)
				case n := <-b:
					tell("b%d", n)
				}
			}
		})
		all.Wait()
		tell("%v %d", slices.Collect(maps.Keys(set)), rand.IntN(1000))
	})
	steps, digest := order.End()
	return fmt.Sprintf("%s%d %x", told.String(), steps, digest)
}

// TestASeedIsOneOrder: the same seed is the same order each time, also beside other work,
// and other seeds are others.
func TestASeedIsOneOrder(t *testing.T) {
	if !order.Repeats {
		t.Skip("only with the overlay (make simulate REPEAT=n)")
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	race(t, 0) // what is made once is made
	orders := map[string]uint64{}
	for seed := range uint64(200) {
		first := race(t, seed)
		for range 5 {
			if again := race(t, seed); again != first {
				t.Fatalf("seed %d is two orders:\n%s\n%s", seed, first, again)
			}
		}
		if other, known := orders[first]; known {
			t.Errorf("seeds %d and %d are one order", seed, other)
		}
		orders[first] = seed
	}
}

// TestAMapMoreIsNoOtherOrder: what is made when it is first needed is made in one of two
// histories of a seed alone.
func TestAMapMoreIsNoOtherOrder(t *testing.T) {
	if !order.Repeats {
		t.Skip("only with the overlay (make simulate REPEAT=n)")
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	walk := func(more bool) (keys []int) {
		order.Begin(7)
		defer order.End()
		synctest.Test(t, func(*testing.T) {
			for n := range 2 {
				set := map[int]bool{}
				for i := range 100 {
					set[i] = true
				}
				if n == 1 || more {
					keys = slices.Collect(maps.Keys(set))
				}
			}
		})
		return keys
	}
	if once, twice := walk(false), walk(true); !slices.Equal(once, twice) {
		t.Errorf("behind another map the order is another:\n%v\n%v", once, twice)
	}
}

// TestContextsEndInOneOrder: many contexts that end with another do so in the order in
// which they came, wherever in memory they are.
func TestContextsEndInOneOrder(t *testing.T) {
	if !order.Repeats {
		t.Skip("only with the overlay (make simulate REPEAT=n)")
	}
	const many = 50
	ends := func(apart int) (ended []int) {
		order.Begin(7)
		defer order.End()
		synctest.Test(t, func(t *testing.T) {
			parent, end := context.WithCancel(t.Context())
			var mu sync.Mutex
			for i := range many {
				_ = make([]byte, apart)
				context.AfterFunc(parent, func() {
					mu.Lock()
					defer mu.Unlock()
					ended = append(ended, i)
				})
			}
			end()
			synctest.Wait()
		})
		return ended
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	first := ends(0)
	for apart := range 20 {
		if again := ends(100 * apart); len(again) != many || !slices.Equal(first, again) {
			t.Fatalf("they end in another order:\n%v\n%v", first, again)
		}
	}
}

// TestASelectWaitsInOneOrder: timers that a select waits for take their places among others in the order in which they were
// made, and not in that of their addresses.
func TestASelectWaitsInOneOrder(t *testing.T) {
	if !order.Repeats {
		t.Skip("only with the overlay (make simulate REPEAT=n)")
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	waits := func(seed uint64, falls bool) (first string) {
		order.Begin(seed)
		defer order.End()
		synctest.Test(t, func(t *testing.T) {
			a, b := two(t, falls)
			select {
			case <-a:
				first = "the older"
			case <-b:
				first = "the younger"
			}
		})
		return first
	}
	came := map[string]int{}
	for seed := range uint64(20) {
		up, down := waits(seed, false), waits(seed, true)
		if up != down {
			t.Errorf("seed %d: %s comes first, and %s where the younger is before it in memory", seed, up, down)
		}
		came[up]++
	}
	if len(came) != 2 {
		t.Errorf("one comes first with every seed: %v", came)
	}
}

// TestWhoGivesWayIsDrawn: who lets others go first is one of those that can go on, of whom the next is drawn. In Go's own queue
// for such, each waits its turn, and until nobody else can go on: that depends on what else the process does.
func TestWhoGivesWayIsDrawn(t *testing.T) {
	if !order.Repeats {
		t.Skip("only with the overlay (make simulate REPEAT=n)")
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	give := func(seed uint64) string {
		var told strings.Builder
		order.Begin(seed)
		synctest.Test(t, func(*testing.T) {
			var all sync.WaitGroup
			for i := range 4 {
				all.Go(func() {
					for range 5 {
						fmt.Fprintf(&told, "%d", i) // one processor
						runtime.Gosched()
					}
				})
			}
			all.Wait()
		})
		order.End()
		return told.String()
	}
	orders := map[string]bool{}
	for seed := range uint64(20) {
		first := give(seed)
		if again := give(seed); again != first {
			t.Fatalf("seed %d is two orders: %s and %s", seed, first, again)
		}
		orders[first] = true
	}
	if len(orders) < 15 {
		t.Errorf("20 seeds are %d orders", len(orders))
	}
}

// two returns timers of one moment, the older first, of which the younger is the one with the higher address, or with
// the lower one.
func two(t *testing.T, falls bool) (older, younger <-chan time.Time) {
	t.Helper()
	at := func(c <-chan time.Time) uintptr { return reflect.ValueOf(c).Pointer() }
	older = time.After(time.Second)
	for range 1 << 16 {
		younger = time.After(time.Second)
		if at(younger) < at(older) == falls {
			return older, younger
		}
		if falls {
			older = younger
		}
	}
	t.Fatal("all addresses are in order")
	return nil, nil
}
