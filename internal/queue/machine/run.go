package machine

import (
	"encoding/json"
	"maps"

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

// Runs reports whether an opcode that was to be started still is: its job may
// have been given up before that was durable.
func (m *Machine) Runs(s Start) bool {
	e, ok := m.jobs.Get(s.Job)
	return ok && e.place == inRunner && e.job.Next() == s.Index
}

// Log says that a running opcode left messages, whose serials are given here, and how far it came.
type Log struct {
	Job     job.ID
	Index   int
	Entries []job.LogEntry
	// Steps are all of them as they are now; nil where nothing is new.
	Steps []job.Step
	// Placement is how the node of a new instance was chosen; nil where nothing is new.
	Placement json.RawMessage
}

func (l Log) apply(m *Machine) {
	if e := m.inRun(l.Job, l.Index); e != nil && (len(l.Entries) > 0 || l.Steps != nil || l.Placement != nil) {
		e.job = l.added(e.job)
		m.out.touch(l.Job)
	}
}

// added returns the job with what the opcode left.
func (l Log) added(j *job.Job) *job.Job {
	if l.Steps != nil {
		j = j.WithSteps(l.Index, l.Steps)
	}
	if l.Placement != nil {
		j = j.WithPlacement(l.Index, l.Placement)
	}
	return j.AddLogs(l.Index, l.Entries...)
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
	j := d.added(e.job).WithNodes(d.Index, d.Nodes)
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

// AskAgain says that an opcode which began without locks, for nobody could tell which
// it needs, or with those of something else, found that this can be told now. It has done
// nothing, gives back what it holds, and asks for them.
type AskAgain struct {
	Start

	Entries []job.LogEntry // what it left since the last Log
}

func (a AskAgain) apply(m *Machine) {
	e := m.inRun(a.Job, a.Index)
	if e == nil {
		return
	}
	e.job = e.job.AddLogs(a.Index, a.Entries...)
	if !a.Resumed {
		m.requeue(e)
		return
	}
	m.running--
	e.place = inResume
	e.job = e.job.Resume(a.Index)
	m.out.touch(a.Job)
	m.serve(m.locks.Release(e.owner()))
	if m.takeLocks(e) && !m.closing {
		m.begin(e)
	}
}

// NotBegun says that an opcode which was to run will not, for the controller
// stops: its job is queued again as if nothing had been. One that was resumed has
// begun all the same, and is left to the next controller.
type NotBegun Start

func (n NotBegun) apply(m *Machine) {
	e := m.inRun(n.Job, n.Index)
	switch {
	case e == nil:
	case n.Resumed:
		e.place = inResume
		m.running--
		e.job = e.job.Resume(n.Index)
		m.out.touch(n.Job)
	default:
		m.requeue(e)
	}
}

// Unstorable says that the store does not take a job as it is now, and that no
// other write of it is on its way.
//
// A job of which nothing is stored was never taken: it is forgotten. Any other
// one ends, unless it has, and loses what its opcodes left that is long. What the
// store does not take even then is set aside as it is stored: like a job that
// cannot be read it counts as not ended until the next start.
type Unstorable struct {
	Job job.ID
	// Stored tells that something of the job is durable.
	Stored bool
	Err    error
}

func (u Unstorable) apply(m *Machine) {
	e, j := m.entry(u.Job), m.Job(u.Job)
	if j == nil {
		return // it became durable meanwhile
	}
	if e != nil && e.place == inRunner {
		m.out.Kills = append(m.out.Kills, u.Job)
	}
	switch {
	case !u.Stored:
		m.forget(e, j)
	case m.stripped[u.Job]:
		m.setAside(j)
	default:
		m.stripped = withID(m.stripped, u.Job)
		if e != nil {
			failed := e.job.Fail(e.job.Next(), fault.New(fault.Failed, "the job could not be stored: %w", u.Err), m.at())
			m.end(e, failed.Stripped())
			return
		}
		m.ending.Set(u.Job, j.Stripped())
		m.out.touch(u.Job)
	}
}

// forget takes a job out of memory that is not in the store. What depends on it
// depends on nothing.
func (m *Machine) forget(e *entry, j *job.Job) {
	if e != nil {
		m.settleOp(e)
		m.disconnect(e)
		m.drop(e)
		m.tell(j.ID, func(*entry) {})
	}
	m.ending.Delete(j.ID)
	if m.Key(j.Key) == j.ID {
		m.keys.Delete(j.Key)
	}
	m.out.Gone = append(m.out.Gone, j)
}

// setAside gives a job up whose end cannot be stored.
func (m *Machine) setAside(j *job.Job) {
	m.ending.Delete(j.ID)
	m.unread = withID(m.unread, j.ID)
}

// withID returns a set with one job more; clones may share the old one.
func withID(set map[job.ID]bool, id job.ID) map[job.ID]bool {
	out := maps.Clone(set)
	if out == nil {
		out = map[job.ID]bool{}
	}
	out[id] = true
	return out
}
