// Package fake is a hypervisor driver that runs nothing: an instance is a JSON
// file in a directory. It behaves like a real one as far as the port can tell,
// down to running out of memory and disk, and outlives the process that opened
// it. It is the embedded default, and the ground of most tests.
//
// Invariants:
//   - The files are the truth; memory only caches them. A change is in the
//     file, by an atomic rename, before the call returns.
//   - Files survive the death of the process at any moment, not of the
//     machine: like running machines, they need not outlive a power cut.
//   - A driver that is killed while it moves what a node has from the layout of before (see layout.go) has lost nothing:
//     the next one ends the move (TestKilledWhileItMoves).
//   - A program of before cannot open what was moved (TestProgramsOfBeforeCannotOpenWhatWasMoved).
package fake

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/drover-project/drover/internal/console"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/hypervisor"
	"github.com/drover-project/drover/internal/storage"
)

// Kind is the driver's name in the inventory.
const Kind = "fake"

// Call tells a fault hook what is going on.
type Call struct {
	// Method is the name of the driver method in lower case, for example
	// "start".
	Method string
	// Name is the instance, empty for calls about the whole node.
	Name string
	// After is false before the call has any effect, and true when all of it
	// took place and only the answer is still to be given.
	After bool
}

// Config says where the state lives and how large the pretended node is. Zero
// figures take the defaults.
type Config struct {
	// Dir is the node's directory, which others keep files in, too. The state is in instances/ and, before that, in
	// hypervisor/ below it; both are made when they do not exist.
	Dir string
	// ByUUID tells whether the state may be laid out in a way that programs of before do not know; nil is always. It
	// is asked at Open, and before each change, until it has answered true once.
	ByUUID func() bool
	// Memory is the node's memory in MiB (default 131072); its own system
	// uses MemoryNode of it (default 1024).
	Memory, MemoryNode int
	// Disk is the space for instances in MiB (default 4194304).
	Disk int
	// Group is what the pretended volume group is called (default xenvg), and Files the pretended directory of disks that are files (default
	// /srv/ganeti/file-storage). Both have the room of Disk together.
	Group, Files string
	// Providers lists the storage providers of the node; nil where it has none, and is believed to have whichever is asked for.
	Providers func() ([]storage.Provider, error)
	// CPUs is the number of logical processors (default 32).
	CPUs int
	// SyncRate is how many MiB of a mirrored disk are copied in a second; 0 copies at once.
	SyncRate int
	// Away is how long the node is gone when it is switched off and on; 0 is not at all.
	Away time.Duration
	// Now is the clock of copies; nil is the machine's.
	Now func() time.Time
	// Fault, when set, is asked before and after each call; an error fails
	// the call. Tests use it to break a driver at a chosen point.
	Fault func(Call) error

	// step, when set, is told of each step of a move before it is done; an error ends the move there.
	step func(what string) error
}

// Driver implements hypervisor.Driver. It is safe for concurrent use.
type Driver struct {
	cfg Config

	mu sync.Mutex
	// moved says that the files are called by UUIDs.
	moved  bool
	things map[string]*record // by UUID
	// unreadable says why there is no record of an instance that has a file, by UUID.
	unreadable map[string]error
	// strangers are of files of which nobody knows whose they are; no call changes them.
	strangers []*record
	group     groupState
	back      time.Time // when the node has come up again
	resets    int
	changed   func() // see Watch
	memory    int    // MiB used by active instances
	disk      int    // MiB used by disks
}

// Open reads the state of the directory, and moves it to the newest layout if it may.
func Open(cfg Config) (*Driver, error) {
	if cfg.Memory == 0 {
		cfg.Memory = 131072
	}
	if cfg.MemoryNode == 0 {
		cfg.MemoryNode = 1024
	}
	if cfg.Disk == 0 {
		cfg.Disk = 4194304
	}
	if cfg.CPUs == 0 {
		cfg.CPUs = 32
	}
	cfg.Group, cfg.Files = cmp.Or(cfg.Group, "xenvg"), cmp.Or(cfg.Files, "/srv/ganeti/file-storage")
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	d := &Driver{cfg: cfg, changed: func() {}}
	if err := d.readGroup(); err != nil {
		return nil, err
	}
	begun, err := d.moveBegun()
	if err != nil {
		return nil, err
	}
	if begun || d.byUUID() {
		return d, d.move()
	}
	if err := os.MkdirAll(d.dir(former), 0o750); err != nil {
		return nil, fault.New(fault.Environment, "cannot make the directory of the fake hypervisor: %w", err)
	}
	return d, d.load()
}

// within runs one call: the context, the name and the fault hook first, the
// work under the lock, and the hook again.
func (d *Driver) within(ctx context.Context, method, name string, work func() error) error {
	if err := ctx.Err(); err != nil {
		return fault.New(fault.Canceled, "%s of %s was not begun: %w", method, name, err)
	}
	if name != "" {
		if err := hypervisor.CheckName(name); err != nil {
			return err
		}
	}
	if err := d.hook(Call{Method: method, Name: name}); err != nil {
		return err
	}
	d.mu.Lock()
	err := d.gone()
	if err == nil {
		err = work()
	}
	d.mu.Unlock()
	if err != nil {
		return err
	}
	return d.hook(Call{Method: method, Name: name, After: true})
}

func (d *Driver) hook(c Call) error {
	if d.cfg.Fault == nil {
		return nil
	}
	return d.cfg.Fault(c)
}

// change runs a call that may change a thing. The work gets its record, nil if there is none.
func (d *Driver) change(ctx context.Context, method string, of hypervisor.Thing, work func(old *record) error) error {
	return d.changeBeside(ctx, method, of, "", work)
}

// changeBeside is change for a call that goes on beside what this life of the store left under the name.
func (d *Driver) changeBeside(ctx context.Context, method string, of hypervisor.Thing, life string, work func(old *record) error) error {
	if err := of.Check(); err != nil {
		return err
	}
	return d.within(ctx, method, of.Name, func() error {
		if !d.moved && d.byUUID() {
			if err := d.move(); err != nil {
				return err
			}
		}
		if err := d.unreadable[of.UUID]; err != nil && method != "remove" {
			return err
		}
		old, err := d.find(of, life)
		if err != nil {
			return err
		}
		return work(old)
	})
}

// find returns the record of a thing, nil if there is none; the error is for
// a name that is another's, unless all of that was left by this life of the store.
func (d *Driver) find(of hypervisor.Thing, life string) (*record, error) {
	r := d.things[of.UUID]
	if _, bad := d.unreadable[of.UUID]; bad || r != nil {
		return r, nil
	}
	for _, there := range d.named(of.Name) {
		if i := d.info(there); !i.LeftBy(life) {
			return nil, there.stranger(of)
		}
	}
	return nil, nil
}

// named returns what is under a name, by UUID.
func (d *Driver) named(name string) (out []*record) {
	for _, r := range d.things {
		if r.Name == name {
			out = append(out, r)
		}
	}
	for _, r := range d.strangers {
		if r.Name == name {
			out = append(out, r)
		}
	}
	slices.SortFunc(out, func(a, b *record) int { return strings.Compare(a.UUID, b.UUID) })
	return out
}

// stranger is the error about what is under the name of a thing.
func (r *record) stranger(of hypervisor.Thing) error {
	if r.why != nil {
		return r.why
	}
	return hypervisor.Stranger(of, r.UUID)
}

// Kind returns "fake".
func (d *Driver) Kind() string { return Kind }

// Prepare makes and grows disks.
func (d *Driver) Prepare(ctx context.Context, of hypervisor.Thing, by hypervisor.Mark, disks []hypervisor.Disk) (changed bool, err error) {
	err = d.changeBeside(ctx, "prepare", of, by.Life, func(old *record) error {
		next := record{Name: of.Name, UUID: of.UUID, State: hypervisor.Stopped, MadeBy: by}
		if old != nil {
			next = *old
			next.Disks = slices.Clone(old.Disks)
		}
		changed = old == nil
		for _, disk := range disks {
			i := next.disk(disk.UUID)
			if grows := i < 0 || next.Disks[i].Size < disk.Size; grows {
				if err := d.mayMake(&disk); err != nil {
					return err
				}
			}
			switch {
			case i < 0:
				next.Disks = append(next.Disks, disk)
				if disk.From != "" {
					d.copies(&next, disk.UUID, disk.Size)
				}
			case next.Disks[i].Size < disk.Size:
				if disk.From != "" {
					d.copies(&next, disk.UUID, disk.Size-next.Disks[i].Size)
				}
				next.Disks[i].Size = disk.Size
			default:
				continue
			}
			changed = true
		}
		if !changed {
			return nil
		}
		need := next.space()
		if old != nil {
			need -= old.space()
		}
		if free := d.cfg.Disk - d.disk; need > free {
			return fault.New(fault.Exhausted, "not enough disk space: %d MiB needed, %d MiB free", need, free)
		}
		return d.save(&next)
	})
	return changed && err == nil, err
}

// Drop removes disks.
func (d *Driver) Drop(ctx context.Context, of hypervisor.Thing, disks []string) (changed bool, err error) {
	err = d.change(ctx, "drop", of, func(old *record) error {
		if old == nil {
			return nil
		}
		next := *old
		next.Disks = slices.DeleteFunc(slices.Clone(old.Disks), func(disk hypervisor.Disk) bool {
			return slices.Contains(disks, disk.UUID)
		})
		changed = len(next.Disks) != len(old.Disks)
		if !changed {
			return nil
		}
		next.Copies = maps.Clone(old.Copies)
		maps.DeleteFunc(next.Copies, func(disk string, _ copying) bool { return next.disk(disk) < 0 })
		return d.save(&next)
	})
	return changed && err == nil, err
}

// Detach has disks of an instance be things of their own.
func (d *Driver) Detach(ctx context.Context, of hypervisor.Thing, by hypervisor.Mark, disks []string) (changed bool, err error) {
	err = d.change(ctx, "detach", of, func(*record) error {
		for _, disk := range disks {
			from, alone := d.things[of.UUID], d.things[disk]
			if from.has(disk) && from.active() && slices.ContainsFunc(from.Spec.Disks, func(used hypervisor.Disk) bool { return used.UUID == disk }) {
				return hypervisor.InUse(of, disk, from.State)
			}
			if alone == nil {
				thing := hypervisor.DetachedDisk(disk)
				alone = &record{Name: thing.Name, UUID: thing.UUID, State: hypervisor.Stopped, MadeBy: by}
			}
			moved, err := d.moveDisk(of, from, alone, disk)
			if err != nil {
				return err
			}
			changed = changed || moved
		}
		return nil
	})
	return changed && err == nil, err
}

// Attach has detached disks be those of an instance.
func (d *Driver) Attach(ctx context.Context, of hypervisor.Thing, by hypervisor.Mark, disks []string) (changed bool, err error) {
	err = d.changeBeside(ctx, "attach", of, by.Life, func(*record) error {
		for _, disk := range disks {
			alone, to := d.things[disk], d.things[of.UUID]
			if to == nil {
				to = &record{Name: of.Name, UUID: of.UUID, State: hypervisor.Stopped, MadeBy: by}
			}
			moved, err := d.moveDisk(of, alone, to, disk)
			if err != nil {
				return err
			}
			if alone != nil {
				if err := os.Remove(d.path(alone.file)); err != nil {
					return fault.New(fault.Environment, "cannot remove the state of %s: %w", alone.Name, err)
				}
				d.forget(alone.UUID)
				moved = true
			}
			changed = changed || moved
		}
		return nil
	})
	return changed && err == nil, err
}

// moveDisk takes a disk from one record, if that has it, and gives it to another, which has it in its file first.
func (d *Driver) moveDisk(of hypervisor.Thing, from, to *record, disk string) (changed bool, err error) {
	switch {
	case !from.has(disk) && !to.has(disk):
		return false, hypervisor.NoSuchDisk(of, disk)
	case !to.has(disk):
		next := *to
		next.Disks = append(slices.Clone(to.Disks), from.Disks[from.disk(disk)])
		if c, copied := from.Copies[disk]; copied {
			next.Copies = maps.Clone(to.Copies)
			if next.Copies == nil {
				next.Copies = map[string]copying{}
			}
			next.Copies[disk] = c
		}
		if err := d.save(&next); err != nil {
			return false, err
		}
		changed = true
	}
	if !from.has(disk) {
		return changed, nil
	}
	next := *from
	next.Disks = slices.DeleteFunc(slices.Clone(from.Disks), func(have hypervisor.Disk) bool { return have.UUID == disk })
	next.Copies = maps.Clone(from.Copies)
	delete(next.Copies, disk)
	return true, d.save(&next)
}

// Remove removes the instance's file, also one that cannot be read.
func (d *Driver) Remove(ctx context.Context, of hypervisor.Thing) (changed bool, err error) {
	remove := func(file string) error {
		if err := os.Remove(d.path(file)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fault.New(fault.Environment, "cannot remove the state of %s: %w", of.Name, err)
		}
		d.forget(of.UUID)
		delete(d.unreadable, of.UUID)
		changed = true
		return nil
	}
	err = d.change(ctx, "remove", of, func(old *record) error {
		switch {
		case d.unreadable[of.UUID] != nil:
			return remove(of.UUID)
		case old == nil:
			return nil
		case !old.idle():
			return fault.New(fault.WrongState, "instance %s is %s and can't be removed", of.Name, old.State)
		}
		return remove(old.file)
	})
	return changed && err == nil, err
}

// Rename gives the instance another name.
func (d *Driver) Rename(ctx context.Context, of hypervisor.Thing, to string) (changed bool, err error) {
	if err := hypervisor.CheckName(to); err != nil {
		return false, err
	}
	err = d.change(ctx, "rename", of, func(old *record) error {
		switch {
		case old == nil:
			return fault.New(fault.NotFound, "instance %s is not known on this node", of.Name)
		case old.Name == to:
			return nil
		case len(d.named(to)) > 0:
			return d.named(to)[0].stranger(hypervisor.Thing{UUID: of.UUID, Name: to})
		case !old.idle():
			return fault.New(fault.WrongState, "instance %s is %s and can't be renamed", of.Name, old.State)
		}
		next := *old
		next.Name = to
		changed = true
		return d.save(&next)
	})
	return changed && err == nil, err
}

// Start marks the instance as running. One that was received is not booted.
func (d *Driver) Start(ctx context.Context, spec hypervisor.Spec) (changed bool, err error) {
	return d.enter(ctx, "start", spec, func(next *record) {
		if next.State != hypervisor.Incoming {
			next.Boots++
		}
		next.State = hypervisor.Running
		if spec.StartPaused {
			next.State = hypervisor.Paused
		}
	})
}

// Receive marks the instance as one that waits for another node.
func (d *Driver) Receive(ctx context.Context, spec hypervisor.Spec) (changed bool, err error) {
	return d.enter(ctx, "receive", spec, func(next *record) { next.State = hypervisor.Incoming })
}

// enter has an instance that is not active get its memory, and a state.
func (d *Driver) enter(ctx context.Context, method string, spec hypervisor.Spec, into func(next *record)) (changed bool, err error) {
	err = d.change(ctx, method, spec.Thing(), func(old *record) error {
		next := record{UUID: spec.UUID, State: hypervisor.Stopped, MadeBy: spec.By}
		if old != nil {
			next = *old
		}
		if next.active() {
			return nil
		}
		was := next.State
		if into(&next); next.State == was {
			return nil
		}
		if err := next.lacks(&spec); err != nil {
			return err
		}
		memory, err := spec.StartMemory(d.free() + next.memory())
		if err != nil {
			return err
		}
		next.Name, next.Spec, next.Memory, next.Snapshot = spec.Name, &spec, memory, spec.Snapshot
		changed = true
		return d.save(&next)
	})
	return changed && err == nil, err
}

// Send ends an instance that is active.
func (d *Driver) Send(ctx context.Context, of hypervisor.Thing) (changed bool, err error) {
	return d.leave(ctx, "send", of, (*record).active)
}

// Stop marks the instance as stopped, whatever the guest would say.
func (d *Driver) Stop(ctx context.Context, of hypervisor.Thing, _ hypervisor.Stop) (changed bool, err error) {
	return d.leave(ctx, "stop", of, func(r *record) bool { return !r.idle() })
}

// leave marks what is in a state as stopped.
func (d *Driver) leave(ctx context.Context, method string, of hypervisor.Thing, in func(*record) bool) (changed bool, err error) {
	err = d.change(ctx, method, of, func(old *record) error {
		if old == nil || !in(old) {
			return nil
		}
		next := *old
		next.State, next.Spec, next.Memory, next.Snapshot = hypervisor.Stopped, nil, 0, ""
		changed = true
		return d.save(&next)
	})
	return changed && err == nil, err
}

// Balloon has the memory be as it is wanted: what is pretended has no guest that would have to agree.
func (d *Driver) Balloon(ctx context.Context, of hypervisor.Thing, memory int) (changed bool, err error) {
	err = d.change(ctx, "balloon", of, func(old *record) error {
		if old == nil || !old.active() {
			return fault.New(fault.WrongState, "instance %s is not running", of.Name)
		}
		if err := old.Spec.CheckBalloon(memory); err != nil {
			return err
		}
		if more := memory - old.memory(); more > d.free() {
			return fault.New(fault.Exhausted, "not enough memory: %d MiB needed, %d MiB free", more, d.free())
		}
		next := *old
		next.Memory = memory
		changed = memory != old.memory()
		return d.save(&next)
	})
	return changed && err == nil, err
}

// Reboot counts one more start.
func (d *Driver) Reboot(ctx context.Context, of hypervisor.Thing) error {
	return d.change(ctx, "reboot", of, func(old *record) error {
		if old == nil || !old.active() {
			return fault.New(fault.WrongState, "instance %s is not running", of.Name)
		}
		next := *old
		next.State = hypervisor.Running
		next.Boots++
		return d.save(&next)
	})
}

// Blank is Unsupported: disks have no content.
func (d *Driver) Blank(_ context.Context, of hypervisor.Thing, _ string, _ *storage.Base) error {
	return hypervisor.NoLayers(of, Kind)
}

// Seed is Unsupported, but for taking away what nothing here has.
func (d *Driver) Seed(_ context.Context, of hypervisor.Thing, cd []byte) error {
	if len(cd) == 0 {
		return nil
	}
	return hypervisor.NoSeed(of, Kind)
}

// Instance tells about one instance.
func (d *Driver) Instance(ctx context.Context, of hypervisor.Thing) (out hypervisor.Instance, err error) {
	if err := of.Check(); err != nil {
		return out, err
	}
	err = d.within(ctx, "instance", of.Name, func() error {
		if err := d.unreadable[of.UUID]; err != nil {
			return err
		}
		r, err := d.find(of, "")
		if err != nil {
			return err
		}
		if r == nil {
			return fault.New(fault.NotFound, "instance %s is not known on this node", of.Name)
		}
		out = d.info(r)
		return nil
	})
	return out, err
}

// Named lists what is under a name.
func (d *Driver) Named(ctx context.Context, name string) (out []hypervisor.Instance, err error) {
	if err := hypervisor.CheckName(name); err != nil {
		return nil, err
	}
	err = d.within(ctx, "named", name, func() error {
		for _, r := range d.named(name) {
			out = append(out, d.info(r))
		}
		return nil
	})
	return out, err
}

// Instances lists all instances by name.
func (d *Driver) Instances(ctx context.Context) (out []hypervisor.Instance, err error) {
	err = d.within(ctx, "instances", "", func() error {
		out = make([]hypervisor.Instance, 0, len(d.things)+len(d.strangers))
		for _, r := range d.things {
			out = append(out, d.info(r))
		}
		for _, r := range d.strangers {
			out = append(out, d.info(r))
		}
		slices.SortFunc(out, func(a, b hypervisor.Instance) int {
			return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.UUID, b.UUID))
		})
		return nil
	})
	return out, err
}

func (d *Driver) free() int { return max(0, d.cfg.Memory-d.cfg.MemoryNode-d.memory) }

// Node tells the figures of the pretended node.
func (d *Driver) Node(ctx context.Context) (out hypervisor.Node, err error) {
	err = d.within(ctx, "node", "", func() error {
		out = hypervisor.Node{
			MemoryTotal: d.cfg.Memory, MemoryNode: d.cfg.MemoryNode, MemoryFree: d.free(),
			DiskTotal: d.cfg.Disk, DiskFree: max(0, d.cfg.Disk-d.disk),
			CPUs: d.cfg.CPUs, CPUNodes: 1, CPUSockets: 1, CPUReserved: 1,
			BootID: d.bootID(), Version: "fake 1", Hypervisor: Kind, StandsIn: true, Migrates: true, Snapshots: snapshotted,
		}
		return nil
	})
	return out, err
}

// Adjust has what pretends to be of a kind that takes devices while it runs have those of the specification. It is Unsupported for others.
func (d *Driver) Adjust(ctx context.Context, spec hypervisor.Spec) (changed bool, err error) {
	if n := (hypervisor.Node{StandsIn: true}); !n.Plugs(spec.Hypervisor) {
		return false, hypervisor.NoHotplug()
	}
	err = d.change(ctx, "adjust", spec.Thing(), func(old *record) error {
		if old == nil || !old.active() {
			return nil
		}
		if err := old.lacks(&spec); err != nil {
			return err
		}
		if reflect.DeepEqual(old.Spec.Disks, spec.Disks) && reflect.DeepEqual(old.Spec.NICs, spec.NICs) {
			return nil
		}
		next, devices := *old, *old.Spec
		devices.Disks, devices.NICs = spec.Disks, spec.NICs
		next.Spec, changed = &devices, true
		return d.save(&next)
	})
	return changed && err == nil, err
}

// Console is Unsupported: what is pretended prints nothing.
func (d *Driver) Console(of hypervisor.Thing) (*console.Line, error) {
	return nil, hypervisor.NoConsole(of, Kind)
}

// Screen is Unsupported, too.
func (d *Driver) Screen(_ context.Context, of hypervisor.Thing) (net.Conn, error) {
	return nil, hypervisor.NoConsole(of, Kind)
}

// Watch has changed called when a node that was switched off and on has come up again. Else what is pretended never changes by itself.
func (d *Driver) Watch(changed func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.changed = changed
}

// Powercycle pretends that the machine is switched off and on: nothing runs behind that, and the node is gone for a while.
func (d *Driver) Powercycle() (reset func(ctx context.Context) error, err error) {
	return func(context.Context) error {
		d.mu.Lock()
		defer d.mu.Unlock()
		for _, r := range d.things {
			if r.idle() {
				continue
			}
			next := *r
			next.State, next.Spec, next.Memory, next.Snapshot = hypervisor.Stopped, nil, 0, ""
			if err := d.save(&next); err != nil {
				return err
			}
		}
		d.resets++
		d.back = d.cfg.Now().Add(d.cfg.Away)
		time.AfterFunc(d.cfg.Away, d.changed)
		return nil
	}, nil
}

// gone is the error of a node that was switched off and has not come up again.
func (d *Driver) gone() error {
	if d.cfg.Now().Before(d.back) {
		return fault.New(fault.Environment, "the node was switched off and on, and is not up yet")
	}
	return nil
}

// bootID tells this run of the pretended machine from those before.
func (d *Driver) bootID() string {
	if d.resets == 0 {
		return "fake:" + former
	}
	return fmt.Sprint("fake:", former, ":", d.resets)
}

// Close does nothing: the state is in the files already.
func (d *Driver) Close() error { return nil }
