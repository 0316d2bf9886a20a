package listing

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode"
)

// object is a JSON object with its keys in the order in which they came.
type object []member

type member struct {
	key   string
	value any
}

// decode reads JSON as nil, bool, json.Number, string, []any or object.
func decode(data []byte) (any, error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	return next(dec)
}

func next(dec *json.Decoder) (any, error) {
	tok, err := dec.Token()
	if err != nil {
		return nil, err
	}
	switch tok {
	case json.Delim('['):
		list := []any{}
		for dec.More() {
			v, err := next(dec)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		_, err := dec.Token()
		return list, err
	case json.Delim('{'):
		return nextObject(dec)
	}
	return tok, nil
}

func nextObject(dec *json.Decoder) (any, error) {
	o := object{}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return nil, err
		}
		v, err := next(dec)
		if err != nil {
			return nil, err
		}
		name, _ := key.(string)
		o = append(o, member{name, v})
	}
	_, err := dec.Token()
	return o, err
}

// number returns the value of a JSON number.
func number(v any) (float64, bool) {
	n, ok := v.(json.Number)
	if !ok {
		return 0, false
	}
	f, err := n.Float64()
	return f, err == nil
}

// Str writes a value as Python's str does: texts bare, everything else as Repr.
func Str(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	var b strings.Builder
	repr(&b, v)
	return b.String()
}

// repr writes a value as Python's repr does.
func repr(b *strings.Builder, v any) {
	switch v := v.(type) {
	case nil:
		b.WriteString("None")
	case bool:
		if v {
			b.WriteString("True")
		} else {
			b.WriteString("False")
		}
	case string:
		quote(b, v)
	case json.Number:
		b.WriteString(pythonNumber(v))
	case []any:
		b.WriteByte('[')
		for i, e := range v {
			if i > 0 {
				b.WriteString(", ")
			}
			repr(b, e)
		}
		b.WriteByte(']')
	case object:
		b.WriteByte('{')
		for i, m := range v {
			if i > 0 {
				b.WriteString(", ")
			}
			quote(b, m.key)
			b.WriteString(": ")
			repr(b, m.value)
		}
		b.WriteByte('}')
	}
}

// pythonNumber writes whole numbers as they are and others as Python does:
// the shortest digits, an exponent below 1e-4 and from 1e16 on.
func pythonNumber(n json.Number) string {
	text := n.String()
	if !strings.ContainsAny(text, ".eE") {
		return text
	}
	f, err := n.Float64()
	if err != nil {
		return text
	}
	if abs := math.Abs(f); abs != 0 && (abs < 1e-4 || abs >= 1e16) {
		return strconv.FormatFloat(f, 'e', -1, 64)
	}
	out := strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.Contains(out, ".") {
		out += ".0"
	}
	return out
}

// quote writes a text literal: single quotes unless only single ones occur in
// it, and escapes for what is not printable.
func quote(b *strings.Builder, s string) {
	mark := '\''
	if strings.ContainsRune(s, '\'') && !strings.ContainsRune(s, '"') {
		mark = '"'
	}
	b.WriteRune(mark)
	for _, r := range s {
		writeRune(b, r, mark)
	}
	b.WriteRune(mark)
}

func writeRune(b *strings.Builder, r, mark rune) {
	switch {
	case r == mark || r == '\\':
		b.WriteRune('\\')
		b.WriteRune(r)
	case r == '\n':
		b.WriteString(`\n`)
	case r == '\r':
		b.WriteString(`\r`)
	case r == '\t':
		b.WriteString(`\t`)
	case r == ' ' || unicode.IsPrint(r):
		b.WriteRune(r)
	case r < 0x100:
		fmt.Fprintf(b, `\x%02x`, r)
	case r < 0x10000:
		fmt.Fprintf(b, `\u%04x`, r)
	default:
		fmt.Fprintf(b, `\U%08x`, r)
	}
}
