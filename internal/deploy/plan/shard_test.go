package plan_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/deploy/plan"
)

// manyNodes is an environment of so many compute nodes, some of which lack a value.
func manyNodes(n int) string {
	b := &strings.Builder{}
	b.WriteString("common: {debug: true}\nnodes:\n")
	for i := 1; i <= n; i++ {
		fmt.Fprintf(b, "  \"%d\": {uid: \"%d\", roles: [compute], zone: %d%s}\n", i, i, i%3, map[bool]string{true: ", ip: x"}[i < n/2])
	}
	return b.String()
}

// withProcessors has f done with so many processors, on which the number of shards depends.
func withProcessors(n int, f func()) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(n))
	f()
}

func TestNodesThatAreEvaluatedAtOnce(t *testing.T) {
	const tasks = `
- {id: a, type: shell, roles: [compute], parameters: {x: {yaql_exp: '[$.zone, $.debug, $.uid]'}}}
- {id: b, type: shell, roles: '*', condition: {yaql_exp: '$.zone > 0'}, requires: [a], cross-depends: [{name: a, role: compute}]}
- {id: g, type: group, roles: [compute], tasks: [c]}
- {id: c, type: {yaql_exp: shell}, roles: [master], parameters: {y: {yaql_exp: $node.toJson()}}}
`
	var texts []string
	for _, n := range []int{1, 4} {
		withProcessors(n, func() {
			p, err := buildText(t, tasks, manyNodes(50), nil)
			if err != nil {
				t.Fatal(err)
			}
			text := outline(p)
			for i := range p.Steps {
				text += "\n" + canonical(p.Steps[i].Parameters)
			}
			texts = append(texts, text)
		})
	}
	if texts[0] != texts[1] || !strings.Contains(texts[0], "50/c shell") {
		t.Errorf("by several at once it is\n%s\nby one\n%s", texts[1], texts[0])
	}
}

// TestTheSameErrorIsTold looks at a graph that fails on many nodes: it is the first task on the first node that is told,
// whoever comes upon its error first.
func TestTheSameErrorIsTold(t *testing.T) {
	const tasks = `
- {id: fine, type: shell, roles: [compute]}
- {id: a, type: shell, roles: [compute], parameters: {x: {yaql_exp: $.ip}}}
- {id: b, type: shell, roles: [compute], parameters: {x: {yaql_exp: $.nothing}}}
`
	withProcessors(4, func() {
		for range 20 {
			_, err := buildText(t, tasks, manyNodes(60), nil)
			if err == nil || !strings.Contains(err.Error(), "task a, node 30, field parameters") {
				t.Fatalf("told is %v", err)
			}
		}
	})
}

// TestAVanishedNode plans for a node of which the state has nothing.
func TestAVanishedNode(t *testing.T) {
	_, err := buildText(t, "- {id: a, type: shell, roles: [compute]}", small, func(in *plan.Input) { delete(in.Parts, "3") })
	if err == nil || !strings.Contains(err.Error(), "tasks.yaml:1:3: task a, node 3: '3'; the state of the environment has no such node") {
		t.Errorf("told is %v", err)
	}
}
