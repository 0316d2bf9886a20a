package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover/internal/cli/listing"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/jobfilter"
)

func filterTest(sh *shell) *cobra.Command {
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
		_ = cmd.RegisterFlagCompletionFunc(name, sh.completeNames("filter", true)) // the option exists
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if t.days < 0 {
			return usage("--days must be a number of days, got %d", t.days)
		}
		edits, err := t.edits(sh, cmd, args, &r)
		if err != nil {
			return err
		}
		return sh.testRules(cmd.Context(), edits, t)
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
func (t *ruleTest) edits(sh *shell, cmd *cobra.Command, args []string, r *ruleText) ([]ruleEdit, error) {
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
	rules, err := sh.givenRules(cmd, args, r)
	if err != nil {
		return nil, err
	}
	if len(t.replace) > len(rules) {
		return nil, usage("--replace is given %d times for %s: the first is replaced by the first rule, and so on", len(t.replace), counted(len(rules), "rule"))
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
func (sh *shell) foretell(ctx context.Context, edits []ruleEdit, t ruleTest) (json.RawMessage, error) {
	var text json.RawMessage
	if err := sh.ask(ctx, "TestFilter", &text, edits, t.days); err != nil {
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
func (sh *shell) testRules(ctx context.Context, edits []ruleEdit, t ruleTest) error {
	text, err := sh.foretell(ctx, edits, t)
	if err != nil {
		return err
	}
	var f jobfilter.Forecast
	if err := json.Unmarshal(text, &f); err != nil {
		return err
	}
	if err := sh.show(text, func() error { return sh.printPreview(&f) }); err != nil || !t.detailed {
		return err
	}
	switch f.Gravest() {
	case jobfilter.NoEffect:
		return nil
	case jobfilter.WouldCancel:
		return &exitError{status: ExitWouldCancel}
	default:
		return &exitError{status: ExitWouldChange}
	}
}

// printPreview writes the forecast of a rule, or of several, for people.
func (sh *shell) printPreview(f *jobfilter.Forecast) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", sh.paint(bold, f.Headline))
	changes := f.Changes
	if changes == nil {
		changes = []jobfilter.ChangeForecast{{Rule: f.Rule, Place: f.Place, Replaces: f.Replaces, Removes: f.Removes, Past: f.Past}}
	}
	for _, c := range changes {
		b.WriteString(placeOf(c, f.Of, len(changes) > 1))
	}
	for _, w := range f.Warnings {
		fmt.Fprintf(&b, "%s %s\n", sh.paint(yellow, "warning:"), w)
	}
	if len(f.Jobs) > 0 {
		fmt.Fprintf(&b, "\n%s\n", sh.paint(bold, "Jobs in the queue"))
		t := &table{}
		for i, j := range f.Jobs {
			if i == shownJobs {
				break
			}
			t.add(" ", j.ID.String(), string(j.Status), strings.Join(j.Summary, ","), sh.paint(effectColours[j.Effect], j.Text))
		}
		b.WriteString(t.String())
		andMore(&b, len(f.Jobs))
	}
	if f.Unaffected > 0 {
		fmt.Fprintf(&b, "For %s in the queue nothing would be different.\n", counted(f.Unaffected, "other job"))
	}
	b.WriteString(sh.newJobs(f))
	for _, c := range changes {
		title := "Jobs that have ended"
		if len(changes) > 1 {
			title += ", " + called(c)
		}
		sh.pastForecast(&b, title, c.Past)
	}
	fmt.Fprintf(&b, "\nDigest of the rules as they are: %s\n", f.Digest)
	return sh.printf("%s", listing.Fold(b.String(), sh.width))
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
