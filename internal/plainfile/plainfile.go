// Package plainfile opens files of the machine that somebody else names, who may read less of it than the program may.
//
// Invariants:
//   - What is no plain file is never opened: a pipe would wait, and opening a device may do something (TestWhatIsNoFileIsNotOpened).
//   - What everybody may read is what everybody may reach as well (TestWhatKeepsEverybodyOut).
package plainfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// ErrNotPlain is about a path of something else than a plain file.
var ErrNotPlain = errors.New("it is no plain file")

// Open opens a plain file to be read. What is there is looked at first, and that is what is opened.
func Open(path string) (*os.File, error) {
	found, err := open(path, unix.O_PATH)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	defer func() { _ = unix.Close(found) }()
	var is unix.Stat_t
	if err := unix.Fstat(found, &is); err != nil {
		return nil, &fs.PathError{Op: "stat", Path: path, Err: err}
	}
	if is.Mode&unix.S_IFMT != unix.S_IFREG {
		return nil, ErrNotPlain
	}
	opened, err := open(descriptor(found), unix.O_RDONLY)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return os.NewFile(uintptr(opened), path), nil
}

func open(path string, flags int) (int, error) {
	for {
		if fd, err := unix.Open(path, flags|unix.O_CLOEXEC, 0); !errors.Is(err, unix.EINTR) {
			return fd, err
		}
	}
}

// descriptor is the path of what is open.
func descriptor(fd int) string { return "/proc/self/fd/" + strconv.Itoa(fd) }

// Closed returns what keeps everybody from reading a file: the file itself, or the innermost directory on the way to it that not everybody may go
// through. Empty if nothing does. Links on the way that it was named by count for nothing: the file is where it is.
func Closed(f *os.File) (string, error) {
	const reads, goes = 0o004, 0o001
	path, err := os.Readlink(descriptor(int(f.Fd())))
	if err != nil {
		return "", err
	}
	info, err := f.Stat()
	if err != nil || info.Mode().Perm()&reads == 0 {
		return path, err
	}
	for dir := filepath.Dir(path); ; dir = filepath.Dir(dir) {
		info, err := os.Stat(dir)
		if err != nil || info.Mode().Perm()&goes == 0 {
			return dir, err
		}
		if dir == filepath.Dir(dir) {
			return "", nil
		}
	}
}

// Opens says what is to be done about what Closed returned.
func Opens(closed string) string {
	if info, err := os.Stat(closed); err == nil && info.IsDir() {
		return "put it into a directory that everybody may go into; or chmod a+x " + closed
	}
	return "chmod a+r " + closed
}
