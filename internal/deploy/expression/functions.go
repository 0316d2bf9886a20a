package expression

import (
	"errors"
	"strings"

	"github.com/drover-project/drover/internal/deploy/dump"
	"github.com/drover-project/drover/yaql"
)

// function is one that expressions of tasks have beside those of YAQL.
type function struct {
	name   string
	params string // in the notation of yaql.NewFunction
	// compares is set of those that look at the new or the old state, whatever $ is. All others compute the same from the same arguments.
	compares bool
	method   bool // it can be called as a method, too
	text     string
	example  string
	call     func(e *Evaluator, c *yaql.Context, args []any) (any, error)
}

// own returns all of them.
func own() []function {
	return []function{
		{name: "new", params: "expr: lambda", compares: true, call: valueNow,
			text: "The value of an expression on the new state.", example: "new($.mtu)"},
		{name: "old", params: "expr: lambda", compares: true, call: valueBefore,
			text: "The value of an expression on the state of the task's last success on the node.", example: "old($.mtu)"},
		{name: "changed", params: "expr: lambda", compares: true, call: changed,
			text: "Whether the value of an expression differs between the two states.", example: "changed($.mtu)"},
		{name: "changedAny", params: "*exprs: lambda", compares: true, call: changedAny,
			text: "Whether one of the values differs.", example: "changedAny($.mtu, $.vlans)"},
		{name: "changedAll", params: "*exprs: lambda", compares: true, call: changedAll,
			text: "Whether all values differ.", example: "changedAll($.mtu, $.vlans)"},
		{name: "added", params: "expr: lambda", compares: true, call: difference("added", (*Decision).added),
			text: "What came to a value since the old state.", example: "added($.nodes)"},
		{name: "deleted", params: "expr: lambda", compares: true, call: difference("deleted", (*Decision).deleted),
			text: "What went from a value since the old state.", example: "deleted($.nodes)"},
		{name: "isUndef", params: "value: any?", method: true, call: isUndef,
			text: "Whether the old state had no answer.", example: "old($.mtu).isUndef()"},
		{name: "toYaml", params: "value: any?", method: true, call: written(dump.YAML),
			text: "The value as a YAML document.", example: "$.toYaml()"},
		{name: "toJson", params: "value: any?", method: true, call: written(dump.JSON),
			text: "The value as JSON.", example: "$.toJson()"},
		{name: "quoted", params: "value: any?", method: true, call: quotedWords,
			text: "The value as a word of a command for sh, or the values of a list as words.", example: "$.name.quoted()"},
	}
}

// register returns what an evaluator registers in its context: our own functions, and the operator's.
func (e *Evaluator) register() ([]*yaql.Function, error) {
	var out []*yaql.Function
	var failed error
	for _, f := range own() {
		options := []yaql.FunctionOption{yaql.Described(f.text, f.example)}
		if f.method {
			options = append(options, yaql.AsMethod())
		}
		made, err := yaql.NewFunction(f.name, f.params, func(c *yaql.Context, args []any) (any, error) { return f.call(e, c, args) }, options...)
		failed = errors.Join(failed, err)
		out = append(out, made)
	}
	return append(out, e.language.helpers...), failed
}

func valueNow(e *Evaluator, _ *yaql.Context, args []any) (any, error) {
	return e.call(lambda(args[0]), e.now.New)
}

func valueBefore(e *Evaluator, _ *yaql.Context, args []any) (any, error) {
	v, err := e.call(lambda(args[0]), e.now.Old)
	if err != nil {
		return notThere, nil //nolint:nilerr // what the old state does not answer is undefined
	}
	return v, nil
}

func changed(e *Evaluator, c *yaql.Context, args []any) (any, error) {
	d, err := e.compare(c, "changed", lambda(args[0]))
	return d != nil && d.Changed, err
}

func changedAny(e *Evaluator, c *yaql.Context, args []any) (any, error) {
	return e.compareMany(c, "changedAny", args, true)
}

func changedAll(e *Evaluator, c *yaql.Context, args []any) (any, error) {
	return e.compareMany(c, "changedAll", args, false)
}

// difference is a function that gives a part of what differs between the two states.
func difference(name string, part func(*Decision) any) func(e *Evaluator, c *yaql.Context, args []any) (any, error) {
	return func(e *Evaluator, c *yaql.Context, args []any) (any, error) {
		d, err := e.compare(c, name, lambda(args[0]))
		if err != nil {
			return nil, err
		}
		return part(d), nil
	}
}

func isUndef(_ *Evaluator, c *yaql.Context, args []any) (any, error) {
	_, err := c.Finalize(args[0]) // undefined answers for itself
	return false, err
}

func written(write func(any) (string, error)) func(e *Evaluator, c *yaql.Context, args []any) (any, error) {
	return func(_ *Evaluator, c *yaql.Context, args []any) (any, error) {
		v, err := c.Finalize(args[0])
		if err != nil {
			return nil, err
		}
		return write(v)
	}
}

func quotedWords(_ *Evaluator, c *yaql.Context, args []any) (any, error) {
	v, err := c.Finalize(args[0])
	if err != nil {
		return nil, err
	}
	return quoted(v)
}

func lambda(v any) *yaql.Lambda {
	l, _ := v.(*yaql.Lambda) // the declared type of the parameter
	return l
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
