//go:build ganeti

package compute

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/testkit"
	"github.com/drover-project/drover/internal/testkit/stockganeti"
)

// TestRebuildOnStockGaneti: a server on a real Ganeti is rebuilt by one job there, running or stopped.
func TestRebuildOnStockGaneti(t *testing.T) {
	bin, dir, c := testkit.Build(t), t.TempDir(), stockganeti.Start(t, "drovertest")
	c.Allocate("node1.gntpeer.example")
	clusters := clusterFile(t, "stock", "https://127.0.0.1:5080", stockganeti.User, stockganeti.Password, vouch(c))
	data := filepath.Join(dir, "near")
	testkit.Start(t, c.Inside(bin, "dev", "--data", data, "--rapi", "127.0.0.1:0", "--demo=false", "--server-clusters", clusters), data)
	run := func(args ...string) string {
		t.Helper()
		out, err := c.Inside(append([]string{"env", "DROVER_READY_FILE=" + filepath.Join(data, "ready.json"), bin}, args...)...).Output()
		if err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
		return string(out)
	}
	run("server", "create", "one", "--flavor", "m1.tiny", "--image", "noop", "--availability-zone", "stock", "--wait")
	run("server", "rebuild", "one", "--image", "noop", "--yes", "--wait")
	if is := run("query", "server", "-o", "status,fault", "--no-headers"); !strings.HasPrefix(is, "ACTIVE") {
		t.Errorf("it is %s", is)
	}
	run("server", "stop", "one", "--wait")
	run("server", "rebuild", "one", "--image", "noop", "--yes", "--wait")
	if is := run("query", "server", "-o", "status,fault", "--no-headers"); !strings.HasPrefix(is, "SHUTOFF") {
		t.Errorf("it is %s", is)
	}
	if acts := run("query", "server", "-o", "actions", "--output", "json"); strings.Count(acts, `"rebuild"`) != 2 || strings.Contains(acts, "fail") {
		t.Errorf("what was done to it is %s", acts)
	}
}
