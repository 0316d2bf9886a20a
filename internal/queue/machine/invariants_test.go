package machine

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/jobfilter"
	"github.com/drover-project/drover/internal/lock"
	"github.com/drover-project/drover/internal/schedule"
)

// check compares a machine with what must hold after each event.
func (h *world) check() error {
	for _, check := range []func() error{h.checkPlaces, h.checkNobodyIsForgotten, h.checkSlots, h.checkLocks, h.checkDependencies, h.checkHistory, h.checkRuns, h.checkTimelines, h.checkInterrupted} {
		if err := check(); err != nil {
			return fmt.Errorf("%w\n%s", err, digest(h.m))
		}
	}
	return nil
}

// checkPlaces: every job is in the one place that its entry names, and nothing
// else is anywhere.
func (h *world) checkPlaces() error {
	m := h.m
	ready, granted, awaits, full, running, members, edges, named, weight := 0, 0, 0, 0, 0, 0, 0, 0, 0
	var err error
	m.jobs.Scan(func(id job.ID, e *entry) bool {
		ok := true
		switch e.place {
		case inReady:
			ready++
			_, ok = m.ready.tree.Get(e.rank)
		case inGranted:
			granted++
			_, ok = m.granted.tree.Get(e.rank)
		case inNodes:
			awaits++
			_, ok = m.awaiting.Get(awaiting{e.awaits, e.rank})
			ok = ok && m.world.Away[e.awaits] != nil && e.job.Hold != nil && e.job.Hold.Node == m.world.Away[e.awaits].Node
		case inBucket:
			full++
			_, ok = m.full.Get(waiter{e.wants, e.rank})
		case inRunner:
			running++
		case inLocks:
			_, ok = m.locks.Waiting(e.owner(), 1)
		case inResume:
			_, ok = m.locks.Waiting(e.owner(), 1)
			ok = (ok || m.closing) && e.job.Status() == job.Running
		case inHold:
			ok = e.job.Hold != nil && e.job.Hold.Rule != ""
		case inDependents:
			ok = e.pending > 0
		default:
			ok = false
		}
		if e.place == inReady || e.place == inGranted || e.place == inNodes || e.place == inBucket {
			ok = ok && e.rank == e.newRank()
		}
		inFlight := e.begun() || e.place == inLocks || e.place == inGranted
		if inFlight != e.job.Busy() || inFlight != (len(e.buckets) == len(schedule.Buckets(e.rule, e.adhoc)) && inFlight) || e.id() != id || e.job.Final() {
			ok = false
		}
		if !inFlight && len(e.buckets) > 0 || inFlight && !slices.Equal(e.buckets, schedule.Buckets(e.rule, e.adhoc)) {
			ok = false
		}
		for _, b := range e.buckets {
			members++
			if _, in := m.members.Get(member{b, id}); !in {
				ok = false
			}
		}
		edges += e.pending
		for _, on := range e.job.Dependencies() {
			named++
			ok = ok && m.Named(on)
		}
		weight += e.weight
		if !ok {
			err = fmt.Errorf("job %d is not where it says (place %d)", id, e.place)
		}
		return ok
	})
	if err != nil {
		return err
	}
	c := m.Census()
	if weight != m.weight {
		return fmt.Errorf("all jobs take %d bytes, and count as %d", weight, m.weight)
	}
	if c.Running.Jobs != running || c.Slot.Jobs != ready+granted || c.Bucket.Jobs != full || c.Node.Jobs != awaits || awaits != m.awaiting.Len() || c.Slots != m.world.MaxRunning ||
		c.Held.Jobs+c.Dependency.Jobs+c.Node.Jobs+c.Bucket.Jobs+c.Slot.Jobs+c.Lock.Jobs+c.Running.Jobs != m.jobs.Len() {
		return fmt.Errorf("the census is wrong: %+v of %d jobs", c, m.jobs.Len())
	}
	counted := 0
	m.counts.Scan(func(c count) bool { counted += c.n; return true })
	if ready != m.ready.tree.Len() || granted != m.granted.tree.Len() || full != m.full.Len() || running != m.running ||
		members != m.members.Len() || counted != members || edges != m.edges.Len() || named != m.named.Len() || len(m.offered) > 0 {
		return fmt.Errorf("somebody is in two places, or left behind: ready %d of %d, granted %d of %d, full %d of %d, running %d of %d, in buckets %d of %d, edges %d of %d, named %d of %d",
			ready, m.ready.tree.Len(), granted, m.granted.tree.Len(), full, m.full.Len(), running, m.running, members, m.members.Len(), edges, m.edges.Len(), named, m.named.Len())
	}
	return nil
}

// checkNobodyIsForgotten: no job could go on that does not, and what is shown
// as holding it does.
func (h *world) checkNobodyIsForgotten() error {
	m := h.m
	slots := m.world.MaxRunning - m.running
	if m.closing {
		slots = 0
	}
	var err error
	m.jobs.Scan(func(id job.ID, e *entry) bool {
		if e.job.Busy() {
			return true
		}
		v := schedule.Next(e.job, m.facts(e, slots))
		switch v.Step {
		case schedule.Run, schedule.Cancel, schedule.Fail:
			err = fmt.Errorf("job %d was forgotten: %s, %s", id, v.Step, v.Why)
		case schedule.Hold:
			if e.place != inHold || e.job.Hold == nil || e.job.Hold.Rule != v.Rule.UUID {
				err = fmt.Errorf("job %d is to be held by %s and is not", id, v.Rule.UUID)
			}
		case schedule.WaitDependency:
			if e.place != inDependents {
				err = fmt.Errorf("job %d is to wait for others and does not", id)
			}
		case schedule.WaitNode:
			if e.place != inNodes && e.place != inBucket && e.place != inReady { // those are asked when it is their turn
				err = fmt.Errorf("job %d is to wait for a node and does not", id)
			}
		default:
			if e.place == inHold || e.place == inDependents || e.place == inNodes {
				err = fmt.Errorf("job %d waits for nothing: %s", id, v.Step)
			}
		}
		return err == nil
	})
	if err == nil && slots > 0 && (m.ready.tree.Len() > 0 || m.granted.tree.Len() > 0) {
		err = fmt.Errorf("%d slots are free and jobs wait for one", slots)
	}
	return err
}

// checkSlots: no more jobs run than may, but for those that ran already.
func (h *world) checkSlots() error {
	h.surplus = min(h.surplus, h.m.running)
	resumed := 0
	for r := range h.interrupted {
		if e, ok := h.m.jobs.Get(r.id); ok && e.place == inRunner && e.job.Next() == r.index {
			resumed++
		}
	}
	if h.m.running > max(h.max, h.surplus)+resumed {
		return fmt.Errorf("%d jobs run, at most %d may and %d were resumed", h.m.running, h.max, resumed)
	}
	return nil
}

// checkInterrupted: what ran when the controller ended and goes on is in flight
// until it has ended; while it waits for its locks only its likes have them.
func (h *world) checkInterrupted() error {
	for r := range h.interrupted {
		e, ok := h.m.jobs.Get(r.id)
		if !ok || e.job.Next() != r.index {
			if j := h.m.Job(r.id); j != nil && j.Ops[r.index].Status == job.Canceled {
				return fmt.Errorf("opcode %d of job %d had begun and was cancelled", r.index, r.id)
			}
			delete(h.interrupted, r) // it has ended
			continue
		}
		if !e.begun() || e.job.Status() != job.Running {
			return fmt.Errorf("opcode %d of job %d had begun and is %s", r.index, r.id, e.job.Status())
		}
		w, waits := h.m.locks.Waiting(e.owner(), len(h.interrupted)+1)
		if !waits || h.moved {
			continue
		}
		for _, o := range slices.Concat(w.Holders, w.Ahead) {
			other, _ := h.m.jobs.Get(job.ID(o))
			if !h.interrupted[run{other.id(), other.job.Next()}] {
				return fmt.Errorf("job %d got between job %d, which had begun, and its lock %s", o, r.id, w.Name)
			}
		}
	}
	return nil
}

// checkLocks: who runs or was granted its locks waits for none, and nobody waits
// for a lock that nobody has.
func (h *world) checkLocks() error {
	for _, s := range h.m.locks.States() {
		if len(s.Pending) > 0 && s.Holders.Len() == 0 {
			return fmt.Errorf("jobs wait for %s, which is free", s.Name)
		}
		for _, o := range slices.Concat(slices.Collect(s.Holders.All()), pendingOwners(s)) {
			e, ok := h.m.jobs.Get(job.ID(o))
			if !ok || !e.job.Busy() {
				return fmt.Errorf("job %d has or wants %s and is not in flight", o, s.Name)
			}
		}
		if s.Mode == lock.Exclusive && s.Holders.Len() > 1 && s.Name.Item != lock.All {
			return fmt.Errorf("%s has several holders: %v", s.Name, slices.Collect(s.Holders.All()))
		}
	}
	return nil
}

func pendingOwners(s lock.State) []lock.Owner {
	var out []lock.Owner
	for _, p := range s.Pending {
		out = append(out, p.Owner)
	}
	return out
}

// checkDependencies: what a job is told of others is what became of them, and
// nobody begins before those have ended.
func (h *world) checkDependencies() error {
	var err error
	h.m.jobs.Scan(func(id job.ID, e *entry) bool {
		for _, on := range e.job.Dependencies() {
			other := h.m.Job(on)
			if other == nil {
				other = h.seen(on)
			}
			s, known := e.came[on]
			switch {
			case h.m.unread[on]: // it has ended, and is stored as if it had not
			case other != nil && other.Final() && (!known || s != other.Status()):
				err = fmt.Errorf("job %d was not told that job %d ended as %s", id, on, other.Status())
			case h.interrupted[run{id, e.job.Next()}]: // the store may have lost the end of the other since it began
			case other != nil && !other.Final() && e.job.Busy():
				err = fmt.Errorf("job %d began before job %d ended", id, on)
			case on > h.m.lastID:
				err = fmt.Errorf("job %d waits for job %d, which there is not yet", id, on)
			}
		}
		return err == nil
	})
	return err
}

// checkHistory: what has ended stays as it was, opcodes and jobs alike.
func (h *world) checkHistory() error {
	for id, j := range h.jobs {
		before := h.lastSeen[id]
		h.lastSeen[id] = j
		if before == nil || before == j {
			continue
		}
		if before.Final() && !bytes.Equal(before.Encode(), j.Encode()) {
			return fmt.Errorf("job %d has changed after its end", id)
		}
		for i := range before.Ops {
			was, is := &before.Ops[i], &j.Ops[i]
			if was.Status.Final() && (is.Status != was.Status || is.End != was.End || !bytes.Equal(is.Result, was.Result)) {
				return fmt.Errorf("opcode %d of job %d has ended twice", i, id)
			}
		}
	}
	for key, id := range h.byKey {
		live := h.jobs[id]
		if got := h.keys[key]; got != id && (live == nil || live.Key != key) {
			return fmt.Errorf("key %q was answered with job %d and is stored as that of job %d", key, id, got)
		}
	}
	for id := range h.told {
		if h.stored(id) == nil {
			return fmt.Errorf("job %d was acknowledged and is lost", id)
		}
	}
	return nil
}

// checkRuns: an opcode runs once, unless it is resumable, and then its log tells.
func (h *world) checkRuns() error {
	for r, n := range h.ran {
		j := h.m.Job(r.id)
		if j == nil {
			j = h.stored(r.id)
		}
		if j == nil {
			return fmt.Errorf("an opcode of job %d ran, and the job is gone", r.id)
		}
		told := 0
		for _, e := range j.Ops[r.index].Log {
			if strings.Contains(string(e.Payload), "it is run again") {
				told++
			}
		}
		if n > 1+told || n > 1 && j.Ops[r.index].Input.ID == dummyOp.ID {
			return fmt.Errorf("opcode %d of job %d ran %d times, of which the log tells %d", r.index, r.id, n, told)
		}
	}
	return nil
}

// without removes a rule.
func without(uuid string) Edit {
	return func(rules []jobfilter.Rule, _ job.ID) ([]jobfilter.Rule, []string, error) {
		return slices.DeleteFunc(rules, func(r jobfilter.Rule) bool { return r.UUID == uuid }), []string{uuid}, nil
	}
}
