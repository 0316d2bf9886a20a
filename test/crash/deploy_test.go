package crash

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/luxiwire"
	"github.com/drover-project/drover/internal/testkit"
	"github.com/drover-project/drover/internal/testkit/stores"
)

// Tasks note that they begin in the file ran, and end when their gate is there.
const rolloutGraph = `
- id: database
  type: shell
  version: 2.1.0
  role: [database]
  parameters: {cmd: "echo database 3 >>DIR/ran"}
- id: check
  type: shell
  version: 2.1.0
  role: [database]
  requires: [database]
  parameters: {cmd: "echo check 3 >>DIR/ran; test -e DIR/repaired"}
- id: web
  type: shell
  version: 2.1.0
  role: [web]
  cross-depends: [{name: database, role: database}]
  parameters:
    strategy: {type: one_by_one}
    cmd: {yaql_exp: '"echo web " + $.uid + " >>DIR/ran; while test -d DIR && ! test -e DIR/gate-" + $.uid + "; do sleep 0.02; done"'}
- id: motd
  type: upload_file
  version: 2.1.0
  role: '*'
  parameters: {path: {yaql_exp: '"DIR/motd-" + $.uid'}, data: {yaql_exp: '"this is node " + $.uid'}}
`

const rolloutEnvironment = `
common: {}
hosts: {"1": node1.drover.example, "2": node2.drover.example, "3": node3.drover.example, "4": node4.drover.example}
nodes:
  "1": {uid: "1", roles: [web]}
  "2": {uid: "2", roles: [web]}
  "3": {uid: "3", roles: [database]}
  "4": {uid: "4", roles: [web]}
`

// task is a task of a deployment, as it is told.
type task struct{ Task, Node, State, Held string }

// progress is how far a deployment is.
type progress struct {
	Status  string
	States  map[string]int
	Held    []task
	Running []task
}

// rollout is a deployment that is looked at.
type rollout struct {
	*testing.T
	dir string
	id  int
}

func (r *rollout) call(client *luxiwire.Client, result any, method string, args ...any) {
	r.Helper()
	if err := client.Call(r.Context(), method, args, result); err != nil {
		r.Fatalf("%s: %v", method, err)
	}
}

// until looks at the deployment until it is as it is wanted.
func (r *rollout) until(client *luxiwire.Client, what string, f func(*progress) bool) *progress {
	r.Helper()
	tick, patience := time.NewTicker(20*time.Millisecond), time.NewTimer(4*testkit.Patience())
	defer tick.Stop()
	defer patience.Stop()
	for {
		p := &progress{}
		r.call(client, p, "QueryDeployment", r.id)
		if f(p) {
			return p
		}
		select {
		case <-tick.C:
		case <-patience.C:
			r.Fatalf("the deployment never was %s: %+v", what, p)
		}
	}
}

func (r *rollout) open(gate string) {
	r.Helper()
	if err := os.WriteFile(filepath.Join(r.dir, gate), nil, 0o600); err != nil {
		r.Fatal(err)
	}
}

// ran are the tasks that were begun, in order.
func (r *rollout) ran() []string {
	r.Helper()
	text, err := os.ReadFile(filepath.Join(r.dir, "ran"))
	if err != nil && !os.IsNotExist(err) {
		r.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(text)), "\n")
}

// TestRolloutSurvivesKills deploys to four nodes: a rule holds one role, one task is one_by_one, one fails, and the
// controller is killed while jobs are held and while a command runs.
func TestRolloutSurvivesKills(t *testing.T) {
	bin := testkit.Build(t)
	stores.Each(t, func(t *testing.T, url string) {
		rolloutSurvivesKills(t, controller{bin: bin, data: t.TempDir(), store: url})
	})
}

func rolloutSurvivesKills(t *testing.T, from controller) {
	t.Helper()
	c := from.start(t)
	client := c.dial()
	r := &rollout{T: t, dir: t.TempDir()}
	for i := 3; i <= 4; i++ {
		var id int
		r.call(client, &id, "SubmitJob", []any{map[string]any{"OP_ID": "OP_NODE_ADD", "node_name": fmt.Sprintf("node%d.drover.example", i), "reason": []any{}}})
		if end, err := waitFinal(t, client, id); err != nil || !strings.HasPrefix(end, "success") {
			t.Fatal(end, err)
		}
	}
	file := func(text string) map[string]string {
		return map[string]string{"path": "file.yaml", "text": strings.ReplaceAll(text, "DIR", r.dir)}
	}
	r.call(client, nil, "PutTaskGraph", "graph", []any{file(rolloutGraph)})
	r.call(client, nil, "PutEnvironment", "prod", file(rolloutEnvironment), []string{"graph"})
	var rule string
	r.call(client, &rule, "ReplaceFilter", nil, 0, []any{[]any{"opcode", []any{"=[]", "roles", "database"}}}, "PAUSE", []any{})
	var made struct{ Deployment struct{ ID int } }
	r.call(client, &made, "PlanDeployment", map[string]any{"environment": "prod"})
	r.id = made.Deployment.ID
	r.call(client, nil, "BeginDeployment", r.id)

	exactly := func(p *progress) bool { return p.States["ready"] == 3 && len(p.Held) == 3 && len(p.Running) == 0 }
	r.until(client, "held", exactly)
	c.kill()
	c.gone()
	c = from.start(t)
	client = c.dial()
	for _, held := range r.until(client, "held again", exactly).Held {
		if held.Node != "3" || held.Held != rule {
			t.Errorf("%+v is held", held)
		}
	}
	r.call(client, nil, "DeleteFilter", rule)

	web := func(p *progress) bool { return len(p.Running) == 1 && p.Running[0].Task == "web" }
	first := r.until(client, "at a web server", web).Running[0].Node
	for len(r.ran()) < 3 { // the job runs; its command may not have begun
		r.until(client, "at a web server", web)
	}
	c.kill()
	c.gone()
	r.open("gate-" + first) // it ends while no controller looks
	c = from.start(t)
	client = c.dial()
	for _, node := range []string{"1", "2", "4"} {
		r.open("gate-" + node)
	}
	end := func(p *progress) bool { return p.Status != "running" }
	if p := r.until(client, "over", end); p.Status != "error" || p.States["ready"] != 8 || p.States["error"] != 1 {
		t.Fatalf("%+v", p)
	}
	r.open("repaired")
	r.call(client, nil, "ResumeDeployment", r.id, true)
	if p := r.until(client, "repaired", end); p.Status != "ready" || p.States["ready"] != 9 {
		t.Fatalf("%+v", p)
	}
	ran := r.ran()
	slices.Sort(ran)
	if got := strings.Join(ran, ", "); got != "check 3, check 3, database 3, web 1, web 2, web 4" {
		t.Errorf("began: %s", got)
	}
	c.stop()
}
