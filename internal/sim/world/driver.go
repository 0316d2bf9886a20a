package world

import (
	"cmp"
	"context"
	"net"
	"os"
	"slices"
	"time"

	"github.com/drover-project/drover/internal/console"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/hypervisor"
	"github.com/drover-project/drover/internal/sim/check"
	"github.com/drover-project/drover/internal/storage"
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
func (d driver) work(ctx context.Context, of hypervisor.Thing, what string, act func(i hypervisor.Instance, known bool) (bool, error)) (bool, error) {
	return d.workBeside(ctx, of, "", what, act)
}

// workBeside is work that goes on beside what this life of the store left under the name.
func (d driver) workBeside(ctx context.Context, of hypervisor.Thing, left, what string, act func(hypervisor.Instance, bool) (bool, error)) (changed bool, err error) {
	if err := of.Check(); err != nil {
		return false, err
	}
	instance := of.Name
	if err := d.life.gate(); err != nil {
		return false, err
	}
	if ctx.Err() != nil {
		return false, fault.New(fault.Canceled, "%s %s was given up: %w", what, instance, context.Cause(ctx))
	}
	ended := d.works(check.Effect{Node: d.name, Of: thing(instance), What: what, Owner: d.life.id, Epoch: d.epoch, Followed: d.followed(thing(instance))})
	defer ended()
	d.w.actsFor(ctx, of)
	stream := "driver/" + d.name
	if err := d.life.rest(context.Background(), d.w.streams.Between(stream, time.Millisecond, 50*time.Millisecond)); err != nil {
		return false, err
	}
	if err := d.life.gate(); err != nil {
		return false, err
	}
	d.mu.Lock()
	i, known, err := d.find(of, left)
	if err == nil {
		changed, err = act(i, known)
	}
	d.mu.Unlock()
	if err == nil && changed {
		d.w.tellf(d.name, "%s %s, for %s", what, instance, d.life.id)
	}
	if err := d.life.rest(context.Background(), d.w.streams.Between(stream, time.Millisecond, 10*time.Millisecond)); err != nil {
		return false, err
	}
	return changed, err
}

// works counts an effect that ends with its life (node.died), or when what is returned is
// called.
func (d driver) works(e check.Effect) (ended func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.life.isDead() {
		return func() {}
	}
	a := &acting{d.life, d.w.effects.Works(e)}
	d.acting[a] = true
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.acting, a)
		a.ended()
	}
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
func (d driver) Prepare(ctx context.Context, of hypervisor.Thing, by hypervisor.Mark, disks []hypervisor.Disk) (bool, error) {
	return d.workBeside(ctx, of, by.Life, "prepare", func(i hypervisor.Instance, known bool) (changed bool, err error) {
		if !known {
			i = hypervisor.Instance{Name: of.Name, UUID: of.UUID, State: hypervisor.Stopped, MadeBy: by}
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
		if d.used(of.UUID)+sum(i.Disks) > nodeDisk {
			return false, fault.New(fault.Exhausted, "there is no room for the disks of %s", of.Name)
		}
		d.machines[of.UUID] = i
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
	for uuid, i := range n.machines {
		if uuid != but {
			size += sum(i.Disks)
		}
	}
	return size
}

// find is an instance; the error is for a name that is another's, unless this life of the store left all that is under it.
// The caller holds the mutex.
func (n *node) find(of hypervisor.Thing, life string) (i hypervisor.Instance, known bool, err error) {
	if i, known = n.machines[of.UUID]; known {
		return i, true, nil
	}
	for _, other := range n.named(of.Name) {
		if !other.LeftBy(life) {
			return i, false, hypervisor.Stranger(of, other.UUID)
		}
	}
	return i, false, nil
}

// named is what is under a name. The caller holds the mutex.
func (n *node) named(name string) (all []hypervisor.Instance) {
	for _, i := range n.machines {
		if i.Name == name {
			i.Disks = slices.Clone(i.Disks)
			all = append(all, i)
		}
	}
	slices.SortFunc(all, func(a, b hypervisor.Instance) int { return cmp.Compare(a.UUID, b.UUID) })
	return all
}

// Drop implements hypervisor.Driver.
func (d driver) Drop(ctx context.Context, of hypervisor.Thing, disks []string) (bool, error) {
	return d.work(ctx, of, "drop disks of", func(i hypervisor.Instance, known bool) (bool, error) {
		if !known {
			return false, nil
		}
		before := len(i.Disks)
		i.Disks = slices.DeleteFunc(slices.Clone(i.Disks), func(have hypervisor.Disk) bool { return slices.Contains(disks, have.UUID) })
		d.machines[of.UUID] = i
		return len(i.Disks) < before, nil
	})
}

// Detach implements hypervisor.Driver.
func (d driver) Detach(ctx context.Context, of hypervisor.Thing, by hypervisor.Mark, disks []string) (bool, error) {
	return d.work(ctx, of, "detach disks of", func(i hypervisor.Instance, _ bool) (changed bool, err error) {
		for _, disk := range disks {
			alone := hypervisor.DetachedDisk(disk)
			at := slices.IndexFunc(i.Disks, func(have hypervisor.Disk) bool { return have.UUID == disk })
			_, done := d.machines[alone.UUID]
			switch {
			case at < 0 && !done:
				return false, hypervisor.NoSuchDisk(of, disk)
			case at < 0:
				continue
			case i.Active() && slices.ContainsFunc(d.started[of.UUID].Disks, func(used hypervisor.Disk) bool { return used.UUID == disk }):
				return false, hypervisor.InUse(of, disk, i.State)
			}
			d.machines[alone.UUID] = hypervisor.Instance{Name: alone.Name, UUID: alone.UUID, State: hypervisor.Stopped, MadeBy: by, Disks: i.Disks[at : at+1 : at+1]}
			i.Disks, changed = slices.Delete(slices.Clone(i.Disks), at, at+1), true
			d.machines[of.UUID] = i
		}
		return changed, nil
	})
}

// Attach implements hypervisor.Driver.
func (d driver) Attach(ctx context.Context, of hypervisor.Thing, by hypervisor.Mark, disks []string) (bool, error) {
	return d.workBeside(ctx, of, by.Life, "attach disks to", func(i hypervisor.Instance, known bool) (changed bool, err error) {
		if !known {
			i = hypervisor.Instance{Name: of.Name, UUID: of.UUID, State: hypervisor.Stopped, MadeBy: by}
		}
		for _, disk := range disks {
			alone, there := d.machines[disk]
			has := slices.ContainsFunc(i.Disks, func(have hypervisor.Disk) bool { return have.UUID == disk })
			switch {
			case !there && !has:
				return false, hypervisor.NoSuchDisk(of, disk)
			case !there:
				continue
			}
			i.Disks, changed = append(slices.Clone(i.Disks), alone.Disks...), true
			d.machines[of.UUID] = i
			delete(d.machines, disk)
		}
		return changed, nil
	})
}

// Remove implements hypervisor.Driver.
func (d driver) Remove(ctx context.Context, of hypervisor.Thing) (bool, error) {
	return d.work(ctx, of, "remove", func(i hypervisor.Instance, known bool) (bool, error) {
		if i.Active() {
			return false, fault.New(fault.WrongState, "%s is active", of.Name)
		}
		delete(d.machines, of.UUID)
		return known, nil
	})
}

// Rename implements hypervisor.Driver.
func (d driver) Rename(ctx context.Context, of hypervisor.Thing, to string) (bool, error) {
	if err := hypervisor.CheckName(to); err != nil {
		return false, err
	}
	d.w.actsFor(ctx, hypervisor.Thing{UUID: of.UUID, Name: to})
	return d.work(ctx, of, "rename", func(i hypervisor.Instance, known bool) (bool, error) {
		switch taken := d.named(to); {
		case !known:
			return false, fault.New(fault.NotFound, "there is no instance %s", of.Name)
		case i.Name == to:
			return false, nil
		case len(taken) > 0:
			return false, hypervisor.Stranger(hypervisor.Thing{UUID: of.UUID, Name: to}, taken[0].UUID)
		case i.Active():
			return false, fault.New(fault.WrongState, "%s is active", of.Name)
		}
		i.Name = to
		d.machines[of.UUID] = i
		return true, nil
	})
}

// Start implements hypervisor.Driver.
func (d driver) Start(ctx context.Context, spec hypervisor.Spec) (bool, error) {
	return d.work(ctx, spec.Thing(), "start", func(i hypervisor.Instance, known bool) (bool, error) {
		if i.Active() {
			return false, nil
		}
		for _, k := range spec.Disks {
			if !slices.ContainsFunc(i.Disks, func(have hypervisor.Disk) bool { return have.UUID == k.UUID }) {
				return false, fault.New(fault.WrongState, "disk %s of %s does not exist", k.UUID, spec.Name)
			}
		}
		memory, err := spec.StartMemory(d.free())
		if err != nil {
			return false, err
		}
		if !known {
			i.MadeBy = spec.By
		}
		i.Name, i.UUID, i.State, i.Memory, i.VCPUs = spec.Name, spec.UUID, hypervisor.Running, memory, spec.VCPUs
		if spec.StartPaused {
			i.State = hypervisor.Paused
		}
		d.machines[spec.UUID], d.started[spec.UUID] = i, spec
		return true, nil
	})
}

// Stop implements hypervisor.Driver.
func (d driver) Stop(ctx context.Context, of hypervisor.Thing, _ hypervisor.Stop) (bool, error) {
	return d.work(ctx, of, "stop", func(i hypervisor.Instance, _ bool) (bool, error) {
		if !i.Active() {
			return false, nil
		}
		i.State, i.Memory, i.VCPUs = hypervisor.Stopped, 0, 0
		d.machines[of.UUID] = i
		return true, nil
	})
}

// Reboot implements hypervisor.Driver.
func (d driver) Reboot(ctx context.Context, of hypervisor.Thing) error {
	_, err := d.work(ctx, of, "reboot", func(i hypervisor.Instance, _ bool) (bool, error) {
		if i.State != hypervisor.Running {
			return false, fault.New(fault.WrongState, "%s does not run", of.Name)
		}
		return true, nil
	})
	return err
}

// Instance implements hypervisor.Driver.
func (d driver) Instance(_ context.Context, of hypervisor.Thing) (i hypervisor.Instance, err error) {
	if err := of.Check(); err != nil {
		return i, err
	}
	if err := d.life.gate(); err != nil {
		return i, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	i, known, err := d.find(of, "")
	if err == nil && !known {
		err = fault.New(fault.NotFound, "there is no instance %s on %s", of.Name, d.name)
	}
	i.Disks = slices.Clone(i.Disks)
	return i, err
}

// Named implements hypervisor.Driver.
func (d driver) Named(_ context.Context, name string) ([]hypervisor.Instance, error) {
	if err := hypervisor.CheckName(name); err != nil {
		return nil, err
	}
	if err := d.life.gate(); err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.named(name), nil
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
	slices.SortFunc(all, func(a, b hypervisor.Instance) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.UUID, b.UUID))
	})
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

// Backing implements hypervisor.Driver: the world knows no more of disks than how large they are.
func (d driver) Backing() storage.Backing { return storage.Pools{} }

// Balloon implements hypervisor.Driver. Guests of the world agree at once, up to what their node has.
func (d driver) Balloon(ctx context.Context, of hypervisor.Thing, memory int) (bool, error) {
	return d.work(ctx, of, "balloon", func(i hypervisor.Instance, _ bool) (bool, error) {
		if !i.Active() {
			return false, fault.New(fault.WrongState, "%s does not run", of.Name)
		}
		spec := d.started[of.UUID]
		if err := spec.CheckBalloon(memory); err != nil {
			return false, err
		}
		if memory-i.Memory > d.free() {
			return false, fault.New(fault.Exhausted, "there is no memory for %s", of.Name)
		}
		changed := i.Memory != memory
		i.Memory = memory
		d.machines[of.UUID] = i
		return changed, nil
	})
}

// Adjust is Unsupported: no guest of the world has devices.
func (d driver) Adjust(context.Context, hypervisor.Spec) (bool, error) {
	return false, hypervisor.NoHotplug()
}

// Receive is Unsupported: no guest of the world moves.
func (d driver) Receive(_ context.Context, spec hypervisor.Spec) (bool, error) {
	return false, hypervisor.NoMigration(spec.Name)
}

// Send is Unsupported, likewise.
func (d driver) Send(_ context.Context, of hypervisor.Thing) (bool, error) {
	return false, hypervisor.NoMigration(of.Name)
}

// Blank implements hypervisor.Driver.
func (d driver) Blank(_ context.Context, of hypervisor.Thing, _ string, _ *storage.Base) error {
	return hypervisor.NoLayers(of, "world")
}

// Snapshot is Unsupported, and so are the others that are about snapshots: nodes of the world keep no exports.
func (d driver) Snapshot(_ context.Context, of hypervisor.Thing, _ string) (bool, error) {
	return false, hypervisor.NoSnapshots(of, d.Kind())
}

// CopySnapshot is Unsupported.
func (d driver) CopySnapshot(_ context.Context, of hypervisor.Thing, _, _ string, _ *os.File, _ func(done, size int64)) error {
	return hypervisor.NoSnapshots(of, d.Kind())
}

// Release has nothing to end.
func (d driver) Release(context.Context, hypervisor.Thing, string) (bool, error) { return false, nil }

// Seed is Unsupported, but for taking away what nothing here has.
func (d driver) Seed(_ context.Context, of hypervisor.Thing, cd []byte) error {
	if len(cd) == 0 {
		return nil
	}
	return hypervisor.NoSeed(of, "sim")
}

// Console is Unsupported: no guest of the world prints anything.
func (d driver) Console(of hypervisor.Thing) (*console.Line, error) {
	return nil, hypervisor.NoConsole(of, "sim")
}

// Screen is Unsupported, too.
func (d driver) Screen(_ context.Context, of hypervisor.Thing) (net.Conn, error) {
	return nil, hypervisor.NoConsole(of, "sim")
}

// Powercycle is Unsupported: machines of the world end by its own faults.
func (d driver) Powercycle() (reset func(ctx context.Context) error, err error) {
	return nil, fault.New(fault.Unsupported, "node %s cannot be switched off and on", d.name)
}

// Watch does nothing: no guest of the world ends by itself.
func (d driver) Watch(func()) {}

// Close implements hypervisor.Driver.
func (d driver) Close() error { return nil }
