package plan_test

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/deploy/document"
	"github.com/drover-project/drover/internal/deploy/expression"
	"github.com/drover-project/drover/internal/deploy/graph"
	"github.com/drover-project/drover/internal/deploy/plan"
	"github.com/drover-project/drover/internal/deploy/state"
	"github.com/drover-project/drover/internal/testkit"
	"github.com/drover-project/drover/yaql"
)

type realCase struct {
	ID     string          `json:"id"`
	Expr   string          `json:"expr"`
	New    json.RawMessage `json:"new"`
	Old    json.RawMessage `json:"old"`
	As     string          `json:"as"`
	Expect struct {
		Value  json.RawMessage `json:"value"`
		Error  string          `json:"error"`
		SHA256 string          `json:"sha256"`
	} `json:"expect"`
}

// recorded are the states that the cases name, read once.
type recorded struct {
	space   *state.Space
	patches map[string]json.RawMessage
	files   map[string]any
	split   map[string][2]*state.Part
}

func (r *recorded) file(t *testing.T, name string) any {
	t.Helper()
	if v, ok := r.files[name]; ok {
		return v
	}
	text, err := os.ReadFile(testkit.FuelNodes(t, name))
	if err != nil {
		t.Fatal(err)
	}
	n, _, err := document.Parse(name, text)
	if err != nil {
		t.Fatal(err)
	}
	r.files[name] = document.Sorted(n.Value())
	return r.files[name]
}

// state returns the common and the node part of a state that a case names.
func (r *recorded) state(t *testing.T, ref json.RawMessage, as string) [2]*state.Part {
	t.Helper()
	key := string(ref) + as
	if s, ok := r.split[key]; ok {
		return s
	}
	var name string
	var whole any
	if json.Unmarshal(ref, &name) == nil {
		whole = r.file(t, name)
	} else {
		var patched struct {
			File  string          `json:"file"`
			Patch json.RawMessage `json:"patch"`
		}
		if err := json.Unmarshal(ref, &patched); err != nil {
			t.Fatal(err)
		}
		if json.Unmarshal(patched.Patch, &name) == nil {
			patched.Patch = r.patches[name]
		}
		whole = r.file(t, patched.File)
		if patched.Patch != nil {
			whole = document.Sorted(applyPatch(t, whole, patched.Patch))
		}
	}
	common, node := splitState(whole.(*yaql.Dict))
	if as == plan.Master {
		node = yaql.NewDict(2)
		_ = node.Set("roles", []any{plan.Master})
		_ = node.Set("uid", plan.Master)
	}
	s := [2]*state.Part{r.space.NewPart(common), r.space.NewPart(node)}
	r.split[key] = s
	return s
}

// splitState cuts a recorded state into what is common and what is the node's own.
func splitState(whole *yaql.Dict) (common, node *yaql.Dict) {
	own := strings.Fields("uid fqdn user_node_name status online ip roles deleted fail_if_error vms_conf network_scheme node_volumes " +
		"test_vm_image configuration configuration_options cpu_pinning hugepages dpdk")
	common, node = yaql.NewDict(0), yaql.NewDict(0)
	whole.Range(func(k, v any) bool {
		key := k.(string)
		switch {
		case slices.Contains(own, key) || strings.HasSuffix(key, "_network_range"):
			_ = node.Set(k, v)
		case key == "glance":
			rest, mine := yaql.NewDict(0), yaql.NewDict(0)
			v.(*yaql.Dict).Range(func(k, v any) bool {
				if k == "image_cache_max_size" {
					_ = mine.Set(k, v)
				} else {
					_ = rest.Set(k, v)
				}
				return true
			})
			_ = common.Set(k, rest)
			if mine.Len() > 0 {
				_ = node.Set(k, mine)
			}
		default:
			_ = common.Set(k, v)
		}
		return true
	})
	return common, node
}

// applyPatch applies a JSON Patch of add, remove, replace and copy.
func applyPatch(t *testing.T, whole any, patch json.RawMessage) any {
	t.Helper()
	var ops []struct{ Op, Path, From string }
	var values []struct{ Value json.RawMessage }
	if json.Unmarshal(patch, &ops) != nil || json.Unmarshal(patch, &values) != nil {
		t.Fatalf("the patch %s cannot be read", patch)
	}
	for i, op := range ops {
		var v any
		if op.Op == "add" || op.Op == "replace" {
			v = decode(t, values[i].Value)
		}
		if op.Op == "copy" {
			v = whole
			for _, step := range steps(op.From) {
				v = child(t, v, step)
			}
		}
		whole = patched(t, whole, steps(op.Path), op.Op, v)
	}
	return whole
}

func steps(pointer string) []string {
	parts := strings.Split(pointer, "/")[1:]
	for i, p := range parts {
		parts[i] = strings.NewReplacer("~1", "/", "~0", "~").Replace(p)
	}
	return parts
}

func child(t *testing.T, v any, step string) any {
	t.Helper()
	switch x := v.(type) {
	case *yaql.Dict:
		c, _ := x.Get(step)
		return c
	case []any:
		i, err := strconv.Atoi(step)
		if err != nil {
			t.Fatal(err)
		}
		return x[i]
	}
	t.Fatalf("there is no %s in %v", step, v)
	return nil
}

// patched returns v with a change at a path, sharing what does not change.
func patched(t *testing.T, v any, path []string, op string, value any) any {
	t.Helper()
	last := len(path) == 1
	switch x := v.(type) {
	case *yaql.Dict:
		out := yaql.NewDict(x.Len() + 1)
		found := false
		x.Range(func(k, e any) bool {
			if k == path[0] {
				found = true
				switch {
				case last && op == "remove":
					return true
				case last:
					e = value
				default:
					e = patched(t, e, path[1:], op, value)
				}
			}
			_ = out.Set(k, e)
			return true
		})
		if !found {
			if !last {
				value = patched(t, yaql.NewDict(0), path[1:], op, value)
			}
			if op != "remove" {
				_ = out.Set(path[0], value)
			}
		}
		return out
	case []any:
		out := slices.Clone(x)
		if path[0] == "-" {
			return append(out, value)
		}
		i, err := strconv.Atoi(path[0])
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case !last:
			out[i] = patched(t, out[i], path[1:], op, value)
		case op == "remove":
			return slices.Delete(out, i, i+1)
		case op == "replace":
			out[i] = value
		default:
			return slices.Insert(out, i, value)
		}
		return out
	}
	t.Fatalf("there is no %v in %v", path, v)
	return nil
}

// TestFuelRealConformance evaluates the expressions of the real graphs on the real states. One evaluator serves all
// cases, as it serves all nodes of a plan.
func TestFuelRealConformance(t *testing.T) {
	language := newLanguage(t)
	r := &recorded{space: state.NewSpace(), files: map[string]any{}, split: map[string][2]*state.Part{}}
	text, err := os.ReadFile(testkit.FuelNodes(t, "patches.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &r.patches); err != nil {
		t.Fatal(err)
	}
	e, err := language.Evaluator(r.space)
	if err != nil {
		t.Fatal(err)
	}
	compiled := map[string]*expression.Expression{}
	passed, total := 0, 0
	lines := bufio.NewScanner(bytes.NewReader(testkit.ReadConformance(t, "fuel-real.jsonl")))
	lines.Buffer(nil, 1<<22)
	for lines.Scan() {
		var c realCase
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		total++
		x := compiled[c.Expr]
		if x == nil {
			if x, err = language.Compile(c.Expr); err != nil {
				t.Fatal(err)
			}
			compiled[c.Expr] = x
		}
		if wrong := runReal(t, r, e, x, c); wrong != "" {
			t.Errorf("%s: %s", c.ID, wrong)
			continue
		}
		passed++
	}
	t.Logf("fuel-real.jsonl: %d of %d cases passed", passed, total)
	if total < 1000 {
		t.Errorf("there are only %d cases", total)
	}
}

func runReal(t *testing.T, r *recorded, e *expression.Evaluator, x *expression.Expression, c realCase) string {
	t.Helper()
	now := r.state(t, c.New, c.As)
	in := expression.Surroundings{New: r.space.View(now[0], now[1]), Node: r.space.View(nil, now[1]), Common: r.space.View(now[0], nil),
		Old: r.space.View(nil, nil)}
	if string(c.Old) != "null" && c.Old != nil {
		old := r.state(t, c.Old, c.As)
		in.Old = r.space.View(old[0], old[1])
	}
	res, err := e.Eval(t.Context(), x, in)
	got := canonical(res.Value)
	if c.Expect.SHA256 != "" && err == nil {
		sum := sha256.Sum256([]byte(got))
		if hex.EncodeToString(sum[:]) != c.Expect.SHA256 {
			return fmt.Sprintf("%s: another result: %.500s", c.Expr, got)
		}
		return ""
	}
	if wrong := differs(got, err, c.Expect.Error, func() string { return canonical(decode(t, c.Expect.Value)) }); wrong != "" {
		return c.Expr + ": " + wrong
	}
	return ""
}

// wantedPlan is a plan as the reference made it.
type wantedPlan struct {
	Environment string  `json:"environment"`
	Old         *string `json:"old"`
	TasksFile   string  `json:"tasks_file"`
	Nodes       map[string]struct{ Run, Skipped []string }
	Requires    json.RawMessage   `json:"requires"`
	RequiredFor json.RawMessage   `json:"required_for"`
	Parameters  map[string]string `json:"parameters"`
	Any         []string          `json:"any"`
	Groups      json.RawMessage   `json:"fault_tolerance_groups"`
}

// TestFuelRealPlanConformance computes the plans of whole environments.
func TestFuelRealPlanConformance(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(testkit.Conformance(t), "fuel-real-plan-*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no plans: %v", err)
	}
	language := newLanguage(t)
	for _, file := range files {
		var want struct {
			Tasks int                   `json:"tasks"`
			Plans map[string]wantedPlan `json:"plans"`
		}
		testkit.DecodeConformance(t, &want, filepath.Base(file))
		passed := 0
		for name, w := range want.Plans {
			same := func(raw, first json.RawMessage) json.RawMessage {
				if string(raw) == `"first"` {
					return first
				}
				return raw
			}
			first := want.Plans["first"]
			w.Requires, w.RequiredFor = same(w.Requires, first.Requires), same(w.RequiredFor, first.RequiredFor)
			w.Groups = same(w.Groups, first.Groups)
			if t.Run(filepath.Base(file)+"/"+name, func(t *testing.T) {
				tasks := libraryGraph(t, language, "deployment")
				if w.TasksFile != "" {
					tasks = readGraph(t, language, testkit.FuelNodes(t, w.TasksFile))
				}
				if len(tasks) != want.Tasks && w.TasksFile == "" {
					t.Errorf("the graph has %d tasks, want %d", len(tasks), want.Tasks)
				}
				comparePlan(t, realPlan(t, language, tasks, w.Environment, w.Old), w)
			}) {
				passed++
			}
		}
		t.Logf("%s: %d of %d plans agree", filepath.Base(file), passed, len(want.Plans))
	}
}

func readGraph(t testing.TB, language *expression.Language, file string) []*graph.Task {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	g, err := graph.Read(language, file, text)
	if err != nil {
		t.Fatal(err)
	}
	return g.Tasks
}

// libraryGraph reads all graphs below a directory of the library.
func libraryGraph(t testing.TB, language *expression.Language, dir string) []*graph.Task {
	t.Helper()
	var tasks []*graph.Task
	err := filepath.WalkDir(testkit.FuelLibrary(t, dir), func(path string, d os.DirEntry, err error) error {
		if err == nil && d.Name() == "tasks.yaml" {
			tasks = append(tasks, readGraph(t, language, path)...)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return tasks
}

// environment reads a file of an environment.
func environment(t testing.TB, space *state.Space, name string) (common *state.Part, nodes map[string]*state.Part, resolved []plan.Node) {
	t.Helper()
	text, err := os.ReadFile(testkit.FuelNodes(t, name))
	if err != nil {
		t.Fatal(err)
	}
	n, _, err := document.Parse(name, text)
	if err != nil {
		t.Fatal(err)
	}
	common, nodes = parts(space, document.Sorted(n.Value()))
	return common, nodes, resolvable(nodes)
}

// resolvable are the nodes of a state as roles are resolved to them.
func resolvable(nodes map[string]*state.Part) []plan.Node {
	var out []plan.Node
	for uid, part := range nodes {
		if uid == plan.Master {
			continue
		}
		roles, _ := part.Get("roles")
		n := plan.Node{UID: uid}
		for _, role := range roles.(*yaql.List).Items {
			n.Tags = append(n.Tags, role.(string))
		}
		out = append(out, n)
	}
	return out
}

func realPlan(t testing.TB, language *expression.Language, tasks []*graph.Task, env string, old *string) *plan.Plan {
	t.Helper()
	in := plan.Input{Space: state.NewSpace(), Tasks: tasks}
	in.Common, in.Parts, in.Nodes = environment(t, in.Space, env)
	if old != nil {
		common, nodes, _ := environment(t, in.Space, *old)
		in.OldCommon = common
		in.Old = func(_, uid string) (*state.Part, *state.Part, bool) { return common, nodes[uid], true }
	}
	p, err := plan.Build(t.Context(), language, in)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func comparePlan(t *testing.T, p *plan.Plan, w wantedPlan) {
	t.Helper()
	var got, want []string
	parameters := map[string]string{}
	edges := map[bool][]string{}
	walker := p.Walker()
	for i := range p.Steps {
		s := &p.Steps[i]
		name := p.Name(int32(i))
		got = append(got, fmt.Sprint(name, " ", s.Run))
		if s.Run {
			parameters[name] = plan.Digest(s.Parameters)
		}
		for _, required := range []bool{false, true} {
			walker.Edges(int32(i), required, func(other int32) { edges[required] = append(edges[required], name+" -> "+p.Name(other)) })
		}
	}
	for uid, n := range w.Nodes {
		for _, id := range n.Run {
			want = append(want, uid+"/"+id+" true")
		}
		for _, id := range n.Skipped {
			want = append(want, uid+"/"+id+" false")
		}
	}
	compareLists(t, "steps", got, want)
	compareLists(t, "requires", edges[false], texts(t, w.Requires))
	compareLists(t, "required_for", edges[true], texts(t, w.RequiredFor))
	for name, sum := range w.Parameters {
		if parameters[name] != sum {
			t.Errorf("parameters of %s have the digest %q, want %q", name, parameters[name], sum)
		}
	}
	if len(parameters) != len(w.Parameters) {
		t.Errorf("%d steps have parameters, want %d", len(parameters), len(w.Parameters))
	}
	var groups []string
	for _, g := range p.Groups {
		groups = append(groups, fmt.Sprint(g.Name, g.Nodes, g.Tolerance))
	}
	var wantGroups []string
	for _, g := range decode(t, w.Groups).([]any) {
		d := g.(*yaql.Dict)
		name, _ := d.Get("name")
		ids, _ := d.Get("node_ids")
		n, _ := d.Get("fault_tolerance")
		wantGroups = append(wantGroups, fmt.Sprint(name, ids, n))
	}
	compareLists(t, "groups", groups, wantGroups)
}

func texts(t *testing.T, raw json.RawMessage) []string {
	t.Helper()
	var out []string
	if err := json.Unmarshal(raw, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// compareLists compares lists without regard to order.
func compareLists(t *testing.T, what string, got, want []string) {
	t.Helper()
	count := map[string]int{}
	for _, x := range want {
		count[x]++
	}
	for _, x := range got {
		count[x]--
	}
	shown := 0
	for x, n := range count {
		if n != 0 && shown < 10 {
			shown++
			t.Errorf("%s: %s is there %+d times more than it should be", what, x, -n)
		}
	}
}
