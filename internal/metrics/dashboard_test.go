package metrics_test

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/metrics"
	"github.com/drover-project/drover/internal/testkit"
)

// The dashboard that is packaged must be that of the table.
func TestDashboardIsUpToDate(t *testing.T) {
	testkit.Golden(t, *update, "../../packaging/grafana/drover.json", metrics.Dashboard())
}

// TestPanelsAreWhole: each asks for figures that there are, is told apart from the others, and lies beside them; what is drawn says what it is. What
// Prometheus finds in them is tried in internal/app.
func TestPanelsAreWhole(t *testing.T) {
	known := map[string]bool{}
	for _, f := range metrics.Table() {
		known[f.Name] = true
	}
	seen := map[string]bool{}
	for _, p := range metrics.Panels() {
		if seen[p.Title] || p.Row == "" || p.Unit == "" || len(p.Queries) == 0 {
			t.Errorf("this panel is there twice, or is not whole: %+v", p)
		}
		seen[p.Title] = true
		for _, q := range p.Queries {
			for _, name := range regexp.MustCompile(`drover_[a-z_]*[a-z]`).FindAllString(q.Expr, -1) {
				if !known[strings.TrimSuffix(name, "_bucket")] {
					t.Errorf("%s asks for %s, which there is not", p.Title, name)
				}
			}
			if q.Legend == "" {
				t.Errorf("%s does not say what %s is", p.Title, q.Expr)
			}
		}
	}
	var board struct {
		Panels []struct {
			ID          int
			Type        string
			Description string
			GridPos     struct{ X, Y, W, H int }
		}
	}
	if err := json.Unmarshal([]byte(metrics.Dashboard()), &board); err != nil {
		t.Fatal(err)
	}
	taken := map[[2]int]int{}
	for i, p := range board.Panels {
		if p.ID != i+1 || p.Type != "row" && strings.Contains(p.Description, "](runbook.md") {
			t.Errorf("panel %d: %+v", i, p)
		}
		for x := range p.GridPos.W {
			for y := range p.GridPos.H {
				at := [2]int{p.GridPos.X + x, p.GridPos.Y + y}
				if other, is := taken[at]; is || at[0] >= 24 {
					t.Fatalf("panel %d lies on %d at %v", p.ID, other, at)
				}
				taken[at] = p.ID
			}
		}
	}
}
