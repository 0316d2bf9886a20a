package luxi

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/testkit"
)

// confdAddress is one at which nobody listens, at the port where Ganeti's programs ask: all of 127/8 is this machine.
func confdAddress(t *testing.T) string {
	t.Helper()
	for {
		at := fmt.Sprintf("127.%d.%d.%d:1814", 1+rand.IntN(254), rand.IntN(256), 1+rand.IntN(254))
		if conn, err := net.ListenPacket("udp", at); err == nil {
			if err := conn.Close(); err != nil {
				t.Fatal(err)
			}
			return at
		}
	}
}

// startForStock starts a cluster of which Ganeti's programs find everything, in the environment that it returns.
func startForStock(t *testing.T, root, confd string, args ...string) (env []string) {
	t.Helper()
	// The end of a directory that Ganeti's programs are told to live in names the host.
	const host = "node1.drover.example"
	dir := t.TempDir()
	home := filepath.Join(dir, host)
	cluster := testkit.StartDev(t, testkit.Build(t), filepath.Join(dir, "data"), append([]string{"--ganeti-dir", home, "--confd", confd}, args...)...)
	t.Cleanup(func() { _ = cluster.Gone() })
	return append(pythonOf(root), "GANETI_ROOTDIR="+home, "GANETI_HOSTNAME="+host)
}

// TestConfd has Ganeti's own library ask all that it can, and read all files about the cluster.
func TestConfd(t *testing.T) {
	root := stockRoot(t)
	env := startForStock(t, root, confdAddress(t))
	const questions = `[[0, null], [1, "node1.drover.example"], [1, "node2.drover.example"], [1, "nosuch"], [3, null], [3, {"3": [0]}], [6, null], [2, {"1": "192.0.2.77"}], [10, "/cluster"]]`
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, testkit.Python, filepath.Join(testkit.Root(t), "test/luxi/confd_client.py"), questions)
	cmd.Env = env
	cmd.Stderr = t.Output()
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Answers    [][2]any
		Files      map[string]string
		Missing    []string
		Master     string
		Candidates []string
		HVParams   map[string]string
	}
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	want := [][2]any{{0.0, 3000000.0}, {0.0, 0.0}, {0.0, 1.0}, {1.0, got.Answers[3][1]}, {0.0, "node1.drover.example"}, {0.0, []any{"node1.drover.example"}}, {0.0, []any{}}, {1.0, 0.0},
		{2.0, "this question is not answered here"}}
	if !reflect.DeepEqual(got.Answers, want) {
		t.Errorf("answered %v, want %v", got.Answers, want)
	}
	if len(got.Missing) > 0 || got.Master != "node1.drover.example" || !reflect.DeepEqual(got.Candidates, []string{"node1.drover.example", "node2.drover.example"}) ||
		got.Files["node_list"] != "node1.drover.example\nnode2.drover.example" || got.HVParams["migration_mode"] != "live" {
		t.Errorf("%s", out)
	}
}

// TestWatcher has Ganeti's watcher look after a cluster: it finds RAPI, the files and the sockets, and has nothing to warn of.
func TestWatcher(t *testing.T) {
	root := stockRoot(t)
	at := confdAddress(t)
	address, _, _ := net.SplitHostPort(at)
	// Its port is RAPI's; which address that is at can be said.
	env := startForStock(t, root, at, "--rapi", address+":5080")
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, testkit.Python, filepath.Join(testkit.Root(t), "test/luxi/watcher.py"), "--debug", "--ignore-pause", "--rapi-ip", address, "--wait-children")
	cmd.Env = env
	out, err := cmd.CombinedOutput()
	if err != nil || strings.Contains(string(out), "WARNING") || !strings.Contains(string(out), "Successfully talked to remote API") {
		t.Errorf("%v\n%s", err, out)
	}
}
