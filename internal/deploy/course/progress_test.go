package course_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/deploy/course"
)

// chain is a course of which each step comes after the one before it, and the last after the first as well through a
// point in time.
func chain() *course.Course {
	return &course.Course{
		Steps: []course.Step{{Task: "a", Node: "1", Run: true}, {Task: "b", Node: "1", Run: true}, {Task: "c", Node: "2", Run: true},
			{Task: "s", Node: "2"}, {Task: "d", Node: "3", Run: true}},
		After: [][]int32{{}, {0}, {1}, {2}, {3, 5}, {0}},
	}
}

func TestProgress(t *testing.T) {
	tasks := func(states string) []course.Task {
		out := []course.Task{}
		for i, state := range strings.Fields(states) {
			s := chain().Steps[i]
			x := course.Task{Task: s.Task, Node: s.Node, State: course.State(state)}
			if state == "held" {
				x.State, x.Held = course.Given, "rule"
			}
			if state == "running" {
				x.State, x.Running = course.Given, true
			}
			out = append(out, x)
		}
		return out
	}
	for _, c := range []struct{ states, want string }{
		{"waiting waiting waiting skipped waiting", "done 0 map[1:{2 0 0} 2:{1 0 0} 3:{1 0 0}] running [] held [] failed [] [1/a 1/b 2/c 3/d]"},
		{"ready running waiting skipped waiting", "done 1 map[1:{2 1 0} 2:{1 0 0} 3:{1 0 0}] running [b] held [] failed [] [1/b 2/c 3/d]"},
		{"tolerated held waiting skipped waiting", "done 1 map[1:{2 1 0} 2:{1 0 0} 3:{1 0 0}] running [] held [b] failed [] [1/b 2/c 3/d]"},
		{"ready error blocked skipped blocked", "done 1 map[1:{2 1 1} 2:{1 0 0} 3:{1 0 0}] running [] held [] failed [b] []"},
		{"ready ready ready skipped ready", "done 4 map[1:{2 2 0} 2:{1 1 0} 3:{1 1 0}] running [] held [] failed [] []"},
	} {
		p := course.ProgressOf(&course.Deployment{Status: course.Running}, chain(), tasks(c.states))
		got := fmt.Sprint("done ", p.Done(), " ", p.ByNode, " running ", ids(p.Running), " held ", ids(p.Held), " failed ", ids(p.Unsuccessful), " ", p.Longest)
		if got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.states, got, c.want)
		}
	}
}

// TestSoManyTasksAreNamed: a hundred of those that failed, and as many that run; all of them count.
// TestActs: what may be done to deployments of each status, and what no more when another one ran since, or what it was planned from has changed.
func TestActs(t *testing.T) {
	for _, c := range []struct {
		status                course.Status
		failed, left, stopped int
		latest                int64
		mode                  course.Mode
		moved, want           string
	}{
		{course.Planned, 0, 3, 0, 1, course.Earnest, "", "[begin]"},
		{course.Planned, 0, 3, 0, 1, course.Earnest, "the environment is at generation 2, not 1", "[]"},
		{course.Running, 1, 2, 0, 2, course.Earnest, "", "[stop]"},
		{course.Stopping, 0, 2, 0, 2, course.Earnest, "", "[]"},
		{course.Done, 0, 0, 0, 2, course.Earnest, "", "[]"},
		{course.Halted, 0, 2, 0, 2, course.Earnest, "the environment is at generation 2, not 1", "[resume]"},
		{course.Halted, 1, 2, 0, 2, course.Earnest, "", "[retry resume]"},
		{course.Broken, 1, 0, 0, 2, course.Earnest, "", "[retry]"},
		{course.Broken, 1, 0, 1, 2, course.Earnest, "", "[retry resume]"},
		{course.Broken, 0, 0, 1, 2, course.Earnest, "", "[resume]"},
		{course.Broken, 1, 0, 1, 3, course.Earnest, "deployment 3 ran since", "[]"},
		{course.Broken, 1, 0, 0, 3, course.Noop, "", "[retry]"},
	} {
		p := &course.Progress{Deployment: &course.Deployment{ID: 2, Status: c.status, Mode: c.mode}, Moved: c.moved,
			States: map[course.State]int{course.Failed: c.failed, course.Waiting: c.left, course.Stopped: c.stopped}}
		if got := fmt.Sprint(p.Acts(&course.Deployment{ID: c.latest})); got != c.want {
			t.Errorf("%+v: %s", c, got)
		}
	}
	first := &course.Progress{Deployment: &course.Deployment{ID: 1, Status: course.Planned}}
	if got := first.Acts(nil); !slices.Equal(got, []course.Act{course.Begin}) {
		t.Errorf("the first one of an environment: %v", got)
	}
}

func TestSoManyTasksAreNamed(t *testing.T) {
	const all, most = 203, 100
	c := &course.Course{After: make([][]int32, all)}
	var tasks []course.Task
	for i := range int32(all) {
		x := course.Task{Step: i, Task: "t", Node: "1", State: course.Failed}
		if i%2 == 0 {
			x.State, x.Running = course.Given, true
		}
		c.Steps = append(c.Steps, course.Step{Task: "t", Node: "1", Run: true})
		tasks = append(tasks, x)
	}
	p := course.ProgressOf(&course.Deployment{Status: course.Running}, c, tasks)
	if len(p.Unsuccessful) != most || len(p.Running) != most || p.States[course.Failed] != all/2 || p.ByNode["1"].Failed != all/2 || p.Unsuccessful[0].Step != 1 {
		t.Errorf("named are %d and %d, of %v", len(p.Unsuccessful), len(p.Running), p.States)
	}
}

// TestWhatIsInTheWay asks of each task for what it cannot run, through points in time and skipped tasks.
func TestWhatIsInTheWay(t *testing.T) {
	for _, c := range []struct{ states, roots, blocks string }{
		{"ready error blocked skipped blocked", "c: b, d: b", "b: 2"},
		{"error blocked blocked skipped blocked", "b: a, c: a, d: a", "a: 3"},
		{"stopped blocked blocked skipped blocked", "b: a, c: a, d: a", "a: 3"},
		{"tolerated running waiting skipped waiting", "", ""},
		{"ready error given skipped waiting", "c: b, d: b", "b: 2"}, // it may have a job already
		{"ready ready error skipped ready", "", "c: 0"},
	} {
		var tasks []course.Task
		for i, s := range strings.Fields(c.states) {
			x := chain().Steps[i]
			tasks = append(tasks, course.Task{Step: int32(i), Task: x.Task, Node: x.Node, State: course.State(s)})
		}
		var roots, blocks []string
		for i := range tasks {
			x, err := chain().Explain(&course.Deployment{}, int32(i), tasks)
			if err != nil {
				t.Fatal(err)
			}
			if len(x.Roots) > 0 {
				roots = append(roots, tasks[i].Task+": "+strings.Join(ids(x.Roots), " "))
			}
			if len(x.Requirements) != len(x.Requires) {
				t.Errorf("%s: %s requires %v, told are %v", c.states, tasks[i].Task, x.Requires, x.Requirements)
			}
		}
		p := course.ProgressOf(&course.Deployment{}, chain(), tasks)
		for _, x := range slices.Concat(p.Unsuccessful, p.Stopped) {
			blocks = append(blocks, fmt.Sprintf("%s: %d", x.Task, x.Blocks))
		}
		if got := strings.Join(roots, ", "); got != c.roots {
			t.Errorf("%s: roots %q, want %q", c.states, got, c.roots)
		}
		if got := strings.Join(blocks, ", "); got != c.blocks {
			t.Errorf("%s: blocks %q, want %q", c.states, got, c.blocks)
		}
	}
}

func TestWhatFailedTasksBlock(t *testing.T) {
	var tasks []course.Task
	for _, s := range []course.State{course.Ready, course.Failed, course.Waiting, course.Skipped, course.Waiting} {
		tasks = append(tasks, course.Task{State: s})
	}
	chain().MarkBlocked(tasks)
	var got []course.State
	for _, x := range tasks {
		got = append(got, x.State)
	}
	if want := []course.State{course.Ready, course.Failed, course.Blocked, course.Skipped, course.Blocked}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	tasks[1].State, tasks[2].State = course.Stopped, course.Waiting // its job was cancelled
	if chain().MarkBlocked(tasks); tasks[1].State != course.Stopped || tasks[2].State != course.Blocked {
		t.Errorf("behind a cancelled task it is %v", tasks)
	}
}

func ids(tasks []course.Task) []string {
	out := []string{}
	for _, t := range tasks {
		out = append(out, t.Task)
	}
	return out
}
