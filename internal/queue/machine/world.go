package machine

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/lock"
	"github.com/drover-project/drover/internal/opcode"
	"github.com/drover-project/drover/internal/schedule"
	"github.com/drover-project/drover/internal/state"
)

// World is what decisions depend on besides jobs and rules. As an event it
// replaces what was known before: the inventory has changed.
type World struct {
	// MaxRunning is how many jobs may run at once.
	MaxRunning int
	// Locks tells which locks an opcode needs as things are; nil where that cannot
	// be told: the opcode will say itself what is wrong when it runs, or ask again.
	// It must be a function of the opcode alone.
	Locks func(*opcode.Opcode) lock.Request
	// Stepwise says that what opcodes do is kept from now on, so that others can go on with it.
	Stepwise bool
	// Nodes tells with which nodes an opcode works, by UUID, as far as that can be told before it begins. It must be a function of the
	// opcode alone. Away are those that are waited for, by UUID.
	Nodes func(*opcode.Opcode) []string
	Away  map[string]*schedule.Absence
	// LockName is what people call a lock; nil for its own name.
	LockName func(lock.Name) string
}

// lockName is what people call a lock.
func (m *Machine) lockName(n lock.Name) string {
	if m.world.LockName == nil {
		return n.String()
	}
	return m.world.LockName(n)
}

// What waited for a node that is waited for no more goes on.
func (w World) apply(m *Machine) {
	before := m.world.Away
	m.world = w
	for _, uuid := range slices.Sorted(maps.Keys(before)) {
		if w.Away[uuid] == nil {
			m.came(uuid)
		}
	}
}

// came lets those be decided upon again that waited for a node.
func (m *Machine) came(uuid string) {
	for {
		first, some := m.firstAwaiting(uuid)
		if !some {
			return
		}
		e := m.entry(first.id)
		m.leave(e)
		m.sort(e)
	}
}

// away is the node that the next opcode works with and that is waited for, nil for none.
func (m *Machine) away(e *entry) *schedule.Absence {
	if len(m.world.Away) == 0 {
		return nil
	}
	for _, uuid := range m.world.Nodes(e.inputs[e.job.Next()]) {
		if a := m.world.Away[uuid]; a != nil {
			return a
		}
	}
	return nil
}

// SetDrained makes the queue refuse new jobs, or take them again. By tells who wants it
// drained; of several it is the first.
type SetDrained struct {
	On bool
	By *state.Drain
}

func (d SetDrained) apply(m *Machine) {
	switch {
	case !d.On:
		m.flags.Drain = nil
	case !m.flags.Drained:
		m.flags.Drain = d.By
	}
	m.flags.Drained = d.On
	m.out.Flags = true
}

// SetWatcherPause asks watchers to do nothing until a time, in seconds since
// the epoch; nil ends the pause.
type SetWatcherPause struct{ Until *float64 }

func (p SetWatcherPause) apply(m *Machine) {
	m.flags.WatcherPause = p.Until
	m.out.Flags = true
}

// Stop ends starting: from now on no opcode begins.
type Stop struct{}

func (Stop) apply(m *Machine) { m.closing = true }

// Recover is the first event of a machine: each job that had not ended goes to
// its place. What ran when the controller ended goes on: where it was, if what it does was kept, or from
// the beginning, if nothing that it does had begun. One that a program of before began does where its opcode is
// declared to be resumable, and else ends in an error that says so. What goes on
// gets its locks before anything else is decided, and no rule, limit or number of
// slots keeps it: it has begun.
type Recover struct{}

func (Recover) apply(m *Machine) {
	m.recovering = true
	defer func() { m.recovering = false }()
	ids := m.jobs.Keys()
	for _, id := range ids {
		e := m.entry(id)
		e.rule = m.chain.Decide(int64(id), e.inputs)
		if again, why := m.interrupted(e); again {
			m.resume(e, why)
		}
	}
	for _, id := range ids {
		e := m.entry(id)
		if e == nil || e.place != nowhere {
			continue // it goes on, or has ended with one on which it depends
		}
		if _, why := m.interrupted(e); why != "" {
			m.end(e, e.job.Lost(e.job.Next(), why, m.now))
			continue
		}
		if e.job.Busy() {
			e.job = e.job.Requeue(e.job.Next())
			m.out.touch(id)
		}
		m.sort(e)
	}
}

// interrupted says what becomes of an opcode that ran when the controller ended,
// for people: whether it is run again, and why or why not. No text is for a job of
// which none ran.
func (m *Machine) interrupted(e *entry) (again bool, why string) {
	i := e.job.Next()
	op := &e.job.Ops[i]
	if op.Status != job.Running {
		return false, ""
	}
	begun, kept := m.begun[e.id()]
	resumable, because := m.resumable(op.Input.ID)
	switch killed := e.job.CancelReason == job.Killed; {
	case begun.Lost != "":
		resumable, because = false, begun.Lost
	case kept && killed:
		return true, "The controller ended while this opcode was being killed; what it did is taken back, unless it has to stay: " + begun.Why
	case kept:
		return true, "The controller ended while this opcode ran; it goes on: " + begun.Why
	case killed:
		resumable, because = false, "it was being killed"
	case op.Stepwise && !resumable:
		resumable, because = true, "nothing that it does had begun"
	}
	if resumable {
		return true, "The controller ended while this opcode ran; it is run again: " + because
	}
	return false, fmt.Sprintf("The controller ended while opcode %d (%s) of job %d ran, and it is not run again: %s",
		i, op.Input.ID, e.id(), because)
}

// resume lets the opcode that ran when the controller ended go on. It asks for its
// locks before anybody else: it had them, and what it left half done is under them.
func (m *Machine) resume(e *entry, why string) {
	i := e.job.Next()
	from := cmp.Or(e.job.Ops[i].Exec, e.job.Known())
	e.job = e.job.Resume(i).WithWait(job.Span{Kind: job.Restart, From: from, To: m.at(), Opcode: i, Text: why}).AddMessage(i, why, m.at())
	if begun := m.begun[e.id()]; begun.Steps != nil {
		e.job, e.held = e.job.WithSteps(i, begun.Steps).WithPlacement(i, begun.Placement), begun.Locks
	}
	m.out.touch(e.id())
	m.enterBuckets(e)
	e.place = inResume
	if m.takeLocks(e) {
		m.begin(e)
	}
}
