package testkit

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// Build returns the path of the program, below a directory bin that lasts as
// long as the test. $DROVER_TEST_BINARY names one that was built already, as
// `make test` does, for linking it takes longer than many tests; without that it
// is built.
func Build(t testing.TB) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "bin", "drover")
	if built := os.Getenv("DROVER_TEST_BINARY"); built != "" {
		link(t, built, path)
		return path
	}
	cmd := exec.CommandContext(t.Context(), "go", "build", "-ldflags", "-s -w", "-o", path, "./cmd/drover")
	cmd.Dir = Root(t)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return path
}

// link has path lead to a program. Looking at the program makes the results
// that the go command keeps of tests depend on it.
func link(t testing.TB, program, path string) {
	t.Helper()
	if _, err := os.Stat(program); err != nil {
		t.Fatalf("$DROVER_TEST_BINARY: %v", err)
	}
	if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(program, path); err != nil {
		t.Fatal(err)
	}
}
