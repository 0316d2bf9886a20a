// Package kvm is the hypervisor driver that runs virtual machines in QEMU: a process for each, which the driver watches over QEMU's machine
// protocol (package qmp) and which outlives it.
//
// What it knows of a thing is in kvm/UUID/ of the node's directory: machine.json (name, disks, with what it was started last), the sockets of
// a machine that runs, what QEMU complained of, and what a machine keeps beside its disks: the variables of its firmware, the state of its TPM.
//
// Invariants:
//   - A machine has one process at most: it holds a lock from before it begins until it is gone, and the next cannot begin before
//     (TestOneProcess).
//   - A driver that comes behind one that was killed finds every machine, as it is by now, without the guests noticing; one that was not
//     let go when the driver died has not been started (TestAdoption, TestNotLetGo).
//   - A guest that ended itself is told from one that was ended, also by a driver that was away (TestAGuestThatEndsItself).
//   - No disk is made before it is written down (TestNothingIsMadeThatNobodyKnows).
//   - What QEMU complains of fills no disk, for a guest may have it complain without end (TestComplaintsAreBounded).
//   - What is told of a machine's memory is what its guest has by now, as QEMU says it; a guest that gives nothing back has all of it (TestBalloon).
//   - Nothing that comes from elsewhere becomes an option of QEMU (TestNothingBecomesAnOption).
//   - Where there is a range of users no two machines of a node have the same (TestEachGuestHasItsUser).
//   - The screen of a machine listens nowhere: QEMU is handed each who may see it, and none puts the others out (TestScreen).
//   - QEMU opens no file: it is handed its disks, and its user has no rights (TestAGuestHasNoRights).
//   - What a machine is joined to a bridge by is gone when the machine is (TestBridges).
//   - What a guest has not let go of is kept, with its disk and its slot (TestAGuestThatDoesNotLetGo); a device that stays keeps its slot,
//     whatever comes and goes beside it (TestSlots).
//   - The variables of a machine's firmware, and the state of its TPM, are the machine's: they are there at each of its starts, nobody else
//     reads them, and they go when it is removed (TestFirmwareIsKept, TestTPM).
//   - A TPM ends with its machine, however that ends, and one that ends before is told (TestTPM, TestTPMIsLost).
//   - A machine has the seed that it was given at each of its starts, to read alone, and never another's (TestSeed).
//   - A snapshot is of all disks at one moment, and costs the guest neither what it writes nor more than milliseconds; it leaves nothing behind a QEMU that is
//     killed, and the next driver finds it (TestSnapshot, TestASnapshotIsOfOneMoment, TestASnapshotWithoutRoom, TestASnapshotEnds, TestASnapshotOutlivesItsDriver).
//   - A disk that is attached or detached is always in what is written down of one thing at least, and its volume is removed with the last that has it
//     (TestADiskIsAlwaysSomebodys).
//   - The machine type of a thing never changes once it was started, so that the guest finds the same devices (TestMachineTypesArePinned).
package kvm

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
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
const Kind = "kvm"

// Volumes are the disks of the node; see package storage, whose Pools do this.
type Volumes interface {
	storage.Backing

	// Ensure makes or grows the volume of a disk.
	Ensure(ctx context.Context, template string, disk storage.Disk) (made, grown bool, err error)
	// Remove removes the volume with its content.
	Remove(ctx context.Context, template, id string) (bool, error)
	// Volume tells where the content is, and how; NotFound when there is no such volume.
	Volume(ctx context.Context, template, id string) (storage.Volume, error)
	// Blank has a volume with layers read as zeros again, or as an image.
	Blank(ctx context.Context, template, id string, base *storage.Base) error
	// Fits refuses so many MiB more than there is room for.
	Fits(ctx context.Context, template string, more int) error
	// Templates are those that there are disks of.
	Templates() []string
	// Space is how much room there is in MiB.
	Space(ctx context.Context) (total, free int, err error)
}

// Config says where things are and how guests run.
type Config struct {
	// Dir is the node's directory, which others keep files in, too; the driver's own are in kvm/ below it.
	Dir string
	// Volumes has the disks.
	Volumes Volumes
	// QEMU is the program; empty is qemu-system-x86_64 of the search path.
	QEMU string
	// Accelerator is "kvm" or "tcg"; empty is asked of a guest that is run for it, see Probe.
	Accelerator string
	// User has QEMU run as another user, who should own nothing, or each machine as one of a range of numbers, FIRST-LAST; empty is nobody if the agent is root, and the agent's own user else.
	User string
	// Bridges joins network cards to the bridges of the node that their links name, which takes root; else each has a network of its own, by
	// which it gets out.
	Bridges bool
	// OneThread keeps an emulated guest to one thread, which is easier on a machine with more guests than processors.
	OneThread bool
	// Powercycle is hypervisor.Driver's; nil where the operator has not said how.
	Powercycle func() (reset func(ctx context.Context) error, err error)
	// Log is told what the driver finds; nil for nobody.
	Log *slog.Logger

	// adopt is how long a process that was found may take to answer, before others are not kept waiting for it.
	adopt time.Duration
	// firmware are the directories with descriptors of firmware.
	firmware []string
	// pull is how long a guest may take to let go of a device.
	pull time.Duration
}

// Driver implements hypervisor.Driver. It is safe for concurrent use.
type Driver struct {
	cfg  Config
	qemu *program
	user *credential
	// guests are the users of whom each machine has one of its own, if it has.
	guests numbers

	mu      sync.Mutex
	things  map[string]*machine // by UUID
	runsAs  map[string]uint32   // whose number is whose, by UUID of the machine
	changed func()              // see Watch
	bad     map[string]error    // why there is no machine of a UUID that has a directory
}

// Open reads what the directory has, and finds the machines that run. It fails when there is no QEMU that can be used.
func Open(ctx context.Context, cfg Config) (*Driver, error) {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	cfg.adopt, cfg.pull = cmp.Or(cfg.adopt, adoptTime), cmp.Or(cfg.pull, pullTime)
	if cfg.firmware == nil {
		cfg.firmware = firmwareDirs()
	}
	var err error
	if cfg.Dir, err = filepath.Abs(cfg.Dir); err != nil {
		return nil, fault.New(fault.Environment, "cannot tell the directory of machines: %w", err)
	}
	d := &Driver{cfg: cfg, things: map[string]*machine{}, runsAs: map[string]uint32{}, bad: map[string]error{}, changed: func() {}}
	if err := os.MkdirAll(d.dir(), 0o700); err != nil {
		return nil, fault.New(fault.Environment, "cannot make the directory of machines: %w", err)
	}
	if d.user, err = credentialOf(cfg.User); err != nil {
		return nil, err
	}
	if d.guests, _, err = rangeOf(cfg.User); err != nil {
		return nil, err
	}
	if d.qemu, err = openProgram(ctx, cfg.QEMU); err != nil {
		return nil, err
	}
	if d.cfg.Accelerator == "" {
		var why string
		d.cfg.Accelerator, why = d.probe(ctx)
		cfg.Log.Info("guests are run by "+map[string]string{"kvm": "the processor (KVM)", "tcg": "emulation"}[d.cfg.Accelerator], "why", why)
	}
	if err := d.qemu.askModels(ctx, d.cfg.Accelerator); err != nil { // nothing is known of them then, and all are tried
		cfg.Log.Warn("which models of processors there are cannot be told", "error", err)
	}
	return d, d.load(ctx)
}

func (d *Driver) dir() string { return filepath.Join(d.cfg.Dir, "kvm") }

// load reads the machines and finds their processes, all at the same time.
func (d *Driver) load(ctx context.Context) error {
	entries, err := os.ReadDir(d.dir())
	if err != nil {
		return fault.New(fault.Environment, "cannot list the machines of the node: %w", err)
	}
	var all sync.WaitGroup
	for _, e := range entries {
		uuid := e.Name()
		if !e.IsDir() || hypervisor.CheckName(uuid) != nil {
			continue
		}
		rec, err := readRecord(filepath.Join(d.dir(), uuid))
		switch {
		case errors.Is(err, fs.ErrNotExist): // a call that was not carried out
		case err == nil && rec.UUID == uuid && hypervisor.CheckName(rec.Name) == nil:
			m := d.newMachine(rec)
			m.written = true
			d.things[uuid] = m
			if rec.User != 0 {
				d.runsAs[uuid] = rec.User
			}
			all.Go(func() { m.adopt(ctx) })
		default:
			d.bad[uuid] = fault.New(fault.Environment, "the state of the machine with UUID %s cannot be read: %w", uuid, cmp.Or(err, errors.New("it is another one's"))).
				WithHint("mend or move away %s and start the node's agent again", filepath.Join(d.dir(), uuid))
		}
	}
	all.Wait()
	return nil
}

// Running tells how many machines of a node's directory have a process, without a driver.
func Running(dir string) (count int) {
	held, _ := filepath.Glob(filepath.Join(escapedPattern(dir), "kvm", "*", heldFile)) // the pattern is right
	for _, path := range held {
		f, err := lockHeld(filepath.Dir(path))
		if err == nil {
			_ = f.Close()
		} else if errors.Is(err, errHeld) {
			count++
		}
	}
	return count
}

// escapedPattern is a path that means itself as a pattern.
func escapedPattern(path string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(path)
}

// Watch has changed called whenever a machine changes without having been told. It must not wait.
func (d *Driver) Watch(changed func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.changed = changed
}

func (d *Driver) noteChange() {
	d.mu.Lock()
	changed := d.changed
	d.mu.Unlock()
	changed()
}

// Powercycle has the machine of the node switched off and on, as its operator has said.
func (d *Driver) Powercycle() (reset func(ctx context.Context) error, err error) {
	if d.cfg.Powercycle == nil {
		return nil, fault.New(fault.Unsupported, "The operator of the node has not said how it is switched off and on").
			WithHint("the setting powercycle of the node's agent names a program, or sysrq; drover node power cycle asks its management controller")
	}
	return d.cfg.Powercycle()
}

// Kind returns "kvm".
func (d *Driver) Kind() string { return Kind }

// begin checks what every call has checked.
func begin(ctx context.Context, what string, of hypervisor.Thing) error {
	if err := ctx.Err(); err != nil {
		return fault.New(fault.Canceled, "%s of %s was not begun: %w", what, of.Name, err)
	}
	return of.Check()
}

// find returns the machine of a thing, nil if there is none. The error is for a name that is another's, unless all that is under it was left by
// this life of the store.
func (d *Driver) find(of hypervisor.Thing, life string) (*machine, error) {
	if err := d.bad[of.UUID]; err != nil {
		return nil, err
	}
	if m := d.things[of.UUID]; m != nil {
		return m, nil
	}
	for _, there := range d.named(of.Name) {
		if i := there.info(); !i.LeftBy(life) {
			return nil, hypervisor.Stranger(of, i.UUID)
		}
	}
	return nil, nil
}

func (d *Driver) named(name string) (out []*machine) {
	for _, m := range d.things {
		if m.record().Name == name {
			out = append(out, m)
		}
	}
	slices.SortFunc(out, func(a, b *machine) int { return strings.Compare(a.uuid, b.uuid) })
	return out
}

// hold looks a thing up and has it for a call alone; nil when there is none of it. The machine is to be let go.
func (d *Driver) hold(ctx context.Context, what string, of hypervisor.Thing) (*machine, error) {
	if err := begin(ctx, what, of); err != nil {
		return nil, err
	}
	for {
		d.mu.Lock()
		m, err := d.find(of, "")
		d.mu.Unlock()
		if m == nil || err != nil {
			return nil, err
		}
		if err := m.lock(ctx); err != nil {
			return nil, err
		}
		if !m.removed {
			return m, nil
		}
		m.unlock() // by the call before
	}
}

// holdOrMake is hold for a call that makes what is not there, beside what this life of the store left under the name.
func (d *Driver) holdOrMake(ctx context.Context, what string, of hypervisor.Thing, by hypervisor.Mark, beside string) (m *machine, made bool, err error) {
	for {
		m, err = d.hold(ctx, what, of)
		if m != nil || err != nil && (beside == "" || !fault.Is(err, fault.Exists)) {
			return m, false, err
		}
		d.mu.Lock()
		m, err = d.find(of, beside)
		if m == nil && err == nil {
			m = d.newMachine(&record{Name: of.Name, UUID: of.UUID, MadeBy: by})
			m.held <- struct{}{}
			d.things[of.UUID] = m
			d.mu.Unlock()
			return m, true, nil
		}
		d.mu.Unlock()
		if err != nil {
			return nil, false, err
		}
	}
}

// forget takes a machine off the list of what is there.
func (d *Driver) forget(m *machine) {
	m.removed = true
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.things, m.uuid)
	delete(d.runsAs, m.uuid)
}

// Prepare makes and grows disks.
func (d *Driver) Prepare(ctx context.Context, of hypervisor.Thing, by hypervisor.Mark, disks []hypervisor.Disk) (bool, error) {
	m, made, err := d.holdOrMake(ctx, "prepare", of, by, by.Life)
	if err != nil {
		return false, err
	}
	defer m.unlock()
	changed, err := m.prepare(ctx, disks)
	if err != nil && made {
		err = errors.Join(err, m.clear())
		d.forget(m)
	}
	return (changed || made) && err == nil, err
}

// Drop removes disks; WrongState for one that a machine uses.
func (d *Driver) Drop(ctx context.Context, of hypervisor.Thing, disks []string) (bool, error) {
	m, err := d.hold(ctx, "drop disks", of)
	if m == nil || err != nil {
		return false, err
	}
	defer m.unlock()
	return m.drop(ctx, disks)
}

// Remove removes a machine with its disks.
func (d *Driver) Remove(ctx context.Context, of hypervisor.Thing) (bool, error) {
	m, err := d.hold(ctx, "remove", of)
	if m == nil || err != nil {
		return false, err
	}
	defer m.unlock()
	if err := m.stopped("removed"); err != nil {
		return false, err
	}
	if err := m.remove(ctx); err != nil {
		return false, err
	}
	d.forget(m)
	return true, nil
}

// Rename gives a machine another name.
func (d *Driver) Rename(ctx context.Context, of hypervisor.Thing, to string) (bool, error) {
	if err := hypervisor.CheckName(to); err != nil {
		return false, err
	}
	m, err := d.hold(ctx, "rename", of)
	if err != nil {
		return false, err
	}
	if m == nil {
		return false, fault.New(fault.NotFound, "instance %s is not known on this node", of.Name)
	}
	defer m.unlock()
	if m.record().Name == to {
		return false, nil
	}
	d.mu.Lock()
	others := d.named(to)
	d.mu.Unlock()
	if len(others) > 0 {
		return false, hypervisor.Stranger(hypervisor.Thing{UUID: of.UUID, Name: to}, others[0].uuid)
	}
	if err := m.stopped("renamed"); err != nil {
		return false, err
	}
	next := *m.record()
	next.Name = to
	return true, m.save(&next)
}

// Start runs a machine.
func (d *Driver) Start(ctx context.Context, spec hypervisor.Spec) (bool, error) {
	if spec.Hypervisor != "" && spec.Hypervisor != Kind {
		return false, fault.New(fault.Unsupported, "this node runs instances of the hypervisor %s, and %s is one of %.50q", Kind, spec.Name, spec.Hypervisor).At("hypervisor")
	}
	m, made, err := d.holdOrMake(ctx, "start", spec.Thing(), spec.By, "")
	if err != nil {
		return false, err
	}
	defer m.unlock()
	changed, err := m.start(ctx, &spec)
	if err != nil && made {
		err = errors.Join(err, m.clear())
		d.forget(m)
	}
	return changed && err == nil, err
}

// Stop ends a machine: the guest is asked first, unless it is to be ended at once.
func (d *Driver) Stop(ctx context.Context, of hypervisor.Thing, how hypervisor.Stop) (bool, error) {
	m, err := d.hold(ctx, "stop", of)
	if m == nil || err != nil {
		return false, err
	}
	defer m.unlock()
	return m.stop(ctx, how)
}

// Balloon asks the guest of a machine to have another memory.
func (d *Driver) Balloon(ctx context.Context, of hypervisor.Thing, memory int) (bool, error) {
	m, err := d.hold(ctx, "balloon", of)
	if err != nil {
		return false, err
	}
	if m == nil {
		return false, fault.New(fault.WrongState, "instance %s is not running", of.Name)
	}
	defer m.unlock()
	return m.balloon(ctx, memory)
}

// Reboot resets the machine.
func (d *Driver) Reboot(ctx context.Context, of hypervisor.Thing) error {
	m, err := d.hold(ctx, "reboot", of)
	if err != nil {
		return err
	}
	if m == nil {
		return fault.New(fault.WrongState, "instance %s is not running", of.Name)
	}
	defer m.unlock()
	return m.reboot(ctx)
}

// Blank has a disk begin anew.
func (d *Driver) Blank(ctx context.Context, of hypervisor.Thing, disk string, base *storage.Base) error {
	m, err := d.hold(ctx, "blank", of)
	if err != nil {
		return err
	}
	if m == nil {
		return fault.New(fault.NotFound, "instance %s is not known on this node", of.Name)
	}
	defer m.unlock()
	return m.blank(ctx, disk, base)
}

// Seed keeps a CD for a machine, or takes it away.
func (d *Driver) Seed(ctx context.Context, of hypervisor.Thing, cd []byte) error {
	m, err := d.hold(ctx, "seed", of)
	switch {
	case err != nil && len(cd) == 0 && fault.Is(err, fault.Exists): // nothing of it is here
		return nil
	case err != nil:
		return err
	case m == nil && len(cd) == 0:
		return nil
	case m == nil:
		return fault.New(fault.NotFound, "instance %s is not known on this node", of.Name)
	}
	defer m.unlock()
	return m.seed(cd)
}

// Instance tells about one machine.
func (d *Driver) Instance(ctx context.Context, of hypervisor.Thing) (hypervisor.Instance, error) {
	if err := begin(ctx, "looking at", of); err != nil {
		return hypervisor.Instance{}, err
	}
	d.mu.Lock()
	m, err := d.find(of, "")
	d.mu.Unlock()
	if err != nil {
		return hypervisor.Instance{}, err
	}
	if m == nil || !m.there() {
		return hypervisor.Instance{}, fault.New(fault.NotFound, "instance %s is not known on this node", of.Name)
	}
	i := m.info()
	noted := i.Disks
	i.Disks = nil
	for _, disk := range noted {
		v, err := d.cfg.Volumes.Volume(ctx, disk.Template, disk.UUID)
		switch {
		case err == nil:
			disk.Volume, disk.Path, disk.File = v.Size, v.Path, v.File()
			i.Disks = append(i.Disks, disk)
		case !fault.Is(err, fault.NotFound): // else it is lost, whatever is noted of it
			return hypervisor.Instance{}, err
		}
	}
	return i, nil
}

// Named lists what is under a name.
func (d *Driver) Named(ctx context.Context, name string) ([]hypervisor.Instance, error) {
	if err := hypervisor.CheckName(name); err != nil {
		return nil, err
	}
	all, err := d.Instances(ctx)
	return slices.DeleteFunc(all, func(i hypervisor.Instance) bool { return i.Name != name }), err
}

// Instances lists all machines.
func (d *Driver) Instances(ctx context.Context) ([]hypervisor.Instance, error) {
	if err := ctx.Err(); err != nil {
		return nil, fault.New(fault.Canceled, "the machines were not listed: %w", err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	out := make([]hypervisor.Instance, 0, len(d.things))
	for _, m := range d.things {
		if m.there() {
			out = append(out, m.info())
		}
	}
	for uuid := range d.bad { // nobody knows its name
		out = append(out, hypervisor.Instance{Name: uuid, State: hypervisor.Stopped})
	}
	slices.SortFunc(out, func(a, b hypervisor.Instance) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.UUID, b.UUID))
	})
	return out, nil
}

// Console is the serial line of a machine; NotFound when the node has none of it.
func (d *Driver) Console(of hypervisor.Thing) (*console.Line, error) {
	if err := of.Check(); err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	m, err := d.find(of, "")
	if err != nil {
		return nil, err
	}
	if m == nil {
		return nil, fault.New(fault.NotFound, "instance %s is not known on this node", of.Name)
	}
	return &m.line, nil
}

// Close lets go of the machines, which run on.
func (d *Driver) Close() error {
	d.mu.Lock()
	all := make([]*machine, 0, len(d.things))
	for _, m := range d.things {
		all = append(all, m)
	}
	d.mu.Unlock()
	for _, m := range all {
		m.letGo()
	}
	return nil
}
