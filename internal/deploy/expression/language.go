package expression

import (
	"context"
	"slices"
	"sync"

	"github.com/drover-project/drover/yaql"
)

// The limits of every expression: items of a collection, bytes of a value. Steps are bounded by yaql.DefaultSteps.
const (
	maxItems = 10_000
	maxBytes = 100 << 20
)

// Language compiles expressions of tasks. It is immutable and safe for use by many goroutines.
type Language struct {
	engine  *yaql.Engine
	helpers []*yaql.Function
	known   map[string]bool // names of functions that compute the same from the same
	// compares has the names of those that look at the new or the old state, whatever $ is.
	compares map[string]bool
	scope    func() *yaql.Context // the functions that expressions can call; nothing is evaluated in it
}

// NewLanguage returns the language of tasks with further functions of an operator's own. These must compute the same
// from the same arguments, and must not change anything.
func NewLanguage(helpers ...*yaql.Function) (*Language, error) {
	engine, err := yaql.New(yaql.LimitIterators(maxItems), yaql.MemoryQuota(maxBytes), yaql.OrderedResults())
	if err != nil {
		return nil, err
	}
	l := &Language{engine: engine, helpers: helpers, known: map[string]bool{}, compares: map[string]bool{}}
	l.scope = sync.OnceValue(func() *yaql.Context {
		c := engine.NewContext()
		all, _ := (&Evaluator{language: l}).register() // evaluators are made with them, and tell what is wrong
		c.Register(all...)
		return c
	})
	for _, f := range engine.Functions() {
		l.known[f.Name()] = true
	}
	for _, f := range helpers {
		l.known[f.Name()] = true
	}
	for _, f := range own() {
		l.known[f.name] = true
		l.compares[f.name] = f.compares
	}
	for _, name := range []string{"random", "randint", "now", "def", "lambda", "assert"} {
		delete(l.known, name)
	}
	return l, nil
}

// Has tells whether the language has a function of a name.
func (l *Language) Has(name string) bool {
	return l.known[name] || slices.ContainsFunc(l.engine.Functions(), func(f *yaql.Function) bool { return f.Name() == name })
}

// Pure returns a function that evaluates an expression with its arguments as variables, which are all that it sees. An
// expression that could give different results for the same arguments is refused. Errors are of type *yaql.Error.
func (l *Language) Pure(text string, params []string) (func(c *yaql.Context, args []any) (any, error), error) {
	code, err := l.engine.Compile(text)
	if err != nil {
		return nil, err
	}
	for name := range l.inspect(code.Tree()).calls {
		if l.compares[name] || l.Has(name) && !l.known[name] {
			return nil, &yaql.Error{Class: yaql.NoFunctionRegisteredException, Offset: -1,
				Message: "the function " + name + " does not depend on arguments alone", Hint: "give its result as an argument"}
		}
	}
	scope := l.engine.NewContext()
	return func(c *yaql.Context, args []any) (any, error) {
		own := scope.Child()
		for i, name := range params {
			own.Set(name, args[i])
		}
		return code.EvalIn(c.GoContext(), own, nil)
	}, nil
}

// Expression is a compiled expression.
type Expression struct {
	code *yaql.Expression
	text string
	defs bool // the expression defines functions
}

// Compile compiles an expression. Errors are of type *yaql.Error and know their place in the expression.
func (l *Language) Compile(text string) (*Expression, error) {
	code, err := l.engine.Compile(text)
	if err != nil {
		return nil, err
	}
	facts := l.inspect(code.Tree())
	return &Expression{code: code, text: text, defs: facts.calls["def"]}, nil
}

// String returns the text of the expression.
func (x *Expression) String() string { return x.text }

// Doubts returns what is probably not meant in the expression.
func (x *Expression) Doubts() []yaql.Doubt { return x.code.Doubts() }

// Impossible returns the errors of calls in the expression that fail whatever the states are: of functions and methods that there
// are not, and with arguments that they do not take.
func (l *Language) Impossible(x *Expression) []*yaql.Error { return x.code.Impossible(l.scope()) }

// Likened returns where the expression compares something with a text that is a constant in other languages, in quotes.
func (x *Expression) Likened() []yaql.Doubt { return x.code.Likened() }

// Predicate compiles an expression that looks at one value, which is $. It is bounded as all expressions of tasks are.
func (l *Language) Predicate(text string) (func(ctx context.Context, data any) (bool, error), error) {
	code, err := l.engine.Compile(text)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, data any) (bool, error) {
		v, err := code.Eval(ctx, data)
		yes, _ := v.(bool)
		return yes, err
	}, nil
}

// undefined is what old() gives where the old state has no answer. It is equal to itself alone.
type undefined struct{}

var notThere = &undefined{}

// IsUndefined tells whether a result is the answer of old() where the old state has none.
func IsUndefined(v any) bool { return v == any(notThere) }

// Attribute refuses: undefined has none.
func (*undefined) Attribute(name string) (any, error) {
	return nil, &yaql.Error{Class: yaql.NoFunctionRegisteredException, Message: `Unknown function "#property#` + name + `"`,
		Hint: "the old state has no such value; test it with isUndef()", Offset: -1}
}

// Item refuses: undefined has none.
func (*undefined) Item(any) (any, error) {
	return nil, &yaql.Error{Class: yaql.NoMatchingFunctionException, Message: `No function "#indexer" matches supplied arguments`,
		Hint: "the old state has no such value; test it with isUndef()", Offset: -1}
}

// Call knows isUndef alone.
func (*undefined) Call(name string, _ []any) (any, error) {
	if name == "isUndef" {
		return true, nil
	}
	return nil, &yaql.Error{Class: yaql.NoMethodRegisteredException, Message: `Unknown method "` + name + `" for receiver undefined`,
		Hint: "the old state has no such value; test it with isUndef()", Offset: -1}
}
