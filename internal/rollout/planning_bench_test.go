package rollout

import (
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/testkit/fuel"
)

// BenchmarkOthersWhilePlanning makes requests all the time that change a graph, submit a job and wait for its end, look at a deployment and its tasks, and
// plan and begin deployments of another environment. In every second half second a thousand nodes are planned for, again and again: forty tasks on each,
// or those of the real graph. It reports of each kind of request what one in a hundred took at least, and the longest, in both halves, and how much more
// that is beside plans: what the machine does otherwise holds up both.
func BenchmarkOthersWhilePlanning(b *testing.B) {
	b.Run("chains", func(b *testing.B) {
		r := newRig(b, 100)
		r.graph("g", chains(40))
		r.environment("e", simulatedNodes(nodesOfAll, 100), "g")
		r.othersWhilePlanning(b)
	})
	b.Run("real", func(b *testing.B) {
		r := newRig(b, 100)
		r.realGraph()
		like := slices.Repeat([]string{fuel.Compute}, nodesOfAll)
		copy(like, fuel.Cloud(3))
		r.environment("e", realEnvironment(b, like...), "deployment")
		r.othersWhilePlanning(b)
	})
}

// othersWhilePlanning measures how long others wait while the environment e is planned.
func (r *rig) othersWhilePlanning(b *testing.B) {
	b.Helper()
	r.graph("one", chains(1))
	r.environment("small", simulatedNodes(3, 3), "one")
	first := r.plan(Wish{Environment: "small"})
	next := first
	kinds := []struct {
		what string
		do   func()
	}{
		{"graph", func() { r.graph("other", chains(1)) }},
		{"job", func() { r.noops(1) }},
		{"look", func() {
			if _, err := r.engine.Progress(b.Context(), first.ID); err != nil {
				b.Error(err)
			}
		}},
		{"plan", func() { next = r.plan(Wish{Environment: "small", Force: true}) }},
		{"begin", func() {
			if _, err := r.engine.Begin(b.Context(), next.ID, by); err != nil {
				b.Error(err)
			}
		}},
		{"end", func() { r.end(next.ID) }},
	}
	waits := map[string]map[bool][]time.Duration{}
	for _, k := range kinds {
		waits[k.what] = map[bool][]time.Duration{}
	}
	plans := 0
	for b.Loop() {
		for _, planning := range []bool{false, true} {
			over := make(chan struct{})
			go func() {
				defer close(over)
				for begun := time.Now(); time.Since(begun) < 500*time.Millisecond; {
					if !planning {
						time.Sleep(500 * time.Millisecond)
						continue
					}
					r.plan(Wish{Environment: "e"})
					plans++
				}
			}()
			for going := true; going; {
				for _, k := range kinds {
					begun := time.Now()
					k.do()
					waits[k.what][planning] = append(waits[k.what][planning], time.Since(begun))
				}
				select {
				case <-over:
					going = false
				case <-time.After(5 * time.Millisecond):
				}
			}
		}
		runtime.GC() // of what has been planned, so that it is no burden of the other half
	}
	for what := range waits {
		for name, of := range map[string]int{"p50": 50, "p99": 99, "longest": 100} {
			var took [2]float64
			for i, planning := range []bool{false, true} {
				list := waits[what][planning]
				slices.Sort(list)
				took[i] = float64(list[min(len(list)*of/100, len(list)-1)].Microseconds()) / 1000
				b.ReportMetric(took[i], "ms-"+what+"-"+name+"-"+map[bool]string{false: "alone", true: "planning"}[planning])
			}
			b.ReportMetric(took[1]-took[0], "ms-"+what+"-"+name+"-more")
		}
	}
	b.ReportMetric(float64(plans), "plans")
	b.Logf("%d requests of each kind beside plans, and %d without", len(waits["job"][true]), len(waits["job"][false]))
}
