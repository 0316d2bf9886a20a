package lvm

import (
	"context"
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// piece is how much is overwritten at once: what a cancel waits for.
const piece = 64 * mib

// zero makes zeros of a device, from one MiB to another. The kernel does it, which devices can be quick at; where it cannot, zeros are written.
func zero(ctx context.Context, path string, from, to int) (err error) {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	var nothing []byte
	for at, end := int64(from)*mib, int64(to)*mib; at < end; at += piece {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		n := min(piece, end-at)
		err := unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_ZERO_RANGE|unix.FALLOC_FL_KEEP_SIZE, at, n)
		if err == nil {
			continue
		}
		if !errors.Is(err, unix.EOPNOTSUPP) {
			return err
		}
		if nothing == nil {
			nothing = make([]byte, piece)
		}
		if _, err := f.WriteAt(nothing[:n], at); err != nil {
			return err
		}
	}
	return f.Sync()
}
