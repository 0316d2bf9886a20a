package sqlite

import (
	"errors"
	"fmt"
	"path/filepath"
	"syscall"

	"github.com/drover-project/drover/internal/fault"
)

// place is where the store's files are. SQLite writes to files that it has
// open, whatever becomes of their names: if somebody removes the directory, or puts
// another in its place, what is committed from then on is lost with the process. So
// each commit looks whether its files are still where the next start will look for them.
type place struct {
	paths [2]string
	files [2]syscall.Stat_t // as they were first seen
	now   syscall.Stat_t    // the one that is looked at
}

func newPlace(file string) (*place, error) {
	path, err := filepath.Abs(file)
	if err != nil {
		return nil, fault.New(fault.Environment, "cannot tell where the store is: %w", err)
	}
	return &place{paths: [2]string{path, path + "-wal"}}, nil
}

// reopened takes the log that there is next for the right one.
func (p *place) reopened() { p.files[1] = syscall.Stat_t{} }

// check is to be called behind a commit.
func (p *place) check() error {
	for i, path := range p.paths {
		err := syscall.Stat(path, &p.now)
		for errors.Is(err, syscall.EINTR) {
			err = syscall.Stat(path, &p.now)
		}
		if err != nil {
			return &goneError{fmt.Errorf("the store's file %s was removed while it was in use: %w", path, err)}
		}
		first := &p.files[i]
		if first.Ino == 0 {
			*first = p.now
		}
		if first.Dev != p.now.Dev || first.Ino != p.now.Ino {
			return &goneError{fmt.Errorf("the store's file %s was replaced by another while it was in use", path)}
		}
	}
	return nil
}

// goneError says that commits go to files that nobody will find again.
type goneError struct{ error }

// Unwrap returns what happened to the files.
func (e *goneError) Unwrap() error { return e.error }
