package yaql

import (
	"math"
	"math/big"
	"slices"
	"sort"
	"strconv"

	"github.com/drover-project/drover/yaql/internal/pytime"
)

// DateTime is a date and time of day with microseconds, with or without a zone.
type DateTime = pytime.DateTime

// Timespan is a length of time in microseconds, negative or not.
type Timespan = pytime.Span

// Regex is a compiled regular expression in Python's dialect.

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
// a Mapping counts as immutable.
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

type entry struct{ key, value any }

// Dict is a map that keeps the order of insertion and whose keys may be any hashable values. Mutable marks the
// kind of the reference's maps that cannot be keys themselves. A Dict is complete when an expression sees it.
type Dict struct {
	entries []entry
	strs    map[string]int32 // index of the string keys, made when there are more than smallDict entries
	index   map[any]int32    // index of the other keys, by their hash keys
	mutable bool
}

const smallDict = 8

// NewDict returns an empty map with room for n entries.
func NewDict(n int) *Dict { return &Dict{entries: make([]entry, 0, n)} }

// Len returns the number of entries.
func (d *Dict) Len() int { return len(d.entries) }

// Get returns the value of key and whether there is one.
func (d *Dict) Get(key any) (any, bool) {
	i, err := d.find(key)
	if err != nil || i < 0 {
		return nil, false
	}
	return d.entries[i].value, true
}

// Range calls f for each entry in the order of insertion until f returns false.
func (d *Dict) Range(f func(key, value any) bool) {
	for _, e := range d.entries {
		if !f(e.key, e.value) {
			return
		}
	}
}

// Set gives key a value. A key that is there keeps its place. It fails for keys that cannot be hashed, and
// must not be called once an expression has seen the map.
func (d *Dict) Set(key, value any) error {
	i, err := d.find(key)
	if err != nil {
		return err
	}
	if i >= 0 {
		d.entries[i].value = value
		return nil
	}
	d.entries = append(d.entries, entry{key, value})
	if len(d.entries) > smallDict {
		return d.addIndex()
	}
	return nil
}

// addIndex enters the entries that the index lacks.
func (d *Dict) addIndex() error {
	from := len(d.entries) - 1
	if d.strs == nil {
		d.strs = make(map[string]int32, cap(d.entries))
		from = 0
	}
	for i := from; i < len(d.entries); i++ {
		if s, ok := d.entries[i].key.(string); ok {
			d.strs[s] = int32(i)
			continue
		}
		h, err := hashKey(d.entries[i].key)
		if err != nil {
			return err
		}
		if d.index == nil {
			d.index = map[any]int32{}
		}
		d.index[h] = int32(i)
	}
	return nil
}

// find returns the place of key or -1. Keys that cannot be hashed are an error.
func (d *Dict) find(key any) (int, error) {
	if s, ok := key.(string); ok {
		return d.findString(s), nil
	}
	h, err := hashKey(key)
	if err != nil {
		return -1, err
	}
	if s, ok := h.(string); ok {
		return d.findString(s), nil
	}
	if d.strs != nil {
		if i, ok := d.index[h]; ok {
			return int(i), nil
		}
		return -1, nil
	}
	for i := range d.entries {
		if _, ok := d.entries[i].key.(string); ok {
			continue
		}
		if k, _ := hashKey(d.entries[i].key); k == h {
			return i, nil
		}
	}
	return -1, nil
}

func (d *Dict) findString(s string) int {
	if d.strs != nil {
		if i, ok := d.strs[s]; ok {
			return int(i)
		}
		return -1
	}
	for i := range d.entries {
		if k, ok := d.entries[i].key.(string); ok && k == s {
			return i
		}
	}
	return -1
}

func (d *Dict) clone(extra int) *Dict {
	c := &Dict{entries: make([]entry, len(d.entries), len(d.entries)+extra), mutable: d.mutable}
	copy(c.entries, d.entries)
	if d.strs != nil {
		_ = c.addIndex() // the keys were hashed before
	}
	return c
}

// Set is a set of hashable values in the order of insertion, without duplicates.
type Set struct{ d Dict }

// NewSet returns the set of items, or an error if one cannot be hashed.
func NewSet(items ...any) (*Set, error) {
	s := &Set{}
	for _, x := range items {
		if err := s.add(x); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// Len returns the number of items.
func (s *Set) Len() int { return len(s.d.entries) }

// Items returns the items in the order of insertion, in a new slice.
func (s *Set) Items() []any {
	items := make([]any, len(s.d.entries))
	for i := range s.d.entries {
		items[i] = s.d.entries[i].key
	}
	return items
}

// Has reports whether x is in the set.
func (s *Set) Has(x any) bool {
	i, err := s.d.find(x)
	return err == nil && i >= 0
}

func (s *Set) add(x any) error {
	i, err := s.d.find(x)
	if err != nil || i >= 0 {
		return err
	}
	return s.d.Set(x, nil)
}

type viewKind uint8

const (
	keysView viewKind = iota
	valuesView
	itemsView
)

// View is the result of keys(), values() or items(): a window on a map.
type View struct {
	kind viewKind
	dict any
}

// Items returns the contents of the view in a new slice.
func (v *View) Items() []any {
	out := make([]any, 0, dictLen(v.dict))
	dictRange(v.dict, func(k, x any) bool {
		out = append(out, v.item(k, x))
		return true
	})
	return out
}

func (v *View) item(k, x any) any {
	switch v.kind {
	case keysView:
		return k
	case valuesView:
		return x
	}
	return []any{k, x}
}

// isMapping reports whether v is a map of the language.
func isMapping(v any) bool {
	switch v.(type) {
	case map[string]any, *Dict, Mapping:
		return true
	}
	return false
}

func dictLen(v any) int {
	switch d := v.(type) {
	case map[string]any:
		return len(d)
	case *Dict:
		return len(d.entries)
	case Mapping:
		return d.Len()
	}
	return 0
}

// dictGet looks key up in a map. It fails for keys that cannot be hashed.
func dictGet(v, key any) (any, bool, error) {
	switch d := v.(type) {
	case map[string]any:
		s, ok := key.(string)
		if !ok {
			_, err := hashKey(key)
			return nil, false, err
		}
		x, ok := d[s]
		return norm(x), ok, nil
	case *Dict:
		i, err := d.find(key)
		if err != nil || i < 0 {
			return nil, false, err
		}
		return norm(d.entries[i].value), true, nil
	case Mapping:
		if _, err := hashKey(key); err != nil {
			return nil, false, err
		}
		x, ok := d.Get(key)
		return norm(x), ok, nil
	}
	return nil, false, nil
}

// dictRange calls f for each entry until it returns false. Maps of the host have no order of their own: theirs
// is that of their keys.
func dictRange(v any, f func(key, value any) bool) {
	switch d := v.(type) {
	case map[string]any:
		for _, k := range sortedKeys(d) {
			if !f(k, norm(d[k])) {
				return
			}
		}
	case *Dict:
		for i := range d.entries {
			if !f(norm(d.entries[i].key), norm(d.entries[i].value)) {
				return
			}
		}
	case Mapping:
		d.Range(func(k, x any) bool { return f(norm(k), norm(x)) })
	}
}

func sortedKeys(m map[string]any) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}

// toDict copies any map into a Dict that may be changed.
func toDict(v any, extra int) *Dict {
	if d, ok := v.(*Dict); ok {
		c := d.clone(extra)
		c.mutable = false
		return c
	}
	c := NewDict(dictLen(v) + extra)
	dictRange(v, func(k, x any) bool {
		_ = c.Set(k, x) // keys of maps are hashable
		return true
	})
	return c
}

// isHashableDict reports whether a map may be a key.
func isHashableDict(v any) bool {
	d, ok := v.(*Dict)
	return !ok || !d.mutable
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
		return len(x.entries) > 0
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
