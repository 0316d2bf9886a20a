package expression

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/drover-project/drover/internal/deploy/dump"
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
	known   map[string]bool      // names of functions that compute the same from the same
	scope   func() *yaql.Context // the functions that expressions can call; nothing is evaluated in it
}

// NewLanguage returns the language of tasks with further functions of an operator's own. These must compute the same
// from the same arguments, and must not change anything.
func NewLanguage(helpers ...*yaql.Function) (*Language, error) {
	engine, err := yaql.New(yaql.LimitIterators(maxItems), yaql.MemoryQuota(maxBytes), yaql.OrderedResults())
	if err != nil {
		return nil, err
	}
	l := &Language{engine: engine, helpers: helpers, known: map[string]bool{}}
	l.scope = sync.OnceValue(func() *yaql.Context {
		c := engine.NewContext()
		all, _ := (&Evaluator{language: l}).functions() // evaluators are made with them, and tell what is wrong
		c.Register(all...)
		return c
	})
	for _, f := range engine.Functions() {
		l.known[f.Name()] = true
	}
	for _, f := range helpers {
		l.known[f.Name()] = true
	}
	for name := range comparing {
		l.known[name] = true
	}
	for _, name := range []string{"toYaml", "toJson", "quoted", "isUndef"} {
		l.known[name] = true
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
		if comparing[name] || l.Has(name) && !l.known[name] {
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

// comparing are the functions that look at the new or the old state, whatever $ is.
var comparing = map[string]bool{"new": true, "old": true, "changed": true, "changedAny": true, "changedAll": true,
	"added": true, "deleted": true}

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

// functions are those that an evaluator registers in its context.
func (e *Evaluator) functions() ([]*yaql.Function, error) {
	var out []*yaql.Function
	var failed error
	add := func(name, params string, call func(c *yaql.Context, args []any) (any, error), options ...yaql.FunctionOption) {
		f, err := yaql.NewFunction(name, params, call, options...)
		failed = errors.Join(failed, err)
		out = append(out, f)
	}
	add("new", "expr: lambda", func(_ *yaql.Context, args []any) (any, error) { return e.call(lambda(args[0]), e.now.New) },
		yaql.Described("The value of an expression on the new state.", "new($.mtu)"))
	add("old", "expr: lambda", func(_ *yaql.Context, args []any) (any, error) {
		v, err := e.call(lambda(args[0]), e.now.Old)
		if err != nil {
			return notThere, nil //nolint:nilerr // what the old state does not answer is undefined
		}
		return v, nil
	}, yaql.Described("The value of an expression on the state of the task's last success on the node.", "old($.mtu)"))
	add("changed", "expr: lambda", func(c *yaql.Context, args []any) (any, error) {
		d, err := e.compare(c, "changed", lambda(args[0]))
		return d != nil && d.Changed, err
	}, yaql.Described("Whether the value of an expression differs between the two states.", "changed($.mtu)"))
	add("changedAny", "*exprs: lambda", func(c *yaql.Context, args []any) (any, error) {
		return e.compareMany(c, "changedAny", args, true)
	}, yaql.Described("Whether one of the values differs.", "changedAny($.mtu, $.vlans)"))
	add("changedAll", "*exprs: lambda", func(c *yaql.Context, args []any) (any, error) {
		return e.compareMany(c, "changedAll", args, false)
	}, yaql.Described("Whether all values differ.", "changedAll($.mtu, $.vlans)"))
	add("added", "expr: lambda", func(c *yaql.Context, args []any) (any, error) {
		d, err := e.compare(c, "added", lambda(args[0]))
		if err != nil {
			return nil, err
		}
		return d.added(), nil
	}, yaql.Described("What came to a value since the old state.", "added($.nodes)"))
	add("deleted", "expr: lambda", func(c *yaql.Context, args []any) (any, error) {
		d, err := e.compare(c, "deleted", lambda(args[0]))
		if err != nil {
			return nil, err
		}
		return d.deleted(), nil
	}, yaql.Described("What went from a value since the old state.", "deleted($.nodes)"))
	add("isUndef", "value: any?", func(c *yaql.Context, args []any) (any, error) {
		_, err := c.Finalize(args[0]) // undefined answers for itself
		return false, err
	}, yaql.AsMethod(),
		yaql.Described("Whether the old state had no answer.", "old($.mtu).isUndef()"))
	add("toYaml", "value: any?", written(dump.YAML), yaql.AsMethod(), yaql.Described("The value as a YAML document.", "$.toYaml()"))
	add("toJson", "value: any?", written(dump.JSON), yaql.AsMethod(), yaql.Described("The value as JSON.", "$.toJson()"))
	add("quoted", "value: any?", func(c *yaql.Context, args []any) (any, error) {
		v, err := c.Finalize(args[0])
		if err != nil {
			return nil, err
		}
		return quoted(v)
	}, yaql.AsMethod(), yaql.Described("The value as a word of a command for sh, or the values of a list as words.", "$.name.quoted()"))
	return append(out, e.language.helpers...), failed
}

// quoted is a value as a shell reads it and takes nothing in it for its own; of a list it is each of them as a word.
func quoted(v any) (string, error) {
	if items, ok := v.([]any); ok {
		words := make([]string, len(items))
		for i, x := range items {
			if _, nested := x.([]any); nested {
				return "", &yaql.Error{Class: yaql.TypeError, Message: "a list within a list is no word of a command", Offset: -1}
			}
			word, err := quoted(x)
			if err != nil {
				return "", err
			}
			words[i] = word
		}
		return strings.Join(words, " "), nil
	}
	text, ok := v.(string)
	if !ok {
		var err error
		if text, err = dump.JSON(v); err != nil {
			return "", err
		}
		text = strings.TrimSuffix(text, "\n")
	}
	if strings.ContainsRune(text, 0) {
		return "", &yaql.Error{Class: yaql.ValueError, Message: "no word of a command can hold the character NUL", Offset: -1}
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'", nil
}

func lambda(v any) *yaql.Lambda {
	l, _ := v.(*yaql.Lambda) // the declared type of the parameter
	return l
}

func written(write func(any) (string, error)) func(c *yaql.Context, args []any) (any, error) {
	return func(c *yaql.Context, args []any) (any, error) {
		v, err := c.Finalize(args[0])
		if err != nil {
			return nil, err
		}
		return write(v)
	}
}
