package agent

import (
	"context"

	"github.com/drover-project/drover/internal/agent/effect"
	"github.com/drover-project/drover/internal/storage"
)

// StorageUnits lists the units of a kind that the disks of the node are kept in, see storage.Backing.
func (a *Agent) StorageUnits(ctx context.Context, kind storage.Kind) ([]storage.Unit, error) {
	return a.cfg.Driver.Backing().Units(ctx, kind)
}

// LogicalVolumes lists the volumes of the node's volume group.
func (a *Agent) LogicalVolumes(ctx context.Context) ([]storage.LogicalVolume, error) {
	return a.cfg.Driver.Backing().LogicalVolumes(ctx)
}

// Providers lists what may be storage providers of the node.
func (a *Agent) Providers(ctx context.Context) ([]storage.Provider, error) {
	return a.cfg.Driver.Backing().Providers(ctx)
}

// storageOf is what is kept of the node's storage as a thing that effects work on.
const storageOf = "storage"

// SetAllocatable has new disks be made on a device of the volume group, or not.
func (a *Agent) SetAllocatable(ctx context.Context, order Order, device string, may bool) error {
	return a.carryOutBy(ctx, effect.Claim{Order: order, Of: storageOf, What: "change the physical volume " + device}, func(*effect.Hold) error {
		_, err := a.cfg.Driver.Backing().SetAllocatable(ctx, device, may)
		return err
	})
}

// RepairStorage has the volume group do without the devices that are gone.
func (a *Agent) RepairStorage(ctx context.Context, order Order, group string) error {
	return a.carryOutBy(ctx, effect.Claim{Order: order, Of: storageOf, What: "repair the volume group " + group}, func(*effect.Hold) error {
		_, err := a.cfg.Driver.Backing().Repair(ctx, group)
		return err
	})
}
