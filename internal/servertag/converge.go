package servertag

import (
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/drover-project/drover/internal/backoff"
	"github.com/drover-project/drover/internal/job"
)

// Outcome is how a job ended.
type Outcome struct {
	OK bool
	// Text is what the cluster said about a failure.
	Text string
	// Missing: it says that something that was to be removed is not there.
	Missing bool
	// Final: another job like it would fail too.
	Final bool
	// Began and Ended are when it ran, by the cluster's clock; zero if it did not, or
	// if that is not known.
	Began, Ended job.Time
}

// Sight is what is known of a server on its cluster at one moment.
type Sight struct {
	Now job.Time
	// Instance: the server is there. Tags are all that it has, raw; others' too.
	Instance bool
	Tags     []string
	// Ended are the jobs of ours that have ended, all before the tags were looked
	// at.
	Ended map[job.ID]Outcome
}

// Settle takes in what was seen: jobs that ended, tags that are in force by now
// or gone, and what others did to our tags on the cluster. The cluster is right
// about what nobody here wants to change: a tag that somebody put there is
// adopted, and one that was there and is not any more was taken away. What is
// wanted and not yet seen is never given up.
func (s Set) Settle(p *Policy, sight Sight) Set {
	next := s.clone()
	next.Jobs = slices.DeleteFunc(next.Jobs, func(j Job) bool {
		outcome, ended := sight.Ended[j.ID]
		ended = ended && j.ID != 0
		if ended {
			next.ended(j, outcome, sight)
		}
		return ended
	})
	next.settleEffects(sight)
	if !sight.Instance {
		return next
	}
	next.Tags = slices.DeleteFunc(next.Tags, func(t Tag) bool {
		return next.Changing(t.Raw) == nil && t.gone(slices.Contains(sight.Tags, t.Raw))
	})
	for i := range next.Tags {
		if t := &next.Tags[i]; next.Changing(t.Raw) == nil {
			*t = t.looked(slices.Contains(sight.Tags, t.Raw), sight.Now)
		}
	}
	next.adopt(p, sight)
	return next
}

// Missed returns the set of a server whose instance is not there any more, and why that is known. What users want stays wanted, as
// long as they do not take it back; what was seen, and what was tried in vain, counts no more.
func (s Set) Missed(now job.Time, why string) Set {
	next := s.Unseen()
	for i := range next.Tags {
		next.Tags[i] = next.Tags[i].with(Event{Time: now, What: WasMissed, Text: why})
	}
	return next
}

// Unseen returns the set of a server whose instance is there again, or is another one: as one that nobody has looked at.
func (s Set) Unseen() Set {
	next := s.clone()
	for i := range next.Tags {
		t := &next.Tags[i]
		t.Seen, t.Tries, t.Retry, t.Failure, t.Alone = Unknown, 0, 0, nil, false
	}
	for i := range next.Effects {
		a := &next.Effects[i]
		a.InForce, a.Tries, a.Retry, a.Failure = false, 0, 0, nil
	}
	return next
}

// gone reports whether the tag is no longer to be remembered: it was to go and
// is gone, or was in force and was taken away on the cluster.
func (t *Tag) gone(there bool) bool { return !there && (!t.Wanted || t.Seen == Present) }

// looked returns the tag as it is after a look at the cluster.
func (t Tag) looked(there bool, now job.Time) Tag {
	if !there {
		t.Seen = Absent
		return t
	}
	if t.Seen == Present {
		return t
	}
	t.Seen = Present
	if !t.Wanted {
		return t
	}
	t.Tries, t.Retry, t.Failure, t.Alone = 0, 0, nil, false
	return t.with(Event{Time: now, What: WasSeen})
}

// ended takes the outcome of a job in.
func (s *Set) ended(j Job, outcome Outcome, sight Sight) {
	there := func(r Ref) bool { return slices.Contains(sight.Tags, r.Raw) }
	left := slices.DeleteFunc(slices.Clone(j.Tags), func(r Ref) bool { return there(r) == (j.Action == Add) })
	if outcome.OK && !sight.Instance || len(left) == 0 {
		return
	}
	// A removal that names something that is gone already removes nothing. The rest
	// is worth another try: at once if it is fewer, and later if all is there again.
	missing := outcome.Missing && j.Action == Remove
	again := missing && len(left) < len(j.Tags)
	outcome.Final = outcome.Final && !missing
	for i := range s.Tags {
		t := &s.Tags[i]
		if again || outcome.OK || !slices.Contains(left, Ref{t.Raw, t.Generation}) {
			continue
		}
		*t = t.failed(j, outcome, sight.Now)
	}
}

// failed returns the tag after a job for it failed.
func (t Tag) failed(j Job, outcome Outcome, now job.Time) Tag {
	t = t.with(Event{Time: now, What: WasRefused, Job: j.ID, Text: outcome.Text})
	if outcome.Final && len(j.Tags) > 1 {
		t.Alone = true // which of them is bad is not known
		return t
	}
	t.Tries++
	t.Failure = &Failure{Job: j.ID, Text: outcome.Text, Time: now, Final: outcome.Final}
	t.Retry = now + job.Time(pauses().After(t.Tries).Microseconds())
	return t
}

// pauses are those after jobs that failed.
func pauses() backoff.Pauses { return backoff.Pauses{First: time.Second, Longest: 5 * time.Minute} }

// adopt takes over the tags that somebody else wrote on the cluster with one
// of our prefixes.
func (s *Set) adopt(p *Policy, sight Sight) {
	for _, raw := range sight.Tags {
		ns, name, origin := p.Prefixes.Parse(raw)
		if origin != Ours || s.Find(ns, name) != nil || s.Changing(raw) != nil {
			continue
		}
		s.Generation++
		t := Tag{Namespace: ns, Name: name, Raw: raw, Wanted: true, Seen: Present, Generation: s.Generation,
			Asked: Asked{User: "cluster", Front: "cluster", Time: sight.Now}}
		s.put(t.with(Event{Time: sight.Now, What: WasAdopted, Text: "found on the cluster"}))
	}
}

// Step is a job to be submitted.
type Step struct {
	Action Action
	Tags   []*Tag
	// Why says it for a person.
	Why string
}

// Plan is what to do next about a server.
type Plan struct {
	// Steps are at most one of each action.
	Steps []Step
	// Wake is when something is to be tried again; zero for never.
	Wake job.Time
}

// Next decides what to do. The set must be settled by the same sight.
func (s *Set) Next(sight Sight) Plan {
	var plan Plan
	if !sight.Instance {
		return plan
	}
	for _, a := range []Action{Add, Remove} {
		if s.UnderWay(a) != nil {
			continue
		}
		due := s.due(a, sight.Now, &plan.Wake)
		if len(due) == 0 {
			continue
		}
		plan.Steps = append(plan.Steps, Step{Action: a, Tags: due, Why: why(a, len(due))})
	}
	return plan
}

func why(a Action, n int) string {
	tags := "1 tag"
	if n != 1 {
		tags = strconv.Itoa(n) + " tags"
	}
	if a == Add {
		return "the cluster lacks " + tags + " that the server is to have"
	}
	return "the cluster has " + tags + " that the server is no longer to have"
}

// due returns the tags that an action is due for; wake becomes when the next
// one will be. Those to be tried by themselves come one at a time, after the others.
func (s *Set) due(a Action, now job.Time, wake *job.Time) []*Tag {
	var due, alone []*Tag
	for i := range s.Tags {
		t := &s.Tags[i]
		switch {
		case t.Wanted != (a == Add) || !t.Pending() || s.Changing(t.Raw) != nil:
		case t.Failure != nil && t.Failure.Final:
		case t.Retry > now:
			*wake = sooner(*wake, t.Retry)
		case t.Alone:
			alone = append(alone, t)
		default:
			due = append(due, t)
		}
	}
	if len(due) == 0 && len(alone) > 0 {
		return alone[:1]
	}
	return fitting(due)
}

// maxLine is how long the tags of one job may be together, as they are written in the line of a request: a stock Ganeti reads 8 KiB of it, and
// answers nothing to a longer one.
const maxLine = 6 << 10

// fitting are the first of some tags that fit into one job, one at least; the others come behind it.
func fitting(due []*Tag) []*Tag {
	size := 0
	for i, t := range due {
		if size += len("&tag=") + len(url.QueryEscape(t.Raw)); size > maxLine && i > 0 {
			return due[:i]
		}
	}
	return due
}

// Turn begins all that is to be done next about a server: tags to add and to remove, and an effect. Wake is when something is to be
// tried again; zero for never.
func (s Set) Turn(p *Policy, sight Sight) (next Set, wake job.Time) {
	plan := s.Next(sight)
	for _, step := range plan.Steps {
		s = s.Begin(step, sight.Now)
	}
	effect, again := s.NextEffect(p, sight)
	if effect != nil {
		s = s.BeginEffect(effect)
	}
	return s, sooner(plan.Wake, again)
}

// sooner is the first of two times, of which zero is never.
func sooner(a, b job.Time) job.Time {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

// Begin records that a job for the step is about to be submitted. Once this is
// durable the job counts as under way, whether or not the cluster ever hears of it:
// after a crash it is submitted again under its serial number, which the cluster
// takes for one job.
func (s Set) Begin(step Step, now job.Time) Set {
	next := s.clone()
	next.Serial++
	j := Job{Serial: next.Serial, Action: step.Action, Time: now}
	for _, t := range step.Tags {
		j.Tags = append(j.Tags, Ref{t.Raw, t.Generation})
	}
	next.Jobs = append(next.Jobs, j)
	return next
}

// Submitted records the id that a job got.
func (s Set) Submitted(serial int64, id job.ID, now job.Time) Set {
	next := s.clone()
	for i := range next.Jobs {
		j := &next.Jobs[i]
		if j.Serial != serial {
			continue
		}
		j.ID = id
		for k := range next.Tags {
			if t := &next.Tags[k]; j.has(t.Raw) {
				*t = t.with(Event{Time: now, What: WasSubmitted, Job: id, Text: string(j.Action)})
			}
		}
	}
	return next
}

// Refused records that the cluster does not take a job that was about to be
// submitted.
func (s Set) Refused(serial int64, text string, now job.Time) Set {
	next := s.clone()
	next.Jobs = slices.DeleteFunc(next.Jobs, func(j Job) bool {
		if j.Serial != serial {
			return false
		}
		for i := range next.Tags {
			if t := &next.Tags[i]; slices.Contains(j.Tags, Ref{t.Raw, t.Generation}) {
				*t = t.failed(j, Outcome{Text: text, Final: true}, now)
			}
		}
		return true
	})
	return next
}

// Unsubmitted returns the jobs that have no id yet.
func (s *Set) Unsubmitted() []Job {
	return slices.DeleteFunc(slices.Clone(s.Jobs), func(j Job) bool { return j.ID != 0 })
}
