package yaql

import (
	"strconv"
	"strings"

	"github.com/drover-project/drover/yaql/internal/syntax"
)

// paramType is the declared type of a parameter.
type paramType uint8

const (
	tAny paramType = iota
	tNull
	tBool
	tInt     // an integer or a boolean
	tInteger // an integer that is no boolean
	tNumber  // an integer or float that is no boolean
	tString
	tIterable
	tUnordered // an iterable that is no set
	tSequence
	tIterator
	tMapping
	tSet
	tOrdering
	tDateTime // tTime leaves naive values alone, tDateTime gives them the zone UTC
	tTime
	tTimespan
	tRegex
	tContext
	tCallable
	tTuple
	tRuleValue   // an evaluated key => value
	tObject      // a host object with attributes
	tStringConst // a literal
	tKeyword     // a bare word
	tLambda      // lazy: the argument is evaluated when the function calls it
	tMethod      // lazy: the right side of a dot
	tExpression  // lazy: any argument, as it was written
	tRule        // lazy: key => value
)

var typeNames = map[string]paramType{
	"any": tAny, "null": tNull, "bool": tBool, "int": tInt, "integer": tInteger, "number": tNumber, "string": tString,
	"iterable": tIterable, "unordered": tUnordered, "sequence": tSequence, "iterator": tIterator, "mapping": tMapping, "set": tSet,
	"ordering": tOrdering, "datetime": tDateTime, "time": tTime, "timespan": tTimespan, "regex": tRegex,
	"context": tContext, "callable": tCallable, "tuple": tTuple, "rulevalue": tRuleValue, "object": tObject,
	"stringconst": tStringConst, "keyword": tKeyword, "lambda": tLambda, "method": tMethod, "expression": tExpression,
	"rule": tRule,
}

// shownTypes are the names of types in signatures shown to people, where they differ from typeNames.
var shownTypes = [...]string{tAny: "any", tNull: "null", tBool: "boolean", tInt: "integer", tInteger: "integer",
	tNumber: "number", tString: "string", tIterable: "iterable", tUnordered: "iterable", tSequence: "list", tIterator: "iterator",
	tMapping: "map", tSet: "set", tOrdering: "ordered collection", tDateTime: "datetime", tTime: "datetime",
	tTimespan: "timespan", tRegex: "regex", tContext: "context", tCallable: "callable", tTuple: "tuple",
	tRuleValue: "key => value", tObject: "object", tStringConst: "string literal", tKeyword: "word",
	tLambda: "expression of $", tMethod: "call", tExpression: "expression", tRule: "condition => value"}

func (t paramType) lazy() bool { return t >= tLambda }

// param is one parameter of a function.
type param struct {
	name       string
	typ        paramType
	nullable   bool
	hasDefault bool
	def        any
}

// Kind says how a function may be called.
type Kind uint8

// The kinds of functions: name(a, b), a.name(b), or both.
const (
	FunctionKind Kind = iota
	MethodKind
	ExtensionKind
)

// impl carries a function out. The slice a holds one value for each parameter, then the variadic arguments,
// and last, if the function takes any keyword, a []named.
type impl func(c *Context, a []any) (any, error)

// named is a keyword argument of a function that takes any.
type named struct {
	name  string
	value any
}

// Function is one overload of a function, method or operator.
type Function struct {
	name      string
	kind      Kind
	noKwargs  bool
	params    []param
	variadic  *param // accepts further positional arguments
	keywords  *param // accepts further keyword arguments
	call      impl
	doc       string
	example   string
	module    string
	exclusive bool
	retains   bool    // may keep the context of the call beyond it
	defined   *Lambda // the body, of functions made by def()
}

// Name returns the name the function is called by; operators have names such as #operator_+.
func (f *Function) Name() string { return f.name }

// Kind returns how the function may be called.
func (f *Function) Kind() Kind { return f.kind }

// Doc returns what the function does, in a sentence or two.
func (f *Function) Doc() string { return f.doc }

// Module returns the part of the library that the function belongs to.
func (f *Function) Module() string { return f.module }

// Example returns an expression that shows the function and the text of its result, or two empty strings.
func (f *Function) Example() (expr, result string) {
	expr, result, _ = strings.Cut(f.example, " ⇒ ")
	return expr, result
}

func (f *Function) isFunction() bool { return f.kind != MethodKind }
func (f *Function) isMethod() bool   { return f.kind != FunctionKind }

// Signature returns name and parameters in a form for people, such as
// "substring(string: string, start: integer, length: integer = -1)".
func (f *Function) Signature() string {
	var parts []string
	for _, p := range f.params {
		parts = append(parts, p.show(""))
	}
	if f.variadic != nil {
		parts = append(parts, f.variadic.show("*"))
	}
	if f.keywords != nil {
		parts = append(parts, f.keywords.show("**"))
	}
	name := f.name
	if f.kind == MethodKind && len(parts) > 0 {
		name, parts = "<"+parts[0]+">."+name, parts[1:]
	}
	return name + "(" + strings.Join(parts, ", ") + ")"
}

func (p param) show(prefix string) string {
	s := prefix + p.name + ": " + shownTypes[p.typ]
	if p.nullable && p.typ != tNull && p.typ != tAny && !p.typ.lazy() {
		s += " or null"
	}
	if p.hasDefault && p.def != NoValue {
		s += " = " + repr(p.def)
	} else if p.hasDefault {
		s += " (may be left out)"
	}
	return s
}

// parseParams reads parameters in the notation "name: type? = default, *rest: type, **keywords: type". Types
// are those of typeNames; a question mark or the default null makes a parameter nullable.
func (f *Function) parseParams(signature string) error {
	if signature == "" {
		return nil
	}
	for text := range strings.SplitSeq(signature, ", ") {
		name, rest, _ := strings.Cut(text, ": ")
		typ, def, hasDefault := strings.Cut(rest, " = ")
		nullable := strings.HasSuffix(typ, "?")
		t, ok := typeNames[strings.TrimSuffix(typ, "?")]
		if !ok {
			return errorf(ValueError, "function %s: parameter %q has no known type", f.name, text)
		}
		p := param{name: strings.TrimLeft(name, "*"), typ: t, nullable: nullable || t == tNull || t.lazy(), hasDefault: hasDefault}
		if hasDefault {
			p.def = parseDefault(def)
			p.nullable = p.nullable || p.def == nil
		}
		switch {
		case strings.HasPrefix(name, "**"):
			f.keywords = &p
		case strings.HasPrefix(name, "*"):
			f.variadic = &p
		default:
			f.params = append(f.params, p)
		}
	}
	return nil
}

func parseDefault(text string) any {
	switch text {
	case "null":
		return nil
	case "true":
		return true
	case "false":
		return false
	case "none":
		return NoValue
	case "zero":
		return Timespan{}
	}
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return n
	}
	return strings.Trim(text, `"`)
}

// accepts reports whether the value v may be passed for the parameter.
func (p *param) accepts(cfg *config, v any) bool {
	if v == nil {
		return p.nullable
	}
	switch p.typ {
	case tAny:
		return true
	case tNull:
		return false
	case tBool:
		_, ok := v.(bool)
		return ok
	case tInt:
		_, ok := v.(bool)
		return ok || syntax.IsInt(v)
	case tInteger:
		return syntax.IsInt(v)
	case tNumber:
		return isNumber(v)
	case tString:
		_, ok := v.(string)
		return ok
	case tIterable:
		return isIterable(cfg, v)
	case tUnordered:
		return !isSet(v) && isIterable(cfg, v)
	case tSequence:
		return isSequence(v)
	case tIterator:
		return isIterator(v)
	case tMapping:
		return isMapping(v)
	case tSet:
		if w, ok := v.(*View); ok {
			return w.kind != valuesView
		}
		_, ok := v.(*Set)
		return ok
	default:
		return p.acceptsOther(v)
	}
}

func (p *param) acceptsOther(v any) (ok bool) {
	switch p.typ {
	case tOrdering:
		_, ok = v.(*ordering)
	case tDateTime, tTime:
		_, ok = v.(DateTime)
	case tTimespan:
		_, ok = v.(Timespan)
	case tRegex:
		_, ok = v.(*Regex)
	case tContext:
		_, ok = v.(*Context)
	case tCallable:
		switch v.(type) {
		case *callable, *Function, *Context:
			ok = true
		}
	case tTuple:
		switch v.(type) {
		case intRange: // a list of another kind
		case []any, Sequence:
			ok = true
		}
	case tRuleValue:
		_, ok = v.(Pair)
	case tObject:
		_, ok = v.(Object)
	case tStringConst, tKeyword:
		_, ok = v.(string)
	}
	return ok
}

// convert gives an accepted value the form in which functions receive it.
func (p *param) convert(c *Context, v any) (any, error) {
	switch p.typ {
	case tIterable, tUnordered:
		if v != nil {
			return limited(c, v)
		}
	case tDateTime:
		if d, ok := v.(DateTime); ok {
			return d.Aware(), nil
		}
	}
	return v, nil
}

// broader reports whether every value of type b is also one of type a, but not the other way round.
func broader(a, b paramType) bool {
	if a == b || b.lazy() || a.lazy() || b == tKeyword || b == tStringConst {
		return false
	}
	switch a {
	case tAny:
		return true
	case tIterable, tUnordered:
		return b == tSequence || b == tIterator || b == tMapping || b == tSet || b == tOrdering || b == tTuple
	case tSequence:
		return b == tTuple
	case tInt:
		return b == tBool
	}
	return false
}
