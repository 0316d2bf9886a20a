package cli

import (
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"strings"

	"github.com/drover-project/drover/internal/opcode"
)

// paramValue turns the text of an option or of KEY=VALUE into the value of an
// opcode's parameter. Text that begins like a JSON list or object is JSON;
// other text is read by the parameter's type: lists as a,b,c and objects as
// k=v,k=v. What does not fit stays text, for the opcode's own check to refuse
// with the parameter's name.
func paramValue(p *opcode.Param, text string) any {
	if v, ok := parseJSON(text); ok && startsJSON(text) {
		return v
	}
	switch kindOf(p) {
	case kindBool:
		return boolValue(text)
	case kindNumber:
		return numberValue(text)
	case kindList:
		return listValue(text)
	case kindObject:
		return objectValue(text)
	case kindAny:
		if v, ok := parseJSON(text); ok {
			return v
		}
	}
	return text
}

// The kinds of values that command lines tell apart, as help texts name them.
const (
	kindBool   = "bool"
	kindNumber = "number"
	kindList   = "a,b"
	kindObject = "k=v"
	kindAny    = "json"
	kindText   = "text"
)

// kindPrefixes lead from the names of types to kinds.
var kindPrefixes = []struct{ prefix, kind string }{
	{"bool", kindBool}, {"int", kindNumber}, {"float", kindNumber}, {"enum OpSubmitPriority", kindNumber},
	{"list", kindList}, {"object", kindObject}, {"any", kindAny},
}

func kindOf(p *opcode.Param) string {
	name := strings.TrimPrefix(p.Type.String(), "optional ")
	for _, k := range kindPrefixes {
		if strings.HasPrefix(name, k.prefix) {
			return k.kind
		}
	}
	return kindText
}

// paramText is an option that holds the text of a parameter.
type paramText struct{ kind, text string }

// String returns the text.
func (p *paramText) String() string { return p.text }

// Set takes any text; the opcode's check says whether it fits.
func (p *paramText) Set(text string) error {
	p.text = text
	return nil
}

// Type names the kind in help texts.
func (p *paramText) Type() string { return p.kind }

func startsJSON(text string) bool {
	trimmed := strings.TrimSpace(text)
	return strings.HasPrefix(trimmed, "[") || strings.HasPrefix(trimmed, "{") || trimmed == "null"
}

// parseJSON reads one JSON value, with numbers as they are written.
func parseJSON(text string) (any, bool) {
	dec := json.NewDecoder(strings.NewReader(text))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, false
	}
	_, err := dec.Token()
	return v, errors.Is(err, io.EOF)
}

func boolValue(text string) any {
	switch strings.ToLower(text) {
	case "true", "yes", "on", "1":
		return true
	case "false", "no", "off", "0":
		return false
	default:
		return text
	}
}

func numberValue(text string) any {
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

// objectValue reads k=v,k=v. A key without a value is true, and one with "no_"
// before it is false: so operators write backend and hypervisor parameters. A
// comma that belongs to a value is written \,.
func objectValue(text string) any {
	out := map[string]any{}
	for _, item := range splitEscaped(text) {
		if item == "" {
			continue
		}
		key, value, given := strings.Cut(item, "=")
		switch {
		case given:
			out[key] = scalar(value)
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
	return numberValue(text)
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

// mebibytes reads a size with an optional unit (m, g, t; mebibytes without
// one), rounded up to whole mebibytes. The second result is false for anything
// else.
func mebibytes(text string) (int64, bool) {
	factor, digits := 1.0, strings.ToLower(strings.TrimSpace(text))
	digits = strings.TrimSuffix(strings.TrimSuffix(digits, "ib"), "b")
	for unit, f := range map[string]float64{"m": 1, "g": 1 << 10, "t": 1 << 20} {
		if rest, ok := strings.CutSuffix(digits, unit); ok {
			factor, digits = f, rest
			break
		}
	}
	n, err := strconv.ParseFloat(strings.TrimSpace(digits), 64)
	if err != nil || !(n >= 0 && n*factor <= 1<<50) { // so that NaN is refused too
		return 0, false
	}
	size := int64(n * factor)
	if float64(size) < n*factor {
		size++
	}
	return size, true
}
