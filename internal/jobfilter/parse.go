package jobfilter

import (
	"bytes"
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/qlang"
	"github.com/drover-project/drover/internal/reason"
)

// ruleKeys are the keys of a rule as clients write it, and the types that the
// reference's messages name.
var ruleKeys = map[string]string{"priority": "int", "predicates": "list", "action": "", "reason": "list"}

// ParseRule reads a rule as clients write it, a JSON object with the optional
// keys priority (default 0), predicates ([]), action ("CONTINUE") and reason
// ([]). UUID and watermark stay empty: they are not the client's to say. An
// error names the place of the fault; where the reference has a message, it is
// that one.
func ParseRule(body []byte) (Rule, error) {
	r := Rule{Action: Action{Kind: Continue}, Predicates: []Predicate{}}
	var keys map[string]json.RawMessage
	if err := json.Unmarshal(body, &keys); err != nil || keys == nil {
		if !json.Valid(body) {
			return r, fault.New(fault.Invalid, "Unable to parse JSON data")
		}
		return r, fault.New(fault.Invalid, "Invalid body contents, not a dictionary").
			WithHint(`a filter rule is an object such as {"priority": 1, "predicates": [["jobid", [">", "id", "watermark"]]], "action": "PAUSE"}`)
	}
	if err := checkKeys(keys); err != nil {
		return r, err
	}
	var err error
	if raw, ok := keys["priority"]; ok {
		if r.Priority, err = ParsePriority(raw); err != nil {
			return r, err
		}
	}
	if raw, ok := keys["predicates"]; ok {
		if r.Predicates, err = ParsePredicates(raw); err != nil {
			return r, err
		}
	}
	if raw, ok := keys["action"]; ok {
		if r.Action, err = ParseAction(raw); err != nil {
			return r, err
		}
	}
	if raw, ok := keys["reason"]; ok {
		r.Reason, err = ParseReason(raw)
	}
	return r, err
}

// checkKeys refuses unknown keys and the wrong types of known ones.
func checkKeys(keys map[string]json.RawMessage) error {
	names := make([]string, 0, len(keys))
	for name := range keys {
		names = append(names, name)
	}
	slices.Sort(names)
	var known []string
	for name := range ruleKeys {
		known = append(known, name)
	}
	slices.Sort(known)
	for _, name := range names {
		want, ok := ruleKeys[name]
		if !ok {
			err := fault.New(fault.Invalid, "Invalid body parameters: filter rule doesn't support the parameter '%s'", clip(name)).At(name)
			if near := qlang.Suggest(name, slices.Values(known)); near != "" {
				return err.WithHint("did you mean %q?", near)
			}
			return err.WithHint("the parameters are %s", strings.Join(known, ", "))
		}
		if got := pythonType(keys[name]); want != "" && got != want {
			return fault.New(fault.Invalid, "'%s' parameter: Type is '%s', but '%s' is expected", name, got, want).At(name)
		}
	}
	return nil
}

// pythonType names the type of a JSON value as the reference's messages do.
func pythonType(raw []byte) string {
	raw = bytes.TrimSpace(raw)
	switch raw[0] {
	case '"':
		return "str"
	case '[':
		return "list"
	case '{':
		return "dict"
	case 't', 'f':
		return "bool"
	case 'n':
		return "NoneType"
	}
	if bytes.ContainsAny(raw, ".eE") {
		return "float"
	}
	return "int"
}

// ParsePriority reads the priority of a rule: a whole number that is not
// negative and fits 31 bits.
func ParsePriority(raw []byte) (int, error) {
	n, err := strconv.ParseInt(string(bytes.TrimSpace(raw)), 10, 64)
	switch {
	case err != nil:
		return 0, fault.New(fault.Invalid, "Unable to read Int").At("priority").
			WithHint("priority must be a whole number, got %s", clip(string(raw)))
	case n < 0:
		return 0, fault.New(fault.Invalid, "Invalid value for non-negative type '%d'", n).At("priority").
			WithHint("the smallest priority is 0")
	case n > math.MaxInt32:
		return 0, fault.New(fault.Invalid, "priority %d is too large; the largest is %d", n, math.MaxInt32).At("priority")
	}
	return int(n), nil
}

// ParseReason reads a reason trail: a list of triples.
func ParseReason(raw []byte) (reason.Trail, error) {
	var entries []json.RawMessage
	if err := json.Unmarshal(raw, &entries); err != nil {
		return nil, fault.New(fault.Invalid, "reason must be a list of [source, reason, nanoseconds], got %s", clip(string(raw))).At("reason")
	}
	trail := make(reason.Trail, len(entries))
	for i, e := range entries {
		if err := trail[i].UnmarshalJSON(e); err != nil {
			at := "reason[" + strconv.Itoa(i) + "]"
			return nil, fault.New(fault.Invalid, "%s: %w", at, err).At(at)
		}
	}
	return trail, nil
}
