package crash

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/luxiwire"
	"github.com/drover-project/drover/internal/testkit"
	"github.com/drover-project/drover/internal/testkit/traces"
)

// marksLeft waits until so many runs have left marks in a file.
func marksLeft(t *testing.T, file string, runs int) {
	t.Helper()
	tick, patience := time.NewTicker(20*time.Millisecond), time.NewTimer(4*testkit.Patience())
	defer tick.Stop()
	defer patience.Stop()
	for {
		if all, _ := traces.Read(t, file); len(all) >= runs {
			return
		}
		select {
		case <-tick.C:
		case <-patience.C:
			t.Fatalf("%d runs never began", runs)
		}
	}
}

// submit submits a job with one opcode.
func submit(t *testing.T, client *luxiwire.Client, op map[string]any) (id int) {
	t.Helper()
	if err := client.Call(t.Context(), "SubmitJob", []any{[]any{op}}, &id); err != nil {
		t.Fatal(err)
	}
	return id
}

// succeed waits for the success of a job.
func succeed(t *testing.T, client *luxiwire.Client, id int) {
	t.Helper()
	if end, err := waitFinal(t, client, id); err != nil || !strings.HasPrefix(end, "success") {
		t.Fatalf("job %d: %s, %v", id, end, err)
	}
}

// TestKilledControllerLeavesNoScripts kills a controller while an operating system is installed, and starts it again: the
// installation begins anew, and the script of the first one works on no more.
func TestKilledControllerLeavesNoScripts(t *testing.T) {
	for name, agents := range map[string]bool{"nodes in its process": false, "nodes that are processes": true} {
		t.Run(name, func(t *testing.T) { leavesNoScripts(t, agents, func(c *cluster) bool { c.kill(); return true }) })
	}
}

// TestKilledAgentsLeaveNoScripts kills the agent of a node while an operating system is installed there. The controller goes on, and has the next
// agent of the node install anew.
func TestKilledAgentsLeaveNoScripts(t *testing.T) {
	leavesNoScripts(t, true, func(c *cluster) bool {
		c.killAgent("node1.drover.example")
		return false
	})
}

// killAgent kills the agent of a node, which runs as a process of its own.
func (c *cluster) killAgent(node string) {
	c.Helper()
	pid := wrapperOf(c.T, filepath.Join(filepath.Dir(c.socket), "nodes", node))
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		c.Fatal(err)
	}
}

// leavesNoScripts installs an operating system, and has what carries that out killed meanwhile, which tells whether the controller was.
func leavesNoScripts(t *testing.T, agents bool, kill func(c *cluster) (controllerToo bool)) {
	t.Helper()
	dir := t.TempDir()
	from, marks := controller{bin: testkit.Build(t), data: filepath.Join(dir, "data"), agents: agents}, filepath.Join(dir, "marks")
	node := func(n int) string { return filepath.Join(from.data, "nodes", fmt.Sprintf("node%d.drover.example", n)) }
	for n := 1; n <= 2; n++ {
		traces.InstallOS(t, node(n), "slow", marks, 15)
	}
	c := from.start(t)
	client := c.dial()
	succeed(t, client, submit(t, client, map[string]any{
		"OP_ID": "OP_INSTANCE_CREATE", "instance_name": "one.example", "mode": "create", "disk_template": "file", "disks": []any{map[string]any{"size": 4}},
		"nics": []any{}, "name_check": false, "ip_check": false, "os_type": "noop", "pnode": "node1.drover.example", "start": false, "reason": []any{},
	}))
	id := submit(t, client, map[string]any{"OP_ID": "OP_INSTANCE_REINSTALL", "instance_name": "one.example", "os_type": "slow", "reason": []any{}})
	const kills = 2
	for n := range kills {
		marksLeft(t, marks, n+1)
		if !kill(c) {
			continue
		}
		c.gone()
		c = from.start(t)
		client = c.dial()
	}
	succeed(t, client, id)
	runs, wrong := traces.Read(t, marks)
	if len(runs) != kills+1 || runs[kills].Marks != 15 {
		t.Errorf("runs: %v", runs)
	}
	for _, w := range wrong {
		t.Error(w)
	}
	c.stop()
}

// wrapperOf finds the process that runs the command of a task: the one with the least number that has the task's
// files among its arguments.
func wrapperOf(t *testing.T, files string) int {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	least := 0
	for _, name := range all {
		if line, err := os.ReadFile(name); err == nil && bytes.Contains(line, []byte("\x00"+files+"\x00")) {
			if pid, _ := strconv.Atoi(strings.Split(name, "/")[2]); least == 0 || pid < least {
				least = pid
			}
		}
	}
	if least == 0 {
		t.Fatal("nothing runs the command")
	}
	return least
}

// TestACommandWithoutItsWrapperIsNotAlone kills the shell that runs a task's command for the agent, and the controller, which
// then finds the command at work.
func TestACommandWithoutItsWrapperIsNotAlone(t *testing.T) {
	dir := t.TempDir()
	from, marks := controller{bin: testkit.Build(t), data: filepath.Join(dir, "data"), store: ""}, filepath.Join(dir, "marks")
	c := from.start(t)
	client := c.dial()
	r := &rollout{T: t, dir: dir}
	r.call(client, nil, "PutTaskGraph", "graph", []any{map[string]string{"path": "graph.yaml", "text": "" +
		"- {id: write, type: shell, version: 2.1.0, role: [web], parameters: {cmd: 'sh " + dir + "/write', retries: 1, interval: 0}}\n"}})
	r.call(client, nil, "PutEnvironment", "prod", map[string]string{"path": "prod.yaml", "text": "" +
		"{common: {}, hosts: {'1': node1.drover.example}, nodes: {'1': {uid: '1', roles: [web]}}}"}, []string{"graph"})
	if err := os.WriteFile(filepath.Join(dir, "write"), []byte(traces.Marks(marks, "task", 30)), 0o600); err != nil {
		t.Fatal(err)
	}
	var made struct{ Deployment struct{ ID int } }
	r.call(client, &made, "PlanDeployment", map[string]any{"environment": "prod"})
	r.id = made.Deployment.ID
	r.call(client, nil, "BeginDeployment", r.id)
	marksLeft(t, marks, 1)
	if err := syscall.Kill(wrapperOf(t, filepath.Join(from.data, "nodes", "node1.drover.example", "tasks", "1", "0.1", "status.1")), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	c.kill()
	c.gone()
	c = from.start(t)
	client = c.dial()
	r.until(client, "over", func(p *progress) bool { return p.Status != "running" })
	runs, wrong := traces.Read(t, marks)
	if len(runs) == 0 || runs[len(runs)-1].Marks != 30 {
		t.Errorf("runs: %v", runs)
	}
	for _, w := range wrong {
		t.Error(w)
	}
	c.stop()
}
