package cli

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/drover-project/drover/internal/cli/listing"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/jobfilter"
	"github.com/drover-project/drover/internal/lock"
	"github.com/drover-project/drover/internal/queue/machine"
	"github.com/drover-project/drover/internal/schedule"
)

// paint puts a colour around a text, when a person watches.
func (sh *shell) paint(colour, text string) string {
	if !sh.colour || colour == "" {
		return text
	}
	return "\x1b[" + colour + "m" + text + "\x1b[0m"
}

// The colours, by their numbers in terminals.
const (
	bold   = "1"
	dim    = "2"
	red    = "31"
	green  = "32"
	yellow = "33"
)

// stepColours show at a glance how a job stands.
var stepColours = map[schedule.Step]string{
	schedule.Run: green, schedule.InFlight: green, schedule.Ended: bold, schedule.Cancel: red, schedule.Fail: red,
	schedule.Hold: yellow, schedule.WaitDependency: yellow, schedule.WaitBucket: yellow, schedule.WaitSlot: yellow,
}

// outcomeColours do so for rules.
var outcomeColours = map[jobfilter.Outcome]string{
	jobfilter.Decides: bold, jobfilter.DoesNotApply: dim, jobfilter.NotReached: dim,
}

// printExplanation writes an explanation for people.
func (sh *shell) printExplanation(text json.RawMessage) error {
	var x machine.Explanation
	if err := json.Unmarshal(text, &x); err != nil {
		return err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s\n", sh.paint(bold, fmt.Sprintf("Job %d", x.Job)), strings.Join(x.Summary, ", "))
	why := fmt.Sprintf("%s: %s", x.Status, x.Why)
	if x.Step == schedule.Ended { // says how
		why = x.Why
	}
	fmt.Fprintf(&b, "%s\n", sh.paint(stepColours[x.Step], why))
	if x.Held != nil {
		fmt.Fprintf(&b, "held since %s, for %s\n", moment(x.Held.Since), sh.since(x.Held.Since))
	}
	if e := x.Expected; e != nil {
		fmt.Fprintf(&b, "likely to go on: %s\n", sh.expected(e))
	}
	if x.Step != schedule.Ended {
		fmt.Fprintf(&b, "received %s, %s ago; priority %d\n", moment(x.Received), sh.since(x.Received), x.Slots.Priority)
	}
	if x.Reason != "" {
		fmt.Fprintf(&b, "reason: %s\n", x.Reason)
	}
	sh.explainTimeline(&b, x.Timeline)
	sh.explainRules(&b, x.Rules, x.Step == schedule.Ended)
	if x.Step != schedule.Ended {
		sh.explainDependencies(&b, x.Dependencies)
		sh.explainLimits(&b, x.Buckets, x.Slots)
		sh.explainLocks(&b, x.Locks)
	}
	if len(x.Change) > 0 {
		fmt.Fprintf(&b, "\n%s\n", sh.paint(bold, "For it to go on"))
		for _, r := range x.Change {
			fmt.Fprintf(&b, "  %s\n", r.Text)
		}
	}
	return sh.printf("%s", listing.Fold(b.String(), sh.width))
}

// explainRules shows the chain of rules in the order in which they are asked.
// For a job that has ended it is the chain as it is now.
func (sh *shell) explainRules(b *strings.Builder, verdicts []jobfilter.Verdict, ended bool) {
	if len(verdicts) == 0 {
		fmt.Fprintf(b, "\n%s\n  there are none\n", sh.paint(bold, "Filter rules"))
		return
	}
	note := "in the order in which they are asked"
	if ended {
		note = "as they are now and would decide on such a job"
	}
	fmt.Fprintf(b, "\n%s, %s\n", sh.paint(bold, "Filter rules"), note)
	t := &table{}
	for i, v := range verdicts {
		outcome := string(v.Outcome)
		if v.Outcome == jobfilter.NotReached && v.Would == jobfilter.Decides {
			outcome += "; else it would decide"
		}
		t.add("", strconv.Itoa(i+1)+".", "priority "+strconv.Itoa(v.Rule.Priority), v.Rule.Short(), v.Rule.Action.String(), outcome)
	}
	for i, line := range strings.Split(strings.TrimSuffix(t.String(), "\n"), "\n") {
		v := verdicts[i]
		fmt.Fprintf(b, "%s\n", sh.paint(outcomeColours[v.Outcome], line))
		for _, line := range because(v) {
			fmt.Fprintf(b, "      %s\n", sh.paint(outcomeColours[v.Outcome], line))
		}
	}
}

// because lists the parts of a rule that settled its outcome, and for the rule
// that decides who added it.
func because(v jobfilter.Verdict) []string {
	if v.Outcome == jobfilter.NotReached {
		return nil
	}
	var lines []string
	for _, f := range v.Findings {
		holds := map[bool]string{true: "holds", false: "does not hold"}[f.Holds]
		lines = append(lines, fmt.Sprintf("%s: %s", holds, f.Text))
		for _, e := range f.Evidence {
			lines = append(lines, "  "+e.String())
		}
	}
	if len(v.Findings) == 0 || len(v.Findings[0].Evidence) == 0 {
		lines = append(lines, v.Because)
	}
	if v.Outcome != jobfilter.Decides {
		return lines
	}
	for _, e := range v.Rule.Reason {
		if e.Reason != "" {
			lines = append(lines, fmt.Sprintf("added %s by %s: %q", time.Unix(0, e.Time).Format(time.DateTime), e.Source, e.Reason))
		}
	}
	return lines
}

func (sh *shell) explainDependencies(b *strings.Builder, deps []machine.Dependency) {
	if len(deps) == 0 {
		return
	}
	fmt.Fprintf(b, "\n%s\n", sh.paint(bold, "Dependencies"))
	t := &table{}
	for _, d := range deps {
		met := "not met"
		if d.Met {
			met = "met"
		}
		wanted := "any end but canceled"
		if len(d.Statuses) > 0 {
			wanted = strings.Join(d.Statuses, " or ")
		}
		t.add(" ", fmt.Sprintf("job %d", d.Job), "has to end as "+wanted+":", met+",", d.Why)
	}
	b.WriteString(t.String())
}

func (sh *shell) explainLimits(b *strings.Builder, buckets []machine.BucketPlace, s machine.Slots) {
	fmt.Fprintf(b, "\n%s\n", sh.paint(bold, "Limits"))
	for _, p := range buckets {
		fmt.Fprintf(b, "  %s: %d of %d in flight", p.Name, len(p.InFlight), p.Limit)
		if len(p.InFlight) > 0 {
			fmt.Fprintf(b, " (jobs %s)", joinIDs(p.InFlight))
		}
		switch {
		case p.Inside:
			b.WriteString("; this job is one of them")
		case p.Place > 0:
			fmt.Fprintf(b, "; this job is number %d in the line", p.Place)
		}
		b.WriteByte('\n')
	}
	fmt.Fprintf(b, "  slots: %d of %d jobs run", s.Running, s.Max)
	if s.Has {
		b.WriteString(", this one among them")
	}
	fmt.Fprintf(b, "; priority %d", s.Priority)
	if !s.Has && s.Ahead > 0 {
		fmt.Fprintf(b, "; %d jobs are served before it", s.Ahead)
	}
	b.WriteByte('\n')
}

func (sh *shell) explainLocks(b *strings.Builder, l machine.Locks) {
	if len(l.Needs) == 0 && len(l.Held) == 0 {
		fmt.Fprintf(b, "\n%s\n  it needs none\n", sh.paint(bold, "Locks"))
		return
	}
	fmt.Fprintf(b, "\n%s\n", sh.paint(bold, "Locks"))
	held := map[string]bool{}
	for _, h := range l.Held {
		held[h.Name] = true
	}
	needs := l.Needs
	if len(needs) == 0 {
		needs = l.Held
	}
	t := &table{}
	for _, n := range needs {
		state := "not asked for yet"
		switch {
		case held[n.Name]:
			state = "held"
		case l.Waits != nil && l.Waits.Name == n.Name:
			state = "waits; " + inTheWay(l.Waits)
		case l.Waits != nil:
			state = "comes after the one it waits for"
		}
		t.add(" ", n.Name, n.Mode, state)
	}
	b.WriteString(t.String())
}

func inTheWay(w *machine.LockWait) string {
	text := "held by " + owners(w.Holders)
	if len(w.Ahead) > 0 {
		text += ", wanted before by " + owners(w.Ahead)
	}
	return text
}

func owners(list []lock.Owner) string {
	parts := make([]string, len(list))
	for i, o := range list {
		parts[i] = fmt.Sprintf("job %d", o)
	}
	if len(parts) == 0 {
		return "nobody"
	}
	return strings.Join(parts, ", ")
}

// effectColours show what a rule would do to a job.
var effectColours = map[jobfilter.Effect]string{
	jobfilter.WouldCancel: red, jobfilter.WouldHold: yellow, jobfilter.WouldLimit: yellow, jobfilter.WouldRelease: green,
}

// pastForecast tells what the rule would have done to jobs that have ended.
func (sh *shell) pastForecast(b *strings.Builder, title string, p jobfilter.PastForecast) {
	if p.Jobs == 0 {
		return
	}
	fmt.Fprintf(b, "\n%s: %s from %s to %s\n", sh.paint(bold, title), counted(p.Jobs, "job"), moment(p.From), moment(p.To))
	if len(p.Affected) == 0 {
		b.WriteString("  it would have concerned none of them\n")
		return
	}
	fmt.Fprintf(b, "  it would have concerned %d of them, at most %d at once (%s)\n", len(p.Affected), p.Peak, moment(p.PeakAt))
	if p.Delayed > 0 {
		fmt.Fprintf(b, "  %d would have waited, %s in all and up to %s\n", p.Delayed, span(p.TotalDelay), span(p.MaxDelay))
	}
	t := &table{}
	for i, j := range p.Affected {
		if i == shownJobs {
			break
		}
		delay := ""
		if j.Delay > 0 {
			delay = "would have waited " + span(j.Delay)
		}
		t.add(" ", j.ID.String(), string(j.Status), strings.Join(j.Summary, ","), delay)
	}
	b.WriteString(t.String())
	andMore(b, len(p.Affected))
}

// shownJobs is how many jobs are listed one by one.
const shownJobs = 20

// andMore tells about those that are not.
func andMore(b *strings.Builder, all int) {
	if all > shownJobs {
		fmt.Fprintf(b, "  ... and %d more; --output json shows all\n", all-shownJobs)
	}
}

func moment(t job.Time) string { return time.UnixMicro(int64(t)).Format(time.DateTime) }

// since is how long ago a moment was.
func (sh *shell) since(t job.Time) string {
	return span(sh.now().Sub(time.UnixMicro(int64(t))).Seconds())
}

// expected says when something is expected, and upon what that rests.
func (sh *shell) expected(e *machine.Expectation) string {
	if e.At == 0 {
		return e.Text
	}
	if in := time.UnixMicro(int64(e.At)).Sub(sh.now()).Round(time.Second); in > 0 {
		return fmt.Sprintf("in about %s (%s), %s", in, moment(e.At), e.Text)
	}
	return "at any moment, " + e.Text
}

func span(seconds float64) string {
	return time.Duration(seconds * float64(time.Second)).Round(time.Millisecond).String()
}
