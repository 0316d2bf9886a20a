package jobfilter

import (
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

// Preview sums up what a rule would do. Of the candidate the watermark must be
// set as it would be on adding; effects are those on jobs that have not ended,
// as the queue's machine foretells them, unaffected is how many others there
// are. Past are the jobs that have ended; nil for none.
//
// For jobs of the past the candidate's watermark is taken to lie just before
// the first of them, as if the rule had been there all the time.
func Preview(rules []Rule, candidate Rule, effects []JobForecast, unaffected int, past iter.Seq[*job.Job]) (*Forecast, error) {
	chain, err := with(rules, candidate)
	if err != nil {
		return nil, err
	}
	f := &Forecast{Warnings: Check(&candidate), Replaces: len(chain.rules) == len(rules), Jobs: append([]JobForecast{}, effects...), Unaffected: unaffected}
	for i, r := range chain.Rules() {
		if r.UUID == candidate.UUID {
			f.Rule, f.Place = r, i+1
		}
	}
	f.Of = len(chain.rules)
	if past != nil {
		if f.Past, err = foretell(rules, candidate, past); err != nil {
			return nil, err
		}
	}
	f.Headline = f.headline()
	return f, nil
}

// with compiles rules with a candidate among them, in place of one with its UUID.
func with(rules []Rule, candidate Rule) (*Chain, error) {
	others := slices.DeleteFunc(slices.Clone(rules), func(r Rule) bool { return r.UUID == candidate.UUID })
	return Compile(append(others, candidate))
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
