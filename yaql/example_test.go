package yaql_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/drover-project/drover/yaql"
)

func Example() {
	engine, err := yaql.New()
	if err != nil {
		panic(err)
	}
	expression, err := engine.Compile("$.nodes.where($.status = ready and controller in $.roles).name")
	if err != nil {
		panic(err)
	}
	data := map[string]any{"nodes": []any{
		map[string]any{"name": "node-1", "status": "ready", "roles": []any{"controller", "mongo"}},
		map[string]any{"name": "node-2", "status": "error", "roles": []any{"controller"}},
	}}
	names, err := expression.Eval(context.Background(), data)
	fmt.Println(names, err)
	// Output: [node-1] <nil>
}

func ExampleExpression_Test() {
	engine, err := yaql.New()
	if err != nil {
		panic(err)
	}
	condition, err := engine.Compile("$.cluster.status in [operational, new]")
	if err != nil {
		panic(err)
	}
	t, err := condition.Test(context.Background(), map[string]any{"cluster": map[string]any{"status": "new"}})
	fmt.Println(t, err)
	// Output: true <nil>
}

func ExampleFunc1() {
	engine, err := yaql.New()
	if err != nil {
		panic(err)
	}
	shout, err := yaql.Func1("shout", func(s string) (string, error) { return strings.ToUpper(s) + "!", nil },
		yaql.AsExtension(), yaql.Named("text"))
	if err != nil {
		panic(err)
	}
	scope := engine.NewContext()
	scope.Register(shout)
	scope.Set("name", "world")
	expression, err := engine.Compile("[shout(hello), $name.shout(), shout(text => x)]")
	if err != nil {
		panic(err)
	}
	v, err := expression.EvalIn(context.Background(), scope, nil)
	fmt.Println(v, err)
	// Output: [HELLO! WORLD! X!] <nil>
}

func ExampleNewFunction() {
	engine, err := yaql.New()
	if err != nil {
		panic(err)
	}
	// A function that evaluates its argument with other data.
	old, err := yaql.NewFunction("old", "expr: lambda", func(_ *yaql.Context, args []any) (any, error) {
		return args[0].(*yaql.Lambda).Call(map[string]any{"version": 1})
	})
	if err != nil {
		panic(err)
	}
	scope := engine.NewContext()
	scope.Register(old)
	expression, err := engine.Compile("$.version != old($.version)")
	if err != nil {
		panic(err)
	}
	v, err := expression.EvalIn(context.Background(), scope, map[string]any{"version": 2})
	fmt.Println(v, err)
	// Output: true <nil>
}

func ExampleError() {
	engine, err := yaql.New()
	if err != nil {
		panic(err)
	}
	_, err = engine.Compile("$.nodes.where($.status = )")
	if e, ok := errors.AsType[*yaql.Error](err); ok {
		fmt.Println(e.Class)
		fmt.Println(e.Hint)
		fmt.Println(e.Caret())
	}
	// Output:
	// YaqlGrammarException
	// expected a value
	// $.nodes.where($.status = )
	//                          ^
}

func ExampleDateTime() {
	engine, err := yaql.New()
	if err != nil {
		panic(err)
	}
	backup := time.Date(2026, 11, 22, 4, 30, 0, 0, time.UTC)
	later, err := engine.Compile("$ + timespan(hours => 36)")
	if err != nil {
		panic(err)
	}
	next, err := later.Eval(context.Background(), backup)
	if err != nil {
		panic(err)
	}
	when := next.(yaql.DateTime)
	fmt.Println(when.ISOFormat(), when.Fields().Day)
	// Output: 2026-11-23T16:30:00+00:00 23
}

func ExampleInsertOperator() {
	engine, err := yaql.New(yaql.InsertOperator("or", yaql.BinaryLeft,
		yaql.Operator{Symbol: "implies", Fixity: yaql.BinaryLeft}, false))
	if err != nil {
		panic(err)
	}
	implies, err := yaql.Func2("#operator_implies", func(a, b bool) (bool, error) { return !a || b, nil })
	if err != nil {
		panic(err)
	}
	scope := engine.NewContext()
	scope.Register(implies)
	expression, err := engine.Compile("[false implies false, 1 > 2 or true implies false]")
	if err != nil {
		panic(err)
	}
	v, err := expression.EvalIn(context.Background(), scope, nil)
	fmt.Println(v, err)
	// Output: [true false] <nil>
}
