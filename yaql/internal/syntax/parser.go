package syntax

import (
	"strings"
	"unicode/utf8"
)

// MaxDepth is the greatest number of nodes between the root of a tree and a leaf.
const MaxDepth = 4000

// Parser parses texts by one operator table. It is immutable.
type Parser struct{ g *grammar }

// NewParser prepares a parser. With delegates, a value followed by arguments in parentheses is a call.
func NewParser(t Table, delegates bool) (*Parser, error) {
	g, err := newGrammar(t, delegates)
	if err != nil {
		return nil, err
	}
	return &Parser{g}, nil
}

// Parse returns the syntax tree of src.
func (p *Parser) Parse(src string) (*Node, *Error) {
	s := &state{lexer: lexer{g: p.g, src: src}}
	if err := s.advance(); err != nil {
		return nil, err
	}
	n, err := s.expr(0)
	if err != nil {
		return nil, err
	}
	if s.tok.kind != tokEnd {
		return nil, s.unexpected("an operator or the end of the expression")
	}
	return n, nil
}

type state struct {
	lexer
	tok   token
	depth int
	slab  []Node // nodes are allocated in blocks
}

func (s *state) advance() *Error {
	t, err := s.next()
	s.tok = t
	return err
}

func (s *state) unexpected(expected string) *Error {
	e := &Error{Class: Grammar, Source: s.src, Offset: s.tok.pos, Expected: expected}
	if s.tok.kind == tokEnd {
		e.Message = "Parse error: unexpected end of statement"
		return e
	}
	var b strings.Builder
	b.WriteString("Parse error: unexpected '")
	b.WriteString(s.tok.shown())
	b.WriteString("' at position ")
	writeInt(&b, utf8.RuneCountInString(s.src[:s.tok.pos]))
	b.WriteString(" of expression '")
	b.WriteString(s.src)
	b.WriteString("'")
	e.Message = b.String()
	return e
}

func writeInt(b *strings.Builder, n int) {
	if n >= 10 {
		writeInt(b, n/10)
	}
	b.WriteByte(byte('0' + n%10))
}

// node allocates a node over args.
func (s *state) node(kind Kind, name string, pos int, args ...*Node) (*Node, *Error) {
	depth := 0
	for _, a := range args {
		depth = max(depth, a.depth+1)
	}
	if depth > MaxDepth {
		return nil, s.tooDeep()
	}
	if len(s.slab) == 0 {
		s.slab = make([]Node, 16)
	}
	n := &s.slab[0]
	s.slab = s.slab[1:]
	n.Kind, n.Name, n.Pos, n.Args, n.depth = kind, name, pos, args, depth
	return n, nil
}

func (s *state) tooDeep() *Error {
	return &Error{Class: TooDeep, Message: "expression is nested too deeply", Source: s.src, Offset: s.tok.pos}
}

// leaf makes a node without arguments and moves on.
func (s *state) leaf(kind Kind, name string, value any) (*Node, *Error) {
	n, err := s.node(kind, name, s.tok.pos)
	if err != nil {
		return nil, err
	}
	n.Value = value
	return n, s.advance()
}

// expr parses operators that bind tighter than power.
func (s *state) expr(power int) (*Node, *Error) {
	s.depth++
	defer func() { s.depth-- }()
	if s.depth > MaxDepth {
		return nil, s.tooDeep()
	}
	left, err := s.operand()
	for err == nil {
		t := s.tok
		if t.kind != tokOp {
			return left, nil
		}
		switch op, ok := s.g.binary[t.text]; {
		case ok && op.power > power:
			left, err = s.binary(left, op)
			continue
		case ok:
			return left, nil
		}
		switch op, ok := s.g.suffix[t.text]; {
		case ok && op.power > power:
			if err = s.advance(); err == nil {
				left, err = s.operator(Unary, t.text, op.fn, t.pos, left)
			}
			continue
		case ok:
			return left, nil
		}
		switch {
		case t.text == "[" && s.g.index > power:
			left, err = s.args(Index, "", t.pos, "]", left)
		case t.text == "(" && s.g.calls && power == 0:
			left, err = s.args(Invoke, "", t.pos, ")", left)
		default:
			return left, nil
		}
	}
	return nil, err
}

func (s *state) operator(kind Kind, symbol, fn string, pos int, args ...*Node) (*Node, *Error) {
	n, err := s.node(kind, symbol, pos, args...)
	if err != nil {
		return nil, err
	}
	n.Func = fn
	return n, nil
}

func (s *state) binary(left *Node, op opInfo) (*Node, *Error) {
	t := s.tok
	if err := s.advance(); err != nil {
		return nil, err
	}
	power := op.power
	if op.right {
		power--
	}
	right, err := s.expr(power)
	if err != nil {
		return nil, err
	}
	return s.operator(Binary, t.text, op.fn, t.pos, left, right)
}

// operand parses what may stand where a value is expected.
func (s *state) operand() (*Node, *Error) {
	t := s.tok
	switch t.kind {
	case tokVar:
		return s.leaf(Var, t.text, nil)
	case tokConst, tokString:
		return s.leaf(Const, "", t.value)
	case tokWord:
		return s.leaf(Keyword, t.text, t.text)
	case tokFunc:
		return s.args(Call, t.text, t.pos, ")")
	case tokOp:
		switch t.text {
		case "(":
			return s.wrapped()
		case "[":
			return s.args(List, "", t.pos, "]")
		case "{":
			return s.args(Dict, "", t.pos, "}")
		}
		if op, ok := s.g.prefix[t.text]; ok {
			if err := s.advance(); err != nil {
				return nil, err
			}
			arg, err := s.expr(op.power)
			if err != nil {
				return nil, err
			}
			return s.operator(Unary, t.text, op.fn, t.pos, arg)
		}
	}
	return nil, s.unexpected("a value")
}

func (s *state) wrapped() (*Node, *Error) {
	pos := s.tok.pos
	if err := s.advance(); err != nil {
		return nil, err
	}
	n, err := s.expr(0)
	if err != nil {
		return nil, err
	}
	if s.tok.kind != tokOp || s.tok.text != ")" {
		return nil, s.unexpected("an operator or ')'")
	}
	if err := s.advance(); err != nil {
		return nil, err
	}
	return s.node(Wrap, "", pos, n)
}

// args parses arguments up to the closing bracket and makes a node of them, after the given ones. Positional
// arguments come first and may be left out, except the last; then come pairs. One left-out argument may stand
// between the two.
func (s *state) args(kind Kind, name string, pos int, closing string, args ...*Node) (*Node, *Error) {
	if err := s.advance(); err != nil {
		return nil, err
	}
	commas, positional, pairs := 0, 0, 0
	for first := true; ; first = false {
		if s.tok.kind == tokOp && s.tok.text == closing && first {
			break
		}
		for pairs == 0 && s.tok.kind == tokOp && s.tok.text == "," {
			skip, err := s.leaf(Skip, "", nil)
			if err != nil {
				return nil, err
			}
			args = append(args, skip)
			commas++
		}
		arg, err := s.expr(0)
		if err != nil {
			return nil, err
		}
		switch {
		case s.pairSign():
			if commas > 1 || commas == 1 && positional == 0 {
				return nil, s.unexpected("',' or '" + closing + "'")
			}
			if arg, err = s.pair(arg); err != nil {
				return nil, err
			}
			pairs++
		case pairs > 0:
			return nil, s.unexpected("'" + s.g.pair + "'")
		default:
			positional, commas = positional+1, 0
		}
		args = append(args, arg)
		if s.tok.kind == tokOp && s.tok.text == closing {
			break
		}
		if s.tok.kind != tokOp || s.tok.text != "," {
			return nil, s.unexpected("an operator, ',' or '" + closing + "'")
		}
		if err := s.advance(); err != nil {
			return nil, err
		}
	}
	if err := s.advance(); err != nil {
		return nil, err
	}
	return s.node(kind, name, pos, args...)
}

func (s *state) pairSign() bool {
	return s.g.pair != "" && s.tok.kind == tokOp && s.tok.text == s.g.pair && !s.isBinary(s.g.pair)
}

// isBinary reports whether the pair sign is an ordinary operator, as in the legacy language.
func (s *state) isBinary(symbol string) bool {
	_, ok := s.g.binary[symbol]
	return ok
}

func (s *state) pair(key *Node) (*Node, *Error) {
	pos := s.tok.pos
	if err := s.advance(); err != nil {
		return nil, err
	}
	value, err := s.expr(0)
	if err != nil {
		return nil, err
	}
	return s.node(Pair, "", pos, key, value)
}
