package shell

import (
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"strings"

	"github.com/drover-project/drover/internal/opcode"
)

// ParamValue turns the text of an option or of KEY=VALUE into the value of an
// opcode's parameter. Text that begins like a JSON list or object is JSON;
// other text is read by the parameter's type: lists as a,b,c and objects as
// k=v,k=v. What does not fit stays text, for the opcode's own check to refuse
// with the parameter's name.
func ParamValue(p *opcode.Param, text string) any {
	if v, ok := ParseJSON(text); ok && StartsJSON(text) {
		return v
	}
	switch KindOf(p) {
	case KindBool:
		return BoolValue(text)
	case kindNumber:
		return NumberValue(text)
	case KindList:
		return listValue(text)
	case KindObject:
		if holdsTexts(p.Name) {
			return TextsValue(text)
		}
		return ObjectValue(text)
	case kindAny:
		if v, ok := ParseJSON(text); ok {
			return v
		}
	}
	return text
}

// holdsTexts reports whether the values of an object are sent as they are written. The controller knows their types by tables, and of one that is a text
// the spelling counts: cpu_type=486 is no number.
func holdsTexts(param string) bool {
	switch param {
	case "hvparams", "osparams", "osparams_private", "osparams_secret":
		return true
	}
	return false
}

// The kinds of values that command lines tell apart, as help texts name them.
const (
	KindBool   = "bool"
	kindNumber = "number"
	KindList   = "a,b"
	KindObject = "k=v"
	kindAny    = "json"
	kindText   = "text"
)

// kindPrefixes lead from the names of types to kinds.
var kindPrefixes = []struct{ prefix, kind string }{
	{"bool", KindBool}, {"int", kindNumber}, {"float", kindNumber}, {"enum OpSubmitPriority", kindNumber},
	{"list", KindList}, {"object", KindObject}, {"any", kindAny},
}

// KindOf returns the kind of value that a parameter takes.
func KindOf(p *opcode.Param) string {
	name := strings.TrimPrefix(p.Type.String(), "optional ")
	for _, k := range kindPrefixes {
		if strings.HasPrefix(name, k.prefix) {
			return k.kind
		}
	}
	return kindText
}

// ParamText is an option that holds the text of a parameter.
type ParamText struct{ Kind, Text string }

// String returns the text.
func (p *ParamText) String() string { return p.Text }

// Set takes any text; the opcode's check says whether it fits. A list that is given again gets longer.
func (p *ParamText) Set(text string) error {
	if p.Kind == KindList && p.Text != "" && !StartsJSON(p.Text) && !StartsJSON(text) {
		text = p.Text + "," + text
	}
	p.Text = text
	return nil
}

// Type names the kind in help texts.
func (p *ParamText) Type() string { return p.Kind }

// StartsJSON reports whether a text begins like a list or an object of JSON, or is null.
func StartsJSON(text string) bool {
	trimmed := strings.TrimSpace(text)
	return strings.HasPrefix(trimmed, "[") || strings.HasPrefix(trimmed, "{") || trimmed == "null"
}

// ParseJSON reads one JSON value, with numbers as they are written.
func ParseJSON(text string) (any, bool) {
	dec := json.NewDecoder(strings.NewReader(text))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, false
	}
	_, err := dec.Token()
	return v, errors.Is(err, io.EOF)
}

// BoolValue reads a truth value; any other text is returned as it is.
func BoolValue(text string) any {
	switch strings.ToLower(text) {
	case "true", "yes", "on", "1":
		return true
	case "false", "no", "off", "0":
		return false
	default:
		return text
	}
}

// NumberValue reads a number; any other text is returned as it is.
func NumberValue(text string) any {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return n
	}
	if f, err := strconv.ParseFloat(text, 64); err == nil {
		return f
	}
	return text
}

func listValue(text string) any {
	out := []any{}
	if text == "" {
		return out
	}
	for item := range strings.SplitSeq(text, ",") {
		if n, err := strconv.ParseInt(item, 10, 64); err == nil {
			out = append(out, n)
			continue
		}
		out = append(out, item)
	}
	return out
}

// ObjectValue reads k=v,k=v. A key without a value is true, and one with "no_"
// before it is false: so operators write backend and hypervisor parameters. A
// comma that belongs to a value is written \,.
func ObjectValue(text string) any { return object(text, scalar) }

// TextsValue is ObjectValue for objects whose values are texts, also those that look like numbers or booleans.
func TextsValue(text string) any {
	return object(text, func(value string) any { return value })
}

func object(text string, read func(value string) any) any {
	out := map[string]any{}
	for _, item := range splitEscaped(text) {
		if item == "" {
			continue
		}
		key, value, given := strings.Cut(item, "=")
		switch {
		case given:
			out[key] = read(value)
		case strings.HasPrefix(key, "no_"):
			out[strings.TrimPrefix(key, "no_")] = false
		default:
			out[key] = true
		}
	}
	return out
}

// scalar reads a value without a type: a number or a boolean if it looks like
// one, "default" and "none" in their special spellings, else text.
func scalar(text string) any {
	switch strings.ToLower(text) {
	case "true":
		return true
	case "false":
		return false
	}
	return NumberValue(text)
}

// splitEscaped splits at commas that have no backslash before them.
func splitEscaped(text string) []string {
	const mark = "\x00"
	parts := strings.Split(strings.ReplaceAll(text, `\,`, mark), ",")
	for i := range parts {
		parts[i] = strings.ReplaceAll(parts[i], mark, ",")
	}
	return parts
}

// ageUnits are the seconds in a unit of time.
var ageUnits = map[byte]int64{'s': 1, 'm': 60, 'h': 3600, 'd': 86400, 'w': 7 * 86400}

// AgeOf reads an age in seconds; all ages are over that of "all", -1.
func AgeOf(text string) (int64, error) {
	if text == "all" {
		return -1, nil
	}
	digits, factor := text, int64(1)
	if n := len(text); n > 0 && ageUnits[text[n-1]] != 0 {
		digits, factor = text[:n-1], ageUnits[text[n-1]]
	}
	n, err := strconv.ParseInt(digits, 10, 32)
	if err != nil || n < 0 {
		return 0, Usage("an age is a number with an optional s, m, h, d or w, or \"all\"; got %q", text)
	}
	return n * factor, nil
}

// NonNil returns the list, or an empty one for nil, which JSON writes as [].
func NonNil(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}
