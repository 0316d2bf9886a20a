package machines

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/testkit"
	"github.com/drover-project/drover/internal/testkit/pgserver"
)

// group is two controllers over PostgreSQL, and a node elsewhere that runs machines.
type group struct {
	*site
	store string
	run   [2]*testkit.Dev
	// at is where controllers take agents in, which stays the same.
	at [2]string
}

// dir is the directory of a controller, or of the node.
func (g *group) dir(what any) string { return filepath.Join(g.root(), fmt.Sprint(what)) }

// root is the directory of everything; that of a site is that of the controller that commands go to.
func (g *group) root() string { return filepath.Dir(g.data) }

func (g *group) beginController(n int) {
	g.Helper()
	dir := g.dir(n)
	cmd := exec.CommandContext(g.Context(), g.bin, "serve", "--name", fmt.Sprint("c", n), "--data", dir, "--luxi", filepath.Join(dir, "luxi.sock"), "--ready-file", filepath.Join(dir, "ready.json"),
		"--store", g.store, "--peer", "127.0.0.1:0", "--agent-address", cmp.Or(g.at[n], "127.0.0.1:0"), "--rapi", "127.0.0.1:0", "--compute", "127.0.0.1:0", "--log-level", "error", "--hypervisor", "kvm", "--accelerator", "tcg")
	cmd.Stderr = g.Output()
	g.run[n] = testkit.Start(g, cmd, dir)
	g.at[n] = g.run[n].Ready.AgentAddress
}

// join has the node elsewhere be there.
func (g *group) join() {
	g.Helper()
	lines := strings.Fields(g.drover("node", "token", "far.example"))
	token := lines[len(lines)-1]
	cmd := exec.CommandContext(g.Context(), g.bin, "agent", "join", token, "--data", g.dir("nodes/far"), "--log-level", "error", "--hypervisor", "kvm", "--accelerator", "tcg")
	cmd.Stderr, cmd.SysProcAttr = g.Output(), &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		g.Fatal(err)
	}
	g.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	for began := time.Now(); time.Since(began) < testkit.Patience(); time.Sleep(100 * time.Millisecond) { // each look is a process
		var rows []struct {
			Free *int `json:"mfree"`
		}
		if err := json.Unmarshal([]byte(g.drover("node", "list", "--output", "json", "--fields", "mfree", "far.example")), &rows); err != nil {
			g.Fatal(err)
		}
		if len(rows) == 1 && rows[0].Free != nil {
			return
		}
	}
	g.Fatalf("the agent of the node does not join")
}

// TestTakeOver kills the controller that leads while machines start and restart: the other goes on with that, and each machine runs once. Before that
// the one that stands by shows a user the screen of a server.
func TestTakeOver(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("qemu-system-x86_64"); err != nil {
		testkit.Missingf(t, "qemu-system-x86_64 is not installed")
	}
	pg := pgserver.Start(t, false)
	root := t.TempDir()
	g := &group{site: &site{TB: t, bin: testkit.Build(t), data: filepath.Join(root, "0"), nodes: filepath.Join(root, "nodes")}, store: pg.URL("machines")}
	t.Cleanup(g.endGuests)
	t.Cleanup(func() { // those on the nodes that each controller has itself: what was to be removed there stays when it is killed
		for _, pid := range g.holders(filepath.Join(g.root(), "*", "nodes", "*", "kvm", "*", "held")) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	})
	g.beginController(0)
	g.beginController(1)
	if err := os.MkdirAll(g.dir("nodes/far"), 0o700); err != nil {
		t.Fatal(err)
	}
	g.offer()
	g.join()
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience())
	defer cancel()
	password, err := os.ReadFile(filepath.Join(g.dir(0), "os_password"))
	if err != nil {
		t.Fatal(err)
	}
	lookAtAServer(ctx, t, g.run[1].Ready.Identity, strings.TrimSpace(string(password)))     // this one stands by, and passes all of it on
	g.drover("instance", "remove", "snf-1", "--yes", "--submit", "--shutdown-timeout", "3") // it may not listen yet, and all wait for that
	for _, name := range names {
		g.drover("instance", "add", name, "--os", "tiny", "--disk", "0:size=1M", "-B", "memory=64", "--name-check=no", "--ip-check=no", "--node", "far.example", "--submit")
	}
	for began := time.Now(); ; time.Sleep(50 * time.Millisecond) { // a controller that has just begun learns the key of the one that leads, without which it could not lead
		if _, err := os.Stat(filepath.Join(g.dir(1), "key")); err == nil {
			break
		}
		if time.Since(began) > testkit.Patience() {
			t.Fatal("the controller that stands by does not learn the key")
		}
	}
	for leads := range 2 { // it is killed; the other has the lead from then on
		g.run[leads].Kill()
		_ = g.run[leads].Gone()
		g.data = g.dir(1 - leads)
		k := &kills{site: g.site}
		k.settle()
		if jobs := g.drover("job", "list", "--no-headers", "-o", "id,status,summary,opresult"); strings.Contains(jobs, "error") {
			t.Errorf("behind the end of controller %d the jobs are\n%s", leads, jobs)
		}
		for _, name := range names {
			g.await(name, "GUEST-UP", 0)
		}
		if pids := g.guests(); len(pids) != len(names) {
			t.Errorf("behind the end of controller %d there are %d guests", leads, len(pids))
		}
		if leads == 0 {
			g.beginController(0)
			for _, name := range names {
				g.drover("instance", "reboot", "--type", "hard", name, "--submit")
			}
		}
	}
}
