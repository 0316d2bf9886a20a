// Package machine decides what becomes of jobs: who is let in, who waits for
// what, who begins next, and what all that makes durable. It is the queue as a
// value: Apply takes an event and the time and returns what follows; nothing
// else changes it, and it asks nobody. What it has to know of the world comes
// with the events. The engine around it (package queue) has the clock, the store
// and the goroutines.
//
// So the same machine answers what would be: Clone is cheap, and whoever wants
// to know why a job waits, or what a rule would do, asks or drives a copy.
//
// Each event is a type with its own file, or shares one with its likes: its
// fields are all that it depends on, its method apply what it does. To add one,
// add a type.
//
// Invariants:
//   - The same events at the same times lead to the same decisions.
//   - Every job that has not ended is in exactly one place (place.go), and there is
//     an event that moves it on.
//   - An event costs what it changes, not what the queue holds; only a change of
//     rules moves many jobs.
//   - A clone and its original never see one another's changes.
package machine

import (
	"encoding/json"
	"maps"
	"time"

	"github.com/tidwall/btree"

	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/jobfilter"
	"github.com/drover-project/drover/internal/lock"
	"github.com/drover-project/drover/internal/opcode"
	"github.com/drover-project/drover/internal/schedule"
	"github.com/drover-project/drover/internal/state"
)

// Machine is the queue as a value. It is not safe for concurrent use; a Clone
// may be used beside its original.
type Machine struct {
	resumable func(opcode string) (bool, string)
	begun     map[job.ID]Begun // as they were found; clones share it
	world     World
	// token tells which entries are this machine's own to change (Clone). Of a clone,
	// cloned are the tokens that its original had before and has since.
	token  *token
	cloned struct{ before, since *token }

	jobs   btree.Map[job.ID, *entry]
	weight int // of all of them
	// ending are jobs that have ended, as long as that is not durable.
	ending btree.Map[job.ID, *job.Job]
	// unread are jobs that are stored and could not be read, or not be written.
	// They count as not ended: nothing is decided upon a guess. stripped are those
	// that lost what their opcodes left, for the store did not take it (Unstorable).
	// Clones share both.
	unread, stripped map[job.ID]bool

	keys   btree.Map[string, job.ID] // of jobs that are not archived
	lastID job.ID

	// ready are those that wait for a slot only, granted those that have their
	// locks besides.
	ready, granted line
	// awaiting are those that wait for a node.
	awaiting *btree.BTreeG[awaiting]
	// full are those that wait for a place in a bucket, members those that have one.
	full    *btree.BTreeG[waiter]
	members *btree.BTreeG[member]
	counts  *btree.BTreeG[count]
	// offered are buckets that may have places for those who wait in full.
	offered []schedule.Bucket
	// edges lead from a job that has not ended to those that depend on it.
	edges *btree.BTreeG[edge]
	// named are all that lead from a job, whether it has ended or not, to those that have not and depend on it.
	named   *btree.BTreeG[edge]
	running int
	locks   *lock.Table

	rules    []jobfilter.Rule
	chain    *jobfilter.Chain
	revision uint64 // of the rules
	flags    state.Flags

	// lastHold and lastOver are the newest that were noted, for jobs to share.
	lastHold *job.Hold
	lastOver noted

	closing    bool
	recovering bool

	now time.Time // of the present event
	out *Ready    // what it leads to
}

// token is the identity of a machine; it has a size so that no two are one.
type token struct{ _ byte }

// Event is something that happened or is asked for.
type Event interface{ apply(m *Machine) }

// Start is an opcode that is to be run once the decision is durable.
type Start struct {
	Job   job.ID
	Index int
	Op    *opcode.Opcode
	// Resumed says that the opcode had begun under the controller before: what is
	// left of that is there.
	Resumed bool
	// Began is when it began to run first, of one that goes on; 0 if nobody knows.
	Began job.Time
	// Undo asks to take back what the opcode has done: its job was being killed when the controller ended.
	Undo bool
	// Stepwise says that what the opcode does is kept (World.Stepwise when it began).
	Stepwise bool
	// Locks are those that the opcode holds.
	Locks lock.Request
	// Unlocked says that nobody could tell which locks the opcode needs, so that it
	// has none: it has to find out what is wrong, or that it can be told by now.
	Unlocked bool
}

// Answer is how a request about one job is answered: whether it was done, and a
// sentence for a person in the words that clients know.
type Answer struct {
	OK      bool
	Message string
}

// Ready is what an event led to: what has to be durable, what the picture of
// readers gains, then what is to be carried out, and whom to answer what.
type Ready struct {
	// Jobs, Keys (of submissions) and Rules (by UUID) are those whose present state
	// has to become durable, with the switches if Flags is set.
	Jobs  []job.ID
	Keys  []string
	Rules []string
	Flags bool
	// Gone are jobs that were never taken, after all: nothing of them is to be in
	// the store.
	Gone []*job.Job
	// Holds are jobs that are held by something else than before, or no longer;
	// Locks the locks that look different. Both follow from what is stored.
	Holds []job.ID
	Locks []lock.State
	// Starts are to be run, Kills are running opcodes to be ended.
	Starts []Start
	Kills  []job.ID
	// Refused is why a request was not carried out: then nothing has changed.
	Refused error
	// Outcomes answers Submit, Repeated are the old jobs among them; Answer
	// answers requests about one job.
	Outcomes []Outcome
	Repeated []job.ID
	Answer   Answer

	touched Distinct[job.ID] // of Jobs
}

// Durable reports whether something has to become durable.
func (r *Ready) Durable() bool {
	return len(r.Jobs)+len(r.Keys)+len(r.Rules)+len(r.Gone) > 0 || r.Flags
}

// touch marks a job as changed.
func (r *Ready) touch(id job.ID) { r.Jobs = r.touched.Append(r.Jobs, id) }

// Loaded is what a machine begins with, as the store has it.
type Loaded struct {
	// Jobs are those that have not ended, Ended what those came to that they
	// depend on.
	Jobs  []*job.Job
	Ended map[job.ID]job.Status
	// Unread are jobs that are stored and cannot be read.
	Unread map[job.ID]bool
	// Keys are the submission keys of all jobs that are not archived.
	Keys   map[string]job.ID
	Rules  []jobfilter.Rule
	Flags  state.Flags
	LastID job.ID
	// Resumable tells whether an opcode that ran when the controller ended may be
	// run again, and why or why not. It is asked about those that a program of before began,
	// which kept nothing of what it did.
	Resumable func(opcode string) (bool, string)
	// Begun are those that are known to have begun something, by what was kept of it.
	Begun map[job.ID]Begun
	World World
}

// Begun is what was kept of an opcode that ran when the controller ended.
type Begun struct {
	// Locks are those that it held; nil for those that it asks for.
	Locks lock.Request
	// Steps are what it does, as far as they came; Why says how it goes on, for people.
	Steps []job.Step
	Why   string
	// Placement is how the node of a new instance was chosen, nil where none was.
	Placement json.RawMessage
	// Lost is why nobody can go on with it, empty if somebody can.
	Lost string
}

// New returns a machine that goes on from what was stored; the first event must
// be Recover.
func New(l Loaded) (*Machine, error) {
	chain, err := jobfilter.Compile(l.Rules)
	if err != nil {
		return nil, err
	}
	m := &Machine{
		resumable: l.Resumable, begun: l.Begun, world: l.World, token: &token{}, lastID: l.LastID, unread: l.Unread,
		ready: newLine(), granted: newLine(), awaiting: newTree(awaiting.less), full: newTree(waiter.less), members: newTree(member.less),
		counts: newTree(count.less), edges: newTree(edge.less), named: newTree(edge.less), locks: lock.NewTable(),
		rules: l.Rules, chain: chain, flags: l.Flags,
	}
	for key, id := range l.Keys {
		m.keys.Set(key, id)
	}
	for _, j := range l.Jobs {
		m.keep(m.newEntry(j))
	}
	for _, j := range l.Jobs {
		m.connect(m.entry(j.ID), l.Ended)
		// What a job depends on was a job's id, though perhaps none was stored.
		for _, id := range j.Dependencies() {
			m.lastID = max(m.lastID, id)
		}
	}
	return m, nil
}

func newTree[T any](less func(a, b T) bool) *btree.BTreeG[T] {
	return btree.NewBTreeGOptions(less, btree.Options{NoLocks: true})
}

// Clone returns a machine in the same state. Its cost is that of the locks which
// are held or waited for; everything else is copied when it changes.
func (m *Machine) Clone() *Machine {
	c := *m
	c.token, c.cloned.before, c.cloned.since = &token{}, m.token, &token{}
	m.token = c.cloned.since
	c.jobs, c.ending, c.keys = *m.jobs.Copy(), *m.ending.Copy(), *m.keys.Copy()
	c.ready, c.granted = m.ready.copy(), m.granted.copy()
	c.awaiting = m.awaiting.Copy()
	c.full, c.members, c.counts = m.full.Copy(), m.members.Copy(), m.counts.Copy()
	c.edges, c.named = m.edges.Copy(), m.named.Copy()
	c.locks = m.locks.Clone()
	c.offered, c.out = nil, nil
	return &c
}

// Discard takes note that nobody uses a clone of the machine any more, nor a clone of
// it: if it was the last, what it shared is changed without a copy again.
func (m *Machine) Discard(clone *Machine) {
	if m.token == clone.cloned.since {
		m.token = clone.cloned.before
	}
}

// Apply lets an event happen, draws the consequences and returns what follows.
func (m *Machine) Apply(e Event, now time.Time) *Ready {
	r := &Ready{}
	m.now, m.out = now, r
	e.apply(m)
	m.dispatch()
	m.noteLocks()
	r.Locks = m.locks.Changed()
	m.out = nil
	return r
}

func (m *Machine) at() job.Time { return job.At(m.now) }

// Job returns the newest value of a job that has not ended, or whose end is not
// durable; nil for any other.
func (m *Machine) Job(id job.ID) *job.Job {
	if e, ok := m.jobs.Get(id); ok {
		return e.job
	}
	j, _ := m.ending.Get(id)
	return j
}

// Unread reports whether a job is stored that could not be read, or not be
// written any more.
func (m *Machine) Unread(id job.ID) bool { return m.unread[id] }

// Unfinished is how many jobs have not ended.
func (m *Machine) Unfinished() int { return m.jobs.Len() }

// Key returns the job that was submitted with a key, 0 if none that is not
// archived was.
func (m *Machine) Key(key string) job.ID { id, _ := m.keys.Get(key); return id }

// Rules returns the rules in no order, Chain those in force; neither must be
// changed.
func (m *Machine) Rules() []jobfilter.Rule { return m.rules }

// Chain returns the rules as they are asked.
func (m *Machine) Chain() *jobfilter.Chain { return m.chain }

// Flags returns the switches of the queue.
func (m *Machine) Flags() state.Flags { return m.flags }

// LastID is the highest job id that was given.
func (m *Machine) LastID() job.ID { return m.lastID }

// LocksNow returns the present state of locks that a Ready told about.
func (m *Machine) LocksNow(told []lock.State) []lock.State { return m.locks.Now(told) }

// Stored takes note that the value of a job is durable. A brief one is that of
// its end.
func (m *Machine) Stored(j *job.Job) {
	if have, ok := m.ending.Get(j.ID); ok && (have == j || j.Brief() != nil) {
		m.ending.Delete(j.ID)
		if m.stripped[j.ID] {
			m.stripped = maps.Clone(m.stripped)
			delete(m.stripped, j.ID)
		}
	}
}
