package filters

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover/internal/cli/lists"
	"github.com/drover-project/drover/internal/cli/shell"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/jobfilter"
)

// labels are what a rule has beyond the reference's: what people call it and
// say about it, when it ends, and whether it only watches.
type labels struct {
	name, comment, until string
	shadow               bool
}

func (l *labels) register(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&l.name, "name", "", "what to call the rule by")
	f.StringVar(&l.comment, "comment", "", "what to say about it")
	f.StringVar(&l.until, "until", "", "when it ends by itself: 90m, 2026-11-22T15:00:00+01:00; \"none\" for never")
	f.BoolVar(&l.shadow, "shadow", false, "ask the rule without letting it decide")
}

// given adds the labels that options give to the parts of a rule.
func (l *labels) given(sh *shell.Shell, cmd *cobra.Command, parts map[string]any) error {
	f := cmd.Flags()
	for name, value := range map[string]any{"name": l.name, "comment": l.comment, "shadow": l.shadow} {
		if f.Changed(name) {
			parts[name] = value
		}
	}
	if !f.Changed("until") {
		return nil
	}
	until, err := momentOf(l.until, sh.Now())
	parts["until"] = until
	return err
}

// momentOf turns what --until says into the text of a moment; empty for none.
func momentOf(text string, now time.Time) (string, error) {
	if text == "none" {
		return "", nil
	}
	if d, err := time.ParseDuration(text); err == nil {
		if d <= 0 {
			return "", shell.Usage("--until must be in the future, got %q", text)
		}
		return now.Add(d).UTC().Format(time.RFC3339), nil
	}
	if _, err := time.Parse(time.RFC3339, text); err != nil {
		return "", shell.Usage("--until takes a duration such as 90m, a moment such as 2026-11-22T15:00:00+01:00, or none; got %q", text)
	}
	return text, nil
}

// ruleEdit is one edit as ChangeFilters and TestFilter take it.
type ruleEdit struct {
	Do    jobfilter.Verb `json:"do"`
	Rule  string         `json:"rule,omitempty"`
	Parts map[string]any `json:"parts,omitempty"`
	Renew bool           `json:"renew_watermark,omitempty"`
}

// editRules makes edits, all or none, or tells with --dry-run what they would do,
// and shows the UUIDs of their rules.
func editRules(cmd *cobra.Command, sh *shell.Shell, edits []ruleEdit, expect string) error {
	if sh.Flags.DryRun {
		return testRules(cmd.Context(), sh, edits, ruleTest{expect: expect})
	}
	if err := sureAboutEdits(cmd, sh, edits, expect); err != nil {
		return err
	}
	uuids, err := changeRules(cmd.Context(), sh, edits, expect)
	if err != nil {
		return err
	}
	made := make([]map[string]string, len(uuids))
	for i, uuid := range uuids {
		made[i] = map[string]string{"uuid": uuid}
	}
	var data any = made
	if len(made) == 1 {
		data = made[0]
	}
	return sh.Show(data, func() error { return sh.Printf("%s\n", strings.Join(uuids, "\n")) })
}

// changeRules makes edits and warns of what they hardly mean.
func changeRules(ctx context.Context, sh *shell.Shell, edits []ruleEdit, expect string) (uuids []string, err error) {
	var made struct {
		UUIDs    []string            `json:"uuids"`
		Warnings []jobfilter.Warning `json:"warnings"`
	}
	var digest any
	if expect != "" {
		digest = expect
	}
	if err := sh.Do(ctx, "ChangeFilters", &made, edits, digest, sh.UserTrail()); err != nil {
		return nil, err
	}
	for _, w := range made.Warnings {
		sh.Notef("warning: %s\n", w)
	}
	return made.UUIDs, nil
}

func filterModify(sh *shell.Shell) *cobra.Command {
	var r ruleText
	renew, expect := false, ""
	cmd := &cobra.Command{
		Use: "modify RULE", Short: "Change parts of a rule, and keep the others", Args: shell.Exactly(1),
		Long: "Change the parts of a rule that options give. RULE is its UUID, its name, or the\n" +
			"beginning of either. What is not given stays, also the watermark.\n" + ruleHelp,
		ValidArgsFunction: lists.CompleteNames(sh, "filter", false),
	}
	r.register(cmd)
	cmd.Flags().BoolVar(&renew, "renew-watermark", false, "let the rule begin with the jobs that come from now on")
	registerExpect(cmd, &expect)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		parts, err := r.given(sh, cmd)
		if err != nil {
			return err
		}
		if trail := sh.UserTrail(); len(trail) > 0 {
			parts["reason"] = trail
		}
		if len(parts) == 0 && !renew {
			return shell.Usage("nothing to change is given: see drover filter modify --help")
		}
		return editRules(cmd, sh, []ruleEdit{{Do: jobfilter.Change, Rule: args[0], Parts: parts, Renew: renew}}, expect)
	}
	return cmd
}

// sureAboutEdits asks before jobs are cancelled, or everything stands still, or what a
// rule holds begins: by what the preview says, which knows how many they are.
func sureAboutEdits(cmd *cobra.Command, sh *shell.Shell, edits []ruleEdit, expect string) error {
	if sh.Flags.Yes || !slices.ContainsFunc(edits, ruleEdit.mayCancelOrHold) {
		return nil
	}
	text, err := foretell(cmd.Context(), sh, edits, ruleTest{expect: expect})
	if err != nil {
		return err
	}
	var f jobfilter.Forecast
	if err := json.Unmarshal(text, &f); err != nil {
		return err
	}
	deletes := !slices.ContainsFunc(edits, func(e ruleEdit) bool { return e.Do != jobfilter.Delete })
	if f.Count(jobfilter.WouldCancel) == 0 && f.EveryNew != jobfilter.WouldCancel && f.EveryNew != jobfilter.WouldHold &&
		!(deletes && f.Count(jobfilter.NoEffect) < len(f.Jobs)) {
		return nil
	}
	return sh.Sure(shell.PathOf(cmd), strings.ToUpper(f.Headline[:1])+f.Headline[1:]+".")
}

// mayCancelOrHold reports whether an edit is worth a preview: a new rule that neither
// rejects nor holds takes nothing away.
func (e ruleEdit) mayCancelOrHold() bool {
	if e.Do != jobfilter.Put {
		return true
	}
	text, err := json.Marshal(e.Parts)
	if err != nil {
		return false
	}
	rule, err := jobfilter.ParseRule(text)
	if err != nil {
		return false // the controller says what is wrong with it
	}
	return e.Rule != "" || !rule.Shadow && (rule.Action.Kind == jobfilter.Reject || rule.Action.Kind == jobfilter.Pause)
}

// ruleUUID returns the UUID of the rule that an argument means: a UUID, a name,
// or the beginning of either. Under a classic name what means none is left for the
// controller to refuse, in the words that scripts know.
func ruleUUID(ctx context.Context, sh *shell.Shell, ref string) (string, error) {
	if jobfilter.CheckUUID(ref) == nil {
		return ref, nil
	}
	var found []ruleRow
	if err := sh.Ask(ctx, "QueryFilters", &found, []string{}, append(append([]string{}, ruleFields...), "rule_name")); err != nil {
		return "", err
	}
	rules := make([]*jobfilter.Rule, len(found))
	for i, r := range found {
		rules[i] = &jobfilter.Rule{UUID: r.UUID, Name: r.Name}
	}
	rule, err := jobfilter.Find(rules, ref)
	switch {
	case err == nil:
		return rule.UUID, nil
	case sh.Classic() && fault.Is(err, fault.NotFound):
		return ref, nil
	}
	return "", err
}

// newJobs tells what would become of jobs to come.
func newJobs(sh *shell.Shell, f *jobfilter.Forecast) string {
	if len(f.New) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("\n" + sh.Paint(shell.Bold, "Jobs to come") + "\n")
	for i, n := range f.New {
		if i == shell.ShownJobs {
			b.WriteString("  ... and more; --output json shows all\n")
			break
		}
		after := n.After
		if i > 0 && f.New[i-1].After == after {
			after = "likewise"
		}
		b.WriteString("  " + n.Opcode + ", as job " + n.Like.String() + ": " + after + "\n")
	}
	return b.String()
}

// ruleByUUID returns a rule. Without one the error is that of its deletion.
func ruleByUUID(ctx context.Context, sh *shell.Shell, uuid string) (ruleRow, error) {
	var found []ruleRow
	if err := sh.Ask(ctx, "QueryFilters", &found, []string{uuid}, ruleFields); err != nil {
		return ruleRow{}, err
	}
	if len(found) == 0 {
		return ruleRow{}, fault.New(fault.NotFound, "Filter rule with UUID %s does not exist", uuid)
	}
	return found[0], nil
}
