package plan_test

import (
	"fmt"
	"os"
	"syscall"
	"testing"

	"github.com/drover-project/drover/internal/deploy/expression"
	"github.com/drover-project/drover/internal/deploy/graph"
	"github.com/drover-project/drover/internal/deploy/plan"
	"github.com/drover-project/drover/internal/deploy/state"
	"github.com/drover-project/drover/internal/testkit/fuel"
	"github.com/drover-project/drover/yaql"
)

// synthetic makes an environment of n nodes after the recorded one: a primary controller, two controllers, three nodes
// with mongo, a tenth with ceph-osd, and the rest compute.
func synthetic(t testing.TB, n int) *yaql.Dict {
	t.Helper()
	like := make([]string, n)
	for i := range like {
		switch {
		case i == 0:
			like[i] = fuel.PrimaryController
		case i < 3:
			like[i] = fuel.Controller
		case i == 3:
			like[i] = fuel.PrimaryMongo
		case i < 6:
			like[i] = fuel.Mongo
		case i < 6+n/10:
			like[i] = fuel.CephOSD
		default:
			like[i] = fuel.Compute
		}
	}
	return fuel.Environment(t, like...)
}

// BenchmarkPlan computes plans of the real graph. One operation is a plan with its order, of states as they are read: what is
// remembered of them is made anew. Processor time per step tells whether what all nodes share is evaluated once.
func BenchmarkPlan(b *testing.B) {
	language := newLanguage(b)
	tasks := libraryGraph(b, language, "deployment")
	for _, n := range []int{10, 200, 1000} {
		env := synthetic(b, n)
		for _, name := range []string{"first", "unchanged"} {
			b.Run(fmt.Sprintf("nodes=%d/%s", n, name), func(b *testing.B) {
				steps := 0
				before := processorTime(b)
				for b.Loop() {
					steps = planOf(b, language, tasks, env, name == "unchanged")
				}
				b.ReportMetric(float64(processorTime(b)-before)/float64(b.N)/float64(steps), "us-cpu/step")
			})
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

// planOf computes a plan and its order and returns the number of its steps. The old state, if there is one, is equal
// to the new one but is not the same values.
func planOf(b *testing.B, language *expression.Language, tasks []*graph.Task, env *yaql.Dict, unchanged bool) int {
	b.Helper()
	in := plan.Input{Space: state.NewSpace(), Tasks: tasks}
	in.Common, in.Parts = parts(in.Space, env)
	in.Nodes = resolvable(in.Parts)
	if unchanged {
		common, nodes := parts(in.Space, env)
		in.OldCommon = common
		in.Old = func(_, uid string) (*state.Part, *state.Part, bool) { return common, nodes[uid], true }
	}
	p, err := plan.Build(b.Context(), language, in)
	if err != nil {
		b.Fatal(err)
	}
	if _, err := p.Order(); err != nil {
		b.Fatal(err)
	}
	return len(p.Steps)
}

// TestWriteSynthetic writes environments to the files that $DROVER_WRITE_SYNTHETIC names without their number of nodes,
// to measure the command with.
func TestWriteSynthetic(t *testing.T) {
	file := os.Getenv("DROVER_WRITE_SYNTHETIC")
	if file == "" {
		t.Skip("$DROVER_WRITE_SYNTHETIC is not set")
	}
	for _, n := range []int{10, 200, 1000} {
		if err := os.WriteFile(fmt.Sprint(file, n, ".json"), []byte(plan.Canonical(synthetic(t, n))), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
