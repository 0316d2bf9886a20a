package rapi_test

import (
	"html"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/audit"
	"github.com/drover-project/drover/internal/deploy/course"
)

const (
	deployGraph = `
- id: note
  type: upload_file
  version: 2.1.0
  role: '*'
  condition: {yaql_exp: changed($.text)}
  parameters: {path: {yaql_exp: $.dir + "/note"}, data: {yaql_exp: $.text}}
- id: check
  type: shell
  version: 2.1.0
  role: [web]
  requires: [note]
  parameters: {cmd: {yaql_exp: '"test -e " + $.dir + "/repaired"'}}
`
	deployEnvironment = `
hosts: {"1": node1.gntpeer.example}
common: {text: hello, dir: DIR}
nodes: {"1": {uid: "1", roles: [web]}}
`
)

// named is a file as the resources take it.
func named(path, text string) map[string]string { return map[string]string{"path": path, "text": text} }

// deployRig is a rig with a task graph and an environment.
func deployRig(t *testing.T) (r *rig, dir string) {
	t.Helper()
	r, dir = newRig(t, rigOptions{}), t.TempDir()
	if a := r.do("PUT", "/2/task-graphs/web", map[string]any{"files": []any{named("tasks.yaml", deployGraph)}}); a.status != http.StatusOK {
		t.Fatal(a.text)
	}
	environment := strings.ReplaceAll(deployEnvironment, "DIR", dir)
	if a := r.do("PUT", "/2/environments/prod", map[string]any{"file": named("env.yaml", environment), "graphs": []string{"web"}}); a.status != http.StatusOK {
		t.Fatal(a.text)
	}
	return r, dir
}

// deployment waits until a deployment is over, and returns it.
func (r *rig) deployment(path string) (p struct {
	Status, Why string
	States      map[string]int
}) {
	r.Helper()
	for {
		changed := r.shown.Changed()
		r.do("GET", path, nil).decode(r, &p)
		if p.Status != "running" && p.Status != "stopping" {
			return p
		}
		select {
		case <-changed:
		case <-r.Context().Done():
			r.Fatalf("the deployment never ended: %+v", p)
		}
	}
}

func TestDeploymentOverRAPI(t *testing.T) {
	r, dir := deployRig(t)
	var made struct {
		Deployment struct {
			ID, Runs, Steps int
			Status          string
		}
		Warnings []string
	}
	r.do("POST", "/2/deployments", map[string]any{"environment": "prod"}).decode(t, &made)
	if d := made.Deployment; d.ID != 1 || d.Runs != 2 || d.Steps != 2 || d.Status != "planned" {
		t.Fatalf("the plan is %+v", made)
	}
	if a := r.do("PUT", "/2/deployments/1/begin", nil); a.status != http.StatusOK {
		t.Fatal(a.text)
	}
	if p := r.deployment("/2/deployments/1"); p.Status != "error" || p.States["ready"] != 1 || p.States["error"] != 1 {
		t.Fatalf("%+v", p)
	}
	var tasks []struct{ Task, Node, State, Why, Error string }
	r.do("GET", "/2/deployments/1/tasks", nil).decode(t, &tasks)
	if len(tasks) != 2 || tasks[0].State != "ready" || tasks[0].Why != "$.text was never there" || tasks[1].State != "error" {
		t.Errorf("the tasks are %+v", tasks)
	}
	var explained struct {
		Parameters struct{ Cmd string }
		Requires   []string
		State      string
	}
	if r.do("GET", "/2/deployments/1/tasks/1/check", nil).decode(t, &explained); explained.State != "error" || strings.Join(explained.Requires, " ") != "1/note" ||
		explained.Parameters.Cmd != "test -e "+dir+"/repaired" {
		t.Errorf("explained is %+v", explained)
	}
	var outline course.Outline
	if r.do("GET", "/2/deployments/1/outline", nil).decode(t, &outline); len(outline.Tasks) != 2 || len(outline.After) != 1 {
		t.Errorf("the outline is %+v", outline)
	}
	if a := r.do("GET", "/2/deployments/9/outline", nil); a.status != http.StatusNotFound {
		t.Errorf("of a deployment that there is not: %d", a.status)
	}
	if a := r.do("GET", "/2/deployments/1/tasks/1/gone", nil); a.status != http.StatusNotFound {
		t.Errorf("a task that is not there: %d %s", a.status, a.text)
	}
	r.check(os.WriteFile(filepath.Join(dir, "repaired"), nil, 0o600))
	if a := r.do("PUT", "/2/deployments/1/retry", nil); a.status != http.StatusOK {
		t.Fatal(a.text)
	}
	if p := r.deployment("/2/deployments/1"); p.Status != "ready" || p.States["ready"] != 2 {
		t.Fatalf("retried: %+v", p)
	}
	var list []struct{ ID int }
	if r.do("GET", "/2/deployments", nil).decode(t, &list); len(list) != 1 {
		t.Errorf("the deployments are %v", list)
	}
	for _, path := range []string{"/2/deployments/1/begin", "/2/deployments/1/stop", "/2/deployments/1/resume"} {
		if a := r.do("PUT", path, nil); a.status != http.StatusConflict {
			t.Errorf("%s of one that has ended: %d %s", path, a.status, a.text)
		}
	}
}

func TestEnvironmentsAndGraphsOverRAPI(t *testing.T) {
	r, dir := deployRig(t)
	var state struct {
		Name   string
		Graphs []string
		Common map[string]any
		Nodes  map[string]struct{ Roles []string }
		Hosts  map[string]string
	}
	read := func() {
		t.Helper()
		state.Nodes = nil
		r.do("GET", "/2/environments/prod", nil).decode(t, &state)
	}
	if read(); state.Name != "prod" || state.Common["dir"] != dir || len(state.Nodes) != 1 || state.Hosts["1"] != "node1.gntpeer.example" {
		t.Errorf("the environment is %+v", state)
	}
	if a := r.do("PUT", "/2/environments/prod/nodes/2", map[string]any{"file": named("node.yaml", "{uid: '2', roles: [db]}"), "host": "node1.gntpeer.example"}); a.status != http.StatusOK {
		t.Fatal(a.text)
	}
	if read(); len(state.Nodes) != 2 || state.Nodes["2"].Roles[0] != "db" {
		t.Errorf("with a node more it is %+v", state)
	}
	var graph struct {
		Files              []struct{ Path, Text string }
		Tasks, Expressions int
	}
	if r.do("GET", "/2/task-graphs/web", nil).decode(t, &graph); graph.Tasks != 2 || graph.Expressions != 4 || graph.Files[0].Text != deployGraph {
		t.Errorf("the graph is %+v", graph)
	}
	for _, path := range []string{"/2/environments", "/2/task-graphs"} {
		var list []struct{ Name string }
		if r.do("GET", path, nil).decode(t, &list); len(list) != 1 {
			t.Errorf("%s: %v", path, list)
		}
	}
	if a := r.do("DELETE", "/2/task-graphs/web", nil); a.status != http.StatusConflict || !strings.Contains(a.text, "the environment prod uses the task graph web") {
		t.Errorf("deleting a graph in use: %d %s", a.status, a.text)
	}
	for _, path := range []string{"/2/environments/prod/nodes/2", "/2/environments/prod", "/2/task-graphs/web"} {
		if a := r.do("DELETE", path+"?reason=old", nil); a.status != http.StatusOK {
			t.Errorf("DELETE %s: %d %s", path, a.status, a.text)
		}
		if a := r.do("DELETE", path, nil); a.status != http.StatusNotFound {
			t.Errorf("DELETE %s again: %d %s", path, a.status, a.text)
		}
	}
	var got []string
	for e, err := range r.queue.Events(t.Context()) {
		r.check(err)
		got = append(got, string(e.What)+" "+e.Object+" "+e.Why())
	}
	want := []string{string(audit.GraphPut) + " web ", string(audit.EnvironmentPut) + " prod ", string(audit.EnvironmentPut) + " prod ",
		string(audit.EnvironmentPut) + " prod old", string(audit.EnvironmentDelete) + " prod old", string(audit.GraphDelete) + " web old"}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("recorded is\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestBadDeployRequests sends what is refused: it is said why, with the place, and nothing of it is kept.
func TestBadDeployRequests(t *testing.T) {
	r, _ := deployRig(t)
	before := r.do("GET", "/2/environments/prod", nil).text + r.do("GET", "/2/task-graphs", nil).text
	graph := func(text string) any { return map[string]any{"files": []any{named("new.yaml", text)}} }
	env := func(text string) any { return map[string]any{"file": named("new.yaml", text)} }
	for _, c := range []struct {
		method, path string
		body         any
		status       int
		says         string
	}{
		{"PUT", "/2/task-graphs/web", graph("- id: a\n  type: ["), 400, "new.yaml:2: bad YAML"},
		{"PUT", "/2/task-graphs/web", graph("- {id: a, type: shell, role: 7}"), 400, "new.yaml:1:30: task a: field role: got number, want"},
		{"PUT", "/2/task-graphs/web", graph("- {id: a, type: shell, condition: {yaql_exp: '$.a +'}}"), 400, "task a: field condition: new.yaml:1:52: YaqlGrammarException"},
		{"PUT", "/2/task-graphs/web", graph("- {id: a, type: stage, requires: [a]}"), 400, "in a circle: a waits for a"},
		{"PUT", "/2/task-graphs/web", map[string]any{"files": []any{}}, 400, "a task graph needs a file at least"},
		{"PUT", "/2/task-graphs/" + strings.Repeat("a", 101), graph("[]"), 400, "the name of a task graph must be letters"},
		{"PUT", "/2/task-graphs/new", map[string]any{"file": named("a", "[]")}, 400, "the key 'file' means nothing here"},
		{"PUT", "/2/environments/prod", env("nodes: {a: 1}"), 400, "new.yaml:1:12: node a must be a map of its data"},
		{"PUT", "/2/environments/prod", env("nodes: {a: {roles: [1]}}"), 400, "new.yaml:1:21: a role of node a is no text"},
		{"PUT", "/2/environments/prod", env("nodse: {}"), 400, `new.yaml:1:1: the key "nodse" of an environment means nothing`},
		{"PUT", "/2/environments/new", map[string]any{"file": named("new.yaml", "nodes: {}"), "graphs": []string{"gone"}}, 404, `there is no task graph "gone"`},
		{"PUT", "/2/environments/prod/nodes/2", env("[]"), 400, "new.yaml:1:1: node 2 must be a map"},
		{"PUT", "/2/environments/prod/nodes/2", map[string]any{"file": named("n", "{}"), "host": "nowhere"}, 404, "nowhere"},
		{"PUT", "/2/environments/gone/nodes/2", env("{}"), 404, `there is no environment "gone"`},
		{"POST", "/2/deployments", map[string]any{"environment": "gone"}, 404, `there is no environment "gone"`},
		{"POST", "/2/deployments", map[string]any{"environment": "prod", "nodes": []string{"9"}}, 404, `the environment prod has no node "9"`},
		{"POST", "/2/deployments", map[string]any{"environment": "prod", "only": []string{"no"}}, 404, `the graph has no task "no"`},
		{"POST", "/2/deployments", map[string]any{"environment": "prod", "mode": "fast"}, 400, `the mode of a deployment is run, noop or dry-run`},
		{"POST", "/2/deployments", map[string]any{}, 400, "a deployment is of an environment"},
		{"PUT", "/2/environments/prod", map[string]any{"nodse": map[string]any{}}, 400, `the key "nodse" of an environment means nothing`},
		{"PUT", "/2/environments/prod", []any{}, 400, "'dict' is expected"},
		{"POST", "/2/deployments", map[string]any{"env": "prod"}, 400, "the key 'env' means nothing here"},
		{"PUT", "/2/deployments/7/begin", nil, 404, "there is no deployment 7"},
		{"GET", "/2/deployments/9999999999999999999", nil, 404, "there is no deployment"},
		{"GET", "/2/environments/gone", nil, 404, `there is no environment "gone"`},
	} {
		if a := r.do(c.method, c.path, c.body); a.status != c.status || !strings.Contains(html.UnescapeString(a.text), c.says) {
			t.Errorf("%s %s %v: %d %s, want %d and %q", c.method, c.path, c.body, a.status, a.text, c.status, c.says)
		}
	}
	if a := r.send("PUT", "/2/task-graphs/web", graph("[]"), header("reader", "read")); a.status != http.StatusForbidden {
		t.Errorf("a reader stores a graph: %d %s", a.status, a.text)
	}
	if after := r.do("GET", "/2/environments/prod", nil).text + r.do("GET", "/2/task-graphs", nil).text; after != before {
		t.Errorf("something was kept: %s, was %s", after, before)
	}
	if a := r.do("GET", "/2/deployments", nil); strings.TrimSpace(a.text) != "[]" {
		t.Errorf("deployments were made: %s", a.text)
	}
}

// TestDeploymentsAskForAnAccount: what is deployed is told to nobody without one, secrets are shown to who may write, and that is
// an event.
func TestDeploymentsAskForAnAccount(t *testing.T) {
	r := newRig(t, rigOptions{openReading: true})
	env := "secrets: [db.pin]\nsettings: {token: xyzzy}\ncommon: {db: {password: hunter2, pin: 12, url: 'x:hunter2@y'}}\nnodes: {}\n"
	if a := r.do("PUT", "/2/environments/prod", map[string]any{"file": named("env.yaml", env)}); a.status != http.StatusOK {
		t.Fatal(a.text)
	}
	for _, path := range []string{"/2/environments", "/2/environments/prod", "/2/environments/prod?show-secrets=1", "/2/task-graphs", "/2/task-graphs/web",
		"/2/deployments", "/2/deployments/1", "/2/deployments/1/tasks", "/2/deployments/1/tasks/1/web"} {
		if a := r.send("GET", path, nil, nil); a.status != http.StatusUnauthorized {
			t.Errorf("%s without an account: %d %s", path, a.status, a.text)
		}
	}
	read := func(query, account, password string) answer {
		return r.send("GET", "/2/environments/prod"+query, nil, header(account, password))
	}
	for _, account := range []string{"reader", "admin"} {
		password := map[string]string{"reader": "read", "admin": "secret"}[account]
		a := read("", account, password)
		if a.status != http.StatusOK || strings.Contains(a.text, "hunter2") || !strings.Contains(a.text, `"pin": "<redacted>"`) && !strings.Contains(a.text, `"pin":"<redacted>"`) {
			t.Errorf("%s reads %d %s", account, a.status, a.text)
		}
	}
	if a := r.do("GET", "/2/environments", nil); strings.Contains(a.text, "xyzzy") {
		t.Errorf("the list tells %s", a.text)
	}
	if a := read("?show-secrets=1", "reader", "read"); a.status != http.StatusForbidden {
		t.Errorf("a reader is shown secrets: %d %s", a.status, a.text)
	}
	if a := read("?show-secrets=1&reason=lost", "admin", "secret"); a.status != http.StatusOK || !strings.Contains(a.text, "x:hunter2@y") {
		t.Errorf("a writer is shown %d %s", a.status, a.text)
	}
	last := ""
	for e, err := range r.queue.Events(t.Context()) {
		r.check(err)
		last = string(e.What) + " " + e.Object + " " + e.Who + " " + e.Why()
	}
	if last != string(audit.EnvironmentReveal)+" prod admin lost" {
		t.Errorf("recorded is %q", last)
	}
	shown := read("", "admin", "secret").text
	if a := r.do("PUT", "/2/environments/prod", map[string]any{"file": named("shown.json", shown)}); a.status != http.StatusBadRequest || !strings.Contains(a.text, "common.db.password") {
		t.Errorf("marks are taken for secrets: %d %s", a.status, a.text)
	}
}

// TestDeploymentsAreDeleted: one that nothing is decided by, with who and why; the others stay, and it is said by what.
func TestDeploymentsAreDeleted(t *testing.T) {
	r, _ := deployRig(t)
	for range 2 {
		if a := r.do("POST", "/2/deployments", map[string]any{"environment": "prod"}); a.status != http.StatusOK {
			t.Fatal(a.text)
		}
	}
	for _, c := range []struct {
		path   string
		status int
		says   string
	}{
		{"/2/deployments/2", 409, "it is the newest of all, and its number must not be given again"},
		{"/2/deployments/1?dry-run=1", 400, "dry-run"},
		{"/2/deployments/1?reason=a+mistake", 200, `"environment":"prod"`},
		{"/2/deployments/1", 404, "there is no deployment 1: it was removed"},
	} {
		if a := r.do("DELETE", c.path, nil); a.status != c.status || !strings.Contains(strings.ReplaceAll(a.text, ": \"", ":\""), c.says) {
			t.Errorf("DELETE %s: %d %s", c.path, a.status, a.text)
		}
	}
	last := ""
	for e, err := range r.queue.Events(t.Context()) {
		r.check(err)
		last = string(e.What) + " " + e.Object + " " + e.Name + " " + e.Why()
	}
	if last != "deployment.delete 1 prod a mistake" {
		t.Errorf("recorded is %q", last)
	}
}

// TestEnvironmentsArePutAsTheyAreShown: what GET gives, PUT takes.
func TestEnvironmentsArePutAsTheyAreShown(t *testing.T) {
	r, _ := deployRig(t)
	before := r.do("GET", "/2/environments/prod", nil).text
	if a := r.do("PUT", "/2/environments/copy", before); a.status != http.StatusOK {
		t.Fatal(a.text)
	}
	after := r.do("GET", "/2/environments/copy", nil).text
	if want := strings.Replace(before, `"prod"`, `"copy"`, 1); after != want {
		t.Errorf("it became\n%s, was\n%s", after, want)
	}
}
