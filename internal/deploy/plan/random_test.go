package plan_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/deploy/expression"
	"github.com/drover-project/drover/internal/deploy/graph"
	"github.com/drover-project/drover/internal/deploy/plan"
	"github.com/drover-project/drover/internal/deploy/state"
	"github.com/drover-project/drover/internal/testkit"
	"github.com/drover-project/drover/yaql"
)

// randomCase is a random graph and what the reference made of it; testdata/conformance/README.md tells how.
type randomCase struct {
	ID       string            `json:"id"`
	Tasks    []json.RawMessage `json:"tasks"`
	Nodes    []taggedNode      `json:"nodes"`
	New      json.RawMessage   `json:"new"`
	States   []json.RawMessage `json:"states"`
	Old      map[string]int    `json:"old"`
	Settings json.RawMessage   `json:"settings"`
	Expect   outcome           `json:"expect"`
	Adjusted *outcome          `json:"adjusted"`
	Because  []string          `json:"because"`
	text     string
}

type taggedNode plan.Node

func (n *taggedNode) UnmarshalJSON(text []byte) error {
	return json.Unmarshal(text, &[]any{&n.UID, &n.Tags})
}

// outcome is a plan, or the classes of all errors that a graph has.
type outcome struct {
	Plan   map[string]json.RawMessage `json:"plan"` // by NODE/TASK, as canonical JSON
	Groups json.RawMessage            `json:"groups"`
	Errors []string                   `json:"errors"`
}

// adjustments are the rows of "Where we differ from Fuel" in docs/deployments.md for which the reference was run once more, told
// to do as we do. Each has what must be in a graph for it to make a difference.
var adjustments = map[string]*regexp.Regexp{
	"computed": regexp.MustCompile(`"(type|version|roles?|tags|groups|tasks|fault_tolerance)":\{"yaql_exp"`),
	"false":    regexp.MustCompile(`"condition":false`),
	"lists":    regexp.MustCompile(`"(requires|required_for)":\{"yaql_exp"`),
	"order":    regexp.MustCompile(`"yaql_exp":"[^"]*(toJson|values|keys|items|toSet)\(`),
	"stop":     regexp.MustCompile(`(first|last|single)\(`),
	"texts":    regexp.MustCompile(`\{(SETTINGS\.|[A-Z_]+!r)`),
	"maps":     regexp.MustCompile(`"yaql_exp":"[^"]*(added|deleted)\(`),
}

// TestFuelRandomConformance plans random graphs and compares which tasks run, which are skipped, every parameter, fail_on_error,
// every edge and the groups with what the reference makes of them, or the errors.
func TestFuelRandomConformance(t *testing.T) {
	language := newLanguage(t)
	passed, total, classes := 0, 0, map[string]int{}
	for _, c := range randomCases(t) {
		total++
		class, wrong := c.compare(t, language)
		if wrong != "" {
			t.Errorf("%s: %s", c.ID, wrong)
			continue
		}
		passed++
		classes[class]++
	}
	for _, class := range slices.Sorted(maps.Keys(classes)) {
		t.Logf("fuel-random.jsonl.gz: %d %s", classes[class], class)
	}
	t.Logf("fuel-random.jsonl.gz: %d of %d cases passed", passed, total)
	if total < 600 && os.Getenv("DROVER_CONFORMANCE") == "" {
		t.Errorf("there are only %d cases", total)
	}
}

func randomCases(t *testing.T) []*randomCase {
	t.Helper()
	const name = "fuel-random.jsonl.gz"
	if _, err := os.Stat(filepath.Join(testkit.Conformance(t), name)); err != nil {
		testkit.Missingf(t, "the conformance data have no random graphs: %v", err)
	}
	text, err := gzip.NewReader(bytes.NewReader(testkit.ReadConformance(t, name)))
	if err != nil {
		t.Fatal(err)
	}
	var out []*randomCase
	lines := bufio.NewScanner(text)
	lines.Buffer(nil, 1<<22)
	for lines.Scan() {
		c := &randomCase{}
		if err := json.Unmarshal(lines.Bytes(), c); err != nil {
			t.Fatal(err)
		}
		for _, task := range c.Tasks {
			c.text += string(task)
		}
		out = append(out, c)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}

// compare plans the graph, and tells in what way the outcome is that of the reference, or what is wrong with it.
func (c *randomCase) compare(t *testing.T, language *expression.Language) (class, wrong string) {
	t.Helper()
	want, class := &c.Expect, "plans and errors the same"
	if c.Adjusted != nil {
		if len(c.Because) == 0 {
			return "", "the reference differs from itself, and nothing says why"
		}
		for _, name := range c.Because {
			if adjustments[name] == nil || !adjustments[name].MatchString(c.text) {
				return "", fmt.Sprintf("nothing in the graph is of the kind %q", name)
			}
		}
		want, class = c.Adjusted, "differ by "+strings.Join(c.Because, ", ")
	}
	tasks := c.Tasks
	p, err := c.plan(t, language, tasks)
	for err != nil && strings.HasPrefix(expression.ErrorClass(err), "Yaql") && !slices.Contains(want.Errors, expression.ErrorClass(err)) {
		at := c.unplaced(language, tasks, want)
		if at < 0 {
			return "", fmt.Sprintf("the error %v is not the reference's", err)
		}
		tasks, class = slices.Delete(slices.Clone(tasks), at, at+1), "with a syntax error in a task that no node has"
		p, err = c.plan(t, language, tasks)
	}
	switch {
	case err == nil && want.Errors == nil:
		return c.samePlan(p, want, class)
	case err == nil:
		return "", fmt.Sprintf("no error, want one of %v", want.Errors)
	case want.Errors == nil:
		return "", fmt.Sprintf("the error %v, which the reference does not have", err)
	case expression.ErrorClass(err) == want.Errors[0]:
		return class, ""
	case slices.Contains(want.Errors, expression.ErrorClass(err)):
		return "with another of several errors", ""
	}
	return "", fmt.Sprintf("the error %v of class %q, want one of %v", err, expression.ErrorClass(err), want.Errors)
}

// unplaced returns the index of a task that cannot be read and is on no node in the reference's plan.
func (c *randomCase) unplaced(language *expression.Language, tasks []json.RawMessage, want *outcome) int {
	return slices.IndexFunc(tasks, func(text json.RawMessage) bool {
		var task struct{ ID string }
		if _, err := graph.Read(language, c.ID, slices.Concat([]byte("["), text, []byte("]"))); err == nil {
			return false
		}
		if json.Unmarshal(text, &task) != nil {
			return false
		}
		for step := range want.Plan {
			if strings.HasSuffix(step, "/"+task.ID) {
				return false
			}
		}
		return true
	})
}

func (c *randomCase) plan(t *testing.T, language *expression.Language, tasks []json.RawMessage) (*plan.Plan, error) {
	t.Helper()
	g, err := graph.Read(language, c.ID, slices.Concat([]byte("["), bytes.Join(rawTexts(tasks), []byte(",")), []byte("]")))
	if err != nil {
		return nil, err
	}
	in := plan.Input{Tasks: g.Tasks, Space: state.NewSpace(), Settings: decode(t, c.Settings)}
	in.Common, in.Parts = parts(in.Space, decode(t, c.New))
	for _, n := range c.Nodes {
		in.Nodes = append(in.Nodes, plan.Node(n))
	}
	if c.Old != nil {
		master := yaql.NewDict(2)
		_ = master.Set("uid", plan.Master)
		_ = master.Set("roles", []any{plan.Master})
		common, nodes := make([]*state.Part, len(c.States)), make([]map[string]*state.Part, len(c.States))
		for i, s := range c.States {
			common[i], nodes[i] = parts(in.Space, decode(t, s))
			nodes[i][plan.Master] = in.Space.NewPart(master)
		}
		in.Old = func(task, uid string) (*state.Part, *state.Part, bool) {
			i, ran := c.Old[task]
			if !ran {
				return nil, nil, false
			}
			return common[i], nodes[i][uid], nodes[i][uid] != nil
		}
	}
	return plan.Build(t.Context(), language, in)
}

func rawTexts(texts []json.RawMessage) [][]byte {
	out := make([][]byte, len(texts))
	for i, t := range texts {
		out[i] = t
	}
	return out
}

// samePlan compares a plan with that of the reference, which looks for no circles.
func (c *randomCase) samePlan(p *plan.Plan, want *outcome, class string) (string, string) {
	got := map[string]string{}
	walker := p.Walker()
	for i := range p.Steps {
		got[p.Name(int32(i))] = stepText(p, walker, int32(i))
	}
	for name, text := range want.Plan {
		if got[name] != string(text) {
			return "", fmt.Sprintf("%s is\n  %s\nwant\n  %s", name, got[name], text)
		}
		delete(got, name)
	}
	if len(got) > 0 {
		return "", fmt.Sprintf("%v are on nodes, which they are not for the reference", slices.Sorted(maps.Keys(got)))
	}
	if groups := groupsText(p); groups != string(want.Groups) {
		return "", fmt.Sprintf("the groups are %s, want %s", groups, want.Groups)
	}
	_, err := p.Order()
	switch circle := circular(want); {
	case err == nil && !circle:
		return class, ""
	case err != nil && circle && strings.Contains(err.Error(), "in a circle"):
		return "with a circle", ""
	}
	return "", fmt.Sprintf("the order: %v; that there is a circle is %t", err, circular(want))
}

func stepText(p *plan.Plan, walker *plan.Walker, i int32) string {
	s := &p.Steps[i]
	m := map[string]any{"type": s.Type}
	if s.Run {
		m["parameters"] = s.Parameters
		if s.FailOnError != true {
			m["fail_on_error"] = s.FailOnError
		}
	}
	for name, required := range map[string]bool{"requires": false, "required_for": true} {
		var names []string
		walker.Edges(i, required, func(other int32) { names = append(names, p.Name(other)) })
		if names != nil {
			slices.Sort(names)
			m[name] = anys(names)
		}
	}
	return plan.Canonical(m)
}

func anys(texts []string) []any {
	out := make([]any, len(texts))
	for i, x := range texts {
		out[i] = x
	}
	return out
}

func groupsText(p *plan.Plan) string {
	groups := []any{}
	for _, g := range p.Groups {
		groups = append(groups, map[string]any{"name": g.Name, "node_ids": anys(slices.Sorted(slices.Values(g.Nodes))), "fault_tolerance": int64(g.Tolerance)})
	}
	return plan.Canonical(groups)
}

// circular tells whether tasks of a plan of the reference wait for one another in a circle: whether some are left when all are
// taken away that wait for none that is left.
func circular(o *outcome) bool {
	waits := map[string]map[string]bool{}
	for name := range o.Plan {
		waits[name] = map[string]bool{}
	}
	for name, text := range o.Plan {
		var edges struct {
			Requires    []string `json:"requires"`
			RequiredFor []string `json:"required_for"`
		}
		_ = json.Unmarshal(text, &edges)
		for _, other := range edges.Requires {
			waits[name][other] = true
		}
		for _, other := range edges.RequiredFor {
			waits[other][name] = true
		}
	}
	for gone := true; gone; {
		gone = false
		for name, others := range waits {
			for other := range others {
				if _, left := waits[other]; !left {
					delete(others, other)
				}
			}
			if len(others) == 0 {
				delete(waits, name)
				gone = true
			}
		}
	}
	return len(waits) > 0
}
