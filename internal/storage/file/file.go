// Package file keeps disks as files of a directory, one for each: raw, with holes where nothing was written, or qcow2, which may stand on an image of the
// node. The directory is the node's own (disk template "file"), or one that several nodes reach ("sharedfile").
//
// Invariants:
//   - A volume's file gets its size at one moment. One that has none yet is no volume, and is made whole by the next call (TestWhatAKillLeaves).
//   - A directory that several nodes reach is never made: where it is missing nothing is mounted, and the disks are elsewhere (TestASharedDirectory).
//   - Files are their owner's alone.
//   - Which format a file has its name says, and nobody guesses it; what it stands on is an image of the node, or it is refused (TestWhatLeadsElsewhere).
package file

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"github.com/drover-project/drover/internal/diskimage"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/qemuimg"
	"github.com/drover-project/drover/internal/storage"
	"github.com/drover-project/drover/internal/wholefile"
)

// The ends of files' names say their formats: nobody guesses them.
const (
	raw     = ".raw"
	layered = ".qcow2"
	mib     = 1 << 20
)

// Driver keeps volumes in a directory. It implements storage.Driver.
type Driver struct {
	dir, template string
	shared        bool

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
	return &Driver{dir: dir, template: "sharedfile", shared: true}, nil
}

// Template returns "file", or "sharedfile".
func (d *Driver) Template() string { return d.template }

func (d *Driver) path(id, suffix string) string { return filepath.Join(d.dir, id+suffix) }

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
			err = d.make(ctx, &disk)
		}
		return err == nil, false, err
	case err != nil || there.Size >= size:
		return false, false, err
	}
	if err := d.room(size - there.Size); err != nil {
		return false, false, err
	}
	if there.Format == diskimage.QCOW2 {
		err = qemuimg.Run(ctx, "resize", "-q", "--image-opts", "--", there.File().Options(), strconv.Itoa(size)+"M")
	} else {
		err = os.Truncate(there.Path, int64(size)*mib)
	}
	if err != nil {
		return false, false, fault.New(codeOf(err), "cannot grow disk %s: %w", id, err)
	}
	return false, true, nil
}

// codeOf is the code of an error that may be the system's.
func codeOf(err error) fault.Code {
	if e, is := errors.AsType[*fault.Error](err); is {
		return e.Code
	}
	return fault.Environment
}

// make makes the file of a disk.
func (d *Driver) make(ctx context.Context, disk *storage.Disk) error {
	switch disk.Format {
	case "", diskimage.Raw:
		return d.makeRaw(disk.ID, disk.Size)
	case diskimage.QCOW2:
		return d.layer(ctx, disk.ID, disk.Size, nil)
	}
	return fault.New(fault.Unsupported, "disk %s is to have the format %.50q, which this node does not know", disk.ID, disk.Format).At("disks")
}

// makeRaw makes a file of the size.
func (d *Driver) makeRaw(id string, size int) error {
	f, err := os.OpenFile(d.path(id, raw), os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
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
	removed := false
	for _, path := range []string{d.path(half+id, layered), d.path(id, raw), d.path(id, layered)} {
		switch err := os.Remove(path); {
		case err == nil:
			removed = true
		case !errors.Is(err, fs.ErrNotExist):
			return false, fault.New(fault.Environment, "cannot remove disk %s: %w", id, err)
		}
	}
	if !removed {
		return false, nil
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

// volume looks for a file of either format.
func (d *Driver) volume(id string) (storage.Volume, error) {
	v, err := d.volumeAt(id, d.path(id, raw))
	if !fault.Is(err, fault.NotFound) {
		return v, err
	}
	if v, other := d.volumeAt(id, d.path(id, layered)); !fault.Is(other, fault.NotFound) {
		return v, other
	}
	return v, err
}

func (d *Driver) volumeAt(id, path string) (storage.Volume, error) {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return storage.Volume{}, fault.New(fault.NotFound, "disk %s is not on this node", id)
	case err != nil:
		return storage.Volume{}, fault.New(fault.Environment, "cannot look at disk %s: %w", id, err)
	case !info.Mode().IsRegular(): // a link that somebody put there would lead elsewhere
		return storage.Volume{}, fault.New(fault.Environment, "%s is no plain file", path).WithHint("Drover has not put it there; move it away")
	case info.Size() == 0:
		return storage.Volume{}, fault.New(fault.NotFound, "disk %s is not whole on this node", id)
	}
	if strings.HasSuffix(path, layered) {
		return d.look(id, path)
	}
	return storage.Volume{ID: id, Size: int(info.Size() / mib), Path: path, Format: diskimage.Raw}, nil
}

// Volumes lists the files.
func (d *Driver) Volumes(ctx context.Context) ([]storage.Volume, error) {
	if err := storage.Begin(ctx, "any"); err != nil {
		return nil, err
	}
	all, err := storage.InDirectory(d.dir, raw, d.volume)
	if err != nil {
		return nil, err
	}
	more, err := storage.InDirectory(d.dir, layered, d.volume)
	all = slices.Concat(all, more)
	slices.SortFunc(all, func(a, b storage.Volume) int { return strings.Compare(a.ID, b.ID) })
	return all, err
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
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return storage.Space{}, fault.New(fault.Environment, "cannot look at a disk: %w", err)
		}
		if s, known := info.Sys().(*syscall.Stat_t); known && info.Mode().IsRegular() {
			promised += max(0, d.largest(e.Name(), s.Size)-s.Blocks*512)
		}
	}
	unit := there.Bsize
	return storage.Space{
		Total: int(int64(there.Blocks) * unit / mib),
		Free:  int(max(0, int64(there.Bavail)*unit-promised) / mib),
	}, nil
}
