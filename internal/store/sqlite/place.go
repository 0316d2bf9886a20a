package sqlite

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/drover-project/drover/internal/fault"
)

// place is where the store's files are. SQLite writes to files that it has
// open, whatever becomes of their names: if somebody removes the directory, or puts
// another in its place, what is committed from then on is lost with the process. So
// each commit looks whether its files are still where the next start will look for them.
type place struct {
	paths [2]string
	files [2]os.FileInfo // as they were first seen
}

func newPlace(file string) (*place, error) {
	path, err := filepath.Abs(file)
	if err != nil {
		return nil, fault.New(fault.Environment, "cannot tell where the store is: %w", err)
	}
	return &place{paths: [2]string{path, path + "-wal"}}, nil
}

// check is to be called behind a commit.
func (p *place) check() error {
	for i, path := range p.paths {
		now, err := os.Stat(path)
		if err != nil {
			return &goneError{fmt.Errorf("the store's file %s was removed while it was in use: %w", path, err)}
		}
		if p.files[i] == nil {
			p.files[i] = now
		}
		if !os.SameFile(p.files[i], now) {
			return &goneError{fmt.Errorf("the store's file %s was replaced by another while it was in use", path)}
		}
	}
	return nil
}

// goneError says that commits go to files that nobody will find again.
type goneError struct{ error }
