package world

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/hypervisor"
	"github.com/drover-project/drover/internal/sim/check"
)

// driver is the hypervisor of a node as the agent of one life sees it in a term: what it
// makes of instances stays with the node. It implements hypervisor.Driver.
type driver struct {
	*node
	life  *life
	epoch int64
}

// work does something to an instance, which takes some time. It happens at a moment of
// that time, if the life lives until then.
func (d driver) work(ctx context.Context, instance, what string, act func() (bool, error)) (changed bool, err error) {
	if err := hypervisor.CheckName(instance); err != nil {
		return false, err
	}
	if err := d.life.gate(); err != nil {
		return false, err
	}
	if ctx.Err() != nil {
		return false, fault.New(fault.Canceled, "%s %s was given up: %w", what, instance, context.Cause(ctx))
	}
	ended := d.w.effects.Works(check.Effect{Node: d.name, Of: thing(instance), What: what, Owner: d.life.id, Epoch: d.epoch, Followed: d.followed(thing(instance))})
	defer ended()
	d.w.actsFor(ctx, instance)
	stream := "driver/" + d.name
	if err := d.life.rest(context.Background(), d.w.streams.Between(stream, time.Millisecond, 50*time.Millisecond)); err != nil {
		return false, err
	}
	if err := d.life.gate(); err != nil {
		return false, err
	}
	d.mu.Lock()
	changed, err = act()
	d.mu.Unlock()
	if err == nil && changed {
		d.w.tellf(d.name, "%s %s, for %s", what, instance, d.life.id)
	}
	if err := d.life.rest(context.Background(), d.w.streams.Between(stream, time.Millisecond, 10*time.Millisecond)); err != nil {
		return false, err
	}
	return changed, err
}

// thing is an instance as agents hold it.
func thing(instance string) string { return "instance " + instance }

// followed is whom the node followed when this life began to hold a thing: under a hold
// nobody else acts. Who holds nothing counts from now.
func (d driver) followed(of string) int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	if h := d.held[of]; h.by == d.life {
		return h.follows
	}
	return d.follows
}

// Kind implements hypervisor.Driver.
func (d driver) Kind() string { return "fake" }

// Prepare implements hypervisor.Driver.
func (d driver) Prepare(ctx context.Context, name, uuid string, disks []hypervisor.Disk) (bool, error) {
	return d.work(ctx, name, "prepare", func() (changed bool, err error) {
		i, known, err := d.own(name, uuid)
		if err != nil {
			return false, err
		}
		if !known {
			i = hypervisor.Instance{Name: name, UUID: uuid, State: hypervisor.Stopped, Blank: true}
			changed = true
		}
		i.Disks = slices.Clone(i.Disks)
		for _, k := range disks {
			at := slices.IndexFunc(i.Disks, func(have hypervisor.Disk) bool { return have.UUID == k.UUID })
			switch {
			case at < 0:
				i.Disks = append(i.Disks, k)
				changed = true
			case i.Disks[at].Size < k.Size:
				i.Disks[at].Size = k.Size
				changed = true
			}
		}
		if d.used(name)+sum(i.Disks) > nodeDisk {
			return false, fault.New(fault.Exhausted, "there is no room for the disks of %s", name)
		}
		d.machines[name] = i
		return changed, nil
	})
}

func sum(disks []hypervisor.Disk) (size int) {
	for _, k := range disks {
		size += k.Size
	}
	return size
}

// used is the size of the disks of all instances but one. The caller holds the mutex.
func (n *node) used(but string) (size int) {
	for name, i := range n.machines {
		if name != but {
			size += sum(i.Disks)
		}
	}
	return size
}

// own is an instance; the error is for one that is another's.
func (d driver) own(name, uuid string) (i hypervisor.Instance, known bool, err error) {
	i, known = d.machines[name]
	if known && i.UUID != uuid {
		return i, true, hypervisor.Stranger(name, uuid, i.UUID)
	}
	return i, known, nil
}

// Keep implements hypervisor.Driver.
func (d driver) Keep(ctx context.Context, name, uuid string) (bool, error) {
	return d.work(ctx, name, "keep", func() (changed bool, err error) {
		i, known, err := d.own(name, uuid)
		if err == nil && !known {
			err = fault.New(fault.NotFound, "there is no instance %s on %s", name, d.name)
		}
		if err != nil || !i.Blank {
			return false, err
		}
		i.Blank = false
		d.machines[name] = i
		return true, nil
	})
}

// Drop implements hypervisor.Driver.
func (d driver) Drop(ctx context.Context, name string, disks []string) (bool, error) {
	return d.work(ctx, name, "drop disks of", func() (bool, error) {
		i, known := d.machines[name]
		if !known {
			return false, nil
		}
		before := len(i.Disks)
		i.Disks = slices.DeleteFunc(slices.Clone(i.Disks), func(have hypervisor.Disk) bool { return slices.Contains(disks, have.UUID) })
		d.machines[name] = i
		return len(i.Disks) < before, nil
	})
}

// Remove implements hypervisor.Driver.
func (d driver) Remove(ctx context.Context, name string) (bool, error) {
	return d.work(ctx, name, "remove", func() (bool, error) {
		i, known := d.machines[name]
		if i.Active() {
			return false, fault.New(fault.WrongState, "%s is active", name)
		}
		delete(d.machines, name)
		return known, nil
	})
}

// Rename implements hypervisor.Driver.
func (d driver) Rename(ctx context.Context, name, to string) (bool, error) {
	if err := hypervisor.CheckName(to); err != nil {
		return false, err
	}
	return d.work(ctx, name, "rename", func() (bool, error) {
		i, known := d.machines[name]
		_, taken := d.machines[to]
		switch {
		case !known && taken:
			return false, nil
		case !known:
			return false, fault.New(fault.NotFound, "there is no instance %s", name)
		case i.Active():
			return false, fault.New(fault.WrongState, "%s is active", name)
		case taken:
			return false, fault.New(fault.Exists, "%s is taken", to)
		}
		i.Name = to
		delete(d.machines, name)
		d.machines[to] = i
		return true, nil
	})
}

// Start implements hypervisor.Driver.
func (d driver) Start(ctx context.Context, spec hypervisor.Spec) (bool, error) {
	return d.work(ctx, spec.Name, "start", func() (bool, error) {
		i, _, err := d.own(spec.Name, spec.UUID)
		if err != nil || i.Active() {
			return false, err
		}
		for _, k := range spec.Disks {
			if !slices.ContainsFunc(i.Disks, func(have hypervisor.Disk) bool { return have.UUID == k.UUID }) {
				return false, fault.New(fault.WrongState, "disk %s of %s does not exist", k.UUID, spec.Name)
			}
		}
		if d.free() < spec.Memory {
			return false, fault.New(fault.Exhausted, "there is no memory for %s", spec.Name)
		}
		i.Name, i.UUID, i.State, i.Memory, i.VCPUs, i.Blank = spec.Name, spec.UUID, hypervisor.Running, spec.Memory, spec.VCPUs, false
		if spec.StartPaused {
			i.State = hypervisor.Paused
		}
		d.machines[spec.Name] = i
		return true, nil
	})
}

// Stop implements hypervisor.Driver.
func (d driver) Stop(ctx context.Context, name string, _ hypervisor.Stop) (bool, error) {
	return d.work(ctx, name, "stop", func() (bool, error) {
		i := d.machines[name]
		if !i.Active() {
			return false, nil
		}
		i.State, i.Memory, i.VCPUs = hypervisor.Stopped, 0, 0
		d.machines[name] = i
		return true, nil
	})
}

// Reboot implements hypervisor.Driver.
func (d driver) Reboot(ctx context.Context, name string) error {
	_, err := d.work(ctx, name, "reboot", func() (bool, error) {
		if d.machines[name].State != hypervisor.Running {
			return false, fault.New(fault.WrongState, "%s does not run", name)
		}
		return true, nil
	})
	return err
}

// Instance implements hypervisor.Driver.
func (d driver) Instance(_ context.Context, name string) (i hypervisor.Instance, err error) {
	if err := d.life.gate(); err != nil {
		return i, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	i, known := d.machines[name]
	if !known {
		return i, fault.New(fault.NotFound, "there is no instance %s on %s", name, d.name)
	}
	i.Disks = slices.Clone(i.Disks)
	return i, nil
}

// Instances implements hypervisor.Driver.
func (d driver) Instances(context.Context) (all []hypervisor.Instance, err error) {
	if err := d.life.gate(); err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, i := range d.machines {
		i.Disks = slices.Clone(i.Disks)
		all = append(all, i)
	}
	slices.SortFunc(all, func(a, b hypervisor.Instance) int { return cmp.Compare(a.Name, b.Name) })
	return all, nil
}

// nodeMemory and nodeDisk are what each node has, in MiB.
const (
	nodeMemory = 16 << 10
	nodeDisk   = 4 << 20
)

// free is the memory that is left. The caller holds the mutex.
func (n *node) free() int {
	left := nodeMemory
	for _, i := range n.machines {
		left -= i.Memory
	}
	return left
}

// Node implements hypervisor.Driver.
func (d driver) Node(context.Context) (hypervisor.Node, error) {
	if err := d.life.gate(); err != nil {
		return hypervisor.Node{}, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return hypervisor.Node{MemoryTotal: nodeMemory, MemoryFree: d.free(), DiskTotal: nodeDisk, DiskFree: nodeDisk - d.used(""), CPUs: 16, CPUNodes: 1, CPUSockets: 1,
		BootID: d.name, Version: "pretended"}, nil
}

// Close implements hypervisor.Driver.
func (d driver) Close() error { return nil }
