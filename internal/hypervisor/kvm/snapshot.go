package kvm

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/drover-project/drover/internal/diskimage"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/hypervisor"
)

// A snapshot is made by QEMU: before the guest overwrites something of a disk, what was there is put aside, in a file that has no name and goes when
// QEMU closes it. The disk's own file is written as ever, so whatever becomes of QEMU, of us or of the copy, the disk is whole and nothing is left.

// haltTime is how long QEMU may take to have a guest stand still, for it writes to the disks what it has of them before.
const haltTime = time.Minute

// Snapshot has what the disks have at this moment be kept.
func (d *Driver) Snapshot(ctx context.Context, of hypervisor.Thing, id string) (bool, error) {
	m, err := d.hold(ctx, "snapshot", of)
	if err != nil {
		return false, err
	}
	if m == nil {
		return false, fault.New(fault.WrongState, "instance %s is not running", of.Name)
	}
	defer m.unlock()
	return m.snapshot(ctx, id)
}

// Release ends a snapshot.
func (d *Driver) Release(ctx context.Context, of hypervisor.Thing, id string) (bool, error) {
	m, err := d.hold(ctx, "release", of)
	if m == nil || err != nil {
		return false, err
	}
	defer m.unlock()
	if r := m.record(); r.Snapshot == "" || r.Snapshot != id {
		return false, nil
	}
	return true, m.endSnapshot(ctx)
}

// snapshot makes a snapshot of a machine that is active. What the one before kept is let go.
func (m *machine) snapshot(ctx context.Context, id string) (bool, error) {
	i, p, r := m.info(), m.running(), m.record()
	switch {
	case p == nil || !i.Active():
		return false, fault.New(fault.WrongState, "instance %s is not running", i.Name)
	case r.Slots == nil || r.Spec == nil:
		return false, fault.New(fault.WrongState, "instance %s was started by an earlier version of the program, and its disks can be snapshotted when it has been started again", i.Name)
	}
	if r.Snapshot == id {
		if whole, err := p.hasSnapshot(ctx); whole || err != nil {
			return false, err
		}
	}
	if err := m.endSnapshot(ctx); err != nil {
		return false, err
	}
	next := *m.record()
	next.Snapshot = id
	if err := m.save(&next); err != nil {
		return false, err
	}
	if err := p.takeSnapshot(ctx); err != nil {
		return false, errors.Join(err, m.endSnapshot(context.WithoutCancel(ctx)))
	}
	return true, nil
}

// endSnapshot has a machine that runs let go of its snapshot, if there is one.
func (m *machine) endSnapshot(ctx context.Context) error {
	r := m.record()
	if r.Snapshot == "" {
		return nil
	}
	if p := m.running(); p != nil {
		if err := p.dropSnapshot(ctx); err != nil && !p.endedBy(err) {
			return err
		}
	}
	next := *r
	next.Snapshot = ""
	return m.save(&next)
}

// layer are the names of what a snapshot is made of, for the disk in a slot.
type layer struct {
	of names
	// aside is what the guest writes through, scratch where it puts what was there before, in scratchFile; snap has what the disk had.
	aside, scratch, scratchFile, snap string
	scratchSet                        int
	// copy is the job that copies it, to copied, in copiedFile.
	copy, copied, copiedFile string
	copiedSet                int
}

// Sets of open files, beyond those of bases.
const (
	firstScratchSet = behindSets + 1000
	firstCopiedSet  = behindSets + 2000
)

func layerOf(slot int) layer {
	n := strconv.Itoa(slot)
	return layer{of: named(slot), aside: "aside" + n, scratch: "scratch" + n, scratchFile: "scratchfile" + n, snap: "snap" + n, scratchSet: firstScratchSet + slot,
		copy: "copy" + n, copied: "copied" + n, copiedFile: "copiedfile" + n, copiedSet: firstCopiedSet + slot}
}

// layers are those of all disks of the machine.
func (p *process) layers() (out []layer) {
	r := p.machine.record()
	if r.Spec == nil {
		return nil
	}
	all := r.slots()
	for i := range r.Spec.Disks {
		if slot, has := all[r.Spec.Disks[i].UUID]; has {
			out = append(out, layerOf(slot))
		}
	}
	return out
}

// blockNodes asks QEMU for its block nodes: how large they are in bytes, by name.
func (p *process) blockNodes(ctx context.Context) (map[string]int64, error) {
	var nodes []struct {
		Name  string `json:"node-name"`
		Image struct {
			Size int64 `json:"virtual-size"`
		} `json:"image"`
	}
	if err := p.do(ctx, "query-named-block-nodes", map[string]any{"flat": true}, &nodes); err != nil {
		return nil, err
	}
	out := make(map[string]int64, len(nodes))
	for _, n := range nodes {
		out[n.Name] = n.Image.Size
	}
	return out, nil
}

// hasSnapshot reports whether there is a snapshot of all disks: these nodes are made last.
func (p *process) hasSnapshot(ctx context.Context) (bool, error) {
	nodes, err := p.blockNodes(ctx)
	if err != nil {
		return false, err
	}
	for _, l := range p.layers() {
		if _, has := nodes[l.snap]; !has {
			return false, nil
		}
	}
	return true, nil
}

// takeSnapshot makes a snapshot of all disks at one moment: for more than one a guest that runs stands still for that.
func (p *process) takeSnapshot(ctx context.Context) error {
	all := p.layers()
	nodes, err := p.blockNodes(ctx)
	if err != nil {
		return err
	}
	for _, l := range all {
		if err := p.putAside(ctx, l, nodes[l.of.content]); err != nil {
			return err
		}
	}
	through := func() error {
		for _, l := range all {
			if err := p.writeThrough(ctx, l, l.aside); err != nil {
				return err
			}
		}
		return nil
	}
	if len(all) > 1 {
		err = p.whileHalted(ctx, through)
	} else {
		err = through()
	}
	for _, l := range all {
		if err != nil {
			return err
		}
		err = p.do(ctx, "blockdev-add", map[string]any{"driver": "snapshot-access", "node-name": l.snap, "file": l.aside}, nil)
	}
	return err
}

// putAside opens a file for what the guest overwrites. One that is full, or slow, ends the snapshot and never what the guest does.
func (p *process) putAside(ctx context.Context, l layer, size int64) error {
	const slow = 45 // seconds
	f, err := p.machine.scratch(l.scratchFile, size)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	if err := p.openHanded(ctx, f, l.scratchSet, l.scratchFile, l.scratch); err != nil {
		return err
	}
	return p.do(ctx, "blockdev-add", map[string]any{
		"driver": "copy-before-write", "node-name": l.aside, "file": l.of.content, "target": l.scratch, "on-cbw-error": "break-snapshot", "cbw-timeout": slow,
	}, nil)
}

// scratch is a file without a name.
func (m *machine) scratch(name string, size int64) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(m.dir, name), os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err == nil {
		err = errors.Join(os.Remove(f.Name()), f.Truncate(size))
		if err != nil {
			_ = f.Close()
		}
	}
	if err != nil {
		return nil, fault.New(fault.Environment, "cannot make a file for what is overwritten of the disks of %s: %w", m.record().Name, err)
	}
	return f, nil
}

// openHanded hands QEMU a file that it is to use as it is.
func (p *process) openHanded(ctx context.Context, f *os.File, set int, file, content string) error {
	if err := p.doWith(ctx, f, "add-fd", map[string]any{"fdset-id": set}, nil); err != nil {
		return err
	}
	for _, node := range []map[string]any{
		{"driver": "file", "node-name": file, "filename": "/dev/fdset/" + strconv.Itoa(set), "discard": "unmap"},
		{"driver": diskimage.Raw, "node-name": content, "file": file, "discard": "unmap", "detect-zeroes": "unmap"},
	} {
		if err := p.do(ctx, "blockdev-add", node, nil); err != nil {
			return err
		}
	}
	return nil
}

// writeThrough has a disk read and written through a node from now on.
func (p *process) writeThrough(ctx context.Context, l layer, node string) error {
	return p.do(ctx, "qom-set", map[string]any{"path": "/machine/peripheral/" + l.of.disk, "property": "drive", "value": node}, nil)
}

// whileHalted does something while the guest stands still, if it does not anyway. Nobody is told that it stands still: it is for milliseconds.
func (p *process) whileHalted(ctx context.Context, do func() error) error {
	var status struct{ Status string }
	if err := p.do(ctx, "query-status", nil, &status); err != nil {
		return err
	}
	if status.Status != "running" {
		return do()
	}
	p.halts.Add(1)
	defer func() {
		p.halts.Add(1)
		signal(p.look)
	}()
	halt, cancel := context.WithTimeout(ctx, haltTime)
	defer cancel()
	err := p.do(halt, "stop", nil, nil)
	if err == nil {
		err = do()
	}
	again, end := context.WithTimeout(context.WithoutCancel(ctx), haltTime)
	defer end()
	return errors.Join(err, p.do(again, "cont", nil, nil))
}

// dropSnapshot takes what there is of a snapshot from the disks, and of copies of it.
func (p *process) dropSnapshot(ctx context.Context) error {
	if err := p.endCopies(ctx, p.layers()); err != nil {
		return err
	}
	nodes, err := p.blockNodes(ctx)
	if err != nil {
		return err
	}
	there, err := p.devices(ctx)
	if err != nil {
		return err
	}
	for _, l := range p.layers() {
		if _, has := nodes[l.snap]; has {
			if err := p.close(ctx, l.snap); err != nil {
				return err
			}
		}
		if _, has := nodes[l.aside]; has {
			if there[l.of.disk] {
				if err := p.writeThrough(ctx, l, l.of.content); err != nil {
					return err
				}
			}
			if err := p.close(ctx, l.aside); err != nil {
				return err
			}
		}
		if err := p.closeHanded(ctx, nodes, l.scratchSet, l.scratchFile, l.scratch); err != nil {
			return err
		}
	}
	return nil
}

// closeHanded has QEMU close a file that it was handed, as far as it has it open.
func (p *process) closeHanded(ctx context.Context, nodes map[string]int64, set int, file, content string) error {
	for _, node := range []string{content, file} {
		if _, has := nodes[node]; !has {
			continue
		}
		if err := p.close(ctx, node); err != nil {
			return err
		}
	}
	return p.removeSets(ctx, set)
}

// removeSets has QEMU let go of sets of open files, if it has them.
func (p *process) removeSets(ctx context.Context, sets ...int) error {
	var there []struct {
		ID int `json:"fdset-id"`
	}
	if err := p.do(ctx, "query-fdsets", nil, &there); err != nil {
		return err
	}
	for _, set := range there {
		if !slices.Contains(sets, set.ID) {
			continue
		}
		if err := p.do(ctx, "remove-fd", map[string]any{"fdset-id": set.ID}, nil); err != nil {
			return err
		}
	}
	return nil
}
