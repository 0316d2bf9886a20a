package machine

import (
	"encoding/json"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/lock"
)

// inRun returns the entry of a job whose opcode i runs, nil if it does not: an
// event may come late, from something that an opcode left behind.
func (m *Machine) inRun(id job.ID, i int) *entry {
	if e := m.entry(id); e != nil && e.place == inRunner && e.job.Next() == i {
		return e
	}
	return nil
}

// Log says that a running opcode left messages; their serials are given here.
type Log struct {
	Job     job.ID
	Index   int
	Entries []job.LogEntry
}

func (l Log) apply(m *Machine) {
	if e := m.inRun(l.Job, l.Index); e != nil && len(l.Entries) > 0 {
		e.job = e.job.AddLogs(l.Index, l.Entries...)
		m.out.touch(l.Job)
	}
}

// Release says that a running opcode gives back some of its locks.
type Release struct {
	Job   job.ID
	Index int
	Names []lock.Name
}

func (r Release) apply(m *Machine) {
	if e := m.inRun(r.Job, r.Index); e != nil {
		m.serve(m.locks.ReleaseSome(e.owner(), r.Names...))
	}
}

// Done says that an opcode ended, with its result or an error, the nodes that it
// worked with, and the messages that it left since the last Log.
type Done struct {
	Log

	Nodes  []string
	Result json.RawMessage
	Err    error
}

func (d Done) apply(m *Machine) {
	e := m.inRun(d.Job, d.Index)
	if e == nil {
		return // the job was given up meanwhile
	}
	j := e.job.AddLogs(d.Index, d.Entries...).WithNodes(d.Index, d.Nodes)
	if d.Err != nil {
		m.end(e, j.Fail(d.Index, d.Err, m.at()))
		return
	}
	j = j.Succeed(d.Index, d.Result, m.at())
	if d.Index == len(j.Ops)-1 {
		m.end(e, j)
		return
	}
	m.settleOp(e)
	e.job = j
	m.out.touch(e.id())
	m.sort(e)
}

// NotBegun says that an opcode which was to run will not, for the controller
// stops: its job is queued again as if nothing had been.
type NotBegun struct {
	Job   job.ID
	Index int
}

func (n NotBegun) apply(m *Machine) {
	if e := m.inRun(n.Job, n.Index); e != nil {
		m.requeue(e)
	}
}

// Unstorable says that the store will never take jobs as they are. A job of
// which nothing is stored is forgotten, or one that is refused again; any other
// one fails, and its opcode is ended.
type Unstorable struct {
	Jobs []job.ID
	// Stored tells whether something of a job is durable.
	Stored func(job.ID) bool
	Err    error
}

func (u Unstorable) apply(m *Machine) {
	for _, id := range u.Jobs {
		e := m.entry(id)
		if e == nil {
			m.ending.Delete(id)
			continue
		}
		if e.place == inRunner {
			m.out.Kills = append(m.out.Kills, id)
		}
		if e.unstorable || !u.Stored(id) {
			m.forget(e)
			continue
		}
		e.unstorable = true
		m.end(e, e.job.Fail(e.job.Next(), fault.New(fault.Failed, "the job could not be stored: %w", u.Err), m.at()))
	}
}

// forget takes a job out of memory that is not in the store, or not as it is.
// What depends on it depends on nothing.
func (m *Machine) forget(e *entry) {
	id := e.id()
	m.settleOp(e)
	m.disconnect(e)
	m.jobs.Delete(id)
	if m.Key(e.job.Key) == id {
		m.keys.Delete(e.job.Key)
	}
	m.tell(id, func(*entry) {})
}
