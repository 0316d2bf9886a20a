package jobfilter

import (
	"bytes"
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/intake"
	"github.com/drover-project/drover/internal/qlang"
	"github.com/drover-project/drover/internal/reason"
)

// ruleKeys are the keys of a rule as clients write it, and the types that the
// reference's messages name.
var ruleKeys = map[string]string{
	"priority": "int", "predicates": "list", "action": "", "reason": "list",
	"name": "str", "comment": "str", "until": "str", "shadow": "bool",
}

// ParseRule reads a rule as clients write it, a JSON object with the optional
// keys priority (default 0), predicates ([]), action ("CONTINUE"), reason ([]),
// and our own name, comment, until and shadow. UUID and watermark stay empty:
// they are not the client's to say. An error names the place of the fault;
// where the reference has a message, it is that one.
func ParseRule(body []byte) (Rule, error) {
	return overlay(Rule{Action: Action{Kind: Continue}, Predicates: []Predicate{}}, body)
}

// Modify returns a rule with the parts that a client gives, in the form of
// ParseRule, in place of its own. What is not given stays, also the watermark.
// The reason is added to the end of the rule's trail.
func Modify(r Rule, body []byte) (Rule, error) {
	before := r.Reason
	r.Reason = nil
	out, err := overlay(r, body)
	out.Reason = before.Append(out.Reason...)
	return out, err
}

// overlay puts the parts that body gives in place of those of the rule.
func overlay(r Rule, body []byte) (Rule, error) {
	var keys map[string]json.RawMessage
	if err := intake.Read(body, &keys); err != nil || keys == nil {
		switch {
		case !json.Valid(body):
			return r, fault.New(fault.Invalid, "Unable to parse JSON data")
		case bytes.HasPrefix(bytes.TrimSpace(body), []byte("{")):
			return r, err
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
		if r.Reason, err = ParseReason(raw); err != nil {
			return r, err
		}
	}
	return r, r.label(keys)
}

// The limits of what people call a rule and say about it.
const (
	maxName    = 64
	maxComment = 4096
)

// label reads the parts of a rule that are our own.
func (r *Rule) label(keys map[string]json.RawMessage) error {
	var until string
	for _, part := range []struct {
		key string
		to  any
	}{{"name", &r.Name}, {"comment", &r.Comment}, {"shadow", &r.Shadow}, {"until", &until}} {
		raw, ok := keys[part.key]
		if !ok {
			continue
		}
		if err := json.Unmarshal(raw, part.to); err != nil {
			return fault.New(fault.Invalid, "%s cannot be read: %w", part.key, err).At(part.key)
		}
	}
	if _, ok := keys["until"]; ok {
		var err error
		if r.Until, err = parseUntil(until); err != nil {
			return err
		}
	}
	if r.Name != "" {
		if err := checkName(r.Name); err != nil {
			return err
		}
	}
	if len(r.Comment) > maxComment {
		return fault.New(fault.TooLarge, "a comment may have at most %d bytes, this one has %d", maxComment, len(r.Comment)).At("comment")
	}
	return nil
}

// parseUntil reads a moment; an empty text is none.
func parseUntil(text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return t, fault.New(fault.Invalid, "until is no moment: %q", clip(text)).At("until").
			WithHint("write it as 2026-11-22T14:00:00Z, with an offset as in 2026-11-22T14:00:00+01:00, or \"\" for no end")
	}
	return t.UTC(), nil
}

// checkName refuses names that are hard to type, to read in a list, or to tell
// from a UUID.
func checkName(name string) error {
	bad := func(format string, args ...any) error {
		return fault.New(fault.Invalid, "the name %q of a filter rule "+format, append([]any{clip(name)}, args...)...).At("name").
			WithHint("names have letters, digits, dots, dashes and underscores, and begin with a letter")
	}
	if len(name) > maxName {
		return bad("has %d bytes, at most %d are allowed", len(name), maxName)
	}
	for i := range len(name) {
		c := name[i]
		letter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
		if !letter && (i == 0 || !('0' <= c && c <= '9' || strings.IndexByte("._-", c) >= 0)) {
			return bad("has %q at byte %d", c, i)
		}
	}
	if CheckUUID(name) == nil {
		return bad("looks like a UUID")
	}
	return nil
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
