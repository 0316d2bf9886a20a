package machine

import (
	"fmt"

	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/lock"
	"github.com/drover-project/drover/internal/opcode"
)

// World is what decisions depend on besides jobs and rules. As an event it
// replaces what was known before: the inventory has changed.
type World struct {
	// MaxRunning is how many jobs may run at once.
	MaxRunning int
	// Locks tells which locks an opcode needs as things are; nil where that cannot
	// be told: the opcode will say itself what is wrong when it runs. It must be a
	// function of the opcode alone.
	Locks func(*opcode.Opcode) lock.Request
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

func (w World) apply(m *Machine) { m.world = w }

// SetDrained makes the queue refuse new jobs, or take them again.
type SetDrained bool

func (d SetDrained) apply(m *Machine) {
	m.flags.Drained = bool(d)
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
// its place. What was in flight when the controller ended is resumed where its
// opcode is declared to be resumable, and else ends in an error that says so.
type Recover struct{}

func (Recover) apply(m *Machine) {
	m.recovering = true
	defer func() { m.recovering = false }()
	for _, id := range m.jobs.Keys() {
		e := m.entry(id)
		if e == nil || e.place != nowhere {
			continue // it has ended, or gone on, with one on which it depends
		}
		e.rule = m.chain.Decide(int64(id), e.inputs)
		if e.job.Busy() {
			m.recoverBusy(e)
		}
		if !e.job.Final() {
			m.sort(e)
		}
	}
}

func (m *Machine) recoverBusy(e *entry) {
	i := e.job.Next()
	op := &e.job.Ops[i]
	resumable, because := m.resumable(op.Input.ID)
	switch {
	case op.Status != job.Running:
		e.job = e.job.Requeue(i)
	case resumable:
		why := "The controller ended while this opcode ran; it is run again: " + because
		ran := job.Span{Kind: job.Restart, From: op.Exec, To: m.at(), Opcode: i, Text: why}
		e.job = e.job.Requeue(i).WithWait(ran).AddMessage(i, why, m.at())
	default:
		why := fmt.Sprintf("The controller ended while opcode %d (%s) of job %d ran, and it is not run again: %s",
			i, op.Input.ID, e.id(), because)
		m.end(e, e.job.Lost(i, why, m.now))
		return
	}
	m.out.touch(e.id())
}
