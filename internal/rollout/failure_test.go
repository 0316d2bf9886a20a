package rollout

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/agent"
	"github.com/drover-project/drover/internal/deploy/course"
	"github.com/drover-project/drover/internal/fault"
)

// TestFailuresTellThemselves: what failed is told with what it printed last and how much waits for it, also by the controller that comes
// after; of a success no output is kept.
func TestFailuresTellThemselves(t *testing.T) {
	r := newRig(t, 2)
	r.graph("g", "- {id: a, type: shell, version: 2.1.0, role: '*'}\n- {id: b, type: shell, version: 2.1.0, role: '*', requires: [a]}")
	r.environment("e", "nodes: {\"1\": {uid: \"1\", roles: [n]}, \"2\": {uid: \"2\", roles: [n]}}\nhosts: {\"1\": node1, \"2\": node2}", "g")
	r.simulate(func(_ context.Context, node string, _ agent.Task) error {
		if node == "node1" {
			return fault.New(fault.Failed, "no room")
		}
		return nil
	})
	id := r.start(Wish{Environment: "e"})
	r.end(id)
	r.close()
	r.open(0)
	p, err := r.engine.Progress(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	if x := p.Unsuccessful; len(x) != 1 || x[0].Error != "no room" || !slices.Equal(x[0].Output, []string{"simulated"}) || x[0].Job == 0 || x[0].Blocks != 1 {
		t.Errorf("told of the failure is %+v", x)
	}
	for _, c := range []struct{ task, node, output, roots string }{{"a", "1", "[simulated]", ""}, {"a", "2", "[]", ""}, {"b", "1", "[]", "1/a no room [simulated]"}} {
		x, err := r.engine.Explain(t.Context(), id, c.task, c.node)
		if err != nil {
			t.Fatal(err)
		}
		var roots []string
		for _, root := range x.Roots {
			roots = append(roots, fmt.Sprintf("%s/%s %s %v", root.Node, root.Task, root.Error, root.Output))
		}
		if got := strings.Join(roots, ", "); got != c.roots || fmt.Sprint(x.Output) != c.output {
			t.Errorf("%s on %s: roots %q and output %v, want %q and %s", c.task, c.node, got, x.Output, c.roots, c.output)
		}
	}
}

// TestWhoHoldsTheNode: a task that waits for its node says whose task is there.
func TestWhoHoldsTheNode(t *testing.T) {
	r := newRig(t, 1)
	r.graph("g", "- {id: a, type: shell, version: 2.1.0, role: '*'}")
	for _, name := range []string{"e", "f"} {
		r.environment(name, "nodes: {\"1\": {uid: \"1\", roles: [n]}}\nhosts: {\"1\": node1}", "g")
	}
	goes := make(chan struct{})
	r.simulate(func(ctx context.Context, _ string, _ agent.Task) error {
		select {
		case <-goes:
		case <-ctx.Done():
		}
		return nil
	})
	first := r.start(Wish{Environment: "e"})
	r.until(first, "running", func(p *course.Progress) bool { return len(p.Running) == 1 })
	second := r.start(Wish{Environment: "f"})
	p := r.until(second, "waiting for the node", func(p *course.Progress) bool { return len(p.Queued) == 1 })
	if w := p.Queued[0].Wait; w.Lock != "node/node1" || w.What != fmt.Sprintf("task a on node 1 of deployment %d", first) || w.Job == 0 || w.Since == 0 {
		t.Errorf("it waits for %+v", w)
	}
	close(goes)
	if p := r.end(second); p.Status != course.Done || len(p.Queued) != 0 {
		t.Errorf("%s, %v wait", p.Status, p.Queued)
	}
}

func TestTail(t *testing.T) {
	printed := &tail{}
	for i := range keptLines + 3 {
		printed.add(fmt.Sprint("line ", i))
	}
	printed.add(strings.Repeat("ä", 2*keptRunes))
	got := printed.lines()
	if len(got) != keptLines || got[0] != "line 4" || got[keptLines-2] != "line 12" || len([]rune(got[keptLines-1])) != keptRunes {
		t.Errorf("kept is %q", got)
	}
}
