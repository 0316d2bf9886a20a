package plan_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/deploy/plan"
	"github.com/drover-project/drover/internal/deploy/report"
)

// TestEventsMakeTasksRun has tasks run whose conditions are false.
func TestEventsMakeTasksRun(t *testing.T) {
	const tasks = `
- {id: always, type: shell, roles: [compute]}
- {id: again, type: shell, roles: [compute], condition: {yaql_exp: 'false'}, reexecute_on: [deploy_changes, upgrade]}
- {id: computed, type: shell, roles: [compute], condition: {yaql_exp: 'false'}, reexecute_on: {yaql_exp: '[upgrade]'}}
- {id: config, type: shell, roles: [compute], condition: {yaql_exp: 'false'}, refresh_on: [nova_config]}
- {id: any, type: shell, roles: [compute], condition: {yaql_exp: 'false'}, refresh_on: ['*']}
- {id: stage, type: stage, reexecute_on: [upgrade], refresh_on: ['*']}
`
	for _, c := range []struct {
		name              string
		events, refreshed []string
		only              []string
		want              string
	}{
		{"nothing happened", nil, nil, nil, "always: unconditional"},
		{"an event", []string{"deploy_changes"}, nil, nil, "again: event deploy_changes; always: unconditional"},
		{"another one", []string{"upgrade", "x"}, nil, nil, "again: event upgrade; always: unconditional; computed: event upgrade"},
		{"an event, of tasks that were not selected", []string{"upgrade"}, nil, []string{"computed"}, "computed: event upgrade"},
		{"a resource", nil, []string{"nova_config"}, nil, "any: refresh *; config: refresh nova_config"},
		{"another one", nil, []string{"x"}, nil, "any: refresh *"},
	} {
		p, err := buildText(t, tasks, small, func(in *plan.Input) { in.Events, in.Refreshed, in.Only = c.events, c.refreshed, c.only })
		if err != nil {
			t.Fatal(err)
		}
		var ran []string
		why := report.Why(p, nil)
		for i := range p.Steps {
			if p.Steps[i].Run {
				ran = append(ran, p.Steps[i].ID()+": "+why(int32(i)))
			}
		}
		slices.Sort(ran)
		if got := strings.Join(ran, "; "); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// TestTheRealGraphsAreWhole counts the tasks and expressions of each real graph. Merged they are one task and two expressions
// fewer: the graphs of deletion and provisioning both have the task move_to_bootstrap, of which the later one counts.
func TestTheRealGraphsAreWhole(t *testing.T) {
	language := newLanguage(t)
	tasks, expressions, ids := 0, 0, map[string]int{}
	for _, c := range []struct {
		dir                string
		tasks, expressions int
	}{{"deployment", 204, 192}, {"graphs/deletion", 5, 3}, {"graphs/net-verification", 14, 5}, {"graphs/provision", 10, 6}} {
		list := libraryGraph(t, language, c.dir)
		n := 0
		for _, task := range list {
			ids[task.ID]++
			for _, f := range task.Fields {
				n += f.Expressions
			}
		}
		if len(list) != c.tasks || n != c.expressions {
			t.Errorf("%s has %d tasks and %d expressions, want %d and %d", c.dir, len(list), n, c.tasks, c.expressions)
		}
		tasks, expressions = tasks+len(list), expressions+n
	}
	if tasks != 233 || expressions != 206 || len(ids) != 232 || ids["move_to_bootstrap"] != 2 {
		t.Errorf("%d tasks, %d expressions, %d ids", tasks, expressions, len(ids))
	}
}
