package yaql

import (
	"maps"
	"slices"
)

// Keys are the keys of maps, in order. Maps with the same keys, such as the rows of a table or the objects of a
// document, may share them: they take half the memory then, and looking a key up in one map after the other stays
// in the processor's cache.
type Keys struct {
	list   []any
	strs   map[string]int32 // index of the string keys, made when there are more than smallKeys
	index  map[any]int32    // index of the other keys, by their hash keys, made at the same time
	shared bool             // and thus immutable
}

const smallKeys = 16

// NewKeys returns keys to share. It fails if one cannot be hashed or is there twice.
func NewKeys(keys ...any) (*Keys, error) {
	k := &Keys{list: make([]any, 0, len(keys))}
	for _, key := range keys {
		i, err := k.find(nil, key)
		if err != nil {
			return nil, err
		}
		if i >= 0 {
			return nil, errorf(ValueError, "the key %s is there twice", repr(key))
		}
		if err := k.add(nil, key); err != nil {
			return nil, err
		}
	}
	k.shared = true
	return k, nil
}

// Dict returns the map that has these keys and one value for each, in the order of the keys. It keeps the slice,
// which, with all lists in it, must not change any more. It fails if the numbers of keys and values differ.
func (k *Keys) Dict(values []any) (*Dict, error) {
	if len(values) != len(k.list) {
		return nil, errorf(ValueError, "there are %d keys and %d values", len(k.list), len(values))
	}
	return &Dict{keys: k, values: values, plain: k.plainWith(values)}, nil
}

// plainWith tells how plain the map of these keys and values is; see plainDepth.
func (k *Keys) plainWith(values []any) uint8 {
	if !k.onlyTexts() {
		return 0
	}
	return plainItems(values)
}

func (k *Keys) clone(extra int) *Keys {
	return &Keys{list: append(make([]any, 0, len(k.list)+extra), k.list...), strs: maps.Clone(k.strs), index: maps.Clone(k.index)}
}

// add appends a key that is not there yet.
func (k *Keys) add(r *run, key any) error {
	k.list = append(k.list, key)
	if k.strs == nil && len(k.list) <= smallKeys && hashesAtOnce(key) {
		return nil
	}
	return k.addIndex(r)
}

// addIndex enters the keys that the index lacks.
func (k *Keys) addIndex(r *run) error {
	from := len(k.list) - 1
	if k.strs == nil {
		k.strs = make(map[string]int32, cap(k.list))
		from = 0
	}
	for i, key := range k.list[from:] {
		if s, ok := key.(string); ok {
			k.strs[s] = int32(from + i)
			continue
		}
		h, err := r.hashKey(key)
		if err != nil {
			return err
		}
		if k.index == nil {
			k.index = map[any]int32{}
		}
		k.index[h] = int32(from + i)
	}
	return nil
}

// find returns the place of key or -1. Keys that cannot be hashed are an error.
func (k *Keys) find(r *run, key any) (int, error) {
	if s, ok := key.(string); ok {
		r.reads(len(s))
		return k.findString(s), nil
	}
	h, err := r.hashKey(key)
	if err != nil || k == nil {
		return -1, err
	}
	if s, ok := h.(string); ok {
		return k.findString(s), nil
	}
	if k.strs != nil {
		if i, ok := k.index[h]; ok {
			return int(i), nil
		}
		return -1, nil
	}
	return slices.IndexFunc(k.list, func(other any) bool {
		if _, ok := other.(string); ok {
			return false
		}
		o, _ := r.hashKey(other)
		return o == h
	}), nil
}

func (k *Keys) findString(s string) int {
	if k == nil {
		return -1
	}
	if k.strs != nil {
		if i, ok := k.strs[s]; ok {
			return int(i)
		}
		return -1
	}
	for i := range k.list {
		if key, ok := k.list[i].(string); ok && key == s {
			return i
		}
	}
	return -1
}

// onlyTexts tells whether all keys are strings.
func (k *Keys) onlyTexts() bool {
	if k == nil {
		return true
	}
	for _, key := range k.list {
		if _, ok := key.(string); !ok {
			return false
		}
	}
	return true
}
