package yaql

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// What encoding/json makes of values that only the language has. It loses their kinds; package yaqljson keeps them.

// MarshalJSON writes the map as an object, its keys in their order. Keys that are no texts are an error.
func (d *Dict) MarshalJSON() ([]byte, error) {
	var out bytes.Buffer
	var err error
	sep := byte('{')
	d.Range(func(key, value any) bool {
		name, ok := key.(string)
		if !ok {
			err = fmt.Errorf("yaql: a key of a map is no string but %s, which JSON cannot hold (package yaqljson can)", clip(repr(key)))
			return false
		}
		var k, v []byte
		if k, err = json.Marshal(name); err != nil {
			return false
		}
		if v, err = json.Marshal(value); err != nil {
			return false
		}
		out.WriteByte(sep)
		out.Write(k)
		out.WriteByte(':')
		out.Write(v)
		sep = ','
		return true
	})
	if err != nil {
		return nil, err
	}
	if sep == '{' {
		out.WriteByte('{')
	}
	out.WriteByte('}')
	return out.Bytes(), nil
}

// MarshalJSON writes the set as a list, in its order.
func (s *Set) MarshalJSON() ([]byte, error) { return json.Marshal(append([]any{}, s.Items()...)) }

// MarshalJSON writes the view as a list.
func (v *View) MarshalJSON() ([]byte, error) { return json.Marshal(v.Items()) }

// MarshalJSON writes the list as one.
func (l *List) MarshalJSON() ([]byte, error) { return json.Marshal(append([]any{}, l.Items...)) }

// MarshalJSON refuses: items that have not been computed yet cannot be written. See the method Finalize of Context.
func (*Iterator) MarshalJSON() ([]byte, error) {
	return nil, errorf(TypeError, "a lazy collection cannot be written as JSON; convert it first")
}
