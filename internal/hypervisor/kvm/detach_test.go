package kvm

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/hypervisor"
)

// TestADiskIsAlwaysSomebodys: a driver that is killed while it detaches a disk, or attaches it, leaves it with one that has it at least. What is removed
// meanwhile does not take it along, and doing it again comes to its end.
func TestADiskIsAlwaysSomebodys(t *testing.T) {
	n := newNode(t)
	alone, two := hypervisor.DetachedDisk("disk-1"), hypervisor.Thing{UUID: "22222222-2222-4333-8444-555555555555", Name: "two.example"}
	content := func(d *Driver) {
		t.Helper()
		v, err := d.cfg.Volumes.Volume(t.Context(), "file", "disk-1")
		var got []byte
		if err == nil {
			got, err = os.ReadFile(v.Path)
		}
		if err != nil || !bytes.HasPrefix(got, TinyDisk()) {
			t.Fatalf("the disk has lost its content: %d bytes, %v", len(got), err)
		}
	}
	has := func(d *Driver, of hypervisor.Thing) bool {
		i, err := d.Instance(t.Context(), of)
		if err != nil && !fault.Is(err, fault.NotFound) {
			t.Fatal(err)
		}
		return diskIndex(i.Disks, "disk-1") >= 0
	}
	// killed is a driver behind one that wrote down who gets the disk, and not that who had it has it no more.
	killed := func(had hypervisor.Thing, move func(*Driver) (bool, error)) *Driver {
		t.Helper()
		d := n.open()
		file := filepath.Join(n.dir, "kvm", had.UUID, recordFile)
		before, err := os.ReadFile(file)
		if err == nil {
			_, err = move(d)
		}
		if err == nil {
			err = os.MkdirAll(filepath.Dir(file), 0o700)
		}
		if err == nil {
			err = os.WriteFile(file, before, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		return n.open()
	}
	do := func(_ bool, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	detach := func(d *Driver) (bool, error) {
		return d.Detach(t.Context(), one, hypervisor.Mark{}, []string{"disk-1"})
	}
	attach := func(d *Driver) (bool, error) {
		return d.Attach(t.Context(), two, hypervisor.Mark{}, []string{"disk-1"})
	}
	n.guest(n.open())

	d := killed(one, detach)
	if !has(d, one) || !has(d, alone) {
		t.Fatal("it is not with both behind a kill")
	}
	do(d.Drop(t.Context(), one, []string{"disk-1"}))
	content(d)
	d = killed(alone, attach)
	do(d.Remove(t.Context(), two))
	content(d)
	d = killed(alone, attach)
	do(attach(d))
	if has(d, alone) || !has(d, two) {
		t.Error("done again it has not come to its end")
	}
	content(d)
	do(d.Remove(t.Context(), two))
	if _, err := d.cfg.Volumes.Volume(t.Context(), "file", "disk-1"); !fault.Is(err, fault.NotFound) {
		t.Errorf("with the last that has it it is not removed: %v", err)
	}
}

// TestDetachedFromWhatRuns: what a machine uses is not detached from it, and what was attached can be plugged in.
func TestDetachedFromWhatRuns(t *testing.T) {
	n := newNode(t)
	d := n.open()
	spec := n.guest(d)
	second := hypervisor.Disk{UUID: "disk-2", Size: 1, Template: "file"}
	if _, err := d.Prepare(t.Context(), one, hypervisor.Mark{}, []hypervisor.Disk{second}); err != nil {
		t.Fatal(err)
	}
	n.start(d, spec)
	if _, err := d.Detach(t.Context(), one, hypervisor.Mark{}, []string{"disk-2"}); err != nil {
		t.Errorf("a disk that is not plugged in: %v", err)
	}
	if _, err := d.Detach(t.Context(), one, hypervisor.Mark{}, []string{"disk-1"}); !fault.Is(err, fault.WrongState) {
		t.Errorf("a disk in use: %v", err)
	}
	if _, err := d.Attach(t.Context(), one, hypervisor.Mark{}, []string{"disk-2"}); err != nil {
		t.Fatal(err)
	}
	with := spec
	with.Disks = append([]hypervisor.Disk{}, spec.Disks[0], second)
	if changed, err := d.Adjust(t.Context(), with); err != nil || !changed {
		t.Errorf("to plug the attached disk in: %v, %v", changed, err)
	}
	if _, err := d.Detach(t.Context(), one, hypervisor.Mark{}, []string{"disk-2"}); !fault.Is(err, fault.WrongState) {
		t.Errorf("what was plugged in: %v", err)
	}
}
