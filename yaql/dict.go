package yaql

import (
	"slices"
	"sort"
)

// Dict is a map that keeps the order of insertion and whose keys may be any hashable values. Mutable marks the
// kind of the reference's maps that cannot be keys themselves. A Dict is complete when an expression sees it.
type Dict struct {
	keys    *Keys
	values  []any
	mutable bool
	plain   uint8 // see plainDepth
}

// NewDict returns an empty map with room for n entries.
func NewDict(n int) *Dict {
	d := &struct {
		Dict
		own Keys
	}{}
	d.own.list = make([]any, 0, n)
	d.keys, d.values = &d.own, make([]any, 0, n)
	return &d.Dict
}

// Len returns the number of entries.
func (d *Dict) Len() int { return len(d.values) }

// Get returns the value of key and whether there is one.
func (d *Dict) Get(key any) (any, bool) {
	i, err := d.find(nil, key)
	if err != nil || i < 0 {
		return nil, false
	}
	return d.values[i], true
}

// Range calls f for each entry in the order of insertion until f returns false.
func (d *Dict) Range(f func(key, value any) bool) {
	for i, v := range d.values {
		if !f(d.keys.list[i], v) {
			return
		}
	}
}

// Set gives key a value. A key that is there keeps its place. It fails for keys that cannot be hashed, and
// must not be called once an expression has seen the map.
func (d *Dict) Set(key, value any) error { return (*run)(nil).set(d, key, value) }

// set is the same for an evaluation, which pays for large keys.
func (r *run) set(d *Dict, key, value any) error {
	i, err := d.find(r, key)
	if err != nil {
		return err
	}
	d.plain = 0
	if i >= 0 {
		d.values[i] = value
		return nil
	}
	if d.keys == nil {
		d.keys = &Keys{}
	} else if d.keys.shared {
		d.keys = d.keys.clone(1)
	}
	d.values = append(d.values, value)
	return d.keys.add(r, key)
}

// find returns the place of key or -1. Keys that cannot be hashed are an error.
func (d *Dict) find(r *run, key any) (int, error) { return d.keys.find(r, key) }

// text returns the value of a string key and whether there is one.
func (d *Dict) text(key string) (any, bool) {
	if i := d.keys.findString(key); i >= 0 {
		return d.values[i], true
	}
	return nil, false
}

func (d *Dict) clone(extra int) *Dict {
	c := &Dict{keys: d.keys, values: make([]any, len(d.values), len(d.values)+extra), mutable: d.mutable}
	copy(c.values, d.values)
	if d.keys != nil && !d.keys.shared {
		c.keys = d.keys.clone(extra)
	}
	return c
}

// head copies the first n entries into a map with room for all.
func (d *Dict) head(n int) *Dict {
	c := NewDict(len(d.values))
	for i, v := range d.values[:n] {
		_ = c.Set(d.keys.list[i], v) // the keys were hashed before
	}
	return c
}

// maxPlainDepth bounds how deep a value is searched for being plain.
const maxPlainDepth = 64

// plainDepth tells whether the conversion of results leaves v as it is, whatever the options for tuples and limits
// are: 0 if it may not, and otherwise one more than the maps and lists that are nested in it.
func plainDepth(v any) uint8 {
	switch x := v.(type) {
	case nil, string, bool, int64, float64:
		return 1
	case *Dict:
		return x.plain
	case []any:
		return plainItems(x)
	}
	return 0
}

func plainItems(items []any) uint8 {
	deepest := uint8(1)
	for _, x := range items {
		depth := plainDepth(x)
		if depth == 0 || depth >= maxPlainDepth {
			return 0
		}
		deepest = max(deepest, depth)
	}
	return deepest + 1
}

// Set is a set of hashable values in the order of insertion, without duplicates.
type Set struct{ keys Keys }

// NewSet returns the set of items, or an error if one cannot be hashed.
func NewSet(items ...any) (*Set, error) { return (*run)(nil).newSet(items) }

func (r *run) newSet(items []any) (*Set, error) {
	s := &Set{}
	for _, x := range items {
		if err := r.add(s, x); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// Len returns the number of items.
func (s *Set) Len() int { return len(s.keys.list) }

// Items returns the items in the order of insertion, in a new slice.
func (s *Set) Items() []any { return slices.Clone(s.keys.list) }

// Has reports whether x is in the set.
func (s *Set) Has(x any) bool { return (*run)(nil).has(s, x) }

func (r *run) has(s *Set, x any) bool {
	i, err := s.keys.find(r, x)
	return err == nil && i >= 0
}

// add puts an item into a set.
func (r *run) add(s *Set, x any) error {
	i, err := s.keys.find(r, x)
	if err != nil || i >= 0 {
		return err
	}
	return s.keys.add(r, x)
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
		return len(d.values)
	case Mapping:
		return d.Len()
	}
	return 0
}

// dictGet looks key up in a map. It fails for keys that cannot be hashed.
func (r *run) dictGet(v, key any) (any, bool, error) {
	switch d := v.(type) {
	case map[string]any:
		s, ok := key.(string)
		if !ok {
			_, err := r.hashKey(key)
			return nil, false, err
		}
		r.reads(len(s))
		x, ok := d[s]
		return norm(x), ok, nil
	case *Dict:
		i, err := d.find(r, key)
		if err != nil || i < 0 {
			return nil, false, err
		}
		return norm(d.values[i]), true, nil
	case Mapping:
		if _, err := r.hashKey(key); err != nil {
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
		for i, x := range d.values {
			if !f(norm(d.keys.list[i]), norm(x)) {
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
func (r *run) toDict(v any, extra int) *Dict {
	r.owe(dictLen(v))
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
	switch d := v.(type) {
	case *Dict:
		return !d.mutable
	case Mutable:
		return !d.Mutable()
	}
	return true
}
