package jobfilter

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/drover-project/drover/internal/job"
)

// Effect is what a new rule would do to a job.
type Effect string

// The effects.
const (
	// NoEffect: nothing changes for the job.
	NoEffect Effect = "none"
	// WouldCancel: the job, or what is left of it, is cancelled.
	WouldCancel Effect = "cancel"
	// WouldHold: the job, or what is left of it, does not go on.
	WouldHold Effect = "hold"
	// WouldRelease: the job may go on; another rule kept it from that.
	WouldRelease Effect = "release"
	// WouldLimit: the job takes or waits for one of the rule's places.
	WouldLimit Effect = "limit"
)

// Forecast tells what a rule would do, without adding it.
type Forecast struct {
	Rule *Rule `json:"rule"`
	// Place is where in the order the rule would be asked, from 1, among Of.
	Place int `json:"place"`
	Of    int `json:"of"`
	// Replaces is set if there is a rule with the same UUID now.
	Replaces bool      `json:"replaces"`
	Warnings []Warning `json:"warnings"`
	// Jobs are the unfinished jobs that the rule would decide on, or that a
	// rule replaced by it decides on now. Unaffected counts the others.
	Jobs       []JobForecast `json:"jobs"`
	Unaffected int           `json:"unaffected"`
	// Past is about jobs that have ended.
	Past PastForecast `json:"past"`
	// Headline sums it up in one line.
	Headline string `json:"headline"`
}

// JobForecast is the effect on one job that has not ended.
type JobForecast struct {
	ID      job.ID     `json:"id"`
	Status  job.Status `json:"status"`
	Summary []string   `json:"summary"`
	// Before and After are the decisions without and with the rule.
	Before string `json:"before"`
	After  string `json:"after"`
	Effect Effect `json:"effect"`
	// Text says what would happen to this very job.
	Text string `json:"text"`
}

// String tells the effect in one line.
func (f JobForecast) String() string {
	return fmt.Sprintf("job %d (%s, %s): %s", f.ID, f.Status, strings.Join(f.Summary, ", "), f.Text)
}

// Preview tries a rule on jobs. Of the candidate the watermark must be set as
// it would be on adding. Live are the jobs that have not ended, past the ones
// that have; either may be nil.
//
// For jobs of the past the candidate's watermark is taken to lie just before
// the first of them, as if the rule had been there all the time.
func Preview(rules []Rule, candidate Rule, live, past iter.Seq[*job.Job]) (*Forecast, error) {
	t, err := newTrial(rules, candidate)
	if err != nil {
		return nil, err
	}
	f := &Forecast{Warnings: Check(&candidate), Replaces: t.replaces, Jobs: []JobForecast{}}
	for i, r := range t.after.Rules() {
		if r.UUID == candidate.UUID {
			f.Rule, f.Place = r, i+1
		}
	}
	f.Of = len(t.after.rules)
	if live != nil {
		t.forecast(f, live)
	}
	if past != nil {
		if f.Past, err = foretell(rules, candidate, past); err != nil {
			return nil, err
		}
	}
	f.Headline = f.headline()
	return f, nil
}

// trial holds the chains without and with a candidate.
type trial struct {
	before, after *Chain
	uuid          string
	replaces      bool
}

func newTrial(rules []Rule, candidate Rule) (*trial, error) {
	others := slices.DeleteFunc(slices.Clone(rules), func(r Rule) bool { return r.UUID == candidate.UUID })
	before, err := Compile(rules)
	if err != nil {
		return nil, err
	}
	after, err := Compile(append(others, candidate))
	if err != nil {
		return nil, err
	}
	return &trial{before: before, after: after, uuid: candidate.UUID, replaces: len(others) < len(rules)}, nil
}

// decide returns both decisions, and whether the candidate has to do with
// either.
func (t *trial) decide(j *job.Job) (before, after Decision, affected bool) {
	id, ops := int64(j.ID), j.Inputs()
	before, after = t.before.Decide(id, ops), t.after.Decide(id, ops)
	return before, after, t.is(before) || t.is(after)
}

func (t *trial) is(d Decision) bool { return d.Rule != nil && d.Rule.UUID == t.uuid }

func (t *trial) forecast(f *Forecast, live iter.Seq[*job.Job]) {
	var limited []*job.Job
	for j := range live {
		before, after, affected := t.decide(j)
		if !affected {
			f.Unaffected++
			continue
		}
		effect, text := effectOn(j, before.Action(), after.Action())
		f.Jobs = append(f.Jobs, JobForecast{
			ID: j.ID, Status: j.Status(), Summary: j.Summary(),
			Before: before.String(), After: after.String(), Effect: effect, Text: text,
		})
		if effect == WouldLimit {
			limited = append(limited, j)
		}
	}
	slices.SortFunc(f.Jobs, func(a, b JobForecast) int { return cmp.Compare(a.ID, b.ID) })
	f.seat(limited)
}

// effectOn says what the change from one action to another means for a job.
func effectOn(j *job.Job, before, after Action) (Effect, string) {
	switch {
	case before == after && (after.Kind == Pause || after.Kind == Reject):
		return NoEffect, "nothing changes: " + after.String() + " as before"
	case after.Kind == Reject:
		return stop(j, WouldCancel, "cancelled")
	case after.Kind == Pause:
		return stop(j, WouldHold, "held")
	case after.Kind == RateLimit:
		return WouldLimit, "" // seat says more, when all of them are known
	case before.Kind == Pause:
		return WouldRelease, "may go on; it is held now"
	case before.Kind == RateLimit:
		return WouldRelease, "may run without a place; it shares a rate limit now"
	}
	return NoEffect, "nothing changes: it may run as before"
}

// stop words the end or the holding of a job, which depend on what the job
// does at the moment: an opcode that runs is never interrupted.
func stop(j *job.Job, effect Effect, word string) (Effect, string) {
	next := j.Next()
	behind := len(j.Ops) - 1 - next
	switch {
	case next < len(j.Ops) && j.Ops[next].Status == job.Running && behind == 0:
		return NoEffect, "nothing changes: its last opcode runs already and completes"
	case next < len(j.Ops) && j.Ops[next].Status == job.Running:
		return effect, fmt.Sprintf("opcode %d completes, the %d behind it are %s", next, behind, word)
	case next < len(j.Ops) && j.Ops[next].Status == job.Waiting:
		return effect, "gives up its wait for locks and is " + word
	}
	return effect, "is " + word
}

// seat says which of the jobs would have a place of the rate limit, in the
// order in which jobs are served.
func (f *Forecast) seat(limited []*job.Job) {
	limit := f.Rule.Action.Limit
	inFlight := 0
	var waiting []*job.Job
	texts := map[job.ID]string{}
	for _, j := range limited {
		if j.Busy() {
			inFlight++
			texts[j.ID] = "goes on, and has one of the places"
		} else {
			waiting = append(waiting, j)
		}
	}
	slices.SortFunc(waiting, func(a, b *job.Job) int {
		return cmp.Or(cmp.Compare(a.Priority(), b.Priority()), cmp.Compare(a.ID, b.ID))
	})
	for i, j := range waiting {
		if free := limit - inFlight; i < free {
			texts[j.ID] = fmt.Sprintf("may start: it gets place %d of %d", inFlight+i+1, limit)
		} else {
			texts[j.ID] = fmt.Sprintf("waits for one of the %d places, as number %d in line", limit, i+1-max(free, 0))
		}
	}
	for i := range f.Jobs {
		if text, ok := texts[f.Jobs[i].ID]; ok {
			f.Jobs[i].Text = text
		}
	}
}

// Count returns how many jobs have the effect.
func (f *Forecast) Count(e Effect) int {
	n := 0
	for i := range f.Jobs {
		if f.Jobs[i].Effect == e {
			n++
		}
	}
	return n
}

func (f *Forecast) headline() string {
	var parts []string
	for _, e := range []Effect{WouldCancel, WouldHold, WouldLimit, WouldRelease} {
		if n := f.Count(e); n > 0 {
			parts = append(parts, fmt.Sprintf("%s %d", e, n))
		}
	}
	what := "change nothing"
	if len(parts) > 0 {
		what = strings.Join(parts, ", ")
	}
	s := fmt.Sprintf("of %s in the queue it would %s", jobs(len(f.Jobs)+f.Unaffected), what)
	if f.Past.Jobs > 0 {
		s += "; " + f.Past.headline(f.Rule.Action)
	}
	return s
}

func jobs(n int) string {
	if n == 1 {
		return "1 job"
	}
	return fmt.Sprintf("%d jobs", n)
}
