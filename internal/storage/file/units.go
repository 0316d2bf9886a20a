package file

import (
	"context"
	"errors"
	"io/fs"
	"os"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/storage"
)

// Kinds is that of the directory.
func (d *Driver) Kinds() []storage.Kind {
	if d.shared {
		return []storage.Kind{storage.SharedFiles}
	}
	return []storage.Kind{storage.Files}
}

// Units tells of the directory. What is used there are the files as long as they are, also where they have holes; what is free is the room that new disks
// can have.
func (d *Driver) Units(ctx context.Context, _ storage.Kind) ([]storage.Unit, error) {
	room, err := d.Space(ctx)
	if err != nil {
		return nil, err
	}
	used, err := d.used()
	if err != nil {
		return nil, err
	}
	return []storage.Unit{{Name: d.dir, Size: room.Total, Used: used, Free: room.Free, Allocatable: true}}, nil
}

func (d *Driver) used() (size int, err error) {
	entries, err := os.ReadDir(d.dir)
	if err != nil {
		return 0, fault.New(fault.Environment, "cannot list the directory of disks: %w", err)
	}
	sum := int64(0)
	for _, e := range entries {
		info, err := e.Info()
		switch {
		case errors.Is(err, fs.ErrNotExist): // it was removed meanwhile
		case err != nil:
			return 0, fault.New(fault.Environment, "cannot look at a disk: %w", err)
		case info.Mode().IsRegular():
			sum += info.Size()
		}
	}
	return int((sum + mib/2) / mib), nil
}
