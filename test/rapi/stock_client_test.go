// Package rapi drives the real binary with the RAPI client that Debian ships.
package rapi

import (
	"bufio"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/testkit"
	"github.com/drover-project/drover/internal/testkit/stores"
)

// python is Debian's own interpreter, which sees Debian's packages.
const python = "/usr/bin/python3"

// startLimit is how long a cluster may take to start, checkLimit how long all
// checks may take. They only end what hangs.
const (
	startLimit = 2 * time.Minute
	checkLimit = 7 * time.Minute
)

// TestStockClient drives `drover dev` and, with PostgreSQL, `drover serve`.
func TestStockClient(t *testing.T) {
	needClient(t)
	bin := testkit.Build(t)
	stores.Each(t, func(t *testing.T, url string) { drive(t, bin, url) })
}

// drive runs all checks against a cluster with a store.
func drive(t *testing.T, bin, url string) {
	t.Helper()
	t.Parallel()
	ready := startCluster(t, bin, url)
	ctx, cancel := context.WithTimeout(t.Context(), checkLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, python, "stock_client.py", ready)
	cmd.Stderr = os.Stderr
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
		var line struct{ Check, Error string }
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			t.Errorf("the client wrote %q", lines.Text())
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
		t.Fatalf("the client ended after %d checks: %v", checks, err)
	}
	t.Logf("%d checks with the stock client", checks)
}

// needClient needs Debian's python3-ganeti-rapi.
func needClient(t *testing.T) {
	t.Helper()
	if err := exec.CommandContext(t.Context(), python, "-c", "import ganeti.rapi.client").Run(); err != nil {
		testkit.Missingf(t, "python3-ganeti-rapi is not installed")
	}
}

// startCluster builds and runs the binary until the test ends, and returns
// the path of its ready file.
func startCluster(t *testing.T, bin, url string) string {
	t.Helper()
	dir := t.TempDir()
	ready := filepath.Join(dir, "ready.json")
	args := []string{"dev", "--demo=false"}
	if url != "" {
		args = []string{"serve", "--nodes", "3", "--store", url}
	}
	cmd := exec.Command(bin, append(args, "--data", filepath.Join(dir, "data"), "--rapi", "127.0.0.1:0",
		"--luxi", filepath.Join(dir, "luxi"), "--ready-file", ready)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(t, cmd) })
	// It writes the ready file before it says the same for a person.
	said := make(chan struct{})
	go func() {
		lines := bufio.NewScanner(out)
		if lines.Scan() {
			close(said)
		}
		for lines.Scan() { // let it write on
		}
	}()
	select {
	case <-said:
	case <-time.After(startLimit):
		t.Fatalf("the cluster did not start within %v", startLimit)
	}
	return ready
}

func stop(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Error(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("drover ended with: %v", err)
	}
}
