package deployments

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/drover-project/drover/internal/deploy/course"
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

// TestWhatDiffersOnMachinesFitsAScreen: nodes on which the same differs are told together with what it is, cut to the width, and what is not known is told by
// its reason.
func TestWhatDiffersOnMachinesFitsAScreen(t *testing.T) {
	p := &planned{Deployment: course.Deployment{Environment: "prod", Steps: 900}, Drift: &course.Drift{Compared: 700, Uncompared: 2}}
	for i := range 200 {
		uid := strconv.Itoa(i)
		p.Deployment.Nodes = append(p.Deployment.Nodes, course.Node{UID: uid, Roles: []string{"web"}})
		if i%4 == 3 {
			p.Drift.Unknown = append(p.Drift.Unknown, course.Unknown{Task: "motd", Node: uid, Why: "node x" + strconv.Itoa(i%8) + " cannot be reached, whatever is tried, and nobody knows why that is so"})
			continue
		}
		d := course.Differs{Task: "motd", Node: uid, Summary: "/etc/motd: a line differs", Difference: []string{"@@ -1 +1 @@", "-hello", "+" + strings.Repeat("good day ", 20)}}
		if i%50 == 0 { // some differ otherwise
			d.Difference, d.More = strings.Split(strings.TrimSpace(strings.Repeat("x ", 20)), " "), true
		}
		p.Drift.Differ = append(p.Drift.Differ, d)
		p.Tasks = append(p.Tasks, course.Task{Task: "motd", Node: uid, State: course.Waiting, Why: "differs on the machine: " + d.Summary})
	}
	p.Tasks = append(p.Tasks, course.Task{Task: "serve", Node: "1", State: course.Waiting, Why: "differs on the machine: it serves 81"})
	p.Drift.Differ = append(p.Drift.Differ, course.Differs{Task: "serve", Node: "1", Summary: "it serves 81", Difference: []string{"it serves 81"}})
	page := p.page(false, 80)
	want := `prod: 151 of 900 tasks run, on 150 nodes
motd on 150 nodes (web 150):
    nodes 0, 50, 100, 150: differs on the machine: /etc/motd: a line differs
        x
        x
        x
        x
        x
        x
        x
        x
        and more lines; --all shows them
    146 nodes: differs on the machine: /etc/motd: a line differs
        @@ -1 +1 @@
        -hello
        +good day good day good day good day good day good day good day good da…
serve on node 1: differs on the machine: it serves 81
compared on the machines: 700 tasks, 151 differ; not known of 50; 2 without a
  check
not known of 25 tasks on 25 nodes: node x3 cannot be reached, whatever is tried,
  and nobody knows why that is so
not known of 25 tasks on 25 nodes: node x7 cannot be reached, whatever is tried,
  and nobody knows why that is so
`
	if page != want {
		t.Errorf("got\n%s\nwant\n%s", page, want)
	}
}
