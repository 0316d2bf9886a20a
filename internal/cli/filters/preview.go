package filters

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover/internal/cli/listing"
	"github.com/drover-project/drover/internal/cli/lists"
	"github.com/drover-project/drover/internal/cli/shell"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/jobfilter"
)

func filterTest(sh *shell.Shell) *cobra.Command {
	var r ruleText
	var t ruleTest
	cmd := &cobra.Command{
		Use: "test [RULE|FILE|-]...", Short: "Tell what rules would do, without adding them",
		Long: "Tell what a rule would do to each job in the queue and to those to come, and would\n" +
			"have done to those of the last days, without adding it. " + ruleSource +
			"Several rules, replacements and deletions are tried as one change. The digest that\n" +
			"the preview shows is taken by --expect of filter add, replace, modify and delete.\n" + ruleHelp,
		Args: cobra.ArbitraryArgs,
	}
	r.register(cmd)
	f := cmd.Flags()
	f.IntVar(&t.days, "days", 0, "look at the jobs that ended in the last days too")
	f.StringArrayVar(&t.replace, "replace", nil, "the rule that it would replace: a UUID, a name, or the beginning of either; the second for the second rule")
	f.StringArrayVar(&t.remove, "delete", nil, "try the deletion of this rule, with the other changes if there are any; may be repeated")
	f.BoolVar(&t.detailed, "detailed-exitcode", false, "end with status 4 if something would change, and 5 if jobs would be cancelled or refused")
	registerExpect(cmd, &t.expect)
	for _, name := range []string{"replace", "delete"} {
		_ = cmd.RegisterFlagCompletionFunc(name, lists.CompleteNames(sh, "filter", true)) // the option exists
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if t.days < 0 {
			return shell.Usage("--days must be a number of days, got %d", t.days)
		}
		edits, err := t.edits(sh, cmd, args, &r)
		if err != nil {
			return err
		}
		return testRules(cmd.Context(), sh, edits, t)
	}
	return cmd
}

// ruleTest is what a preview is asked for.
type ruleTest struct {
	days            int
	replace, remove []string
	expect          string
	detailed        bool
}

// edits are the changes to try. Without a rule that is described, deletions stand
// for themselves.
func (t *ruleTest) edits(sh *shell.Shell, cmd *cobra.Command, args []string, r *ruleText) ([]ruleEdit, error) {
	var edits []ruleEdit
	for _, rule := range t.remove {
		edits = append(edits, ruleEdit{Do: jobfilter.Delete, Rule: rule})
	}
	described := len(args) > 0 || len(t.remove) == 0 || len(t.replace) > 0
	for _, name := range ruleParts {
		described = described || cmd.Flags().Changed(name)
	}
	if !described {
		return edits, nil
	}
	rules, err := givenRules(sh, cmd, args, r)
	if err != nil {
		return nil, err
	}
	if len(t.replace) > len(rules) {
		return nil, shell.Usage("--replace is given %d times for %s: the first is replaced by the first rule, and so on", len(t.replace), shell.Counted(len(rules), "rule"))
	}
	if err := placeRules(cmd.Context(), sh, rules, t.replace); err != nil {
		return nil, err
	}
	for i, rule := range rules {
		e := ruleEdit{Do: jobfilter.Put, Parts: rule}
		if i < len(t.replace) {
			e.Rule = t.replace[i]
		}
		edits = append(edits, e)
	}
	return edits, nil
}

// registerExpect adds the option that ties a change to a preview.
func registerExpect(cmd *cobra.Command, expect *string) {
	cmd.Flags().StringVar(expect, "expect", "", "the digest that a preview showed: refuse if the rules have changed since")
}

// foretell asks what edits would do.
func foretell(ctx context.Context, sh *shell.Shell, edits []ruleEdit, t ruleTest) (json.RawMessage, error) {
	var text json.RawMessage
	if err := sh.Ask(ctx, "TestFilter", &text, edits, t.days); err != nil {
		return nil, err
	}
	var f struct {
		Digest string `json:"digest"`
	}
	if err := json.Unmarshal(text, &f); err != nil {
		return nil, err
	}
	if t.expect != "" && f.Digest != t.expect {
		return nil, fault.New(fault.Conflict, "the filter rules have changed since they were looked at (%s then, %s now)", t.expect, f.Digest).
			WithHint("look at them and at the preview again")
	}
	return text, nil
}

// testRules shows what edits would do.
func testRules(ctx context.Context, sh *shell.Shell, edits []ruleEdit, t ruleTest) error {
	text, err := foretell(ctx, sh, edits, t)
	if err != nil {
		return err
	}
	var f jobfilter.Forecast
	if err := json.Unmarshal(text, &f); err != nil {
		return err
	}
	if err := sh.ShowTimes(text, []string{"from", "to", "peak_at", "started", "received", "ended"}, func() error { return printPreview(sh, &f) }); err != nil || !t.detailed {
		return err
	}
	switch f.Gravest() {
	case jobfilter.NoEffect:
		return nil
	case jobfilter.WouldCancel:
		return &shell.ExitError{Status: shell.ExitWouldCancel}
	default:
		return &shell.ExitError{Status: shell.ExitWouldChange}
	}
}

// printPreview writes the forecast of a rule, or of several, for people.
func printPreview(sh *shell.Shell, f *jobfilter.Forecast) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", sh.Paint(shell.Bold, f.Headline))
	changes := f.Changes
	if changes == nil {
		changes = []jobfilter.ChangeForecast{{Rule: f.Rule, Place: f.Place, Replaces: f.Replaces, Removes: f.Removes, Past: f.Past}}
	}
	for _, c := range changes {
		b.WriteString(placeOf(c, f.Of, len(changes) > 1))
	}
	for _, w := range f.Warnings {
		fmt.Fprintf(&b, "%s %s\n", sh.Paint(shell.Yellow, "warning:"), w)
	}
	if len(f.Jobs) > 0 {
		fmt.Fprintf(&b, "\n%s\n", sh.Paint(shell.Bold, "Jobs in the queue"))
		t := &shell.Table{}
		for i, j := range f.Jobs {
			if i == shell.ShownJobs {
				break
			}
			t.Add(" ", j.ID.String(), string(j.Status), strings.Join(j.Summary, ","), sh.Paint(effectColours[j.Effect], j.Text))
		}
		b.WriteString(t.String())
		shell.AndMore(&b, len(f.Jobs))
	}
	if f.Unaffected > 0 && len(f.Jobs) > 0 { // else the headline has said it
		fmt.Fprintf(&b, "For %s in the queue nothing would be different.\n", shell.Counted(f.Unaffected, "other job"))
	}
	b.WriteString(newJobs(sh, f))
	for _, c := range changes {
		title := "Jobs that have ended"
		if len(changes) > 1 {
			title += ", " + called(c)
		}
		pastForecast(sh, &b, title, c.Past)
	}
	fmt.Fprintf(&b, "\nDigest of the rules as they are: %s\n", f.Digest)
	return sh.Printf("%s", listing.Fold(b.String(), sh.Width))
}

// placeOf says where a rule would stand, or that it would be gone.
func placeOf(c jobfilter.ChangeForecast, of int, several bool) string {
	subject := "It"
	if several {
		subject = strings.ToUpper(called(c)[:1]) + called(c)[1:]
	}
	switch {
	case c.Removes && several:
		return subject + " would be removed.\n"
	case c.Removes:
		return fmt.Sprintf("It would remove %s.\n", c.Rule.Describe())
	case c.Replaces:
		return fmt.Sprintf("%s would be asked as number %d of %d, in place of the rule as it is.\n", subject, c.Place, of)
	}
	return fmt.Sprintf("%s would be asked as number %d of %d.\n", subject, c.Place, of)
}

// called names a rule of a preview, in which new ones have no identity yet.
func called(c jobfilter.ChangeForecast) string {
	if c.Replaces || c.Removes {
		return "rule " + c.Rule.Short()
	}
	return strings.TrimSpace("the new rule "+c.Rule.Name) + " (" + c.Rule.Action.String() + ")"
}

// effectColours show what a rule would do to a job.
var effectColours = map[jobfilter.Effect]string{
	jobfilter.WouldCancel: shell.Red, jobfilter.WouldHold: shell.Yellow, jobfilter.WouldLimit: shell.Yellow, jobfilter.WouldRelease: shell.Green,
}

// pastForecast tells what the rule would have done to jobs that have ended.
func pastForecast(sh *shell.Shell, b *strings.Builder, title string, p jobfilter.PastForecast) {
	if p.Jobs == 0 {
		return
	}
	fmt.Fprintf(b, "\n%s: %s from %s to %s\n", sh.Paint(shell.Bold, title), shell.Counted(p.Jobs, "job"), shell.Moment(p.From), shell.Moment(p.To))
	if len(p.Affected) == 0 {
		b.WriteString("  it would have concerned none of them\n")
		return
	}
	fmt.Fprintf(b, "  it would have concerned %d of them, at most %d at once (%s)\n", len(p.Affected), p.Peak, shell.Moment(p.PeakAt))
	if p.Delayed > 0 {
		fmt.Fprintf(b, "  %d would have waited, %s in all and up to %s\n", p.Delayed, shell.Span(p.TotalDelay), shell.Span(p.MaxDelay))
	}
	t := &shell.Table{}
	for i, j := range p.Affected {
		if i == shell.ShownJobs {
			break
		}
		delay := ""
		if j.Delay > 0 {
			delay = "would have waited " + shell.Span(j.Delay)
		}
		t.Add(" ", j.ID.String(), string(j.Status), strings.Join(j.Summary, ","), delay)
	}
	b.WriteString(t.String())
	shell.AndMore(b, len(p.Affected))
}
