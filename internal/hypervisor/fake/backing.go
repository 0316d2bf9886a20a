package fake

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/hypervisor"
	"github.com/drover-project/drover/internal/storage"
	"github.com/drover-project/drover/internal/wholefile"
)

// device is what the pretended volume group lies on.
const device = "/dev/fake0"

// groupFile has what is kept of the volume group. Programs of before do not look at it, and make disks there all the same.
const groupFile = "volume-group.json"

// groupState is what can be changed of the volume group.
type groupState struct {
	// Closed says that no disks are to be made on its device.
	Closed bool `json:"closed"`
}

func (d *Driver) readGroup() error {
	path := filepath.Join(d.cfg.Dir, groupFile)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = json.Unmarshal(text, &d.group)
	}
	if err != nil {
		return fault.New(fault.Environment, "cannot read the state of the pretended volume group: %w", err).WithHint("mend or remove %s", path)
	}
	return nil
}

// inGroup reports whether disks of a template lie in the volume group.
func inGroup(template string) bool {
	return template == cluster.DiskPlain || template == cluster.DiskDRBD
}

// mayMake refuses a disk for which there is no room that is given out, or no provider.
func (d *Driver) mayMake(disk *hypervisor.Disk) error {
	if inGroup(disk.Template) && d.group.Closed {
		return fault.New(fault.Exhausted, "volume group %s gives out no room: its physical volume %s is not allocatable", d.cfg.Group, device).
			WithHint("drover node modify-storage NODE lvm-pv %s --allocatable=yes has it give out some again", device)
	}
	if disk.Template != cluster.DiskExt || disk.External == nil || d.cfg.Providers == nil {
		return nil
	}
	there, err := d.cfg.Providers()
	if err != nil {
		return err
	}
	name := disk.External.Provider
	i := slices.IndexFunc(there, func(p storage.Provider) bool { return p.Name == name })
	switch {
	case i < 0:
		return fault.New(fault.Environment, "this node has no storage provider %.200s", name).At("provider").WithHint("drover storage diagnose shows which nodes have which")
	case there[i].Problem != "":
		return fault.New(fault.Environment, "%s", there[i].Problem).At("provider")
	}
	return nil
}

// Backing is what disks are pretended to be kept in: a directory, and a volume group on one device, which have the room of the node together.
func (d *Driver) Backing() storage.Backing { return backing{d} }

type backing struct{ d *Driver }

// Units implements storage.Backing. Of what nodes share none knows how large it is.
func (b backing) Units(ctx context.Context, kind storage.Kind) (units []storage.Unit, err error) {
	d := b.d
	err = d.within(ctx, "units", "", func() error {
		files, free := 0, max(0, d.cfg.Disk-d.disk)
		d.eachDisk(func(disk hypervisor.Disk) {
			if disk.Template == cluster.DiskFile || disk.Template == "" {
				files += disk.Size
			}
		})
		u := storage.Unit{Size: d.cfg.Disk, Used: d.cfg.Disk - free, Free: free, Allocatable: true}
		switch kind {
		case storage.Files:
			u.Name, u.Used = d.cfg.Files, files
		case storage.VolumeGroups:
			u.Name = d.cfg.Group
		case storage.PhysicalDisks:
			u.Name, u.Allocatable = device, !d.group.Closed
		default:
			return fault.New(fault.Unsupported, "this node only pretends to keep disks, and knows nothing of storage units of type '%s'", kind).At("storage_type")
		}
		units = []storage.Unit{u}
		return nil
	})
	return units, err
}

// eachDisk calls f with all disks.
func (d *Driver) eachDisk(f func(disk hypervisor.Disk)) {
	for _, r := range d.things {
		for _, disk := range r.Disks {
			f(disk)
		}
	}
}

// LogicalVolumes implements storage.Backing: each disk in the volume group is one.
func (b backing) LogicalVolumes(ctx context.Context) (all []storage.LogicalVolume, err error) {
	d := b.d
	err = d.within(ctx, "volumes", "", func() error {
		d.eachDisk(func(disk hypervisor.Disk) {
			if inGroup(disk.Template) {
				all = append(all, storage.LogicalVolume{Group: d.cfg.Group, Name: disk.UUID, Device: device, Size: disk.Size, Disk: disk.UUID})
			}
		})
		slices.SortFunc(all, func(a, b storage.LogicalVolume) int { return cmp.Compare(a.Name, b.Name) })
		return nil
	})
	return all, err
}

// Providers implements storage.Backing.
func (b backing) Providers(ctx context.Context) (found []storage.Provider, err error) {
	err = b.d.within(ctx, "providers", "", func() error {
		if b.d.cfg.Providers == nil {
			return nil
		}
		found, err = b.d.cfg.Providers()
		return err
	})
	return found, err
}

// SetAllocatable implements storage.Backing.
func (b backing) SetAllocatable(ctx context.Context, name string, may bool) (changed bool, err error) {
	d := b.d
	err = d.within(ctx, "allocatable", "", func() error {
		if name != device {
			return fault.New(fault.NotFound, "%.200s is no physical volume of the volume group %s", name, d.cfg.Group).At("name").WithHint("it has: %s", device)
		}
		next := groupState{Closed: !may}
		if next == d.group {
			return nil
		}
		text, err := json.Marshal(next)
		if err == nil {
			err = wholefile.Write(filepath.Join(d.cfg.Dir, groupFile), text)
		}
		if err != nil {
			return fault.New(fault.Environment, "cannot write the state of the pretended volume group: %w", err)
		}
		d.group, changed = next, true
		return nil
	})
	return changed, err
}

// Repair implements storage.Backing. No device of a pretended volume group is ever gone.
func (b backing) Repair(ctx context.Context, group string) (changed bool, err error) {
	return false, b.d.within(ctx, "repair", "", func() error {
		if group != b.d.cfg.Group {
			return fault.New(fault.NotFound, "this node keeps disks in the volume group %s, and not in %.200s", b.d.cfg.Group, group).At("name")
		}
		return nil
	})
}
