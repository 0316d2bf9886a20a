package yaql

import (
	"math"
	"math/big"
	"slices"
	"strconv"

	"github.com/drover-project/drover/yaql/internal/pytime"
)

// DateTime is a date and time of day with microseconds, with or without a zone. The host gives a time.Time and
// gets a DateTime back, which it reads by these methods:
//
//	ISOFormat() string                    2026-11-22T10:00:00+00:00
//	Timestamp() (float64, error)          seconds since 1970
//	Fields() (struct)                     Year, Month, Day, ... as they stand in its zone
//	Offset() (Timespan, error)            of its zone from UTC
//	Strftime(format string) (string, error)
//	Add, Sub(Timespan) (DateTime, error)
//	Since(DateTime) (Timespan, error)
//	Compare(DateTime) (int, error)
//
// The errors are those of times outside the years 1 to 9999, and of mixing times with and without a zone.
// encoding/json writes it as ISO 8601; package yaqljson writes it so that it can be read back as one.
type DateTime = pytime.DateTime

// Timespan is a length of time in microseconds, negative or not. The host gives a time.Duration and gets a Timespan
// back; Total is the microseconds in it, In(1e6) the seconds as a float, String its text. encoding/json writes the microseconds.
type Timespan = pytime.Span

// List is a mutable list of the reference: the result of split, insert and a few others. It is never equal to
// a list literal and cannot be a key. Ordinary lists are []any.
type List struct{ Items []any }

// Tuple is an immutable list in a result when the engine does not convert tuples to lists, and may be given as
// input in place of []any.
type Tuple []any

// Pair is a key => value argument after evaluation.
type Pair struct{ Key, Value any }

// noValueType is the type of [NoValue].
type noValueType struct{}

// NoValue stands for an argument that was left out. It reaches results only through list literals with a gap.
var NoValue any = noValueType{}

// Mapping is what a host value implements to be a map of the language. Keys are compared as the language does;
// a Mapping counts as immutable unless it is [Mutable] and says otherwise.
type Mapping interface {
	Len() int
	// Get returns the value of key and whether there is one.
	Get(key any) (any, bool)
	// Range calls f for each entry, in a fixed order, until f returns false.
	Range(f func(key, value any) bool)
}

// Sequence is what a host value implements to be a list of the language.
type Sequence interface {
	Len() int
	// At returns the item at index i, counted from 0.
	At(i int) any
}

// Object is what a host value implements to give access to attributes, items and methods. Without it, structs
// are maps of their exported fields.
type Object interface {
	// Attribute returns the value of obj.name.
	Attribute(name string) (any, error)
	// Item returns the value of obj[key].
	Item(key any) (any, error)
	// Call returns the result of obj.name(args).
	Call(name string, args []any) (any, error)
}

// seqItems returns the items of a tuple or list kind without copying where possible.
func seqItems(v any) ([]any, bool) {
	switch s := v.(type) {
	case []any:
		return s, true
	case *List:
		return s.Items, true
	case Sequence:
		items := make([]any, s.Len())
		for i := range items {
			items[i] = norm(s.At(i))
		}
		return items, true
	}
	return nil, false
}

func isSequence(v any) bool {
	switch v.(type) {
	case []any, *List, Sequence:
		return true
	}
	return false
}

// smallInt returns v as an int64 if it is an integer or boolean that fits.
func smallInt(v any) (int64, bool) {
	switch n := v.(type) {
	case int64:
		return n, true
	case bool:
		if n {
			return 1, true
		}
		return 0, true
	}
	return 0, false
}

// clampInt returns an integer argument as an int64, the nearest one if it is too large.
func clampInt(v any) int64 {
	if b, ok := v.(*big.Int); ok {
		if b.Sign() < 0 {
			return math.MinInt64
		}
		return math.MaxInt64
	}
	n, _ := smallInt(v)
	return n
}

// truth is the truth value of v.
func truth(v any) bool {
	switch x := v.(type) {
	case bool:
		return x
	case nil:
		return false
	case int64:
		return x != 0
	case float64:
		return x != 0
	case string:
		return x != ""
	case []any:
		return len(x) > 0
	case *List:
		return len(x.Items) > 0
	case *Set:
		return x.Len() > 0
	case *View:
		return dictLen(x.dict) > 0
	case Timespan:
		return !x.IsZero()
	case complex128:
		return x != 0
	case map[string]any:
		return len(x) > 0
	case *Dict:
		return len(x.values) > 0
	case Mapping:
		return x.Len() > 0
	case Sequence:
		return x.Len() > 0
	}
	return true
}

// machineInt returns an integer argument where the reference's host language takes only what fits a machine word.
func machineInt(v any) (int64, error) {
	if _, ok := v.(*big.Int); ok {
		return 0, errorf(OverflowError, "Python int too large to convert to C ssize_t")
	}
	n, _ := smallInt(v)
	return n, nil
}

// typeName is the reference's name of the type of v, for messages.
func typeName(v any) string {
	switch x := v.(type) {
	case nil:
		return "NoneType"
	case bool:
		return "bool"
	case int64, *big.Int:
		return "int"
	case float64:
		return "float"
	case complex128:
		return "complex"
	case string:
		return "str"
	case []any, Tuple:
		return "tuple"
	case *List:
		return "list"
	case *Set:
		return "frozenset"
	case *View:
		if !isHashableDict(x.dict) {
			return [...]string{"dict_keys", "dict_values", "dict_items"}[x.kind]
		}
		return [...]string{"KeysView", "ValuesView", "ItemsView"}[x.kind]
	case *Dict:
		if x.mutable {
			return "dict"
		}
		return "FrozenDict"
	case DateTime:
		return "datetime"
	case Timespan:
		return "timedelta"
	case *Regex:
		return "re.Pattern"
	case *Iterator, *memo:
		return "generator"
	}
	if isMapping(v) {
		return "FrozenDict"
	}
	return "object"
}

// sortCanonical orders strings; it serves the hash keys of sets and maps, whose order must not matter.
func sortCanonical(parts []string) []string {
	slices.Sort(parts)
	return parts
}

// appendSized appends s with its length before it, so that concatenations cannot be confused.
func appendSized(b []byte, s string) []byte {
	b = strconv.AppendInt(b, int64(len(s)), 10)
	b = append(b, ':')
	return append(b, s...)
}
