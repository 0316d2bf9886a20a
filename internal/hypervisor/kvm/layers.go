package kvm

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"slices"
	"syscall"

	"github.com/drover-project/drover/internal/diskimage"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/hypervisor"
	"github.com/drover-project/drover/internal/qemuimg"
	"github.com/drover-project/drover/internal/storage"
)

// layersOf says of disks how they are kept, as far as they are not kept as they are. One that is not there is missed by who opens it.
func (m *machine) layersOf(ctx context.Context, disks []hypervisor.Disk) (map[string]*qemuimg.File, error) {
	out := map[string]*qemuimg.File{}
	for _, disk := range disks {
		i := diskIndex(m.record().Disks, disk.UUID)
		if i < 0 {
			continue
		}
		v, err := m.driver.cfg.Volumes.Volume(ctx, m.record().Disks[i].Template, disk.UUID)
		switch {
		case fault.Is(err, fault.NotFound):
		case err != nil:
			return nil, err
		case v.Format == diskimage.QCOW2:
			out[disk.UUID] = v.File()
		}
	}
	return out, nil
}

// base is what a disk stands on; nil for nothing.
func (s *setup) base(disk string) *qemuimg.File {
	if layer := s.layers[disk]; layer != nil {
		return layer.Base
	}
	return nil
}

// behindDisks is the first descriptor behind those of disks and of what they stand on.
func (s *setup) behindDisks(spec *hypervisor.Spec) int {
	fd := firstDiskFD + len(spec.Disks)
	for i := range spec.Disks {
		if s.base(spec.Disks[i].UUID) != nil {
			fd++
		}
	}
	return fd
}

// openBases opens the images that disks stand on, in the order of these. What is open is returned with an error, too.
func openBases(spec *hypervisor.Spec, with setup) (files []*os.File, err error) {
	for n := range spec.Disks {
		base := with.base(spec.Disks[n].UUID)
		if base == nil {
			continue
		}
		f, err := openBase(base.Path)
		if err != nil {
			return files, fault.New(fault.CodeOf(err), "disk %d of instance %s cannot be used: %w", n, spec.Name, err)
		}
		files = append(files, f)
	}
	return files, nil
}

// openBase opens an image that a disk stands on, which nobody ever writes to.
func openBase(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fault.New(fault.WrongState, "the image that it stands on is not there: %s", path).
			WithHint("put back what has this SHA-256, as by an installation of another instance from the same image on this node; or install the instance anew")
	}
	if err != nil {
		return nil, fault.New(fault.Environment, "the image that it stands on cannot be opened: %w", err)
	}
	return f, nil
}

// handBase hands QEMU the image that a disk stands on, if there is one.
func (a *adjustment) handBase(ctx context.Context, base *qemuimg.File, set int) error {
	if base == nil {
		return nil
	}
	f, err := openBase(base.Path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	return a.doWith(ctx, f, "add-fd", map[string]any{"fdset-id": set}, nil)
}

// blank has a disk of a stopped machine begin anew. That it stands on an image is written down before it does, and for as long as it does: nobody takes
// away what somebody stands on.
func (m *machine) blank(ctx context.Context, disk string, base *storage.Base) error {
	if err := m.stopped("installed"); err != nil {
		return err
	}
	r := m.record()
	i := diskIndex(r.Disks, disk)
	if i < 0 {
		return fault.New(fault.WrongState, "disk %s of instance %s does not exist on this node", disk, r.Name)
	}
	stands := func(on string) error {
		next := *m.record()
		next.Disks = slices.Clone(next.Disks)
		next.Disks[i].Image = on
		return m.save(&next)
	}
	if base != nil {
		if err := stands(base.SHA256); err != nil {
			return err
		}
	}
	err := m.driver.cfg.Volumes.Blank(ctx, r.Disks[i].Template, disk, base)
	switch {
	case err != nil && base != nil:
		return errors.Join(err, stands(r.Disks[i].Image))
	case err == nil && base == nil:
		return stands("")
	}
	return err
}
