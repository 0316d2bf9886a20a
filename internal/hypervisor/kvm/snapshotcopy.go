package kvm

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/hypervisor"
)

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
