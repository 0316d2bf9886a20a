package cluster

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"math"

	"github.com/drover-project/drover/internal/fault"
)

// Params are named parameter values, for example backend or hypervisor
// parameters. Values are canonical: nil, bool, int64, float64, string, []any
// or Params-like map[string]any of the same. Integral numbers are int64 when
// they fit. Read from JSON they are canonical by themselves; Canonical makes
// a value so.
type Params map[string]any

// UnmarshalJSON reads an object and makes its values canonical.
func (p *Params) UnmarshalJSON(data []byte) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	var raw map[string]any
	if err := dec.Decode(&raw); err != nil {
		return err
	}
	if _, err := dec.Token(); err != io.EOF {
		return fault.New(fault.Invalid, "unexpected text after a parameter object")
	}
	for k, v := range raw {
		raw[k] = Canonical(v)
	}
	*p = raw
	return nil
}

// MarshalJSON writes an object with its keys in order; nil is {}.
func (p Params) MarshalJSON() ([]byte, error) {
	if p == nil {
		return []byte("{}"), nil
	}
	return json.Marshal(map[string]any(p))
}

// Clone returns a deep copy.
func (p Params) Clone() Params {
	if p == nil {
		return nil
	}
	out := make(Params, len(p))
	for k, v := range p {
		out[k] = cloneValue(v)
	}
	return out
}

func cloneValue(v any) any {
	switch v := v.(type) {
	case []any:
		out := make([]any, len(v))
		for i, x := range v {
			out[i] = cloneValue(x)
		}
		return out
	case map[string]any:
		return map[string]any(Params(v).Clone())
	}
	return v
}

// Canonical turns the number types of Go and of encoding/json into int64 or
// float64, and Params into map[string]any, deep inside lists and objects,
// which are altered in place.
func Canonical(v any) any {
	switch v := v.(type) {
	case json.Number:
		return canonicalNumber(v)
	case int:
		return int64(v)
	case float64:
		if v == math.Trunc(v) && math.Abs(v) < 1<<53 {
			return int64(v)
		}
		return v
	case []any:
		for i, x := range v {
			v[i] = Canonical(x)
		}
		return v
	case Params:
		return Canonical(map[string]any(v))
	case map[string]any:
		for k, x := range v {
			v[k] = Canonical(x)
		}
		return v
	}
	return v
}

func canonicalNumber(n json.Number) any {
	if i, err := n.Int64(); err == nil {
		return i
	}
	f, err := n.Float64()
	if err != nil {
		return n.String()
	}
	return Canonical(f)
}

// Fill returns base with the values of the layers over it, later layers
// first. The result shares nothing with its arguments but deep values, which
// nobody alters.
func Fill(base Params, layers ...Params) Params {
	out := make(Params, len(base))
	maps.Copy(out, base)
	for _, l := range layers {
		maps.Copy(out, l)
	}
	return out
}

func cloneParamsMap(m map[string]Params) map[string]Params {
	if m == nil {
		return nil
	}
	out := make(map[string]Params, len(m))
	for k, v := range m {
		out[k] = v.Clone()
	}
	return out
}
