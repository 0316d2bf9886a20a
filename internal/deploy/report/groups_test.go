package report_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/drover-project/drover/internal/deploy/course"
	"github.com/drover-project/drover/internal/deploy/report"
)

func TestGroups(t *testing.T) {
	got := report.Groups([]report.Row{
		{"b", "2", []string{"web", "db"}, "x", nil}, {"a", "1", []string{"web"}, "x", nil}, {"b", "1", []string{"web"}, "x", nil}, {"b", "3", nil, "y", nil},
	})
	want := "[{b [2 1 3] [{web 2} {db 1}] [{x [2 1] <nil>} {y [3] <nil>}]} {a [1] [{web 1}] [{x [1] <nil>}]}]"
	if fmt.Sprint(got) != want {
		t.Errorf("got %v, want %s", got, want)
	}
}

func TestCompare(t *testing.T) {
	row := func(task, why string) report.Row { return report.Row{Task: task, Node: "1", Why: why} }
	gone, came, changed := report.Compare([]report.Row{row("a", "x"), row("b", "x"), row("c", "x")}, []report.Row{row("b", "x"), row("c", "y"), row("d", "x")})
	if !slices.EqualFunc(slices.Concat(gone, came, changed), []report.Row{row("a", "x"), row("d", "x"), row("c", "x => y")},
		func(a, b report.Row) bool { return a.Task == b.Task && a.Why == b.Why }) {
		t.Errorf("gone %v, came %v, changed %v", gone, came, changed)
	}
}

// TestRowsOf: the tasks that run, each with the roles of its node, and what sums them up.
func TestRowsOf(t *testing.T) {
	nodes := []course.Node{{UID: "1", Roles: []string{"web"}}, {UID: "2"}}
	rows := report.RowsOf(nodes, []course.Task{{Task: "a", Node: "1", State: course.Waiting, Why: "x"}, {Task: "a", Node: "2", State: course.Skipped, Why: "y"}, {Task: "b", Node: "1", State: course.Failed, Why: "z"}})
	if got := fmt.Sprint(rows); got != "[{a 1 [web] x <nil>} {b 1 [web] z <nil>}]" {
		t.Errorf("got %s", got)
	}
	if got := report.Headline(9, rows); got != "2 of 9 tasks run, on 1 node" {
		t.Errorf("got %q", got)
	}
	if got := report.Headline(9, append(rows, report.Row{Task: "a", Node: "2"})); got != "3 of 9 tasks run, on 2 nodes" {
		t.Errorf("got %q", got)
	}
	if got := report.Headline(9, nil); got != "nothing to do: 0 of 9 tasks run" {
		t.Errorf("got %q", got)
	}
}

// TestGroupsOfWhatDiffers: nodes of which another thing differs have another reason, though a line says the same of both.
func TestGroupsOfWhatDiffers(t *testing.T) {
	nodes, tasks := []course.Node{{UID: "1"}, {UID: "2"}, {UID: "3"}}, []course.Task{}
	drift := &course.Drift{}
	for i, line := range []string{"-a", "-b", "-a"} {
		tasks = append(tasks, course.Task{Task: "t", Node: nodes[i].UID, Why: "differs"})
		drift.Differ = append(drift.Differ, course.Differs{Task: "t", Node: nodes[i].UID, Difference: []string{line}})
	}
	groups := report.Groups(report.RowsWith(nodes, tasks, drift))
	if len(groups) != 1 || len(groups[0].Reasons) != 2 || !slices.Equal(groups[0].Reasons[0].Nodes, []string{"1", "3"}) || groups[0].Reasons[1].Drift.Difference[0] != "-b" {
		t.Errorf("%+v", groups)
	}
	if groups := report.Groups(report.RowsWith(nodes, tasks, nil)); len(groups[0].Reasons) != 1 || groups[0].Reasons[0].Drift != nil {
		t.Errorf("%+v", groups)
	}
}
