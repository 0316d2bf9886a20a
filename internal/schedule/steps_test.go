package schedule_test

import (
	"flag"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/schedule"
	"github.com/drover-project/drover/internal/testkit"
)

var update = flag.Bool("update", false, "write docs/waiting.md anew")

// TestWaitingPage holds docs/waiting.md to the tables of steps and of what jobs wait for.
func TestWaitingPage(t *testing.T) {
	var b strings.Builder
	b.WriteString("# What jobs wait for\n\nMade from the tables in `internal/job/waits.go` and `internal/schedule/schedule.go` (`go test ./internal/schedule -update`).\n\n" +
		"`drover job explain N` says what keeps one job from going on, since when, and what would release it; `drover job list -o +step,waits_for,waits_since` says it of all, and\n" +
		"`waited_for` what it was while it lasted (docs/compat/query.md).\n\n| it waits for | `waits_for` | `step` | until |\n|---|---|---|---|\n")
	for _, w := range job.WaitKinds {
		var steps []string
		for _, s := range schedule.Steps {
			if slices.Contains(s.For, w.Kind) {
				steps = append(steps, "`"+string(s.Step)+"`")
			}
		}
		if w.Past {
			steps = []string{"in `waited_for` alone"}
		}
		if len(steps) == 0 {
			t.Errorf("no step is for %s", w.Kind)
		}
		fmt.Fprintf(&b, "| %s | `%s` | %s | %s |\n", w.What, strings.TrimSpace(w.Word+" "+w.Of), strings.Join(steps, ", "), w.Ends)
	}
	testkit.Golden(t, *update, filepath.Join(testkit.Root(t), "docs", "waiting.md"), b.String())
}

// TestSteps: each step that a decision can have is in the table, once, and what waits is said what for.
func TestSteps(t *testing.T) {
	seen := map[schedule.Step]bool{}
	for _, s := range schedule.Steps {
		if seen[s.Step] || s.Stand == "" || s.Stand == schedule.Waits && len(s.For) == 0 {
			t.Errorf("%s: a bad row", s.Step)
		}
		seen[s.Step] = true
		for _, kind := range s.For {
			if !slices.ContainsFunc(job.WaitKinds, func(w job.WaitKind) bool { return w.Kind == kind && !w.Past }) {
				t.Errorf("%s is for %s, which nothing tells of", s.Step, kind)
			}
		}
	}
	for _, s := range []schedule.Step{schedule.Ended, schedule.InFlight, schedule.Cancel, schedule.Fail, schedule.Hold, schedule.WaitDependency, schedule.WaitNode,
		schedule.WaitBucket, schedule.WaitSlot, schedule.Run} {
		if !seen[s] {
			t.Errorf("%s has no row", s)
		}
	}
	if got := schedule.StepNames(); got != "hold, wait-dependency, wait-node, wait-bucket, wait-slot, in-flight, cancel, run or ended" {
		t.Errorf("lists show %s", got)
	}
}
