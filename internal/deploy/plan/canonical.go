package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/drover-project/drover/internal/deploy/expression"
	"github.com/drover-project/drover/yaql"
	"github.com/drover-project/drover/yaql/yaqljson"
)

// Canonical writes a value as JSON in the one form that equal values share: keys sorted, no spaces, only what must be
// escaped. Values that JSON lacks are written as package yaqljson does.
func Canonical(v any) string { return string(appendCanonical(nil, v, math.MaxInt)) }

// AppendCanonical appends the canonical form of a value to a text.
func AppendCanonical(b []byte, v any) []byte { return appendCanonical(b, v, math.MaxInt) }

// CanonicalWithin returns the canonical form of a value if it has at most so many bytes. It looks no further than it
// must to tell.
func CanonicalWithin(v any, limit int) (text []byte, ok bool) {
	text = appendCanonical(nil, v, limit)
	return text, len(text) <= limit
}

// Digest is the beginning of the SHA-256 of the canonical form of a value, in hexadecimal digits.
func Digest(v any) string {
	sum := sha256.Sum256(appendCanonical(nil, v, math.MaxInt))
	return hex.EncodeToString(sum[:8])
}

// appendCanonical stops somewhere behind the limit if the text becomes longer.
func appendCanonical(b []byte, v any, limit int) []byte {
	switch x := v.(type) {
	case nil:
		return append(b, "null"...)
	case bool:
		return strconv.AppendBool(b, x)
	case int64:
		return strconv.AppendInt(b, x, 10)
	case string:
		return appendQuoted(b, x)
	case []any:
		return appendArray(b, x, limit)
	case *yaql.List:
		return appendArray(b, x.Items, limit)
	case map[string]any:
		return appendObject(b, len(x), func(f func(k, v any) bool) {
			for k, v := range x {
				f(k, v)
			}
		}, v, limit)
	case yaql.Mapping:
		return appendObject(b, x.Len(), x.Range, v, limit)
	case *yaql.Set:
		return append(appendArray(append(b, `{"$set":`...), sortedItems(x), limit), '}')
	case yaql.Tuple:
		return append(appendArray(append(b, `{"$tuple":`...), x, limit), '}')
	}
	if expression.IsUndefined(v) {
		return append(b, `{"$opaque":"undefined"}`...)
	}
	return append(b, encoded(v)...)
}

func encoded(v any) []byte {
	text, err := yaqljson.Encode(v)
	if err != nil {
		return []byte("null")
	}
	return text
}

func sortedItems(s *yaql.Set) []any {
	items := s.Items()
	slices.SortFunc(items, func(a, b any) int { return strings.Compare(Canonical(a), Canonical(b)) })
	return items
}

func appendArray(b []byte, items []any, limit int) []byte {
	b = append(b, '[')
	for i, x := range items {
		if len(b) > limit {
			return b
		}
		if i > 0 {
			b = append(b, ',')
		}
		b = appendCanonical(b, x, limit)
	}
	return append(b, ']')
}

// appendObject writes a map; one with keys that are no texts as package yaqljson does.
func appendObject(b []byte, n int, each func(func(k, v any) bool), whole any, limit int) []byte {
	if n > limit-len(b) { // of which each entry takes several bytes
		return append(b, make([]byte, n+1)...)
	}
	type entry struct {
		key   string
		value any
	}
	entries := make([]entry, 0, n)
	plain := true
	each(func(k, v any) bool {
		key, ok := k.(string)
		plain = plain && ok && !strings.HasPrefix(key, "$")
		entries = append(entries, entry{key, v})
		return true
	})
	if !plain {
		return append(b, encoded(whole)...)
	}
	slices.SortFunc(entries, func(a, b entry) int { return strings.Compare(a.key, b.key) })
	b = append(b, '{')
	for i, e := range entries {
		if len(b) > limit {
			return b
		}
		if i > 0 {
			b = append(b, ',')
		}
		b = appendCanonical(append(appendQuoted(b, e.key), ':'), e.value, limit)
	}
	return append(b, '}')
}

func appendQuoted(b []byte, s string) []byte {
	const hexadecimal = "0123456789abcdef"
	b = append(b, '"')
	from := 0
	for i := range len(s) {
		c := s[i]
		if c >= 0x20 && c != '"' && c != '\\' {
			continue
		}
		b = append(b, s[from:i]...)
		from = i + 1
		switch c {
		case '"', '\\':
			b = append(b, '\\', c)
		case '\b':
			b = append(b, `\b`...)
		case '\f':
			b = append(b, `\f`...)
		case '\n':
			b = append(b, `\n`...)
		case '\r':
			b = append(b, `\r`...)
		case '\t':
			b = append(b, `\t`...)
		default:
			b = append(b, `\u00`...)
			b = append(b, hexadecimal[c>>4], hexadecimal[c&15])
		}
	}
	return append(append(b, s[from:]...), '"')
}
