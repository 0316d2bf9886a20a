package testkit

import (
	"os/exec"
	"path/filepath"
	"testing"
)

// Build builds the program and returns its path, below a directory bin that
// lasts as long as the test.
func Build(t testing.TB) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "bin", "drover")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-o", path, "./cmd/drover")
	cmd.Dir = Root(t)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return path
}
