// Package readme does what the README and the operators' guide tell a reader to do.
package readme

import (
	"bufio"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/testkit"
	"github.com/drover-project/drover/internal/testkit/stores"
)

// patience ends what hangs.
const patience = 5 * time.Minute

// firstSteps are the commands of the README's section "First steps".
func firstSteps(t *testing.T) string {
	t.Helper()
	return testkit.Commands(t, "README.md", "## First steps")
}

// startDemo runs the program as make dev does, with ports and a data directory
// of its own, and waits until it says that it is ready.
func startDemo(t *testing.T, binary, state string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), binary, "dev", "--rapi", "127.0.0.1:0")
	cmd.Env = append(os.Environ(), "XDG_STATE_HOME="+state)
	cmd.Stderr = t.Output()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // the job that does nothing for a minute is still running
		_ = cmd.Wait()
	})
	in := bufio.NewReader(out)
	for line := ""; !strings.Contains(line, "is ready"); {
		if line, err = in.ReadString('\n'); err != nil {
			t.Fatalf("drover ended before it was ready: %v", err)
		}
	}
	go func() { _, _ = io.Copy(io.Discard, in) }()
}

// The first steps work as they are written, whatever was done before: they are
// done twice.
func TestFirstSteps(t *testing.T) {
	binary, state := testkit.Build(t), t.TempDir()
	startDemo(t, binary, state)
	for _, run := range []string{"a fresh cluster", "the same cluster again"} {
		out := follow(t, run, binary, "XDG_STATE_HOME="+state)
		if !strings.Contains(out, "demo data") { // why the demo's instances are there
			t.Errorf("%s: nothing tells of the demo:\n%s", run, out)
		}
	}
	leaves(t, binary, "XDG_STATE_HOME="+state)
}

// What the page shows of the Compute API works as it is written.
func TestServersForUsers(t *testing.T) {
	binary, state := testkit.Build(t), t.TempDir()
	startDemo(t, binary, state)
	cmd := exec.CommandContext(t.Context(), "sh", "-eu")
	cmd.Dir = filepath.Dir(filepath.Dir(binary)) // where bin/drover is
	cmd.Env = append(os.Environ(), "XDG_STATE_HOME="+state)
	cmd.Stdin = strings.NewReader(testkit.Commands(t, "README.md", "## Servers for users"))
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "tests passed") || !strings.Contains(string(out), "cyclades:user:rack+3") {
		t.Errorf("%v\n%s", err, out)
	}
}

// The same steps work with a controller that is a service, whatever its store.
func TestFirstStepsWithAService(t *testing.T) {
	binary := testkit.Build(t)
	stores.Each(t, func(t *testing.T, url string) {
		data, socket := t.TempDir(), filepath.Join(t.TempDir(), "luxi")
		cmd := exec.CommandContext(t.Context(), binary, "serve", "--data", data, "--luxi", socket, "--rapi", "127.0.0.1:0", "--store", url, "--log-level", "warn")
		cmd.Stderr = t.Output()
		service := testkit.Start(t, cmd, data)
		t.Cleanup(func() {
			service.Kill()
			_ = service.Gone()
		})
		follow(t, "a fresh cluster", binary, "DROVER_LUXI="+socket)
		leaves(t, binary, "DROVER_LUXI="+socket)
	})
}

// follow does the first steps, and returns what was said.
func follow(t *testing.T, run, binary, environment string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	script := firstSteps(t)
	cmd := exec.CommandContext(ctx, "sh", "-eu")
	cmd.Dir = filepath.Dir(filepath.Dir(binary)) // where bin/drover is
	cmd.Env = append(os.Environ(), environment)
	cmd.Stdin = strings.NewReader(script)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s\n-- said\n%s", run, err, script, out)
	}
	for _, want := range []string{
		"TEST_DELAY(60.0)",      // the list shows the job
		"queued: paused by",     // the explanation
		`"storage maintenance"`, //   and whose rule it is
		"jobs in the queue",     // what the other rule would do
		"shop1",                 // the list of instances has the new one
		"[\n  \"n1\"\n]",        // the expression
	} {
		if !strings.Contains(string(out), want) {
			t.Errorf("%s: nothing says %q:\n%s", run, want, out)
		}
	}
	return string(out)
}

// leaves checks that the steps took away the rule that they added.
func leaves(t *testing.T, binary, environment string) {
	t.Helper()
	left := exec.CommandContext(t.Context(), binary, "filter", "list")
	left.Env = append(os.Environ(), environment)
	if out, err := left.CombinedOutput(); err != nil || strings.Contains(string(out), "storage maintenance") {
		t.Errorf("the pause is still there: %v\n%s", err, out)
	}
}
