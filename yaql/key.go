package yaql

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/big"
	"reflect"
)

// The types of hash keys that are not the value itself. A hash key is comparable in Go, and two values are equal
// in the language if and only if their hash keys are.
type (
	nullKey  struct{}
	bigKey   string
	tupleKey string
	setKey   string
	dictKey  string
	nanKey   *byte
	cplxKey  complex128
	regexKey struct {
		pattern string
		flags   int
	}
)

func unhashable(v any) error {
	return errorf(TypeError, "unhashable type: '%s'", typeName(v))
}

// hashKey returns the comparable stand-in of v, or an error for values that cannot be keys.
func (r *run) hashKey(v any) (any, error) {
	switch x := v.(type) {
	case string:
		r.reads(len(x))
		return x, nil
	case int64:
		return x, nil
	}
	return hashAt(v, textWalk(r))
}

// hashesAtOnce reports whether the hash key of v is as good as v itself.
func hashesAtOnce(v any) bool {
	switch v.(type) {
	case string, int64, bool, float64, nil:
		return true
	}
	return false
}

// keyOfBig is the hash key of an integer that fits no machine word.
func keyOfBig(n *big.Int) bigKey {
	return bigKey(append([]byte{byte(n.Sign())}, n.Bytes()...))
}

// hashAt is hashKey for a value at some depth of another one.
func hashAt(v any, w *walk) (any, error) {
	switch x := v.(type) {
	case string, int64, Timespan:
		return x, nil
	case nil:
		return nullKey{}, nil
	case bool:
		if x {
			return int64(1), nil
		}
		return int64(0), nil
	case float64:
		return floatKey(x), nil
	case *big.Int:
		w.writes(x.BitLen() / 8) //nolint:mnd // bits of a byte
		return keyOfBig(x), nil
	case complex128:
		if imag(x) == 0 {
			return floatKey(real(x)), nil
		}
		return cplxKey(x), nil
	case []any:
		b, err := appendItems(nil, x, w)
		return tupleKey(b), err
	case *Set:
		return setHash(x, w)
	case map[string]any, *Dict, Mapping:
		return dictHash(v, w)
	case DateTime:
		return x.Key(), dateFault(x)
	case *Regex:
		return regexKey{x.Pattern(), int(x.Flags())}, nil
	case *List:
		return nil, unhashable(v)
	case *View:
		if x.kind != valuesView {
			return nil, unhashable(v)
		}
		return x, nil
	case Sequence:
		items, _ := seqItems(x)
		b, err := appendItems(nil, items, w)
		return tupleKey(b), err
	}
	if n := norm(v); !sameType(n, v) {
		return hashAt(n, w)
	}
	return identityKey(v)
}

// identityKey is the key of values that are equal only to themselves.
func identityKey(v any) (key any, err error) {
	defer func() {
		if recover() != nil {
			key, err = nil, unhashable(v)
		}
	}()
	_ = v == v //nolint:gocritic // panics for types that Go cannot compare
	return v, nil
}

func floatKey(f float64) any {
	if f == math.Trunc(f) && !math.IsInf(f, 0) {
		if f >= -1<<63 && f < 1<<63 {
			return int64(f)
		}
		b, _ := big.NewFloat(f).Int(nil)
		return keyOfBig(b)
	}
	if math.IsNaN(f) {
		return nanKey(new(byte))
	}
	return f
}

func setHash(s *Set, w *walk) (any, error) {
	w = w.enter(s.Len())
	defer w.leave()
	parts := make([]string, 0, s.Len())
	for _, x := range s.keys.list {
		b, err := appendKey(nil, x, w)
		if err != nil {
			return nil, err
		}
		parts = append(parts, string(b))
	}
	return setKey(joinSized(sortCanonical(parts))), nil
}

func dictHash(v any, w *walk) (any, error) {
	if !isHashableDict(v) {
		return nil, unhashable(v)
	}
	w = w.enter(dictLen(v))
	defer w.leave()
	parts := make([]string, 0, dictLen(v))
	var err error
	dictRange(v, func(k, x any) bool {
		var b []byte
		if b, err = appendItems(nil, []any{k, x}, w); err != nil {
			return false
		}
		parts = append(parts, string(b))
		return true
	})
	if err != nil {
		return nil, err
	}
	return dictKey(joinSized(sortCanonical(parts))), nil
}

func joinSized(parts []string) []byte {
	var b []byte
	for _, p := range parts {
		b = appendSized(b, p)
	}
	return b
}

func appendItems(b []byte, items []any, w *walk) ([]byte, error) {
	w = w.enter(len(items))
	defer w.leave()
	var err error
	for _, x := range items {
		if b, err = appendKey(b, norm(x), w); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// appendKey appends an unambiguous text of the hash key of v.
func appendKey(b []byte, v any, w *walk) ([]byte, error) {
	h, err := hashAt(v, w)
	if err != nil {
		return nil, err
	}
	switch k := h.(type) { // the texts of what is nested are copied at each level
	case string:
		w.writes(len(k))
		return appendSized(append(b, 's'), k), nil
	case int64:
		return binary.BigEndian.AppendUint64(append(b, 'i'), uint64(k)), nil
	case nullKey:
		return append(b, 'n'), nil
	case float64:
		return binary.BigEndian.AppendUint64(append(b, 'f'), math.Float64bits(k)), nil
	case bigKey:
		w.writes(len(k))
		return appendSized(append(b, 'b'), string(k)), nil
	case tupleKey:
		w.writes(len(k))
		return appendSized(append(b, 't'), string(k)), nil
	case setKey:
		w.writes(len(k))
		return appendSized(append(b, 'S'), string(k)), nil
	case dictKey:
		w.writes(len(k))
		return appendSized(append(b, 'd'), string(k)), nil
	case Timespan:
		return appendSized(append(b, 'T'), k.Repr()), nil
	}
	notation := "%v"
	if reflect.TypeOf(h).Kind() == reflect.Pointer {
		notation = "%p" // equal to itself only, whatever it holds
	}
	return appendSized(fmt.Appendf(append(b, 'o'), "%T", h), fmt.Sprintf(notation, h)), nil
}

func sameType(a, b any) bool { return fmt.Sprintf("%T", a) == fmt.Sprintf("%T", b) }

// equal compares as the language's = does: numbers by value, booleans as 0 and 1, lists by kind and items, maps
// and sets by contents, everything else by identity.
func equal(a, b any) bool { return equalAt(a, b, nil) }

// equal is the same, and counts what it takes.
func (r *run) equal(a, b any) bool {
	switch x := a.(type) {
	case string:
		y, ok := b.(string)
		if !ok || len(x) != len(y) {
			return false
		}
		r.reads(len(x))
		return x == y
	case int64:
		if y, ok := b.(int64); ok {
			return x == y
		}
	case nil:
		return b == nil
	case bool:
		if y, ok := b.(bool); ok {
			return x == y
		}
	}
	return equalAt(a, b, &walk{run: r})
}

func equalAt(a, b any, w *walk) bool {
	switch x := a.(type) {
	case nil:
		return b == nil
	case string:
		y, ok := b.(string)
		if !ok || len(x) != len(y) {
			return false
		}
		w.pays(len(x) / bytesOfStep)
		return x == y
	case *big.Int:
		w.pays(x.BitLen() / bitsOfStep)
		return equalNumbers(a, b)
	case bool, int64, float64, complex128:
		return equalNumbers(a, b)
	case []any:
		switch y := b.(type) {
		case []any:
			return equalItems(x, y, w)
		case Sequence:
			items, _ := seqItems(y)
			return equalItems(x, items, w)
		}
		return false
	case *List:
		y, ok := b.(*List)
		return ok && equalItems(x.Items, y.Items, w)
	case DateTime:
		y, ok := b.(DateTime)
		return ok && x.Equal(y)
	case Timespan:
		y, ok := b.(Timespan)
		return ok && x == y
	case *Regex:
		y, ok := b.(*Regex)
		return ok && x.Pattern() == y.Pattern() && x.Flags() == y.Flags()
	case *Set, *View:
		return equalSets(a, b, w)
	case map[string]any, *Dict, Mapping:
		return isMapping(b) && equalDicts(a, b, w)
	case Sequence:
		if y, ok := seqItems(b); ok {
			if _, list := b.(*List); !list {
				items, _ := seqItems(x)
				return equalItems(items, y, w)
			}
		}
		return false
	}
	return identical(a, b)
}

func identical(a, b any) (same bool) {
	defer func() {
		if recover() != nil {
			same = false // of a type that Go cannot compare
		}
	}()
	return a == b
}

func equalItems(a, b []any, w *walk) bool {
	if len(a) != len(b) {
		return false
	}
	w = w.enter(len(a))
	defer w.leave()
	for i := range a {
		if !equalAt(norm(a[i]), norm(b[i]), w) {
			return false
		}
	}
	return true
}

func equalDicts(a, b any, w *walk) bool {
	if dictLen(a) != dictLen(b) {
		return false
	}
	w = w.enter(dictLen(a))
	defer w.leave()
	same := true
	dictRange(a, func(k, x any) bool {
		y, ok, err := w.payer().dictGet(b, k)
		same = err == nil && ok && equalAt(x, y, w)
		return same
	})
	return same
}

// equalSets compares sets and the views that count as sets.
func equalSets(a, b any, w *walk) bool {
	if !isSet(a) || !isSet(b) {
		return identical(a, b)
	}
	n, _ := sizeIfSized(a)
	if m, _ := sizeIfSized(b); n != m {
		return false
	}
	w.pays(2 * n) //nolint:mnd // both are listed
	x, y := setItems(a), setItems(b)
	return w.payer().containsAll(y, x)
}

// payer is the evaluation that pays for a walk; nil for none.
func (w *walk) payer() *run {
	if w == nil {
		return nil
	}
	return w.run
}

// isSet reports whether v is a set, or counts as one as keys() and items() do.
func isSet(v any) bool {
	switch s := v.(type) {
	case *Set:
		return true
	case *View:
		return s.kind != valuesView
	}
	return false
}

// setItems returns the items of what counts as a set; see isSet.
func setItems(v any) []any {
	switch s := v.(type) {
	case *Set:
		return s.Items()
	case *View:
		return s.Items()
	}
	return nil
}

// containsAll reports whether every item of small is in big. Items that cannot be hashed are compared one by
// one.
func (r *run) containsAll(big, small []any) bool {
	r.owe(len(big) + len(small))
	s, err := r.newSet(big)
	for _, x := range small {
		if err == nil {
			if !r.has(s, x) {
				return false
			}
			continue
		}
		if !r.contains(big, x) {
			return false
		}
	}
	return true
}

func (r *run) contains(items []any, x any) bool {
	for _, y := range items {
		r.owe(1)
		if r.equal(x, norm(y)) {
			return true
		}
	}
	return false
}
