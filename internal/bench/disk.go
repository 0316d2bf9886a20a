package bench

import (
	"os"
	"slices"
	"syscall"
	"time"

	"github.com/drover-project/drover/internal/fault"
)

// Fdatasync measures the unit of all figures: the median time of a 4 KiB block
// appended to a file in the directory and made durable by fdatasync, over so
// many blocks. It leaves nothing behind.
func Fdatasync(dir string, blocks int) (median time.Duration, err error) {
	f, err := os.CreateTemp(dir, "drover-bench-*")
	if err != nil {
		return 0, fault.New(fault.Environment, "cannot measure the disk: %w", err)
	}
	defer func() {
		_ = f.Close() // it holds nothing
		_ = os.Remove(f.Name())
	}()
	block := make([]byte, 4096)
	took := make([]time.Duration, blocks)
	for i := range took {
		start := time.Now()
		if _, err := f.Write(block); err != nil {
			return 0, fault.New(fault.Environment, "cannot measure the disk: %w", err)
		}
		if err := syscall.Fdatasync(int(f.Fd())); err != nil {
			return 0, fault.New(fault.Environment, "cannot measure the disk: %w", err)
		}
		took[i] = time.Since(start)
	}
	slices.Sort(took)
	return took[blocks/2], nil
}
