package main

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types/traits"
	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/vm"

	"github.com/drover-project/drover/yaql"
)

// The predicate in each language.
const (
	yaqlPredicate = "$.where($.status = 'ready' and 'controller' in $.roles).len()"
	celPredicate  = "items.filter(x, x.status == 'ready' && 'controller' in x.roles)"
	exprPredicate = "filter(items, .status == 'ready' && 'controller' in .roles)"
)

// wantLoop is how many times the hand-written loop's time an item may take.
const wantLoop = 3.0

// contender counts the items for which the predicate holds.
type contender struct {
	name string
	run  func(items []any) int
}

func contenders() ([]contender, error) {
	ours, err := yaqlContender()
	if err != nil {
		return nil, err
	}
	theirs, err := celContender()
	if err != nil {
		return nil, err
	}
	program, err := expr.Compile(exprPredicate, expr.AllowUndefinedVariables())
	if err != nil {
		return nil, err
	}
	var machine vm.VM
	return []contender{
		{"Go loop", loop},
		{"yaql", ours},
		{"cel-go", theirs},
		{"expr", func(items []any) int {
			v, err := machine.Run(program, map[string]any{"items": items})
			exitOn(err)
			return len(v.([]any))
		}},
	}, nil
}

func yaqlContender() (func([]any) int, error) {
	engine, err := yaql.New()
	if err != nil {
		return nil, err
	}
	expression, err := engine.Compile(yaqlPredicate)
	return func(items []any) int {
		v, err := expression.Eval(context.Background(), items)
		exitOn(err)
		return int(v.(int64))
	}, err
}

func celContender() (func([]any) int, error) {
	env, err := cel.NewEnv(cel.Variable("items", cel.DynType))
	if err != nil {
		return nil, err
	}
	ast, issues := env.Compile(celPredicate)
	if issues.Err() != nil {
		return nil, issues.Err()
	}
	program, err := env.Program(ast)
	return func(items []any) int {
		v, _, err := program.Eval(map[string]any{"items": items})
		exitOn(err)
		return int(v.(traits.Sizer).Size().Value().(int64))
	}, err
}

// loop is the predicate written by hand, with checked types. It collects the items, as the engines do.
func loop(items []any) int {
	var out []any
	for _, item := range items {
		m, ok := item.(map[string]any)
		if !ok {
			continue
		}
		if status, ok := m["status"].(string); !ok || status != "ready" {
			continue
		}
		roles, _ := m["roles"].([]any)
		for _, role := range roles {
			if s, ok := role.(string); ok && s == "controller" {
				out = append(out, item)
				break
			}
		}
	}
	return len(out)
}

// items are maps as encoding/json decodes them; one in six passes the predicate.
func items(n int) []any {
	states := []string{"ready", "pending", "error"}
	out := make([]any, n)
	for i := range out {
		roles := []any{"compute", "storage"}
		if i%2 == 0 {
			roles = append(roles, "controller")
		}
		out[i] = map[string]any{
			"id": int64(i), "name": fmt.Sprintf("node-%d", i), "status": states[i%3], "roles": roles,
			"cpu": int64(8), "mem": 65536.0, "meta": map[string]any{"rack": fmt.Sprintf("r%d", i%40)},
		}
	}
	return out
}

// comparePredicate measures the engines on lists of three sizes and reports whether the targets were met.
func comparePredicate(out io.Writer, budget time.Duration) (bool, error) {
	all, err := contenders()
	if err != nil {
		return false, err
	}
	met := true
	fmt.Fprintln(out, "\nfilter a list of maps by status == 'ready' && 'controller' in roles")
	table := tabwriter.NewWriter(out, 0, 8, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "items\tengine\tns per item\ttimes the loop\tallocations per item\t")
	for _, n := range []int{10, 1000, 100000} {
		list := items(n)
		costs := map[string]float64{}
		var perItem float64
		for _, c := range all {
			if got, want := c.run(list), loop(list); got != want {
				return false, fmt.Errorf("%s finds %d of %d items, want %d", c.name, got, n, want)
			}
			costs[c.name] = microseconds(budget, func() { c.run(list) }) * 1000 / float64(n)
			allocated := allocations(func() { c.run(list) }) / float64(n)
			if c.name == "yaql" {
				perItem = allocated
			}
			fmt.Fprintf(table, "%d\t%s\t%.1f\t%.2f\t%.4f\t\n", n, c.name, costs[c.name], costs[c.name]/costs["Go loop"], allocated)
		}
		met = met && costs["yaql"] < costs["cel-go"] && costs["yaql"] < costs["expr"]
		if n >= 1000 { // on ten items the fixed cost of an evaluation counts more than the items
			met = met && costs["yaql"] <= wantLoop*costs["Go loop"] && perItem < 0.05
		}
	}
	return met, table.Flush()
}

// wantCompile is how many microseconds parsing and compiling a typical condition may take.
const wantCompile = 15.0

// measureCompile measures parsing and compiling of typical task conditions.
func measureCompile(out io.Writer, budget time.Duration) (bool, error) {
	engine, err := yaql.New()
	if err != nil {
		return false, err
	}
	met := true
	fmt.Fprintln(out, "\nparse and compile")
	for _, text := range []string{
		"$.cluster.status in [operational, new, partially_deployed]",
		"changedAny($.network_scheme, $.dns, $.get('ssl', null))",
		"$.configs.nova.parameter.value = false or $.cluster.status = new",
		"$.nodes.where($.status = 'ready' and 'controller' in $.roles)",
	} {
		if _, err := engine.Compile(text); err != nil {
			return false, err
		}
		cost := microseconds(budget, func() { _, _ = engine.Compile(text) })
		met = met && cost <= wantCompile
		fmt.Fprintf(out, "%8.2f us  %s\n", cost, text)
	}
	return met, nil
}
