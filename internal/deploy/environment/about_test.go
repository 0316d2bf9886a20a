package environment_test

import (
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/deploy/environment"
	"github.com/drover-project/drover/internal/deploy/expression"
	"github.com/drover-project/drover/internal/deploy/plan"
	"github.com/drover-project/drover/internal/deploy/state"
)

// TestWhatExpressionsAreToldOfAnEnvironment: all nodes in order, and the environment, for who asks by name; the state as a whole is without them, and what
// it has of these names stays what it is.
func TestWhatExpressionsAreToldOfAnEnvironment(t *testing.T) {
	const nodes = `"10": {uid: "10", roles: [db]}, "2": {roles: [web, db], ip: 10.0.0.2}, "3": {role: own, uid: three}, master: {uid: master}`
	for _, c := range []struct{ common, expression, want string }{
		{"{a: 1}", "$.nodes.uid", `["2","three","10"]`},
		{"{a: 1}", "$.nodes[0]", `{"ip":"10.0.0.2","role":"web","roles":["web","db"],"uid":"2"}`},
		{"{a: 1}", "$.nodes.where($.get(role) = own).uid", `["three"]`},
		{"{a: 1}", "$.nodes.where(db in $.roles).uid", `["2","10"]`},
		{"{a: 1}", "$common.nodes.len()", `3`},
		{"{a: 1}", "$.environment", `{"name":"e","status":"operational"}`},
		{"{a: 1}", "$.keys().orderBy($)", `["a","ip","roles"]`},
		{"{a: 1}", "$.toJson()", `"{\"a\": 1, \"ip\": \"10.0.0.2\", \"roles\": [\"web\", \"db\"]}"`},
		{"{a: 1}", "$.containsKey(nodes)", `true`},
		{"{nodes: mine}", "$.nodes", `"mine"`},
		{"{environment: {x: 1}}", "$.environment", `{"x":1}`},
		{"{environment: {x: 1}}", "$.nodes.len()", `3`},
		{"{a: 1}", "$.get(nothing)", `null`},
	} {
		space := state.NewSpace()
		e, err := environment.Read(space, "e", []byte("{name: e, common: "+c.common+", nodes: {"+nodes+"}}"))
		if err != nil {
			t.Fatal(err)
		}
		common, node := e.Common.Beside(e.About(environment.Operational)), e.Parts["2"]
		language, err := expression.NewLanguage()
		if err != nil {
			t.Fatal(err)
		}
		x, err := language.Compile(c.expression)
		if err != nil {
			t.Fatal(err)
		}
		evaluator, err := language.Evaluator(space)
		if err != nil {
			t.Fatal(err)
		}
		got, err := evaluator.Eval(t.Context(), x, expression.Surroundings{New: space.View(common, node), Node: space.View(nil, node),
			Common: space.View(common, nil), Old: space.View(nil, nil)})
		if err != nil {
			t.Errorf("%s in %s: %v", c.expression, c.common, err)
			continue
		}
		if text := strings.TrimSpace(plan.Canonical(got.Value)); text != c.want {
			t.Errorf("%s in %s is %s, want %s", c.expression, c.common, text, c.want)
		}
	}
}

// TestAnEnvironmentOfWhichNoStatusIsKnown has none: what compares it is undefined there, and not equal to anything.
func TestAnEnvironmentOfWhichNoStatusIsKnown(t *testing.T) {
	v, _ := environment.About("e", "", nil)("environment")
	if text := plan.Canonical(v); text != `{"name":"e"}` {
		t.Errorf("it is %s", text)
	}
}
