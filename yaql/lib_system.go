package yaql

import (
	"strconv"
	"strings"
)

// coreModule is the outermost layer: what everything else falls back to.
func coreModule() module {
	return module{"core", []definition{
		{"#operator_.", FunctionKind, "obj: any?, name: keyword", func(c *Context, a []any) (any, error) {
			return c.callValues(nil, "#property#"+a[1].(string), a[0])
		}, "Gives a property of a value that is neither a map nor a collection.", "timespan(hours => 2).minutes ⇒ 120.0", 0},
		{"#finalize", FunctionKind, "obj: any?", func(c *Context, a []any) (any, error) { return finalize(c, a[0]) },
			"Turns the value of the whole expression into its result: lazy collections are drained, containers become plain ones.", "[1, 2].where($ > 1) ⇒ [2]", 0},
		{"#iter", FunctionKind, "iterator: iterable", func(_ *Context, a []any) (any, error) { return a[0], nil },
			"Passes a lazy collection on. A host may replace it to watch what is iterated.", "", 0},
	}}
}

func systemModule(cfg *config) module {
	m := module{"system", []definition{
		{"#get_context_data", FunctionKind, "name: stringconst", func(c *Context, a []any) (any, error) {
			return c.Get(a[0].(string)), nil
		}, "Gives the value of a variable: $ and $1 are the current item, $2 and so on further arguments, $name what let() or the host set. An unknown variable is null.", "let(x => 2) -> [$x, $nobody] ⇒ [2,null]", 0},
		{"#operator_.", FunctionKind, "receiver: any?, expr: method", func(_ *Context, a []any) (any, error) {
			return a[1].(*Lambda).callMethod(a[0])
		}, "Calls a method of the value on the left.", "abc.toUpper() ⇒ \"ABC\"", keeps},
		{"#operator_?.", FunctionKind, "receiver: any?, expr: expression", func(c *Context, a []any) (any, error) {
			if a[0] == nil {
				return nil, nil
			}
			right := a[1].(arg)
			return c.callByName(nil, "#operator_.", false, nil, []arg{constantArg(a[0]), right})
		}, "Like the dot, but null if the value on the left is null.", "null?.anything ⇒ null", keeps},
		{"#operator_->", FunctionKind, "left: context, right: lambda", func(c *Context, a []any) (any, error) {
			inner := a[0].(*Context).Child()
			inner.run = c.run
			return (&Lambda{code: a[1].(*Lambda).code, c: inner}).Call()
		}, "Evaluates the right side with the variables and functions that the left side gives.", "let(x => 2) -> $x * $x ⇒ 4", keeps},
		{"assert", MethodKind, "obj: any?, condition: lambda, message: string = \"Assertion failed\"", assert,
			"Passes the value on if the condition is true of it, and fails with the message otherwise.", "12.assert($ > 2) ⇒ 12", 0},
		{"call", FunctionKind, "name: string, args: sequence, kwargs: mapping, receiver: any? = none", callFunction,
			"Calls the function of that name with a list of arguments and a map of keyword arguments; with a receiver it calls a method.", "call(pow, [2], {b => 5}) ⇒ 32", keeps},
		{"def", FunctionKind, "name: string, func: lambda", define,
			"Gives a context in which the expression is a function of that name. It may call itself.", "def(double, $ * 2) -> double(4) ⇒ 8", 0},
		{"let", FunctionKind, "*args: any?, **kwargs: any?", let,
			"Gives a context in which the positional arguments are $1, $2 and so on, and keyword arguments are variables.", "let(5, x => 2) -> $ + $x ⇒ 7", keeps},
		{"unpack", MethodKind, "sequence: iterable, *args: string", unpack,
			"Gives a context in which the names are variables for the items of the collection; without names the items are $1, $2 and so on.", "[1, 2].unpack(a, b) -> $a + $b ⇒ 3", keeps},
		{"with", FunctionKind, "*args: any?", func(c *Context, a []any) (any, error) { return let(c, append(a, []named(nil))) },
			"Gives a context in which the arguments are $1, $2 and so on.", "with(5, 6) -> $2 ⇒ 6", keeps},
	}}
	if cfg.delegates {
		m.defs = append(m.defs, delegateDefinitions()...)
	}
	return m
}

func delegateDefinitions() []definition {
	return []definition{
		{"#call", FunctionKind, "callable: callable, *args: any?, **kwargs: any?", func(c *Context, a []any) (any, error) {
			keywords, _ := a[len(a)-1].([]named)
			if fn, ok := a[0].(*callable); ok {
				return fn.lambda.callFresh(a[1:len(a)-1], keywords)
			}
			fn, ok := a[0].(*Function)
			if !ok {
				return nil, errorf(TypeError, "a context is not called with such arguments")
			}
			return callValue(c, fn, a[1:len(a)-1], keywords)
		}, "Calls a value that is a function. Exists only where delegates are allowed.", "", keeps},
		{"lambda", FunctionKind, "func: lambda", func(_ *Context, a []any) (any, error) {
			return &callable{a[0].(*Lambda)}, nil
		}, "Makes a function of an expression. Exists only where delegates are allowed.", "", 0},
	}
}

// callValue calls a function that the host passed as a value.
func callValue(c *Context, fn *Function, values []any, keywords []named) (any, error) {
	args := make([]arg, 0, len(values)+len(keywords))
	for _, v := range values {
		args = append(args, constantArg(v))
	}
	for _, k := range keywords {
		a := constantArg(k.value)
		a.name = k.name
		args = append(args, a)
	}
	return prepare(c.run.cfg, nil, fn.name, false, [][]*Function{{fn}}, args).call(c, nil)
}

// callMethod evaluates an argument of the form name(args) as a method call of the receiver.
func (l *Lambda) callMethod(receiver any) (any, error) {
	n := l.code.node
	if n == nil {
		return l.Call() // a value that call() passes in place of an expression
	}
	name := trimUnderscores(n.Name)
	if o, ok := receiver.(Object); ok {
		return callObject(l.c, n, o, &site{name: name, node: n, args: l.code.args})
	}
	return l.c.callByName(n, name, true, receiver, l.code.args)
}

func assert(c *Context, a []any) (any, error) {
	v := a[0]
	if it, ok := v.(*Iterator); ok {
		v = memorized(c, it)
	}
	t, err := a[1].(*Lambda).test1(v)
	if err != nil {
		return nil, err
	}
	if !t {
		message, _ := a[2].(string)
		c.run.reads(len(message))
		return nil, errorf(AssertionError, "%s", a[2])
	}
	return v, nil
}

func callFunction(c *Context, a []any) (any, error) {
	c.run.opens(a[1])
	items, _ := seqItems(a[1])
	if err := c.run.spend(len(items) + square(dictLen(a[2]))); err != nil { // a keyword is compared with all the others
		return nil, err
	}
	args := make([]arg, 0, len(items))
	for _, x := range items {
		args = append(args, constantArg(norm(x)))
	}
	var err error
	dictRange(a[2], func(k, x any) bool {
		name, ok := k.(string)
		if !ok {
			err = errorf(TypeError, "keywords must be strings")
			return false
		}
		keyword := constantArg(x)
		keyword.name = name
		args = append(args, keyword)
		return true
	})
	if err != nil {
		return nil, err
	}
	return c.callByName(nil, trimUnderscores(a[0].(string)), a[3] != NoValue, a[3], args)
}

// square is what it takes to compare each of n things with each other, in steps.
func square(n int) int {
	const comparisonsOfStep = 64
	return n * n / comparisonsOfStep
}

// define makes the context of def(). Names in snake_case become camelCase, as those of host functions do.
func define(c *Context, a []any) (any, error) {
	c.run.scans(a[0].(string))
	inner := c.Child()
	body := &Lambda{code: a[1].(*Lambda).code, c: inner}
	anything := param{name: "args", typ: tAny, nullable: true}
	fn := &Function{name: camelCase(a[0].(string)), module: "def", defined: body, retains: true, variadic: &anything, keywords: &anything}
	fn.call = func(_ *Context, a []any) (any, error) {
		keywords, _ := a[len(a)-1].([]named)
		return body.callFresh(a[:len(a)-1], keywords)
	}
	inner.Register(fn)
	if !inner.untouched && body.code.node != nil {
		body.code = (&compiler{engine: &Engine{cfg: *c.run.cfg, lib: c.lib}, lib: c.lib}).compile(body.code.node)
	}
	return inner, nil
}

// camelCase turns foo_bar_ into fooBar. Names of operators stay as they are.
func camelCase(name string) string {
	if strings.HasPrefix(name, "#") || strings.HasPrefix(name, "*") {
		return name
	}
	name = strings.TrimRight(name, "_")
	var b strings.Builder
	runes := []rune(name)
	for i := 0; i < len(runes); i++ {
		if i > 0 && runes[i] == '_' && i+1 < len(runes) {
			i++
			b.WriteString(strings.ToUpper(string(runes[i])))
			continue
		}
		b.WriteRune(runes[i])
	}
	return b.String()
}

func let(c *Context, a []any) (any, error) {
	inner := c.Child()
	keywords, _ := a[len(a)-1].([]named)
	if err := c.run.spend(square(len(a) + len(keywords))); err != nil {
		return nil, err
	}
	for i, x := range a[:len(a)-1] {
		inner.set(strconv.Itoa(i+1), x)
	}
	for _, k := range keywords {
		inner.set(k.name, k.value)
	}
	return inner, nil
}

func unpack(c *Context, a []any) (any, error) {
	names := a[1:]
	src, err := iterate(c, a[0])
	if err != nil {
		return nil, err
	}
	var first []any
	for len(first) <= len(names) {
		x, ok, err := src.next()
		if err != nil {
			return nil, err
		}
		if !ok {
			break
		}
		first = append(first, x)
	}
	inner := c.Child()
	if len(names) == 0 {
		// As in the reference, what has been taken from a one-shot iterator is gone.
		i := 0
		return inner, each(c, a[0], func(x any) error {
			i++
			if i == 1 {
				inner.set("1", x)
				return nil
			}
			inner.vars = append(inner.vars, variable{strconv.Itoa(i), x})
			return nil
		})
	}
	if len(first) != len(names) {
		return nil, errorf(ValueError, "Cannot unpack %d elements into %d", len(first), len(names))
	}
	if err := c.run.spend(square(len(names))); err != nil {
		return nil, err
	}
	for i, name := range names {
		inner.set(strings.TrimPrefix(name.(string), "$"), first[i])
	}
	return inner, nil
}

// objectsModule gives access to host objects that implement [Object].
func objectsModule() module {
	return module{"objects", []definition{
		{"#indexer", FunctionKind, "obj: object, key: any?", func(_ *Context, a []any) (any, error) {
			v, err := a[0].(Object).Item(a[1])
			return norm(v), err
		}, "Gives an item of a host object.", "", 0},
		{"#operator_.", FunctionKind, "obj: object, attr: keyword", func(_ *Context, a []any) (any, error) {
			v, err := a[0].(Object).Attribute(a[1].(string))
			return norm(v), err
		}, "Gives an attribute of a host object.", "", 0},
		{"#operator_.", FunctionKind, "receiver: object, expr: method", func(_ *Context, a []any) (any, error) {
			return a[1].(*Lambda).callMethod(a[0])
		}, "Calls a method of a host object.", "", keeps},
	}}
}
