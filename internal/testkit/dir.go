package testkit

import (
	"os"
	"path/filepath"
	"testing"
)

// OpenDir is a directory of a test that everybody may go into: those that T.TempDir makes are in one that is its owner's alone.
func OpenDir(t testing.TB) string {
	t.Helper()
	const open = 0o755
	dir := t.TempDir()
	for _, d := range []string{dir, filepath.Dir(dir)} {
		if err := os.Chmod(d, open); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}
