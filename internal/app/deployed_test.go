package app_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/app"
	"github.com/drover-project/drover/internal/cli"
)

// standbysTellOfDeployments asks the leader of three controllers, and each of the others, all that can be asked about deployments, over LUXI, over RAPI
// and on the command line: the others say the same, themselves. What shows secrets, and so is told of, they have the leader answer.
func standbysTellOfDeployments(t *testing.T, url string) {
	t.Helper()
	all := groupWith(t, []string{url, url, url}, func(o *app.Options) { o.Tasks = true })
	leader := all[0]
	deployOnce(t, leader)
	for _, standby := range all[1:] {
		for _, q := range []struct {
			method string
			args   []any
		}{
			{"QueryEnvironment", []any{"prod"}},
			{"QueryTaskGraph", []any{"web"}},
			{"QueryDeployment", []any{1}},
			{"QueryDeploymentTasks", []any{1}},
			{"ExplainDeploymentTask", []any{1, "motd", "1"}},
			{"OutlineDeployment", []any{1}},
			{"LatestDeployment", []any{"prod"}},
			{"DiffStates", []any{at{Deployment: 1}, at{Environment: "prod"}}},
			{"EvalExpression", []any{map[string]any{"expression": "$.uid", "new": at{Environment: "prod"}, "node": "1"}}},
			{"PreviewDeployment", []any{map[string]any{"environment": "prod"}}},
			{"Query", []any{"environment", []string{"name", "graphs", "node_cnt", "generation"}, nil}},
			{"Query", []any{"deployment", []string{"id", "status", "steps", "runs", "ended"}, []any{"=", "id", 1}}},
			{"Query", []any{"task", []string{"deployment", "step", "task", "node", "state", "why", "job", "ended"}, []any{"&", []any{"=", "deployment", 1}, []any{"=", "step", 0}}}},
			{"Query", []any{"task", []string{"task"}, nil, map[string]any{"explain": true}}},
		} {
			ask := func(c cluster) string {
				var got json.RawMessage
				c.call(t, q.method, &got, q.args...)
				return made.ReplaceAllString(string(got), `"created":0`)
			}
			standby.saysTheSame(t, leader, "luxi", q.method, ask)
		}
		for _, path := range []string{"/2/environments", "/2/environments/prod", "/2/task-graphs", "/2/task-graphs/web", "/2/deployments", "/2/deployments/1",
			"/2/deployments/1/tasks", "/2/deployments/1/tasks/1/motd", "/2/deployments/9", "/2/environments/none", "/2/query/deployment?fields=id,status",
			"/2/query/environment?fields=name,generation", "/2/query/task?fields=step,task,state,why&filter=deployment+%3D%3D+1"} {
			standby.saysTheSame(t, leader, "rapi", path, func(c cluster) string { return c.get(t, path) })
			if ok := strings.HasPrefix(leader.get(t, path), "200 "); ok == (strings.HasSuffix(path, "/9") || strings.HasSuffix(path, "/none")) {
				t.Errorf("%s is answered with %s", path, leader.get(t, path))
			}
		}
		for _, line := range []string{"env list", "env show prod", "graph show web", "history", "status 1", "explain 1 motd 1", "logs 1 motd 1", "plan prod", "diff prod", "diff 1 prod",
			"tasks --output=json -o deployment,node,task,state,why"} {
			standby.saysTheSame(t, leader, "luxi", line, func(c cluster) string { return c.deploy(t, line) })
		}
		for _, q := range [][]any{ // watches they hand on: what is told next is the leader's to say
			{"environment", []string{"name", "generation"}, nil, map[string]any{"watch": 0}},
			{"deployment", []string{"id", "status"}, nil, map[string]any{"watch": 0}},
			{"task", []string{"task", "state", "why"}, []any{"=", "deployment", 1}, map[string]any{"watch": 0}},
		} {
			var got, want json.RawMessage
			standby.call(t, "Query", &got, q...)
			leader.call(t, "Query", &want, q...)
			if row := watchedRow.FindString(string(want)); row == "" || row != watchedRow.FindString(string(got)) {
				t.Errorf("a watch of %ss begins with\n%s\nand the leader's with\n%s", q[0], got, want)
			}
		}
		before := standby.forwarded(t, "rapi")
		if got, want := standby.get(t, "/2/environments/prod?show-secrets=1"), leader.get(t, "/2/environments/prod?show-secrets=1"); got != want || !strings.Contains(got, "correct-horse") {
			t.Errorf("with secrets it is\n%s\nand the leader says\n%s", got, want)
		}
		if standby.forwarded(t, "rapi") == before {
			t.Error("a controller that stands by showed secrets, which nobody is told of")
		}
	}
	for _, c := range []cluster{all[2], all[1], leader} {
		if err := c.stop(); err != nil {
			t.Error(err)
		}
	}
}

// at names a state.
type at struct {
	Environment string `json:"environment,omitempty"`
	Deployment  int64  `json:"deployment,omitempty"`
}

// made is when a plan was computed that nobody stored.
var made = regexp.MustCompile(`"created":[0-9]+`)

// watchedRow is what a watch tells of rows.
var watchedRow = regexp.MustCompile(`"events":\[\{.*\]`)

// deployOnce has a deployment of an environment carried out.
func deployOnce(t *testing.T, leader cluster) {
	t.Helper()
	leader.call(t, "PutTaskGraph", nil, "web", []any{map[string]any{"path": "web.yaml", "text": "- {id: motd, type: shell, version: 2.1.0, role: '*', parameters: {cmd: {yaql_exp: '\"true \" + $.uid'}}}"}})
	leader.call(t, "PutEnvironment", nil, "prod", map[string]any{"path": "env.yaml", "text": "common: {password: correct-horse}\nnodes: {'1': {uid: '1', roles: [web]}}\nhosts: {'1': node1.drover.example}"}, []string{"web"})
	leader.call(t, "PlanDeployment", nil, map[string]any{"environment": "prod"})
	leader.call(t, "BeginDeployment", nil, 1)
	again, limit := time.NewTicker(20*time.Millisecond), time.After(patience)
	defer again.Stop()
	for {
		var p struct{ Status string }
		leader.call(t, "QueryDeployment", &p, 1)
		switch p.Status {
		case "ready":
			return
		case "error":
			t.Fatal("the deployment failed")
		}
		select {
		case <-again.C:
		case <-limit:
			t.Fatalf("the deployment is %s", p.Status)
		}
	}
}

// saysTheSame asks a standby until it has answered itself, and compares that with what the leader says.
func (c cluster) saysTheSame(t *testing.T, leader cluster, api, what string, ask func(cluster) string) {
	t.Helper()
	want := ask(leader)
	limit := time.After(patience)
	for {
		before, itself := c.forwarded(t, api), c.itself(t, api)
		if got := ask(c); got != want {
			t.Errorf("%s: a standby says\n%s\nand the leader\n%s", what, got, want)
		}
		if c.forwarded(t, api) == before && c.itself(t, api) != itself {
			return
		}
		select {
		case <-time.After(10 * time.Millisecond): // it may have no lease at the moment
		case <-limit:
			t.Fatalf("%s: the standby leaves it to the leader", what)
		}
	}
}

// forwarded tells how many requests of an API this controller had answered by the leader, and itself how many it answered while it stood by.
func (c cluster) forwarded(t *testing.T, api string) string { return c.standbyCount(t, "leader", api) }
func (c cluster) itself(t *testing.T, api string) string    { return c.standbyCount(t, "standby", api) }

func (c cluster) standbyCount(t *testing.T, by, api string) string {
	t.Helper()
	_, figures := c.page(t, "/metrics")
	_, count, _ := strings.Cut(figures, fmt.Sprintf("\ndrover_standby_requests_total{answered_by=%q,api=%q} ", by, api))
	count, _, _ = strings.Cut(count, "\n")
	return count
}

// get asks for a page of RAPI.
func (c cluster) get(t *testing.T, path string) string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, c.ready.RAPI+path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	r.SetBasicAuth("op", "secret")
	answer, err := trusting().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(answer.StatusCode, " ", string(text))
}

// deploy carries out a command about deployments.
func (c cluster) deploy(t *testing.T, line string) string {
	t.Helper()
	var out bytes.Buffer
	moment := time.Now().Truncate(24 * time.Hour) // how long ago something was is told
	status := cli.Main(t.Context(), cli.Env{Args: append([]string{"drover", "--luxi", c.ready.LUXI, "deploy"}, strings.Fields(line)...),
		Stdin: strings.NewReader(""), Stdout: &out, Stderr: &out, Getenv: func(string) string { return "" }, Now: func() time.Time { return moment }})
	if status != 0 {
		t.Fatalf("drover deploy %s ends with %d:\n%s", line, status, out.String())
	}
	return out.String()
}
