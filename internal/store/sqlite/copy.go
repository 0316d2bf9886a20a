package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"github.com/drover-project/drover/internal/fault"
)

// Copy makes a copy of the store in a directory, also while a controller uses it: it is the store of a place, in a directory
// of the same name below it, and the one file is all of it. The copy that the place had is replaced. What is not finished lies
// elsewhere, so that nobody takes it for a store: a place that is there is whole. Errors: fault.Exhausted where there is no room.
func Copy(ctx context.Context, dir, place string) error {
	part := beside(place, ".part")
	err := os.RemoveAll(part) // of one that was killed, which may be what the room is missing for
	if err == nil {
		err = haveRoom(filepath.Join(dir, FileName), filepath.Dir(place))
	}
	if err == nil {
		err = copyInto(ctx, dir, filepath.Join(part, filepath.Base(dir)))
	}
	if err == nil {
		err = putInPlace(part, place)
	}
	if err == nil {
		return nil
	}
	return errors.Join(copyError(err), os.RemoveAll(part))
}

// beside is a name that nobody takes for the place itself.
func beside(place, suffix string) string {
	return filepath.Join(filepath.Dir(place), "."+filepath.Base(place)+suffix)
}

func copyError(err error) error {
	if noRoom(err) {
		return fault.New(fault.Exhausted, "there was no room for a copy of the store: %w", err)
	}
	if _, ok := errors.AsType[*fault.Error](err); ok {
		return err
	}
	return fault.New(fault.Environment, "cannot make a copy of the store: %w", err)
}

// haveRoom refuses a copy of a database that would leave its disk full.
func haveRoom(database, dir string) error {
	var needed uint64
	for _, file := range []string{database, database + "-wal"} {
		if info, err := os.Stat(file); err == nil {
			needed += uint64(info.Size())
		}
	}
	return HaveRoom(needed, dir)
}

// HaveRoom refuses, with fault.Exhausted, what would leave a disk full on which a store may be: so many bytes in a directory.
func HaveRoom(needed uint64, dir string) error {
	var disk syscall.Statfs_t
	if err := syscall.Statfs(dir, &disk); err != nil {
		return err
	}
	return roomFor(needed, disk.Bavail*uint64(disk.Bsize), dir)
}

// spare is what a copy leaves free: the store goes on beside it, and its log grows.
const spare = 8 << 20

func roomFor(needed, free uint64, dir string) error {
	if needed+spare <= free {
		return nil
	}
	const mib = 1 << 20
	return fault.New(fault.Exhausted, "there is no room for a copy of the store: it needs up to %.1f MiB, and %.1f MiB are free in %s", float64(needed+spare)/mib, float64(free)/mib, dir)
}

// copyInto makes the copy, and has it on the disk.
func copyInto(ctx context.Context, dir, to string) error {
	if err := os.MkdirAll(to, 0o700); err != nil {
		return err
	}
	file := filepath.Join(to, FileName)
	err := createPrivate(file)
	if err == nil {
		err = vacuum(ctx, filepath.Join(dir, FileName), file)
	}
	if err == nil {
		err = syncFile(file)
	}
	if err == nil {
		err = giveToOwner(filepath.Dir(to), to, file)
	}
	if err == nil {
		err = errors.Join(syncDir(to), syncDir(filepath.Dir(to)))
	}
	return err
}

func syncFile(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// putInPlace gives what is whole its name, in the place of what had it: that goes when the other is there.
func putInPlace(part, place string) error {
	old := beside(place, ".old")
	if err := os.RemoveAll(old); err != nil {
		return err
	}
	if err := os.Rename(place, old); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := os.Rename(part, place); err != nil {
		return fmt.Errorf("what was copied cannot be given its name: %w", err)
	}
	return errors.Join(syncDir(filepath.Dir(place)), os.RemoveAll(old))
}
