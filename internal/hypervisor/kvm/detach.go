package kvm

import (
	"context"
	"errors"
	"slices"

	"github.com/drover-project/drover/internal/hypervisor"
)

// Detach has disks of a machine be things of their own.
func (d *Driver) Detach(ctx context.Context, of hypervisor.Thing, by hypervisor.Mark, disks []string) (changed bool, err error) {
	for _, disk := range disks {
		moved, err := d.detach(ctx, of, by, disk)
		if err != nil {
			return changed, err
		}
		changed = changed || moved
	}
	return changed, nil
}

// Attach has detached disks be those of a machine.
func (d *Driver) Attach(ctx context.Context, of hypervisor.Thing, by hypervisor.Mark, disks []string) (changed bool, err error) {
	for _, disk := range disks {
		moved, err := d.attach(ctx, of, by, disk)
		if err != nil {
			return changed, err
		}
		changed = changed || moved
	}
	return changed, nil
}

func (d *Driver) detach(ctx context.Context, of hypervisor.Thing, by hypervisor.Mark, disk string) (bool, error) {
	from, err := d.hold(ctx, "detach a disk", of)
	if err != nil {
		return false, err
	}
	if from != nil {
		defer from.unlock()
	}
	alone, made, err := d.holdOrMake(ctx, "detach a disk", hypervisor.DetachedDisk(disk), by, "")
	if err != nil {
		return false, err
	}
	defer alone.unlock()
	switch {
	case from.has(disk) && from.inUse(disk):
		err = hypervisor.InUse(of, disk, from.state())
	case from.has(disk):
		err = from.clearProcessUnlessActive()
	case !alone.has(disk):
		err = hypervisor.NoSuchDisk(of, disk)
	}
	if err != nil {
		return false, errors.Join(err, d.unmake(alone, made))
	}
	return moveDisk(from, alone, disk)
}

func (d *Driver) attach(ctx context.Context, of hypervisor.Thing, by hypervisor.Mark, disk string) (bool, error) {
	to, made, err := d.holdOrMake(ctx, "attach a disk", of, by, by.Life)
	if err != nil {
		return false, err
	}
	defer to.unlock()
	alone, err := d.hold(ctx, "attach a disk", hypervisor.DetachedDisk(disk))
	if alone != nil {
		defer alone.unlock()
	}
	if err == nil && !alone.has(disk) && !to.has(disk) {
		err = hypervisor.NoSuchDisk(of, disk)
	}
	if err != nil {
		return false, errors.Join(err, d.unmake(to, made))
	}
	changed, err := moveDisk(alone, to, disk)
	if err != nil || alone == nil {
		return changed, err
	}
	if err := alone.clear(); err != nil { // it has nothing any more
		return changed, err
	}
	d.forget(alone)
	return true, nil
}

// moveDisk takes a disk from one thing, if that has it, and gives it to another. It is written down there first, so that there is always one of which it
// is; done again it comes to its end.
func moveDisk(from, to *machine, disk string) (changed bool, err error) {
	if !to.has(disk) {
		r := *to.record()
		r.Disks = append(slices.Clone(r.Disks), from.record().Disks[diskIndex(from.record().Disks, disk)])
		if err := to.save(&r); err != nil {
			return false, err
		}
		changed = true
	}
	if !from.has(disk) {
		return changed, nil
	}
	r := *from.record()
	r.Disks = slices.DeleteFunc(slices.Clone(r.Disks), func(d hypervisor.Disk) bool { return d.UUID == disk })
	return true, from.save(&r)
}

// has tells whether a machine that may be none has a disk.
func (m *machine) has(disk string) bool { return m != nil && diskIndex(m.record().Disks, disk) >= 0 }

// thing is what the machine is told apart by.
func (m *machine) thing() hypervisor.Thing {
	return hypervisor.Thing{UUID: m.uuid, Name: m.record().Name}
}

// unmake takes back that a call made a machine, if it did, and failed.
func (d *Driver) unmake(m *machine, made bool) error {
	if !made {
		return nil
	}
	err := m.clear()
	d.forget(m)
	return err
}

// elsewhere tells whether another thing than a machine has a disk.
func (d *Driver) elsewhere(but *machine, disk string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, m := range d.things {
		if m != but && m.there() && m.has(disk) {
			return true
		}
	}
	return false
}
