package file

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/diskimage"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/qemuimg"
	"github.com/drover-project/drover/internal/storage"
	"github.com/drover-project/drover/internal/wholefile"
)

// images is where the node keeps copies of images, from its directory of disks.
const images = "../images/"

// half begins the name of a file that is being made.
const half = ".new-"

// look reads what a file of the format qcow2 says of itself. What it stands on has to be an image of the node's.
func (d *Driver) look(id, path string) (storage.Volume, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return storage.Volume{}, fault.New(fault.Environment, "cannot look at disk %s: %w", id, err)
	}
	defer f.Close() //nolint:errcheck // it was read
	head := make([]byte, diskimage.HeadSize)
	n, err := f.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return storage.Volume{}, fault.New(fault.Environment, "cannot look at disk %s: %w", id, err)
	}
	l, err := diskimage.LookLayer(head[:n])
	if err != nil {
		return storage.Volume{}, fault.New(fault.Environment, "%s cannot be used as a disk: %w", path, err).WithHint("Drover has not made it so: move it away, or put back what was there")
	}
	v := storage.Volume{ID: id, Size: int(l.VirtualSize / mib), Path: path, Format: diskimage.QCOW2}
	if l.Base == "" {
		return v, nil
	}
	sum, is := strings.CutPrefix(l.Base, images)
	if !is || d.shared || cluster.CheckSHA256(sum) != nil {
		return storage.Volume{}, fault.New(fault.Environment, "%s cannot be used as a disk: it leads to %.200q, which is no image of this node", path, l.Base).
			WithHint("Drover has not made it so: move it away, or put back what was there")
	}
	v.Base = &storage.Base{SHA256: sum, Path: filepath.Join(d.dir, l.Base), Format: l.BaseFormat}
	return v, nil
}

// layer puts a new file of the format qcow2 in the place of the one before, whole.
func (d *Driver) layer(ctx context.Context, id string, size int, base *storage.Base) error {
	path := filepath.Join(d.dir, half+id+layered)
	args := []string{"create", "-q", "-f", diskimage.QCOW2}
	if base != nil {
		args = append(args, "-b", images+base.SHA256, "-F", base.Format)
	}
	// A file with a hole in its place has the right owner and rights from the beginning.
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return fault.New(fault.Environment, "cannot make disk %s: %w", id, err)
	}
	if err = qemuimg.Run(ctx, append(args, "--", path, strconv.Itoa(size)+"M")...); err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(path, d.path(id, layered))
	}
	if err == nil {
		err = wholefile.Flush(d.dir)
	}
	if err != nil {
		_ = os.Remove(path) // else it is written over by the next try
		return fault.New(codeOf(err), "cannot make disk %s: %w", id, err)
	}
	return nil
}

// Blank implements storage.Layered.
func (d *Driver) Blank(ctx context.Context, id string, base *storage.Base) error {
	if err := storage.Begin(ctx, id); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	v, err := d.volume(id)
	switch {
	case err != nil:
		return err
	case v.Format != diskimage.QCOW2:
		return fault.New(fault.Unsupported, "disk %s has no layers: its format is %s", id, v.Format).At("disks")
	case base != nil && d.shared:
		return fault.New(fault.Unsupported, "disk %s is shared, and images are each node's own", id).At("disks")
	case base != nil && filepath.Join(d.dir, images+base.SHA256) != base.Path:
		return fault.New(fault.Invalid, "%.200q is no image of this node", base.Path)
	}
	return d.layer(ctx, id, v.Size, base)
}

// largest is how large a file can become by what is written to its volume, in bytes.
func (d *Driver) largest(name string, size int64) int64 {
	id, is := strings.CutSuffix(name, layered)
	switch {
	case strings.HasSuffix(name, raw):
		return size
	case !is:
		return 0
	}
	v, err := d.look(id, d.path(id, layered))
	if err != nil { // it is no volume, and nobody writes to it
		return 0
	}
	return int64(v.Size) * mib
}
