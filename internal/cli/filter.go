package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover/internal/cli/listing"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/jobfilter"
)

func filterCommand(sh *shell) *cobra.Command {
	return sh.group("filter", "Rules that hold, reject or limit jobs",
		listCommand(sh, filterList), fieldsCommand(sh, filterList),
		heeding(ruleOptions, filterAdd(sh)), heeding(ruleOptions, filterReplace(sh)), heeding(ruleOptions, filterModify(sh)),
		heeding(changing, filterDelete(sh)),
		filterInfo(sh), heeding([]string{"luxi", "output", "reason", "priority"}, filterTest(sh)))
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
	"with the keys priority, predicates, action and reason, a file with it, or - for\nstandard input.\n"

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

// parts are the arguments of ReplaceFilter behind the UUID.
func (r *ruleText) parts(sh *shell) ([]any, error) {
	priority, err := r.rulePriority(sh)
	if err != nil {
		return nil, err
	}
	if _, ok := parseJSON(r.predicates); !ok {
		var probe any
		return nil, usage("--predicates is not JSON: %v", json.Unmarshal([]byte(r.predicates), &probe))
	}
	action, err := actionJSON(r.action)
	if err != nil {
		return nil, err
	}
	return []any{priority, json.RawMessage(r.predicates), action, sh.userTrail()}, nil
}

// warn tells about parts of a rule that hardly mean what they say.
func (sh *shell) warn(parts []any) {
	rule := jobfilter.Rule{}
	text, _ := parts[1].(json.RawMessage)
	var err error
	if rule.Predicates, err = jobfilter.ParsePredicates(text); err != nil {
		return // the controller says so
	}
	for _, w := range jobfilter.Check(&rule) {
		sh.notef("warning: %s\n", w)
	}
}

// ruleParts are the parts of a rule that is given as JSON or in a file, or by
// options.
func (sh *shell) ruleParts(args []string, r *ruleText) ([]any, error) {
	if len(args) == 0 {
		return r.parts(sh)
	}
	rule, err := sh.readRule(args[0])
	if err != nil {
		return nil, err
	}
	parts := []any{0, json.RawMessage("[]"), json.RawMessage(`"CONTINUE"`), sh.userTrail()}
	for i, key := range []string{"priority", "predicates", "action", "reason"} {
		value, given := rule[key]
		if !given {
			continue
		}
		text, err := json.Marshal(value)
		if err != nil {
			return nil, err
		}
		parts[i] = json.RawMessage(text)
		delete(rule, key)
	}
	for key := range rule {
		return nil, usage("a filter rule has no key %q; it has priority, predicates, action and reason", key)
	}
	return parts, nil
}

// putFilter adds a rule (a nil UUID), or replaces one. Without labels it is the
// reference's own request.
func (sh *shell) putFilter(cmd *cobra.Command, uuid any, args []string, r *ruleText) error {
	ctx := cmd.Context()
	parts, err := sh.ruleParts(args, r)
	if err != nil {
		return err
	}
	object := ruleObject(parts)
	before := len(object)
	if err := r.labels.given(sh, cmd, object); err != nil {
		return err
	}
	if err := sh.sureAboutAll(object); err != nil {
		return err
	}
	if sh.flags.dryRun || len(object) > before {
		e := ruleEdit{Do: jobfilter.Put, Parts: object}
		e.Rule, _ = uuid.(string)
		return sh.editRules(ctx, e)
	}
	sh.warn(parts)
	var made string
	if err := sh.do(ctx, "ReplaceFilter", &made, append([]any{uuid}, parts...)...); err != nil {
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

// ruleObject is a rule as TestFilter reads it.
func ruleObject(parts []any) map[string]any {
	return map[string]any{"priority": parts[0], "predicates": parts[1], "action": parts[2], "reason": parts[3]}
}

func filterAdd(sh *shell) *cobra.Command {
	var r ruleText
	cmd := &cobra.Command{
		Use: "add [RULE|FILE|-]", Short: "Add a rule", Args: between(0, 1),
		Long: "Add a rule and print its UUID. It takes effect at once. " + ruleSource + ruleHelp,
		RunE: func(cmd *cobra.Command, args []string) error { return sh.putFilter(cmd, nil, args, &r) },
	}
	r.register(cmd)
	return cmd
}

func filterReplace(sh *shell) *cobra.Command {
	var r ruleText
	cmd := &cobra.Command{
		Use: "replace RULE [NEW|FILE|-]", Short: "Replace all parts of a rule", Args: between(1, 2),
		Long: "Replace a rule. Parts that are not given get their defaults, not their old values.\n" +
			ruleSource + ruleHelp,
		ValidArgsFunction: sh.completeNames("filter", false),
		RunE: func(cmd *cobra.Command, args []string) error {
			uuid, err := sh.ruleUUID(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return sh.putFilter(cmd, uuid, args[1:], &r)
		},
	}
	r.register(cmd)
	return cmd
}

func filterDelete(sh *shell) *cobra.Command {
	return &cobra.Command{
		Use: "delete RULE...", Short: "Remove rules", Args: atLeast(1),
		Long:              "Remove rules. RULE is a UUID, a name, or the beginning of either.",
		ValidArgsFunction: sh.completeNames("filter", true),
		RunE: func(cmd *cobra.Command, args []string) error {
			uuids := make([]string, len(args))
			for i, ref := range args {
				var err error
				if uuids[i], err = sh.ruleUUID(cmd.Context(), ref); err != nil {
					return err
				}
			}
			if sh.flags.dryRun {
				return sh.wouldDelete(cmd.Context(), uuids)
			}
			for _, uuid := range uuids {
				if err := sh.do(cmd.Context(), "DeleteFilter", nil, uuid, sh.userTrail()); err != nil {
					return err
				}
			}
			return nil
		},
	}
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
		Use: "info [UUID...]", Short: "Show rules", Args: cobra.ArbitraryArgs,
		ValidArgsFunction: sh.completeNames("filter", true),
		RunE: func(cmd *cobra.Command, args []string) error {
			found := []ruleRow{}
			if err := sh.ask(cmd.Context(), "QueryFilters", &found, nonNil(args), ruleFields); err != nil {
				return err
			}
			for _, uuid := range args {
				known := slices.ContainsFunc(found, func(r ruleRow) bool { return r.UUID == uuid })
				if !known && !sh.persona.classic() {
					return fault.New(fault.NotFound, "there is no filter rule %s", uuid)
				}
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

func filterTest(sh *shell) *cobra.Command {
	var r ruleText
	days := 0
	cmd := &cobra.Command{
		Use: "test [RULE|FILE|-]", Short: "Tell what a rule would do, without adding it",
		Long: "Tell what a rule would do to each job in the queue, and would have done to those of\n" +
			"the last days, without adding it. " + ruleSource + ruleHelp,
		Args: between(0, 1),
	}
	r.register(cmd)
	var replace, remove string
	cmd.Flags().IntVar(&days, "days", 0, "look at the jobs that ended in the last days too")
	cmd.Flags().StringVar(&replace, "replace", "", "the rule that it would replace: a UUID, a name, or the beginning of either")
	cmd.Flags().StringVar(&remove, "delete", "", "tell what the deletion of this rule would do instead")
	cmd.MarkFlagsMutuallyExclusive("replace", "delete")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if days < 0 {
			return usage("--days must be a number of days, got %d", days)
		}
		if remove != "" {
			return sh.testRule(cmd.Context(), []ruleEdit{{Do: jobfilter.Delete, Rule: remove}}, days)
		}
		parts, err := sh.ruleParts(args, &r)
		if err != nil {
			return err
		}
		object := ruleObject(parts)
		if err := r.labels.given(sh, cmd, object); err != nil {
			return err
		}
		return sh.testRule(cmd.Context(), []ruleEdit{{Do: jobfilter.Put, Rule: replace, Parts: object}}, days)
	}
	return cmd
}

// readRule reads a rule that is given as JSON or in a file. What a rule shows
// beside its parts (UUID, watermark, trail under its other name) is left out.
func (sh *shell) readRule(arg string) (map[string]any, error) {
	text := []byte(arg)
	if !strings.HasPrefix(strings.TrimSpace(arg), "{") {
		var err error
		if text, err = sh.read(arg); err != nil {
			return nil, err
		}
	}
	v, ok := parseJSON(string(text))
	rule, isMap := v.(map[string]any)
	if !ok || !isMap {
		return nil, fault.New(fault.Invalid, "a rule must be a JSON object, got %.60s", text)
	}
	if trail, ok := rule["reason_trail"]; ok {
		rule["reason"] = trail
	}
	for _, key := range []string{"uuid", "watermark", "reason_trail"} {
		delete(rule, key)
	}
	return rule, nil
}

func (sh *shell) testRule(ctx context.Context, edits []ruleEdit, days int) error {
	var text json.RawMessage
	if err := sh.ask(ctx, "TestFilter", &text, edits, days); err != nil {
		return err
	}
	return sh.show(text, func() error { return sh.printPreview(text) })
}
