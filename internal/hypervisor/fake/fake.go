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
package fake

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/hypervisor"
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
	// Dir holds the state; it is made when it does not exist.
	Dir string
	// Memory is the node's memory in MiB (default 131072); its own system
	// uses MemoryNode of it (default 1024).
	Memory, MemoryNode int
	// Disk is the space for instances in MiB (default 4194304).
	Disk int
	// CPUs is the number of logical processors (default 32).
	CPUs int
	// Fault, when set, is asked before and after each call; an error fails
	// the call. Tests use it to break a driver at a chosen point.
	Fault func(Call) error
}

// Driver implements hypervisor.Driver. It is safe for concurrent use.
type Driver struct {
	cfg Config

	mu        sync.Mutex
	instances map[string]*record
	// unreadable says why there is no record of an instance that has a file.
	unreadable map[string]error
	memory     int // MiB used by active instances
	disk       int // MiB used by disks
}

// record is the content of one instance's file. A record is never changed
// once it is in the map; changes put a new one in its place.
type record struct {
	Name  string            `json:"-"` // the file's
	UUID  string            `json:"uuid"`
	State hypervisor.State  `json:"state"`
	Disks []hypervisor.Disk `json:"disks"`
	Blank bool              `json:"blank,omitempty"`
	// Spec is what the machine was last started with; null when stopped.
	Spec *hypervisor.Spec `json:"spec"`
	// Boots counts starts and reboots.
	Boots int `json:"boots"`
}

// Open reads the state of the directory.
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
	d := &Driver{cfg: cfg, instances: map[string]*record{}, unreadable: map[string]error{}}
	if err := os.MkdirAll(cfg.Dir, 0o750); err != nil {
		return nil, fault.New(fault.Environment, "cannot make the directory of the fake hypervisor: %w", err)
	}
	return d, d.load()
}

// load reads the files of all instances. One that cannot be read costs its own
// instance only: calls for it say so until somebody sees to the file, or
// removes the instance.
func (d *Driver) load() error {
	entries, err := os.ReadDir(d.cfg.Dir) // and no pattern: the directory's name may look like one
	if err != nil {
		return fault.New(fault.Environment, "cannot list the state of the fake hypervisor: %w", err)
	}
	for _, e := range entries {
		// The name of the file counts: a rename changes nothing else.
		name, ok := strings.CutSuffix(e.Name(), suffix)
		if !ok {
			continue
		}
		r, err := readRecord(d.path(name))
		if err != nil {
			d.unreadable[name] = fault.New(fault.Environment, "the state of instance %s cannot be read: %w", name, err).
				WithHint("mend or remove %s and start the node's agent again, or remove the instance", d.path(name))
			continue
		}
		r.Name = name
		d.put(r)
	}
	return nil
}

func readRecord(file string) (*record, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	r := new(record)
	if err := json.Unmarshal(data, r); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return r, nil
}

// suffix ends the names of state files; files without it, such as those of an
// interrupted write, are not looked at.
const suffix = ".json"

func (d *Driver) path(name string) string { return filepath.Join(d.cfg.Dir, name+suffix) }

// put places a record in the cache and keeps the sums right.
func (d *Driver) put(r *record) {
	d.forget(r.Name)
	d.instances[r.Name] = r
	d.memory += r.memory()
	d.disk += r.space()
}

func (d *Driver) forget(name string) {
	if old := d.instances[name]; old != nil {
		d.memory -= old.memory()
		d.disk -= old.space()
		delete(d.instances, name)
	}
}

// save writes the record's file and then the cache.
func (d *Driver) save(r *record) error {
	data, err := json.Marshal(r)
	if err != nil {
		return fault.New(fault.Internal, "cannot encode the state of %s: %w", r.Name, err)
	}
	path := d.path(r.Name)
	temporary := path + ".new"
	if err := os.WriteFile(temporary, append(data, '\n'), 0o640); err != nil {
		return fault.New(fault.Environment, "cannot write the state of %s: %w", r.Name, err)
	}
	if err := os.Rename(temporary, path); err != nil {
		return fault.New(fault.Environment, "cannot write the state of %s: %w", r.Name, err)
	}
	d.put(r)
	return nil
}

func (r *record) active() bool { return r.State != hypervisor.Stopped }

func (r *record) memory() int {
	if r.Spec == nil {
		return 0
	}
	return r.Spec.Memory
}

func (r *record) space() int {
	sum := 0
	for _, disk := range r.Disks {
		sum += disk.Size
	}
	return sum
}

func (r *record) disk(uuid string) int {
	return slices.IndexFunc(r.Disks, func(d hypervisor.Disk) bool { return d.UUID == uuid })
}

func (r *record) info() hypervisor.Instance {
	i := hypervisor.Instance{Name: r.Name, UUID: r.UUID, State: r.State, Disks: slices.Clone(r.Disks), Blank: r.Blank}
	if r.Spec != nil {
		i.Memory, i.VCPUs = r.Spec.Memory, r.Spec.VCPUs
	}
	return i
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
	err := d.unreadable[name]
	if err == nil || method == "remove" {
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

// own returns the record of an instance, nil if there is none; the error is for one
// that is another's.
func (d *Driver) own(name, uuid string) (*record, error) {
	r := d.instances[name]
	if r != nil && r.UUID != uuid {
		return nil, hypervisor.Stranger(name, uuid, r.UUID)
	}
	return r, nil
}

// Kind returns "fake".
func (d *Driver) Kind() string { return Kind }

// Prepare makes and grows disks.
func (d *Driver) Prepare(ctx context.Context, name, uuid string, disks []hypervisor.Disk) (changed bool, err error) {
	err = d.within(ctx, "prepare", name, func() error {
		old, err := d.own(name, uuid)
		if err != nil {
			return err
		}
		next := record{Name: name, UUID: uuid, State: hypervisor.Stopped, Blank: true}
		if old != nil {
			next = *old
			next.Disks = slices.Clone(old.Disks)
		}
		changed = old == nil
		for _, disk := range disks {
			i := next.disk(disk.UUID)
			switch {
			case i < 0:
				next.Disks = append(next.Disks, disk)
			case next.Disks[i].Size < disk.Size:
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

// Keep marks the instance as wanted.
func (d *Driver) Keep(ctx context.Context, name, uuid string) (changed bool, err error) {
	err = d.within(ctx, "keep", name, func() error {
		old, err := d.own(name, uuid)
		switch {
		case err != nil:
			return err
		case old == nil:
			return fault.New(fault.NotFound, "instance %s is not known on this node", name)
		case !old.Blank:
			return nil
		}
		next := *old
		next.Blank, changed = false, true
		return d.save(&next)
	})
	return changed && err == nil, err
}

// Drop removes disks.
func (d *Driver) Drop(ctx context.Context, name string, disks []string) (changed bool, err error) {
	err = d.within(ctx, "drop", name, func() error {
		old := d.instances[name]
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
		return d.save(&next)
	})
	return changed && err == nil, err
}

// Remove removes the instance's file.
func (d *Driver) Remove(ctx context.Context, name string) (changed bool, err error) {
	err = d.within(ctx, "remove", name, func() error {
		r, broken := d.instances[name], d.unreadable[name] != nil
		if r == nil && !broken {
			return nil
		}
		if r != nil && r.active() {
			return fault.New(fault.WrongState, "instance %s is %s and can't be removed", name, r.State)
		}
		if err := os.Remove(d.path(name)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fault.New(fault.Environment, "cannot remove the state of %s: %w", name, err)
		}
		d.forget(name)
		delete(d.unreadable, name)
		changed = true
		return nil
	})
	return changed && err == nil, err
}

// Rename renames the instance's file.
func (d *Driver) Rename(ctx context.Context, name, to string) (changed bool, err error) {
	err = d.within(ctx, "rename", name, func() error {
		if err := hypervisor.CheckName(to); err != nil {
			return err
		}
		old, taken := d.instances[name], d.instances[to]
		switch {
		case d.unreadable[to] != nil:
			return d.unreadable[to]
		case old == nil && taken == nil:
			return fault.New(fault.NotFound, "instance %s is not known on this node", name)
		case old == nil || name == to:
			return nil
		case taken != nil:
			return fault.New(fault.Exists, "instance %s is on this node already", to)
		case old.active():
			return fault.New(fault.WrongState, "instance %s is %s and can't be renamed", name, old.State)
		}
		if err := os.Rename(d.path(name), d.path(to)); err != nil {
			return fault.New(fault.Environment, "cannot rename the state of %s: %w", name, err)
		}
		d.forget(name)
		next := *old
		next.Name = to
		d.put(&next)
		changed = true
		return nil
	})
	return changed && err == nil, err
}

// Start marks the instance as running.
func (d *Driver) Start(ctx context.Context, spec hypervisor.Spec) (changed bool, err error) {
	err = d.within(ctx, "start", spec.Name, func() error {
		next := record{Name: spec.Name, UUID: spec.UUID, State: hypervisor.Stopped}
		old, err := d.own(spec.Name, spec.UUID)
		if err != nil {
			return err
		}
		if old != nil {
			next = *old
		}
		if next.active() {
			return nil
		}
		for i, disk := range spec.Disks {
			if next.disk(disk.UUID) < 0 {
				return fault.New(fault.WrongState, "disk %d (%s) of instance %s does not exist on this node", i, disk.UUID, spec.Name)
			}
		}
		if free := d.free(); spec.Memory > free {
			return fault.New(fault.Exhausted, "not enough memory: %d MiB needed, %d MiB free", spec.Memory, free)
		}
		next.State, next.Spec, next.Blank = hypervisor.Running, &spec, false
		if spec.StartPaused {
			next.State = hypervisor.Paused
		}
		next.Boots++
		changed = true
		return d.save(&next)
	})
	return changed && err == nil, err
}

// Stop marks the instance as stopped, whatever the guest would say.
func (d *Driver) Stop(ctx context.Context, name string, _ hypervisor.Stop) (changed bool, err error) {
	err = d.within(ctx, "stop", name, func() error {
		old := d.instances[name]
		if old == nil || !old.active() {
			return nil
		}
		next := *old
		next.State, next.Spec = hypervisor.Stopped, nil
		changed = true
		return d.save(&next)
	})
	return changed && err == nil, err
}

// Reboot counts one more start.
func (d *Driver) Reboot(ctx context.Context, name string) error {
	return d.within(ctx, "reboot", name, func() error {
		old := d.instances[name]
		if old == nil || !old.active() {
			return fault.New(fault.WrongState, "instance %s is not running", name)
		}
		next := *old
		next.State = hypervisor.Running
		next.Boots++
		return d.save(&next)
	})
}

// Instance tells about one instance.
func (d *Driver) Instance(ctx context.Context, name string) (out hypervisor.Instance, err error) {
	err = d.within(ctx, "instance", name, func() error {
		r := d.instances[name]
		if r == nil {
			return fault.New(fault.NotFound, "instance %s is not known on this node", name)
		}
		out = r.info()
		return nil
	})
	return out, err
}

// Instances lists all instances by name.
func (d *Driver) Instances(ctx context.Context) (out []hypervisor.Instance, err error) {
	err = d.within(ctx, "instances", "", func() error {
		out = make([]hypervisor.Instance, 0, len(d.instances))
		for _, r := range d.instances {
			out = append(out, r.info())
		}
		slices.SortFunc(out, func(a, b hypervisor.Instance) int { return strings.Compare(a.Name, b.Name) })
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
			BootID: fmt.Sprintf("fake:%s", filepath.Base(d.cfg.Dir)), Version: "fake 1",
		}
		return nil
	})
	return out, err
}

// Close does nothing: the state is in the files already.
func (d *Driver) Close() error { return nil }
