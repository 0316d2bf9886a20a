// Package wholefile puts files in place that are read whole, or not at all.
//
// Invariants:
//   - A reader, and a machine that lost its power, finds what was written or what was there before, and nothing in between
//     (TestWhatFailsLeavesWhatWasThere; that it is flushed first shows in the code alone).
//   - A file that is not shared is its owner's alone, from its first moment on (TestNobodyElseReads).
package wholefile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// Write puts a file in place, readable by its owner alone.
func Write(path string, text []byte) error {
	const private = 0o600
	return write(path, text, private)
}

// Share puts a file in place that everybody may read, and nobody is to change.
func Share(path string, text []byte) error {
	const shared = 0o444
	return write(path, text, shared)
}

func write(path string, text []byte, mode fs.FileMode) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".new-*") // it is its owner's alone
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err == nil && mode.Perm() != 0o600 {
		err = f.Chmod(mode)
	}
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		if left := os.Remove(f.Name()); !errors.Is(left, fs.ErrNotExist) {
			err = errors.Join(err, left)
		}
		return err
	}
	return Flush(filepath.Dir(path))
}

// Flush has the names of a directory on disk.
func Flush(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
