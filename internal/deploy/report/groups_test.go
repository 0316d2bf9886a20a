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
		{"b", "2", []string{"web", "db"}, "x"}, {"a", "1", []string{"web"}, "x"}, {"b", "1", []string{"web"}, "x"}, {"b", "3", nil, "y"},
	})
	want := "[{b [2 1 3] [{web 2} {db 1}] [{x [2 1]} {y [3]}]} {a [1] [{web 1}] [{x [1]}]}]"
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
	if got := fmt.Sprint(rows); got != "[{a 1 [web] x} {b 1 [web] z}]" {
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
