package cli

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover/internal/fault"
)

// Where the rules come from that a command line describes: options make one, and
// arguments any number, each as JSON, in a file or on standard input.

// givenRules are the rules that a command line describes, as the parts that
// jobfilter.ParseRule reads; there is one at least.
func (sh *shell) givenRules(cmd *cobra.Command, args []string, r *ruleText) ([]map[string]any, error) {
	if len(args) == 0 {
		rule, err := r.object(sh, cmd)
		return []map[string]any{rule}, err
	}
	for _, name := range ruleParts {
		if cmd.Flags().Changed(name) {
			return nil, usage("a rule is described by options or by an argument: --%s goes with no argument", name)
		}
	}
	var out []map[string]any
	for _, arg := range args {
		rules, err := sh.readRules(arg)
		if err != nil {
			return nil, err
		}
		out = append(out, rules...)
	}
	if len(out) == 0 {
		return nil, usage("there is no rule in %s", strings.Join(args, ", "))
	}
	return out, nil
}

// ruleParts are the options that describe a rule. --reason is none: it says why
// the rules of the arguments are added, too.
var ruleParts = []string{"priority", "rule-priority", "predicates", "action", "name", "comment", "until", "shadow"}

// object is the rule that options describe.
func (r *ruleText) object(sh *shell, cmd *cobra.Command) (map[string]any, error) {
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
	rule := map[string]any{"priority": priority, "predicates": json.RawMessage(r.predicates), "action": action, "reason": sh.userTrail()}
	return rule, r.labels.given(sh, cmd, rule)
}

// readRules reads the rules of an argument: JSON itself, a file or "-", with one
// rule or a list of them.
func (sh *shell) readRules(arg string) ([]map[string]any, error) {
	text := []byte(arg)
	if trimmed := strings.TrimSpace(arg); !strings.HasPrefix(trimmed, "{") && !strings.HasPrefix(trimmed, "[") {
		var err error
		if text, err = sh.read(arg); err != nil {
			return nil, err
		}
	}
	v, ok := parseJSON(string(text))
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
		if out[i], err = sh.asGiven(rule); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// asGiven are the parts of a rule that was read. What lists show of a rule beside
// its parts is left out, so that what was listed can be added again.
func (sh *shell) asGiven(rule map[string]any) (map[string]any, error) {
	out := map[string]any{"priority": 0, "predicates": []any{}, "action": "CONTINUE", "reason": []any{}}
	for key, value := range rule {
		part, known := partOf[key]
		switch {
		case !known:
			return nil, usage("a filter rule has no key %q; it has %s", key, strings.Join(slices.Sorted(maps.Keys(partOf)), ", "))
		case part != "" && value != nil:
			out[part] = value
		}
	}
	if trail, isList := out["reason"].([]any); isList {
		for _, e := range sh.userTrail() {
			trail = append(trail, e)
		}
		out["reason"] = trail
	}
	return out, nil
}

// partOf says which part of a rule a key sets; empty for what a rule shows and
// nobody can give.
var partOf = map[string]string{
	"priority": "priority", "predicates": "predicates", "action": "action", "reason": "reason", "reason_trail": "reason",
	"name": "name", "comment": "comment", "until": "until", "shadow": "shadow", "uuid": "", "watermark": "",
}
