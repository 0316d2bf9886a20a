package machine

import (
	"math"
	"slices"

	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/jobfilter"
	"github.com/drover-project/drover/internal/lock"
	"github.com/drover-project/drover/internal/schedule"
)

// dispatch gives free slots to the jobs that come first, until there is no
// slot or nobody who could use one.
func (m *Machine) dispatch() {
	for m.admit(); !m.closing && m.running < m.world.MaxRunning; m.admit() {
		e := m.first()
		if e == nil {
			return
		}
		hadLocks := e.place == inGranted
		m.leave(e)
		if hadLocks {
			m.begin(e)
			continue
		}
		m.decide(e, m.world.MaxRunning-m.running)
	}
}

// first returns the entry that is served next. One that holds its locks goes
// before others of the same priority, for others may wait for those locks.
func (m *Machine) first() *entry {
	g, granted := m.granted.first()
	r, ready := m.ready.first()
	switch {
	case granted && (!ready || g.priority <= r.priority):
		return m.entry(g.id)
	case ready:
		return m.entry(r.id)
	}
	return nil
}

// facts gathers what a decision about the entry depends on.
func (m *Machine) facts(e *entry, slots int) schedule.Facts {
	return schedule.Facts{
		Rule:      e.rule,
		Depend:    func(id job.ID) (job.Status, bool) { return m.status(e, id) },
		Away:      m.away(e),
		Buckets:   schedule.Buckets(e.rule, e.adhoc),
		InFlight:  m.inFlight,
		SlotsFree: slots,
	}
}

// status answers what a job has come to on which the entry depends.
func (m *Machine) status(e *entry, id job.ID) (job.Status, bool) {
	if s, ended := e.came[id]; ended {
		return s, true
	}
	if other, ok := m.jobs.Get(id); ok {
		return other.job.Status(), true
	}
	return job.Queued, m.unread[id]
}

// sort takes an entry that is nowhere and puts it where it belongs, short of
// running it: who runs is decided by dispatch, in order of rank.
func (m *Machine) sort(e *entry) { m.decide(e, 0) }

// decide takes an entry that is nowhere and puts it where it belongs, with so
// many slots free.
func (m *Machine) decide(e *entry, slots int) {
	v := schedule.Next(e.job, m.facts(e, slots))
	h := m.holdOf(e, v)
	keeps := m.waitOf(e, v, h)
	if m.recovering && e.wait.since == 0 {
		m.noteRestart(e, keeps)
	}
	m.hold(e, h, keeps)
	switch v.Step {
	case schedule.Hold:
		e.place = inHold
	case schedule.WaitDependency:
		e.place = inDependents
	case schedule.WaitNode:
		e.awaits = v.Away.UUID
		m.enter(e, inNodes)
	case schedule.WaitBucket:
		e.wants = v.Bucket
		m.enter(e, inBucket)
	case schedule.WaitSlot:
		m.enter(e, inReady)
	case schedule.Run:
		m.acquire(e)
	case schedule.Cancel:
		m.end(e, e.job.Cancel(v.Why, m.at()))
	case schedule.Fail:
		m.end(e, e.job.Fail(e.job.Next(), v.Err, m.at()))
	case schedule.InFlight, schedule.Ended:
		panic("machine: decided upon a job that is in flight or ended")
	}
}

// holdOf is what holds the job by the decision: what the job has noted if that goes
// on, also if it was let go at this very moment and did not get what it was let go for;
// nil if nothing does.
func (m *Machine) holdOf(e *entry, v schedule.Verdict) *job.Hold {
	var by job.Hold
	var rule *jobfilter.Rule
	switch {
	case v.Step == schedule.Hold:
		by.Rule, rule = v.Rule.UUID, v.Rule
	case v.Step == schedule.WaitBucket && v.Bucket.Rule != "":
		by.Rule, rule = v.Bucket.Rule, e.rule.Rule
	case v.Step == schedule.WaitNode:
		by.Node = v.Away.Node
	default:
		return nil
	}
	if old := e.job.Hold; old != nil && old.By(by) {
		return old
	}
	if e.let != nil && e.letAt == m.at() && e.let.By(by) {
		return e.let
	}
	// Many jobs are taken at the same moment: they share the note.
	by.Since = m.heldSince(e, rule)
	if last := m.lastHold; last == nil || *last != by {
		m.lastHold = &by
	}
	return m.lastHold
}

// heldSince is when a hold that is found now began: now, or after a restart since
// the rule was there and nothing else is known of the job. A node is waited for from now on.
func (m *Machine) heldSince(e *entry, r *jobfilter.Rule) job.Time {
	if !m.recovering || r == nil {
		return m.at()
	}
	since := e.job.Known()
	if n := len(r.Reason); n > 0 {
		since = max(since, job.Time(r.Reason[n-1].Time/1000))
	}
	return since
}

// acquire enters the buckets and begins to take the locks of the next opcode.
func (m *Machine) acquire(e *entry) {
	m.enterBuckets(e)
	e.job = e.job.BeginWait(e.job.Next(), m.at())
	m.out.touch(e.id())
	if m.takeLocks(e) {
		m.begin(e)
		return
	}
	e.place = inLocks
}

// needs are the locks of the next opcode as things are now. What had begun needs those that it had: what it meant may have another
// name by now.
func (m *Machine) needs(e *entry) lock.Request {
	if e.held != nil {
		return e.held
	}
	return m.world.Locks(e.inputs[e.job.Next()])
}

// takeLocks asks for the locks that the next opcode needs as things are now. What
// has begun goes before everybody.
func (m *Machine) takeLocks(e *entry) bool {
	e.request = m.needs(e)
	priority := e.job.Priority()
	if e.begun() {
		priority = math.MinInt
	}
	return m.locks.Acquire(e.owner(), priority, e.request)
}

// begin gives the entry, which holds its locks, a slot. What has begun before gets
// one also where there is none.
func (m *Machine) begin(e *entry) {
	resumed := e.begun()
	e.place = inRunner
	m.running++
	i := e.job.Next()
	undo, began := false, job.Time(0)
	switch {
	case resumed:
		began = e.job.Began(i)
		_, kept := m.begun[e.id()]
		e.job, undo = e.job.BeginRun(i, m.at()), kept && e.job.CancelReason == job.Killed
	case m.world.Stepwise:
		e.job = e.job.BeginSteps(i, m.at())
	default:
		e.job = e.job.BeginRun(i, m.at())
	}
	m.out.touch(e.id())
	m.out.Starts = append(m.out.Starts, Start{Job: e.id(), Index: i, Op: e.inputs[i], Resumed: resumed, Began: began, Undo: undo, Stepwise: e.job.Ops[i].Stepwise, Locks: e.request, Unlocked: e.request == nil})
}

// serve moves entries on that were granted all their locks. The cluster may
// have changed while they waited, and with it what they need: then they ask
// again.
func (m *Machine) serve(owners []lock.Owner) {
	for len(owners) > 0 {
		e := m.entry(job.ID(owners[0]))
		owners = owners[1:]
		m.note(e, wait{})
		if now := m.needs(e); now != nil && !now.Equal(e.request) {
			owners = append(owners, m.locks.Release(e.owner())...)
			if !m.takeLocks(e) {
				continue
			}
		}
		switch {
		case e.place == inLocks:
			m.enter(e, inGranted)
		case !m.closing:
			m.begin(e)
		}
	}
}

// settleOp gives back what an opcode held while it was in flight.
func (m *Machine) settleOp(e *entry) {
	if e.place == inRunner {
		m.running--
	}
	m.leave(e)
	m.leaveBuckets(e)
	e.request, e.held = nil, nil
	m.serve(m.locks.Release(e.owner()))
}

// admit lets as many waiters of each bucket on offer go on as it has free
// places. To let in too many does no harm: they are decided upon once more
// when a slot is free. So as long as a bucket has both waiters and a free
// place, one who wants that place is ready.
func (m *Machine) admit() {
	for len(m.offered) > 0 {
		b := m.offered[len(m.offered)-1]
		m.offered = m.offered[:len(m.offered)-1]
		for free := b.Limit - m.inFlight(b); free > 0; {
			w, some := m.firstWaiting(b)
			if !some {
				break
			}
			e := m.entry(w.rank.id)
			m.leave(e)
			if m.sort(e); e.place == inReady {
				free--
			}
		}
	}
}

// end records the final value of a job, lets go of everything it had, and tells
// those that depend on it.
func (m *Machine) end(e *entry, final *job.Job) {
	m.settleOp(e)
	m.disconnect(e)
	e.job = final
	m.note(e, wait{})
	m.out.touch(e.id())
	m.drop(e)
	m.ending.Set(e.id(), e.job)
	m.tell(e.id(), func(d *entry) { d.learn(e.id(), final.Status()) })
}

// tell lets those go on that depend on a job which is there no more, and on no
// other that has not ended.
func (m *Machine) tell(id job.ID, learn func(*entry)) {
	for _, by := range m.dependents(id) {
		m.edges.Delete(edge{id, by})
		d := m.entry(by)
		if d == nil {
			continue // it has ended with another one
		}
		learn(d)
		d.pending--
		if d.pending == 0 && d.place == inDependents {
			m.leave(d)
			m.sort(d)
		}
	}
}

// redecide lets a rule take effect on a job.
func (m *Machine) redecide(e *entry, rule jobfilter.Decision) {
	switch e.place {
	case inRunner, inResume:
		e.rule = rule
		m.recount(e)
		if rule.Action().Kind == jobfilter.Reject && e.job.CancelReason == "" && e.job.Next() < len(e.job.Ops)-1 {
			e.job = e.job.RequestCancel("rejected by " + rule.Rule.Describe())
			m.out.touch(e.id())
		}
	case inLocks, inGranted:
		e.rule = rule
		m.leaveBuckets(e)
		if k := rule.Action().Kind; k == jobfilter.Pause || k == jobfilter.Reject || m.anyFull(e) {
			m.requeue(e)
			return
		}
		m.enterBuckets(e)
	default:
		m.leave(e)
		e.rule = rule
		m.sort(e)
	}
}

// anyFull reports whether a bucket that an entry belongs to has no place for it.
func (m *Machine) anyFull(e *entry) bool {
	return slices.ContainsFunc(schedule.Buckets(e.rule, e.adhoc), func(b schedule.Bucket) bool { return m.inFlight(b) >= b.Limit })
}

// requeue takes back that an opcode is in flight.
func (m *Machine) requeue(e *entry) {
	m.settleOp(e)
	m.note(e, wait{})
	e.job = e.job.Requeue(e.job.Next())
	m.out.touch(e.id())
	m.sort(e)
}

// recount moves an entry in flight to the buckets that it belongs to now.
func (m *Machine) recount(e *entry) {
	m.leaveBuckets(e)
	m.enterBuckets(e)
}
