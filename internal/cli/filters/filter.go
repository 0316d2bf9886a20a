// Package filters is the command "drover filter": rules that hold, reject or limit jobs are listed, tried, added and
// changed.
package filters

import (
	"bytes"
	"context"
	"encoding/json"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover/internal/cli/listing"
	"github.com/drover-project/drover/internal/cli/lists"
	"github.com/drover-project/drover/internal/cli/shell"
	"github.com/drover-project/drover/internal/jobfilter"
)

// Command returns the noun "filter".
func Command(sh *shell.Shell) *cobra.Command {
	noun := sh.Group("filter", "Rules that hold, reject or limit jobs",
		lists.Command(sh, List), lists.FieldsCommand(sh, List), shell.Heeding(shell.Changing, filterDelete(sh)), filterInfo(sh), filterStats(sh),
		filterExport(sh), shell.Heeding(shell.Changing, filterApply(sh)))
	rules := append(shell.Heeds(ruleOptions, filterAdd(sh), filterReplace(sh), filterModify(sh)),
		shell.Heeding([]string{"luxi", "output", "reason", "priority"}, filterTest(sh)))
	noun.AddCommand(shell.Explaining("priority", "the rule's number, as --rule-priority", rules...)...)
	return noun
}

// ruleOptions are the shared options of the commands that make rules.
var ruleOptions = []string{"luxi", "output", "reason", "priority", "dry-run", "yes"}

// ruleText is a rule as options describe it.
type ruleText struct {
	priority                 int
	when, predicates, action string
	all                      bool
	labels                   labels
}

const ruleSource = "It is described by options, or RULE is JSON\n" +
	"with the keys priority, when or predicates, action, reason, name, comment, until and\nshadow, a file with it, or - for standard input.\n"

var ruleHelp = `
--when says which jobs the rule concerns, as lists of rules show it. A condition
begins with opcode:, reason: or jobid:, and has a filter behind it; "and" joins
conditions, of which all must hold, and "not" before one negates it:
  opcode: OP_ID == "OP_INSTANCE_CREATE"
  opcode: (OP_ID =~ m/^OP_INSTANCE_/ and not dry_run) and not reason: source == "gnt:user"
  jobid: id > "watermark"
  every job
--predicates takes the same as JSON, as requests carry it:
` + predicateForms() + `Actions: ` + strings.Join(typedActions(), ", ") + `.
What operators the filters have is told by drover query --help.`

// predicateForms lists the kinds of predicate.
func predicateForms() string {
	var b strings.Builder
	for _, p := range jobfilter.Predicates() {
		b.WriteString("  " + p.Form + "\n      " + p.Doc + "\n")
	}
	return b.String()
}

// typedActions are the kinds of action as they are typed on a command line.
func typedActions() (all []string) {
	for _, a := range jobfilter.Actions() {
		typed := a.Typed
		if strings.Contains(typed, " ") {
			typed = `"` + typed + `"`
		}
		all = append(all, typed)
	}
	return all
}

func (r *ruleText) register(cmd *cobra.Command) {
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVar(&r.when, "when", "", "which jobs the rule concerns, for example 'opcode: OP_ID == \"OP_INSTANCE_CREATE\"'")
	f.StringVar(&r.predicates, "predicates", "", "the same as JSON; [] concerns every job")
	f.BoolVar(&r.all, "all-jobs", false, "the rule concerns every job")
	f.StringVar(&r.action, "action", "", "what to do with these jobs: "+strings.Join(typedActions(), ", "))
	f.IntVar(&r.priority, "rule-priority", 0, "rules with smaller numbers are asked first (default: behind those that there are)")
	r.labels.register(cmd)
	var actions []string
	for _, a := range jobfilter.Actions() {
		actions = append(actions, strings.Replace(a.Typed, " N", " 1", 1))
	}
	_ = cmd.RegisterFlagCompletionFunc("action", cobra.FixedCompletions(actions, cobra.ShellCompDirectiveNoFileComp)) // the option exists
}

// rateLimit is how the limit is written on the command line.
var rateLimit = regexp.MustCompile(`^RATE_LIMIT\s+(\d+)`)

// actionJSON is the wire form of an action.
func actionJSON(text string) (json.RawMessage, error) {
	if m := rateLimit.FindStringSubmatch(text); m != nil {
		return json.RawMessage(`["RATE_LIMIT",` + m[1] + `]`), nil
	}
	if word, _, _ := strings.Cut(text, " "); word == "RATE_LIMIT" {
		return nil, shell.Usage("--action RATE_LIMIT takes how many jobs may be in flight at once, as in \"RATE_LIMIT 2\"; got %q", text)
	}
	if v, ok := shell.ParseJSON(text); ok && shell.StartsJSON(text) {
		return json.Marshal(v)
	}
	return json.Marshal(text)
}

// rulePriority is the priority of a rule. --priority means it here, as the
// classic tool has it.
func (r *ruleText) rulePriority(sh *shell.Shell) (int, error) {
	if sh.Flags.Priority == "" {
		return r.priority, nil
	}
	if r.priority != 0 {
		return 0, shell.Usage("--priority and --rule-priority mean the same here; give one")
	}
	n, ok := shell.NumberValue(sh.Flags.Priority).(int64)
	if !ok {
		return 0, shell.Usage("--priority of a rule must be a whole number, got %q", sh.Flags.Priority)
	}
	return int(n), nil
}

// putFilters adds rules, or replaces the one that is named; all or none. The
// classic tool's request is the reference's own.
func putFilters(sh *shell.Shell, cmd *cobra.Command, replaced string, args []string, r *ruleText, expect string) error {
	rules, err := givenRules(sh, cmd, args, r)
	if err != nil {
		return err
	}
	if sh.Classic() {
		return putClassic(cmd.Context(), sh, replaced, rules[0])
	}
	if err := placeRules(cmd.Context(), sh, rules, []string{replaced}); err != nil {
		return err
	}
	edits := make([]ruleEdit, len(rules))
	for i, object := range rules {
		edits[i] = ruleEdit{Do: jobfilter.Put, Parts: object}
	}
	edits[0].Rule = replaced
	return editRules(cmd, sh, edits, expect)
}

func putClassic(ctx context.Context, sh *shell.Shell, replaced string, rule map[string]any) error {
	var uuid any
	if replaced != "" {
		uuid = replaced
	}
	var made string
	err := sh.Do(ctx, "ReplaceFilter", &made, uuid, rule["priority"], rule["predicates"], rule["action"], rule["reason"])
	if err != nil {
		return err
	}
	return sh.Show(map[string]string{"uuid": made}, func() error { return sh.Printf("%s\n", made) })
}

func filterAdd(sh *shell.Shell) *cobra.Command {
	var r ruleText
	var expect string
	cmd := &cobra.Command{
		Use: "add [RULE|FILE|-]...", Short: "Add rules", Args: cobra.ArbitraryArgs,
		Long: "Add a rule and print its UUID. It takes effect at once. " + ruleSource +
			"Several rules, or a list of them, are added all or none.\n" + ruleHelp,
		RunE: func(cmd *cobra.Command, args []string) error { return putFilters(sh, cmd, "", args, &r, expect) },
	}
	r.register(cmd)
	registerExpect(cmd, &expect)
	return cmd
}

func filterReplace(sh *shell.Shell) *cobra.Command {
	var r ruleText
	var expect string
	cmd := &cobra.Command{
		Use: "replace RULE [NEW|FILE|-]", Short: "Replace all parts of a rule", Args: shell.Between(1, 2),
		Long: "Replace a rule. Parts that are not given get their defaults, not their old values;\nbut it keeps its place, unless a priority is given.\n" +
			ruleSource + ruleHelp,
		ValidArgsFunction: lists.CompleteNames(sh, "filter", false),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 && !cmd.Flags().Changed("action") && !sh.Classic() {
				return shell.Usage("a whole rule takes the place of %s: give its --action, and --when, or change parts of it by drover filter modify", args[0])
			}
			uuid, err := ruleUUID(cmd.Context(), sh, args[0])
			if err != nil {
				return err
			}
			return putFilters(sh, cmd, uuid, args[1:], &r, expect)
		},
	}
	r.register(cmd)
	registerExpect(cmd, &expect)
	return cmd
}

func filterDelete(sh *shell.Shell) *cobra.Command {
	var expect string
	cmd := &cobra.Command{
		Use: "delete RULE...", Short: "Remove rules", Args: shell.AtLeast(1),
		Long:              "Remove rules, all or none. RULE is a UUID, a name, or the beginning of either.",
		ValidArgsFunction: lists.CompleteNames(sh, "filter", true),
	}
	registerExpect(cmd, &expect)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		uuids, edits := make([]string, len(args)), make([]ruleEdit, len(args))
		for i, ref := range args {
			var err error
			if uuids[i], err = ruleUUID(cmd.Context(), sh, ref); err != nil {
				return err
			}
			edits[i] = ruleEdit{Do: jobfilter.Delete, Rule: uuids[i]}
		}
		switch {
		case sh.Flags.DryRun:
			return testRules(cmd.Context(), sh, edits, ruleTest{expect: expect})
		case sh.Classic():
			for _, uuid := range uuids {
				if err := sh.Do(cmd.Context(), "DeleteFilter", nil, uuid, sh.UserTrail()); err != nil {
					return err
				}
			}
			return nil
		}
		if err := sureAboutEdits(cmd, sh, edits, expect); err != nil {
			return err
		}
		_, err := changeRules(cmd.Context(), sh, edits, expect)
		return err
	}
	return cmd
}

// ruleRow is a rule as QueryFilters returns it.
type ruleRow struct {
	UUID       string `json:"uuid"`
	Watermark  int64  `json:"watermark"`
	Priority   int    `json:"priority"`
	Predicates any    `json:"predicates"`
	Action     any    `json:"action"`
	Reason     any    `json:"reason_trail"`
	// Name is there when it was asked for.
	Name string `json:"-"`
}

var ruleFields = []string{"uuid", "watermark", "priority", "predicates", "action", "reason_trail"}

// UnmarshalJSON reads the row in the order of ruleFields.
func (r *ruleRow) UnmarshalJSON(data []byte) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber() // times are longer than a float is exact
	places := []any{&r.UUID, &r.Watermark, &r.Priority, &r.Predicates, &r.Action, &r.Reason, &r.Name}
	return dec.Decode(&places)
}

func filterInfo(sh *shell.Shell) *cobra.Command {
	return &cobra.Command{
		Use: "info [RULE...]", Short: "Show rules", Args: cobra.ArbitraryArgs,
		ValidArgsFunction: lists.CompleteNames(sh, "filter", true),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !sh.Classic() {
				return ruleInfo(cmd.Context(), sh, args)
			}
			found := []ruleRow{}
			if err := sh.Ask(cmd.Context(), "QueryFilters", &found, shell.NonNil(args), ruleFields); err != nil {
				return err
			}
			return sh.Show(found, func() error {
				for _, r := range found {
					if err := printRule(sh, r); err != nil {
						return err
					}
				}
				return nil
			})
		},
	}
}

func printRule(sh *shell.Shell, r ruleRow) error {
	return sh.Printf("UUID: %s\n  Watermark: %d\n  Priority: %d\n  Predicates: %s\n  Action: %s\n  Reason trail: %s\n",
		r.UUID, r.Watermark, r.Priority, listing.Str(r.Predicates), listing.Str(r.Action), listing.Str(r.Reason))
}

// ruleMeant is the UUID of the rule that an argument of a list means: a rule may be
// called by its name, or the beginning of that or of its UUID. A filter, or a
// pattern, is left as it is.
func ruleMeant(ctx context.Context, sh *shell.Shell, arg string) (string, error) {
	if !ruleRef.MatchString(arg) {
		return arg, nil
	}
	return ruleUUID(ctx, sh, arg)
}

// ruleRef is what the beginning of a UUID or of a name looks like.
var ruleRef = regexp.MustCompile(`^[\w.-]+$`)

// List is how rules are listed.
var List = lists.List{What: "filter", Fields: []string{"uuid", "watermark", "priority", "predicates", "action", "reason_trail"},
	Table: []string{"rule", "priority", "action_text", "held", "until", "shadow", "predicates_text", "reason"}, Brief: []string{"until", "shadow"},
	Order: []string{"priority", "watermark", "uuid"}, NameField: "uuid", Stored: true, Means: ruleMeant, Short: "List the filter rules in the order in which they are asked"}
