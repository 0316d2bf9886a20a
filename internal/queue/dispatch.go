package queue

import (
	"context"
	"maps"
	"slices"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/jobfilter"
	"github.com/drover-project/drover/internal/lock"
	"github.com/drover-project/drover/internal/schedule"
)

// dispatch gives free slots to the jobs that come first, until there is no
// slot or nobody who could use one.
func (q *Queue) dispatch() {
	for q.admit(); !q.closing && q.failed == nil && q.running < q.maxRunning(); q.admit() {
		e := q.first()
		if e == nil {
			return
		}
		hadLocks := e.place == inGranted
		q.leave(e)
		if hadLocks {
			q.begin(e)
			continue
		}
		q.decide(e, q.maxRunning()-q.running)
	}
}

// first returns the entry that is served next. One that holds its locks goes
// before others of the same rank, for others may wait for those locks.
func (q *Queue) first() *entry {
	switch {
	case len(q.granted) == 0 && len(q.ready) == 0:
		return nil
	case len(q.granted) == 0:
		return q.ready[0]
	case len(q.ready) == 0 || q.granted[0].job.Priority() <= q.ready[0].job.Priority():
		return q.granted[0]
	}
	return q.ready[0]
}

// facts gathers what a decision about the entry depends on.
func (q *Queue) facts(e *entry, slots int) schedule.Facts {
	return schedule.Facts{
		Rule:      e.rule,
		Depend:    q.status,
		Buckets:   schedule.Buckets(e.rule, e.adhoc),
		InFlight:  func(b schedule.Bucket) int { return q.inFlight[b] },
		SlotsFree: slots,
	}
}

// sort takes an entry that is nowhere and puts it where it belongs, short of
// running it: who runs is decided by dispatch, in order of rank.
func (q *Queue) sort(e *entry) { q.decide(e, 0) }

// decide takes an entry that is nowhere and puts it where it belongs, with so
// many slots free.
func (q *Queue) decide(e *entry, slots int) {
	v := schedule.Next(e.job, q.facts(e, slots))
	q.hold(e, v)
	switch v.Step {
	case schedule.Hold:
		e.place = inHold
	case schedule.WaitDependency:
		e.place, e.awaiting = inDependents, v.On
		for _, id := range v.On {
			if q.dependents[id] == nil {
				q.dependents[id] = map[job.ID]*entry{}
			}
			q.dependents[id][e.id()] = e
		}
	case schedule.WaitBucket:
		h := q.full[v.Bucket]
		if h == nil {
			h = &entryHeap{}
			q.full[v.Bucket] = h
		}
		e.wants = v.Bucket
		q.enter(e, inBucket, h)
	case schedule.WaitSlot:
		q.enter(e, inReady, &q.ready)
	case schedule.Run:
		q.acquire(e)
	case schedule.Cancel:
		q.end(e, e.job.Cancel(v.Why, q.now()))
	case schedule.Fail:
		q.end(e, e.job.Fail(e.job.Next(), v.Err, q.now()))
	case schedule.InFlight, schedule.Ended:
		panic("queue: decided upon a job that is in flight or ended")
	}
}

// hold keeps the job's own note of what holds it in step with the decision.
func (q *Queue) hold(e *entry, v schedule.Verdict) {
	var h *job.Hold
	switch {
	case v.Step == schedule.Hold:
		h = &job.Hold{Rule: v.Rule.UUID, Since: q.heldSince(e, v.Rule)}
	case v.Step == schedule.WaitBucket && v.Bucket.Rule != "":
		h = &job.Hold{Rule: v.Bucket.Rule, Since: q.heldSince(e, e.rule.Rule)}
	}
	old := e.job.Hold
	if h == nil && old == nil || h != nil && old != nil && h.Rule == old.Rule {
		return
	}
	e.job = e.job.WithHold(h)
	q.work.held = append(q.work.held, e)
}

// heldSince is when a hold that is found now began: now, or after a restart
// when both the job and the rule were there.
func (q *Queue) heldSince(e *entry, r *jobfilter.Rule) job.Time {
	if !q.recovering {
		return q.now()
	}
	since := e.job.Received
	if n := len(r.Reason); n > 0 {
		since = max(since, job.Time(r.Reason[n-1].Time/1000))
	}
	return since
}

// acquire enters the buckets and begins to take the locks of the next opcode.
func (q *Queue) acquire(e *entry) {
	e.buckets = schedule.Buckets(e.rule, e.adhoc)
	for _, b := range e.buckets {
		q.inFlight[b]++
	}
	i := e.job.Next()
	e.job = e.job.BeginWait(i, q.now())
	q.changed(e)
	if q.takeLocks(e) {
		q.begin(e)
		return
	}
	e.place = inLocks
}

// takeLocks asks for the locks that the next opcode needs as things are now.
// An opcode whose needs cannot be told takes none; it will say itself what is
// wrong when it runs.
func (q *Queue) takeLocks(e *entry) bool {
	request, err := q.cfg.Executors.Locks(e.inputs[e.job.Next()], q.cfg.Inventory.Snapshot())
	if err != nil {
		request = nil
	}
	e.request = request
	return q.locks.Acquire(e.owner(), e.job.Priority(), request)
}

// begin gives the entry, which holds its locks, a slot.
func (q *Queue) begin(e *entry) {
	e.place = inRunner
	q.running++
	i := e.job.Next()
	e.job = e.job.BeginRun(i, q.now())
	q.changed(e)
	ctx, kill := context.WithCancelCause(q.ctx)
	e.kill = kill
	q.work.then(func() { q.start(ctx, e, i) })
}

// serve moves entries on that were granted all their locks. The cluster may
// have changed while they waited, and with it what they need: then they ask
// again.
func (q *Queue) serve(owners []lock.Owner) {
	for len(owners) > 0 {
		e := q.entries[job.ID(owners[0])]
		owners = owners[1:]
		e.place = nowhere
		now, err := q.cfg.Executors.Locks(e.inputs[e.job.Next()], q.cfg.Inventory.Snapshot())
		if err == nil && !now.Equal(e.request) {
			owners = append(owners, q.locks.Release(e.owner())...)
			if !q.takeLocks(e) {
				e.place = inLocks
				continue
			}
		}
		q.enter(e, inGranted, &q.granted)
	}
}

// settleOp gives back what an opcode held while it was in flight.
func (q *Queue) settleOp(e *entry) {
	if e.place == inRunner {
		q.running--
	}
	q.leave(e)
	q.leaveBuckets(e)
	e.request = nil
	q.serve(q.locks.Release(e.owner()))
}

// leaveBuckets gives up the entry's places.
func (q *Queue) leaveBuckets(e *entry) {
	for _, b := range e.buckets {
		if q.inFlight[b]--; q.inFlight[b] == 0 {
			delete(q.inFlight, b)
		}
	}
	q.offer(e.buckets)
	e.buckets = nil
}

// offer notes that there may be places in buckets: one was given up, or an
// entry that could have taken one goes another way.
func (q *Queue) offer(buckets []schedule.Bucket) {
	for _, b := range buckets {
		if q.full[b] != nil {
			q.offered = append(q.offered, b)
		}
	}
}

// admit lets as many waiters of each bucket on offer go on as it has free
// places. To let in too many does no harm: they are decided upon once more
// when a slot is free. So as long as a bucket has both waiters and a free
// place, one who wants that place is ready.
func (q *Queue) admit() {
	for len(q.offered) > 0 {
		b := q.offered[len(q.offered)-1]
		q.offered = q.offered[:len(q.offered)-1]
		for free := b.Limit - q.inFlight[b]; free > 0 && q.full[b] != nil; {
			e := (*q.full[b])[0]
			q.leave(e)
			if q.sort(e); e.place == inReady {
				free--
			}
		}
	}
}

// end records the final value of a job and lets go of everything it had.
func (q *Queue) end(e *entry, final *job.Job) {
	q.settleOp(e)
	e.job = final
	q.changed(e)
	delete(q.entries, e.id())
	q.ending[e.id()] = e
	waiting := q.dependents[e.id()]
	delete(q.dependents, e.id())
	for _, id := range slices.Sorted(maps.Keys(waiting)) {
		// The end of one of them may have moved others of them on already.
		if d := waiting[id]; d.place == inDependents {
			q.leave(d)
			q.sort(d)
		}
	}
}

// status answers what a job that others depend on has come to. A job that has
// ended is looked up among the published ones and in the archive. If the store
// cannot tell, the answer is that the job has not ended, so that nothing is
// decided upon a guess, and the queue stops.
func (q *Queue) status(id job.ID) (job.Status, bool) {
	if e := q.entries[id]; e != nil {
		return e.job.Status(), true
	}
	if e := q.ending[id]; e != nil {
		return e.job.Status(), true
	}
	j, err := q.Job(context.Background(), id)
	switch {
	case err == nil:
		return j.Status(), true
	case fault.Is(err, fault.NotFound):
		return "", false
	}
	q.fail(err)
	return job.Queued, true
}

// redecide asks the rules again about a job, and carries out what they now say
// of a job in flight.
func (q *Queue) redecide(e *entry, rule jobfilter.Decision) {
	switch e.place {
	case inRunner:
		e.rule = rule
		q.recount(e)
		if rule.Action().Kind == jobfilter.Reject && e.job.CancelReason == "" && e.job.Next() < len(e.job.Ops)-1 {
			e.job = e.job.RequestCancel("rejected by " + rule.Rule.Describe())
			q.changed(e)
		}
	case inLocks, inGranted:
		e.rule = rule
		if k := rule.Action().Kind; k != jobfilter.Pause && k != jobfilter.Reject {
			q.recount(e)
			return
		}
		q.settleOp(e)
		e.job = e.job.Requeue(e.job.Next())
		q.changed(e)
		q.sort(e)
	default:
		q.leave(e)
		e.rule = rule
		q.sort(e)
	}
}

// recount moves an entry in flight to the buckets that it belongs to now.
func (q *Queue) recount(e *entry) {
	q.leaveBuckets(e)
	e.buckets = schedule.Buckets(e.rule, e.adhoc)
	for _, b := range e.buckets {
		q.inFlight[b]++
	}
}
