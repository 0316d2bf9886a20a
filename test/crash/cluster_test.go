package crash

import (
	"bufio"
	"encoding/json"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/luxiwire"
)

// cluster is `drover dev` on a data directory, as a process of its own.
type cluster struct {
	*testing.T
	cmd    *exec.Cmd
	socket string
}

// startCluster starts the binary and waits until it says that it is ready.
func startCluster(t *testing.T, bin, data string) *cluster {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), bin, "dev", "--data", data, "--rapi", "127.0.0.1:0", "--nodes", "2", "--demo=false")
	cmd.Stderr = t.Output()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	in := bufio.NewReader(out)
	for line := ""; !strings.Contains(line, "is ready"); {
		if line, err = in.ReadString('\n'); err != nil {
			t.Fatalf("drover ended before it was ready: %v", err)
		}
	}
	go func() { _, _ = io.Copy(io.Discard, in) }()
	text, err := os.ReadFile(filepath.Join(data, "ready.json"))
	if err != nil {
		t.Fatal(err)
	}
	var ready struct {
		LUXI string `json:"luxi"`
	}
	if err := json.Unmarshal(text, &ready); err != nil {
		t.Fatal(err)
	}
	return &cluster{T: t, cmd: cmd, socket: ready.LUXI}
}

// kill ends the process as a power failure would, as far as it can tell.
func (c *cluster) kill() { _ = c.cmd.Process.Kill() }

// terminate asks the process to end in good order, while its clients go on.
func (c *cluster) terminate() { _ = c.cmd.Process.Signal(syscall.SIGTERM) }

// killStarting starts the binary and kills it at some moment before it is ready
// or soon after.
func killStarting(t *testing.T, bin, data string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), bin, "dev", "--data", data, "--rapi", "127.0.0.1:0", "--nodes", "2", "--demo=false")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	const longest = 200 * time.Millisecond
	<-time.After(rand.N(longest))
	_ = cmd.Process.Kill()
	_ = cmd.Wait() // it was killed
}

// gone waits for the end of a process that was killed or told to end.
func (c *cluster) gone() { _ = c.cmd.Wait() }

// stop ends the process in good order.
func (c *cluster) stop() {
	c.Helper()
	if err := c.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		c.Fatal(err)
	}
	if err := c.cmd.Wait(); err != nil {
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
