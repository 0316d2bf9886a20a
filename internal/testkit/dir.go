package testkit

import (
	"os"
	"path/filepath"
	"testing"
)

// OpenDir is a directory of a test that everybody may go into: those that T.TempDir makes are in one that is its owner's alone, and a checkout may
// be in another.
func OpenDir(t testing.TB) string {
	t.Helper()
	dir, err := MakeOpenDir()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// MakeOpenDir is OpenDir for who removes the directory by himself.
func MakeOpenDir() (string, error) {
	const open = 0o755
	base := os.TempDir()
	if !IsOpen(base) {
		base = "/var/tmp"
	}
	dir, err := os.MkdirTemp(base, "drover-open")
	if err == nil {
		err = os.Chmod(dir, open)
	}
	return dir, err
}

// IsOpen reports whether everybody may go into a directory.
func IsOpen(dir string) bool {
	const goes = 0o001
	dir, err := filepath.EvalSymlinks(dir)
	for err == nil {
		info, failed := os.Stat(dir)
		if failed != nil || info.Mode().Perm()&goes == 0 {
			return false
		}
		if dir == filepath.Dir(dir) {
			return true
		}
		dir = filepath.Dir(dir)
	}
	return false
}
