package yaql

import (
	"encoding/json"
	"math/big"
	"reflect"
	"sort"
	"strings"
	"time"

	"github.com/drover-project/drover/yaql/internal/pytext"
	"github.com/drover-project/drover/yaql/internal/pytime"
)

// norm gives a value of the host the representation that the engine works with. Containers are not copied: their
// items are adapted when they are read.
func norm(v any) any {
	switch v.(type) {
	case string, map[string]any, int64, bool, []any, float64, nil:
		return v
	}
	return normSlow(v)
}

func normSlow(v any) any {
	switch x := v.(type) {
	case *Dict, *List, *Set, *View, *Iterator, DateTime, Timespan, *Regex, *Context, *Function, Mapping, Sequence,
		Object, Pair, noValueType, complex128, *ordering, *memo, *callable:
		return v
	case Tuple:
		return []any(x)
	case int:
		return int64(x)
	case int32:
		return int64(x)
	case uint64:
		return intValue(new(big.Int).SetUint64(x))
	case *big.Int:
		return intValue(x)
	case float32:
		return float64(x)
	case json.Number:
		return jsonNumber(x)
	case time.Time:
		return hostTime(x)
	case time.Duration:
		return pytime.Microseconds(x.Microseconds())
	case []string:
		return stringSeq(x)
	case error:
		return v
	}
	return reflected(v)
}

func jsonNumber(n json.Number) any {
	if !strings.ContainsAny(string(n), ".eE") {
		if b, err := pytext.ParseInt(string(n)); err == nil {
			return intValue(b)
		}
	}
	f, err := n.Float64()
	if err != nil {
		return string(n)
	}
	return f
}

// hostTime keeps the offset of t but not the name of its zone. Times outside the calendar stay opaque.
func hostTime(t time.Time) any {
	_, seconds := t.Zone()
	d, err := pytime.FromTime(t, pytime.FixedZone(pytime.Microseconds(int64(seconds)*1e6)))
	if err != nil {
		return t
	}
	return d
}

type stringSeq []string

func (s stringSeq) Len() int     { return len(s) }
func (s stringSeq) At(i int) any { return s[i] }

// reflected adapts values of named and composite types.
func reflected(v any) any {
	rv := reflect.ValueOf(v)
	switch rv.Kind() {
	case reflect.Bool:
		return rv.Bool()
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return rv.Int()
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		return intValue(new(big.Int).SetUint64(rv.Uint()))
	case reflect.Float32, reflect.Float64:
		return rv.Float()
	case reflect.String:
		return rv.String()
	case reflect.Slice, reflect.Array:
		if rv.Kind() == reflect.Slice && rv.IsNil() {
			return nil
		}
		return hostSeq{rv}
	case reflect.Map:
		if rv.IsNil() {
			return nil
		}
		return hostMap{rv}
	case reflect.Pointer, reflect.Interface:
		if rv.IsNil() {
			return nil
		}
		if rv.Elem().Kind() == reflect.Struct {
			return hostStruct{rv.Elem()}
		}
		return norm(rv.Elem().Interface())
	case reflect.Struct:
		return hostStruct{rv}
	}
	return v
}

// hostSeq is a slice or array of the host.
type hostSeq struct{ v reflect.Value }

func (s hostSeq) Len() int     { return s.v.Len() }
func (s hostSeq) At(i int) any { return s.v.Index(i).Interface() }

// hostMap is a map of the host with other types than map[string]any.
type hostMap struct{ v reflect.Value }

func (m hostMap) Len() int { return m.v.Len() }

func (m hostMap) Get(key any) (any, bool) {
	k := reflect.ValueOf(key)
	want := m.v.Type().Key()
	if want.Kind() == reflect.Interface {
		return m.scan(key)
	}
	if !k.IsValid() {
		return nil, false
	}
	if k.Type() != want {
		if k.Kind() == reflect.String != (want.Kind() == reflect.String) || !k.CanConvert(want) {
			return nil, false
		}
		converted := k.Convert(want)
		if !equal(norm(converted.Interface()), key) {
			return nil, false
		}
		k = converted
	}
	x := m.v.MapIndex(k)
	if !x.IsValid() {
		return nil, false
	}
	return x.Interface(), true
}

// scan looks for a key among keys of different types.
func (m hostMap) scan(key any) (value any, ok bool) {
	m.Range(func(k, x any) bool {
		if ok = equal(norm(k), key); ok {
			value = x
		}
		return !ok
	})
	return value, ok
}

func (m hostMap) Range(f func(key, value any) bool) {
	keys := m.v.MapKeys()
	sort.Slice(keys, func(i, j int) bool {
		a, b := norm(keys[i].Interface()), norm(keys[j].Interface())
		if x, ok := a.(string); ok {
			y, ok := b.(string)
			return ok && x < y
		}
		c, ok := compareHost(a, b)
		return ok && c < 0
	})
	for _, k := range keys {
		if !f(k.Interface(), m.v.MapIndex(k).Interface()) {
			return
		}
	}
}

func compareHost(a, b any) (int, bool) {
	if !isNumber(a) || !isNumber(b) {
		return 0, false
	}
	return compareNumbers(a, b)
}

// hostStruct is a struct of the host, seen as a map of its exported fields by their JSON names.
type hostStruct struct{ v reflect.Value }

// fieldName returns the name of a field in the language and whether it has one.
func fieldName(f reflect.StructField) (string, bool) {
	if !f.IsExported() {
		return "", false
	}
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	switch name {
	case "-":
		return "", false
	case "":
		return f.Name, true
	}
	return name, true
}

func (s hostStruct) Len() int {
	n := 0
	s.Range(func(any, any) bool { n++; return true })
	return n
}

func (s hostStruct) Get(key any) (any, bool) {
	name, ok := key.(string)
	if !ok {
		return nil, false
	}
	t := s.v.Type()
	for i := range t.NumField() {
		if n, ok := fieldName(t.Field(i)); ok && n == name {
			return s.v.Field(i).Interface(), true
		}
	}
	return nil, false
}

func (s hostStruct) Range(f func(key, value any) bool) {
	t := s.v.Type()
	for i := range t.NumField() {
		if n, ok := fieldName(t.Field(i)); ok && !f(n, s.v.Field(i).Interface()) {
			return
		}
	}
}

// Unconverted returns a copy of v in which lists and maps are of the mutable kinds, as the reference sees data
// that it has not converted: such lists differ from list literals, and neither can be keys.
func Unconverted(v any) any {
	switch x := norm(v).(type) {
	case []any:
		if _, tuple := v.(Tuple); tuple {
			return mapItems(x, Unconverted)
		}
		return &List{Items: mapItems(x, Unconverted)}
	case *List:
		return &List{Items: mapItems(x.Items, Unconverted)}
	case *Dict:
		if x.keys != nil && x.keys.shared {
			return &Dict{keys: x.keys, values: mapItems(x.values, Unconverted), mutable: true}
		}
		return unconvertedMap(x)
	case map[string]any, Mapping:
		return unconvertedMap(x)
	case Sequence:
		items, _ := seqItems(x)
		return &List{Items: mapItems(items, Unconverted)}
	default:
		return x
	}
}

func unconvertedMap(x any) *Dict {
	d := NewDict(dictLen(x))
	dictRange(x, func(k, e any) bool {
		_ = d.Set(k, Unconverted(e)) // keys of maps are hashable
		return true
	})
	d.mutable = true
	return d
}

func mapItems(items []any, f func(any) any) []any {
	out := make([]any, len(items))
	for i, x := range items {
		out[i] = f(x)
	}
	return out
}
