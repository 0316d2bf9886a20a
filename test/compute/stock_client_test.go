// Package compute drives the real binary with the OpenStack clients that Debian
// ships.
package compute

import (
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
	testkit.RunChecks(t, "stock_client.py", filepath.Join(data, "ready.json"))
}
