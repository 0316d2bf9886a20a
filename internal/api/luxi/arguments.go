package luxi

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/intake"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/luxiwire"
	"github.com/drover-project/drover/internal/qlang"
	"github.com/drover-project/drover/internal/reason"
)

// arguments reads the arguments of one request. The first one that does not
// fit is remembered and answered by bad; readers after it return zero values.
type arguments struct {
	text  raw
	items []raw
	err   error
	// known is what the reference calls a list of the arguments that it knows.
	known string
	// by is who sends the request.
	by reason.Account
}

// arityNames are what the reference calls lists of a fixed length.
var arityNames = map[int]string{0: "Null", 1: "OneTuple", 2: "Pair", 3: "Triple", 4: "Tuple4", 5: "Tuple5"}

// anything is the greatest number of arguments of a method that looks at none.
const anything = -1

// arguments splits the argument list and checks its length.
func (m method) arguments(text raw) (*arguments, error) {
	a := &arguments{text: text, known: arityNames[m.min]}
	if m.max == anything {
		return a, nil
	}
	items, ok := luxiwire.Elements(text)
	if a.items = items; !ok || len(a.items) < m.min || len(a.items) > m.max {
		a.fail(fault.New(fault.Invalid, "Unable to read %s", a.known).WithHint("%s takes %s", m.name, m.arity()))
		return nil, a.bad()
	}
	return a, nil
}

func (m method) arity() string {
	noun := "arguments"
	if m.max == 1 {
		noun = "argument"
	}
	if m.min == m.max {
		return fmt.Sprintf("%d %s", m.min, noun)
	}
	return fmt.Sprintf("%d to %d %s", m.min, m.max, noun)
}

// bad returns the first error as the answer to the request, or nil.
func (a *arguments) bad() error {
	if a.err == nil {
		return nil
	}
	f, ok := errors.AsType[*fault.Error](a.err)
	if !ok {
		f = fault.New(fault.Invalid, "%w", a.err)
	}
	return &parseError{fmt.Sprintf("Cannot convert value '%s', error: %s", spaced(a.text), f.Message), f}
}

func (a *arguments) fail(err error) {
	if a.err == nil {
		a.err = err
	}
}

// has reports whether the argument was given and is not null.
func (a *arguments) has(i int) bool {
	return i < len(a.items) && string(a.items[i]) != "null"
}

// decode reads an argument into a Go value; kind is what the reference calls
// the type in its errors.
func (a *arguments) decode(i int, kind string, into any) {
	if i >= len(a.items) || string(a.items[i]) == "null" || json.Unmarshal(a.items[i], into) != nil {
		a.fail(fault.New(fault.Invalid, "Unable to read %s", kind).At(fmt.Sprintf("args[%d]", i)))
	}
}

// object reads an object of options; one that there is not is refused, since
// nothing would come of it.
func (a *arguments) object(i int, into any) {
	err := intake.Read(a.items[i], into)
	if err == nil {
		return
	}
	at := fmt.Sprintf("args[%d]", i)
	if f, ok := errors.AsType[*fault.Error](err); ok && strings.HasPrefix(f.Field, "[") {
		at += f.Field
	} else if ok && f.Field != "" {
		at += "." + f.Field
	}
	a.fail(fault.New(fault.Invalid, "Unable to read JSObject").At(at).WithHint("%s", err))
}

func (a *arguments) str(i int) (out string)      { a.decode(i, "String", &out); return out }
func (a *arguments) boolean(i int) (out bool)    { a.decode(i, "Bool", &out); return out }
func (a *arguments) integer(i int) (out int64)   { a.decode(i, "Int", &out); return out }
func (a *arguments) number(i int) (out float64)  { a.decode(i, "Double", &out); return out }
func (a *arguments) optionalStrs(i int) []string { return optional(a, i, a.strs) }
func (a *arguments) optionalStr(i int) string    { return optional(a, i, a.str) }
func (a *arguments) optionalBool(i int) bool     { return optional(a, i, a.boolean) }

// strs reads a list of texts; null is none.
func (a *arguments) strs(i int) []string {
	var given []*string
	a.decode(i, "[String]", &given)
	out := make([]string, 0, len(given))
	for _, text := range given {
		if text == nil {
			a.fail(fault.New(fault.Invalid, "Unable to read [String]").At(fmt.Sprintf("args[%d]", i)))
			return nil
		}
		out = append(out, *text)
	}
	return out
}

// raws reads a list of any values, rawLists a list of lists. They are parts of
// the request, not copies.
func (a *arguments) raws(i int) []raw {
	if i < len(a.items) {
		if list, ok := luxiwire.Elements(a.items[i]); ok {
			return list
		}
	}
	a.fail(fault.New(fault.Invalid, "Unable to read %s", "[JSValue]").At(fmt.Sprintf("args[%d]", i)))
	return nil
}

func (a *arguments) rawLists(i int) [][]raw {
	lists := a.raws(i)
	out := make([][]raw, len(lists))
	for n, list := range lists {
		var ok bool
		if out[n], ok = luxiwire.Elements(list); !ok {
			a.fail(fault.New(fault.Invalid, "Unable to read %s", "[[JSValue]]").At(fmt.Sprintf("args[%d]", i)))
			return nil
		}
	}
	return out
}

// optional reads an argument that may be null or left out.
func optional[T any](a *arguments, i int, read func(int) T) T {
	if !a.has(i) {
		var zero T
		return zero
	}
	return read(i)
}

// jobID reads the job id, a number or its decimal text, with which a request
// about one job begins.
func (a *arguments) jobID() job.ID {
	if len(a.items) == 0 {
		a.fail(fault.New(fault.Invalid, "Unable to read JobId"))
		return 0
	}
	id, err := parseJobID(a.items[0])
	if err != nil {
		a.fail(err)
	}
	return id
}

func parseJobID(text raw) (job.ID, error) {
	digits := string(text)
	var quoted string
	if json.Unmarshal(text, &quoted) == nil && digits != "null" {
		digits = quoted
	}
	id, err := job.ParseID(digits)
	if err != nil {
		return 0, fault.New(fault.Invalid, "Invalid value for job ID '%s': it must be a whole number that is not negative", clip(digits))
	}
	return id, nil
}

// maxIDs is how many jobs a request may name; one that is about more asks for
// all, or with a filter.
const maxIDs = 100_000

// jobIDs reads a list of job ids. Null, like an empty list, stands for all.
func (a *arguments) jobIDs(i int) []job.ID {
	if !a.has(i) {
		return nil
	}
	items := a.raws(i)
	if len(items) > maxIDs {
		a.fail(fault.New(fault.TooLarge, "the request names %d jobs; the limit is %d", len(items), maxIDs).At(fmt.Sprintf("args[%d]", i)))
		return nil
	}
	ids := make([]job.ID, 0, len(items))
	for _, item := range items {
		id, err := parseJobID(item)
		if err != nil {
			a.fail(err)
			return nil
		}
		ids = append(ids, id)
	}
	return ids
}

// filter reads a query filter; null stands for all.
func (a *arguments) filter(i int) qlang.Node {
	if i >= len(a.items) {
		return &qlang.All{}
	}
	n, err := qlang.ParseJSON(a.items[i])
	if err != nil {
		a.fail(err)
		return &qlang.All{}
	}
	return n
}

// spacedLimit is how much of the arguments an error repeats, in bytes.
const spacedLimit = 2000

// spaced writes JSON the way the reference does in its errors, with a blank
// after each comma and colon, and shortens it.
func spaced(text raw) string {
	if len(text) > 4*spacedLimit { // a listing of megabytes need not be formatted to be cut
		text = text[:4*spacedLimit]
	}
	var b strings.Builder
	inString, escaped := false, false
	for _, c := range text {
		switch {
		case inString:
			b.WriteByte(c)
			inString = escaped || c != '"'
			escaped = c == '\\' && !escaped
			continue
		case c == ' ', c == '\t', c == '\n', c == '\r':
			continue
		case c == '"':
			inString = true
		}
		b.WriteByte(c)
		if c == ',' || c == ':' {
			b.WriteByte(' ')
		}
	}
	out := b.String()
	if len(out) > spacedLimit {
		return strings.ToValidUTF8(out[:spacedLimit], "") + "..."
	}
	return out
}

// clip shortens a text for an error.
func clip(text string) string {
	const limit = 80
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit], "") + "..."
}
