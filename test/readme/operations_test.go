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

// asOrdinaryUser has a user who may run PostgreSQL carry out a script in a directory that is $D, with drover in the path, and returns what
// was said.
func asOrdinaryUser(t *testing.T, script string, environment ...string) string {
	t.Helper()
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
	cmd.Env = append([]string{"HOME=" + dir, "D=" + filepath.Join(dir, "d"), "PATH=" + dir + ":" + os.Getenv("PATH")}, environment...)
	// A group of its own: what the steps leave behind when they fail ends with it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: user, Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.Stdin = strings.NewReader(script)
	out, err := cmd.CombinedOutput()
	if err != nil {
		if cmd.Process != nil {
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		}
		t.Fatalf("%v\n%s\n-- said\n%s", err, script, out)
	}
	return string(out)
}

// page are the commands of all sections of a page, one behind the other.
func page(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(testkit.Root(t), path))
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for line := range strings.Lines(string(text)) {
		if title := strings.TrimSuffix(line, "\n"); strings.HasPrefix(title, "## ") {
			all.WriteString(testkit.Commands(t, path, title))
		}
	}
	return all.String()
}

// says checks that each of some texts was said.
func says(t *testing.T, out string, wanted ...string) {
	t.Helper()
	for _, want := range wanted {
		if !strings.Contains(out, want) {
			t.Errorf("nothing says %q:\n%s", want, out)
		}
	}
}

// The operators' guide leads to three controllers over PostgreSQL, as it is
// written.
func TestThreeControllersStepByStep(t *testing.T) {
	out := asOrdinaryUser(t, testkit.Commands(t, "docs/operations.md", "### Step by step"))
	says(t, out, "\nc1   leader ", "standby", "shop1", "\nc2\n", "objects as of revision", "are consistent", "not older than revision")
}

// The page about PostgreSQL can be followed from its beginning to its end: over TLS, by a dump, to a point in time, over to a replica.
func TestPostgreSQLPage(t *testing.T) {
	ports := testkit.FreePorts(t, 2)
	out := asOrdinaryUser(t, page(t, "docs/postgresql.md"), "PORT="+ports[0], "SECOND="+ports[1])
	says(t, out, "shop1", "shop3", "are consistent", "shop2")
}

// The page about upgrades can be followed, with one program in the place of both.
func TestUpgradePage(t *testing.T) {
	out := asOrdinaryUser(t, page(t, "docs/upgrade.md"))
	says(t, out, "c2   leader ", "c1   standby", "objects as of revision", "compared them", "shop1")
}
