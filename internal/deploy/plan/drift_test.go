package plan_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/deploy/plan"
	"github.com/drover-project/drover/internal/deploy/report"
	"github.com/drover-project/drover/internal/deploy/state"
)

// TestWhatIsAskedOfMachines: of tasks that do not run, those are asked about, and run when something differs, that would run in a first deployment.
func TestWhatIsAskedOfMachines(t *testing.T) {
	const tasks = `
- {id: always, type: shell, roles: [compute], check: x}
- {id: checked, type: shell, roles: [compute], condition: {yaql_exp: changed($.kind)}, parameters: {a: {yaql_exp: $.kind}}, check: {cmd: {yaql_exp: $.kind}}}
- {id: plain, type: puppet, roles: [compute], condition: {yaql_exp: changed($.kind)}}
- {id: unwanted, type: shell, roles: [compute], condition: {yaql_exp: changed($.kind) and not $.debug}, check: x}
- {id: never, type: shell, roles: [compute], condition: {yaql_exp: 'false'}, check: x}
- {id: literal, type: shell, roles: [compute], condition: false, check: x}
- {id: old, type: shell, roles: [compute], condition: 'cluster:id == 6', check: x}
- {id: fresh, type: shell, roles: [compute], condition: {yaql_exp: changed($.uid)}, check: x}
- {id: stage, type: stage, check: x}
`
	done := func(in *plan.Input) {
		in.OldCommon = in.Common
		in.Old = func(task, uid string) (common, node *state.Part, ok bool) {
			return in.Common, in.Parts[uid], task != "fresh"
		}
	}
	for _, c := range []struct {
		name   string
		change func(*plan.Input)
		want   string
	}{
		{"nobody asks", func(*plan.Input) {}, "always: unconditional; fresh: $.uid was never there"},
		{"somebody asks", func(in *plan.Input) { in.Asks = true },
			`always: unconditional; checked? shell {"a":"shell","cwd":"/"} {"cmd":"shell"}; fresh: $.uid was never there; plain? puppet {"cwd":"/"} null`},
		{"those that are selected", func(in *plan.Input) { in.Asks, in.Only = true, []string{"plain"} }, `plain? puppet {"cwd":"/"} null`},
		{"all differ", func(in *plan.Input) {
			in.Differs = func(task, uid string) (string, bool) { return task + " of " + uid, true }
		},
			"always: unconditional; checked: differs on the machine: checked of 3; fresh: $.uid was never there; plain: differs on the machine: plain of 3"},
		{"one differs", func(in *plan.Input) { in.Differs = func(task, _ string) (string, bool) { return "", task == "plain" } },
			"always: unconditional; fresh: $.uid was never there; plain: differs on the machine: "},
	} {
		p, err := buildText(t, tasks, small, func(in *plan.Input) { done(in); c.change(in) })
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		why := report.Why(p, nil)
		for i := range p.Steps {
			s := &p.Steps[i]
			switch q := s.Question; {
			case s.Run && q != nil:
				t.Errorf("%s: it is asked about %s, which runs", c.name, s.ID())
			case s.Run:
				got = append(got, s.ID()+": "+why(int32(i)))
			case q != nil:
				got = append(got, s.ID()+"? "+q.Type+" "+plan.Canonical(q.Parameters)+" "+plan.Canonical(q.Check))
			}
		}
		slices.Sort(got)
		if got := strings.Join(got, "; "); got != c.want {
			t.Errorf("%s:\n%s, want\n%s", c.name, got, c.want)
		}
	}
}
