// Package tinyguesttest hands tests the tiny guest, and boots it.
//
// Invariants:
//   - Packages are fetched once, and a guest is made once, for all tests of a machine: they are kept below .cache.
//   - Where something is missing to make or boot one, the test is skipped, visibly, unless $DROVER_SKIP_NOTHING says that nothing
//     may be skipped.
//   - A machine ends with its test.
package tinyguesttest

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/testkit"
	"github.com/drover-project/drover/internal/tinyguest"
)

// Guest is the guest of this machine, made if there is none yet. Machines run as users without rights, so where the checkout is closed to others the
// test has a copy for itself that is not.
func Guest(t testing.TB) tinyguest.Guest {
	t.Helper()
	kept := filepath.Join(testkit.Root(t), ".cache", "tinyguest")
	g := Built(t, kept)
	if testkit.IsOpen(filepath.Dir(g.Kernel)) {
		return g
	}
	dir := testkit.OpenDir(t)
	if err := os.CopyFS(dir, os.DirFS(kept)); err != nil {
		t.Fatal(err)
	}
	return Built(t, dir)
}

// Built is the guest in a directory, made if there is none, of packages that are kept for all tests.
func Built(t testing.TB, dir string) tinyguest.Guest {
	t.Helper()
	g, err := tinyguest.Build(t.Context(), tinyguest.Options{
		Dir:      dir,
		Packages: filepath.Join(testkit.Root(t), ".cache", "packages"),
		Progress: func(text string) { t.Log("the tiny guest:", text) },
	})
	if fault.Is(err, fault.Unavailable) || fault.Is(err, fault.Environment) {
		testkit.Missingf(t, "the tiny guest cannot be made: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return g
}
