package rollout

import (
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/drover-project/drover/internal/deploy/course"
)

// BenchmarkRun carries out deployments of tasks that do nothing: ten on each of a thousand nodes, each after the one
// before it on the node and the third after those of all others. One operation is a task on a node, its job and record
// included.
func BenchmarkRun(b *testing.B) {
	const nodes, tasks = 1000, 10
	r := newRig(b, 1)
	graph, env := &strings.Builder{}, &strings.Builder{}
	for i := range tasks {
		fmt.Fprintf(graph, "- {id: t%d, type: shell, version: 2.1.0, role: [n], parameters: {cmd: 'true'}, requires: [%s], cross-depends: [%s]}\n", i,
			map[bool]string{true: fmt.Sprint("t", i-1)}[i > 0], map[bool]string{true: "{name: t1, role: n}"}[i == 2])
	}
	env.WriteString("common: {}\nnodes:\n")
	for i := range nodes {
		fmt.Fprintf(env, "  \"%d\": {uid: \"%d\", roles: [n], name: node1}\n", i, i)
	}
	r.graph("g", graph.String())
	r.environment("e", env.String(), "g")
	before := processorTime(b)
	done := 0
	for b.Loop() {
		if done%(nodes*tasks) == 0 {
			p := r.over(r.start(Wish{Environment: "e"}))
			if p.Status != course.Done || p.Done() != nodes*tasks {
				b.Fatalf("%s: %v", p.Status, p.States)
			}
		}
		done++
	}
	runs := (done + nodes*tasks - 1) / (nodes * tasks)
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(runs*nodes*tasks), "us/task")
	b.ReportMetric(float64(processorTime(b)-before)/float64(runs*nodes*tasks), "us-cpu/task")
}

// over waits for the end of a deployment without asking how far it is, and returns how it ended.
func (r *rig) over(id int64) *course.Progress {
	r.Helper()
	for {
		changed := r.engine.cfg.Picture.Changed()
		d, err := r.engine.Deployment(id)
		if err != nil {
			r.Fatal(err)
		}
		if !d.Status.Active() {
			return r.end(id)
		}
		select {
		case <-changed:
		case <-r.Context().Done():
			r.Fatalf("deployment %d never ended", id)
		}
	}
}

// processorTime is what the process has used so far, in microseconds.
func processorTime(b *testing.B) int64 {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return (u.Utime.Nano() + u.Stime.Nano()) / 1000
}
