// Package stockganeti brings up a real Ganeti of Debian's packages, in namespaces
// of its own, for tests that hold Drover against it. That needs root.
package stockganeti

import (
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/drover-project/drover/internal/testkit"
)

// The account of the cluster's remote API.
const (
	User     = "admin"
	Password = "peer-test-only"
)

// Cluster is a Ganeti of one node that runs.
type Cluster struct {
	testing.TB

	scripts, state string
	env            []string
}

// Start brings a cluster up, and takes it down when the test ends. Namespace and
// directory are called by the name; further settings of the scripts are given as
// variables of the environment. The scripts are those of $DROVER_PEER, by default
// ../shared/peer beside the repository; without them the test is skipped.
func Start(t testing.TB, name string, settings ...string) *Cluster {
	t.Helper()
	c := &Cluster{TB: t, scripts: os.Getenv("DROVER_PEER"), state: "/var/lib/" + name}
	c.env = append(append(os.Environ(), "GP_NAME="+name), settings...)
	if c.scripts == "" {
		c.scripts = filepath.Join(testkit.Root(t), "..", "shared", "peer")
	}
	if _, err := os.Stat(c.scripts); err != nil {
		testkit.Missingf(t, "there are no scripts for a Ganeti: %v", err)
	}
	t.Cleanup(func() { c.script(context.Background(), "ganeti-down.sh", "--wipe") })
	c.script(t.Context(), "ganeti-up.sh")
	return c
}

// script runs one of the scripts.
func (c *Cluster) script(ctx context.Context, script string, args ...string) {
	c.Helper()
	cmd := exec.CommandContext(ctx, filepath.Join(c.scripts, script), args...)
	cmd.Env, cmd.Stdout, cmd.Stderr = c.env, c.Output(), c.Output()
	if err := cmd.Run(); err != nil {
		c.Fatalf("%s %q: %v", script, args, err)
	}
}

// Run runs a program within the cluster's namespaces.
func (c *Cluster) Run(args ...string) {
	c.Helper()
	c.script(c.Context(), "ganeti-exec.sh", args...)
}

// Inside is a program within the cluster's namespaces.
func (c *Cluster) Inside(args ...string) *exec.Cmd {
	cmd := exec.CommandContext(c.Context(), filepath.Join(c.scripts, "ganeti-exec.sh"), args...)
	cmd.Env, cmd.Stderr = c.env, c.Output()
	return cmd
}

// Path is where a file of the cluster's state is: below lib what the cluster has in
// /var/lib/ganeti, below run, etc and srv likewise.
func (c *Cluster) Path(elem ...string) string {
	return filepath.Join(append([]string{c.state}, elem...)...)
}

// LUXI is the path of the control socket.
func (c *Cluster) LUXI() string { return c.Path("run", "socket", "ganeti-query") }

// Restart stops a daemon and starts it.
func (c *Cluster) Restart(daemon string) {
	c.Helper()
	const daemons = "/usr/lib/ganeti/daemon-util"
	c.Run(daemons, "stop", daemon)
	c.Run("rm", "-f", "/run/ganeti/"+daemon+".pid") // it would not start
	c.Run(daemons, "start", daemon)
}

// Allocate puts every instance on the only node: Ganeti's own allocator wants
// room for what the loss of a node would move.
func (c *Cluster) Allocate(node string) {
	c.Helper()
	dir := c.Path("srv", "allocators")
	program := "#!/bin/sh\necho '{\"success\": true, \"info\": \"the only node\", \"result\": [\"" + node + "\"]}'\n"
	err := os.Mkdir(dir, 0o755) //nolint:gosec // the programs of others are run from there
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "hail"), []byte(program), 0o755)
	}
	if err != nil {
		c.Fatal(err)
	}
	c.Run("mount", "--bind", "/srv/ganeti/allocators", "/usr/lib/ganeti/iallocators")
}

// Dial connects to an address within the cluster's network. It is for numeric
// addresses.
func (c *Cluster) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	type dialled struct {
		conn net.Conn
		err  error
	}
	done := make(chan dialled, 1)
	go func() {
		runtime.LockOSThread() // and not unlocked: the thread ends with the goroutine
		conn, err := c.dial(ctx, network, address)
		done <- dialled{conn, err}
	}()
	d := <-done
	return d.conn, d.err
}

// dial moves the thread into the cluster's network for good.
func (c *Cluster) dial(ctx context.Context, network, address string) (net.Conn, error) {
	holder, err := os.ReadFile(c.Path("holder.pid"))
	if err != nil {
		return nil, err
	}
	space, err := os.Open(filepath.Join("/proc", strings.TrimSpace(string(holder)), "ns", "net"))
	if err != nil {
		return nil, err
	}
	defer func() { _ = space.Close() }()
	if err := unix.Setns(int(space.Fd()), unix.CLONE_NEWNET); err != nil {
		return nil, err
	}
	d := net.Dialer{Timeout: time.Minute}
	return d.DialContext(ctx, network, address)
}
