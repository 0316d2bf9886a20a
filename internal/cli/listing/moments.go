package listing

import (
	"bytes"
	"encoding/json"
	"math/big"
	"slices"
	"time"
)

// pairTimes are the fields whose times are pairs of seconds and microseconds, as
// clients of the reference know them.
var pairTimes = []string{"received_ts", "start_ts", "end_ts", "held_since", "waits_since"}

// Moment reads the value of a field as a time; ok is false for what is none.
func Moment(f Field, value json.RawMessage) (at time.Time, ok bool) {
	if f.Kind == "timestamp" {
		seconds, ok := new(big.Rat).SetString(string(value)) // a float would lose nanoseconds
		if !ok {
			return time.Time{}, false
		}
		nanos := seconds.Mul(seconds, big.NewRat(1e9, 1))
		whole := new(big.Int).Quo(nanos.Num(), nanos.Denom())
		if !whole.IsInt64() {
			return time.Time{}, false
		}
		return time.Unix(0, whole.Int64()), true
	}
	var pair []int64
	if f.Kind != "other" || !slices.Contains(pairTimes, f.Name) || json.Unmarshal(value, &pair) != nil || len(pair) != 2 {
		return time.Time{}, false
	}
	return time.Unix(pair[0], pair[1]*1000), true
}

// Data is a value as data formats show it: times in RFC 3339, everything else as
// it came.
func Data(f Field, value json.RawMessage) json.RawMessage {
	if at, ok := Moment(f, value); ok {
		return json.RawMessage(`"` + at.UTC().Format(time.RFC3339Nano) + `"`)
	}
	if f.Name == "timeline" {
		if spans, err := Times(value, "from", "to"); err == nil {
			return spans
		}
	}
	return unescaped(value)
}

// plainLetters are letters that some encoders escape in JSON for the sake of web
// pages.
var plainLetters = map[string]string{`\u003c`: "<", `\u003e`: ">", `\u0026`: "&"}

// unescaped is JSON with these letters as they are.
func unescaped(value json.RawMessage) json.RawMessage {
	if !bytes.Contains(value, []byte(`\u00`)) {
		return value
	}
	var out []byte
	for i := 0; i < len(value); {
		n := 1
		if value[i] == '\\' {
			n = 2 // what stands behind a backslash does not begin an escape
			if i+6 <= len(value) {
				if letter := plainLetters[string(value[i:i+6])]; letter != "" {
					out = append(out, letter...)
					i += 6
					continue
				}
			}
		}
		end := min(i+n, len(value))
		out = append(out, value[i:end]...)
		i = end
	}
	return out
}

// Words tell in data formats why a value is not there, by status.
var Words = map[int]string{1: "unknown", 2: "nodata", 3: "unavail", 4: "offline"}
