//go:build ganeti

package compute

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/api/rapi"
	"github.com/drover-project/drover/internal/testkit"
	"github.com/drover-project/drover/internal/testkit/stockganeti"
)

// vouch gives the remote API a certificate for the address that it is reached at,
// and returns the path of that; Ganeti's own names no address.
func vouch(c *stockganeti.Cluster) string {
	c.Helper()
	path := filepath.Join(c.TempDir(), "rapi.pem")
	if _, err := rapi.OpenCertificate(path, time.Now()); err != nil {
		c.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(c.Path("lib", "rapi.pem"), text, 0o600) // it keeps its owner and mode
	}
	if err != nil {
		c.Fatal(err)
	}
	c.Restart("ganeti-rapi")
	return path
}

// TestBurninOnStockGaneti: the functional tests pass with servers on a real
// Ganeti. The controller runs within its network, where nothing else is.
func TestBurninOnStockGaneti(t *testing.T) {
	bin, dir, c := testkit.Build(t), t.TempDir(), stockganeti.Start(t, "drovertest")
	// The image of the catalogue has no variants.
	if err := os.Remove(c.Path("srv", "os", "noop", "variants.list")); err != nil {
		t.Fatal(err)
	}
	c.Allocate("node1.gntpeer.example")
	clusters := clusterFile(t, "stock", "https://127.0.0.1:5080", stockganeti.User, stockganeti.Password, vouch(c))
	data := filepath.Join(dir, "near")
	testkit.Start(t, c.Inside(bin, "dev", "--data", data, "--rapi", "127.0.0.1:0", "--demo=false", "--server-clusters", clusters), data)
	burnin(t, c.Inside("env", "DROVER_READY_FILE="+filepath.Join(data, "ready.json"), bin, "burnin", "--availability-zone", "stock", "--output", "json"))
}
