package yaql

import (
	"sort"
)

type entry struct{ key, value any }

// Dict is a map that keeps the order of insertion and whose keys may be any hashable values. Mutable marks the
// kind of the reference's maps that cannot be keys themselves. A Dict is complete when an expression sees it.
type Dict struct {
	entries []entry
	strs    map[string]int32 // index of the string keys, made when there are more than smallDict entries
	index   map[any]int32    // index of the other keys, by their hash keys
	mutable bool
}

const smallDict = 16

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

// text returns the value of a string key and whether there is one.
func (d *Dict) text(key string) (any, bool) {
	if i := d.findString(key); i >= 0 {
		return d.entries[i].value, true
	}
	return nil, false
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

// head copies the first n entries into a map with room for all.
func (d *Dict) head(n int) *Dict {
	c := NewDict(len(d.entries))
	for _, e := range d.entries[:n] {
		_ = c.Set(e.key, e.value) // the keys were hashed before
	}
	return c
}
