package nodetest

import (
	"slices"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/hypervisor"
	"github.com/drover-project/drover/internal/storage"
)

// storageUnits: a node tells what its disks are kept in, and changes that, but not for a leader of old.
func storageUnits(r *Rig) {
	ctx := r.Context()
	r.Must(r.Node.Prepare(ctx, Order(1, 1), One, []hypervisor.Disk{{UUID: "d1", Size: 100, Template: "plain"}, {UUID: "d2", Size: 50, Template: "file"}}))
	units, err := r.Node.StorageUnits(ctx, storage.PhysicalDisks)
	r.Must(err)
	if len(units) != 1 || units[0].Name == "" || units[0].Used != 150 || units[0].Size != units[0].Free+150 || !units[0].Allocatable {
		r.Fatalf("the units are %+v", units)
	}
	volumes, err := r.Node.LogicalVolumes(ctx)
	r.Must(err)
	if want := (storage.LogicalVolume{Group: "xenvg", Name: "d1", Device: units[0].Name, Size: 100, Disk: "d1"}); !slices.Equal(volumes, []storage.LogicalVolume{want}) {
		r.Errorf("the volumes are %+v", volumes)
	}
	_, err = r.Node.StorageUnits(ctx, "rados")
	r.Want(fault.Unsupported, err)
	found, err := r.Node.Providers(ctx)
	r.Must(err)
	if len(found) != 1 || found[0].Name != "shelf" || found[0].Problem == "" {
		r.Errorf("the providers are %+v", found)
	}
	r.Must(r.Node.SetAllocatable(ctx, Order(2, 1), units[0].Name, false))
	r.Want(fault.NotFound, r.Node.SetAllocatable(ctx, Order(2, 2), "/dev/none", false))
	r.Must(r.Node.RepairStorage(ctx, Order(2, 3), "xenvg"))
	r.Want(fault.NotFound, r.Node.RepairStorage(ctx, Order(2, 4), "other"))
	newer := Order(3, 1)
	newer.Epoch = 2
	r.Must(r.Node.Drop(ctx, newer, One, []string{"d2"}))
	r.Want(fault.Fenced, r.Node.SetAllocatable(ctx, Order(4, 1), units[0].Name, true))
	r.Want(fault.Fenced, r.Node.RepairStorage(ctx, Order(4, 2), "xenvg"))
	if units, err = r.Node.StorageUnits(ctx, storage.PhysicalDisks); err != nil || units[0].Allocatable {
		r.Errorf("behind it they are %+v, %v", units, err)
	}
}
