package crash

import (
	"encoding/json"
	"math/rand/v2"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/luxiwire"
	"github.com/drover-project/drover/internal/testkit"
)

// cluster is `drover dev` on a data directory, as a process of its own.
type cluster struct {
	*testing.T
	*testkit.Dev

	socket string
}

// controller is how a cluster is started, again and again.
type controller struct {
	bin, data, store string
	// agents says that each node is a process of its own.
	agents bool
}

// args are those of the program beyond what all are started with.
func (c controller) args() []string {
	if c.agents {
		return []string{"--store", c.store, "--agents"}
	}
	return []string{"--store", c.store}
}

// start starts the binary and waits until it says that it is ready.
func (c controller) start(t *testing.T) *cluster {
	t.Helper()
	dev := testkit.StartDev(t, c.bin, c.data, c.args()...)
	return &cluster{T: t, Dev: dev, socket: dev.Ready.LUXI}
}

// kill ends the process as a power failure would, as far as it can tell.
func (c *cluster) kill() { c.Kill() }

// terminate asks the process to end in good order, while its clients go on.
func (c *cluster) terminate() { c.Terminate() }

// killStarting starts the binary and kills it at some moment before it is ready
// or soon after.
func (c controller) killStarting(t *testing.T) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), c.bin, append([]string{"dev", "--data", c.data, "--rapi", "127.0.0.1:0", "--nodes", "2", "--demo=false"}, c.args()...)...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	const longest = 200 * time.Millisecond
	<-time.After(rand.N(longest))
	_ = cmd.Process.Kill()
	_ = cmd.Wait() // it was killed
}

// gone waits for the end of a process that was killed or told to end.
func (c *cluster) gone() { _ = c.Gone() }

// stop ends the process in good order.
func (c *cluster) stop() {
	c.Helper()
	c.Terminate()
	if err := c.Gone(); err != nil {
		c.Errorf("drover did not end in good order: %v", err)
	}
}

func (c *cluster) dial() *luxiwire.Client {
	c.Helper()
	client, err := luxiwire.Dial(c.Context(), c.socket)
	if err != nil {
		c.Fatal(err)
	}
	c.Cleanup(func() { _ = client.Close() }) // the other end may be dead
	return client
}

// jobRow is what is asked of every job.
type jobRow struct {
	id      int
	status  string
	ended   string
	ops     []struct{ Reason [][]any }
	results string
	// archived jobs are listed only because this is asked for.
	archived bool
}

// jobFields are the fields of a jobRow.
var jobFields = []string{"id", "status", "end_ts", "ops", "opresult", "archived"}

func (r *jobRow) UnmarshalJSON(data []byte) error {
	var ended, results json.RawMessage
	err := json.Unmarshal(data, &[]any{&r.id, &r.status, &ended, &r.ops, &results, &r.archived})
	r.ended, r.results = string(ended), string(results)
	return err
}

// name is what the test called the job: the text of its first reason.
func (r *jobRow) name() string {
	text, _ := r.ops[0].Reason[0][1].(string)
	return text
}

func (r *jobRow) final() bool {
	return r.status == "success" || r.status == "error" || r.status == "canceled"
}

// jobs lists all jobs.
func jobs(t *testing.T, client *luxiwire.Client) []jobRow {
	t.Helper()
	var rows []jobRow
	if err := client.Call(t.Context(), "QueryJobs", []any{nil, jobFields}, &rows); err != nil {
		t.Fatal(err)
	}
	return rows
}

// waitFinal waits until a job has ended, and returns its status and end.
func waitFinal(t *testing.T, client *luxiwire.Client, id int) (end string, err error) {
	t.Helper()
	var previous []json.RawMessage
	for {
		var answer json.RawMessage
		args := []any{id, []string{"status", "end_ts"}, previous, 0, 10}
		if err := client.Call(t.Context(), "WaitForJobChange", args, &answer); err != nil {
			return "", err
		}
		var change []json.RawMessage
		if json.Unmarshal(answer, &change) != nil {
			continue // "nochange"
		}
		if err := json.Unmarshal(change[0], &previous); err != nil {
			return "", err
		}
		switch status := string(previous[0]); status {
		case `"success"`, `"error"`, `"canceled"`:
			return strings.Trim(status, `"`) + " " + string(previous[1]), nil
		}
	}
}
