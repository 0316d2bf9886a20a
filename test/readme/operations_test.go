package readme

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/drover-project/drover/internal/testkit"
	"github.com/drover-project/drover/internal/testkit/pgserver"
)

// The operators' guide leads to three controllers over PostgreSQL, as it is
// written.
func TestThreeControllersStepByStep(t *testing.T) {
	built := testkit.Build(t)
	dir, err := os.MkdirTemp("", "three") //nolint:usetesting // sockets need short paths, and the user of the database must be able to enter
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	program, err := os.ReadFile(built)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "drover"), program, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	user := pgserver.User(t) // PostgreSQL does not run as root
	if user != nil {
		if err := os.Chown(dir, int(user.Uid), int(user.Gid)); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-eu")
	cmd.Dir = dir
	cmd.Env = []string{"HOME=" + dir, "D=" + filepath.Join(dir, "d"), "PATH=" + dir + ":" + os.Getenv("PATH")}
	// A group of its own: what the steps leave behind when they fail ends with it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: user, Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	script := testkit.Commands(t, "docs/operations.md", "### Step by step")
	cmd.Stdin = strings.NewReader(script)
	out, err := cmd.CombinedOutput()
	if err != nil {
		if cmd.Process != nil {
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		}
		t.Fatalf("%v\n%s\n-- said\n%s", err, script, out)
	}
	for _, want := range []string{"\nc1   leader ", "standby", "shop1", "\nc2\n", "objects as of revision", "are consistent", "not older than revision"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("nothing says %q:\n%s", want, out)
		}
	}
}
