package kvm

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/hypervisor"
)

// pullTime is how long a guest may take to let go of a device. One that runs an operating system takes a tenth of a second; another never does.
const pullTime = 10 * time.Second

// closeTime is how long QEMU may take to close the file of a disk that no device has.
const closeTime = 5 * time.Second

// Receive is Unsupported: machines are not migrated yet.
func (d *Driver) Receive(_ context.Context, spec hypervisor.Spec) (bool, error) {
	return false, hypervisor.NoMigration(spec.Name)
}

// Send is Unsupported, likewise.
func (d *Driver) Send(_ context.Context, of hypervisor.Thing) (bool, error) {
	return false, hypervisor.NoMigration(of.Name)
}

// Adjust plugs devices into a machine that runs, and pulls them out.
func (d *Driver) Adjust(ctx context.Context, spec hypervisor.Spec) (bool, error) {
	m, err := d.hold(ctx, "adjust", spec.Thing())
	if m == nil || err != nil {
		return false, err
	}
	defer m.unlock()
	return m.adjust(ctx, &spec)
}

// adjust has a machine that runs have the devices of a specification. What is too much goes first: a slot is free when nothing is in it.
func (m *machine) adjust(ctx context.Context, spec *hypervisor.Spec) (bool, error) {
	i := m.info()
	p, r := m.running(), m.record()
	switch {
	case p == nil || !i.Active():
		return false, nil
	case r.Slots == nil || r.Spec == nil:
		return false, fault.New(fault.WrongState, "instance %s was started by an earlier version of the program, and its devices can be changed when it has been started again", i.Name)
	}
	if err := m.endSnapshot(ctx); err != nil { // it is of the devices of before
		return false, err
	}
	there, err := p.devices(ctx)
	if err != nil {
		return false, err
	}
	a := adjustment{machine: m, process: p, there: there, spec: spec}
	pulled, err := a.pullAll(ctx)
	if err != nil {
		return pulled, err
	}
	plugged, err := a.plugAll(ctx)
	return pulled || plugged, err
}

// adjustment is one change of a machine's devices.
type adjustment struct {
	*machine
	*process

	// there are the devices that the guest can see, as QEMU names them.
	there map[string]bool
	spec  *hypervisor.Spec
}

// devices asks QEMU for the names of the devices that were plugged in by name.
func (p *process) devices(ctx context.Context) (map[string]bool, error) {
	var list []struct{ Name string }
	if err := p.do(ctx, "qom-list", map[string]any{"path": "/machine/peripheral"}, &list); err != nil {
		return nil, err
	}
	there := map[string]bool{}
	for _, d := range list {
		there[d.Name] = true
	}
	return there, nil
}

// setup is what descriptions of the machine's devices are made of.
func (a *adjustment) setup() setup {
	r := a.record()
	return setup{machine: r.Machine, slots: r.Slots, ports: r.Ports, bridges: a.driver.cfg.Bridges}
}

// pullAll pulls out what is not to be there, and what is to be there in another way.
func (a *adjustment) pullAll(ctx context.Context) (changed bool, err error) {
	now := a.record().Spec
	for i := range now.Disks {
		if disk := &now.Disks[i]; diskIndex(a.spec.Disks, disk.UUID) < 0 {
			if err := a.pullDisk(ctx, disk); err != nil {
				return changed, err
			}
			changed = true
		}
	}
	for i := range now.NICs {
		if key := nicKey(i, &now.NICs[i]); !slices.ContainsFunc(a.spec.NICs, func(n hypervisor.NIC) bool { return sameCard(n, now.NICs[i]) }) {
			if err := a.pullNIC(ctx, key); err != nil {
				return changed, err
			}
			changed = true
		}
	}
	return changed, nil
}

// sameCard reports whether a network card can stay as it is plugged in.
func sameCard(a, b hypervisor.NIC) bool {
	a.IP, b.IP = "", "" // the guest is told it by others
	return a == b
}

func (a *adjustment) pullDisk(ctx context.Context, disk *hypervisor.Disk) error {
	of := named(a.record().Slots[disk.UUID])
	if err := a.pull(ctx, of.disk, "disk "+disk.UUID); err != nil {
		return err
	}
	if err := a.takeDiskOff(ctx, of); err != nil {
		return err
	}
	return a.without(disk.UUID)
}

func (a *adjustment) pullNIC(ctx context.Context, key string) error {
	of := named(a.record().Slots[key])
	if err := a.pull(ctx, of.nic, "network card "+key); err != nil {
		return err
	}
	if err := known(a.do(ctx, "netdev_del", map[string]any{"id": of.net}, nil)); err != nil {
		return err
	}
	return a.without(key)
}

// known passes over that QEMU knows nothing of what was to go.
func known(err error) error {
	if fault.Is(err, fault.NotFound) {
		return nil
	}
	return err
}

// without writes down that a device is no more. Its slot stays its own until others are given out: it may come again, changed.
func (a *adjustment) without(key string) error {
	next := *a.record()
	spec := *next.Spec
	spec.Disks = slices.DeleteFunc(slices.Clone(spec.Disks), func(d hypervisor.Disk) bool { return d.UUID == key })
	spec.NICs = nil
	for i, nic := range next.Spec.NICs {
		if nicKey(i, &nic) != key {
			spec.NICs = append(spec.NICs, nic)
		}
	}
	next.Spec = &spec
	return a.save(&next)
}

// askedBefore is in what QEMU says when the guest was asked to let go of a device, and has not.
const askedBefore = "already in the process of unplug"

// pull has the guest let go of a device, and waits until it has.
func (a *adjustment) pull(ctx context.Context, id, what string) error {
	if !a.there[id] {
		return nil
	}
	if err := known(a.do(ctx, "device_del", map[string]any{"id": id}, nil)); err != nil && !strings.Contains(err.Error(), askedBefore) {
		return err
	}
	limit, cancel := context.WithTimeout(ctx, a.driver.cfg.pull)
	defer cancel()
	for {
		there, err := a.devices(ctx)
		if err != nil {
			return err
		}
		if !there[id] {
			return nil
		}
		select {
		case <-a.pulled:
		case <-a.gone:
			return fault.New(fault.WrongState, "instance %s ended while %s was pulled out", a.record().Name, what)
		case <-limit.Done():
			return fault.New(fault.Busy, "the guest of instance %s has not let go of %s in %s: it is still plugged in, and is kept", a.record().Name, what, a.driver.cfg.pull).
				WithHint("a guest whose operating system runs lets go: try again then, or stop the instance")
		}
	}
}

// takeDiskOff closes the file of a disk that the guest does not have, or of one that was not plugged in whole.
func (a *adjustment) takeDiskOff(ctx context.Context, of names) error {
	var nodes []struct {
		Name string `json:"node-name"`
	}
	if err := a.do(ctx, "query-named-block-nodes", map[string]any{"flat": true}, &nodes); err != nil {
		return err
	}
	for _, name := range []string{of.content, of.base, of.baseFile, of.file} {
		for _, node := range nodes {
			if node.Name != name {
				continue
			}
			if err := a.close(ctx, name); err != nil {
				return err
			}
		}
	}
	return a.removeSets(ctx, of.set, of.baseSet)
}

// close has QEMU close a node of a disk. One whose device is gone may be in use for a moment: QEMU lets go of it when all its threads have looked away.
func (p *process) close(ctx context.Context, node string) error {
	const pause = 5 * time.Millisecond
	limit, cancel := context.WithTimeout(ctx, closeTime)
	defer cancel()
	for {
		err := p.do(limit, "blockdev-del", map[string]any{"node-name": node}, nil)
		if !fault.Is(err, fault.Failed) {
			return err
		}
		select {
		case <-time.After(pause):
		case <-limit.Done():
			return err
		}
	}
}

// plugAll plugs in what is to be there and is not. It is written down before, with its slots, so that the next try goes on with these.
func (a *adjustment) plugAll(ctx context.Context) (changed bool, err error) {
	next := *a.record()
	_, seeded := next.Slots[seedKey]
	next.Slots = assign(next.Slots, a.spec, seeded)
	with := setup{machine: next.Machine, slots: next.Slots, ports: next.Ports}
	if err := with.fits(); err != nil {
		return false, err
	}
	spec := *next.Spec
	spec.Disks, spec.NICs = slices.Clone(a.spec.Disks), slices.Clone(a.spec.NICs)
	next.Spec = &spec
	if err := a.save(&next); err != nil {
		return false, err
	}
	for i := range spec.Disks {
		if of := named(next.Slots[spec.Disks[i].UUID]); !a.there[of.disk] {
			if err := a.plugDisk(ctx, i, &spec.Disks[i], of); err != nil {
				return changed, errors.Join(err, a.without(spec.Disks[i].UUID))
			}
			changed = true
		}
	}
	for i := range spec.NICs {
		key := nicKey(i, &spec.NICs[i])
		if of := named(next.Slots[key]); !a.there[of.nic] {
			if err := a.plugNIC(ctx, i, &spec.NICs[i], of); err != nil {
				return changed, errors.Join(err, a.without(key))
			}
			changed = true
		}
	}
	return changed, nil
}

func (a *adjustment) plugDisk(ctx context.Context, n int, disk *hypervisor.Disk, of names) (err error) {
	if err := a.takeDiskOff(ctx, of); err != nil { // of a try that nobody finished
		return err
	}
	p := params(a.record().Spec.Params)
	f, err := a.openDisk(ctx, n, *disk, p.text("disk_cache") == "none")
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	defer func() {
		if err != nil {
			err = errors.Join(err, a.takeDiskOff(context.WithoutCancel(ctx), of))
		}
	}()
	with := a.setup()
	if with.layers, err = a.layersOf(ctx, []hypervisor.Disk{*disk}); err != nil {
		return err
	}
	parts := diskParts(disk, p, with)
	if err := a.doWith(ctx, f, "add-fd", map[string]any{"fdset-id": parts.set}, nil); err != nil {
		return err
	}
	if err := a.handBase(ctx, with.base(disk.UUID), parts.baseSet); err != nil {
		return err
	}
	for _, part := range parts.nodes {
		if err := a.do(ctx, "blockdev-add", part, nil); err != nil {
			return err
		}
	}
	return a.do(ctx, "device_add", parts.device, nil)
}

func (a *adjustment) plugNIC(ctx context.Context, n int, nic *hypervisor.NIC, of names) (err error) {
	if err := known(a.do(ctx, "netdev_del", map[string]any{"id": of.net}, nil)); err != nil { // of a try that nobody finished
		return err
	}
	end, device, err := nicParts(n, nic, params(a.record().Spec.Params), a.setup(), of.net)
	if err != nil {
		return err
	}
	if a.driver.cfg.Bridges {
		if err := a.handTap(ctx, n, nic, of.net); err != nil {
			return err
		}
	}
	if err := a.do(ctx, "netdev_add", end, nil); err != nil {
		return err
	}
	if err := a.do(ctx, "device_add", device, nil); err != nil {
		return errors.Join(err, a.do(context.WithoutCancel(ctx), "netdev_del", map[string]any{"id": of.net}, nil))
	}
	return nil
}

// handTap hands QEMU the node's end of a network card, under a name.
func (a *adjustment) handTap(ctx context.Context, n int, nic *hypervisor.NIC, name string) error {
	tap, err := openTap(ctx, n, nic)
	if err != nil {
		return err
	}
	defer func() { _ = tap.Close() }()
	return a.doWith(ctx, tap, "getfd", map[string]any{"fdname": name}, nil)
}
