package course_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/deploy/course"
)

// TestTheTaskGraph has each task once, and what comes after what, also by points in time.
func TestTheTaskGraph(t *testing.T) {
	tasks, lines := chain().TaskGraph()
	if got := fmt.Sprint(tasks, lines); got != "[a b c s d] [[0 1] [0 4] [1 2] [2 3] [3 4]]" {
		t.Error(got)
	}
	of := &course.Course{ // one task on two nodes, behind two points
		Steps: []course.Step{{Task: "a", Node: "1"}, {Task: "b", Node: "1"}, {Task: "a", Node: "2"}, {Task: "b", Node: "2"}},
		After: [][]int32{{}, {5}, {0}, {5}, {0, 2}, {4}},
	}
	if tasks, lines := of.TaskGraph(); fmt.Sprint(tasks, lines) != "[a b] [[0 1]]" {
		t.Error(tasks, lines)
	}
}

// TestSums: the state that tells most, and how many nodes are how far.
func TestSums(t *testing.T) {
	for states, want := range map[string]string{
		"skipped skipped": "{a skipped 2 0 0 0 0 0 0}", "ready tolerated skipped": "{a ready 3 2 2 0 0 0 0}", "ready waiting": "{a begun 2 2 1 0 0 0 0}", "waiting skipped": "{a waiting 2 1 0 0 0 0 0}",
		"ready running error": "{a error 3 3 1 1 1 0 0}", "held running": "{a running 2 2 0 0 1 0 0}", "held ready": "{a held 2 2 1 0 0 0 0}", "given waiting": "{a given 2 2 0 0 0 0 0}",
		"stopped blocked": "{a stopped 2 2 0 0 0 0 0}", "blocked waiting": "{a blocked 2 2 0 0 0 0 0}",
	} {
		var tasks []course.Task
		for state := range strings.FieldsSeq(states) {
			x := course.Task{Task: "a", State: course.State(state)}
			switch state {
			case "held":
				x.State, x.Held = course.Given, "rule"
			case "running":
				x.State, x.Running = course.Given, true
			}
			tasks = append(tasks, x)
		}
		if got := fmt.Sprint(course.Sums(tasks)[0]); got != want {
			t.Errorf("%s: %s, not %s", states, got, want)
		}
	}
	sums := course.Sums([]course.Task{{Task: "a", State: course.Ready, Begun: 5, Ended: 9}, {Task: "b", State: course.Waiting}, {Task: "a", State: course.Ready, Begun: 3, Ended: 7}})
	if fmt.Sprint(sums) != "[{a ready 2 2 2 0 0 3 9} {b waiting 1 1 0 0 0 0 0}]" {
		t.Error(sums)
	}
}
