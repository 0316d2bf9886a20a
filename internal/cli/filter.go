package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover/internal/cli/listing"
	"github.com/drover-project/drover/internal/jobfilter"
)

func filterCommand(sh *shell) *cobra.Command {
	return sh.group("filter", "Rules that hold, reject or limit jobs",
		listCommand(sh, filterList), fieldsCommand(sh, filterList),
		heeding(ruleOptions, filterAdd(sh)), heeding(ruleOptions, filterReplace(sh)), heeding(ruleOptions, filterModify(sh)),
		heeding(changing, filterDelete(sh)),
		filterInfo(sh), filterStats(sh), heeding([]string{"luxi", "output", "reason", "priority"}, filterTest(sh)))
}

// ruleOptions are the shared options of the commands that make rules.
var ruleOptions = []string{"luxi", "output", "reason", "priority", "dry-run", "yes"}

// ruleText is a rule as options describe it.
type ruleText struct {
	priority           int
	predicates, action string
	labels             labels
}

const ruleSource = "It is described by options, or RULE is JSON\n" +
	"with the keys priority, predicates, action, reason, name, comment, until and shadow,\na file with it, or - for standard input.\n"

var ruleHelp = `
Predicates are a JSON list, and all of them must hold:
` + predicateForms() + `For example:
  [["opcode", ["=", "OP_ID", "OP_INSTANCE_CREATE"]]]
  [["jobid", [">", "id", "watermark"]]]
  [["reason", ["=~", "reason", "maintenance"]]]
Actions: ACCEPT, PAUSE, REJECT, CONTINUE, "RATE_LIMIT n".`

// predicateForms lists the kinds of predicate.
func predicateForms() string {
	var b strings.Builder
	for _, p := range jobfilter.Predicates() {
		b.WriteString("  " + p.Form + "\n      " + p.Doc + "\n")
	}
	return b.String()
}

func (r *ruleText) register(cmd *cobra.Command) {
	f := cmd.Flags()
	f.SortFlags = false
	f.IntVar(&r.priority, "rule-priority", 0, "rules with smaller numbers are asked first")
	f.StringVar(&r.predicates, "predicates", "[]", "the conditions, as JSON; [] concerns every job")
	f.StringVar(&r.action, "action", "CONTINUE", "what to do with jobs that the rule applies to")
	r.labels.register(cmd)
	actions := []string{"ACCEPT", "PAUSE", "REJECT", "CONTINUE", "RATE_LIMIT 1"}
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
		return nil, usage("--action RATE_LIMIT takes how many jobs may be in flight at once, as in \"RATE_LIMIT 2\"; got %q", text)
	}
	if v, ok := parseJSON(text); ok && startsJSON(text) {
		return json.Marshal(v)
	}
	return json.Marshal(text)
}

// rulePriority is the priority of a rule. --priority means it here, as the
// classic tool has it.
func (r *ruleText) rulePriority(sh *shell) (int, error) {
	if sh.flags.priority == "" {
		return r.priority, nil
	}
	if r.priority != 0 {
		return 0, usage("--priority and --rule-priority mean the same here; give one")
	}
	n, ok := numberValue(sh.flags.priority).(int64)
	if !ok {
		return 0, usage("--priority of a rule must be a whole number, got %q", sh.flags.priority)
	}
	return int(n), nil
}

// putFilters adds rules, or replaces the one that is named; all or none. The
// classic tool's request is the reference's own.
func (sh *shell) putFilters(cmd *cobra.Command, replaced string, args []string, r *ruleText, expect string) error {
	rules, err := sh.givenRules(cmd, args, r)
	if err != nil {
		return err
	}
	if sh.persona.classic() {
		return sh.putClassic(cmd.Context(), replaced, rules[0])
	}
	edits := make([]ruleEdit, len(rules))
	for i, object := range rules {
		if err := sh.sureAboutAll(object); err != nil {
			return err
		}
		edits[i] = ruleEdit{Do: jobfilter.Put, Parts: object}
	}
	edits[0].Rule = replaced
	return sh.editRules(cmd.Context(), edits, expect)
}

func (sh *shell) putClassic(ctx context.Context, replaced string, rule map[string]any) error {
	var uuid any
	if replaced != "" {
		uuid = replaced
	}
	var made string
	err := sh.do(ctx, "ReplaceFilter", &made, uuid, rule["priority"], rule["predicates"], rule["action"], rule["reason"])
	if err != nil {
		return err
	}
	return sh.show(map[string]string{"uuid": made}, func() error { return sh.printf("%s\n", made) })
}

// sureAboutAll asks on a terminal whether a rule is meant that holds or rejects
// every job there is; elsewhere the controller's warning has to do.
func (sh *shell) sureAboutAll(object map[string]any) error {
	text, err := json.Marshal(object)
	if err != nil {
		return err
	}
	rule, err := jobfilter.ParseRule(text)
	if err != nil || sh.flags.dryRun || !sh.person || len(rule.Predicates) > 0 || rule.Shadow {
		return nil //nolint:nilerr // the controller says what is wrong with it
	}
	switch rule.Action.Kind {
	case jobfilter.Reject:
		return sh.confirm("This rule cancels every job that waits and refuses all that come. Go on?")
	case jobfilter.Pause:
		return sh.confirm("This rule holds every job that has not begun and all that come. Go on?")
	default:
		return nil
	}
}

func filterAdd(sh *shell) *cobra.Command {
	var r ruleText
	var expect string
	cmd := &cobra.Command{
		Use: "add [RULE|FILE|-]...", Short: "Add rules", Args: cobra.ArbitraryArgs,
		Long: "Add a rule and print its UUID. It takes effect at once. " + ruleSource +
			"Several rules, or a list of them, are added all or none.\n" + ruleHelp,
		RunE: func(cmd *cobra.Command, args []string) error { return sh.putFilters(cmd, "", args, &r, expect) },
	}
	r.register(cmd)
	registerExpect(cmd, &expect)
	return cmd
}

func filterReplace(sh *shell) *cobra.Command {
	var r ruleText
	var expect string
	cmd := &cobra.Command{
		Use: "replace RULE [NEW|FILE|-]", Short: "Replace all parts of a rule", Args: between(1, 2),
		Long: "Replace a rule. Parts that are not given get their defaults, not their old values.\n" +
			ruleSource + ruleHelp,
		ValidArgsFunction: sh.completeNames("filter", false),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 && !cmd.Flags().Changed("action") && !sh.persona.classic() {
				return usage("a whole rule takes the place of %s: give its --action, and --predicates, or change parts of it by drover filter modify", args[0])
			}
			uuid, err := sh.ruleUUID(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return sh.putFilters(cmd, uuid, args[1:], &r, expect)
		},
	}
	r.register(cmd)
	registerExpect(cmd, &expect)
	return cmd
}

func filterDelete(sh *shell) *cobra.Command {
	var expect string
	cmd := &cobra.Command{
		Use: "delete RULE...", Short: "Remove rules", Args: atLeast(1),
		Long:              "Remove rules, all or none. RULE is a UUID, a name, or the beginning of either.",
		ValidArgsFunction: sh.completeNames("filter", true),
	}
	registerExpect(cmd, &expect)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		uuids, edits := make([]string, len(args)), make([]ruleEdit, len(args))
		for i, ref := range args {
			var err error
			if uuids[i], err = sh.ruleUUID(cmd.Context(), ref); err != nil {
				return err
			}
			edits[i] = ruleEdit{Do: jobfilter.Delete, Rule: uuids[i]}
		}
		switch {
		case sh.flags.dryRun:
			return sh.testRules(cmd.Context(), edits, ruleTest{expect: expect})
		case sh.persona.classic():
			for _, uuid := range uuids {
				if err := sh.do(cmd.Context(), "DeleteFilter", nil, uuid, sh.userTrail()); err != nil {
					return err
				}
			}
			return nil
		}
		_, err := sh.changeRules(cmd.Context(), edits, expect)
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

func filterInfo(sh *shell) *cobra.Command {
	return &cobra.Command{
		Use: "info [RULE...]", Short: "Show rules", Args: cobra.ArbitraryArgs,
		ValidArgsFunction: sh.completeNames("filter", true),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !sh.persona.classic() {
				return sh.ruleInfo(cmd.Context(), args)
			}
			found := []ruleRow{}
			if err := sh.ask(cmd.Context(), "QueryFilters", &found, nonNil(args), ruleFields); err != nil {
				return err
			}
			return sh.show(found, func() error {
				for _, r := range found {
					if err := sh.printRule(r); err != nil {
						return err
					}
				}
				return nil
			})
		},
	}
}

func nonNil(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}

func (sh *shell) printRule(r ruleRow) error {
	return sh.printf("UUID: %s\n  Watermark: %d\n  Priority: %d\n  Predicates: %s\n  Action: %s\n  Reason trail: %s\n",
		r.UUID, r.Watermark, r.Priority, listing.Str(r.Predicates), listing.Str(r.Action), listing.Str(r.Reason))
}
