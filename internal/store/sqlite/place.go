package sqlite

import (
	"errors"
	"fmt"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/drover-project/drover/internal/fault"
)

// place is where the store's files are. SQLite writes to files that it has
// open, whatever becomes of their names: if somebody removes the directory, or puts
// another in its place, what is committed from then on is lost with the process. So
// each commit looks whether its files are still where the next start will look for them.
type place struct {
	paths [2]string
	files [2]identity // as they were first seen
	now   unix.Statx_t
	// logSize is how long the log was behind the last commit.
	logSize int64
}

// identity is what tells a file from another in its place; zero before it was seen.
type identity struct {
	major, minor uint32
	inode        uint64
}

func newPlace(file string) (*place, error) {
	path, err := filepath.Abs(file)
	if err != nil {
		return nil, fault.New(fault.Environment, "cannot tell where the store is: %w", err)
	}
	return &place{paths: [2]string{path, path + "-wal"}}, nil
}

// reopened takes the log that there is next for the right one.
func (p *place) reopened() { p.files[1] = identity{} }

// check is to be called behind a commit.
func (p *place) check() error {
	for i, path := range p.paths {
		is, err := p.look(path)
		if err != nil {
			return &goneError{fmt.Errorf("the store's file %s was removed while it was in use: %w", path, err)}
		}
		if p.files[i] == (identity{}) {
			p.files[i] = is
		}
		if p.files[i] != is {
			return &goneError{fmt.Errorf("the store's file %s was replaced by another while it was in use", path)}
		}
	}
	p.logSize = int64(p.now.Size)
	return nil
}

// look asks for nothing but which file it is, and how long. Who asks for a file's times has Linux (from 6.13) give the
// next write a time of its own, which the flush of the next commit would have to write to
// the file system's journal: that made a flush of 0.17 ms one of 0.22 ms.
func (p *place) look(path string) (identity, error) {
	for {
		err := unix.Statx(unix.AT_FDCWD, path, unix.AT_STATX_DONT_SYNC, unix.STATX_INO|unix.STATX_SIZE, &p.now)
		if !errors.Is(err, unix.EINTR) {
			return identity{p.now.Dev_major, p.now.Dev_minor, p.now.Ino}, err
		}
	}
}

// goneError says that commits go to files that nobody will find again.
type goneError struct{ error }

// Unwrap returns what happened to the files.
func (e *goneError) Unwrap() error { return e.error }
