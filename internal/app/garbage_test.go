package app

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"testing"
)

// collectorGoal returns how much memory Go's collector lets be in use before it collects.
func collectorGoal() uint64 {
	debug.FreeOSMemory()
	goal := []metrics.Sample{{Name: "/gc/heap/goal:bytes"}}
	metrics.Read(goal)
	return goal[0].Value.Uint64()
}

// TestSpareGarbageIsNoMemory asks the collector when it will collect, and the system how much memory the
// process has, also where the spare lies in what was in use before, which the runtime clears. The race detector, which would touch it, is run with -short.
func TestSpareGarbageIsNoMemory(t *testing.T) {
	goal, memory := collectorGoal(), resident(t, "RssAnon")
	used := make([]byte, spare/2)
	for i := range used {
		used[i] = 1
	}
	runtime.KeepAlive(used)
	runtime.GC() // what was used is free, and not given back yet
	release := spareGarbage()
	if more := collectorGoal() - goal; more < spare {
		t.Errorf("the collector waits for %d bytes more", more)
	}
	more := resident(t, "RssAnon") - memory
	release()
	if more := int64(collectorGoal()) - int64(goal); more > spare/2 {
		t.Errorf("when released, the collector still waits for %d bytes more", more)
	}
	if more > spare/1024/4 && !testing.Short() {
		t.Errorf("%d kB more in memory", more)
	}
}
