package yaql

import (
	"context"
	"math/big"
	"reflect"
)

// FunctionOption completes a function made by [NewFunction] or [Func1] and its siblings.
type FunctionOption func(*Function)

// AsMethod makes a function one that is called on its first argument.
func AsMethod() FunctionOption { return func(f *Function) { f.kind = MethodKind } }

// AsExtension makes a function one that may be called both ways.
func AsExtension() FunctionOption { return func(f *Function) { f.kind = ExtensionKind } }

// Exclusive hides the functions of the same name in outer contexts.
func Exclusive() FunctionOption { return func(f *Function) { f.exclusive = true } }

// PassPairs makes key => value arguments reach the function as [Pair] values, through a variadic parameter of
// the type rulevalue, instead of being keyword arguments.
func PassPairs() FunctionOption { return func(f *Function) { f.noKwargs = true } }

// Described gives a function a sentence for help pages, and an example of the form "expression ⇒ result".
func Described(doc, example string) FunctionOption {
	return func(f *Function) { f.doc, f.example = doc, example }
}

// Named gives the parameters names, by which callers may pass them.
func Named(names ...string) FunctionOption {
	return func(f *Function) {
		for i, name := range names {
			if i < len(f.params) {
				f.params[i].name = name
			}
		}
	}
}

// NewFunction makes a function for expressions of a function of the host. The parameters are declared in a
// short notation:
//
//	name: type, name: type? = default, *rest: type, **keywords: type
//
// Types are any, bool, int (integers and booleans), integer, number, string, iterable, sequence, iterator,
// mapping, set, datetime, time (a datetime that may lack its zone), timespan, regex, context, keyword, and lambda for an argument that
// the function evaluates itself. A question mark, or the default null, admits null. Values that do not fit are
// refused before call is reached.
//
// The slice args holds a value for each parameter in order, then those of *rest, and if there is **keywords, last
// a map[string]any. A call that panics is an error of the expression. A lambda arrives as *[Lambda], integers as int64 or *big.Int, maps as map[string]any, *[Dict]
// or [Mapping], other values as the package comment says. The context c is that of the call.
func NewFunction(name, params string, call func(c *Context, args []any) (any, error), options ...FunctionOption) (*Function, error) {
	f := &Function{name: name, module: "host", retains: true}
	if err := f.parseParams(params); err != nil {
		return nil, err
	}
	f.call = func(c *Context, a []any) (any, error) {
		if f.keywords != nil {
			a[len(a)-1] = keywordMap(a[len(a)-1])
		}
		v, err := call(c, a)
		return norm(v), err
	}
	return f.completed(options)
}

func keywordMap(v any) map[string]any {
	m := map[string]any{}
	keywords, _ := v.([]named)
	for _, k := range keywords {
		m[k.name] = k.value
	}
	return m
}

func (f *Function) completed(options []FunctionOption) (*Function, error) {
	for _, o := range options {
		o(f)
	}
	if f.kind != FunctionKind && len(f.params) == 0 && f.variadic == nil {
		return nil, errorf(InvalidMethodException, "method %s has no parameter for its receiver", f.name)
	}
	call := f.call
	f.call = func(c *Context, a []any) (v any, err error) {
		defer f.rescue(&err)
		return call(c, a)
	}
	return f, nil
}

// rescue turns a panic of a function of the host into an error: an expression cannot end its host by a call.
func (f *Function) rescue(err *error) {
	switch p := recover().(type) {
	case nil:
	case unwound:
		panic(p)
	default:
		e := errorf("Exception", "the function %s of the host panicked: %v", f.name, p)
		e.cause, _ = p.(error)
		*err = e
	}
}

// GoContext returns the context.Context of the evaluation that c belongs to.
func (c *Context) GoContext() context.Context {
	if c.run == nil {
		return context.Background()
	}
	return c.run.ctx
}

// Func0 makes a function for expressions of a Go function without parameters.
func Func0[R any](name string, f func() (R, error), options ...FunctionOption) (*Function, error) {
	fn := &Function{name: name, module: "host"}
	fn.call = func(*Context, []any) (any, error) {
		r, err := f()
		return norm(r), err
	}
	return fn.completed(options)
}

// Func1 makes a function for expressions of a Go function. The types of the parameters follow from those of the
// Go function, which are looked at once: string, bool, int, int64, float64 and *big.Int are what they are called;
// []any is a list, map[string]any a map, *[Lambda] an argument that the function evaluates itself, and any is
// any value, null included. Other types accept values of just that Go type. Without [Named], parameters are
// called a, b and c.
func Func1[A, R any](name string, f func(A) (R, error), options ...FunctionOption) (*Function, error) {
	pa, ca := parameter[A]("a")
	fn := &Function{name: name, module: "host", retains: true, params: []param{pa}}
	fn.call = func(_ *Context, a []any) (any, error) {
		x, err := ca(a[0])
		if err != nil {
			return nil, err
		}
		r, err := f(x)
		return norm(r), err
	}
	return fn.completed(options)
}

// Func2 is like [Func1] for two parameters.
func Func2[A, B, R any](name string, f func(A, B) (R, error), options ...FunctionOption) (*Function, error) {
	pa, ca := parameter[A]("a")
	pb, cb := parameter[B]("b")
	fn := &Function{name: name, module: "host", retains: true, params: []param{pa, pb}}
	fn.call = func(_ *Context, a []any) (any, error) {
		x, err := ca(a[0])
		if err != nil {
			return nil, err
		}
		y, err := cb(a[1])
		if err != nil {
			return nil, err
		}
		r, err := f(x, y)
		return norm(r), err
	}
	return fn.completed(options)
}

// Func3 is like [Func1] for three parameters.
func Func3[A, B, C, R any](name string, f func(A, B, C) (R, error), options ...FunctionOption) (*Function, error) {
	pa, ca := parameter[A]("a")
	pb, cb := parameter[B]("b")
	pc, cc := parameter[C]("c")
	fn := &Function{name: name, module: "host", retains: true, params: []param{pa, pb, pc}}
	fn.call = func(_ *Context, a []any) (any, error) {
		x, err := ca(a[0])
		if err != nil {
			return nil, err
		}
		y, err := cb(a[1])
		if err != nil {
			return nil, err
		}
		z, err := cc(a[2])
		if err != nil {
			return nil, err
		}
		r, err := f(x, y, z)
		return norm(r), err
	}
	return fn.completed(options)
}

// parameter returns the parameter for a Go type, and how values are converted to that type.
func parameter[T any](name string) (param, func(v any) (T, error)) {
	t := reflect.TypeFor[T]()
	known, ok := goTypes()[t]
	if !ok {
		known = goType{typ: tAny, nullable: t.Kind() == reflect.Interface || t.Kind() == reflect.Pointer}
	}
	p := param{name: name, typ: known.typ, nullable: known.nullable}
	return p, func(v any) (T, error) {
		if known.convert != nil {
			v = known.convert(v)
		}
		x, ok := v.(T)
		if !ok && v != nil {
			return x, errorf(TypeError, "%s is no %s", typeName(v), t)
		}
		return x, nil
	}
}

type goType struct {
	typ      paramType
	nullable bool
	convert  func(v any) any
}

func goTypes() map[reflect.Type]goType {
	return map[reflect.Type]goType{
		reflect.TypeFor[any]():            {tAny, true, nil},
		reflect.TypeFor[string]():         {tString, false, nil},
		reflect.TypeFor[bool]():           {tBool, false, nil},
		reflect.TypeFor[int64]():          {tInteger, false, nil},
		reflect.TypeFor[int]():            {tInteger, false, func(v any) any { return int(clampInt(v)) }},
		reflect.TypeFor[*big.Int]():       {tInteger, false, func(v any) any { return bigOf(v) }},
		reflect.TypeFor[float64]():        {tNumber, false, floatArgument},
		reflect.TypeFor[[]any]():          {tSequence, false, func(v any) any { items, _ := seqItems(v); return items }},
		reflect.TypeFor[map[string]any](): {tMapping, false, mapArgument},
		reflect.TypeFor[*Lambda]():        {tLambda, true, nil},
		reflect.TypeFor[*Context]():       {tContext, false, nil},
		reflect.TypeFor[DateTime]():       {tDateTime, false, nil},
		reflect.TypeFor[Timespan]():       {tTimespan, false, nil},
		reflect.TypeFor[*Regex]():         {tRegex, false, nil},
		reflect.TypeFor[*Set]():           {tSet, false, nil},
	}
}

func floatArgument(v any) any {
	f, err := toFloat(v)
	if err != nil {
		return v
	}
	return f
}

// mapArgument copies a map of the language for a Go function; keys that are no strings are left out.
func mapArgument(v any) any {
	if m, ok := v.(map[string]any); ok {
		return m
	}
	m := make(map[string]any, dictLen(v))
	dictRange(v, func(k, x any) bool {
		if s, ok := k.(string); ok {
			m[s] = x
		}
		return true
	})
	return m
}
