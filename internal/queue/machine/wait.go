package machine

import (
	"fmt"

	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/jobfilter"
	"github.com/drover-project/drover/internal/lock"
	"github.com/drover-project/drover/internal/schedule"
)

// wait is what keeps an entry from going on, as far as its timeline tells of it.
// Waits for a slot are not noted: they follow from what is. A job that is not
// kept waiting leaves nothing behind.
type wait struct {
	since  job.Time
	opcode int
	// rule is the one that holds the job; span is any other wait.
	rule *jobfilter.Rule
	span *job.Span
}

// told returns the wait as it stands in a timeline, not over yet; false if there
// is none.
func (w wait) told() (job.Span, bool) {
	switch {
	case w.rule != nil:
		return job.Span{Kind: job.HeldByRule, From: w.since, Opcode: w.opcode, On: w.rule.UUID, Text: w.rule.Paused()}, true
	case w.span != nil:
		s := *w.span
		s.From, s.Opcode = w.since, w.opcode
		return s, true
	}
	return job.Span{}, false
}

// same tells that one wait is still the other.
func (w wait) same(other wait) bool {
	switch {
	case w.rule != nil:
		return other.rule != nil && w.rule.UUID == other.rule.UUID
	case w.span != nil:
		return other.span != nil && w.span.Kind == other.span.Kind && w.span.On == other.span.On
	}
	return other.rule == nil && other.span == nil
}

// note takes note of what keeps the entry from now on, and that what kept it
// before is over.
func (m *Machine) note(e *entry, now wait) { m.hold(e, e.job.Hold, now) }

// hold is note for an entry that is held, or no longer, by that.
func (m *Machine) hold(e *entry, h *job.Hold, now wait) {
	waits, over := m.turn(e, now)
	if h != e.job.Hold {
		m.out.Holds = append(m.out.Holds, e.id())
		e.let, e.letAt = e.job.Hold, m.at()
	} else if !over {
		return
	}
	e.job = e.job.WithWaits(waits, h)
}

// turn makes a wait the one that keeps the entry, and returns the waits that are over
// by that; false if they are those of before.
func (m *Machine) turn(e *entry, now wait) (waits []*job.Span, over bool) {
	if e.wait.same(now) {
		return e.job.Waits, false
	}
	waits, over = m.over(e)
	if now.since == 0 {
		now.since = m.at()
	}
	now.opcode = e.job.Next()
	e.wait = now
	return waits, over
}

// over adds what keeps the entry to the waits that are over. What took no time is
// forgotten.
func (m *Machine) over(e *entry) (waits []*job.Span, some bool) {
	s, waited := e.wait.told()
	if s.To = m.at(); !waited || s.From >= s.To {
		return e.job.Waits, false
	}
	// A rule lets go of many jobs at the same moment: they share the list.
	last := &m.lastOver
	if last.wait != e.wait || last.at != s.To || !sameList(last.before, e.job.Waits) {
		*last = noted{e.wait, s.To, e.job.Waits, job.AddWait(e.job.Waits, s)}
	}
	return last.after, true
}

// noted is a wait that was over at a moment, and the waits of a job before and after
// it was added.
type noted struct {
	wait          wait
	at            job.Time
	before, after []*job.Span
}

// sameList reports whether two lists of waits, which nobody changes, are one.
func sameList(a, b []*job.Span) bool { return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0]) }

// waitOf is the wait that a decision leads to. It begins now; but after a restart
// a rule held the job, and a dependency was there, before.
func (m *Machine) waitOf(e *entry, v schedule.Verdict, h *job.Hold) wait {
	var w wait
	switch v.Step {
	case schedule.Hold:
		w.rule = v.Rule
		if m.recovering {
			w.since = h.Since
		}
	case schedule.WaitDependency:
		w.span = &job.Span{Kind: job.WaitForDependency, Jobs: v.On, Text: v.Why}
		if m.recovering {
			w.since = e.job.Known()
		}
	case schedule.WaitNode:
		w.span = &job.Span{Kind: job.WaitForNode, On: v.Away.Node, Text: v.Why}
	case schedule.WaitBucket:
		w.span = &job.Span{Kind: job.WaitForLimit, On: v.Bucket.String(), Text: v.Why}
	default:
	}
	return w
}

// noteLocks takes note of the locks that entries began to wait for.
func (m *Machine) noteLocks() {
	for _, owner := range m.locks.Stuck() {
		w, waits := m.locks.Waiting(owner, job.MaxWaitJobs)
		if !waits {
			continue
		}
		if e := m.entry(job.ID(owner)); e != nil {
			s := &job.Span{Kind: job.WaitForLock, On: m.lockName(w.Name), Text: m.waitsFor(&w)}
			for _, holder := range w.Holders {
				s.Jobs = append(s.Jobs, job.ID(holder))
			}
			m.note(e, wait{span: s})
		}
	}
}

// noteRestart closes the gap that the end of the controller left: what kept the
// job until then was not stored.
func (m *Machine) noteRestart(e *entry, now wait) {
	from, to := e.job.Known(), m.at()
	if now.since != 0 {
		to = now.since
	}
	if from < to {
		e.job = e.job.WithWait(job.Span{Kind: job.Restart, From: from, To: to, Opcode: e.job.Next(),
			Text: "the controller was started again; what kept the job before is not known"})
	}
}

// timeline is that of a job that has not ended, with what it waits for now.
func (m *Machine) timeline(e *entry) []job.Span {
	s, waits := e.wait.told()
	if !waits {
		s = job.Span{Kind: job.WaitForSlot, From: e.job.Known(), Opcode: e.job.Next(), Text: job.NoSlot}
		switch e.place {
		case inReady:
		case inGranted:
			s.Text = job.NoSlotWhileReady
		case inResume:
			s.Kind, s.Text = job.Restart, "the controller stops; the opcode goes on when it is started again"
		default:
			return e.job.Timeline()
		}
	}
	return e.job.Timeline(s)
}

// waitsFor says which lock is waited for, and who is in the way.
func (m *Machine) waitsFor(w *lock.Wait) string {
	text := fmt.Sprintf("waits for the lock %s (%s), held by %s", m.lockName(w.Name), w.Mode, owners(w.Holders, w.MoreHolders))
	if len(w.Ahead) > 0 {
		text += ", wanted before by " + owners(w.Ahead, w.MoreAhead)
	}
	return text
}

// owners lists jobs, the first few of them if they are many.
func owners(list []lock.Owner, more int) string {
	if over := len(list) - job.MaxWaitJobs; over > 0 {
		list, more = list[:job.MaxWaitJobs], more+over
	}
	text := "nobody"
	for i, o := range list {
		if i == 0 {
			text = fmt.Sprintf("job %d", o)
		} else {
			text += fmt.Sprintf(", job %d", o)
		}
	}
	if more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
