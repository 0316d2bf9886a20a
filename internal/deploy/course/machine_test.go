package course

import (
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// drawCourse makes a course without circles: each step and point comes after some of those before it.
func drawCourse(t *rapid.T) *Course {
	steps := rapid.IntRange(1, 30).Draw(t, "steps")
	points := rapid.IntRange(0, 5).Draw(t, "points")
	c := &Course{}
	place := rapid.Permutation(numbers(steps+points)).Draw(t, "order")
	c.After = make([][]int32, steps+points)
	for i := range steps {
		c.Steps = append(c.Steps, Step{Task: string(rune('a' + i)), Node: string(rune('1' + i%4)), Run: rapid.IntRange(0, 4).Draw(t, "runs") > 0})
	}
	for i := 1; i < len(place); i++ {
		for range rapid.IntRange(0, 3).Draw(t, "relations") {
			c.After[place[i]] = append(c.After[place[i]], int32(place[rapid.IntRange(0, i-1).Draw(t, "before")]))
		}
	}
	return c
}

func numbers(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

// TestMachine ends jobs in any order and any way, and looks at what the machine does about it.
func TestMachine(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawCourse(t)
		failing := rapid.IntRange(0, 3).Draw(t, "failures of ten")
		m := NewMachine(c, nil)
		reach := ancestors(c)
		started, ended := map[int32]bool{}, map[int32]State{}
		var jobs []int32
		d := m.Begin()
		for {
			for _, s := range d.Start {
				if started[s.Step] || !c.Steps[s.Step].Run {
					t.Fatalf("step %d is started again, or does not run", s.Step)
				}
				started[s.Step] = true
				jobs = append(jobs, s.Step)
				for _, a := range reach[s.Step] {
					if !started[a] || ended[a] == Failed {
						t.Fatalf("step %d is started, and step %d before it is %q", s.Step, a, ended[a])
					}
				}
			}
			if d.Over {
				break
			}
			i, state := nextEnd(t, reach, jobs, ended, failing)
			jobs = slices.Delete(jobs, slices.Index(jobs, i), slices.Index(jobs, i)+1)
			ended[i] = state
			d = m.Ended(i, state)
		}
		for i := range c.Steps {
			bad := slices.ContainsFunc(reach[i], func(a int32) bool { return ended[a] == Failed })
			switch s := m.State(int32(i)); {
			case !c.Steps[i].Run && s != Skipped, c.Steps[i].Run && bad && s != Blocked, c.Steps[i].Run && !bad && s != ended[int32(i)]:
				t.Fatalf("step %d is %s in the end, ended as %q, blocked: %v", i, s, ended[int32(i)], bad)
			}
		}
	})
}

// nextEnd chooses a job that can end now, and how: it waits for those before it, and ends with them.
func nextEnd(t *rapid.T, reach [][]int32, jobs []int32, ended map[int32]State, failing int) (int32, State) {
	var able []int32
	for _, j := range jobs {
		if !slices.ContainsFunc(reach[j], func(a int32) bool { return ended[a] == "" }) {
			able = append(able, j)
		}
	}
	if len(able) == 0 {
		t.Fatalf("jobs %v wait for one another", jobs)
	}
	j := rapid.SampledFrom(able).Draw(t, "job")
	for _, a := range reach[j] {
		if ended[a] == Failed || ended[a] == Stopped {
			return j, Stopped
		}
	}
	if rapid.IntRange(0, 9).Draw(t, "fails") < failing {
		return j, Failed
	}
	return j, Ready
}

// ancestors are the steps that run and come before each.
func ancestors(c *Course) [][]int32 {
	out := make([][]int32, len(c.After))
	for i := range c.After {
		seen := map[int32]bool{}
		work := slices.Clone(c.After[i])
		for len(work) > 0 {
			a := work[0]
			work = work[1:]
			if seen[a] {
				continue
			}
			seen[a] = true
			if int(a) < len(c.Steps) && c.Steps[a].Run {
				out[i] = append(out[i], a)
			}
			work = append(work, c.After[a]...)
		}
	}
	return out
}

// TestNothingBeginsBehindAFailure: a step whose job is about to be refused, for what it waits for failed, lets nothing
// begin that waits for it.
func TestNothingBeginsBehindAFailure(t *testing.T) {
	c := &Course{Steps: []Step{{Task: "fails", Node: "1", Run: true}, {Task: "has a job", Node: "1", Run: true},
		{Task: "other", Node: "2", Run: true}, {Task: "late", Node: "2", Run: true}, {Task: "skipped", Node: "2"}},
		After: [][]int32{nil, {0}, nil, {1, 4}, {2}}}
	m := NewMachine(c, nil)
	if d := m.Begin(); len(d.Start) != 3 {
		t.Fatalf("began %+v", d.Start)
	}
	if d := m.Ended(0, Failed); len(d.Start) != 0 || m.State(1) != Given || m.State(3) != Blocked {
		t.Errorf("after the failure %+v, %s and %s", d, m.State(1), m.State(3))
	}
	if d := m.Ended(2, Ready); len(d.Start) != 0 || d.Over {
		t.Errorf("when the skipped task is passed %+v", d)
	}
	if d := m.Ended(1, Stopped); !d.Over || d.Status != Broken || m.State(1) != Blocked {
		t.Errorf("in the end %+v", d)
	}
}

func TestExhaustedToleranceStopsEverything(t *testing.T) {
	c := &Course{After: make([][]int32, 6), Groups: []Group{{Name: "web", Nodes: []string{"0", "1", "2"}, Tolerance: 1}}}
	for i := range 6 {
		c.Steps = append(c.Steps, Step{Task: "t", Node: string(rune('0' + i)), Run: true})
	}
	c.After[5] = []int32{4}
	m := NewMachine(c, nil)
	if d := m.Begin(); len(d.Start) != 6 || !slices.Equal(d.Start[5].After, []int32{4}) {
		t.Fatalf("began %+v", d.Start)
	}
	if d := m.Ended(0, Failed); len(d.Cancel) != 0 {
		t.Errorf("one of three may fail: %+v", d)
	}
	if d := m.Ended(1, Failed); !slices.Equal(d.Cancel, []int32{2, 3, 4, 5}) {
		t.Errorf("two failed: %+v", d)
	}
	var d Decision
	for _, i := range []int32{2, 3, 4, 5} {
		d = m.Ended(i, Stopped)
	}
	if !d.Over || d.Status != Broken || d.Why != "2 of 3 nodes of the group web failed, of which 1 may" {
		t.Errorf("in the end %+v", d)
	}
}

// TestFailuresOfBeforeCountForTheTolerance goes on after one of three nodes has failed: with the second one too many have.
func TestFailuresOfBeforeCountForTheTolerance(t *testing.T) {
	c := &Course{After: make([][]int32, 4), Groups: []Group{{Name: "web", Nodes: []string{"0", "1", "2"}, Tolerance: 1}}}
	for i := range 4 {
		c.Steps = append(c.Steps, Step{Task: "t", Node: string(rune('0' + i)), Run: true})
	}
	m := NewMachine(c, map[int32]State{0: Failed})
	if d := m.Begin(); len(d.Start) != 3 {
		t.Fatalf("began %+v", d.Start)
	}
	if d := m.Ended(1, Failed); !slices.Equal(d.Cancel, []int32{2, 3}) || m.Stopping() != "2 of 3 nodes of the group web failed, of which 1 may" {
		t.Errorf("a second node failed: %+v, %q", d, m.Stopping())
	}
}

// TestSoManyJobsAtATime: of a large deployment no more jobs are in the queue than leave it room; each that ends makes place for one.
func TestSoManyJobsAtATime(t *testing.T) {
	const steps = mostGiven + 500
	c := &Course{After: make([][]int32, steps)}
	for range steps {
		c.Steps = append(c.Steps, Step{Task: "t", Node: "1", Run: true})
	}
	m := NewMachine(c, nil)
	d := m.Begin()
	if len(d.Start) != 1000 {
		t.Fatalf("%d jobs at first", len(d.Start))
	}
	given := d.Start
	for i := 0; i < len(given); i++ {
		d = m.Ended(given[i].Step, Ready)
		if want := min(1, steps-len(given)); len(d.Start) != want {
			t.Fatalf("%d jobs begin when the job %d ends, want %d", len(d.Start), i, want)
		}
		given = append(given, d.Start...)
	}
	if len(given) != steps || !d.Over || d.Status != Done {
		t.Errorf("%d of %d had jobs; in the end %+v", len(given), steps, d)
	}
}

// TestAJobWaitsForNoMoreThanEight: a task that waits for more gets its job when enough of them have ended.
func TestAJobWaitsForNoMoreThanEight(t *testing.T) {
	const before = 9
	c := &Course{After: make([][]int32, before+1)}
	for i := range int32(before) {
		c.Steps = append(c.Steps, Step{Task: "t", Node: "1", Run: true})
		c.After[before] = append(c.After[before], i)
	}
	c.Steps = append(c.Steps, Step{Task: "last", Node: "1", Run: true})
	m := NewMachine(c, nil)
	if d := m.Begin(); len(d.Start) != before {
		t.Fatalf("began %+v", d.Start)
	}
	if d := m.Ended(3, Ready); len(d.Start) != 1 || d.Start[0].Step != before || !slices.Equal(d.Start[0].After, []int32{0, 1, 2, 4, 5, 6, 7, 8}) {
		t.Errorf("when one of nine has ended %+v begin", d.Start)
	}
}

// TestWhatBlocksAStep: the tasks that it waits for and that have not passed, through points in time and tasks that do not run.
func TestWhatBlocksAStep(t *testing.T) {
	c := &Course{Steps: []Step{{Task: "a", Node: "1", Run: true}, {Task: "b", Node: "1", Run: true}, {Task: "skipped", Node: "1"}, {Task: "c", Node: "2", Run: true}, {Task: "d", Node: "2", Run: true}},
		After: [][]int32{nil, {0}, {1}, {2, 5, 4}, nil, {0}}} // the last is a point
	m := NewMachine(c, map[int32]State{4: Ready})
	m.Begin()
	for when, want := range map[State][]int32{"": {0, 1}, Failed: {0, 1}} {
		if when != "" {
			m.Ended(0, when)
		}
		got := m.Blocking(3)
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("%q: it waits for %v, want %v", when, got, want)
		}
	}
	passed := NewMachine(c, map[int32]State{0: Ready, 1: Tolerated, 4: Ready})
	passed.Begin()
	if got := passed.Blocking(3); len(got) > 0 {
		t.Errorf("when all has passed it waits for %v", got)
	}
}

// TestWhatIsBehindAFailureOfBeforeIsBlocked: from the beginning, so that it is told why nothing begins.
func TestWhatIsBehindAFailureOfBeforeIsBlocked(t *testing.T) {
	c := &Course{Steps: []Step{{Task: "a", Node: "1", Run: true}, {Task: "b", Node: "1", Run: true}, {Task: "c", Node: "2", Run: true}}, After: [][]int32{nil, {3}, {1}, {0}}}
	m := NewMachine(c, map[int32]State{0: Failed})
	if d := m.Begin(); !d.Over || d.Status != Broken || d.Why != "1 task failed, 2 could not begin" || m.State(1) != Blocked || m.State(2) != Blocked {
		t.Errorf("%+v, with %s and %s", d, m.State(1), m.State(2))
	}
}

// TestWhichRecordsCount: successes always, failures until they are retried.
func TestWhichRecordsCount(t *testing.T) {
	for _, c := range []struct {
		state            State
		attempt, retried int
		counts           bool
	}{{Ready, 1, 3, true}, {Tolerated, 1, 3, true}, {Failed, 1, 1, true}, {Failed, 2, 1, true}, {Failed, 2, 3, false}, {Failed, 3, 3, true}} {
		if got := (&Record{State: c.state, Attempt: c.attempt}).Counts(&Deployment{Retried: c.retried}); got != c.counts {
			t.Errorf("%s in attempt %d, retried from %d on: counts %t", c.state, c.attempt, c.retried, got)
		}
	}
}

// TestWhyADeploymentFailedIsCounted says in good English how many.
func TestWhyADeploymentFailedIsCounted(t *testing.T) {
	for want, states := range map[string][]State{
		"1 task failed": {Failed, Ready}, "2 tasks failed, 1 could not begin": {Failed, Failed, Blocked}, "1 was cancelled": {Stopped},
		"1 task failed, 2 could not begin, 2 were cancelled": {Failed, Blocked, Blocked, Stopped, Stopped},
	} {
		c, ended := &Course{After: make([][]int32, len(states))}, map[int32]State{}
		for i, s := range states {
			c.Steps = append(c.Steps, Step{Task: "t", Node: "1", Run: true})
			ended[int32(i)] = s
		}
		if _, why := NewMachine(c, ended).verdict(); why != want {
			t.Errorf("%v: %q, want %q", states, why, want)
		}
	}
}

// TestAFailureLetsTheNextHaveItsTurn: nodes that a strategy has take turns need not succeed before one another; what is
// blocked gives its turn away, too.
func TestAFailureLetsTheNextHaveItsTurn(t *testing.T) {
	c := &Course{After: make([][]int32, 5), Groups: []Group{{Name: "web", Nodes: []string{"1", "2", "3", "4"}, Tolerance: 2}}}
	for i := range 4 {
		c.Steps = append(c.Steps, Step{Task: "t", Node: string(rune('1' + i)), Run: true})
	}
	c.Steps = append(c.Steps, Step{Task: "before", Node: "2", Run: true})
	c.After[1] = []int32{4}
	for i := int32(1); i < 4; i++ {
		c.takesTurn(i, i-1)
	}
	pieces, err := c.Encode()
	if err != nil {
		t.Fatal(err)
	}
	stored := &Course{}
	if err := stored.Add(pieces[0]); err != nil || !reflect.DeepEqual(stored, c) {
		t.Fatalf("the course comes back as %+v: %v", stored, err)
	}
	begun := func(d Decision) (steps []int32) {
		for _, s := range d.Start {
			if slices.Contains(s.After, s.Step-1) {
				t.Errorf("the job of %d waits for the success of %v", s.Step, s.After)
			}
			steps = append(steps, s.Step)
		}
		return steps
	}
	for name, events := range map[string][]turned{
		"the first fails first": {{-1, "", []int32{0, 4}}, {0, Failed, []int32{1}}, {4, Failed, nil}, {1, Stopped, []int32{2}}, {2, Ready, []int32{3}}, {3, Ready, nil}},
		// The second is blocked while the first still runs: the third has its turn behind the first.
		"the second is blocked first": {{-1, "", []int32{0, 4}}, {4, Failed, nil}, {0, Failed, []int32{2}}, {2, Ready, []int32{3}}, {3, Ready, nil}},
	} {
		m := NewMachine(stored, nil)
		for i, x := range events {
			var d Decision
			if x.ended < 0 {
				d = m.Begin()
			} else {
				d = m.Ended(x.ended, x.as)
			}
			if got := begun(d); !slices.Equal(got, x.want) {
				t.Fatalf("%s: when %d ended as %q, %v begin, want %v", name, x.ended, x.as, got, x.want)
			}
			if over := i == len(events)-1; d.Over != over || over && d.Why != "2 tasks failed, 1 could not begin" {
				t.Errorf("%s: when %d ended: %+v", name, x.ended, d)
			}
		}
	}
	tasks := make([]Task, 5)
	for i, s := range []State{Failed, Waiting, Ready, Waiting, Failed} {
		tasks[i].State = s
	}
	if c.MarkBlocked(tasks); tasks[1].State != Blocked || tasks[3].State != Waiting {
		t.Errorf("behind a failure a turn counts as blocked: %v, %v", tasks[1].State, tasks[3].State)
	}
	// A course of before has no turns: it stops behind a failure.
	stored.Turns = nil
	old := NewMachine(stored, map[int32]State{0: Failed})
	if d := old.Begin(); len(d.Start) != 1 || old.State(3) != Blocked {
		t.Errorf("a course of before begins %+v, with %s", d.Start, old.State(3))
	}
	// One that goes on after a failure gives the turn away at once.
	again := NewMachine(c, map[int32]State{0: Failed, 4: Ready})
	if got := begun(again.Begin()); !slices.Equal(got, []int32{1}) {
		t.Errorf("resumed, %v begin", got)
	}
	// Each of those that have ended gives its turn away once, however many of them there are.
	further := NewMachine(c, map[int32]State{0: Failed, 1: Ready, 4: Ready})
	if got := begun(further.Begin()); !slices.Equal(got, []int32{2}) {
		t.Errorf("behind two that have ended %v begin", got)
	}
	// Where the first is tried again, and the second has succeeded before, the third comes behind the first.
	retried := NewMachine(c, map[int32]State{1: Ready, 4: Ready})
	if got := begun(retried.Begin()); !slices.Equal(got, []int32{0}) {
		t.Errorf("tried again, %v begin", got)
	}
	if got := begun(retried.Ended(0, Ready)); !slices.Equal(got, []int32{2}) {
		t.Errorf("behind the first, %v begin", got)
	}
}

// turned is how a step ended, and which begin then.
type turned struct {
	ended int32
	as    State
	want  []int32
}

func TestCoursesComeBackFromTheStore(t *testing.T) {
	c := &Course{Groups: []Group{{Name: "g", Nodes: []string{"1"}, Tolerance: 1}}, Hidden: []string{"correct-horse"}}
	for i := range 2*chunkSteps + 7 {
		if i < chunkSteps+3 {
			c.Steps = append(c.Steps, Step{Task: "t", Node: "1", Run: true})
		}
		c.After = append(c.After, []int32{int32(i / 2)})
	}
	for _, i := range []int32{1, chunkSteps - 1, chunkSteps, chunkSteps + 2} {
		c.takesTurn(i, i-1)
	}
	pieces, err := c.Encode()
	if err != nil {
		t.Fatal(err)
	}
	back := &Course{}
	for _, p := range pieces {
		if err := back.Add(p); err != nil {
			t.Fatal(err)
		}
	}
	if back.Turns = append(back.Turns, make([][]int32, len(back.After)-len(back.Turns))...); len(pieces) != 3 || !reflect.DeepEqual(back, c) {
		t.Errorf("%d pieces, %d steps, %d places, groups %v, secrets %v; turns are lost: %t", len(pieces), len(back.Steps), len(back.After), back.Groups, back.Hidden,
			!reflect.DeepEqual(back.Turns, c.Turns))
	}
}
