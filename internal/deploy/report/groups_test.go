package report_test

import (
	"fmt"
	"slices"
	"testing"

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
