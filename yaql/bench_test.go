package yaql_test

import (
	"fmt"
	"strconv"
	"testing"

	"github.com/drover-project/drover/yaql"
)

// benchNodes makes a document with n nodes, as decoded from JSON.
func benchNodes(n int) map[string]any {
	statuses := []string{"ready", "discover", "provisioned", "error", "stopped"}
	roles := []string{"controller", "compute", "cinder", "ceph-osd", "mongo"}
	nodes := make([]any, n)
	for i := range nodes {
		nodes[i] = map[string]any{
			"uid": strconv.Itoa(i), "name": "node-" + strconv.Itoa(i), "status": statuses[i%5], "roles": []any{roles[i%5], roles[i/5%5]},
			"ram": int64(1024 * (1 + i%64)), "rack": "r" + strconv.Itoa(i%40),
		}
	}
	return map[string]any{
		"cluster": map[string]any{"id": int64(1), "status": "operational"}, "nodes": nodes, "xs": []any{int64(5), int64(3), int64(8), int64(1)},
		"configs": map[string]any{"nova": map[string]any{"debug": false}},
	}
}

// benchExpressions are typical for conditions and fields of deployment tasks.
var benchExpressions = []struct{ name, text string }{
	{"path", "$.configs.nova.debug"},
	{"status", "$.cluster.status in [operational, new, partially_deployed]"},
	{"or", "$.configs.nova.debug = true or $.cluster.status = new"},
	{"chain", "$.xs.where($ > 2).select($ * $).orderBy($).take(3).sum()"},
	{"where", "$.nodes.where($.status = 'ready' and 'controller' in $.roles).len()"},
	{"groupBy", "$.nodes.groupBy($.status, $.ram, $.sum())"},
	{"orderBy", "$.nodes.orderBy($.rack).thenByDescending($.ram).select($.uid)"},
	{"toDict", "$.nodes.toDict($.name, {up => $.status = ready})"},
	{"recursion", "def(fib, switch($ < 2 => $, true => fib($ - 1) + fib($ - 2))) -> fib(10)"},
	{"regex", "$.nodes.where($.name =~ '-[0-9]*7$').len()"},
}

func compiled(tb testing.TB, text string) *yaql.Expression {
	tb.Helper()
	engine, err := yaql.New()
	if err != nil {
		tb.Fatal(err)
	}
	x, err := engine.Compile(text)
	if err != nil {
		tb.Fatal(err)
	}
	return x
}

func BenchmarkEval(b *testing.B) {
	data := benchNodes(100)
	for _, e := range benchExpressions {
		b.Run(e.name, func(b *testing.B) {
			x := compiled(b, e.text)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := x.Eval(b.Context(), data); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkWhere(b *testing.B) {
	x := compiled(b, "$.nodes.where($.status = 'ready' and 'controller' in $.roles).len()")
	for _, n := range []int{10, 1000, 100000} {
		b.Run(fmt.Sprintf("nodes=%d", n), func(b *testing.B) {
			data := benchNodes(n)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := x.Eval(b.Context(), data); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/item")
		})
	}
}

func BenchmarkCompile(b *testing.B) {
	engine, err := yaql.New()
	if err != nil {
		b.Fatal(err)
	}
	for _, e := range benchExpressions {
		b.Run(e.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := engine.Compile(e.text); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkNewEngine(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := yaql.New(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkParallel(b *testing.B) {
	x := compiled(b, "$.nodes.where($.status = 'ready' and 'controller' in $.roles).len()")
	data := benchNodes(1000)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := x.Eval(b.Context(), data); err != nil {
				b.Error(err)
			}
		}
	})
}

// TestFilterAllocatesNothingPerItem holds the predicate of the benchmarks to a cost that does not grow with the
// number of items but for the list of results.
func TestFilterAllocatesNothingPerItem(t *testing.T) {
	x := compiled(t, "$.nodes.where($.status = 'ready' and 'nobody' in $.roles).len()")
	allocations := func(n int) float64 {
		data := benchNodes(n)
		return testing.AllocsPerRun(20, func() {
			if _, err := x.Eval(t.Context(), data); err != nil {
				t.Error(err)
			}
		})
	}
	if few, many := allocations(10), allocations(10000); many > few+5 {
		t.Errorf("%v allocations for 10 items and %v for 10,000", few, many)
	}
}
