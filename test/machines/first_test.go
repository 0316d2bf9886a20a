package machines

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/testkit"
	"github.com/drover-project/drover/internal/tinyguest/tinyguesttest"
)

// TestAFirstMachine does what docs/machines.md tells: one command has a Linux come up to its login, in which somebody logs in; the commands that
// follow work as they are written.
func TestAFirstMachine(t *testing.T) {
	t.Parallel()
	guest := tinyguesttest.Guest(t)
	cache := t.TempDir() // where the program keeps its own
	if err := os.MkdirAll(filepath.Join(cache, "drover"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Dir(filepath.Dir(guest.Kernel)), filepath.Join(cache, "drover", "guest")); err != nil {
		t.Fatal(err)
	}
	s := &site{TB: t, bin: testkit.Build(t), data: t.TempDir()}
	t.Cleanup(s.endGuests)
	cmd := exec.CommandContext(t.Context(), s.bin, "dev", "--hypervisor", "kvm", "--accelerator", "tcg", "--data", s.data, "--rapi", "127.0.0.1:0")
	cmd.Env, cmd.Stderr = append(os.Environ(), "XDG_CACHE_HOME="+cache), t.Output()
	s.dev = testkit.Start(t, cmd, s.data)
	s.appears("guest1.drover.example") // it is made when the cluster is ready
	at := s.await("guest1", "login: ", 0)
	s.key("guest1", "root\n")
	at = s.await("guest1", "# ", at)
	s.key("guest1", "echo answer-$((6*7))\n")
	s.await("guest1", "answer-42", at)
	s.drover("instance", "modify", "guest1", "--hotplug", "--disk", "add:size=4M", "--net", "add", "--yes")
	s.drover("instance", "modify", "guest1", "--hotplug", "--disk", "remove", "--net", "remove", "--yes") // the guest lets go of them
	if disks, err := filepath.Glob(filepath.Join(s.data, "nodes", "*", "disks", "*")); err != nil || len(disks) != 1 {
		t.Errorf("the disks are %v, %v", disks, err)
	}

	follow := exec.CommandContext(t.Context(), "sh", "-eu")
	follow.Dir = filepath.Dir(filepath.Dir(s.bin)) // where bin/drover is
	follow.Env = append(os.Environ(), "DROVER_LUXI="+filepath.Join(s.data, "luxi.sock"))
	follow.Stdin = strings.NewReader(testkit.Commands(t, "docs/machines.md", "## What can be done with it"))
	out, err := follow.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "GUEST-UP") {
		t.Errorf("%v\n%s", err, out)
	}
}
