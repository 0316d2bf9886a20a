package yaql

import (
	"slices"
	"strings"

	"github.com/drover-project/drover/yaql/internal/syntax"
)

// Impossible returns the errors of the calls in the expression that fail whatever the data is, in the order of their places: of
// functions and methods that nobody knows, and with arguments that no overload takes. A nil context means the standard library alone.
// Operators, and what depends on values, are not looked at; methods that only objects of the host have count as unknown. The arguments
// of a call that is looked at may be in a branch that no data reaches.
func (x *Expression) Impossible(c *Context) []*Error {
	if c == nil {
		c = x.engine.NewContext()
	}
	s := &search{x: x, c: c, compiler: &compiler{engine: x.engine, lib: x.engine.lib}, defined: map[string]bool{}}
	s.defines(x.root)
	s.walk(x.root, false)
	slices.SortStableFunc(s.found, func(a, b *Error) int { return a.Offset - b.Offset })
	return s.found
}

// search looks for calls that are impossible.
type search struct {
	x        *Expression
	c        *Context
	compiler *compiler
	defined  map[string]bool // by def(), anywhere in the expression
	found    []*Error
}

// defines collects the names that def() gives to functions.
func (s *search) defines(n *syntax.Node) {
	if n.Kind == syntax.Call && trimUnderscores(n.Name) == "def" && len(n.Args) > 0 {
		if name, ok := n.Args[0].Value.(string); ok {
			s.defined[camelCase(name)] = true
		}
	}
	for _, a := range n.Args {
		s.defines(a)
	}
}

// walk looks at a part of the expression, which stands behind a dot or not.
func (s *search) walk(n *syntax.Node, method bool) {
	if n.Kind == syntax.Call {
		s.call(n, method)
	}
	for i, a := range n.Args {
		s.walk(a, n.Kind == syntax.Binary && i == 1 && strings.HasSuffix(n.Name, "."))
	}
}

func (s *search) call(n *syntax.Node, method bool) {
	name := trimUnderscores(n.Name)
	if !method && s.defined[name] {
		return
	}
	args, _ := s.compiler.argsOf(n.Args)
	at := prepare(&s.x.engine.cfg, n, name, method, s.c.collect(name, method), args)
	var e *Error
	switch {
	case len(at.overload) == 0:
		e = at.unknown(s.c, nil)
		if method { // what it would be asked of is not known
			e.Message = "Unknown method \"" + name + "\""
		}
	case at.err != nil:
		e = at.err
	case len(at.cands) == 0:
		e = at.notFound(s.c, nil, nil)
		if method {
			e.Message = "No method \"" + name + "\" matches supplied arguments"
		}
	default:
		return
	}
	e.Source, e.Offset = s.x.source, n.Pos
	s.found = append(s.found, e)
}

// Likened returns where the expression compares something with a text that is a constant in other languages, in quotes: no truth
// value, and no null, is equal to it.
func (x *Expression) Likened() []Doubt {
	var out []Doubt
	var walk func(n *syntax.Node)
	walk = func(n *syntax.Node) {
		for _, a := range n.Args {
			text, _ := a.Value.(string)
			if n.Kind == syntax.Binary && (n.Name == "=" || n.Name == "!=") && a.Kind == syntax.Const && foreign[text] != "" {
				out = append(out, Doubt{a.Pos, "'" + text + "' is a string; the constant is " + foreign[text]})
			}
			walk(a)
		}
	}
	walk(x.root)
	return out
}
