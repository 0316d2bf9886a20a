package opcode

import (
	"encoding/json"
	"math"

	"github.com/drover-project/drover/internal/reason"
)

// normalise turns values that Go code or encoding/json made into the shapes
// that types are checked on. What it does not know it leaves alone; the type
// then refuses it.
func normalise(v any) any {
	switch v := v.(type) {
	case json.Number:
		n, err := readNumber(v.String())
		if err != nil {
			return v.String()
		}
		return n
	case int:
		return int64(v)
	case int32:
		return int64(v)
	case float32:
		return float64(v)
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return "a number without a value"
		}
		return v
	case *string:
		if v == nil {
			return nil
		}
		return *v
	case []string:
		return toList(v, func(s string) any { return s })
	case []int:
		return toList(v, func(n int) any { return int64(n) })
	case []any:
		return toList(v, normalise)
	case []map[string]any:
		return toList(v, func(m map[string]any) any { return normalise(m) })
	case map[string]any:
		return toMap(v, normalise)
	case map[string]string:
		return toMap(v, func(s string) any { return s })
	case reason.Trail:
		return toList(v, func(e reason.Entry) any { return []any{e.Source, e.Reason, e.Time} })
	case []Dependency:
		return toList(v, func(d Dependency) any { return []any{d.Job, normalise(d.Statuses)} })
	}
	return v
}

func toList[T any](in []T, convert func(T) any) any {
	if in == nil {
		return nil
	}
	out := make([]any, len(in))
	for i, item := range in {
		out[i] = convert(item)
	}
	return out
}

func toMap[T any](in map[string]T, convert func(T) any) any {
	if in == nil {
		return nil
	}
	out := make(map[string]any, len(in))
	for k, item := range in {
		out[k] = convert(item)
	}
	return out
}
