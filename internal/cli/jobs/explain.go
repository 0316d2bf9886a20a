package jobs

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/drover-project/drover/internal/cli/listing"
	"github.com/drover-project/drover/internal/cli/shell"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/jobfilter"
	"github.com/drover-project/drover/internal/lock"
	"github.com/drover-project/drover/internal/queue/machine"
	"github.com/drover-project/drover/internal/schedule"
)

// standColours show at a glance how a job stands.
var standColours = map[schedule.Stand]string{schedule.Goes: shell.Green, schedule.Over: shell.Bold, schedule.Ends: shell.Red, schedule.Waits: shell.Yellow}

// outcomeColours do so for rules.
var outcomeColours = map[jobfilter.Outcome]string{
	jobfilter.Decides: shell.Bold, jobfilter.DoesNotApply: shell.Dim, jobfilter.NotReached: shell.Dim,
}

// explanationTimes are the keys of times in an explanation.
var explanationTimes = []string{"received", "since", "at", "from", "to", "changed"}

// explainJob asks for the explanation of a job and shows it.
func explainJob(ctx context.Context, sh *shell.Shell, id job.ID) error {
	var text json.RawMessage
	if err := sh.Ask(ctx, "ExplainJob", &text, id); err != nil {
		return err
	}
	return sh.ShowTimes(text, explanationTimes, func() error { return printExplanation(sh, text) })
}

// printExplanation writes an explanation for people.
func printExplanation(sh *shell.Shell, text json.RawMessage) error {
	var x machine.Explanation
	if err := json.Unmarshal(text, &x); err != nil {
		return err
	}
	var b strings.Builder
	briefly(sh, &b, &x)
	explainTimeline(sh, &b, x.Timeline)
	explainRules(sh, &b, x.Rules, x.Step == schedule.Ended)
	if x.Step != schedule.Ended {
		explainDependencies(sh, &b, x.Dependencies)
		explainLimits(sh, &b, x.Buckets, x.Slots)
		explainLocks(sh, &b, x.Locks)
	}
	return sh.Printf("%s", listing.Fold(b.String(), sh.Width))
}

// briefly says why a job goes on or does not, and what to do about it, before all that
// one may want to know.
func briefly(sh *shell.Shell, b *strings.Builder, x *machine.Explanation) {
	fmt.Fprintf(b, "%s %s\n", sh.Paint(shell.Bold, fmt.Sprintf("Job %d", x.Job)), strings.Join(x.Summary, ", "))
	why := fmt.Sprintf("%s: %s", x.Status, x.Why)
	if x.Step == schedule.Ended { // says how
		why = x.Why
	}
	fmt.Fprintf(b, "%s\n", sh.Paint(standColours[x.Step.Stand()], why))
	if x.Held != nil {
		fmt.Fprintf(b, "held since %s, for %s\n", shell.Moment(x.Held.Since), sh.Since(x.Held.Since))
	}
	if a := x.Away; a != nil {
		fmt.Fprintf(b, "node %s is not connected since %s, for %s\n", a.Node, shell.Moment(a.Since), sh.Since(a.Since))
	}
	if e := x.Expected; e != nil {
		fmt.Fprintf(b, "likely to go on: %s\n", sh.Expected(e))
	}
	if x.Step != schedule.Ended {
		fmt.Fprintf(b, "received %s, %s ago; priority %d\n", shell.Moment(x.Received), sh.Since(x.Received), x.Slots.Priority)
	}
	if x.Reason != "" {
		fmt.Fprintf(b, "reason: %s\n", x.Reason)
	}
	if len(x.Change) == 0 {
		return
	}
	fmt.Fprintf(b, "\n%s\n", sh.Paint(shell.Bold, "For it to go on"))
	for _, r := range x.Change {
		fmt.Fprintf(b, "  %s\n", r.Text)
	}
}

// explainRules shows the chain of rules in the order in which they are asked.
// For a job that has ended it is the chain as it is now.
func explainRules(sh *shell.Shell, b *strings.Builder, verdicts []jobfilter.Verdict, ended bool) {
	if len(verdicts) == 0 {
		fmt.Fprintf(b, "\n%s\n  there are none\n", sh.Paint(shell.Bold, "Filter rules"))
		return
	}
	note := "in the order in which they are asked"
	if ended {
		note = "as they are now and would decide on such a job"
	}
	fmt.Fprintf(b, "\n%s, %s\n", sh.Paint(shell.Bold, "Filter rules"), note)
	t := &shell.Table{}
	for i, v := range verdicts {
		outcome := string(v.Outcome)
		if v.Outcome == jobfilter.NotReached && v.Would == jobfilter.Decides {
			outcome += "; else it would decide"
		}
		t.Add("", strconv.Itoa(i+1)+".", "priority "+strconv.Itoa(v.Rule.Priority), v.Rule.Short(), v.Rule.Action.String(), outcome)
	}
	for i, line := range strings.Split(strings.TrimSuffix(t.String(), "\n"), "\n") {
		v := verdicts[i]
		fmt.Fprintf(b, "%s\n", sh.Paint(outcomeColours[v.Outcome], line))
		for _, line := range because(v) {
			fmt.Fprintf(b, "      %s\n", sh.Paint(outcomeColours[v.Outcome], line))
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

func explainDependencies(sh *shell.Shell, b *strings.Builder, deps []machine.Dependency) {
	if len(deps) == 0 {
		return
	}
	fmt.Fprintf(b, "\n%s\n", sh.Paint(shell.Bold, "Dependencies"))
	t := &shell.Table{}
	for _, d := range deps {
		met := "not met"
		if d.Met {
			met = "met"
		}
		wanted := "any end but canceled"
		if len(d.Statuses) > 0 {
			wanted = strings.Join(d.Statuses, " or ")
		}
		t.Add(" ", fmt.Sprintf("job %d", d.Job), "has to end as "+wanted+":", met+",", d.Why)
	}
	b.WriteString(t.String())
}

func explainLimits(sh *shell.Shell, b *strings.Builder, buckets []machine.BucketPlace, s machine.Slots) {
	fmt.Fprintf(b, "\n%s\n", sh.Paint(shell.Bold, "Limits"))
	for _, p := range buckets {
		fmt.Fprintf(b, "  %s: %d of %d in flight", p.Name, len(p.InFlight), p.Limit)
		if len(p.InFlight) > 0 {
			fmt.Fprintf(b, " (jobs %s)", shell.JoinIDs(p.InFlight))
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
		fmt.Fprintf(b, "; served before it: %s", shell.Counted(s.Ahead, "job"))
	}
	b.WriteByte('\n')
}

func explainLocks(sh *shell.Shell, b *strings.Builder, l machine.Locks) {
	if len(l.Needs) == 0 && len(l.Held) == 0 {
		fmt.Fprintf(b, "\n%s\n  it needs none\n", sh.Paint(shell.Bold, "Locks"))
		return
	}
	fmt.Fprintf(b, "\n%s\n", sh.Paint(shell.Bold, "Locks"))
	held := map[string]bool{}
	for _, h := range l.Held {
		held[h.Name] = true
	}
	needs := l.Needs
	if len(needs) == 0 {
		needs = l.Held
	}
	t := &shell.Table{}
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
		t.Add(" ", n.Name, n.Mode, state)
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
