package app

import (
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
// process has. The race detector, which would touch it, is run with -short.
func TestSpareGarbageIsNoMemory(t *testing.T) {
	touched := 0
	for range 3 { // the runtime clears what was in use before, which a stretch as long as this seldom was: on a busy machine, once in forty times
		goal, memory := collectorGoal(), resident(t, "RssAnon")
		release := spareGarbage()
		if more := collectorGoal() - goal; more < spare {
			t.Errorf("the collector waits for %d bytes more", more)
		}
		more := resident(t, "RssAnon") - memory
		release()
		if more := int64(collectorGoal()) - int64(goal); more > spare/2 {
			t.Errorf("when released, the collector still waits for %d bytes more", more)
		}
		if more <= spare/1024/4 || testing.Short() {
			return
		}
		touched = more
	}
	t.Errorf("%d kB more in memory", touched)
}
