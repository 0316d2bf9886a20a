package deployments

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/drover-project/drover/internal/deploy/report"
)

// TestAPlanOfManyNodesFitsAScreen: a plan has at most 39 lines of 80 columns, whatever it runs, and says what it leaves out.
func TestAPlanOfManyNodesFitsAScreen(t *testing.T) {
	var rows []report.Row
	for task := range 60 {
		for node := range 200 {
			why := "$.debug: false -> true"
			if task == 3 { // of each node its own
				why = fmt.Sprintf("$.ip: %q -> %q%s", fmt.Sprint("10.0.0.", node), fmt.Sprint("10.0.1.", node), strings.Repeat("x", 100))
			}
			role := "compute"
			if node < 26 {
				role = fmt.Sprint("role", node%6)
			}
			rows = append(rows, report.Row{Task: fmt.Sprint("task", task), Node: strconv.Itoa(node), Roles: []string{role}, Why: why})
		}
	}
	page := planPage("prod: ", 20000, rows, false, 80)
	lines := strings.Split(strings.TrimSuffix(page, "\n"), "\n")
	if len(lines) > 39 {
		t.Errorf("there are %d lines", len(lines))
	}
	for line := range strings.SplitSeq(planPage("", 20000, rows, true, 80), "\n") {
		if utf8.RuneCountInString(line) > 80 {
			t.Errorf("a line is too long: %s", line)
		}
	}
	for _, want := range []string{"prod: 12000 of 20000 tasks run, on 200 nodes\n", "\ntask0 on 200 nodes (compute 174, role0 5, role1 5, role2 4, ...): $.debug: false\n  -> true\n",
		"\n    node 0: $.ip: \"10.0.0.0\"", "\n    and 197 more reasons\n", " more; --all shows them\n"} {
		if !strings.Contains(page, want) {
			t.Errorf("nothing says %q:\n%s", want, page)
		}
	}
	if all := planPage("", 20000, rows, true, 80); !strings.Contains(all, "task59 on") || !strings.Contains(all, "node 199: ") || strings.Contains(all, "--all") {
		t.Error("not all is shown")
	}
	if got := planPage("prod: ", 9, nil, false, 80); got != "prod: nothing to do: 0 of 9 tasks run\n" {
		t.Errorf("got %q", got)
	}
	few := []report.Row{{Task: "a", Node: "10", Why: "w"}, {Task: "a", Node: "2", Why: "w\x1b[2J"}}
	if got := planPage("", 9, few, false, 80); got != "2 of 9 tasks run, on 2 nodes\na on nodes 2, 10:\n    node 10: w\n    node 2: w\\x1b[2J\n" {
		t.Errorf("got %q", got)
	}
}
