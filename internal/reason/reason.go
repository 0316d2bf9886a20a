// Package reason holds reason trails: who wanted something and why, hop by
// hop. A trail travels with every opcode, filter rule and tag change; each hop
// appends an entry and changes nothing before it.
//
// Invariants:
//   - Append never alters the trail it was given; two trails never share the
//     room behind their ends.
//   - Sources that begin with "gnt:", and "luxid", in whatever letters, belong to
//     components of the system and are refused from outside (CheckOutside).
//   - What comes from outside is bounded: MaxEntries, MaxSource, MaxReason.
package reason

import (
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"github.com/drover-project/drover/internal/fault"
)

// ReservedPrefix begins the sources that only our own components may use.
const ReservedPrefix = "gnt:"

// What a trail from outside may hold. The hops that components of the system
// add come on top.
const (
	// MaxEntries is how many hops.
	MaxEntries = 100
	// MaxSource and MaxReason are the lengths of the texts of one hop, in bytes.
	MaxSource = 256
	MaxReason = 16 << 10
)

// LimitPrefix begins a reason text that asks for an ad-hoc limit (Bucket).
const LimitPrefix = "rate-limit:"

// Sources that several components share.
const (
	SourceUser   = "gnt:user"
	SourceClient = "gnt:client"
	// SourceWatcher is that of the watcher, ours or Ganeti's: what it asks for rests upon what it saw before.
	SourceWatcher = "gnt:watcher"
	// SourceAccount begins the source of the entry by which a surface tells who
	// sent a request; the surface follows ("gnt:account:rapi").
	SourceAccount = "gnt:account:"
	// SourceQueue is the source of the hop by which the queue takes a rule, under the
	// name that clients know. It says nothing, but of a rule that cannot be read.
	SourceQueue = "luxid"
)

// Account is who sent a request, as far as the surface that took it knows.
type Account struct {
	// Surface is "luxi", "rapi", or the like.
	Surface string `json:"surface"`
	// Name is the account's name there.
	Name string `json:"name"`
	// From is where the request came from: an address, a process; may be empty.
	From string `json:"from,omitempty"`
}

// String names the account for people: "alice (127.0.0.1:5000) over rapi".
func (a Account) String() string { return a.who() + " over " + a.Surface }

func (a Account) who() string {
	if a.From == "" {
		return a.Name
	}
	return a.Name + " (" + a.From + ")"
}

// Entry is the hop that tells who sent a request.
func (a Account) Entry(now time.Time) Entry {
	return Entry{Source: SourceAccount + a.Surface, Reason: a.who(), Time: now.UnixNano()}
}

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

// Then appends a hop of our own, which is never earlier than the one before it,
// whatever the clock says that made that one.
func (t Trail) Then(e Entry) Trail {
	if len(t) > 0 {
		e.Time = max(e.Time, t[len(t)-1].Time)
	}
	return t.Append(e)
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

// CheckOutside refuses a trail that came from outside and is too long, or holds
// a reserved source that the interface does not let pass. A nil allowed lets
// none pass.
func CheckOutside(t Trail, allowed func(source string) bool) error {
	if len(t) > MaxEntries {
		return fault.New(fault.TooLarge, "the reason trail has %d entries; the limit is %d", len(t), MaxEntries).At("reason")
	}
	for i, e := range t {
		at := "reason[" + strconv.Itoa(i) + "]"
		switch {
		case len(e.Source) > MaxSource:
			return fault.New(fault.TooLarge, "the source of reason entry %d has %d bytes; the limit is %d", i, len(e.Source), MaxSource).At(at)
		case len(e.Reason) > MaxReason:
			return fault.New(fault.TooLarge, "the text of reason entry %d has %d bytes; the limit is %d", i, len(e.Reason), MaxReason).At(at)
		case Reserved(e.Source) && (allowed == nil || !allowed(e.Source)):
			return fault.New(fault.Invalid, "reason entry %d has the reserved source %q: sources that begin with %q, and %q, belong to the system",
				i, e.Source, ReservedPrefix, SourceQueue).At(at).
				WithHint("use a source of your own, for example \"user\"")
		}
	}
	return nil
}

// Reserved reports whether a person would take the source for one of the
// system's: case, width, blanks and letters without a shape make no difference.
func Reserved(source string) bool {
	shaped := strings.Map(func(r rune) rune {
		if unicode.In(r, unicode.Cc, unicode.Cf, unicode.Z, unicode.Variation_Selector) {
			return -1
		}
		return unicode.ToLower(r)
	}, norm.NFKC.String(source))
	return strings.HasPrefix(shaped, ReservedPrefix) || shaped == SourceQueue
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

// Misread returns the reasons that begin as limits do and are none, each once.
func (t Trail) Misread() []string {
	var out []string
	for _, e := range t {
		_, ok := parseBucket(e.Reason)
		if !ok && strings.HasPrefix(e.Reason, LimitPrefix) && !slices.Contains(out, e.Reason) {
			out = append(out, e.Reason)
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

// opcodeSource begins the sources of entries that name a job and an opcode.
const opcodeSource = ReservedPrefix + "opcode:"

// Text joins what people and clients said, sources and reasons, without what
// only names a job and an opcode.
func (t Trail) Text() string {
	if len(t) == 1 {
		return t[0].text()
	}
	var b strings.Builder
	for _, e := range t {
		if strings.HasPrefix(e.Source, opcodeSource) {
			continue
		}
		if b.Len() > 0 {
			b.WriteString("; ")
		}
		b.WriteString(e.Source)
		if e.Reason != "" {
			b.WriteString(": ")
			b.WriteString(e.Reason)
		}
	}
	return b.String()
}

func (e Entry) text() string {
	switch {
	case strings.HasPrefix(e.Source, opcodeSource):
		return ""
	case e.Reason == "":
		return e.Source
	}
	return e.Source + ": " + e.Reason
}
