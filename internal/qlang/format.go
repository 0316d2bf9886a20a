package qlang

import (
	"strings"

	"github.com/drover-project/drover/internal/fault"
)

// Text returns the text form of a filter, on one line, with no more
// parentheses than it takes to read the same tree back. The text form cannot
// express everything: null filters, "and" and "or" of fewer than two, names of
// fields with unusual letters and strings with line breaks or both kinds of
// quotes give an error that names the part.
func Text(n Node) (string, error) {
	var w writer
	w.node(n, levelTop)
	if w.err != nil {
		return "", w.err
	}
	return w.String(), nil
}

// String shows a filter to a person: as text, or as JSON where the text form
// cannot express it.
func String(n Node) string {
	if s, err := Text(n); err == nil {
		return s
	}
	return string(JSON(n))
}

// What stands around a node, from what leaves it most freedom. An "and" within
// an "or" needs no parentheses; one within an "and" does, or the nesting of
// the tree would be lost.
const (
	levelTop = iota
	levelOr
	levelOperand
)

type writer struct {
	strings.Builder
	err error
}

func (w *writer) add(parts ...string) {
	for _, s := range parts {
		w.WriteString(s)
	}
}

func (w *writer) fail(n Node, why string) {
	if w.err == nil {
		w.err = fault.New(fault.Invalid, "%s has no text form: %s", JSON(n), why)
	}
}

func (w *writer) node(n Node, level int) {
	switch x := n.(type) {
	case *And:
		w.many(n, x.Args, " and ", level)
	case *Or:
		w.many(n, x.Args, " or ", level)
	case *Not:
		w.not(x, level)
	case *True:
		w.leaf(n, x.Field, level > levelTop && isKeyword(x.Field), func() { w.add(x.Field) })
	case *Missing:
		w.missing(x, " is missing")
	case *Compare:
		w.leaf(n, x.Field, false, func() {
			w.add(x.Field, " ", string(x.Op), " ")
			w.value(n, x.Value)
		})
	case *Contains:
		w.leaf(n, x.Field, false, func() { w.contains(x, " in ") })
	case *Match:
		w.match(n, x, " =~ ", level)
	default:
		w.fail(n, "it is the null filter")
	}
}

func (w *writer) many(n Node, args []Node, word string, level int) {
	if len(args) < 2 {
		w.fail(n, "it has fewer than two arguments")
		return
	}
	w.parens(level > levelTop && (level != levelOr || word != " and "), func() {
		for i, arg := range args {
			if i > 0 {
				w.add(word)
			}
			if word == " or " {
				w.node(arg, levelOr)
			} else {
				w.node(arg, levelOperand)
			}
		}
	})
}

func (w *writer) parens(needed bool, inside func()) {
	if needed {
		w.add("(")
	}
	inside()
	if needed {
		w.add(")")
	}
}

func (w *writer) not(n *Not, level int) {
	switch x := n.Arg.(type) {
	case *Match:
		w.match(x, x, " !~ ", level)
	case *Contains:
		w.leaf(x, x.Field, false, func() { w.contains(x, " not in ") })
	case *Missing:
		w.missing(x, " is not missing")
	default:
		w.add("not ")
		w.node(x, levelOperand)
	}
}

// leaf writes a condition, if its field can be written.
func (w *writer) leaf(n Node, field string, parens bool, write func()) {
	if !isFieldName(field) {
		w.fail(n, "the field has a letter that text filters do not allow")
		return
	}
	w.parens(parens, write)
}

func (w *writer) contains(n *Contains, word string) {
	w.value(n, n.Value)
	w.add(word, n.Field)
}

func (w *writer) missing(n *Missing, words string) {
	if n.Field == "not" { // it would negate a field called is
		w.fail(n, "the field has the name of an operator")
		return
	}
	w.leaf(n, n.Field, false, func() { w.add(n.Field, words) })
}

func (w *writer) value(n Node, v Value) {
	if v.IsInt() {
		w.add(v.Int.String())
		return
	}
	for _, quote := range []string{`"`, "'"} {
		if s := quote + v.Text + quote; quotedLen(s) == len(s) {
			w.add(s)
			return
		}
	}
	w.fail(n, "the string has a line break or both kinds of quotes")
}

// match writes a pattern. Without flags it needs parentheses wherever a word
// may follow, which would be read as flags.
func (w *writer) match(n Node, m *Match, op string, level int) {
	pattern, flags := m.Regex.Pattern(), ""
	for _, f := range []string{"i", "s", "is"} {
		if rest, ok := strings.CutPrefix(pattern, "(?"+f+")"); ok {
			pattern, flags = rest, f
			break
		}
	}
	w.leaf(n, m.Field, flags == "" && level > levelTop, func() {
		w.add(m.Field, op, "m/", escapePattern(pattern), "/", flags)
	})
}

// escapePattern adds the level of backslashes that unescape takes away.
func escapePattern(pattern string) string {
	return strings.NewReplacer(`\`, `\\`, "/", `\/`, "\n", `\n`, "\r", `\r`, "\t", `\t`, "\f", `\f`).Replace(pattern)
}

func isKeyword(s string) bool { return s == "not" || s == "and" || s == "or" }

func isFieldName(s string) bool {
	if s == "" || !isAlpha(s[0]) {
		return false
	}
	for i := range len(s) {
		if !isFieldByte(s[i]) {
			return false
		}
	}
	return true
}
