package hypertest

import (
	"context"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/hypervisor"
	"github.com/drover-project/drover/internal/storage"
)

// backing: a driver tells what its disks are kept in, or that it has no such units; a disk takes some of a unit.
func (s *suite) backing() {
	b, ctx := s.d.Backing(), s.Context()
	used := func(kind storage.Kind) (sum int) {
		units, err := b.Units(ctx, kind)
		if err != nil && !fault.Is(err, fault.Unsupported) {
			s.Fatal(err)
		}
		for _, u := range units {
			if u.Name == "" || u.Size < u.Free || u.Used < 0 || u.Free < 0 {
				s.Errorf("a unit of %s is %+v", kind, u)
			}
			sum += u.Used
		}
		return sum
	}
	before := used(storage.Files)
	i := spec("one.example", hypervisor.Disk{UUID: "d1", Size: 8, Template: "file"})
	s.do("Prepare", true)(s.d.Prepare(ctx, i.Thing(), mark, i.Disks))
	if units, err := b.Units(ctx, storage.Files); err == nil && len(units) > 0 && used(storage.Files) != before+8 {
		s.Errorf("a disk of 8 MiB takes %d", used(storage.Files)-before)
	}
	volumes, err := b.LogicalVolumes(ctx)
	if len(volumes) > 0 || err != nil && !fault.Is(err, fault.Unsupported) {
		s.Errorf("the volumes are %+v, %v", volumes, err)
	}
	for what, act := range map[string]func(context.Context) (bool, error){
		"SetAllocatable": func(ctx context.Context) (bool, error) { return b.SetAllocatable(ctx, "/dev/none", false) },
		"Repair":         func(ctx context.Context) (bool, error) { return b.Repair(ctx, "none") },
	} {
		if changed, err := act(ctx); changed || !fault.Is(err, fault.NotFound) && !fault.Is(err, fault.Unsupported) {
			s.Errorf("%s of what is not there: %v, %v", what, changed, err)
		}
	}
	if _, err := b.Providers(ctx); err != nil {
		s.Error(err)
	}
}
