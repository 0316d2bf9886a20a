package course

import (
	"fmt"
	"strings"
)

// State is what has become of a task on a node.
type State string

// The states. Blocked, Stopped and Waiting tasks did not run.
const (
	Waiting State = "waiting" // for others, or for its turn
	Given   State = "given"   // it has a job
	Ready   State = "ready"   // it succeeded
	Failed  State = "error"
	// Tolerated tasks failed, but say themselves that it is no failure of the node; what depends on them goes on.
	Tolerated State = "tolerated"
	Blocked   State = "blocked" // something that it depends on did not succeed
	Stopped   State = "stopped" // its job was cancelled
	Skipped   State = "skipped" // the plan does not let it run
)

// Passed tells whether what waits for a task in this state may go on.
func (s State) Passed() bool { return s == Ready || s == Tolerated || s == Skipped }

// Final tells whether a task in this state is at its end, as far as this attempt goes.
func (s State) Final() bool { return s != Waiting && s != Given }

// mostDepends is how many jobs a job waits for at most. A task that waits for more gets its job when enough of them
// have ended.
const mostDepends = 8

// mostGiven is how many tasks have jobs at a time that have not ended, so that large deployments leave the queue room.
const mostGiven = 1000

// Machine decides what happens in a deployment. It belongs to one goroutine.
type Machine struct {
	steps  []Step
	after  [][]int32 // what each step and point waits for
	before [][]int32 // and what waits for it
	behind [][]int32 // the steps whose turn is when one has ended
	groups []Group

	state    []State // of steps, and Waiting or Skipped of points
	unpassed []int32 // how many that it waits for have not passed
	loose    []int32 // how many of these have no job
	ahead    []int32 // how many have not ended before its turn is
	line     []int32 // steps that may get a job, in order
	given    int
	failed   map[string]bool // nodes on which a task failed
	stop     string          // why nothing begins any more
	asked    bool            // somebody asked for the stop
	begun    bool
}

// NewMachine returns the machine of a plan's steps, some of which have come to their end already.
func NewMachine(c *Course, ended map[int32]State) *Machine {
	n := len(c.After)
	m := &Machine{steps: c.Steps, after: c.needs(), groups: c.Groups, before: make([][]int32, n), state: make([]State, n),
		behind: make([][]int32, n), unpassed: make([]int32, n), loose: make([]int32, n), ahead: make([]int32, n), failed: map[string]bool{}}
	for i, list := range m.after {
		m.state[i] = Waiting
		m.unpassed[i], m.loose[i] = int32(len(list)), int32(len(list))
		for _, b := range list {
			m.before[b] = append(m.before[b], int32(i))
		}
	}
	for i, s := range ended {
		m.state[i] = s
		if s == Failed {
			m.failed[c.Steps[i].Node] = true
		}
	}
	for i, list := range c.Turns {
		for _, b := range list {
			m.behind[b] = append(m.behind[b], int32(i))
			m.ahead[i]++
		}
	}
	for i, s := range m.state {
		if s.Final() {
			m.release(int32(i))
		}
	}
	return m
}

// Start is a task that is to get a job.
type Start struct {
	Step int32
	// After are steps that have jobs, for whose success it has to wait.
	After []int32
}

// Decision is what follows from an event.
type Decision struct {
	Start  []Start
	Cancel []int32 // steps whose jobs are to be cancelled
	// Over tells that the deployment has ended, with its status.
	Over   bool
	Status Status
	// Why says for people why it stops or ended so; empty if all went well.
	Why string
}

// Begin lets the deployment go on from what has ended already.
func (m *Machine) Begin() Decision {
	m.begun = true
	var passed []int32
	for i := range m.state {
		if m.unpassed[i] == 0 && m.isPoint(int32(i)) && m.state[i] == Waiting || m.state[i].Passed() {
			m.state[i] = passedAs(m.state[i])
			passed = append(passed, int32(i))
		}
	}
	for i := range m.state {
		if m.state[i] == Waiting && m.loose[i] == 0 && m.ahead[i] == 0 {
			m.line = append(m.line, int32(i))
		}
	}
	for i, s := range m.state {
		if s.Final() && !s.Passed() {
			m.block(int32(i))
		}
	}
	m.pass(passed)
	return m.decide()
}

func passedAs(s State) State {
	if s == Waiting {
		return Skipped
	}
	return s
}

// isPoint tells whether a place of the order is no task that runs: a task that is skipped, or a point in time.
func (m *Machine) isPoint(i int32) bool { return int(i) >= len(m.steps) || !m.steps[i].Run }

// Ended tells how the job of a step ended.
func (m *Machine) Ended(step int32, s State) Decision {
	if m.state[step] != Given {
		return Decision{}
	}
	m.given--
	if s == Stopped && m.blocked(step) {
		s = Blocked
	}
	m.state[step] = s
	m.release(step)
	if s.Passed() {
		for _, x := range m.before[step] { // those that wait for it count it as having a job
			m.loose[x]++
		}
		m.pass([]int32{step})
		return m.decide()
	}
	m.block(step)
	d := Decision{}
	if s == Failed {
		d = m.tolerate(step)
	}
	return d.Join(m.decide())
}

// Stop lets nothing more begin.
func (m *Machine) Stop(why string) Decision {
	m.asked = true
	return m.halt(why).Join(m.decide())
}

// Join puts what follows from a later event behind what follows from an earlier one.
func (d Decision) Join(later Decision) Decision {
	later.Start = append(d.Start, later.Start...)
	later.Cancel = append(d.Cancel, later.Cancel...)
	return later
}

func (m *Machine) halt(why string) Decision {
	if m.stop != "" {
		return Decision{}
	}
	m.stop = why
	d := Decision{}
	for i, s := range m.state {
		if s == Given {
			d.Cancel = append(d.Cancel, int32(i))
		}
	}
	return d
}

// tolerate stops everything if too many nodes of a group have failed.
func (m *Machine) tolerate(step int32) Decision {
	m.failed[m.steps[step].Node] = true
	for _, g := range m.groups {
		n := 0
		for _, uid := range g.Nodes {
			if m.failed[uid] {
				n++
			}
		}
		if n > g.Tolerance {
			return m.halt(fmt.Sprintf("%d of %d nodes of the group %s failed, of which %d may", n, len(g.Nodes), g.Name, g.Tolerance))
		}
	}
	return Decision{}
}

// blocked tells whether something that a step waits for did not succeed.
func (m *Machine) blocked(step int32) bool {
	for _, a := range m.after[step] {
		if m.state[a].Final() && !m.state[a].Passed() {
			return true
		}
	}
	return false
}

// block marks what can no longer run because of a step. What has a job keeps it and ends with what it waits for; what
// waits for that in turn gets no job any more.
func (m *Machine) block(step int32) {
	work, doomed := []int32{step}, map[int32]bool{}
	for len(work) > 0 {
		i := work[0]
		work = work[1:]
		for _, x := range m.before[i] {
			switch {
			case m.state[x] == Waiting:
				m.state[x] = Blocked
				m.release(x)
				work = append(work, x)
			case m.state[x] == Given && !doomed[x]:
				doomed[x] = true
				work = append(work, x)
			}
		}
	}
}

// pass lets what waits for steps and points go on.
func (m *Machine) pass(work []int32) {
	for len(work) > 0 {
		i := work[0]
		work = work[1:]
		for _, x := range m.before[i] {
			m.unpassed[x]--
			m.loose[x]--
			if m.state[x] != Waiting {
				continue
			}
			switch {
			case !m.isPoint(x):
				m.queue(x)
			case m.unpassed[x] == 0:
				m.state[x] = Skipped
				work = append(work, x)
			}
		}
	}
}

// release gives those their turn that waited for the end of a step. One that is blocked, or has ended in an earlier attempt, hands
// its turn on when it has it, so that no more run at a time than may.
func (m *Machine) release(step int32) {
	if m.ahead[step] > 0 {
		return
	}
	next := m.behind[step]
	m.behind[step] = nil
	for _, x := range next {
		m.ahead[x]--
		switch {
		case m.state[x].Final():
			m.release(x)
		case m.begun && m.state[x] == Waiting:
			m.queue(x)
		}
	}
}

// queue puts a step into the line if it may get a job now, and could not before.
func (m *Machine) queue(step int32) {
	if m.loose[step] == 0 && m.ahead[step] == 0 && m.unpassed[step] <= mostDepends {
		m.line = append(m.line, step)
	}
}

// decide gives jobs to the steps of the line as long as there is room.
func (m *Machine) decide() Decision {
	d := Decision{}
	for m.stop == "" && len(m.line) > 0 && m.given < mostGiven {
		i := m.line[0]
		m.line = m.line[1:]
		if m.state[i] != Waiting || m.isPoint(i) {
			continue
		}
		d.Start = append(d.Start, m.give(i))
	}
	if m.given == 0 && len(d.Start) == 0 && m.begun {
		d.Over = true
		d.Status, d.Why = m.verdict()
	}
	return d
}

func (m *Machine) give(i int32) Start {
	s := Start{Step: i}
	for _, a := range m.after[i] {
		if m.state[a] == Given {
			s.After = append(s.After, a)
		}
	}
	m.state[i] = Given
	m.given++
	for _, x := range m.before[i] {
		m.loose[x]--
		if m.state[x] == Waiting && !m.isPoint(x) {
			m.queue(x)
		}
	}
	return s
}

// verdict says how the deployment ended.
func (m *Machine) verdict() (Status, string) {
	counts := m.Counts()
	bad := counts[Failed] + counts[Blocked] + counts[Stopped] + counts[Waiting]
	switch {
	case bad == 0:
		return Done, ""
	case m.asked:
		return Halted, m.stop
	case m.stop != "":
		return Broken, m.stop
	}
	var parts []string
	for _, x := range []struct {
		n         int
		one, many string
	}{
		{counts[Failed], "1 task failed", "%d tasks failed"}, {counts[Blocked], "1 could not begin", "%d could not begin"},
		{counts[Stopped], "1 was cancelled", "%d were cancelled"},
	} {
		switch x.n {
		case 0:
		case 1:
			parts = append(parts, x.one)
		default:
			parts = append(parts, fmt.Sprintf(x.many, x.n))
		}
	}
	return Broken, strings.Join(parts, ", ")
}

// State returns the state of a step.
func (m *Machine) State(step int32) State {
	if !m.steps[step].Run {
		return Skipped
	}
	return m.state[step]
}

// Counts returns how many steps are in each state.
func (m *Machine) Counts() map[State]int {
	out := map[State]int{}
	for i := range m.steps {
		out[m.State(int32(i))]++
	}
	return out
}

// Cancelled returns the steps whose jobs were cancelled.
func (m *Machine) Cancelled() (steps []int32) {
	for i := range m.steps {
		if m.State(int32(i)) == Stopped {
			steps = append(steps, int32(i))
		}
	}
	return steps
}

// Stopping says why nothing begins any more; empty while something may.
func (m *Machine) Stopping() string { return m.stop }

// Blocking returns the steps that a step waits for and that have not passed, through points and skipped tasks.
func (m *Machine) Blocking(step int32) []int32 {
	var out []int32
	seen := map[int32]bool{}
	work := []int32{step}
	for len(work) > 0 {
		i := work[len(work)-1]
		work = work[:len(work)-1]
		for _, a := range m.after[i] {
			if seen[a] || m.state[a].Passed() {
				continue
			}
			seen[a] = true
			if m.isPoint(a) {
				work = append(work, a)
				continue
			}
			out = append(out, a)
		}
	}
	return out
}
