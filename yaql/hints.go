package yaql

import (
	"math/big"
	"regexp"
	"slices"
	"strings"

	"github.com/drover-project/drover/yaql/internal/syntax"
)

// slips are what other languages have and this one does not: how it begins, how many bytes before the place of the error, and what is
// written here.
var slips = []struct {
	text string
	back int
	hint string
}{
	{"&&", 0, "write and"}, {"||", 0, "write or"}, {"==", 1, "equality is a single ="}, {"===", 2, "equality is a single ="}, {"<>", 1, "write !="},
	{"**", 1, "write pow(base, exponent)"}, {"%", 0, "write mod"}, {"!", 0, "write not"}, {"?", 0, "write switch(condition => value, true => other)"},
	{":", 0, "the entries of a map are key => value"},
	{"'", 0, "the text that begins here does not end: a ' is missing"}, {`"`, 0, `the text that begins here does not end: a " is missing`},
	{"`", 0, "the text that begins here does not end: a ` is missing"},
}

// slipAt returns what is written in place of what stands at an offset, or an empty text.
func slipAt(source string, offset int) string {
	for _, s := range slips {
		if at := offset - s.back; at >= 0 && at <= len(source) && strings.HasPrefix(source[at:], s.text) {
			return s.hint
		}
	}
	return ""
}

// internalName is a name of the reference for what has none of its own in expressions.
var internalName = regexp.MustCompile(`[Ff]unction "(#unary_operator_|#operator_|#property#|#indexer|#list|#map|\*equal|\*not_equal)([^"]*)"`)

// plainNames are what people call these.
var plainNames = map[string]string{"#unary_operator_": "operator", "#operator_": "operator", "#property#": "property", "#indexer": `operator "[]"`,
	"#list": "list", "#map": "map", "*equal": `operator "="`, "*not_equal": `operator "!="`}

// Plain returns the message without the reference's names for operators and properties: "Unknown property "x"" in place of
// "Unknown function "#property#x"".
func (e *Error) Plain() string {
	return internalName.ReplaceAllStringFunc(e.Message, func(text string) string {
		m := internalName.FindStringSubmatch(text)
		if m[2] == "" {
			return plainNames[m[1]]
		}
		return plainNames[m[1]] + ` "` + m[2] + `"`
	})
}

// kindOf names the kind of a value for people.
func kindOf(v any) string {
	switch x := v.(type) {
	case nil:
		return "null"
	case bool:
		return "a boolean"
	case int64, *big.Int:
		return "an integer"
	case float64:
		return "a float"
	case string:
		return "a string"
	case *Set:
		return "a set"
	case DateTime:
		return "a datetime"
	case Timespan:
		return "a timespan"
	case *Regex:
		return "a regular expression"
	case *View:
		return "a view of a map"
	case *Iterator, *ordering, *memo:
		return "a lazy collection"
	case *Context:
		return "a context"
	default:
		switch {
		case isMapping(x):
			return "a map"
		case isSequence(x):
			return "a list"
		}
	}
	return "an object of the host"
}

// operatorHint says what an operator was given, if that is known, and what it takes. A bare word among its operands is likely to be
// meant for something else.
func (s *site) operatorHint(sign string, values []any) string {
	var parts []string
	if given := s.given(values); len(given) > 0 {
		parts = append(parts, "it was given "+strings.Join(given, " and "))
	}
	if s.node != nil {
		for _, n := range s.node.Args {
			if n.Kind == syntax.Keyword {
				parts = append(parts, n.Name+" is a string, as every bare word is")
			}
		}
	}
	var takes []string
	for _, layer := range s.overload {
		for _, f := range layer {
			text := sign + " " + f.operand(0)
			if len(f.params) > 1 || f.variadic != nil {
				text = f.operand(0) + " " + sign + " " + f.operand(1)
			}
			if !slices.Contains(takes, text) && !strings.Contains(text, shownTypes[tNull]) { // what compares with null takes anything
				takes = append(takes, text)
			}
		}
	}
	return strings.Join(append(parts, "there is "+strings.Join(takes, ", ")), "; ")
}

func (f *Function) operand(i int) string {
	switch {
	case i < len(f.params):
		return shownTypes[f.params[i].typ]
	case f.variadic != nil:
		return shownTypes[f.variadic.typ]
	}
	return shownTypes[tAny]
}

// given are the kinds of the operands, none if one is not known.
func (s *site) given(values []any) []string {
	if values == nil {
		for _, a := range s.args {
			if !a.known {
				return nil
			}
			values = append(values, a.value)
		}
	}
	if values == nil && s.node != nil {
		for _, n := range s.node.Args {
			if n.Kind != syntax.Const && n.Kind != syntax.Keyword {
				return nil
			}
			values = append(values, n.Value)
		}
	}
	kinds := make([]string, len(values))
	for i, v := range values {
		kinds[i] = kindOf(v)
	}
	return kinds
}

// otherHints are what is said of names of the reference whose overloads tell nobody anything.
var otherHints = map[string]string{
	"#map": "the entries of a map are key => value", "#indexer": "there is list[integer], map[key], map[key, default]",
	"#operator_.": "behind a dot stands the name of a key or property, or a call", "#operator_?.": "behind a dot stands the name of a key or property, or a call",
	"#operator_->": "before -> stands a call of let, with, def or unpack",
}

// operatorSign returns the sign of the operator that a function carries out.
func operatorSign(name string) (sign string, ok bool) {
	for _, prefix := range []string{"#operator_", "#unary_operator_"} {
		if sign, ok := strings.CutPrefix(name, prefix); ok {
			return sign, true
		}
	}
	return "", false
}

// propertyHint says of what a property was asked that it does not have.
func propertyHint(n *syntax.Node, v any, name string) string {
	if v == nil {
		return "the value before ." + name + " is null"
	}
	if n != nil && len(n.Args) > 0 && n.Args[0].Kind == syntax.Keyword {
		word := n.Args[0].Name
		return word + " is a string, as every bare word is; $." + word + " is the value of a key"
	}
	return "the value before ." + name + " is " + kindOf(v)
}

// A Doubt is something in an expression that is probably not meant.
type Doubt struct {
	Offset int // in the text of the expression, in bytes
	Text   string
}

// foreign are the words that other languages have for constants, with what is written here.
var foreign = map[string]string{"True": "true", "TRUE": "true", "False": "false", "FALSE": "false", "None": "null", "Null": "null", "NULL": "null", "nil": "null", "undefined": "null"}

// Doubts returns what is probably not meant in the expression, in order: words that are constants in other languages, and
// texts here, as every bare word is.
func (x *Expression) Doubts() []Doubt {
	var out []Doubt
	var walk func(n *syntax.Node)
	walk = func(n *syntax.Node) {
		if n.Kind == syntax.Keyword && foreign[n.Name] != "" {
			out = append(out, Doubt{n.Pos, n.Name + " is a string here; the constant is " + foreign[n.Name]})
		}
		for i, a := range n.Args {
			isName := a.Kind == syntax.Keyword && (n.Kind == syntax.Pair && i == 0 || n.Kind == syntax.Binary && i == 1 && strings.HasSuffix(n.Name, "."))
			if !isName {
				walk(a)
			}
		}
	}
	walk(x.root)
	slices.SortFunc(out, func(a, b Doubt) int { return a.Offset - b.Offset })
	return out
}
