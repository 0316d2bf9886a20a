package app_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/agentd"
	"github.com/drover-project/drover/internal/app"
	"github.com/drover-project/drover/internal/queue/machine"
)

// submit hands a job in.
func (c cluster) submit(t *testing.T, op map[string]any) (id int) {
	t.Helper()
	op["reason"] = [][]any{{"user", "a test", 1}}
	c.call(t, "SubmitJob", &id, []any{op})
	return id
}

func (c cluster) explains(t *testing.T, id int) (x machine.Explanation) {
	t.Helper()
	c.call(t, "ExplainJob", &x, id)
	return x
}

func (c cluster) ends(t *testing.T, id int, want string) {
	t.Helper()
	var rows [][]any
	until(t, fmt.Sprintf("the end of job %d", id), func() bool {
		c.call(t, "QueryJobs", &rows, []int{id}, []string{"status", "opresult"})
		status := fmt.Sprint(rows[0][0])
		return status == "success" || status == "error" || status == "canceled"
	})
	if got := fmt.Sprint(rows[0][0]); got != want {
		t.Errorf("job %d ended as %s, %v", id, got, rows[0][1])
	}
}

// waitsFor says that a job waits for a node, as an explanation and lists have it.
func (c cluster) waitsFor(t *testing.T, id int, node, why string) {
	t.Helper()
	x := c.explains(t, id)
	if x.Step != "wait-node" || !strings.Contains(x.Why, why) || x.Away == nil || x.Away.Node != node || x.Away.Since == 0 || len(x.Change) != 1 || x.Change[0].On != node || x.Slots.Has || len(x.Locks.Held) > 0 {
		t.Errorf("job %d: %s, %q; away %+v; change %+v; %+v", id, x.Step, x.Why, x.Away, x.Change, x.Locks)
	}
	if last := x.Timeline[len(x.Timeline)-1]; last.Kind != "node" || last.On != node || last.To != 0 {
		t.Errorf("the timeline of job %d ends with %+v", id, last)
	}
	var answer struct {
		Data [][][2]any `json:"data"`
	}
	c.call(t, "Query", &answer, "job", []string{"step", "wait_reason", "waits_for", "held_by"}, []any{"==", "id", id})
	if got, want := fmt.Sprint(answer.Data), fmt.Sprintf("[[[0 wait-node] [0 node %s] [0 [node %s]] [3 <nil>]]]", node, node); got != want {
		t.Errorf("lists have %s, want %s", got, want)
	}
}

// TestWorkWaitsForItsNode has a new leader to which the agent of a node has not come: what is to be done there waits, without a slot and without locks,
// and nobody else waits for it.
func TestWorkWaitsForItsNode(t *testing.T) {
	dir := t.TempDir()
	c := startWith(t, app.Options{Data: dir, AgentAddress: "127.0.0.1:0"})
	agent := agentd.Options{Data: t.TempDir()}
	token := c.token(t, away)
	_, stop := runAgentAt(t, agent, &token)
	c.job(t, create("web1", away))
	stop()
	if err := c.stop(); err != nil {
		t.Fatal(err)
	}

	c = startWith(t, app.Options{Data: dir, AgentAddress: c.ready.AgentAddress})
	var waiting []int
	for range 30 { // more than run at a time
		waiting = append(waiting, c.submit(t, map[string]any{"OP_ID": "OP_TEST_DELAY", "duration": 0.001, "on_nodes": []string{away}, "no_locks": false}))
	}
	waiting = append(waiting, c.submit(t, about("OP_INSTANCE_REBOOT", "web1")))
	for _, id := range waiting {
		c.waitsFor(t, id, away, "which does not follow this controller yet")
	}
	c.job(t, map[string]any{"OP_ID": "OP_TEST_DELAY", "duration": 0.001, "on_nodes": []string{"node1.drover.example"}})
	c.job(t, map[string]any{"OP_ID": "OP_NODE_SET_PARAMS", "node_name": away, "vm_capable": true}) // it asks nobody
	_, stop = runAgentAt(t, agent, nil)
	for _, id := range waiting {
		c.ends(t, id, "success")
	}

	// Later in the term it is the same.
	stop()
	until(t, "that the node is away", func() bool { return !strings.Contains(c.seen(t, "node", away, "mtotal"), "131072") })
	until(t, "that the queue knows it", func() bool {
		probe := c.submit(t, map[string]any{"OP_ID": "OP_TEST_DELAY", "duration": 0.001, "on_nodes": []string{away}, "no_locks": false})
		return c.explains(t, probe).Step == "wait-node" // what begins before that fails
	})
	id := c.submit(t, about("OP_INSTANCE_REBOOT", "web1"))
	c.waitsFor(t, id, away, "which is away")
	// What waited when a leader ended waits under the next one from the beginning.
	if err := c.stop(); err != nil {
		t.Fatal(err)
	}
	c = startWith(t, app.Options{Data: dir, AgentAddress: c.ready.AgentAddress})
	c.waitsFor(t, id, away, "which does not follow this controller yet")
	var answer []any
	c.call(t, "CancelJob", &answer, id)
	c.ends(t, id, "canceled")
	if err := c.stop(); err != nil {
		t.Error(err)
	}
}
