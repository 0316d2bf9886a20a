package queue_test

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/jobfilter"
	"github.com/drover-project/drover/internal/schedule"
)

// state is what can be seen of a queue at rest: all jobs, and what follows from
// the rules.
type state struct {
	jobs     map[job.ID]*job.Job // also archived ones
	chain    *jobfilter.Chain
	inFlight map[schedule.Bucket]int
	running  int
	max      int
}

func (m *model) look() *state {
	s := &state{jobs: map[job.ID]*job.Job{}, inFlight: map[schedule.Bucket]int{}, max: m.max}
	var rules []jobfilter.Rule
	for _, r := range m.shown.Load().Rules {
		rules = append(rules, *r)
	}
	var err error
	s.chain, err = jobfilter.Compile(rules)
	m.check(err)
	for id := range m.known {
		j, err := m.q.Job(ctx, id)
		m.check(err) // a job that was acknowledged is there
		s.jobs[id] = j
		if !j.Final() && j.Busy() {
			for _, b := range s.buckets(j) {
				s.inFlight[b]++
			}
		}
		if j.Status() == job.Running {
			s.running++
		}
	}
	return s
}

func (s *state) rule(j *job.Job) jobfilter.Decision { return s.chain.Decide(int64(j.ID), j.Inputs()) }

func (s *state) buckets(j *job.Job) []schedule.Bucket {
	return schedule.Buckets(s.rule(j), schedule.AdHoc(j))
}

// next is what the job may do with so many slots free.
func (s *state) next(j *job.Job, slots int) schedule.Verdict {
	return schedule.Next(j, schedule.Facts{
		Rule:    s.rule(j),
		Buckets: s.buckets(j), InFlight: func(b schedule.Bucket) int { return s.inFlight[b] },
		Depend: func(id job.ID) (job.Status, bool) {
			if other := s.jobs[id]; other != nil {
				return other.Status(), true
			}
			return "", false
		},
		SlotsFree: slots,
	})
}

func (m *model) checkSlots(s *state) error {
	if s.running > s.max {
		return fmt.Errorf("%d jobs run, at most %d may", s.running, s.max)
	}
	return nil
}

// instance returns the instance that the job's present opcode locks.
func instance(j *job.Job) string { return j.Ops[j.Next()].Input.Str("instance_name") }

// checkLocks: one job at a time has an instance, and while there are slots
// nobody waits for one that no other job has.
func (m *model) checkLocks(s *state) error {
	holders := map[string]job.ID{}
	for _, id := range slices.Sorted(maps.Keys(s.jobs)) {
		j := s.jobs[id]
		if j.Status() != job.Running || instance(j) == "" {
			continue
		}
		if other := holders[instance(j)]; other != 0 {
			return fmt.Errorf("jobs %d and %d run on %s at the same time", other, id, instance(j))
		}
		holders[instance(j)] = id
	}
	for id, j := range s.jobs {
		if j.Status() == job.Waiting && s.running < s.max && holders[instance(j)] == 0 {
			return fmt.Errorf("job %d waits, with a slot free, for %q that nobody has", id, instance(j))
		}
	}
	return nil
}

// checkNobodyIsForgotten: no job could go on that does not.
func (m *model) checkNobodyIsForgotten(s *state) error {
	for id, j := range s.jobs {
		if j.Final() || j.Busy() {
			continue
		}
		v := s.next(j, s.max-s.running)
		if v.Step == schedule.Run || v.Step == schedule.Cancel || v.Step == schedule.Fail {
			return fmt.Errorf("job %d was forgotten: %s, %s", id, v.Step, v.Why)
		}
		rule := ""
		switch {
		case v.Step == schedule.Hold:
			rule = v.Rule.UUID
		case v.Step == schedule.WaitBucket:
			rule = v.Bucket.Rule
		}
		if v.Step == schedule.WaitBucket && j.Hold == nil {
			continue // it waits for something else too, since before the bucket filled
		}
		if waitsInLine(v) && s.promised(j) {
			rule = s.rule(j).Rule.UUID
		}
		if got := j.Hold; (got == nil) != (rule == "") || got != nil && got.Rule != rule {
			return fmt.Errorf("job %d is shown as held by %v, but the decision is %s, %s", id, got, v.Step, v.Why)
		}
	}
	return nil
}

// waitsInLine: an ad-hoc limit may have filled since the job was let in from the
// bucket of its rule, or noted to wait there.
func waitsInLine(v schedule.Verdict) bool {
	return v.Step == schedule.WaitSlot || v.Step == schedule.WaitBucket
}

// promised tells that the job is held by a rule that limits, and that others
// which also wait for a slot have been promised the free places.
func (s *state) promised(j *job.Job) bool {
	limit := s.rule(j)
	if j.Hold == nil || limit.Action().Kind != jobfilter.RateLimit {
		return false
	}
	bucket := schedule.Buckets(limit, nil)[0]
	free := bucket.Limit - s.inFlight[bucket]
	for _, other := range s.jobs {
		if other.Final() || other.Busy() || other.Hold != nil || !waitsInLine(s.next(other, 0)) {
			continue
		}
		if slices.Contains(s.buckets(other), bucket) {
			free--
		}
	}
	return free <= 0
}

// hasBegun tells that an opcode of the job has begun to run since the queue was
// at rest last. One that a crash took with its submission may have begun before it: then
// what the crash ended had not ended yet, and others could not have begun instead.
func (m *model) hasBegun(j *job.Job) bool {
	before := m.last[j.ID]
	if before == nil && j.Status() == job.Running && timesRunAgain(&j.Ops[j.Next()]) > 0 {
		return false
	}
	return j.Status() == job.Running && (before == nil || before.Next() != j.Next() || before.Status() != job.Running)
}

// timesRunAgain is how often the log of an opcode tells that it began anew.
func timesRunAgain(op *job.Op) int {
	told := 0
	for _, e := range op.Log {
		if strings.Contains(string(e.Payload), "it is run again") {
			told++
		}
	}
	return told
}

// checkOrder: whoever began to run comes before all that could have instead,
// and after all that it depends on.
func (m *model) checkOrder(s *state) error {
	for id, j := range s.jobs {
		if !m.hasBegun(j) {
			continue
		}
		for _, d := range j.Dependencies() {
			if other := s.jobs[d]; other != nil && !other.Final() {
				return fmt.Errorf("job %d began before job %d, on which it depends, ended", id, d)
			}
		}
		before := m.last[id]
		hadLocks := before != nil && before.Status() == job.Waiting
		for other, o := range s.jobs {
			if o.Final() || o.Busy() || s.next(o, 1).Step != schedule.Run || m.last[other] == nil {
				continue
			}
			if o.Priority() < j.Priority() || o.Priority() == j.Priority() && other < id && !hadLocks {
				return fmt.Errorf("job %d began before job %d", id, other)
			}
		}
	}
	return nil
}

// checkPaused: no opcode of a paused or rejected job starts, none waits with
// locks, and of a rejected job nothing is left to start.
func (m *model) checkPaused(s *state) error {
	for id, j := range s.jobs {
		kind := s.rule(j).Action().Kind
		if j.Final() || kind != jobfilter.Pause && kind != jobfilter.Reject {
			continue
		}
		switch {
		case m.hasBegun(j):
			return fmt.Errorf("an opcode of job %d began though the rules say %s", id, kind)
		case j.Status() == job.Waiting:
			return fmt.Errorf("job %d keeps locks though the rules say %s", id, kind)
		case kind == jobfilter.Reject && j.Next() < len(j.Ops)-1 && j.CancelReason == "":
			return fmt.Errorf("job %d goes on though the rules reject it", id)
		}
	}
	return nil
}

// checkHistory: what has ended stays as it was, opcodes and jobs alike, and
// what was cancelled ends with the present opcode.
func (m *model) checkHistory(s *state) error {
	for id, j := range s.jobs {
		if !j.Final() && j.CancelReason != "" && j.Status() != job.Running {
			return fmt.Errorf("job %d is to be cancelled and still %s", id, j.Status())
		}
		before := m.last[id]
		if before == nil {
			continue
		}
		if before.Final() && !bytes.Equal(before.Encode(), j.Encode()) {
			return fmt.Errorf("job %d has changed after its end:\n%s\n%s", id, before.Encode(), j.Encode())
		}
		for i := range before.Ops {
			was, is := &before.Ops[i], &j.Ops[i]
			if was.Status.Final() && (is.Status != was.Status || is.End != was.End || !bytes.Equal(is.Result, was.Result)) {
				return fmt.Errorf("opcode %d of job %d has ended twice", i, id)
			}
		}
	}
	return nil
}

// checkRuns: an opcode runs once, unless it is resumable, and then its log
// tells.
func (m *model) checkRuns(s *state) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for id, j := range s.jobs {
		for i := range j.Ops {
			op := &j.Ops[i]
			n, told := m.runs[fmt.Sprintf("%d/%d", id, i)], timesRunAgain(op)
			switch {
			case n > 1+told, n > 1 && op.Input.ID != "OP_TEST_JQUEUE":
				return fmt.Errorf("opcode %d of job %d ran %d times, of which the log tells %d", i, id, n, told)
			case n == 0 && op.Status == job.Success:
				return fmt.Errorf("opcode %d of job %d succeeded without having run", i, id)
			}
		}
	}
	return nil
}
