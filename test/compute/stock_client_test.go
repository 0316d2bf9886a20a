// Package compute drives the real binary with the OpenStack clients that Debian
// ships.
package compute

import (
	"bufio"
	"context"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/testkit"
)

// python is Debian's own interpreter, which sees Debian's packages.
const python = "/usr/bin/python3"

// checkLimit is how long all checks may take. It only ends what hangs.
const checkLimit = 7 * time.Minute

func TestStockClients(t *testing.T) {
	if err := exec.CommandContext(t.Context(), python, "-c", "import novaclient.shell, openstackclient.shell").Run(); err != nil {
		testkit.Missingf(t, "python3-novaclient and python3-openstackclient are not installed")
	}
	data := filepath.Join(t.TempDir(), "data")
	dev := testkit.StartDev(t, testkit.Build(t), data)
	defer func() {
		if dev.Terminate(); dev.Gone() != nil {
			t.Error("drover dev did not end in good order")
		}
	}()
	ctx, cancel := context.WithTimeout(t.Context(), checkLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, python, "stock_client.py", filepath.Join(data, "ready.json"))
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
		var line struct{ Check, Error string }
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			t.Errorf("the clients wrote %q", lines.Text())
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
		t.Fatalf("the clients ended after %d checks: %v", checks, err)
	}
	t.Logf("%d checks with the stock clients", checks)
}
