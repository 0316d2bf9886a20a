// Package dump writes values as texts, byte for byte as the reference does, whose texts end up in files that tasks
// upload and compare: YAML in block style as PyYAML's safe_dump with its C emitter writes it (width 80, sorted keys,
// ASCII only), and JSON as Python's json.dumps does (spaces after separators, order of insertion, ASCII only).
package dump

import (
	"fmt"
	"math"
	"math/big"
	"strconv"
	"unicode/utf16"

	"github.com/drover-project/drover/yaql"
	"github.com/drover-project/drover/yaql/yaqljson"
)

// maxDepth bounds the nesting of values.
const maxDepth = 1000

// JSON writes a value on one line.
func JSON(v any) (string, error) {
	b, err := appendJSON(nil, v, 0)
	return string(b), err
}

func appendJSON(b []byte, v any, depth int) ([]byte, error) {
	if depth > maxDepth {
		return nil, tooDeep()
	}
	switch x := v.(type) {
	case *yaql.Dict:
		return appendObject(b, x, depth)
	case *yaql.List:
		return appendArray(b, x.Items, depth)
	case []any:
		return appendArray(b, x, depth)
	case string:
		return appendString(b, x), nil
	}
	text, err := scalar(v, jsonWords)
	return append(b, text...), err
}

func appendArray(b []byte, items []any, depth int) ([]byte, error) {
	b = append(b, '[')
	var err error
	for i, e := range items {
		if i > 0 {
			b = append(b, ", "...)
		}
		if b, err = appendJSON(b, e, depth+1); err != nil {
			return nil, err
		}
	}
	return append(b, ']'), nil
}

func appendObject(b []byte, d *yaql.Dict, depth int) ([]byte, error) {
	b = append(b, '{')
	var err error
	first := true
	d.Range(func(k, e any) bool {
		if !first {
			b = append(b, ", "...)
		}
		first = false
		key, isText := k.(string)
		if !isText {
			if key, err = scalar(k, jsonWords); err != nil {
				return false
			}
		}
		b = append(appendString(b, key), ": "...)
		b, err = appendJSON(b, e, depth+1)
		return err == nil
	})
	if err != nil {
		return nil, err
	}
	return append(b, '}'), nil
}

func appendString(b []byte, s string) []byte {
	b = append(b, '"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b = append(b, '\\', byte(r))
		case r == '\n':
			b = append(b, `\n`...)
		case r == '\r':
			b = append(b, `\r`...)
		case r == '\t':
			b = append(b, `\t`...)
		case r == '\b':
			b = append(b, `\b`...)
		case r == '\f':
			b = append(b, `\f`...)
		case r >= 0x20 && r < 0x7f:
			b = append(b, byte(r))
		case r > 0xffff:
			hi, lo := utf16.EncodeRune(r)
			b = fmt.Appendf(b, `\u%04x\u%04x`, hi, lo)
		default:
			b = fmt.Appendf(b, `\u%04x`, r)
		}
	}
	return append(b, '"')
}

// words are how a notation writes what has no digits.
type words struct{ null, nan, inf, minusInf string }

var (
	jsonWords = words{"null", "NaN", "Infinity", "-Infinity"}
	yamlWords = words{"null", ".nan", ".inf", "-.inf"}
)

// scalar writes null, truth values and numbers.
func scalar(v any, w words) (string, error) {
	switch x := v.(type) {
	case nil:
		return w.null, nil
	case bool:
		return strconv.FormatBool(x), nil
	case int64:
		return strconv.FormatInt(x, 10), nil
	case *big.Int:
		return x.String(), nil
	case float64:
		return float(x, w)
	}
	return "", &yaql.Error{Class: yaql.TypeError, Message: fmt.Sprintf("a value of type %T cannot be written", v), Offset: -1}
}

func float(x float64, w words) (string, error) {
	switch {
	case math.IsNaN(x):
		return w.nan, nil
	case math.IsInf(x, 1):
		return w.inf, nil
	case math.IsInf(x, -1):
		return w.minusInf, nil
	}
	text, err := yaqljson.Encode(x) // the shortest digits, as the reference's language writes them
	return string(text), err
}

func tooDeep() error {
	return &yaql.Error{Class: yaql.RecursionError, Message: fmt.Sprintf("values are nested more than %d deep", maxDepth), Offset: -1}
}
