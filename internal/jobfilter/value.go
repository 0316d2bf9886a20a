package jobfilter

import (
	"cmp"
	"encoding/json"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/drover-project/drover/internal/qlang"
)

// truth is the result of an expression. Unknown is that of a question that
// cannot be answered: about a field that is not there, or of another type than
// the operator asks about. The negation of unknown is unknown, so a rule never
// applies to a job because of something that the job does not have.
type truth uint8

const (
	no truth = iota
	unknown
	yes
)

func truthOf(b bool) truth {
	if b {
		return yes
	}
	return no
}

func (t truth) negated() truth { return yes - t }

// String is the word for explanations.
func (t truth) String() string { return [...]string{"false", "unknown", "true"}[t] }

// value is a field of a job as expressions see it. It is passed by value so
// that deciding allocates nothing.
type value struct {
	kind  valueKind
	n     int64  // integer; 1 for the boolean true; the bits of a float
	s     string // text
	inner any    // list, object
}

type valueKind uint8

const (
	absent valueKind = iota
	null
	boolean
	integer
	float
	text
	list
	object
)

func textValue(s string) value { return value{kind: text, s: s} }

func intValue(n int64) value { return value{kind: integer, n: n} }

// valueOf converts the shapes that opcode parameters have.
func valueOf(v any) value {
	switch x := v.(type) {
	case string:
		return textValue(x)
	case bool:
		return boolValue(x)
	case int64:
		return intValue(x)
	case float64:
		return value{kind: float, n: int64(math.Float64bits(x))}
	case []any:
		return value{kind: list, inner: v}
	case map[string]any:
		return value{kind: object, inner: v}
	}
	return value{kind: null}
}

func boolValue(b bool) value {
	v := value{kind: boolean}
	if b {
		v.n = 1
	}
	return v
}

func (v value) float() float64 { return math.Float64frombits(uint64(v.n)) }

// plain returns the value for JSON.
func (v value) plain() any {
	switch v.kind {
	case boolean:
		return v.n == 1
	case integer:
		return v.n
	case float:
		return v.float()
	case text:
		return v.s
	case list, object:
		return v.inner
	}
	return nil
}

// show writes the value for a person, as JSON.
func show(v any) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return "?"
	}
	return clip(strings.TrimSuffix(b.String(), "\n"))
}

// A question asks one thing of a value.
type question func(v value) truth

// ask compiles the leaf n.
func ask(n qlang.Node, r reading) question {
	switch x := n.(type) {
	case *qlang.True:
		return isTrue
	case *qlang.Compare:
		return compare(x.Op, r.constant(x.Value))
	case *qlang.Contains:
		return contains(r.constant(x.Value))
	case *qlang.Match:
		return match(x.Regex, r.patience)
	case *qlang.Missing:
		return func(v value) truth { return truthOf(v.kind == absent || v.kind == null) }
	}
	return func(value) truth { return unknown } // not reached: n is a leaf
}

// askText is ask for a field that always is text; nil if the question is not
// about text.
func askText(n qlang.Node, r reading) func(s string) truth {
	switch x := n.(type) {
	case *qlang.Compare:
		c := x.Value.Text
		if x.Op == qlang.Eq && !x.Value.IsInt() {
			return func(s string) truth { return truthOf(s == c) }
		}
	case *qlang.Match:
		return func(s string) truth {
			found, err := r.patience.search(x.Regex, s)
			if err != nil {
				return unknown
			}
			return truthOf(found)
		}
	}
	return nil
}

func isTrue(v value) truth {
	if v.kind != boolean {
		return unknown
	}
	return truthOf(v.n == 1)
}

// compare: values of different types are not equal, and none is smaller.
func compare(op qlang.Op, c qlang.Value) question {
	accept := acceptor(op)
	order := compareText(c.Text)
	if c.IsInt() {
		order = compareNumber(c.Int)
	}
	differs := truthOf(op == qlang.Ne)
	return func(v value) truth {
		if v.kind == absent {
			return unknown
		}
		sign, ok := order(v)
		if !ok {
			return differs
		}
		return truthOf(accept[sign+1])
	}
}

// acceptor says for the signs -1, 0, 1 whether they satisfy the operator.
func acceptor(op qlang.Op) [3]bool {
	switch op {
	case qlang.Lt:
		return [3]bool{true, false, false}
	case qlang.Le:
		return [3]bool{true, true, false}
	case qlang.Gt:
		return [3]bool{false, false, true}
	case qlang.Ge:
		return [3]bool{false, true, true}
	case qlang.Ne:
		return [3]bool{true, false, true}
	}
	return [3]bool{false, true, false}
}

func compareText(c string) func(value) (int, bool) {
	return func(v value) (int, bool) {
		if v.kind != text {
			return 0, false
		}
		return strings.Compare(v.s, c), true
	}
}

func compareNumber(c *big.Int) func(value) (int, bool) {
	if !c.IsInt64() {
		sign := -c.Sign() // beyond everything that a field holds
		return func(v value) (int, bool) { return sign, v.kind == integer || v.kind == float }
	}
	n := c.Int64()
	f := float64(n)
	return func(v value) (int, bool) {
		switch v.kind {
		case integer:
			return cmp.Compare(v.n, n), true
		case float:
			return cmp.Compare(v.float(), f), true
		}
		return 0, false
	}
}

func contains(c qlang.Value) question {
	equal := compare(qlang.Eq, c)
	return func(v value) truth {
		items, ok := v.inner.([]any)
		if !ok {
			return unknown
		}
		return truthOf(slices.ContainsFunc(items, func(item any) bool { return equal(valueOf(item)) == yes }))
	}
}

// match searches text, and numbers in their decimal form. A pattern that
// exceeds its time is not answered.
func match(re *qlang.Regex, patience *strikes) question {
	return func(v value) truth {
		var s string
		switch v.kind {
		case text:
			s = v.s
		case integer:
			s = strconv.FormatInt(v.n, 10)
		case float:
			s = strconv.FormatFloat(v.float(), 'g', -1, 64)
		default:
			return unknown
		}
		found, err := patience.search(re, s)
		if err != nil {
			return unknown
		}
		return truthOf(found)
	}
}
