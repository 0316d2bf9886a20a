package main

import (
	"runtime"
	"slices"
	"time"
)

// microseconds returns the median time of f over as many runs as fit into the budget, at least five. Short
// functions are run in batches, so that the clock's own cost does not count.
func microseconds(budget time.Duration, f func()) float64 {
	runtime.GC() // what earlier measurements left behind is not this one's cost
	batch := 1
	for {
		start := time.Now()
		for range batch {
			f()
		}
		if time.Since(start) > 50*time.Microsecond || batch >= 1<<16 {
			break
		}
		batch *= 2
	}
	var runs []float64
	for deadline := time.Now().Add(budget); len(runs) < 5 || time.Now().Before(deadline); {
		start := time.Now()
		for range batch {
			f()
		}
		runs = append(runs, float64(time.Since(start).Nanoseconds())/1000/float64(batch))
	}
	slices.Sort(runs)
	return runs[len(runs)/2]
}

// allocations returns how many objects one run of f allocates.
func allocations(f func()) float64 {
	const runs = 5
	f()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range runs {
		f()
	}
	runtime.ReadMemStats(&after)
	return float64(after.Mallocs-before.Mallocs) / runs
}
