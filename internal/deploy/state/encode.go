package state

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/big"
	"slices"

	"github.com/drover-project/drover/yaql"
)

// appendValue appends a text that tells values apart as exactly as expressions can: by type, order and contents.
func appendValue(b []byte, v any) []byte {
	switch x := v.(type) {
	case nil:
		return append(b, 'n')
	case bool:
		if x {
			return append(b, 't')
		}
		return append(b, 'f')
	case int64:
		return binary.AppendVarint(append(b, 'i'), x)
	case float64:
		return binary.BigEndian.AppendUint64(append(b, 'd'), math.Float64bits(x))
	case string:
		return appendText(append(b, 's'), x)
	case *yaql.Dict:
		b = binary.AppendUvarint(append(b, 'm'), uint64(x.Len()))
		x.Range(func(k, e any) bool {
			b = appendValue(appendValue(b, k), e)
			return true
		})
		return b
	case *yaql.List:
		return appendItems(append(b, 'l'), x.Items)
	case []any:
		return appendItems(append(b, 'u'), x)
	case *yaql.Set:
		return appendItems(append(b, 'e'), x.Items())
	case *big.Int:
		return appendText(append(b, 'b'), x.String())
	}
	return appendText(append(b, 'o'), fmt.Sprintf("%T %v", v, v))
}

func appendItems(b []byte, items []any) []byte {
	b = binary.AppendUvarint(b, uint64(len(items)))
	for _, e := range items {
		b = appendValue(b, e)
	}
	return b
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

func appendPair(b []byte, x, y Class) []byte {
	return binary.AppendVarint(binary.AppendVarint(append(b, 'p'), int64(x)), int64(y))
}

// Likeness returns a text that is the same for values that the language holds equal: the order of maps does not count,
// nor do the types of numbers and lists.
func Likeness(v any) string { return string(appendLikeness(nil, v)) }

func appendLikeness(b []byte, v any) []byte {
	switch x := v.(type) {
	case bool:
		if x {
			return appendValue(b, int64(1))
		}
		return appendValue(b, int64(0))
	case float64:
		if x == math.Trunc(x) && math.Abs(x) < 1<<53 {
			return appendValue(b, int64(x))
		}
	case *yaql.List:
		return appendLikes(append(b, 'l'), x.Items)
	case []any:
		return appendLikes(append(b, 'l'), x)
	case yaql.Tuple:
		return appendLikes(append(b, 'l'), x)
	case *yaql.Set:
		parts := make([]string, 0, x.Len())
		for _, e := range x.Items() {
			parts = append(parts, Likeness(e))
		}
		return appendSorted(append(b, 'e'), parts)
	case yaql.Mapping:
		parts := make([]string, 0, x.Len())
		x.Range(func(k, e any) bool {
			parts = append(parts, string(appendLikeness(appendLikeness(nil, k), e)))
			return true
		})
		return appendSorted(append(b, 'm'), parts)
	}
	return appendValue(b, v)
}

func appendLikes(b []byte, items []any) []byte {
	b = binary.AppendUvarint(b, uint64(len(items)))
	for _, e := range items {
		b = appendLikeness(b, e)
	}
	return b
}

func appendSorted(b []byte, parts []string) []byte {
	slices.Sort(parts)
	b = binary.AppendUvarint(b, uint64(len(parts)))
	for _, p := range parts {
		b = appendText(b, p)
	}
	return b
}
