package testkit

import (
	"bufio"
	"context"
	"encoding/json"
	"os/exec"
	"testing"
	"time"
)

// Python is Debian's own interpreter, which sees Debian's packages.
const Python = "/usr/bin/python3"

// checksTime is how long all checks of a program may take. It only ends what
// hangs: beside the whole suite those of the stock clients have taken seven minutes, and alone two.
const checksTime = 12 * time.Minute

// NeedPython skips a test on a machine whose Python lacks what a program of
// checks imports: the modules, and the Debian packages that have them.
func NeedPython(t *testing.T, modules, packages string) {
	t.Helper()
	if err := exec.CommandContext(t.Context(), Python, "-c", "import "+modules).Run(); err != nil {
		Missingf(t, "%s: not installed", packages)
	}
}

// RunChecks runs a Python program that drives Drover with stock clients. It
// writes a line for each check, {"check": name}, with an "error" if it failed; each
// becomes a test of its own.
func RunChecks(t *testing.T, program string, args ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), checksTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, Python, append([]string{program}, args...)...)
	cmd.Stderr = t.Output()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	checks := 0
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		var line struct {
			Check string `json:"check"`
			Error string `json:"error"`
		}
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			t.Errorf("%s wrote %q", program, lines.Text())
			continue
		}
		checks++
		t.Run(line.Check, func(t *testing.T) {
			if line.Error != "" {
				t.Error(line.Error)
			}
		})
	}
	if err := cmd.Wait(); err != nil || checks == 0 {
		t.Fatalf("%s ended after %d checks: %v", program, checks, err)
	}
	t.Logf("%d checks with stock clients", checks)
}
