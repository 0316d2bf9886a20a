package filters

import (
	"context"
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover/internal/cli/listing"
	"github.com/drover-project/drover/internal/cli/shell"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/jobfilter"
	"github.com/drover-project/drover/internal/reason"
)

// Where the rules come from that a command line describes: options make one, and
// arguments any number, each as JSON, in a file or on standard input.

// givenRules are the rules that a command line describes, as the parts that
// jobfilter.ParseRule reads; there is one at least.
func givenRules(sh *shell.Shell, cmd *cobra.Command, args []string, r *ruleText) ([]map[string]any, error) {
	if len(args) == 0 {
		rule, err := r.object(sh, cmd)
		return []map[string]any{rule}, err
	}
	if r.action == "RATE_LIMIT" && len(args) == 1 && wholeNumber.MatchString(args[0]) {
		return nil, &shell.ExitError{Status: shell.ExitUsage, Err: fault.New(fault.Invalid, "--action RATE_LIMIT takes how many jobs may be in flight at once").
			WithHint("in quotes, with its number: --action 'RATE_LIMIT %s'", args[0])}
	}
	for _, name := range ruleParts {
		if cmd.Flags().Changed(name) {
			return nil, shell.Usage("a rule is described by options or by an argument: --%s goes with no argument", name)
		}
	}
	var out []map[string]any
	for _, arg := range args {
		rules, err := readRules(sh, arg)
		if err != nil {
			return nil, err
		}
		out = append(out, rules...)
	}
	if len(out) == 0 {
		return nil, shell.Usage("there is no rule in %s", strings.Join(args, ", "))
	}
	return out, nil
}

var wholeNumber = regexp.MustCompile(`^\d+$`)

// placeRules gives rules without a priority one: that of the rule which each
// replaces, else one behind all that there are, ten apart, so that others fit
// between.
func placeRules(ctx context.Context, sh *shell.Shell, rules []map[string]any, replaced []string) error {
	if !slices.ContainsFunc(rules, func(r map[string]any) bool { return r["priority"] == nil }) {
		return nil
	}
	var found []ruleRow
	if err := sh.Ask(ctx, "QueryFilters", &found, []string{}, ruleFields); err != nil {
		return err
	}
	last := 0
	for _, r := range found {
		last = max(last, r.Priority)
	}
	for i, rule := range rules {
		if rule["priority"] != nil {
			continue
		}
		if i < len(replaced) && replaced[i] != "" {
			uuid, err := ruleUUID(ctx, sh, replaced[i])
			if err != nil {
				return err
			}
			if n := slices.IndexFunc(found, func(r ruleRow) bool { return r.UUID == uuid }); n >= 0 {
				rule["priority"] = found[n].Priority
				continue
			}
		}
		last = last/step*step + step
		rule["priority"] = last
	}
	return nil
}

// step lies between the priorities of rules that are added without one.
const step = 10

// ruleParts are the options that describe a rule. --reason is none: it says why
// the rules of the arguments are added, too.
var ruleParts = []string{"priority", "rule-priority", "when", "predicates", "all-jobs", "action", "name", "comment", "until", "shadow"}

// object is the rule that options describe. Which jobs it concerns, and what is to be
// done with them, has no default: a rule that says neither is a slip.
func (r *ruleText) object(sh *shell.Shell, cmd *cobra.Command) (map[string]any, error) {
	rule, err := r.given(sh, cmd)
	if err != nil {
		return nil, err
	}
	for part, value := range map[string]any{"priority": 0, "predicates": []any{}, "action": "CONTINUE"} {
		if rule[part] == nil && sh.Classic() {
			rule[part] = value
		}
	}
	switch {
	case rule["predicates"] == nil && rule["action"] == nil:
		return nil, shell.Usage("%s: which rule? Describe it by --when and --action, or give JSON or a file", cmd.CommandPath())
	case rule["predicates"] == nil:
		return nil, shell.Usage("%s: which jobs does the rule concern? Give --when CONDITION, --predicates JSON or --all-jobs", cmd.CommandPath())
	case rule["action"] == nil:
		return nil, shell.Usage("%s: what is to be done with these jobs? Give --action", cmd.CommandPath())
	}
	rule["reason"] = sh.UserTrail()
	return rule, nil
}

// given are the parts of a rule that options give.
func (r *ruleText) given(sh *shell.Shell, cmd *cobra.Command) (map[string]any, error) {
	f := cmd.Flags()
	rule := map[string]any{}
	if f.Changed("rule-priority") || sh.Flags.Priority != "" {
		priority, err := r.rulePriority(sh)
		if err != nil {
			return nil, err
		}
		rule["priority"] = priority
	}
	conditions, err := r.conditions(cmd)
	if err != nil {
		return nil, err
	}
	if conditions != nil {
		rule["predicates"] = conditions
	}
	if f.Changed("action") {
		if rule["action"], err = actionJSON(r.action); err != nil {
			return nil, err
		}
	}
	return rule, r.labels.given(sh, cmd, rule)
}

// conditions are the predicates that one of the options for them gives, nil for none.
func (r *ruleText) conditions(cmd *cobra.Command) (json.RawMessage, error) {
	var given []string
	for _, name := range []string{"when", "predicates", "all-jobs"} {
		if cmd.Flags().Changed(name) {
			given = append(given, "--"+name)
		}
	}
	switch {
	case len(given) > 1:
		return nil, shell.Usage("%s say the same; give one", strings.Join(given, " and "))
	case len(given) == 0 || given[0] == "--all-jobs" && !r.all:
		return nil, nil
	case r.all:
		return json.RawMessage("[]"), nil
	case given[0] == "--when":
		return whenJSON(r.when)
	}
	if _, ok := shell.ParseJSON(r.predicates); ok {
		return json.RawMessage(r.predicates), nil
	}
	var probe any
	err := json.Unmarshal([]byte(r.predicates), &probe)
	hint := "what lists of rules show is taken by --when"
	if strings.HasPrefix(strings.TrimSpace(r.predicates), "[") {
		hint = "JSON has double quotes; " + hint
	}
	return nil, &shell.ExitError{Status: shell.ExitUsage, Err: fault.New(fault.Invalid, "--predicates is not JSON: %v", err).WithHint("%s", hint)}
}

// whenJSON are the predicates of a text, as requests carry them.
func whenJSON(text string) (json.RawMessage, error) {
	predicates, err := jobfilter.ParseWhen(text)
	if err != nil {
		return nil, &shell.ExitError{Status: shell.ExitUsage, Err: err}
	}
	return json.Marshal(predicates)
}

// readRules reads the rules of an argument: JSON itself, a file or "-", with one
// rule or a list of them.
func readRules(sh *shell.Shell, arg string) ([]map[string]any, error) {
	text := []byte(arg)
	if trimmed := strings.TrimSpace(arg); !strings.HasPrefix(trimmed, "{") && !strings.HasPrefix(trimmed, "[") {
		var err error
		if text, err = sh.Read(arg); err != nil {
			return nil, err
		}
	}
	v, ok := shell.ParseJSON(string(text))
	list, isList := v.([]any)
	if !isList {
		list = []any{v}
	}
	out := make([]map[string]any, len(list))
	for i, item := range list {
		rule, isMap := item.(map[string]any)
		if !ok || !isMap {
			return nil, fault.New(fault.Invalid, "a rule must be a JSON object, got %.60s", text)
		}
		var err error
		if out[i], err = asGiven(sh, rule); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// asGiven are the parts of a rule that was read. What lists show of a rule beside
// its parts is left out, so that what was listed can be added again.
func asGiven(sh *shell.Shell, rule map[string]any) (map[string]any, error) {
	out := map[string]any{}
	if sh.Classic() {
		out = map[string]any{"predicates": []any{}, "action": "CONTINUE"}
	}
	for key, value := range rule {
		part, known := partOf[key]
		switch {
		case !known:
			return nil, shell.Usage("a filter rule has no key %q; it has %s", key, strings.Join(ruleKeys, ", "))
		case part != "" && value != nil:
			out[part] = value
		}
	}
	if text, given := out["when"]; given {
		conditions, err := conditionsOf(text, rule)
		if err != nil {
			return nil, err
		}
		delete(out, "when")
		out["predicates"] = conditions
	}
	switch {
	case out["predicates"] == nil:
		return nil, shell.Usage("a rule says which jobs it concerns: give when, or predicates, which are [] for every job; got %s", asWritten(rule))
	case out["action"] == nil:
		return nil, shell.Usage("a rule says what is to be done with its jobs: give its action; got %s", asWritten(rule))
	}
	if name := nameShown(rule); out["name"] == nil && name != "" {
		out["name"] = name
	}
	out["reason"] = reasonGiven(sh, rule)
	return out, nil
}

// asWritten is a rule in an error.
func asWritten(rule map[string]any) string {
	text, err := json.Marshal(rule)
	if err != nil {
		return ""
	}
	const longest = 200
	return listing.Cut(string(text), longest)
}

// conditionsOf are the predicates of a rule that says when.
func conditionsOf(when any, rule map[string]any) (json.RawMessage, error) {
	text, isText := when.(string)
	if !isText || rule["predicates"] != nil {
		return nil, shell.Usage("when is a text, and stands in place of predicates")
	}
	return whenJSON(text)
}

// nameShown is the name of a rule of a list, which shows what the rule is meant by: its
// name, or else the beginning of its UUID.
func nameShown(rule map[string]any) string {
	shown, _ := rule["rule"].(string)
	uuid, _ := rule["uuid"].(string)
	if uuid == "" || strings.HasPrefix(uuid, shown) {
		return ""
	}
	return shown
}

// reasonGiven is the trail of a rule that was read, without the hops that the
// controller added, and with why it is added now.
func reasonGiven(sh *shell.Shell, rule map[string]any) []any {
	trail := []any{}
	for _, key := range []string{"reason_trail", "reason"} {
		hops, isList := rule[key].([]any)
		if text, isText := rule[key].(string); isText && rule["reason_trail"] == nil {
			hops, isList = []any{[]any{reason.SourceUser, text, sh.Now().UnixNano()}}, true
		}
		if !isList {
			continue // lists show the reasons as one text, too, beside the trail
		}
		for _, hop := range hops {
			parts, _ := hop.([]any)
			if source, _ := first(parts).(string); !ofController(source) {
				trail = append(trail, hop)
			}
		}
		break
	}
	for _, e := range sh.UserTrail() {
		trail = append(trail, e)
	}
	return trail
}

func first(list []any) any {
	if len(list) == 0 {
		return nil
	}
	return list[0]
}

// ruleKeys are the keys that a rule may be given with.
var ruleKeys = []string{"name", "priority", "when", "predicates", "action", "reason", "comment", "until", "shadow"}

// partOf says which part of a rule a key sets; empty for what lists show of a rule
// and nobody can give, and for what is read in a way of its own.
var partOf = map[string]string{
	"priority": "priority", "when": "when", "predicates": "predicates", "action": "action", "reason": "", "reason_trail": "",
	"name": "name", "rule_name": "name", "comment": "comment", "until": "until", "shadow": "shadow", "uuid": "", "watermark": "",
	"rule": "", "action_text": "", "predicates_text": "", "held": "", "longest_hold": "", "decides": "", "would_hold": "", "changed": "", "added_by": "",
	"_missing": "",
}
