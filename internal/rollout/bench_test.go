package rollout

import (
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/drover-project/drover/internal/deploy/course"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/opcode"
	"github.com/drover-project/drover/internal/queue"
)

// BenchmarkRun carries out deployments of tasks that do nothing: ten on each of a thousand nodes, each after the one before it
// on the node and the third after those of all others; and, as jobs alone, as many jobs that do nothing. One operation is
// a task on a node, its job and record included, or a job. Tasks of one host run one at a time.
func BenchmarkRun(b *testing.B) {
	for _, hosts := range []int{1, 100} {
		b.Run(fmt.Sprint("hosts=", hosts), func(b *testing.B) {
			r := newRig(b, hosts)
			r.graph("g", chains(tasksEach))
			r.environment("e", simulatedNodes(nodesOfAll, hosts), "g")
			perTask(b, func() {
				if p := r.over(r.start(Wish{Environment: "e"})); p.Status != course.Done || p.Done() != nodesOfAll*tasksEach {
					b.Fatalf("%s: %v", p.Status, p.States)
				}
			})
		})
	}
	b.Run("jobs alone", func(b *testing.B) {
		r := newRig(b, 1)
		perTask(b, func() {
			for range tasksEach {
				r.noops(nodesOfAll)
			}
		})
	})
}

const nodesOfAll, tasksEach = 1000, 10

// chains is a graph of so many tasks, each after the one before it.
func chains(n int) string {
	out := &strings.Builder{}
	for i := range n {
		fmt.Fprintf(out, "- {id: t%d, type: shell, version: 2.1.0, role: [n], parameters: {cmd: 'true'}, requires: [%s], cross-depends: [%s]}\n", i,
			map[bool]string{true: fmt.Sprint("t", i-1)}[i > 0], map[bool]string{true: "{name: t1, role: n}"}[i == 2])
	}
	return out.String()
}

// simulatedNodes is an environment of so many nodes on so many hosts.
func simulatedNodes(n, hosts int) string {
	out := &strings.Builder{}
	out.WriteString("common: {}\nnodes:\n")
	for i := range n {
		fmt.Fprintf(out, "  \"%d\": {uid: \"%d\", roles: [n], name: node%d}\n", i, i, 1+i%hosts)
	}
	return out.String()
}

// noops submits jobs that do nothing, and waits for their ends.
func (r *rig) noops(n int) {
	r.Helper()
	subs := make([]queue.Submission, n)
	for i := range subs {
		op, err := opcode.FromMap("OP_TEST_DELAY", map[string]any{"duration": 0.0, "on_master": true, "no_locks": true})
		if err != nil {
			r.Fatal(err)
		}
		subs[i].Ops = []*opcode.Opcode{op}
	}
	out, err := r.queue.SubmitMany(r.Context(), subs)
	if err != nil {
		r.Fatal(err)
	}
	for _, o := range out {
		if _, err := r.queue.Wait(r.Context(), o.ID, (*job.Job).Final); err != nil {
			r.Fatal(err)
		}
	}
}

// perTask repeats f, which does as many tasks as there are, and reports what one took.
func perTask(b *testing.B, f func()) {
	b.Helper()
	before, done := processorTime(b), 0
	for b.Loop() {
		if done%(nodesOfAll*tasksEach) == 0 {
			f()
		}
		done++
	}
	tasks := float64((done + nodesOfAll*tasksEach - 1) / (nodesOfAll * tasksEach) * nodesOfAll * tasksEach)
	b.ReportMetric(float64(b.Elapsed().Microseconds())/tasks, "us/task")
	b.ReportMetric(float64(processorTime(b)-before)/tasks, "us-cpu/task")
}

// over waits for the end of a deployment without asking how far it is, and returns how it ended.
func (r *rig) over(id int64) *course.Progress {
	r.Helper()
	for {
		changed := r.engine.cfg.Picture.Changed()
		d, err := r.engine.Deployment(r.Context(), id)
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
