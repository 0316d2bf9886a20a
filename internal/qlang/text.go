package qlang

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/drover-project/drover/internal/fault"
)

// ParseText reads the text form of a filter:
//
//	expr      = and { "or" and }
//	and       = not { "and" not }
//	not       = "not" not | test | "(" expr ")"
//	test      = FIELD [ OPERATOR VALUE | ( "=~" | "!~" ) REGEX | ( "=*" | "!*" ) STRING ]
//	          | VALUE [ "not" ] "in" FIELD
//	          | FIELD "is" [ "not" ] "missing"
//
// The keywords are lower case and may also be names of fields. Refused texts
// are refused at the position and with the reason that the reference gives.
// An error has code Invalid and a *TextError as its cause, or TooLarge.
func ParseText(text string) (Node, error) {
	if len(text) > MaxBytes {
		return nil, tooLong(len(text))
	}
	if !utf8.ValidString(text) {
		return nil, fault.New(fault.Invalid, "the filter is not valid UTF-8")
	}
	p := &parser{text: text, patterns: allowance{left: maxProgram}}
	n, end, err := p.expr(0, true)
	if err == nil {
		end = p.skip(end)
		if end == len(text) {
			return n, checkDepth(n)
		}
		err = &failure{at: end, reason: "Expected end of text"}
	}
	return nil, p.report(err)
}

// checkDepth bounds the tree, which can be deeper than the text's parentheses.
func checkDepth(n Node) error {
	deepest := 0
	Walk(n, func(path string, _ Node) bool {
		deepest = max(deepest, 1+strings.Count(path, "["))
		return deepest <= MaxDepth
	})
	if deepest > MaxDepth {
		return tooDeep()
	}
	return nil
}

// parser is a recursive descent parser without look-back: every method takes a
// position and returns a node and the position behind it, or a failure.
//
// The reference tries some operands twice, first only to see whether they
// match, then for good, and only then a bad regular expression is final. The
// parameter forGood follows that, since it decides which of two faults of a
// text is reported: a bad pattern met in the first pass waits in pending until
// that pass has succeeded.
type parser struct {
	text     string
	depth    int
	pending  *failure
	patterns allowance
}

// place names a position in errors.
func (p *parser) place(at int) string {
	return fmt.Sprintf("char %d", utf8.RuneCountInString(p.text[:at]))
}

func (p *parser) skip(i int) int {
	for i < len(p.text) && strings.IndexByte(" \t\n\r", p.text[i]) >= 0 {
		i++
	}
	return i
}

func (p *parser) expr(i int, forGood bool) (Node, int, *failure) {
	args, start, end, err := p.chain(i, forGood, "or", func(i int, forGood bool) (Node, int, *failure) {
		args, start, end, err := p.chain(i, forGood, "and", p.not)
		if err != nil || len(args) == 1 {
			return first(args), end, err
		}
		return &And{Span: Span{start, end}, Args: args}, end, nil
	})
	if err != nil || len(args) == 1 {
		return first(args), end, err
	}
	return &Or{Span: Span{start, end}, Args: args}, end, nil
}

func first(nodes []Node) Node {
	if len(nodes) == 0 {
		return nil
	}
	return nodes[0]
}

// chain reads operands joined by a keyword, as many as there are.
func (p *parser) chain(i int, forGood bool, word string, operand func(int, bool) (Node, int, *failure)) (args []Node, start, end int, err *failure) {
	start = p.skip(i)
	n, end, err := operand(i, forGood)
	if err != nil {
		return nil, start, end, err
	}
	for args = []Node{n}; ; args = append(args, n) {
		next, ok := p.keyword(end, word)
		if !ok {
			return args, start, end, nil
		}
		pending := p.pending
		var after int
		n, after, err = operand(next, forGood && len(args) > 1)
		switch {
		case err != nil && (err.final || err.cause != nil):
			return nil, start, end, err
		case err != nil:
			p.pending = pending
			return args, start, end, nil
		case forGood && p.pending != nil:
			return nil, start, end, p.pending
		}
		end = after
	}
}

func (p *parser) not(i int, forGood bool) (Node, int, *failure) {
	if p.depth++; p.depth > MaxDepth {
		return nil, i, &failure{at: i, cause: tooDeep().At(p.place(i))}
	}
	defer func() { p.depth-- }()
	var missed *failure
	if next, ok := p.keyword(i, "not"); ok {
		pending := p.pending
		n, end, err := p.not(next, false)
		switch {
		case err == nil && forGood && p.pending != nil:
			return nil, i, p.pending
		case err == nil:
			return &Not{Span: Span{p.skip(i), end}, Arg: n}, end, nil
		case err.cause != nil:
			return nil, i, err
		}
		p.pending = pending
		missed = err
	}
	n, end, err := p.primary(i, forGood)
	if err != nil && missed != nil && missed.at > err.at && !err.final {
		err = missed
	}
	return n, end, err
}

func (p *parser) primary(i int, forGood bool) (Node, int, *failure) {
	i = p.skip(i)
	if !strings.HasPrefix(p.text[i:], "(") {
		return p.condition(i, forGood)
	}
	n, end, err := p.expr(i+1, forGood)
	if err != nil {
		return nil, i, err
	}
	end = p.skip(end)
	if !strings.HasPrefix(p.text[end:], ")") {
		return nil, i, &failure{at: end}
	}
	return n, end + 1, nil
}

// condition reads the longest condition at i, which is no space.
func (p *parser) condition(i int, forGood bool) (Node, int, *failure) {
	if field, end := p.field(i); field != "" {
		return p.fieldCondition(i, field, end, forGood)
	}
	value, end, ok := p.value(i)
	if !ok {
		return nil, i, &failure{at: i}
	}
	next := p.skip(end)
	negated := strings.HasPrefix(p.text[next:], "not")
	if negated {
		next = p.skip(next + len("not"))
	}
	if !strings.HasPrefix(p.text[next:], "in") {
		return nil, i, &failure{at: next}
	}
	next = p.skip(next + len("in"))
	field, end := p.field(next)
	if field == "" {
		return nil, i, &failure{at: next}
	}
	return negate(negated, &Contains{Span: Span{i, end}, Field: field, Value: value}, end)
}

func negate(negated bool, n Node, end int) (Node, int, *failure) {
	if negated {
		return &Not{Span: n.Source(), Arg: n}, end, nil
	}
	return n, end, nil
}

// textOps are the operators behind a field, longer ones first.
var textOps = []string{"=~", "!~", "=*", "!*", "==", "!=", "<=", ">=", "=", "<", ">"}

// fieldCondition reads what follows a field. If that is no operator with a
// fitting operand, the field alone is the condition.
func (p *parser) fieldCondition(i int, field string, end int, forGood bool) (Node, int, *failure) {
	at := p.skip(end)
	op := ""
	for _, o := range textOps {
		if strings.HasPrefix(p.text[at:], o) {
			op = o
			break
		}
	}
	at = p.skip(at + len(op))
	switch op {
	case "":
		if negated, after, ok := p.isMissing(end); ok {
			return negate(negated, &Missing{Span: Span{i, after}, Field: field}, after)
		}
	case "=~", "!~":
		if pattern, after, ok := p.regex(at); ok {
			return p.match(Span{i, after}, field, pattern, at, op == "!~", forGood)
		}
	case "=*", "!*":
		if pattern, after, ok := p.quoted(at); ok {
			n, err := glob(&p.patterns, field, pattern)
			if large, ok := errors.AsType[*fault.Error](err); ok {
				return nil, i, &failure{at: at, cause: large.At(p.place(at))}
			}
			if err != nil {
				return nil, i, &failure{at: at, reason: err.Error(), final: true}
			}
			n.(*Match).Span = Span{i, after}
			return negate(op == "!*", n, after)
		}
	default:
		if value, after, ok := p.value(at); ok {
			if op == "=" {
				op = string(Eq)
			}
			return &Compare{Span: Span{i, after}, Op: Op(op), Field: field, Value: value}, after, nil
		}
	}
	return &True{Span: Span{i, end}, Field: field}, end, nil
}

// isMissing reads "is missing" or "is not missing" behind a field.
func (p *parser) isMissing(i int) (negated bool, end int, ok bool) {
	if i, ok = p.keyword(i, "is"); !ok {
		return false, i, false
	}
	if after, is := p.keyword(i, "not"); is {
		negated, i = true, after
	}
	end, ok = p.keyword(i, "missing")
	return negated, end, ok
}

func (p *parser) match(s Span, field string, raw rawRegex, at int, negated, forGood bool) (Node, int, *failure) {
	re, reason, large := raw.compile(&p.patterns)
	if large != nil {
		return nil, s.Start, &failure{at: at, cause: large.At(p.place(at))}
	}
	if reason != "" {
		bad := &failure{at: at, reason: reason, final: true}
		if forGood {
			return nil, s.Start, bad
		}
		if p.pending == nil {
			p.pending = bad
		}
		return &All{}, s.End, nil // stands in until the pass is over
	}
	return negate(negated, &Match{Span: s, Field: field, Regex: re}, s.End)
}
