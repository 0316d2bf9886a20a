// Package scratch makes what is needed for a time beside something that lasts: copies that are read, files before they have their name. What a process left there
// that was killed goes when the next one comes.
//
// Invariants:
//   - What a process that lives has made is left alone: it holds a lock on it, which ends with the process however that ends.
//   - Nothing is removed but what has the given name and belongs to the user of the process. On a file system without locks that is nothing.
package scratch

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/drover-project/drover/internal/fault"
)

// Dir is a directory for a time.
type Dir struct {
	// Path is where it is.
	Path string
	lock *os.File
}

// NewDir makes a directory in another one, under a name that begins with the prefix, which has to be this program's own.
func NewDir(in, prefix string) (*Dir, error) {
	path := ""
	f, err := kept(func() (f *os.File, err error) {
		if path, err = os.MkdirTemp(in, prefix+"*"); err != nil {
			return nil, err
		}
		if f, err = os.Open(path); errors.Is(err, fs.ErrNotExist) {
			return nil, errRemoved
		}
		return f, err
	})
	if err != nil {
		return nil, err
	}
	return &Dir{Path: path, lock: f}, nil
}

// Remove removes the directory with all that is in it.
func (d *Dir) Remove() error { return errors.Join(os.RemoveAll(d.Path), d.lock.Close()) }

// NewFile makes a file in a directory, under a name that begins with the prefix, which has to be this program's own. It is in use while it is open.
func NewFile(in, prefix string) (*os.File, error) {
	return kept(func() (*os.File, error) { return os.CreateTemp(in, prefix+"*") })
}

// errRemoved tells that what was made is gone before it could be opened.
var errRemoved = errors.New("it was removed")

// tries is how often something is made anew that somebody removed before it was locked.
const tries = 1000

// kept makes something and locks it. Between the two somebody may take it for what nobody has, and remove it.
func kept(makes func() (*os.File, error)) (*os.File, error) {
	for range tries {
		f, err := makes()
		if errors.Is(err, errRemoved) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if errors.Is(take(f), syscall.EWOULDBLOCK) { // somebody is about to remove it
			_ = f.Close()
			continue
		} // where there are no locks nobody removes anything
		has, err := f.Stat()
		if err != nil {
			return nil, errors.Join(err, f.Close())
		}
		if is, err := os.Lstat(f.Name()); err == nil && os.SameFile(has, is) {
			return f, nil
		}
		_ = f.Close() // it is gone
	}
	return nil, fault.New(fault.Busy, "what is made is removed again and again by another process")
}

// take locks a file for this process, unless another has it.
func take(f *os.File) error {
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}

// Clear removes what is in a directory under names that begin with the prefix and is nobody's any more. What cannot be removed stays.
func Clear(in, prefix string) {
	entries, _ := os.ReadDir(in)
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), prefix) && (e.IsDir() || e.Type().IsRegular()) {
			clearOne(filepath.Join(in, e.Name()))
		}
	}
}

func clearOne(path string) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return
	}
	defer func() { _ = f.Close() }() // it was read only
	info, err := f.Stat()
	if err != nil {
		return
	}
	owner, known := info.Sys().(*syscall.Stat_t)
	if !known || int(owner.Uid) != os.Geteuid() || take(f) != nil {
		return
	}
	_ = os.RemoveAll(path) // it does not follow links
}
