// Package compute drives the real binary with the OpenStack clients that Debian
// ships.
package compute

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/drover-project/drover/internal/testkit"
)

func TestStockClients(t *testing.T) {
	testkit.NeedPython(t, "novaclient.shell, openstackclient.shell", "python3-novaclient and python3-openstackclient")
	data := filepath.Join(t.TempDir(), "data")
	dev := testkit.StartDev(t, testkit.Build(t), data)
	defer func() {
		if dev.Terminate(); dev.Gone() != nil {
			t.Error("drover dev did not end in good order")
		}
	}()
	for _, args := range [][]string{ // the operator's part
		{"network", "add", "office", "--network", "192.0.2.0/24", "--gateway", "192.0.2.1"}, {"network", "connect", "office", "default", "bridged", "br0"},
		{"network", "add-tags", "office", "drover:offered"}, {"network", "add", "management", "--network", "198.51.100.0/24"},
	} {
		cmd := exec.CommandContext(t.Context(), testkit.Build(t), append([]string{"--luxi", dev.Ready.LUXI}, args...)...)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
	}
	testkit.RunChecks(t, "stock_client.py", filepath.Join(data, "ready.json"))
}
