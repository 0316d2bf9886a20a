package kvm

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

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
	if q := p.machine.driver.qemu; !q.snapshots {
		return fault.New(fault.Unsupported, "QEMU %s cannot snapshot disks without harm to the guest when there is no room; 7.1 and later can", q.version)
	}
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

// CopySnapshot copies what a disk had. It holds up no other call about the machine; one that ends the snapshot ends the copy.
func (d *Driver) CopySnapshot(ctx context.Context, of hypervisor.Thing, id, disk string, to *os.File, told func(done, size int64)) error {
	m, err := d.hold(ctx, "copy snapshot", of)
	if err != nil {
		return err
	}
	if m == nil {
		return noSnapshot(of.Name)
	}
	p, l, err := m.beginCopy(ctx, id, disk, to)
	m.unlock()
	if err != nil {
		return err
	}
	if err := p.awaitCopy(ctx, l, told); err != nil {
		return err
	}
	if err := errors.Join(to.Sync(), dig(to)); err != nil {
		return fault.New(fault.Environment, "cannot write the copy: %w", err)
	}
	return nil
}

// dig has what a file has room for, and nothing in, be holes.
func dig(f *os.File) error {
	end, err := f.Seek(0, io.SeekEnd)
	for at := int64(0); err == nil && at < end; {
		var hole, data int64
		if hole, err = f.Seek(at, unix.SEEK_HOLE); err != nil || hole >= end {
			break
		}
		if data, err = f.Seek(hole, unix.SEEK_DATA); errors.Is(err, syscall.ENXIO) { // there is none behind
			data, err = end, nil
		}
		if err == nil {
			err = unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, hole, data-hole)
		}
		at = data
	}
	if errors.Is(err, syscall.EOPNOTSUPP) || errors.Is(err, syscall.EINVAL) { // a file system that knows no holes
		return nil
	}
	return err
}

// copyCommand is what has QEMU copy a disk. Of one that stands on an image a mirror would have what differs from that alone, and zeros elsewhere: QEMU says of
// a snapshot which parts the first layer lacks, and a mirror takes them for empty. A backup reads them; what it writes for zeros takes room until it is done.
func copyCommand(l layer, based bool) (command string, arguments map[string]any) {
	arguments = map[string]any{"job-id": l.copy, "device": l.snap, "target": l.copied, "sync": "full", "auto-dismiss": false}
	if based {
		return "blockdev-backup", arguments
	}
	return "blockdev-mirror", arguments
}

// roomForAll refuses to copy what takes room for zeros, too, until it is done, where there is none.
func roomForAll(to *os.File, size int64) error {
	var there unix.Statfs_t
	if err := unix.Fstatfs(int(to.Fd()), &there); err != nil {
		return fault.New(fault.Environment, "cannot tell how much room there is for the copy: %w", err)
	}
	if free := int64(there.Bavail) * there.Bsize; free < size {
		return fault.New(fault.Exhausted, "there is no room for a copy of the disk: it stands on an image, and its copy takes %d MiB until it is done; %d MiB are free", size>>20, free>>20).
			WithHint("stop the instance and export it then: that takes as much as the disk has")
	}
	return nil
}

// noSnapshot is about a snapshot that is no more.
func noSnapshot(name string) error {
	return fault.New(fault.WrongState, "the snapshot of the disks of instance %s is no more: its machine ended meanwhile, or something else was done with its disks", name).
		WithHint("try again")
}

// beginCopy begins the job that copies a disk, when there is no other any more.
func (m *machine) beginCopy(ctx context.Context, id, disk string, to *os.File) (*process, layer, error) {
	p, r := m.running(), m.record()
	if p == nil || r.Snapshot != id || id == "" || r.Spec == nil {
		return nil, layer{}, noSnapshot(r.Name)
	}
	slot, has := r.slots()[disk]
	if !has || diskIndex(r.Spec.Disks, disk) < 0 {
		return nil, layer{}, fault.New(fault.WrongState, "instance %s runs without disk %s", r.Name, disk)
	}
	l := layerOf(slot)
	if err := p.endCopies(ctx, []layer{l}); err != nil {
		return nil, l, err
	}
	nodes, err := p.blockNodes(ctx)
	if err != nil {
		return nil, l, err
	}
	size, has := nodes[l.snap]
	if !has {
		return nil, l, noSnapshot(r.Name)
	}
	if err := to.Truncate(size); err != nil {
		return nil, l, fault.New(fault.Environment, "cannot write the copy: %w", err)
	}
	layers, err := m.layersOf(ctx, r.Spec.Disks)
	if err != nil {
		return nil, l, err
	}
	based := layers[disk] != nil && layers[disk].Base != nil
	if based {
		if err := roomForAll(to, size); err != nil {
			return nil, l, err
		}
	}
	command, arguments := copyCommand(l, based)
	err = p.openHanded(ctx, to, l.copiedSet, l.copiedFile, l.copied)
	if err == nil {
		err = p.do(ctx, command, arguments, nil)
	}
	if err != nil {
		err = errors.Join(err, p.endCopies(context.WithoutCancel(ctx), []layer{l}))
	}
	return p, l, err
}

// copying is a job of QEMU that copies.
type copying struct {
	ID     string `json:"id"`
	Status string `json:"status"`
	Error  string `json:"error"`
	Done   int64  `json:"current-progress"`
	Size   int64  `json:"total-progress"`
}

func (p *process) job(ctx context.Context, id string) (*copying, error) {
	var all []copying
	if err := p.do(ctx, "query-jobs", nil, &all); err != nil {
		return nil, err
	}
	for i := range all {
		if all[i].ID == id {
			return &all[i], nil
		}
	}
	return nil, nil
}

// lookAgain is the longest pause between two looks at a job.
const lookAgain = time.Second

// awaitCopy waits until a copy is made, and leaves nothing of its job.
func (p *process) awaitCopy(ctx context.Context, l layer, told func(done, size int64)) (err error) {
	defer func() {
		behind, cancel := context.WithTimeout(context.WithoutCancel(ctx), haltTime)
		defer cancel()
		if ended := p.endCopies(behind, []layer{l}); ended != nil && !p.endedBy(ended) {
			err = errors.Join(err, ended)
		}
	}()
	again := time.NewTicker(lookAgain)
	defer again.Stop()
	name := p.machine.record().Name
	for {
		j, err := p.job(ctx, l.copy)
		switch {
		case err != nil && ctx.Err() == nil && p.endedBy(err):
			return noSnapshot(name)
		case err != nil && ctx.Err() == nil:
			return err
		case err != nil:
		case j == nil:
			return noSnapshot(name)
		case j.Status == "ready" || j.Status == "concluded" && j.Error == "": // all is there, and nothing will change any more
			told(j.Done, j.Size)
			return nil
		case j.Status == "concluded":
			return copyFailed(name, j.Error)
		default:
			told(j.Done, j.Size)
		}
		select {
		case <-ctx.Done():
			return fault.New(fault.Canceled, "the copy was ended: %w", context.Cause(ctx))
		case <-p.gone:
			return noSnapshot(name)
		case <-p.jobs:
		case <-again.C:
		}
	}
}

// endedBy reports whether an error is one of a process that has ended, which may show at its monitor a moment before.
func (p *process) endedBy(err error) bool {
	if !fault.Is(err, fault.Unavailable) {
		return false
	}
	select {
	case <-p.gone:
		return true
	case <-time.After(endTime):
		return false
	}
}

// What QEMU says of a copy that failed: as the system says it, and EACCES is for a snapshot that was given up.
const (
	saysFull   = "No space left on device"
	saysBroken = "Permission denied"
)

func copyFailed(name, says string) error {
	switch {
	case strings.Contains(says, saysFull):
		return fault.New(fault.Exhausted, "there is no room for a copy of the disk: %s", says)
	case strings.Contains(says, saysBroken):
		return fault.New(fault.Exhausted, "the snapshot of the disks of instance %s was given up, for what its guest overwrites meanwhile found no room on the node, or took too long to be put aside", name).
			WithHint("make room where the node's directory is, or try again when the guest writes less; the guest has noticed nothing")
	}
	return fault.New(fault.Failed, "QEMU could not copy the disk: %s", says)
}

// endCopies ends what copies disks, and has QEMU close what they were copied to.
func (p *process) endCopies(ctx context.Context, of []layer) error {
	for _, l := range of {
		if err := p.endJob(ctx, l.copy); err != nil {
			return err
		}
		nodes, err := p.blockNodes(ctx)
		if err != nil {
			return err
		}
		if err := p.closeHanded(ctx, nodes, l.copiedSet, l.copiedFile, l.copied); err != nil {
			return err
		}
	}
	return nil
}

// endJob ends a job, however far it has come, and waits until QEMU knows nothing of it.
func (p *process) endJob(ctx context.Context, id string) error {
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for {
		j, err := p.job(ctx, id)
		switch {
		case err != nil || j == nil:
			return err
		case j.Status == "concluded":
			err = p.do(ctx, "job-dismiss", map[string]any{"id": id}, nil)
		case j.Status != "aborting":
			err = p.do(ctx, "block-job-cancel", map[string]any{"device": id, "force": true}, nil)
		}
		if err != nil && !fault.Is(err, fault.NotFound) && !fault.Is(err, fault.Failed) { // a job that has just gone another step is asked again
			return err
		}
		select {
		case <-ctx.Done():
			return fault.New(fault.Canceled, "QEMU was told to end a copy, and has not yet: %w", context.Cause(ctx))
		case <-again.C:
		}
	}
}
