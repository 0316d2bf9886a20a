package jobfilter

import (
	"fmt"
	"iter"
	"maps"
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
	// Replaces is set if there is a rule with the same UUID now, Removes if it
	// would be taken away: then Rule is the rule as it is, and has no place.
	Replaces bool      `json:"replaces"`
	Removes  bool      `json:"removes,omitempty"`
	Warnings []Warning `json:"warnings"`
	// Digest is that of the rules now: a change can demand that they are still so
	// (CheckDigest).
	Digest string `json:"digest"`
	// New tells what would become of jobs to come, by what the recorded ones do.
	New []NewForecast `json:"new"`
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

// NewForecast tells what would become of a job to come.
type NewForecast struct {
	// Opcode is what it does first, Like a recorded job that was taken for it.
	Opcode string `json:"opcode"`
	Like   job.ID `json:"like"`
	// Before and After are the decisions on it without and with the change.
	Before string `json:"before"`
	After  string `json:"after"`
}

// String tells the forecast in one line.
func (f NewForecast) String() string {
	return fmt.Sprintf("a new job as %d (%s): %s; now %s", f.Like, f.Opcode, f.After, f.Before)
}

// Prospect is a set of edits with what is known about their effects.
type Prospect struct {
	// Rules are those in force, Edited what the edits make of them.
	Rules  []*Rule
	Edited *Edited
	// Effects are those on jobs that have not ended, as the queue's machine
	// foretells them; Unaffected is how many others there are.
	Effects    []JobForecast
	Unaffected int
	// Past are jobs that have ended; nil for none. For them the watermark of a new
	// rule is taken to lie just before the first, as if it had been there all the
	// time.
	Past iter.Seq[*job.Job]
	// Recorded are jobs of which the newest of each kind stands for jobs to come,
	// with the number Next.
	Recorded iter.Seq[*job.Job]
	Next     int64
}

// Forecast sums it up. Its rule is that of the first edit.
func (p *Prospect) Forecast() (*Forecast, error) {
	before, err := Compile(values(p.Rules))
	if err != nil {
		return nil, err
	}
	after, err := Compile(values(p.Edited.Rules))
	if err != nil {
		return nil, err
	}
	first := p.Edited.Changed[0]
	f := &Forecast{
		Rule: first.After, Replaces: first.Before != nil && first.After != nil, Removes: first.After == nil,
		Of: len(after.rules), Warnings: append([]Warning{}, p.Edited.Warnings...), Digest: Digest(p.Rules),
		Jobs: append([]JobForecast{}, p.Effects...), Unaffected: p.Unaffected, New: p.toCome(before, after),
	}
	if f.Removes {
		f.Rule = first.Before
	}
	for i, r := range after.Rules() {
		if r.UUID == first.UUID() {
			f.Rule, f.Place = r, i+1
		}
	}
	if p.Past != nil && len(p.Edited.Changed) == 1 && !f.Removes {
		if f.Past, err = foretell(values(p.Rules), *f.Rule, p.Past); err != nil {
			return nil, err
		}
	}
	f.Headline = f.headline()
	return f, nil
}

func values(rules []*Rule) []Rule {
	out := make([]Rule, len(rules))
	for i, r := range rules {
		out[i] = *r
	}
	return out
}

// toCome asks both sets of rules about jobs as they were seen before.
func (p *Prospect) toCome(before, after *Chain) []NewForecast {
	out := []NewForecast{}
	if p.Recorded == nil {
		return out
	}
	newest := map[string]*job.Job{}
	for j := range p.Recorded {
		if len(j.Ops) > 0 {
			newest[j.Ops[0].Input.ID] = j
		}
	}
	for _, id := range slices.Sorted(maps.Keys(newest)) {
		j := newest[id]
		was, is := before.Decide(p.Next, j.Inputs()), after.Decide(p.Next, j.Inputs())
		if was.Action() != is.Action() || uuidOf(was) != uuidOf(is) {
			out = append(out, NewForecast{Opcode: id, Like: j.ID, Before: was.String(), After: is.String()})
		}
	}
	return out
}

func uuidOf(d Decision) string {
	if d.Rule == nil {
		return ""
	}
	return d.Rule.UUID
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
	if n := len(f.New); n > 0 {
		s += fmt.Sprintf("; of jobs to come it concerns those as %d of the recorded kinds", n)
	}
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
