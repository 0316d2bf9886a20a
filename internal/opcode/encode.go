package opcode

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/drover-project/drover/internal/reason"
)

// MarshalJSON returns the wire form.
func (o *Opcode) MarshalJSON() ([]byte, error) {
	return o.AppendJSON(make([]byte, 0, 256)), nil
}

// AppendJSON appends the wire form to dst: OP_ID, the opcode's own parameters
// in the order of its definition (unset ones are left out), then the common
// ones, of which debug_level, priority, depends, comment and reason are always there.
func (o *Opcode) AppendJSON(dst []byte) []byte {
	dst = append(dst, `{"OP_ID":`...)
	dst = appendString(dst, o.ID)
	if d := o.Definition(); d != nil {
		for i := range d.Params {
			name := d.Params[i].Name
			if v, ok := o.Params[name]; ok {
				dst = append(dst, ',', '"')
				dst = append(append(dst, name...), '"', ':')
				dst = appendValue(dst, v)
			}
		}
	}
	return append(o.appendCommon(dst), '}')
}

func (o *Opcode) appendCommon(dst []byte) []byte {
	if o.DryRun || o.dryRunGiven {
		dst = append(dst, `,"dry_run":`...)
		dst = strconv.AppendBool(dst, o.DryRun)
	}
	dst = append(dst, `,"debug_level":`...)
	dst = strconv.AppendInt(dst, int64(o.DebugLevel), 10)
	dst = append(dst, `,"priority":`...)
	dst = strconv.AppendInt(dst, int64(o.Priority), 10)
	dst = append(dst, `,"depends":`...)
	dst = appendDepends(dst, o.Depends)
	dst = append(dst, `,"comment":`...)
	if o.Comment == nil {
		dst = append(dst, "null"...)
	} else {
		dst = appendString(dst, *o.Comment)
	}
	dst = append(dst, `,"reason":`...)
	return appendTrail(dst, o.Reason)
}

func appendDepends(dst []byte, depends []Dependency) []byte {
	if depends == nil {
		return append(dst, "null"...)
	}
	dst = append(dst, '[')
	for i, d := range depends {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = d.appendJSON(dst)
	}
	return append(dst, ']')
}

func (d Dependency) appendJSON(dst []byte) []byte {
	dst = append(dst, '[')
	dst = strconv.AppendInt(dst, d.Job, 10)
	dst = append(dst, ',', '[')
	for i, s := range d.Statuses {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendString(dst, s)
	}
	return append(dst, ']', ']')
}

// MarshalJSON writes the pair [job id, [statuses]].
func (d Dependency) MarshalJSON() ([]byte, error) { return d.appendJSON(nil), nil }

func appendTrail(dst []byte, trail reason.Trail) []byte {
	dst = append(dst, '[')
	for i, e := range trail {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, '[')
		dst = appendString(dst, e.Source)
		dst = append(dst, ',')
		dst = appendString(dst, e.Reason)
		dst = append(dst, ',')
		dst = strconv.AppendInt(dst, e.Time, 10)
		dst = append(dst, ']')
	}
	return append(dst, ']')
}

func appendValue(dst []byte, v any) []byte {
	switch v := v.(type) {
	case nil:
		return append(dst, "null"...)
	case bool:
		return strconv.AppendBool(dst, v)
	case string:
		return appendString(dst, v)
	case int64:
		return strconv.AppendInt(dst, v, 10)
	case float64:
		return appendFloat(dst, v)
	case []any:
		dst = append(dst, '[')
		for i, item := range v {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendValue(dst, item)
		}
		return append(dst, ']')
	case map[string]any:
		return appendObject(dst, v)
	}
	// Values of other Go types never come out of parsing; they may be put
	// into an error text or a summary by a caller that made them itself.
	if raw, err := json.Marshal(v); err == nil {
		return append(dst, raw...)
	}
	return appendString(dst, fmt.Sprint(v))
}

// appendObject writes the keys in order, so that equal objects have equal
// bytes.
func appendObject(dst []byte, m map[string]any) []byte {
	dst = append(dst, '{')
	for i, k := range sortedKeys(m) {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendString(dst, k)
		dst = append(dst, ':')
		dst = appendValue(dst, m[k])
	}
	return append(dst, '}')
}

// appendFloat always writes a point or an exponent, so that the number is a
// float again when it is read.
func appendFloat(dst []byte, f float64) []byte {
	format := byte('f')
	if abs := math.Abs(f); abs != 0 && (abs < 1e-6 || abs >= 1e21) {
		format = 'e'
	}
	start := len(dst)
	dst = strconv.AppendFloat(dst, f, format, -1, 64)
	for _, c := range dst[start:] {
		if c == '.' || c == 'e' {
			return dst
		}
	}
	return append(dst, '.', '0')
}

// appendString writes a JSON string. Bytes that are no UTF-8 become the
// replacement character; parsing lets none in.
func appendString(dst []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' || c >= 0x7f {
			return appendQuoted(dst, s)
		}
	}
	dst = append(dst, '"')
	dst = append(dst, s...)
	return append(dst, '"')
}

func appendQuoted(dst []byte, s string) []byte {
	out, _ := jsontext.AppendQuote(dst, s) // the error only reports UTF-8 that was replaced
	return out
}
