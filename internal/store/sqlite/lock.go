package sqlite

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/drover-project/drover/internal/fault"
)

// lockDir takes the directory for this process, until the file is closed or
// the process ends, however it ends. The file names the process for whoever is refused.
func lockDir(dir string) (*os.File, error) {
	const private = 0o600
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE, private)
	if err != nil {
		return nil, fault.New(fault.Environment, "cannot lock the directory of the store: %w", err)
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, errors.Join(busy(dir, f), f.Close())
	}
	if err == nil {
		err = f.Truncate(0)
	}
	if err == nil {
		_, err = fmt.Fprintf(f, "%d\n", os.Getpid())
	}
	if err != nil && !noRoom(err) { // it names the process for whoever is refused, and that alone is lost
		return nil, errors.Join(fault.New(fault.Environment, "cannot lock the directory of the store: %w", err), f.Close())
	}
	return f, nil
}

func busy(dir string, f io.Reader) error {
	pid, err := io.ReadAll(f)
	if err != nil || len(pid) == 0 {
		return fault.New(fault.Busy, "another process uses the store in %s", dir)
	}
	return fault.New(fault.Busy, "process %s uses the store in %s", strings.TrimSpace(string(pid)), dir)
}
