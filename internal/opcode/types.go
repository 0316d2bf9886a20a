package opcode

import (
	"math"
	"slices"
	"strconv"
	"strings"
)

// Secrecy says how carefully a parameter's values are handled.
type Secrecy int

// The levels of secrecy.
const (
	// Public values are stored and shown.
	Public Secrecy = iota
	// Private values are stored and not shown.
	Private
	// Secret values are neither stored nor shown.
	Secret
)

// Type is the type of a parameter: a value that can be composed of others
// (List, Optional, ...) and that knows its name and how to check a value.
type Type struct {
	name    string
	allowed []string
	secrecy Secrecy
	// elem is the type of the items of a list or the values of an object, fields
	// those of the known keys of a record; only redaction needs them.
	elem   *Type
	fields map[string]Type
	// nested types are of values that hold whole opcodes: what is secret in those,
	// at any depth, is known by its key.
	nested bool
	// convert checks a value and returns it in the shape that Params holds.
	convert func(v any) (any, *mismatch)
}

// mismatch is a value that does not fit, with its path inside the parameter
// ("[2].mode", empty for the parameter itself).
type mismatch struct {
	path string
	want string
	got  any
}

// String returns the type's name, as documentation spells it.
func (t Type) String() string { return t.name }

// Allowed returns the words of an enumeration, nil for other types.
func (t Type) Allowed() []string { return slices.Clone(t.allowed) }

// Secrecy returns the highest secrecy among the type and its parts.
func (t Type) Secrecy() Secrecy {
	highest := t.secrecy
	if t.nested {
		highest = Secret
	}
	if t.elem != nil {
		highest = max(highest, t.elem.Secrecy())
	}
	for _, field := range t.fields {
		highest = max(highest, field.Secrecy())
	}
	return highest
}

func simple(name string, convert func(v any) (any, bool)) Type {
	return Type{name: name, convert: func(v any) (any, *mismatch) {
		if out, ok := convert(v); ok {
			return out, nil
		}
		return nil, &mismatch{want: name, got: v}
	}}
}

// The simple types.
var (
	// Any is any JSON value, null too.
	Any = simple("any", func(v any) (any, bool) { return v, true })
	// Bool is true or false.
	Bool = simple("bool", func(v any) (any, bool) { b, ok := v.(bool); return b, ok })
	// String is any text.
	String = simple("string", func(v any) (any, bool) { s, ok := v.(string); return s, ok })
	// NonEmptyString is a text of at least one character.
	NonEmptyString = simple("non-empty string", func(v any) (any, bool) { s, ok := v.(string); return s, ok && s != "" })
	// Float is any number.
	Float = simple("float", toFloat)
	// Int is a whole number of 64 bits.
	Int = simple("int", toInt)
	// NonNegative is a whole number from 0.
	NonNegative = between("int >= 0", 0, math.MaxInt64)
	// Positive is a whole number from 1.
	Positive = between("int > 0", 1, math.MaxInt64)
	// DiskIndex is the number of one of an instance's disks.
	DiskIndex = between("int 0..15", 0, 15)
	// Object is a JSON object with any contents.
	Object = simple("object", func(v any) (any, bool) { m, ok := v.(map[string]any); return m, ok })
)

func toFloat(v any) (any, bool) {
	switch n := v.(type) {
	case float64:
		return n, true
	case int64:
		return float64(n), true
	}
	return nil, false
}

// toInt also takes a number that is written with a point but is whole.
func toInt(v any) (any, bool) {
	switch n := v.(type) {
	case int64:
		return n, true
	case float64:
		if n == math.Trunc(n) && math.Abs(n) < 1<<63 {
			return int64(n), true
		}
	}
	return nil, false
}

func between(name string, low, high int64) Type {
	return simple(name, func(v any) (any, bool) {
		out, ok := toInt(v)
		if !ok {
			return nil, false
		}
		n, ok := out.(int64)
		return n, ok && n >= low && n <= high
	})
}

// PrivateAny is any value, not to be shown; SecretAny is any value, not even
// to be stored.
var (
	PrivateAny = classified("private any", Private)
	SecretAny  = classified("secret any", Secret)
)

func classified(name string, level Secrecy) Type {
	t := Any
	t.name, t.secrecy = name, level
	return t
}

// Enum is one of a few words.
func Enum(name string, words ...string) Type {
	t := simple("enum "+name, func(v any) (any, bool) {
		s, ok := v.(string)
		return s, ok && slices.Contains(words, s)
	})
	t.allowed = words
	return t
}

// Optional is t for a parameter that may stay unset. Parsing treats null as
// unset before types are asked, so only the name differs.
func Optional(t Type) Type {
	t.name = "optional " + t.name
	return t
}

// Named is t under another name, for text that is of a known kind but is only
// checked when it is used.
func Named(name string, t Type) Type {
	t.name = name
	return t
}

// List is a list whose items are all of type t.
func List(t Type) Type {
	return Type{name: "list of " + t.name, allowed: t.allowed, elem: &t, convert: func(v any) (any, *mismatch) {
		return convertList(v, t, "list of "+t.name)
	}}
}

// Set is a list whose items are all of type t and whose order means nothing.
func Set(t Type) Type {
	list := List(t)
	list.name = "list (set) of " + t.name
	return list
}

func convertList(v any, t Type, name string) (any, *mismatch) {
	list, ok := v.([]any)
	if !ok {
		return nil, &mismatch{want: name, got: v}
	}
	out := make([]any, len(list))
	for i, item := range list {
		converted, m := t.convert(item)
		if m != nil {
			return nil, m.under("[" + strconv.Itoa(i) + "]")
		}
		out[i] = converted
	}
	return out, nil
}

func (m *mismatch) under(path string) *mismatch {
	return &mismatch{path: path + m.path, want: m.want, got: m.got}
}

// Tuple is a list of exactly these types.
func Tuple(types ...Type) Type {
	names := make([]string, len(types))
	var allowed []string
	for i, t := range types {
		names[i] = t.name
		allowed = append(allowed, t.allowed...)
	}
	name := "array[" + strings.Join(names, ", ") + "]"
	return Type{name: name, allowed: allowed, convert: func(v any) (any, *mismatch) {
		list, ok := v.([]any)
		if !ok || len(list) != len(types) {
			return nil, &mismatch{want: name, got: v}
		}
		out := make([]any, len(list))
		for i, item := range list {
			converted, m := types[i].convert(item)
			if m != nil {
				return nil, m.under("[" + strconv.Itoa(i) + "]")
			}
			out[i] = converted
		}
		return out, nil
	}}
}

// Either is a value of the first of these types that fits.
func Either(name string, types ...Type) Type {
	return Type{name: name, convert: func(v any) (any, *mismatch) {
		for _, t := range types {
			if out, m := t.convert(v); m == nil {
				return out, nil
			}
		}
		return nil, &mismatch{want: name, got: v}
	}}
}

// MapOf is an object with keys of type key and values of type value.
func MapOf(key, value Type) Type {
	name := "object{" + key.name + ": " + value.name + "}"
	return Type{name: name, allowed: key.allowed, elem: &value, convert: func(v any) (any, *mismatch) {
		m, ok := v.(map[string]any)
		if !ok {
			return nil, &mismatch{want: name, got: v}
		}
		out := make(map[string]any, len(m))
		for k, item := range m {
			if _, bad := key.convert(k); bad != nil {
				return nil, bad
			}
			converted, bad := value.convert(item)
			if bad != nil {
				return nil, bad.under("." + k)
			}
			out[k] = converted
		}
		return out, nil
	}}
}

// Record is an object whose known keys have types of their own; null stands
// for an unset key. rest is the type of all other keys, nil when there may be
// none.
func Record(name string, known map[string]Type, rest *Type) Type {
	return Type{name: name, fields: known, convert: func(v any) (any, *mismatch) {
		m, ok := v.(map[string]any)
		if !ok {
			return nil, &mismatch{want: name, got: v}
		}
		out := make(map[string]any, len(m))
		for k, item := range m {
			t, ok := known[k]
			if !ok && rest == nil {
				return nil, &mismatch{want: name + " with the keys " + strings.Join(sortedKeys(known), ", "), got: v}
			}
			if !ok {
				t = *rest
			}
			if item == nil {
				out[k] = nil
				continue
			}
			converted, bad := t.convert(item)
			if bad != nil {
				return nil, bad.under("." + k)
			}
			out[k] = converted
		}
		return out, nil
	}}
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
