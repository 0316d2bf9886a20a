// Package rapi drives the real binary with the RAPI client that Debian ships.
package rapi

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/testkit"
	"github.com/drover-project/drover/internal/testkit/stores"
)

// startLimit is how long a cluster may take to start. It only ends what hangs.
const startLimit = 2 * time.Minute

// TestStockClient drives `drover dev` and, with PostgreSQL, `drover serve`.
func TestStockClient(t *testing.T) {
	testkit.NeedPython(t, "ganeti.rapi.client", "python3-ganeti-rapi")
	bin := testkit.Build(t)
	stores.Each(t, func(t *testing.T, url string) { drive(t, bin, url) })
}

// drive runs all checks against a cluster with a store.
func drive(t *testing.T, bin, url string) {
	t.Helper()
	t.Parallel()
	testkit.RunChecks(t, "stock_client.py", startCluster(t, bin, url))
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
