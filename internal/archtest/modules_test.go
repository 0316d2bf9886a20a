package archtest

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// goList asks go about a module.
func goList(t *testing.T, format, module string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", format, module)
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list -m %s: %v", module, err)
	}
	return strings.TrimSpace(string(out))
}

// TestSQLiteHasItsOwnLibc fails when the C library that SQLite was translated against is
// not the one it is linked with: an upgrade that is taken back leaves the newer one
// behind, and the two are only tested together in equal versions.
func TestSQLiteHasItsOwnLibc(t *testing.T) {
	const libc = "modernc.org/libc"
	if _, err := os.Stat(root + "/go.mod"); err != nil { // the result depends on it
		t.Fatal(err)
	}
	data, err := os.ReadFile(goList(t, "{{.GoMod}}", "modernc.org/sqlite"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(data), libc+" ")
	if !ok {
		t.Fatal("SQLite's go.mod does not name its C library")
	}
	want, _, _ := strings.Cut(rest, "\n")
	if have := goList(t, "{{.Version}}", libc); have != want {
		t.Errorf("%s is at %s, SQLite wants %s: go get %s@%s", libc, have, want, libc, want)
	}
}
