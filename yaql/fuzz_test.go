package yaql_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/drover-project/drover/yaql"
)

// fuzzData is what fuzzed expressions see as $.
func fuzzData() any {
	return map[string]any{"nodes": []any{
		map[string]any{"name": "node-1", "status": "ready", "roles": []any{"controller"}, "cpu": 8, "ram": 1.5},
		map[string]any{"name": "node-2", "status": "error", "roles": []any{}, "cpu": nil, "ram": 2.0},
	}, "x": []any{3, 1, 2}, "s": "text"}
}

// FuzzEval parses, compiles and evaluates anything, in both ways, within a budget. There must be no panic, every
// error must have a class, and the budget must hold.
func FuzzEval(f *testing.F) {
	for i, c := range conformanceCases(f) {
		if i%17 == 0 {
			f.Add(c.Expr)
		}
	}
	for _, expr := range hostile {
		f.Add(expr)
	}
	engine := newEngine(f, yaql.StepBudget(20_000), yaql.MemoryQuota(1<<20), yaql.AllowDelegates(), yaql.DepthLimit(500))
	legacy := newEngine(f, yaql.StepBudget(20_000), yaql.MemoryQuota(1<<20), yaql.Legacy())
	f.Fuzz(func(t *testing.T, expr string) {
		for _, e := range []*yaql.Engine{engine, legacy} {
			x, err := e.Compile(expr)
			if err != nil {
				checkError(t, err)
				continue
			}
			x.Tree()
			scope := e.NewContext()
			scope.Touch()
			for _, c := range []*yaql.Context{nil, scope} {
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
				if _, err := x.EvalIn(ctx, c, fuzzData()); err != nil {
					checkError(t, err)
				}
				cancel()
			}
		}
	})
}

func checkError(t *testing.T, err error) {
	t.Helper()
	e, ok := err.(*yaql.Error) //nolint:errorlint // the type is promised
	if !ok || e.Class == "" || e.Class == "Exception" {
		t.Errorf("error without a class: %#v", err)
		return
	}
	if e.Class == yaql.DeadlineExceeded {
		t.Error("the budget did not hold")
	}
	_, _ = e.Error(), e.Caret()
}

// TestParallelEvaluation evaluates expressions from many goroutines that share engine, expressions, context and
// data. The race detector has the last word.
func TestParallelEvaluation(t *testing.T) {
	engine := newEngine(t, yaql.OrderedResults())
	scope := engine.NewContext()
	scope.Set("limit", 2)
	scope.Register(constantFunction(t, "five", "", 5))
	changed := engine.NewContext()
	changed.Register(constantFunction(t, "#operator_+", "a: string, b: integer", "sum"))
	data := fuzzData()
	var expressions []*yaql.Expression
	for _, expr := range []string{
		"$.nodes.where($.status = 'ready' and 'controller' in $.roles).name",
		"$.x.where($ < $limit).select($ + five())",
		"def(f, switch($ < 2 => $, true => f($ - 1) + f($ - 2))) -> f(8)",
		"$.nodes.where($.name =~ '[0-9]$').len()",
		"$.x.orderBy($).thenByDescending(-$)",
		"$.nodes.groupBy($.status, $.name).toDict($[0], $[1].len())",
		"let(a => $.x) -> $a.select($ * $a[0])",
		"$.s + 1",
		"$.nope",
	} {
		expressions = append(expressions, mustCompile(t, engine, expr))
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 30 {
				for _, x := range expressions {
					for _, c := range []*yaql.Context{nil, scope, changed} {
						_, _ = x.EvalIn(context.Background(), c, data)
					}
					_, _ = x.Test(context.Background(), data)
				}
			}
		})
	}
	wg.Wait()
	if got := evalText(t, engine, changed, "$.s + 1", data); got != `"sum"` {
		t.Errorf("the replaced operator gives %s", got)
	}
}
