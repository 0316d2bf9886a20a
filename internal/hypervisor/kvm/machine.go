package kvm

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/drover-project/drover/internal/console"
	"github.com/drover-project/drover/internal/diskimage"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/hypervisor"
	"github.com/drover-project/drover/internal/storage"
)

// machine is one thing on the node: what is written down of it, and its process if there is one.
type machine struct {
	driver *Driver
	uuid   string
	dir    string
	// held has a token while a call is about the machine; removed is its caller's to set and to see.
	held    chan struct{}
	removed bool
	line    console.Line
	// viewers is how many look at the screen, and shown how many ever did.
	viewers atomic.Int32
	shown   atomic.Uint64

	mu      sync.Mutex
	rec     *record
	written bool     // whether the record is on disk
	process *process // nil when there is none
}

func (d *Driver) newMachine(r *record) *machine {
	return &machine{driver: d, uuid: r.UUID, dir: filepath.Join(d.dir(), r.UUID), held: make(chan struct{}, 1), rec: r}
}

// lock waits until no other call is about the machine.
func (m *machine) lock(ctx context.Context) error {
	select {
	case m.held <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fault.New(fault.Canceled, "another call about %s was waited for: %w", m.record().Name, context.Cause(ctx))
	}
}

func (m *machine) unlock() { <-m.held }

func (m *machine) record() *record {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.rec
}

// there reports whether the machine exists; one that a call is about to make does not.
func (m *machine) there() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.written
}

func (m *machine) running() *process {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.process
}

func (m *machine) state() hypervisor.State {
	if p := m.running(); p != nil {
		return p.state()
	}
	return hypervisor.Stopped
}

// info is what is told about the machine.
func (m *machine) info() hypervisor.Instance {
	r, state := m.record(), m.state()
	i := hypervisor.Instance{Name: r.Name, UUID: r.UUID, State: state, EndedItself: state == hypervisor.Stopped && m.running() != nil, Disks: slices.Clone(r.Disks), MadeBy: r.MadeBy}
	if p := m.running(); p != nil && p.lostTPM.Load() && i.Active() {
		i.Trouble = "its TPM has ended, and it runs on without it; it has one again when it is stopped and started"
	}
	if i.Active() && r.Spec != nil {
		i.Memory, i.VCPUs = r.Spec.Memory, r.Spec.VCPUs
		if p := m.running(); p != nil && p.memory.Load() > 0 {
			i.Memory = int(p.memory.Load())
		}
	}
	return i
}

// stopped refuses what cannot be done to a machine that is active, and lets a process go that waits for that behind the guest's own end.
func (m *machine) stopped(what string) error {
	if i := m.info(); i.Active() {
		return fault.New(fault.WrongState, "instance %s is %s and can't be %s", i.Name, i.State, what)
	}
	return m.clearProcess()
}

// clearProcess ends the process of a guest that has ended. It refuses what would be done under a process that nobody found.
func (m *machine) clearProcess() error {
	p := m.running()
	if p == nil {
		return m.unwatched()
	}
	ctx, cancel := context.WithTimeout(context.Background(), endTime)
	defer cancel()
	return p.end(ctx)
}

// prepare makes and grows disks. What is to be there is written down first, so that nothing is made that nobody knows.
func (m *machine) prepare(ctx context.Context, disks []hypervisor.Disk) (changed bool, err error) {
	before := m.record()
	next := *before
	next.Disks = slices.Clone(before.Disks)
	for _, disk := range disks {
		switch i := diskIndex(next.Disks, disk.UUID); {
		case i < 0:
			next.Disks = append(next.Disks, disk)
		case m.lost(ctx, &next.Disks[i]):
			next.Disks[i] = disk // what it had been counts no more
		default:
			next.Disks[i].Size = max(next.Disks[i].Size, disk.Size)
		}
	}
	if err := m.save(&next); err != nil {
		return false, err
	}
	var made []hypervisor.Disk
	for _, disk := range disks {
		disk = next.Disks[diskIndex(next.Disks, disk.UUID)]
		isNew, grown, err := m.ensure(ctx, &disk)
		if isNew {
			made = append(made, disk)
		}
		told := false
		if err == nil && !isNew {
			told, err = m.tellSize(ctx, disk)
		}
		if err != nil {
			return false, errors.Join(err, m.takeBack(made, before))
		}
		changed = changed || isNew || grown || told
	}
	return changed, nil
}

// lost tells whether a disk that is noted has no volume.
func (m *machine) lost(ctx context.Context, disk *hypervisor.Disk) bool {
	_, err := m.driver.cfg.Volumes.Volume(ctx, disk.Template, disk.UUID)
	return fault.Is(err, fault.NotFound)
}

// ensure makes or grows the volume of a disk. One with a format that a machine is using is grown by that: nobody else may change its file, and is told its size by it.
func (m *machine) ensure(ctx context.Context, disk *hypervisor.Disk) (isNew, grown bool, err error) {
	v, err := m.driver.cfg.Volumes.Volume(ctx, disk.Template, disk.UUID)
	if err != nil || v.Format != diskimage.QCOW2 || !m.uses(disk.UUID) {
		return m.driver.cfg.Volumes.Ensure(ctx, disk.Template, wanted(disk, m.record().Name))
	}
	if disk.Size <= v.Size {
		return false, false, nil
	}
	return false, true, m.driver.cfg.Volumes.Fits(ctx, disk.Template, disk.Size-v.Size)
}

// uses tells whether the machine has a process that has a disk open.
func (m *machine) uses(disk string) bool {
	r := m.record()
	if m.running() == nil || r.Spec == nil {
		return false
	}
	_, has := r.slots()[disk]
	return has && diskIndex(r.Spec.Disks, disk) >= 0
}

// wanted is a disk of an instance as its storage is to have it.
func wanted(disk *hypervisor.Disk, owner string) storage.Disk {
	out := storage.Disk{ID: disk.UUID, Size: disk.Size, Format: disk.Format, Owner: owner}
	if e := disk.External; e != nil {
		out.Provider, out.Name, out.Params, out.Label = e.Provider, e.Name, e.Params, e.Label
	}
	return out
}

func diskIndex(disks []hypervisor.Disk, uuid string) int {
	return slices.IndexFunc(disks, func(d hypervisor.Disk) bool { return d.UUID == uuid })
}

// takeBack removes what a call made that failed. It goes on though the call's context has ended.
func (m *machine) takeBack(made []hypervisor.Disk, before *record) error {
	var all []error
	for _, disk := range made {
		_, err := m.driver.cfg.Volumes.Remove(context.Background(), disk.Template, disk.UUID)
		all = append(all, err)
	}
	return errors.Join(append(all, m.save(before))...)
}

// tellSize has a process know that a disk of it has grown, unless it does, whoever had it grow: the one that did may have failed behind that.
func (m *machine) tellSize(ctx context.Context, disk hypervisor.Disk) (told bool, err error) {
	if !m.uses(disk.UUID) {
		return false, nil
	}
	p, slot := m.running(), m.record().slots()[disk.UUID]
	knows, err := p.sizeOf(ctx, slot)
	if err != nil || knows >= int64(disk.Size)<<20 {
		return false, err
	}
	if err := m.endSnapshot(ctx); err != nil { // it is of the disk as it was
		return false, err
	}
	return true, p.resize(ctx, slot, disk.Size)
}

// drop removes disks.
func (m *machine) drop(ctx context.Context, disks []string) (bool, error) {
	before := m.record()
	next := *before
	next.Disks = nil
	var gone []hypervisor.Disk
	for _, disk := range before.Disks {
		if !slices.Contains(disks, disk.UUID) {
			next.Disks = append(next.Disks, disk)
			continue
		}
		if m.inUse(disk.UUID) {
			return false, hypervisor.InUse(m.thing(), disk.UUID, m.state())
		}
		gone = append(gone, disk)
	}
	if len(gone) == 0 {
		return false, nil
	}
	if err := m.clearProcessUnlessActive(); err != nil {
		return false, err
	}
	if err := m.removeVolumes(ctx, gone); err != nil {
		return false, err
	}
	return true, m.save(&next)
}

// inUse tells whether the machine is active, with a disk.
func (m *machine) inUse(disk string) bool {
	r := m.record()
	return r.Spec != nil && m.info().Active() && diskIndex(r.Spec.Disks, disk) >= 0
}

// removeVolumes removes the volumes of disks of the machine, but for those that are another thing's as well: attaching or detaching them has not ended.
func (m *machine) removeVolumes(ctx context.Context, disks []hypervisor.Disk) error {
	for _, disk := range disks {
		if m.driver.elsewhere(m, disk.UUID) {
			continue
		}
		if _, err := m.driver.cfg.Volumes.Remove(ctx, disk.Template, disk.UUID); err != nil {
			return err
		}
	}
	return nil
}

func (m *machine) clearProcessUnlessActive() error {
	if i := m.info(); i.Active() {
		return nil
	}
	return m.clearProcess()
}

// remove removes the disks, and then what is known of the machine.
func (m *machine) remove(ctx context.Context) error {
	if err := m.removeVolumes(ctx, m.record().Disks); err != nil {
		return err
	}
	if err := m.freeTPM(); err != nil { // it would write there
		return err
	}
	return m.clear()
}

// start runs the machine, if it does not.
func (m *machine) start(ctx context.Context, spec *hypervisor.Spec) (bool, error) {
	before := m.record()
	if i := m.info(); i.Active() {
		return false, nil
	}
	if err := m.clearProcess(); err != nil {
		return false, err
	}
	_, free, err := m.driver.memory()
	if err != nil {
		return false, err
	}
	memory, err := spec.StartMemory(free)
	if err != nil {
		return false, err
	}
	next := *before
	kept := *spec
	next.Name, next.Spec, next.Snapshot = spec.Name, &kept, spec.Snapshot
	if err := m.chooseType(&next); err != nil {
		return false, err
	}
	firmware, err := m.chooseFirmware(&next)
	if err != nil {
		return false, err
	}
	if hasTPM(spec.Params) {
		if _, err := findTPM(); err != nil {
			return false, err
		}
	}
	user, err := m.driver.userFor(m, before.User)
	if err != nil {
		return false, err
	}
	next.User = user
	seeded := m.hasSeed()
	next.Slots = assign(before.slots(), spec, seeded)
	next.Ports = portsFor(next.Machine, next.Slots)
	with := setup{
		machine: next.Machine, slots: next.Slots, ports: next.Ports, seed: seeded, firmware: firmware,
		accelerator: m.driver.accelerator(spec), oneThread: m.driver.cfg.OneThread, bridges: m.driver.cfg.Bridges,
	}
	if with.layers, err = m.layersOf(ctx, spec.Disks); err != nil {
		return false, err
	}
	args, err := arguments(spec, with)
	if err != nil {
		return false, err
	}
	files, err := m.openFiles(ctx, spec, with)
	if err != nil {
		return false, err
	}
	defer closeAll(files)
	wasThere := m.there()
	if err := m.save(&next); err != nil {
		return false, err
	}
	if err := m.run(ctx, spec, memory, args, files); err != nil {
		if wasThere {
			err = errors.Join(err, m.save(before))
		}
		return false, err
	}
	return true, nil
}

// chooseType settles the machine type: that of the first start, unless another one is asked for since.
func (m *machine) chooseType(r *record) error {
	asked := params(r.Spec.Params).text("machine_version")
	if r.Machine != "" && r.AskedFor == asked {
		return nil
	}
	chosen, err := m.driver.qemu.machineType(asked)
	if err != nil {
		return err
	}
	r.Machine, r.AskedFor = chosen, asked
	return nil
}

// Times of what QEMU does.
const (
	// endTime is how long a QEMU may take to end when it is told to, before it is killed.
	endTime = 5 * time.Second
	// startTime is how long it may take to answer, on a machine that has much to do.
	startTime = 2 * time.Minute
)

// stop ends the machine.
func (m *machine) stop(ctx context.Context, how hypervisor.Stop) (bool, error) {
	p := m.running()
	if p == nil {
		return false, m.unwatched()
	}
	if i := m.info(); !i.Active() { // the guest has ended by itself
		return false, m.clearProcess()
	}
	if !how.Force && how.Timeout > 0 && p.state() == hypervisor.Running {
		if err := p.askGuest(ctx, how.Timeout); err != nil {
			return false, err
		}
	}
	return true, m.endBehind(ctx, p)
}

// endBehind ends the process though the caller may have gone: a machine that was told to end is not left half way.
func (m *machine) endBehind(ctx context.Context, p *process) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*endTime)
	defer cancel()
	return p.end(ctx)
}

// reboot resets the machine.
func (m *machine) reboot(ctx context.Context) error {
	p := m.running()
	if i := m.info(); p == nil || !i.Active() {
		return fault.New(fault.WrongState, "instance %s is not running", i.Name)
	}
	return p.reset(ctx)
}
