package jobfilter

import (
	"fmt"
	"iter"
	"maps"
	"math"
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
	// New tells what would become of jobs to come, by what the recorded ones do:
	// of those of Kinds kinds that it concerns. EveryNew is what a rule does to
	// every job to come that no rule before it decides on, whatever it does;
	// NoEffect if it depends on the job.
	New      []NewForecast `json:"new"`
	Kinds    int           `json:"kinds"`
	EveryNew Effect        `json:"every_new"`
	// Jobs are the unfinished jobs that the rule would decide on, or that a
	// rule replaced by it decides on now. Unaffected counts the others.
	Jobs       []JobForecast `json:"jobs"`
	Unaffected int           `json:"unaffected"`
	// Past is about jobs that have ended.
	Past PastForecast `json:"past"`
	// Changes tells of each rule, where several are changed at once. Rule, Place,
	// Replaces, Removes and Past are then those of the first.
	Changes []ChangeForecast `json:"changes,omitempty"`
	// Headline sums it up in one line.
	Headline string `json:"headline"`
}

// ChangeForecast is what a forecast says of one rule among several.
type ChangeForecast struct {
	Rule     *Rule        `json:"rule"`
	Place    int          `json:"place"`
	Replaces bool         `json:"replaces"`
	Removes  bool         `json:"removes,omitempty"`
	Past     PastForecast `json:"past"`
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
	// Effect is what becomes of it; WouldRelease if nothing keeps it.
	Effect Effect `json:"effect"`
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
	f := &Forecast{
		Of: len(after.rules), Warnings: append([]Warning{}, p.Edited.Warnings...), Digest: Digest(p.Rules),
		Jobs: append([]JobForecast{}, p.Effects...), Unaffected: p.Unaffected, EveryNew: p.everyNew(),
	}
	f.New, f.Kinds = p.toCome(before, after)
	changes, err := p.changes(after)
	if err != nil {
		return nil, err
	}
	first := changes[0]
	f.Rule, f.Place, f.Replaces, f.Removes, f.Past = first.Rule, first.Place, first.Replaces, first.Removes, first.Past
	if len(changes) > 1 {
		f.Changes = changes
	}
	f.Headline = f.headline()
	return f, nil
}

// changes tells of each edit.
func (p *Prospect) changes(after *Chain) ([]ChangeForecast, error) {
	past, err := p.rehearsal()
	if err != nil {
		return nil, err
	}
	out := make([]ChangeForecast, len(p.Edited.Changed))
	for i, c := range p.Edited.Changed {
		out[i] = ChangeForecast{Rule: c.After, Replaces: c.Before != nil && c.After != nil, Removes: c.After == nil}
		if c.After == nil {
			out[i].Rule = c.Before
			continue
		}
		for n, r := range after.Rules() {
			if r.UUID == c.UUID() {
				out[i].Rule, out[i].Place = r, n+1
			}
		}
		if past != nil {
			out[i].Past = foretell(past, *out[i].Rule, p.Past)
		}
	}
	return out, nil
}

// rehearsal is the chain that jobs of the past are tried on: the rules after the
// edits, those that are new with a watermark before the first of these jobs. It
// is nil if there are none.
func (p *Prospect) rehearsal() (*Chain, error) {
	if p.Past == nil {
		return nil, nil
	}
	watermark := lowest(p.Past) - 1
	rules := values(p.Edited.Rules)
	for i := range rules {
		if slices.ContainsFunc(p.Edited.Changed, func(c Changed) bool { return c.After != nil && c.After.UUID == rules[i].UUID }) {
			rules[i].Watermark = watermark
		}
	}
	return Compile(rules)
}

// everyNew is what the only rule of the edits does to whatever comes.
func (p *Prospect) everyNew() Effect {
	r := p.Edited.Changed[0].After
	if r == nil || len(p.Edited.Changed) > 1 || !r.Deciding() {
		return NoEffect
	}
	for i := range r.Predicates {
		asked := &r.Predicates[i]
		holds := asked.compile(r.Watermark, nil)
		if !asked.ofJobID() || !holds(p.Next, nil) || !holds(math.MaxInt64, nil) {
			return NoEffect
		}
	}
	return effectOf(r.Action.Kind)
}

// effectOf is what an action does to a job that comes.
func effectOf(k Kind) Effect {
	switch k {
	case Reject:
		return WouldCancel
	case Pause:
		return WouldHold
	case RateLimit:
		return WouldLimit
	default:
		return WouldRelease
	}
}

func values(rules []*Rule) []Rule {
	out := make([]Rule, len(rules))
	for i, r := range rules {
		out[i] = *r
	}
	return out
}

// toCome asks both sets of rules about jobs as they were seen before, and counts
// their kinds.
func (p *Prospect) toCome(before, after *Chain) (out []NewForecast, kinds int) {
	out = []NewForecast{}
	if p.Recorded == nil {
		return out, 0
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
			out = append(out, NewForecast{Opcode: id, Like: j.ID, Before: was.String(), After: is.String(), Effect: effectOf(is.Action().Kind)})
		}
	}
	return out, len(newest)
}

func uuidOf(d Decision) string {
	if d.Rule == nil {
		return ""
	}
	return d.Rule.UUID
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
	if text := f.toCome(); text != "" {
		s += "; " + text
	}
	if f.Past.Jobs > 0 && f.Changes == nil {
		s += "; " + f.Past.headline(f.Rule.Action)
	}
	return s
}

// happens words what becomes of jobs to come.
var happens = map[Effect]string{
	WouldCancel: "refused", WouldHold: "held", WouldLimit: "limited", WouldRelease: "accepted",
}

// toCome sums up what becomes of jobs to come; empty if nothing is known of them.
func (f *Forecast) toCome() string {
	if f.EveryNew != NoEffect {
		text := "every job to come would be " + happens[f.EveryNew]
		if f.Place > 1 {
			text += ", unless a rule before it decides"
		}
		return text
	}
	if len(f.New) == 0 {
		return ""
	}
	var parts []string
	for _, e := range []Effect{WouldCancel, WouldHold, WouldLimit, WouldRelease} {
		n := 0
		for i := range f.New {
			if f.New[i].Effect == e {
				n++
			}
		}
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d would be %s", n, happens[e]))
		}
	}
	kinds := fmt.Sprintf("%d kinds", f.Kinds)
	if f.Kinds == 1 {
		kinds = "1 kind"
	}
	return fmt.Sprintf("of %s of jobs seen so far, those to come of %s", kinds, strings.Join(parts, ", of "))
}

// Gravest is the effect that matters most, on jobs in the queue and to come:
// cancellation and refusal before all others.
func (f *Forecast) Gravest() Effect {
	gravest := func(e Effect) bool {
		return f.Count(e) > 0 || f.EveryNew == e && e != WouldRelease || slices.ContainsFunc(f.New, func(n NewForecast) bool { return n.Effect == e })
	}
	for _, e := range []Effect{WouldCancel, WouldHold, WouldLimit, WouldRelease} {
		if gravest(e) {
			return e
		}
	}
	return NoEffect
}

func jobs(n int) string {
	if n == 1 {
		return "1 job"
	}
	return fmt.Sprintf("%d jobs", n)
}
