// Package reason holds reason trails: who wanted something and why, hop by
// hop. A trail travels with every opcode, filter rule and tag change; each hop
// appends an entry and changes nothing before it.
//
// Invariants:
//   - Append never alters the trail it was given; two trails never share the
//     room behind their ends.
//   - Sources that begin with "gnt:" belong to components of the system and
//     are refused from outside (CheckOutside).
package reason

import (
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/drover-project/drover/internal/fault"
)

// ReservedPrefix begins the sources that only our own components may use.
const ReservedPrefix = "gnt:"

// LimitPrefix begins a reason text that asks for an ad-hoc limit (Bucket).
const LimitPrefix = "rate-limit:"

// Sources that several components share.
const (
	SourceUser   = "gnt:user"
	SourceClient = "gnt:client"
)

// Entry is one hop: the entity that decided or passed on, its reason (possibly
// empty), and when, in nanoseconds since the epoch.
type Entry struct {
	Source string
	Reason string
	Time   int64
}

// Trail is a list of hops, oldest first. On the wire it is a list of triples
// [source, reason, nanoseconds].
type Trail []Entry

// Append returns a trail with the entries added at the end; t stays as it is.
func (t Trail) Append(entries ...Entry) Trail {
	out := make(Trail, 0, len(t)+len(entries))
	return append(append(out, t...), entries...)
}

// MarshalJSON writes the triple [source, reason, nanoseconds].
func (e Entry) MarshalJSON() ([]byte, error) {
	return json.Marshal([3]any{e.Source, e.Reason, e.Time})
}

// UnmarshalJSON reads a triple. A fractional time is rounded, as the reference
// does; anything else that does not fit is refused with its place.
func (e *Entry) UnmarshalJSON(data []byte) error {
	var raw []json.RawMessage
	if err := json.Unmarshal(data, &raw); err != nil || len(raw) != 3 {
		return fault.New(fault.Invalid, "a reason entry must be a list [source, reason, nanoseconds], got %s", clip(data))
	}
	if err := json.Unmarshal(raw[0], &e.Source); err != nil || isNull(raw[0]) {
		return fault.New(fault.Invalid, "the source of a reason entry must be a string, got %s", clip(raw[0]))
	}
	if err := json.Unmarshal(raw[1], &e.Reason); err != nil || isNull(raw[1]) {
		return fault.New(fault.Invalid, "the reason of a reason entry must be a string, got %s", clip(raw[1]))
	}
	ns, ok := nanoseconds(string(raw[2]))
	if !ok {
		return fault.New(fault.Invalid, "the time of a reason entry must be a number of nanoseconds, got %s", clip(raw[2]))
	}
	e.Time = ns
	return nil
}

func isNull(raw []byte) bool { return string(raw) == "null" }

func nanoseconds(text string) (int64, bool) {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return n, true
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(f) || math.Abs(f) >= math.MaxInt64 {
		return 0, false
	}
	return int64(math.Round(f)), true
}

// clip shortens raw input for an error message.
func clip(raw []byte) string {
	const limit = 80
	if len(raw) <= limit {
		return string(raw)
	}
	return strings.ToValidUTF8(string(raw[:limit]), "") + "..."
}

// CheckOutside refuses a trail that came from outside and holds a reserved
// source that the interface does not let pass. A nil allowed lets none pass.
func CheckOutside(t Trail, allowed func(source string) bool) error {
	for i, e := range t {
		if !strings.HasPrefix(e.Source, ReservedPrefix) || (allowed != nil && allowed(e.Source)) {
			continue
		}
		return fault.New(fault.Invalid, "reason entry %d has the reserved source %q: sources that begin with %q belong to the system",
			i, e.Source, ReservedPrefix).At("reason[" + strconv.Itoa(i) + "]").
			WithHint("use a source of your own, for example \"user\"")
	}
	return nil
}

// Bucket is an ad-hoc limit that a submitter asks for by a reason text
// "rate-limit:N:LABEL": at most Limit jobs that name the same limit and label
// run at once.
type Bucket struct {
	Limit int
	Label string
}

// Buckets returns the ad-hoc limits that the trail names, in order, each once.
// "rate-limit:5" is the bucket with an empty label; a text whose number is no
// positive integer names no bucket.
func (t Trail) Buckets() []Bucket {
	var out []Bucket
	for _, e := range t {
		b, ok := parseBucket(e.Reason)
		if ok && !slices.Contains(out, b) {
			out = append(out, b)
		}
	}
	return out
}

func parseBucket(text string) (Bucket, bool) {
	rest, ok := strings.CutPrefix(text, LimitPrefix)
	if !ok {
		return Bucket{}, false
	}
	number, label, _ := strings.Cut(rest, ":")
	n, err := strconv.Atoi(number)
	if err != nil || n < 1 {
		return Bucket{}, false
	}
	return Bucket{Limit: n, Label: label}, true
}
