// Package file keeps disks as files of a directory, one for each, raw and with holes where nothing was written: a directory of the node's own
// (disk template "file"), or one that several nodes reach ("sharedfile").
//
// Invariants:
//   - A volume's file gets its size at one moment. One that has none yet is no volume, and is made whole by the next call (TestWhatAKillLeaves).
//   - A directory that several nodes reach is never made: where it is missing nothing is mounted, and the disks are elsewhere (TestASharedDirectory).
//   - Files are their owner's alone.
package file

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/storage"
	"github.com/drover-project/drover/internal/wholefile"
)

const (
	suffix = ".raw"
	mib    = 1 << 20
)

// Driver keeps volumes in a directory. It implements storage.Driver.
type Driver struct {
	dir, template string

	mu sync.Mutex // sizes change, and room is given out, by one at a time
}

// Open opens a directory of the node's own, which it makes if it is not there. It has one driver at a time.
func Open(dir string) (*Driver, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fault.New(fault.Environment, "cannot make the directory of disks: %w", err)
	}
	return &Driver{dir: dir, template: "file"}, nil
}

// OpenShared opens a directory that several nodes reach, each of which has a driver of its own. Who has two of them make or grow the same volume at
// the same time is to be kept from it.
func OpenShared(dir string) (*Driver, error) {
	info, err := os.Stat(dir)
	if err == nil && !info.IsDir() {
		err = syscall.ENOTDIR
	}
	if err != nil {
		return nil, fault.New(fault.Environment, "the directory of disks that nodes share is not there: %w", err).
			WithHint("see that it is mounted; a new one is made by hand, once: install -d -m 700 %s", dir)
	}
	return &Driver{dir: dir, template: "sharedfile"}, nil
}

// Template returns "file", or "sharedfile".
func (d *Driver) Template() string { return d.template }

func (d *Driver) path(id string) string { return filepath.Join(d.dir, id+suffix) }

// Ensure makes or grows a volume's file.
func (d *Driver) Ensure(ctx context.Context, disk storage.Disk) (made, grown bool, err error) {
	id, size := disk.ID, disk.Size
	if err := storage.Begin(ctx, id); err != nil {
		return false, false, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	there, err := d.volume(id)
	switch {
	case fault.Is(err, fault.NotFound):
		if err = d.room(size); err == nil {
			err = d.make(id, size)
		}
		return err == nil, false, err
	case err != nil || there.Size >= size:
		return false, false, err
	}
	if err := d.room(size - there.Size); err != nil {
		return false, false, err
	}
	if err := os.Truncate(there.Path, int64(size)*mib); err != nil {
		return false, false, fault.New(fault.Environment, "cannot grow disk %s: %w", id, err)
	}
	return false, true, nil
}

// make makes a file of the size.
func (d *Driver) make(id string, size int) error {
	f, err := os.OpenFile(d.path(id), os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
	if err == nil {
		err = f.Truncate(int64(size) * mib)
		if err != nil { // it has no size
			err = errors.Join(err, os.Remove(f.Name()))
		}
		err = errors.Join(err, f.Sync(), f.Close())
	}
	if err == nil {
		err = wholefile.Flush(d.dir)
	}
	if err != nil {
		return fault.New(fault.Environment, "cannot make disk %s: %w", id, err)
	}
	return nil
}

// room refuses what does not fit any more.
func (d *Driver) room(size int) error {
	s, err := d.space()
	if err != nil {
		return err
	}
	if size > s.Free {
		return fault.New(fault.Exhausted, "not enough disk space: %d MiB needed, %d MiB free", size, s.Free)
	}
	return nil
}

// Remove removes a volume's file.
func (d *Driver) Remove(ctx context.Context, id string) (bool, error) {
	if err := storage.Begin(ctx, id); err != nil {
		return false, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	switch err := os.Remove(d.path(id)); {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, fault.New(fault.Environment, "cannot remove disk %s: %w", id, err)
	}
	if err := wholefile.Flush(d.dir); err != nil {
		return false, fault.New(fault.Environment, "cannot remove disk %s: %w", id, err)
	}
	return true, nil
}

// Volume looks at a volume's file.
func (d *Driver) Volume(ctx context.Context, id string) (storage.Volume, error) {
	if err := storage.Begin(ctx, id); err != nil {
		return storage.Volume{}, err
	}
	return d.volume(id)
}

func (d *Driver) volume(id string) (storage.Volume, error) {
	info, err := os.Lstat(d.path(id))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return storage.Volume{}, fault.New(fault.NotFound, "disk %s is not on this node", id)
	case err != nil:
		return storage.Volume{}, fault.New(fault.Environment, "cannot look at disk %s: %w", id, err)
	case !info.Mode().IsRegular(): // a link that somebody put there would lead elsewhere
		return storage.Volume{}, fault.New(fault.Environment, "%s is no plain file", d.path(id)).WithHint("Drover has not put it there; move it away")
	case info.Size() == 0:
		return storage.Volume{}, fault.New(fault.NotFound, "disk %s is not whole on this node", id)
	}
	return storage.Volume{ID: id, Size: int(info.Size() / mib), Path: d.path(id)}, nil
}

// Volumes lists the files.
func (d *Driver) Volumes(ctx context.Context) ([]storage.Volume, error) {
	if err := storage.Begin(ctx, "any"); err != nil {
		return nil, err
	}
	return storage.InDirectory(d.dir, suffix, d.volume)
}

// Space tells how much room the file system has, less what volumes may still grow to need.
func (d *Driver) Space(ctx context.Context) (storage.Space, error) {
	if err := storage.Begin(ctx, "any"); err != nil {
		return storage.Space{}, err
	}
	return d.space()
}

func (d *Driver) space() (storage.Space, error) {
	var there syscall.Statfs_t
	if err := syscall.Statfs(d.dir, &there); err != nil {
		return storage.Space{}, fault.New(fault.Environment, "cannot tell how much room there is for disks: %w", err)
	}
	entries, err := os.ReadDir(d.dir)
	if err != nil {
		return storage.Space{}, fault.New(fault.Environment, "cannot list the directory of disks: %w", err)
	}
	promised := int64(0)
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), suffix) {
			continue
		}
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return storage.Space{}, fault.New(fault.Environment, "cannot look at a disk: %w", err)
		}
		if s, known := info.Sys().(*syscall.Stat_t); known && info.Mode().IsRegular() {
			promised += max(0, s.Size-s.Blocks*512)
		}
	}
	unit := there.Bsize
	return storage.Space{
		Total: int(int64(there.Blocks) * unit / mib),
		Free:  int(max(0, int64(there.Bavail)*unit-promised) / mib),
	}, nil
}
