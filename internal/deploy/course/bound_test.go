package course

import "testing"

// TestTheQueueIsLeftRoom: of a deployment no more than 1,000 tasks have jobs at a time; the end of one gives the next
// its job, until all have had one.
func TestTheQueueIsLeftRoom(t *testing.T) {
	const tasks, most = 2500, 1000
	c := &Course{Steps: make([]Step, tasks), After: make([][]int32, tasks)}
	for i := range c.Steps {
		c.Steps[i] = Step{Task: "t", Node: "n", Run: true}
	}
	m := NewMachine(c, nil)
	var open []int32
	started := 0
	for d := m.Begin(); ; d = m.Ended(open[0], Ready) {
		if started > 0 {
			open = open[1:]
		}
		for _, s := range d.Start {
			open = append(open, s.Step)
			started++
		}
		if d.Over {
			break
		}
		if want := min(most, tasks-started+len(open)); len(open) != want {
			t.Fatalf("%d tasks have jobs after %d were started, want %d", len(open), started, want)
		}
	}
	if started != tasks {
		t.Errorf("%d of %d tasks had jobs", started, tasks)
	}
}
