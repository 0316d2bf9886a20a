// Package opcode is the catalogue of everything a job can be made of: the
// opcodes with their parameters, types, defaults and documentation, and the
// one place where they are checked. Validation, command-line help, field names
// in filter rules and docs/opcodes.md all come from its table.
//
// Invariants:
//   - An Opcode that Parse or FromMap returned fits its definition; it is
//     treated as immutable from then on.
//   - Params holds the opcode's own parameters: defaults are filled in, unset
//     optional ones are absent. Values are bool, int64, float64, string,
//     []any and map[string]any, and nil only inside lists and objects.
//   - Encoding and parsing again gives an equal opcode and the same bytes.
//
// The wire form is Ganeti's: {"OP_ID": "OP_X", own parameters, common
// parameters}; null means the same as leaving a parameter out.
package opcode

import (
	"bytes"
	"maps"
	"strconv"
	"strings"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/reason"
)

// Priorities that an opcode may ask for; a smaller number is more urgent.
const (
	PriorityHigh   = -10
	PriorityNormal = 0
	PriorityLow    = 10
)

// Dependency says that an opcode waits for another job.
type Dependency struct {
	// Job is the id of the other job. A negative one counts back from the id
	// that the depending job itself gets: -1 is the job just before it.
	Job int64
	// Statuses are the final statuses that satisfy it: "success", "error",
	// "canceled". An empty list stands for any but canceled.
	Statuses []string
}

// Opcode is one step of a job.
type Opcode struct {
	ID     string
	Params map[string]any

	// The parameters that all opcodes share. Depends is nil and Comment is
	// nil when they are not set (null on the wire).
	DryRun     bool
	DebugLevel int
	Priority   int
	Depends    []Dependency
	Comment    *string
	Reason     reason.Trail

	// dryRunGiven: dry_run is left out of the wire form when the client left it
	// out.
	dryRunGiven bool
}

// SameWork reports whether two opcodes ask for the same: the values of secrets, the
// urgency, the trail and the jobs they wait for aside. A deployment that is taken up
// again asks for its tasks without those dependencies that have been met.
func (o *Opcode) SameWork(other *Opcode) bool {
	return bytes.Equal(o.work(), other.work())
}

// work is the encoding of what an opcode is to do.
func (o *Opcode) work() []byte {
	c := *o
	c.Reason, c.Depends, c.Priority, c.DebugLevel, c.dryRunGiven = nil, nil, PriorityNormal, 0, true
	return c.ForDisplay().AppendJSON(nil)
}

// Definition returns the opcode's entry in the catalogue.
func (o *Opcode) Definition() *Definition {
	d, _ := Lookup(o.ID)
	return d
}

// CheckSupported refuses an opcode that nothing carries out: fault.Unsupported.
func (o *Opcode) CheckSupported() error {
	if d := o.Definition(); d == nil || d.Unsupported {
		return Unsupported(o.ID)
	}
	return nil
}

// Unsupported is the error of an opcode that nothing carries out.
func Unsupported(id string) error {
	return fault.New(fault.Unsupported, "Opcode %s can't be executed yet", id).WithHint("it is known, but has no executor in this version")
}

// Has says whether the opcode's own parameter is set or has a default.
func (o *Opcode) Has(name string) bool { _, ok := o.Params[name]; return ok }

// Str returns a string parameter, empty when it is not set.
func (o *Opcode) Str(name string) string { s, _ := o.Params[name].(string); return s }

// Bool returns a boolean parameter, false when it is not set.
func (o *Opcode) Bool(name string) bool { b, _ := o.Params[name].(bool); return b }

// Int returns an integer parameter, 0 when it is not set.
func (o *Opcode) Int(name string) int64 { n, _ := o.Params[name].(int64); return n }

// Float returns a number parameter, 0 when it is not set.
func (o *Opcode) Float(name string) float64 {
	switch n := o.Params[name].(type) {
	case float64:
		return n
	case int64:
		return float64(n)
	}
	return 0
}

// List returns a list parameter, nil when it is not set.
func (o *Opcode) List(name string) []any { l, _ := o.Params[name].([]any); return l }

// Map returns an object parameter, nil when it is not set.
func (o *Opcode) Map(name string) map[string]any { m, _ := o.Params[name].(map[string]any); return m }

// Strings returns a parameter that is a list of strings, nil when it is not
// set; items that are no strings are left out.
func (o *Opcode) Strings(name string) []string {
	list := o.List(name)
	if list == nil {
		return nil
	}
	out := make([]string, 0, len(list))
	for _, v := range list {
		if s, ok := v.(string); ok {
			out = append(out, s)
		}
	}
	return out
}

// With returns a copy of the opcode in which one of its own parameters has
// another value; nil removes it. The value must already have one of the
// shapes that Params holds.
func (o *Opcode) With(name string, value any) *Opcode {
	c := *o
	c.Params = make(map[string]any, len(o.Params)+1)
	maps.Copy(c.Params, o.Params)
	if value == nil {
		delete(c.Params, name)
	} else {
		c.Params[name] = value
	}
	return &c
}

// WithReason returns a copy of the opcode with another trail.
func (o *Opcode) WithReason(trail reason.Trail) *Opcode {
	c := *o
	c.Reason = trail
	return &c
}

// Summary is the short text of job lists: the id without "OP_" and, where the
// definition names a summary parameter, its value in parentheses, for example
// "INSTANCE_SHUTDOWN(web1)". A parameter that is not set shows as None.
func (o *Opcode) Summary() string {
	short := strings.TrimPrefix(o.ID, "OP_")
	d := o.Definition()
	if d == nil || d.SummaryField == "" {
		return short
	}
	return short + "(" + summaryValue(o.Params[d.SummaryField]) + ")"
}

func summaryValue(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case float64:
		return summaryFloat(v)
	case nil:
		return "None"
	}
	return string(appendValue(nil, v))
}

// summaryFloat writes a number the way summaries are known to look: plain
// between 0.1 and 10 million ("14.0"), otherwise as mantissa and exponent
// ("1.0e-3").
func summaryFloat(f float64) string {
	abs := max(f, -f)
	if abs == 0 || (abs >= 0.1 && abs < 1e7) {
		return withPoint(strconv.FormatFloat(f, 'f', -1, 64))
	}
	mantissa, exponent, found := strings.Cut(strconv.FormatFloat(f, 'e', -1, 64), "e")
	if !found {
		return mantissa
	}
	n, err := strconv.Atoi(exponent)
	if err != nil {
		return mantissa + "e" + exponent
	}
	return withPoint(mantissa) + "e" + strconv.Itoa(n)
}

func withPoint(text string) string {
	if strings.ContainsRune(text, '.') {
		return text
	}
	return text + ".0"
}

// ReasonSource is the source of the trail entry that submission adds, for
// example "gnt:opcode:instance_shutdown".
func (o *Opcode) ReasonSource() string { return ReasonSource(o.ID) }

// ReasonSource is the source of the trail entry for an opcode id.
func ReasonSource(id string) string {
	if d, known := Lookup(id); known {
		return d.source
	}
	return sourceOf(id)
}

func sourceOf(id string) string {
	return "gnt:opcode:" + strings.ToLower(strings.TrimPrefix(id, "OP_"))
}
