// Package legacy evaluates the conditions that task graphs had before YAQL, such as
//
//	settings:public_ssl.enabled == true and not (cluster:mode == "multinode")
//
// Conditions are rewritten first, since the settings of an environment once lay elsewhere: see Rewrite. Values of
// settings come from the whole of what a node sees, those of cluster from its key "cluster"; a path that leads
// nowhere is null. As in the reference, characters that mean nothing are passed over.
package legacy

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/drover-project/drover/yaql"
)

// Rewrite returns the text of a condition as it is parsed: paths are moved to where settings lie now.
func Rewrite(text string) string {
	text = additional.ReplaceAllString(text, "settings:${1}.enabled")
	text = ofCommon.ReplaceAllString(text, "settings:")
	return withoutValue(text)
}

var (
	additional = regexp.MustCompile(`settings:additional_components\.([\w-]+)(?:\.value)?`)
	ofCommon   = regexp.MustCompile(`settings:common\.`)
	valueEnd   = regexp.MustCompile(`settings:(.+?)\.value`)
)

// withoutValue drops the ".value" that follows a path of settings. As in the reference, the first ".value" after
// "settings:" is the one that goes, even if it belongs to a later path.
func withoutValue(text string) string {
	out := strings.Builder{}
	for {
		m := valueEnd.FindStringSubmatchIndex(text)
		if m == nil {
			out.WriteString(text)
			return out.String()
		}
		end := m[1]
		for strings.HasPrefix(text[end:], ".") { // ".value.x" is a path of its own
			next := strings.Index(text[end:], ".value")
			if next < 0 {
				out.WriteString(text)
				return out.String()
			}
			end += next + len(".value")
		}
		out.WriteString(text[:end-len(".value")])
		text = text[end:]
	}
}

// Data is where a condition takes its values from, by key.
type Data interface {
	Get(key any) (any, bool)
}

// Condition is a parsed condition.
type Condition struct{ root node }

// Value returns the value of the condition, which need not be a truth value: and, or return one of their operands.
func (c *Condition) Value(data Data) (any, error) { return c.root(data) }

// node computes the value of a part of a condition.
type node func(Data) (any, error)

// Parse rewrites and parses a condition. Errors have the class ParseError.
func Parse(text string) (*Condition, error) {
	p := &parser{tokens: lex(Rewrite(text))}
	root, err := p.or()
	if err == nil && p.peek().kind != end {
		err = p.unexpected()
	}
	if err != nil {
		return nil, err
	}
	return &Condition{root}, nil
}

type kind uint8

const (
	end kind = iota
	constant
	path
	word // an operator or a parenthesis
)

type token struct {
	kind  kind
	text  string
	value any
}

var lexemes = regexp.MustCompile(`(-?\d+)|('[^']*'|"[^"]*")|(\w*:[\w.\-]+)|(==|!=|[()])|\b(true|false|null|and|or|not|in)\b`)

// lex cuts a condition into tokens.
func lex(text string) []token {
	var out []token
	for _, m := range lexemes.FindAllStringSubmatch(text, -1) {
		t := token{text: m[0], kind: word}
		switch {
		case m[1] != "":
			n, err := strconv.ParseInt(m[1], 10, 64)
			if err != nil {
				continue
			}
			t.kind, t.value = constant, n
		case m[2] != "":
			t.kind, t.value = constant, m[2][1:len(m[2])-1]
		case m[3] != "":
			t.kind = path
		case m[5] == "true" || m[5] == "false":
			t.kind, t.value = constant, m[5] == "true"
		case m[5] == "null":
			t.kind = constant
		}
		out = append(out, t)
	}
	return out
}

type parser struct {
	tokens []token
	depth  int
}

const maxDepth = 500

func (p *parser) peek() token {
	if len(p.tokens) == 0 {
		return token{}
	}
	return p.tokens[0]
}

func (p *parser) take(text string) bool {
	if t := p.peek(); t.kind != word || t.text != text {
		return false
	}
	p.tokens = p.tokens[1:]
	return true
}

func (p *parser) unexpected() error {
	return &yaql.Error{Class: "ParseError", Message: fmt.Sprintf("Syntax error at '%s'", p.peek().text), Offset: -1,
		Hint: "conditions are made of model:path, texts, numbers, true, false, null, and, or, not, in, == and !="}
}

// binary parses operands joined by operators of one level.
func (p *parser) binary(operand func() (node, error), join map[string]func(a, b node) node) (node, error) {
	left, err := operand()
	if err != nil {
		return nil, err
	}
next:
	for {
		for op, combine := range join {
			if p.take(op) {
				right, err := operand()
				if err != nil {
					return nil, err
				}
				left = combine(left, right)
				continue next
			}
		}
		return left, nil
	}
}

func (p *parser) or() (node, error) {
	return p.binary(p.and, map[string]func(a, b node) node{"or": func(a, b node) node {
		return func(d Data) (any, error) {
			x, err := a(d)
			if err != nil || Truth(x) {
				return x, err
			}
			return b(d)
		}
	}})
}

func (p *parser) and() (node, error) {
	return p.binary(p.comparison, map[string]func(a, b node) node{"and": func(a, b node) node {
		return func(d Data) (any, error) {
			x, err := a(d)
			if err != nil || !Truth(x) {
				return x, err
			}
			return b(d)
		}
	}})
}

func (p *parser) comparison() (node, error) {
	return p.binary(p.unary, map[string]func(a, b node) node{
		"==": func(a, b node) node { return both(a, b, func(x, y any) (any, error) { return equal(x, y), nil }) },
		"!=": func(a, b node) node { return both(a, b, func(x, y any) (any, error) { return !equal(x, y), nil }) },
	})
}

func both(a, b node, f func(x, y any) (any, error)) node {
	return func(d Data) (any, error) {
		x, err := a(d)
		if err != nil {
			return nil, err
		}
		y, err := b(d)
		if err != nil {
			return nil, err
		}
		return f(x, y)
	}
}

// unary parses not and in, which bind tighter than comparisons.
func (p *parser) unary() (node, error) {
	if p.depth++; p.depth > maxDepth {
		return nil, &yaql.Error{Class: "ParseError", Message: "Syntax error: too many levels", Offset: -1}
	}
	defer func() { p.depth-- }()
	if p.take("not") {
		operand, err := p.unary()
		if err != nil {
			return nil, err
		}
		return func(d Data) (any, error) {
			x, err := operand(d)
			return !Truth(x), err
		}, nil
	}
	return p.binary(p.primary, map[string]func(a, b node) node{"in": func(a, b node) node { return both(a, b, contains) }})
}

func (p *parser) primary() (node, error) {
	t := p.peek()
	switch {
	case p.take("("):
		inner, err := p.or()
		if err == nil && !p.take(")") {
			err = p.unexpected()
		}
		return inner, err
	case t.kind == constant:
		p.tokens = p.tokens[1:]
		return func(Data) (any, error) { return t.value, nil }, nil
	case t.kind == path:
		p.tokens = p.tokens[1:]
		model, rest, _ := strings.Cut(t.text, ":")
		return lookup(model, strings.Split(rest, ".")), nil
	}
	return nil, p.unexpected()
}

// lookup returns the value at a path of a model, and null for what is not there. A path through what is no map is an error.
func lookup(model string, keys []string) node {
	switch model {
	case "settings":
	case "cluster":
		keys = append([]string{"cluster"}, keys...)
	default:
		return func(Data) (any, error) {
			return nil, &yaql.Error{Class: yaql.KeyError, Offset: -1,
				Message: fmt.Sprintf("'No model with name \"%s\" defined'", model), Hint: "the models are settings and cluster"}
		}
	}
	return func(d Data) (any, error) {
		for i, k := range keys {
			v, ok := d.Get(k)
			if !ok {
				return nil, nil
			}
			if i == len(keys)-1 {
				return v, nil
			}
			if d, ok = v.(Data); !ok {
				return nil, typeError(strings.Join(keys[:i+1], ".") + " is no map, so that it has no " + keys[i+1])
			}
		}
		return nil, nil
	}
}

// Truth is the truth value of a value, as the reference's language has it: null, zero, and whatever is empty are
// false.
func Truth(v any) bool {
	switch x := v.(type) {
	case nil:
		return false
	case bool:
		return x
	case string:
		return x != ""
	case int64:
		return x != 0
	case float64:
		return x != 0
	case []any:
		return len(x) > 0
	case *yaql.List:
		return len(x.Items) > 0
	case interface{ Len() int }:
		return x.Len() > 0
	}
	return true
}

func equal(x, y any) bool { return yaql.Equal(x, y) }

// contains tells whether x is an item of a list, a key of a map or a part of a text.
func contains(x, in any) (any, error) {
	switch c := in.(type) {
	case string:
		if s, ok := x.(string); ok {
			return strings.Contains(c, s), nil
		}
		return nil, typeError("'in <string>' requires string as left operand")
	case *yaql.List:
		return has(c.Items, x), nil
	case []any:
		return has(c, x), nil
	case Data:
		_, ok := c.Get(x)
		return ok, nil
	}
	return nil, typeError("the right side of in is no list, map or text")
}

func has(items []any, x any) bool {
	for _, e := range items {
		if equal(e, x) {
			return true
		}
	}
	return false
}

func typeError(message string) error {
	return &yaql.Error{Class: yaql.TypeError, Message: message, Offset: -1}
}
