//go:build ganeti

package compute

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/api/rapi"
	"github.com/drover-project/drover/internal/testkit"
)

// peer is a real Ganeti of Debian's packages, in namespaces of its own.
type peer struct {
	*testing.T
	scripts, state string
	env            []string
}

// startPeer brings the cluster up, and takes it down when the test ends. The
// scripts for that are those of $DROVER_PEER, by default ../shared/peer beside the
// repository.
func startPeer(t *testing.T) *peer {
	t.Helper()
	const name = "drovertest"
	p := &peer{T: t, scripts: os.Getenv("DROVER_PEER"), state: "/var/lib/" + name, env: append(os.Environ(), "GP_NAME="+name)}
	if p.scripts == "" {
		p.scripts = filepath.Join(testkit.Root(t), "..", "shared", "peer")
	}
	if _, err := os.Stat(p.scripts); err != nil {
		testkit.Missingf(t, "there are no scripts for a Ganeti: %v", err)
	}
	t.Cleanup(func() { p.run(context.Background(), "ganeti-down.sh", "--wipe") })
	p.run(t.Context(), "ganeti-up.sh")
	return p
}

// run runs one of the scripts.
func (p *peer) run(ctx context.Context, script string, args ...string) {
	p.Helper()
	cmd := exec.CommandContext(ctx, filepath.Join(p.scripts, script), args...)
	cmd.Env, cmd.Stdout, cmd.Stderr = p.env, p.Output(), p.Output()
	if err := cmd.Run(); err != nil {
		p.Fatalf("%s %q: %v", script, args, err)
	}
}

// inside is a program within the cluster's namespaces.
func (p *peer) inside(args ...string) *exec.Cmd {
	cmd := exec.CommandContext(p.Context(), filepath.Join(p.scripts, "ganeti-exec.sh"), args...)
	cmd.Env, cmd.Stderr = p.env, p.Output()
	return cmd
}

// vouch gives the remote API a certificate for the address that it is reached at,
// and returns the path of that; Ganeti's own names no address.
func (p *peer) vouch() string {
	p.Helper()
	path := filepath.Join(p.TempDir(), "rapi.pem")
	if _, err := rapi.OpenCertificate(path, time.Now()); err != nil {
		p.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(filepath.Join(p.state, "lib", "rapi.pem"), text, 0o600) // it keeps its owner and mode
	}
	if err != nil {
		p.Fatal(err)
	}
	const daemons = "/usr/lib/ganeti/daemon-util"
	p.run(p.Context(), "ganeti-exec.sh", daemons, "stop", "ganeti-rapi")
	p.run(p.Context(), "ganeti-exec.sh", "rm", "-f", "/run/ganeti/ganeti-rapi.pid")
	p.run(p.Context(), "ganeti-exec.sh", daemons, "start", "ganeti-rapi")
	return path
}

// allocate puts every instance on the only node: Ganeti's own allocator wants
// room for what the loss of a node would move.
func (p *peer) allocate() {
	p.Helper()
	const beneath, within = "srv/allocators", "/srv/ganeti/allocators"
	dir := filepath.Join(p.state, beneath)
	const program = "#!/bin/sh\necho '{\"success\": true, \"info\": \"the only node\", \"result\": [\"node1.gntpeer.example\"]}'\n"
	err := os.Mkdir(dir, 0o755)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "hail"), []byte(program), 0o755)
	}
	if err != nil {
		p.Fatal(err)
	}
	p.run(p.Context(), "ganeti-exec.sh", "mount", "--bind", within, "/usr/lib/ganeti/iallocators")
}

// TestBurninOnStockGaneti: the functional tests pass with servers on a real
// Ganeti. The controller runs within its network, where nothing else is.
func TestBurninOnStockGaneti(t *testing.T) {
	bin, dir, p := testkit.Build(t), t.TempDir(), startPeer(t)
	// The image of the catalogue has no variants.
	if err := os.Remove(filepath.Join(p.state, "srv", "os", "noop", "variants.list")); err != nil {
		t.Fatal(err)
	}
	p.allocate()
	clusters := clusterFile(t, "stock", "https://127.0.0.1:5080", "admin", "peer-test-only", p.vouch())
	data := filepath.Join(dir, "near")
	testkit.Start(t, p.inside(bin, "dev", "--data", data, "--rapi", "127.0.0.1:0", "--demo=false", "--server-clusters", clusters), data)
	burnin(t, p.inside("env", "DROVER_READY_FILE="+filepath.Join(data, "ready.json"), bin, "burnin", "--availability-zone", "stock", "--output", "json"))
}
