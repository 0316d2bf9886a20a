package testkit

import (
	"syscall"
	"testing"
)

// SmallDisk is a directory on a file system of its own, of a size such as 32m. Who cannot make one skips the test.
func SmallDisk(tb testing.TB, size string) string {
	tb.Helper()
	dir := tb.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size="+size); err != nil {
		tb.Skipf("a small file system takes root: %v", err)
	}
	tb.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			tb.Error(err)
		}
	})
	return dir
}
