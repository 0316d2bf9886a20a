package rollout

import (
	"slices"
	"testing"
	"time"
)

// BenchmarkOthersWhilePlanning plans for a thousand nodes, forty tasks on each, again and again, and reports how long others wait meanwhile that
// change a graph, submit a job, or look at a deployment: what one in a hundred of them waits at least, and the longest. To compare with, the same without plans.
func BenchmarkOthersWhilePlanning(b *testing.B) {
	for name, planning := range map[string]bool{"idle": false, "planning": true} {
		b.Run(name, func(b *testing.B) {
			r := newRig(b, 100)
			r.graph("g", chains(40))
			r.environment("e", simulatedNodes(nodesOfAll, 100), "g")
			r.graph("other", chains(1))
			first := r.plan(Wish{Environment: "e"})
			over := make(chan struct{})
			plans := 0
			go func() {
				defer close(over)
				for begun := time.Now(); time.Since(begun) < 5*time.Second; plans++ {
					if !planning {
						time.Sleep(5 * time.Second)
						continue
					}
					r.plan(Wish{Environment: "e"})
				}
			}()
			waits := map[string][]time.Duration{}
			timed := func(what string, f func()) {
				begun := time.Now()
				f()
				waits[what] = append(waits[what], time.Since(begun))
			}
			for going := true; going; {
				timed("graph", func() { r.graph("other", chains(1)) })
				timed("job", func() { r.noops(1) })
				timed("look", func() {
					if _, err := r.engine.Deployment(b.Context(), first.ID); err != nil {
						b.Error(err)
					}
				})
				select {
				case <-over:
					going = false
				case <-time.After(5 * time.Millisecond):
				}
			}
			for what, list := range waits {
				slices.Sort(list)
				b.ReportMetric(float64(list[len(list)-1].Microseconds())/1000, "ms-longest-"+what)
				b.ReportMetric(float64(list[len(list)*99/100].Microseconds())/1000, "ms-p99-"+what)
			}
			b.ReportMetric(float64(plans), "plans")
		})
	}
}
