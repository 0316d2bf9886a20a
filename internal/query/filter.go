package query

import (
	"errors"
	"math"
	"math/big"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/qlang"
)

// Verdict is what a test says about a row.
type Verdict uint8

// The verdicts.
const (
	No Verdict = iota
	Yes
	// Undecided means that a value is needed that only nodes know. It ends evaluation at
	// once and keeps the row, also below a negation.
	Undecided
)

func decide(b bool) Verdict {
	if b {
		return Yes
	}
	return No
}

// Test is a compiled filter.
type Test[R any] func(*View, R) (Verdict, error)

// check is a compiled test of one value whose status is Normal.
type check func(value any) (bool, error)

// Compile turns a filter, whose fields all exist, into a test; nil stands for
// the one that always holds. Without nodesAnswered live fields are undecided.
func (t *Table[R]) Compile(n qlang.Node, nodesAnswered bool) Test[R] {
	switch n := n.(type) {
	case *qlang.And:
		return t.compileMany(n.Args, nodesAnswered, No)
	case *qlang.Or:
		oneByOne := t.compileMany(n.Args, nodesAnswered, Yes)
		if set, f := t.valueSetOf(n); set != nil && (f.From != Live || nodesAnswered) {
			return throughSet(set, f, oneByOne)
		}
		return oneByOne
	case *qlang.Not:
		return negate(t.Compile(n.Arg, nodesAnswered))
	case *qlang.All, nil:
		return nil
	}
	name, _ := qlang.Field(n)
	f := t.field(name)
	if f.From == Live && !nodesAnswered {
		return func(*View, R) (Verdict, error) { return Undecided, nil }
	}
	return leaf(f, n)
}

// compileMany joins tests: the first that gives the stopping verdict, or is
// undecided, decides.
func (t *Table[R]) compileMany(args []qlang.Node, nodesAnswered bool, stop Verdict) Test[R] {
	tests := make([]Test[R], len(args))
	for i, a := range args {
		tests[i] = t.Compile(a, nodesAnswered)
	}
	otherwise := Yes - stop
	return func(v *View, r R) (Verdict, error) {
		for _, test := range tests {
			got := Yes
			if test != nil {
				var err error
				if got, err = test(v, r); err != nil {
					return No, err
				}
			}
			if got == stop || got == Undecided {
				return got, nil
			}
		}
		return otherwise, nil
	}
}

func negate[R any](inner Test[R]) Test[R] {
	if inner == nil {
		return func(*View, R) (Verdict, error) { return No, nil }
	}
	return func(v *View, r R) (Verdict, error) {
		got, err := inner(v, r)
		if err != nil || got == Undecided {
			return got, err
		}
		return Yes - got, nil
	}
}

// leaf compiles the test of one field.
func leaf[R any](f *Field[R], n qlang.Node) Test[R] {
	// != is the negation of ==, so it drops rows whose value is not there.
	// Of a strict field it drops them too.
	if c, ok := n.(*qlang.Compare); ok && c.Op == qlang.Ne {
		equal := leaf(f, &qlang.Compare{Op: qlang.Eq, Field: c.Field, Value: c.Value})
		if !f.Strict {
			return negate(equal)
		}
		return func(v *View, r R) (Verdict, error) {
			if f.Get(v, r).Status != Normal {
				return No, nil
			}
			got, err := equal(v, r)
			return Yes - got, err
		}
	}
	if _, ok := n.(*qlang.Missing); ok {
		return func(v *View, r R) (Verdict, error) { return decide(f.Get(v, r).Status != Normal), nil }
	}
	check, get, missing := checkOf(n, f.Mode), f.Get, decide(!f.Strict)
	if f.Mode == ModeSeconds {
		check = onSeconds(check)
	}
	if f.Words != "" {
		check = withWords(check, f.Words)
	}
	if m, ok := n.(*qlang.Match); ok {
		return matches(m.Regex, check, missing, get)
	}
	return func(v *View, r R) (Verdict, error) {
		c := get(v, r)
		if c.Status != Normal {
			return missing, nil
		}
		holds, err := check(c.Value)
		return decide(holds), err
	}
}

func checkOf(n qlang.Node, m Mode) check {
	switch n := n.(type) {
	case *qlang.True:
		return isTrue(n.Field)
	case *qlang.Match:
		return matchesNone
	case *qlang.Contains:
		return contains(n.Value)
	case *qlang.Compare:
		return compare(n, m)
	}
	// Not reached: qlang has no further leaves.
	return func(any) (bool, error) { return false, programmerError("unknown filter leaf %T", n) }
}

func isTrue(field string) check {
	return func(value any) (bool, error) {
		b, ok := value.(bool)
		if !ok {
			return false, parameterError("Unexpected value '%s' in boolean context", show(value)).withHint(notTrue(field, value))
		}
		return b, nil
	}
}

// notTrue says how a field is tested whose values are not true or false.
func notTrue(field string, value any) string {
	const alone = "a field alone is asked whether it is true; "
	if _, number := compareBig(value, new(big.Int)); number {
		return alone + "a number is compared: " + field + " > 0"
	}
	switch generic(value).(type) {
	case string:
		return alone + "a text is compared: " + field + ` == "TEXT" or ` + field + " =~ m/PATTERN/"
	case []any:
		return alone + `a list is tested for what is in it: "VALUE" in ` + field
	}
	return ""
}

// withWords has the errors of a check name the field that has the value as text.
func withWords(inner check, words string) check {
	return func(value any) (bool, error) {
		holds, err := inner(value)
		if refused, ok := errors.AsType[*Error](err); ok {
			err = refused.withHint("the field " + words + " has it as text: " + words + " =~ m/PATTERN/")
		}
		return holds, err
	}
}

// matches searches a text, or the elements of a list, for as long as the query is
// wanted; a value of another type goes through check.
func matches[R any](re *qlang.Regex, check check, missing Verdict, get func(*View, R) Cell) Test[R] {
	return func(v *View, r R) (Verdict, error) {
		c := get(v, r)
		if c.Status != Normal {
			return missing, nil
		}
		if s, ok := c.Value.(string); ok {
			holds, err := re.Match(s, v.Interrupted)
			return decide(holds), err
		}
		if list, ok := texts(c.Value); ok {
			return matchesAny(re, list, v.Interrupted)
		}
		holds, err := check(c.Value)
		return decide(holds), err
	}
}

// texts returns the elements of a list of texts.
func texts(value any) ([]string, bool) {
	if list, ok := value.([]string); ok {
		return list, true
	}
	list, ok := generic(value).([]any)
	if !ok {
		return nil, false
	}
	out := make([]string, len(list))
	for i, e := range list {
		if out[i], ok = e.(string); !ok {
			return nil, false
		}
	}
	return out, true
}

// matchesAny looks for an element that a pattern matches.
func matchesAny(re *qlang.Regex, list []string, interrupted func() error) (Verdict, error) {
	for _, s := range list {
		if holds, err := re.Match(s, interrupted); holds || err != nil {
			return decide(holds), err
		}
	}
	return No, nil
}

// matchesNone is the check of a value that is no text.
func matchesNone(value any) (bool, error) {
	return false, parameterError("Invalid field value used in regexp matching, expecting string but got '%s'", show(value))
}

// compare compiles the comparisons but !=.
func compare(n *qlang.Compare, m Mode) check {
	if n.Value.IsInt() {
		return compareNumber(n, m)
	}
	want, holds := n.Value.Text, relation(n.Op)
	equal := func(s string) bool { return s == want }
	if m == ModeHostname {
		equal = func(s string) bool {
			return strings.HasPrefix(s, want) && (len(s) == len(want) || s[len(want)] == '.')
		}
	}
	return func(value any) (bool, error) {
		s, ok := value.(string)
		switch {
		case !ok:
			return false, wrongType(value, n.Value, m)
		case n.Op == qlang.Eq:
			return equal(s), nil
		}
		return holds(strings.Compare(s, want)), nil
	}
}

func compareNumber(n *qlang.Compare, m Mode) check {
	holds, want := relation(n.Op), n.Value.Int
	small, fits := want.Int64(), want.IsInt64()
	return func(value any) (bool, error) {
		if i, ok := value.(int64); ok && fits && m != ModeHostname {
			return holds(compareInts(i, small)), nil
		}
		c, ok := compareBig(value, want)
		if !ok || m == ModeHostname {
			return false, wrongType(value, n.Value, m)
		}
		return holds(c), nil
	}
}

func compareInts(a, b int64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// compareBig compares a number of any type with a whole number of any size.
func compareBig(value any, want *big.Int) (int, bool) {
	switch x := value.(type) {
	case Nanos:
		return x.compare(want), true
	case int64:
		return big.NewInt(x).Cmp(want), true
	case int:
		return big.NewInt(int64(x)).Cmp(want), true
	case float64:
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return 0, false
		}
		return big.NewFloat(x).Cmp(new(big.Float).SetInt(want)), true
	}
	return 0, false
}

func relation(op qlang.Op) func(int) bool {
	switch op {
	case qlang.Lt:
		return func(c int) bool { return c < 0 }
	case qlang.Le:
		return func(c int) bool { return c <= 0 }
	case qlang.Gt:
		return func(c int) bool { return c > 0 }
	case qlang.Ge:
		return func(c int) bool { return c >= 0 }
	}
	return func(c int) bool { return c == 0 }
}

func wrongType(value any, want qlang.Value, m Mode) error {
	_, number := compareBig(value, new(big.Int))
	if number && m == ModeHostname {
		return programmerError("QffHostname field returned a numeric value")
	}
	constant := "QuotedString " + want.String()
	if want.IsInt() {
		constant = "NumericValue " + want.String()
		if strings.HasPrefix(want.String(), "-") {
			constant = "NumericValue (" + want.String() + ")"
		}
	}
	err := parameterError("Invalid types in comparison, trying to compare %s with '%s'", show(value), constant)
	if number || m == ModeSeconds {
		return err.withHint(`numbers stand without quotes; times are "2026-11-15", "2026-11-15 08:30" or -1h, durations 90s or 1h30m, sizes 512M or 2G`)
	}
	return err
}

// contains compiles the membership test: every element of the list must have
// the type of the value.
func contains(want qlang.Value) check {
	if !want.IsInt() {
		return func(value any) (bool, error) {
			if list, ok := value.([]string); ok {
				return slices.Contains(list, want.Text), nil
			}
			if tags, ok := value.(cluster.Tags); ok {
				return tags.Has(want.Text), nil
			}
			return containsAny(value, func(e any) (bool, string) {
				text, unread := readText(e)
				return text == want.Text, unread
			})
		}
	}
	return func(value any) (bool, error) {
		return containsAny(value, func(e any) (bool, string) {
			c, ok := compareBig(e, want.Int)
			if !ok {
				return false, "Integer"
			}
			return c == 0, ""
		})
	}
}

// readText reads a text as the reference does, to which one is a list of characters, however it
// is written. What cannot be read is named.
func readText(v any) (text, unread string) {
	switch v := generic(v).(type) {
	case string:
		return v, ""
	case []any:
		for _, e := range v {
			char, ok := e.(string)
			if !ok || utf8.RuneCountInString(char) != 1 {
				return "", "Char"
			}
			text += char
		}
		return text, ""
	}
	return "", "String"
}

// containsAny looks for an element that is the same; one that cannot be read is an error, which
// names what it should have been.
func containsAny(value any, equal func(any) (same bool, unread string)) (bool, error) {
	list, ok := generic(value).([]any)
	if !ok {
		return false, GenericError("Cannot convert value '%s', error: Unable to read list", show(value))
	}
	found := false
	for _, e := range list {
		same, unread := equal(e)
		if unread != "" {
			return false, GenericError("Cannot convert value '%s', error: Unable to read %s", show(value), unread)
		}
		found = found || same
	}
	return found, nil
}

// onSeconds applies a check to the seconds of a [seconds, microseconds] pair.
func onSeconds(inner check) check {
	return func(value any) (bool, error) {
		pair, ok := generic(value).([]any)
		if !ok || len(pair) != 2 {
			return false, programmerError("Internal error: Getter returned non-timestamp for QffTimestamp")
		}
		return inner(pair[0])
	}
}
