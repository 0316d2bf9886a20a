package compute

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/drover-project/drover/internal/testkit"
)

// burnin runs a drover burnin that tells its results as JSON; each test that
// failed fails this one.
func burnin(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	out, err := cmd.Output()
	var results []struct {
		Test   string `json:"test"`
		Passed bool   `json:"passed"`
		Error  string `json:"error"`
	}
	if jsonErr := json.Unmarshal(out, &results); jsonErr != nil {
		t.Fatalf("%v: %s", jsonErr, out)
	}
	for _, r := range results {
		if !r.Passed {
			t.Errorf("%s: %s", r.Test, r.Error)
		}
	}
	if err != nil || len(results) == 0 {
		t.Errorf("%d tests: %v", len(results), err)
	}
}

// clusterFile writes down a further cluster for servers, and returns the path.
func clusterFile(t *testing.T, name, url, user, password, ca string) string {
	t.Helper()
	dir := t.TempDir()
	file, secret := filepath.Join(dir, "clusters.toml"), filepath.Join(dir, "password")
	text := fmt.Sprintf("[[cluster]]\nname = %q\nurl = %q\nuser = %q\npassword-file = %q\nca = %q\npoll = \"100ms\"\n", name, url, user, secret, ca)
	for path, text := range map[string]string{file: text, secret: password} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return file
}

// TestBurnin: the functional tests pass with servers on the own cluster, and on
// that of another controller, reached over its RAPI.
func TestBurnin(t *testing.T) {
	bin, dir := testkit.Build(t), t.TempDir()
	far := testkit.StartDev(t, bin, filepath.Join(dir, "far"))
	clusters := clusterFile(t, "far", far.Ready.RAPI, far.Ready.User, far.Ready.Password, filepath.Join(dir, "far", "rapi", "rapi.pem"))
	near := testkit.StartDev(t, bin, filepath.Join(dir, "near"), "--server-clusters", clusters)
	for _, zone := range []string{"nova", "far"} {
		t.Run(zone, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), bin, "burnin", "--availability-zone", zone, "--output", "json")
			cmd.Env = append(os.Environ(), "DROVER_READY_FILE="+filepath.Join(dir, "near", "ready.json"), "OS_CLOUD=", "OS_AUTH_URL=")
			cmd.Stderr = t.Output()
			burnin(t, cmd)
		})
	}
	for _, dev := range []*testkit.Dev{near, far} {
		if dev.Terminate(); dev.Gone() != nil {
			t.Error("drover dev did not end in good order")
		}
	}
}
