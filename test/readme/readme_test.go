// Package readme does what the README tells a reader to do.
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
)

// patience ends what hangs.
const patience = 5 * time.Minute

// firstSteps are the commands of the section "First steps".
func firstSteps(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(testkit.Root(t), "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, ok := strings.Cut(string(text), "\n## First steps\n")
	if !ok {
		t.Fatal("the README has no first steps")
	}
	section, _, _ = strings.Cut(section, "\n## ")
	var script strings.Builder
	for line := range strings.Lines(section) {
		if command, indented := strings.CutPrefix(line, "    "); indented {
			script.WriteString(command)
		}
	}
	return script.String()
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
	script := firstSteps(t)
	for _, run := range []string{"a fresh cluster", "the same cluster again"} {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		cmd := exec.CommandContext(ctx, "sh", "-eu")
		cmd.Dir = filepath.Dir(filepath.Dir(binary)) // where bin/drover is
		cmd.Env = append(os.Environ(), "XDG_STATE_HOME="+state)
		cmd.Stdin = strings.NewReader(script)
		out, err := cmd.CombinedOutput()
		cancel()
		if err != nil {
			t.Fatalf("%s: %v\n%s\n-- said\n%s", run, err, script, out)
		}
		for _, want := range []string{
			"TEST_DELAY(60.0)",      // the list shows the job
			"queued: paused by",     // the explanation
			`"storage maintenance"`, //   and whose rule it is
			"jobs in the queue",     // what the other rule would do
			"shop1",                 // the list of instances has the new one
			"demo data",             // why the demo's instances are there
			"[\n  \"n1\"\n]",        // the expression
		} {
			if !strings.Contains(string(out), want) {
				t.Errorf("%s: nothing says %q:\n%s", run, want, out)
			}
		}
	}
	left := exec.CommandContext(t.Context(), binary, "filter", "list")
	left.Env = append(os.Environ(), "XDG_STATE_HOME="+state)
	if out, err := left.CombinedOutput(); err != nil || strings.Contains(string(out), "storage maintenance") {
		t.Errorf("the pause is still there: %v\n%s", err, out)
	}
}
