package query

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/reason"
)

// Values of cells are of these Go types: nil, bool, string, int64, float64,
// []string, cluster.Tags, []any, map[string]any, cluster.Params,
// map[string]cluster.Params, json.RawMessage, []json.RawMessage, [2]int64 (a
// time as seconds and microseconds), nanos, ordered, reason.Trail.

// AppendValue appends a value as JSON.
func AppendValue(dst []byte, v any) []byte {
	switch v := v.(type) {
	case nil:
		return append(dst, "null"...)
	case bool:
		return strconv.AppendBool(dst, v)
	case string:
		return appendString(dst, v)
	case int64:
		return strconv.AppendInt(dst, v, 10)
	case int:
		return strconv.AppendInt(dst, int64(v), 10)
	case float64:
		return appendFloat(dst, v)
	case Nanos:
		return v.append(dst)
	case [2]int64:
		dst = strconv.AppendInt(append(dst, '['), v[0], 10)
		return append(strconv.AppendInt(append(dst, ','), v[1], 10), ']')
	case []string:
		return appendList(dst, v, appendString)
	case cluster.Tags:
		return appendList(dst, v, appendString)
	case []any:
		return appendList(dst, v, AppendValue)
	case json.RawMessage:
		return append(dst, v...)
	case []json.RawMessage:
		return appendList(dst, v, func(b []byte, raw json.RawMessage) []byte { return append(b, raw...) })
	case map[string]any:
		return appendMap(dst, v)
	case cluster.Params:
		return appendMap(dst, v)
	case map[string]cluster.Params:
		return appendMap(dst, v)
	case Ordered:
		return v.append(dst)
	case reason.Trail:
		return appendList(dst, v, appendEntry)
	}
	return appendOther(dst, v)
}

// Ordered is an object whose keys come in an order of their own: the command
// line shows some objects as they come.
type Ordered struct {
	Keys   []string // all keys that may occur, in order
	Values cluster.Params
}

func (o Ordered) append(dst []byte) []byte {
	dst = append(dst, '{')
	for _, k := range o.Keys {
		v, ok := o.Values[k]
		if !ok {
			continue
		}
		if dst[len(dst)-1] != '{' {
			dst = append(dst, ',')
		}
		dst = append(appendString(dst, k), ':')
		dst = AppendValue(dst, v)
	}
	return append(dst, '}')
}

// appendOther encodes types outside the list above, which only callers with
// values of their own use.
func appendOther(dst []byte, v any) []byte {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return appendString(dst, fmt.Sprint(v))
	}
	return append(dst, bytes.TrimSuffix(buf.Bytes(), []byte("\n"))...)
}

func appendList[T any, L ~[]T](dst []byte, list L, one func([]byte, T) []byte) []byte {
	dst = append(dst, '[')
	for i, e := range list {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = one(dst, e)
	}
	return append(dst, ']')
}

func appendMap[T any, M ~map[string]T](dst []byte, m M) []byte {
	var room [64]string
	keys := room[:0]
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	dst = append(dst, '{')
	for i, k := range keys {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(appendString(dst, k), ':')
		dst = AppendValue(dst, m[k])
	}
	return append(dst, '}')
}

func appendEntry(dst []byte, e reason.Entry) []byte {
	dst = appendString(append(dst, '['), e.Source)
	dst = appendString(append(dst, ','), e.Reason)
	return append(strconv.AppendInt(append(dst, ','), e.Time, 10), ']')
}

// appendFloat writes whole numbers without a point.
func appendFloat(dst []byte, f float64) []byte {
	format := byte('f')
	if f > 1e21 || f < -1e21 {
		format = 'e'
	}
	return strconv.AppendFloat(dst, f, format, -1, 64)
}

const hexDigits = "0123456789abcdef"

// appendString writes a JSON string; bytes that are no UTF-8 become U+FFFD.
func appendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c < utf8.RuneSelf {
			if c >= ' ' && c != '"' && c != '\\' {
				i++
				continue
			}
			dst = appendEscaped(append(dst, s[start:i]...), c)
			i++
			start = i
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && size == 1 {
			dst = append(append(dst, s[start:i]...), "\ufffd"...)
			i++
			start = i
			continue
		}
		i += size
	}
	return append(append(dst, s[start:]...), '"')
}

func appendEscaped(dst []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(dst, '\\', c)
	case '\n':
		return append(dst, '\\', 'n')
	case '\r':
		return append(dst, '\\', 'r')
	case '\t':
		return append(dst, '\\', 't')
	}
	return append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
}

// generic returns the value with lists as []any and objects as map[string]any.
func generic(v any) any {
	switch v := v.(type) {
	case nil, bool, string, int64, float64, Nanos, []any, map[string]any:
		return v
	case int:
		return int64(v)
	case [2]int64:
		return []any{v[0], v[1]}
	case []string:
		return anyList(v)
	case cluster.Tags:
		return anyList(v)
	}
	return decode(AppendValue(nil, v))
}

func anyList[L ~[]string](list L) []any {
	out := make([]any, len(list))
	for i, s := range list {
		out[i] = s
	}
	return out
}

func decode(data []byte) any {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return string(data)
	}
	return cluster.Canonical(v)
}

// showLimit is how much of a value an error message shows, in bytes.
const showLimit = 300

// show writes a value for an error message: JSON with a space after each comma
// and colon.
func show(v any) string {
	b := appendSpaced(nil, generic(v))
	if len(b) > showLimit {
		return string(bytes.ToValidUTF8(b[:showLimit], nil)) + "..."
	}
	return string(b)
}

func appendSpaced(dst []byte, v any) []byte {
	switch v := v.(type) {
	case []any:
		dst = append(dst, '[')
		for i, e := range v {
			if i > 0 {
				dst = append(dst, ", "...)
			}
			dst = appendSpaced(dst, generic(e))
		}
		return append(dst, ']')
	case map[string]any:
		keys := make([]string, 0, len(v))
		for k := range v {
			keys = append(keys, k)
		}
		slices.Sort(keys)
		dst = append(dst, '{')
		for i, k := range keys {
			if i > 0 {
				dst = append(dst, ", "...)
			}
			dst = append(appendString(dst, k), ": "...)
			dst = appendSpaced(dst, generic(v[k]))
		}
		return append(dst, '}')
	}
	return AppendValue(dst, v)
}
