// Package qlang is the one filter language of the product: queries, name
// arguments of list commands and job filter rules all speak it.
//
// A filter has two written forms, JSON ("S-expressions" as clients send them)
// and text (as people type them), and one syntax tree between. The package
// reads and writes both; what a filter means is decided by the packages that
// compile the tree (query, jobfilter).
//
// Invariants:
//   - ParseJSON(JSON(n)) is n, and so is ParseText(Text(n)) whenever Text has
//     no error; the source positions are all that may differ.
//   - Every Match holds a compiled pattern: a bad one is a parse error.
//   - No tree nests deeper than MaxDepth and no input over MaxBytes is read.
package qlang

import (
	"math/big"
	"strconv"
)

// Limits on what the parsers accept. The reference has none; ours keep one
// request from occupying the controller. A list of 100,000 names fits.
const (
	// MaxDepth is the deepest nesting of operators.
	MaxDepth = 100
	// MaxBytes is the size of the longest input, in bytes.
	MaxBytes = 8 << 20
)

// Op is a comparison operator; its text is the same in JSON and in text.
type Op string

// The comparison operators. The old spelling "=" is read as Eq.
const (
	Eq Op = "=="
	Ne Op = "!="
	Lt Op = "<"
	Le Op = "<="
	Gt Op = ">"
	Ge Op = ">="
)

// Span is the part of the source text that a node was read from, as byte
// offsets; both are zero for nodes that were not read from text.
type Span struct{ Start, End int }

// Source returns the span itself; every node has it by embedding.
func (s Span) Source() Span { return s }

// Node is a filter expression. The nodes are *All, *And, *Or, *Not, *True,
// *Compare, *Match, *Contains and *Missing; walk them with a type switch.
type Node interface {
	// Source tells where the node stood in a text filter.
	Source() Span
	isNode()
}

// All is the null filter: it holds for everything.
type All struct{ Span }

// And holds if all arguments hold; without arguments it holds.
type And struct {
	Span
	Args []Node
}

// Or holds if any argument holds; without arguments it does not hold.
type Or struct {
	Span
	Args []Node
}

// Not holds if its argument does not.
type Not struct {
	Span
	Arg Node
}

// True ("?") holds if the field is the boolean true.
type True struct {
	Span
	Field string
}

// Compare holds if the field, on the left, stands in the relation Op to the
// value, on the right.
type Compare struct {
	Span
	Op    Op
	Field string
	Value Value
}

// Match ("=~") holds if the pattern is found anywhere in the field's text.
type Match struct {
	Span
	Field string
	Regex *Regex
}

// Contains ("=[]") holds if the value is an element of the field, a list.
type Contains struct {
	Span
	Field string
	Value Value
}

func (*All) isNode()      {}
func (*And) isNode()      {}
func (*Or) isNode()       {}
func (*Not) isNode()      {}
func (*True) isNode()     {}
func (*Compare) isNode()  {}
func (*Match) isNode()    {}
func (*Contains) isNode() {}

// Value is the constant of a comparison: an integer of any size if Int is not
// nil, else the string Text.
type Value struct {
	Text string
	Int  *big.Int
}

// TextValue returns a string value.
func TextValue(s string) Value { return Value{Text: s} }

// IntValue returns an integer value.
func IntValue(n int64) Value { return Value{Int: big.NewInt(n)} }

// IsInt reports whether the value is an integer.
func (v Value) IsInt() bool { return v.Int != nil }

// Equal reports whether two values have the same type and are the same.
func (v Value) Equal(w Value) bool {
	if v.IsInt() || w.IsInt() {
		return v.IsInt() && w.IsInt() && v.Int.Cmp(w.Int) == 0
	}
	return v.Text == w.Text
}

// String shows the value as JSON does.
func (v Value) String() string { return string(v.appendJSON(nil)) }

// Equal reports whether two filters are the same but for source positions.
// A nil Node equals only nil.
func Equal(a, b Node) bool {
	switch x := a.(type) {
	case *All:
		_, ok := b.(*All)
		return ok
	case *And:
		y, ok := b.(*And)
		return ok && equalAll(x.Args, y.Args)
	case *Or:
		y, ok := b.(*Or)
		return ok && equalAll(x.Args, y.Args)
	case *Not:
		y, ok := b.(*Not)
		return ok && Equal(x.Arg, y.Arg)
	case *True:
		y, ok := b.(*True)
		return ok && x.Field == y.Field
	case *Compare:
		y, ok := b.(*Compare)
		return ok && x.Op == y.Op && x.Field == y.Field && x.Value.Equal(y.Value)
	case *Match:
		y, ok := b.(*Match)
		return ok && x.Field == y.Field && x.Regex.Pattern() == y.Regex.Pattern()
	case *Contains:
		y, ok := b.(*Contains)
		return ok && x.Field == y.Field && x.Value.Equal(y.Value)
	case *Missing:
		y, ok := b.(*Missing)
		return ok && x.Field == y.Field
	}
	return a == nil && b == nil
}

func equalAll(a, b []Node) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !Equal(a[i], b[i]) {
			return false
		}
	}
	return true
}

// Children returns the arguments of an And, Or or Not, and nothing for others.
func Children(n Node) []Node {
	switch x := n.(type) {
	case *And:
		return x.Args
	case *Or:
		return x.Args
	case *Not:
		return []Node{x.Arg}
	}
	return nil
}

// Field returns the field that a leaf names; ok is false for other nodes.
func Field(n Node) (name string, ok bool) {
	switch x := n.(type) {
	case *True:
		return x.Field, true
	case *Compare:
		return x.Field, true
	case *Match:
		return x.Field, true
	case *Contains:
		return x.Field, true
	case *Missing:
		return x.Field, true
	}
	return "", false
}

// Walk calls visit for n and everything below it, parents first. The path is
// the node's place in the JSON form, "" for n itself, "[1][2]" for the second
// argument of its first; a leaf's field stands at path+"[1]", its value at
// path+"[2]". Walk does not go below a node for which visit returns false.
func Walk(n Node, visit func(path string, n Node) bool) { walk("", n, visit) }

func walk(path string, n Node, visit func(string, Node) bool) {
	if !visit(path, n) {
		return
	}
	for i, arg := range Children(n) {
		walk(step(path, i+1), arg, visit)
	}
}

func step(path string, i int) string { return path + "[" + strconv.Itoa(i) + "]" }

// Fields returns the fields that the filter names, each once, in order.
func Fields(n Node) []string {
	var out []string
	seen := map[string]bool{}
	Walk(n, func(_ string, n Node) bool {
		if name, ok := Field(n); ok && !seen[name] {
			seen[name] = true
			out = append(out, name)
		}
		return true
	})
	return out
}

// Normalize returns the filter as the reference stores and shows it: a "!=" is
// the negation of "==". Parts that do not change are shared with n.
func Normalize(n Node) Node {
	switch x := n.(type) {
	case *And:
		return &And{Span: x.Span, Args: normalizeAll(x.Args)}
	case *Or:
		return &Or{Span: x.Span, Args: normalizeAll(x.Args)}
	case *Not:
		return &Not{Span: x.Span, Arg: Normalize(x.Arg)}
	case *Compare:
		if x.Op == Ne {
			return &Not{Span: x.Span, Arg: &Compare{Span: x.Span, Op: Eq, Field: x.Field, Value: x.Value}}
		}
	}
	return n
}

func normalizeAll(args []Node) []Node {
	out := make([]Node, len(args))
	for i, a := range args {
		out[i] = Normalize(a)
	}
	return out
}
