package machine

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/jobfilter"
	"github.com/drover-project/drover/internal/schedule"
)

// Forecast tells what a change of rules would do to the jobs that have not ended:
// it lets the change happen on a clone and looks at what became of them. It is
// about the jobs with which one of the rules that are put or removed has to do, and
// those that would end; unaffected counts the others.
func (m *Machine) Forecast(plan SetRules, now time.Time) (effects []jobfilter.JobForecast, unaffected int) {
	after := m.Clone()
	after.Apply(plan, now)
	// Who gets a place of a rate limit shows when slots are no matter.
	free := after.Clone()
	world := free.world
	world.MaxRunning = math.MaxInt
	free.Apply(world, now)
	look := outlook{plan: plan, after: after, free: free}
	m.jobs.Scan(func(_ job.ID, was *entry) bool {
		f, affected := look.at(was)
		if affected {
			effects = append(effects, f)
		} else {
			unaffected++
		}
		return true
	})
	return effects, unaffected
}

// outlook is what would be: after a change, and if then there were slots for all.
type outlook struct {
	plan        SetRules
	after, free *Machine
}

// at tells the effect on a job, given what is known of it now.
func (o *outlook) at(was *entry) (jobfilter.JobForecast, bool) {
	j := was.job
	f := jobfilter.JobForecast{ID: j.ID, Status: j.Status(), Summary: j.Summary(), Before: was.rule.String()}
	is, goesOn := o.after.jobs.Get(j.ID)
	if !goesOn {
		end, _ := o.after.ending.Get(j.ID)
		rule := o.plan.chain.Decide(int64(j.ID), was.inputs)
		f.After, f.Effect, f.Text = rule.String(), jobfilter.WouldCancel, ended(was, rule, end)
		return f, true
	}
	if !o.plan.concerns(was.rule) && !o.plan.concerns(is.rule) {
		return f, false
	}
	f.After = is.rule.String()
	f.Effect, f.Text = o.effect(was, is)
	return f, true
}

// concerns tells that the change is about the rule that decided.
func (s *SetRules) concerns(d jobfilter.Decision) bool {
	return d.Rule != nil && slices.Contains(s.changed, d.Rule.UUID)
}

func ended(was *entry, rule jobfilter.Decision, end *job.Job) string {
	switch {
	case rule.Action().Kind != jobfilter.Reject:
		return fmt.Sprintf("ends as %s with a job on which it depends", end.Status())
	case was.waitsForLocks():
		return "gives up its wait for locks and is cancelled"
	}
	return "is cancelled"
}

// effect compares what a job does now with what it would do.
func (o *outlook) effect(was, is *entry) (jobfilter.Effect, string) {
	before, after := was.rule.Action(), is.rule.Action()
	next := was.job.Next()
	behind := len(was.job.Ops) - 1 - next
	switch {
	case after.Kind == jobfilter.RateLimit:
		return jobfilter.WouldLimit, o.seat(was, is)
	case was.begun() && (after.Kind == jobfilter.Pause || is.job.CancelReason != was.job.CancelReason):
		effect, word := jobfilter.WouldHold, "held"
		if after.Kind == jobfilter.Reject {
			effect, word = jobfilter.WouldCancel, "cancelled"
		}
		if behind == 0 {
			break
		}
		return effect, fmt.Sprintf("opcode %d completes, the %d behind it are %s", next, behind, word)
	case is.place == inHold && was.place == inHold:
		return jobfilter.NoEffect, "nothing changes: " + after.String() + " as before"
	case is.place == inHold && was.waitsForLocks():
		return jobfilter.WouldHold, "gives up its wait for locks and is held"
	case is.place == inHold:
		return jobfilter.WouldHold, "is held"
	case before.Kind == jobfilter.Pause && was.begun():
		if behind == 0 {
			return jobfilter.NoEffect, lastOpcode
		}
		return jobfilter.WouldRelease, fmt.Sprintf("the %d behind opcode %d, which runs, may go on; they are held now", behind, next)
	case before.Kind == jobfilter.Pause:
		return jobfilter.WouldRelease, "may go on; it is held now"
	case before.Kind == jobfilter.RateLimit:
		return jobfilter.WouldRelease, "may run without a place; it shares a rate limit now"
	}
	if was.begun() && behind == 0 && (after.Kind == jobfilter.Pause || after.Kind == jobfilter.Reject) {
		return jobfilter.NoEffect, lastOpcode
	}
	return jobfilter.NoEffect, "nothing changes: it may run as before"
}

// lastOpcode is what rules cannot change any more.
const lastOpcode = "nothing changes: its last opcode runs already and completes"

// seat tells where a job stands in the bucket of its rule.
func (o *outlook) seat(was, is *entry) string {
	bucket := schedule.Buckets(is.rule, nil)[0]
	switch back := was.waitsForLocks() && !slices.Contains(is.buckets, bucket); {
	case back:
		return "gives up its wait for locks, and " + o.line(is, bucket)
	case was.job.Busy():
		return "goes on, and has one of the places"
	}
	return o.line(is, bucket)
}

// line tells where a job stands that has no place yet.
func (o *outlook) line(is *entry, bucket schedule.Bucket) string {
	e, goesOn := o.free.jobs.Get(is.id())
	switch {
	case goesOn && slices.Contains(e.buckets, bucket):
		return fmt.Sprintf("may start: it gets one of the %d places", bucket.Limit)
	case goesOn && e.place == inBucket && e.wants == bucket:
		return fmt.Sprintf("waits for one of the %d places, as number %d in line", bucket.Limit, o.free.placeInLine(e))
	}
	return fmt.Sprintf("waits for something else, and then for one of the %d places", bucket.Limit)
}
