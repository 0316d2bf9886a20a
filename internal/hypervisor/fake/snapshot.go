package fake

import (
	"context"
	"os"
	"slices"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/hypervisor"
)

// snapshotted are the templates of disks that the reference snapshots.
var snapshotted = []string{cluster.DiskPlain, cluster.DiskDRBD, cluster.DiskExt, cluster.DiskDiskless}

// Snapshot notes the id of a snapshot.
func (d *Driver) Snapshot(ctx context.Context, of hypervisor.Thing, id string) (changed bool, err error) {
	err = d.change(ctx, "snapshot", of, func(old *record) error {
		if old == nil || !old.active() {
			return fault.New(fault.WrongState, "instance %s is not running", of.Name)
		}
		for _, disk := range old.Spec.Disks {
			if !slices.Contains(snapshotted, disk.Template) {
				return fault.New(fault.Unsupported, "disks of the template %q cannot be snapshotted where they are pretended", disk.Template).At("disk_template")
			}
		}
		next := *old
		next.Snapshot = id
		changed = old.Snapshot != id
		return d.save(&next)
	})
	return changed && err == nil, err
}

// CopySnapshot looks whether there is a snapshot: disks have no content.
func (d *Driver) CopySnapshot(ctx context.Context, of hypervisor.Thing, id, disk string, _ *os.File, _ func(done, size int64)) error {
	return d.change(ctx, "copysnapshot", of, func(old *record) error {
		if old == nil || id == "" || old.Snapshot != id || old.disk(disk) < 0 {
			return fault.New(fault.WrongState, "there is no such snapshot of the disks of instance %s", of.Name)
		}
		return nil
	})
}

// Release forgets the id of a snapshot.
func (d *Driver) Release(ctx context.Context, of hypervisor.Thing, id string) (changed bool, err error) {
	err = d.change(ctx, "release", of, func(old *record) error {
		if old == nil || id == "" || old.Snapshot != id {
			return nil
		}
		next := *old
		next.Snapshot = ""
		changed = true
		return d.save(&next)
	})
	return changed && err == nil, err
}
