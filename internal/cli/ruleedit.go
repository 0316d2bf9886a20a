package cli

import (
	"context"
	"maps"
	"strings"
	"time"

	"github.com/spf13/cobra"

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
func (l *labels) given(sh *shell, cmd *cobra.Command, parts map[string]any) error {
	f := cmd.Flags()
	for name, value := range map[string]any{"name": l.name, "comment": l.comment, "shadow": l.shadow} {
		if f.Changed(name) {
			parts[name] = value
		}
	}
	if !f.Changed("until") {
		return nil
	}
	until, err := momentOf(l.until, sh.now())
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
			return "", usage("--until must be in the future, got %q", text)
		}
		return now.Add(d).UTC().Format(time.RFC3339), nil
	}
	if _, err := time.Parse(time.RFC3339, text); err != nil {
		return "", usage("--until takes a duration such as 90m, a moment such as 2026-11-22T15:00:00+01:00, or none; got %q", text)
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
func (sh *shell) editRules(ctx context.Context, edits []ruleEdit, expect string) error {
	if sh.flags.dryRun {
		return sh.testRules(ctx, edits, ruleTest{expect: expect})
	}
	uuids, err := sh.changeRules(ctx, edits, expect)
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
	return sh.show(data, func() error { return sh.printf("%s\n", strings.Join(uuids, "\n")) })
}

// changeRules makes edits and warns of what they hardly mean.
func (sh *shell) changeRules(ctx context.Context, edits []ruleEdit, expect string) (uuids []string, err error) {
	var made struct {
		UUIDs    []string            `json:"uuids"`
		Warnings []jobfilter.Warning `json:"warnings"`
	}
	var digest any
	if expect != "" {
		digest = expect
	}
	if err := sh.do(ctx, "ChangeFilters", &made, edits, digest, sh.userTrail()); err != nil {
		return nil, err
	}
	for _, w := range made.Warnings {
		sh.notef("warning: %s\n", w)
	}
	return made.UUIDs, nil
}

func filterModify(sh *shell) *cobra.Command {
	var r ruleText
	renew, expect := false, ""
	cmd := &cobra.Command{
		Use: "modify RULE", Short: "Change parts of a rule, and keep the others", Args: exactly(1),
		Long: "Change the parts of a rule that options give. RULE is its UUID, its name, or the\n" +
			"beginning of either. What is not given stays, also the watermark.\n" + ruleHelp,
		ValidArgsFunction: sh.completeNames("filter", false),
	}
	r.register(cmd)
	cmd.Flags().BoolVar(&renew, "renew-watermark", false, "let the rule begin with the jobs that come from now on")
	registerExpect(cmd, &expect)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		parts, err := r.changed(sh, cmd)
		if err != nil {
			return err
		}
		if trail := sh.userTrail(); len(trail) > 0 {
			parts["reason"] = trail
		}
		if len(parts) == 0 && !renew {
			return usage("nothing to change is given: see drover filter modify --help")
		}
		if err := sh.sureAboutModified(cmd.Context(), args[0], parts); err != nil {
			return err
		}
		return sh.editRules(cmd.Context(), []ruleEdit{{Do: jobfilter.Change, Rule: args[0], Parts: parts, Renew: renew}}, expect)
	}
	return cmd
}

// changed are the parts that options give.
func (r *ruleText) changed(sh *shell, cmd *cobra.Command) (map[string]any, error) {
	all, err := r.object(sh, cmd)
	if err != nil {
		return nil, err
	}
	f := cmd.Flags()
	delete(all, "reason")
	if !f.Changed("rule-priority") && sh.flags.priority == "" {
		delete(all, "priority")
	}
	for _, name := range []string{"predicates", "action"} {
		if !f.Changed(name) {
			delete(all, name)
		}
	}
	return all, nil
}

// sureAboutModified asks whether a rule is meant that is going to hold or reject
// every job, where a person can answer.
func (sh *shell) sureAboutModified(ctx context.Context, ref string, parts map[string]any) error {
	if !sh.person || sh.flags.dryRun {
		return nil
	}
	uuid, err := sh.ruleUUID(ctx, ref)
	if err != nil {
		return err
	}
	row, err := sh.ruleByUUID(ctx, uuid)
	if err != nil {
		return err
	}
	whole := map[string]any{"predicates": row.Predicates, "action": row.Action}
	maps.Copy(whole, parts)
	return sh.sureAboutAll(whole)
}

// ruleUUID returns the UUID of the rule that an argument means: a UUID, a name,
// or the beginning of either. Under a classic name what means none is left for the
// controller to refuse, in the words that scripts know.
func (sh *shell) ruleUUID(ctx context.Context, ref string) (string, error) {
	if jobfilter.CheckUUID(ref) == nil {
		return ref, nil
	}
	var found []ruleRow
	if err := sh.ask(ctx, "QueryFilters", &found, []string{}, append(append([]string{}, ruleFields...), "rule_name")); err != nil {
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
	case sh.persona.classic() && fault.Is(err, fault.NotFound):
		return ref, nil
	}
	return "", err
}

// newJobs tells what would become of jobs to come.
func (sh *shell) newJobs(f *jobfilter.Forecast) string {
	if len(f.New) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("\n" + sh.paint(bold, "Jobs to come") + "\n")
	for i, n := range f.New {
		if i == shownJobs {
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
