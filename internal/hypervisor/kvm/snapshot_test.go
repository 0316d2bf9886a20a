package kvm

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/hypervisor"
)

// patterned is a machine with a disk as it is, one that stands on an image, and one with layers that stands on nothing. The first two start with the tiny guest.
func (n *node) patterned(d *Driver) hypervisor.Spec {
	n.Helper()
	spec := n.guest(d)
	spec.Disks[0].Size = 4
	for _, uuid := range []string{"disk-2", "disk-3"} {
		spec.Disks = append(spec.Disks, hypervisor.Disk{UUID: uuid, Size: 4, Template: "file", Format: "qcow2"})
	}
	if _, err := d.Prepare(n.Context(), one, hypervisor.Mark{}, spec.Disks); err != nil {
		n.Fatal(err)
	}
	if err := d.Blank(n.Context(), one, "disk-2", n.image("raw")); err != nil {
		n.Fatal(err)
	}
	return spec
}

// write writes a pattern on a MiB of a disk as the guest would.
func (n *node) write(d *Driver, disk, mib int, pattern byte) {
	n.Helper()
	p := d.things[uuid].running()
	var said string
	err := p.do(n.Context(), "human-monitor-command", map[string]any{
		"command-line": fmt.Sprintf(`qemu-io -d /machine/peripheral/disk%d/virtio-backend "write -P %d %dM 1M"`, disk, pattern, mib)}, &said)
	if err != nil || strings.Contains(said, "Error") {
		n.Fatalf("%s%v", said, err)
	}
}

// copied is what the copy of a disk in a snapshot has.
func (n *node) copied(d *Driver, id, disk string) (content []byte, blocks int64, err error) {
	n.Helper()
	f, err := os.Create(filepath.Join(n.T.TempDir(), "copy"))
	if err != nil {
		n.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	if err := d.CopySnapshot(n.Context(), one, id, disk, f, func(int64, int64) {}); err != nil {
		return nil, 0, err
	}
	info, err := f.Stat()
	if err == nil {
		content, err = os.ReadFile(f.Name())
	}
	if err != nil {
		n.Fatal(err)
	}
	return content, info.Sys().(*syscall.Stat_t).Blocks * 512, nil
}

// hasOnly checks that a copy is of 4 MiB and has a pattern at one of them, and zeros behind the first elsewhere.
func (n *node) hasOnly(d *Driver, id, disk string, mib int, pattern byte) {
	n.Helper()
	content, blocks, err := n.copied(d, id, disk)
	if err != nil {
		n.Fatal(err)
	}
	want := make([]byte, 4<<20)
	if disk != "disk-3" {
		copy(want, TinyDisk())
	}
	copy(want[mib<<20:], bytes.Repeat([]byte{pattern}, 1<<20))
	if !bytes.Equal(content, want) {
		n.Errorf("the copy of %s is of %d bytes, and its first of MiB %d is %x", disk, len(content), mib, content[mib<<20])
	}
	if blocks > 3<<20 {
		n.Errorf("the copy of %s takes %d bytes", disk, blocks)
	}
}

// nothingOf checks that QEMU has no part of a snapshot or a copy left, and that nothing lies in the machine's directory.
func (n *node) nothingOf(d *Driver) {
	n.Helper()
	p := d.things[uuid].running()
	nodes, err := p.blockNodes(n.Context())
	if err != nil {
		n.Fatal(err)
	}
	for name := range nodes {
		for _, part := range []string{"aside", "scratch", "snap", "copied"} {
			if strings.HasPrefix(name, part) {
				n.Errorf("QEMU has %s", name)
			}
		}
	}
	var sets []struct {
		ID int `json:"fdset-id"`
	}
	if err := p.do(n.Context(), "query-fdsets", nil, &sets); err != nil {
		n.Fatal(err)
	}
	for _, set := range sets {
		if set.ID >= firstScratchSet {
			n.Errorf("QEMU has the set of files %d", set.ID)
		}
	}
	if there, _ := filepath.Glob(filepath.Join(d.things[uuid].dir, "scratch*")); len(there) > 0 {
		n.Errorf("there are %v", there)
	}
	if r := d.things[uuid].record(); r.Snapshot != "" {
		n.Errorf("it is written down that there is the snapshot %s", r.Snapshot)
	}
}

// TestSnapshot: copies have what all disks had at one moment, whatever is written since; the guest runs all the time, as far as anybody is told; and
// behind it its disks are as ever.
func TestSnapshot(t *testing.T) {
	n := newNode(t)
	d := n.open()
	n.start(d, n.patterned(d))
	var paused atomic.Bool
	d.Watch(func() {
		if d.things[uuid].state() != hypervisor.Running {
			paused.Store(true)
		}
	})
	n.write(d, 0, 1, 'a')
	n.write(d, 1, 1, 'b')
	n.write(d, 2, 3, 'c')
	for _, want := range []bool{true, false} {
		if changed, err := d.Snapshot(t.Context(), one, "first"); err != nil || changed != want {
			t.Fatalf("Snapshot: %t, %v", changed, err)
		}
		n.write(d, 0, 1, 'x')
		n.write(d, 1, 1, 'y')
		n.write(d, 1, 2, 'z')
		n.write(d, 2, 3, 'z')
	}
	for range 2 { // once more it begins anew
		n.hasOnly(d, "first", "disk-1", 1, 'a')
	}
	n.hasOnly(d, "first", "disk-2", 1, 'b')
	n.hasOnly(d, "first", "disk-3", 3, 'c')
	if changed, err := d.Snapshot(t.Context(), one, "second"); err != nil || !changed {
		t.Fatalf("another snapshot: %t, %v", changed, err)
	}
	for id, disk := range map[string]string{"first": "disk-1", "second": "disk-4", "": "disk-1"} {
		if _, _, err := n.copied(d, id, disk); !fault.Is(err, fault.WrongState) {
			t.Errorf("a copy of %s of the snapshot %q: %v", disk, id, err)
		}
	}
	n.hasOnly(d, "second", "disk-1", 1, 'x')
	for _, want := range []bool{true, false} {
		if changed, err := d.Release(t.Context(), one, "second"); err != nil || changed != want {
			t.Fatalf("Release: %t, %v", changed, err)
		}
	}
	n.nothingOf(d)
	n.write(d, 0, 1, 'q')
	disks := d.things[uuid].record().Disks
	v, err := d.cfg.Volumes.Volume(t.Context(), "file", disks[0].UUID)
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(v.Path)
	if err != nil || content[1<<20] != 'q' || content[2<<20-1] != 'q' {
		t.Errorf("what is written behind the snapshot is not on the disk: %x, %v", content[1<<20], err)
	}
	if d.noteChange(); paused.Load() {
		t.Error("it was told that the guest stood still")
	}
}

// TestSnapshotAtTheStart is of the disks as they were before the guest ran, and of one that is paused.
func TestSnapshotAtTheStart(t *testing.T) {
	n := newNode(t)
	d := n.open()
	spec := n.patterned(d)
	spec.Snapshot = "start"
	n.start(d, spec)
	n.write(d, 0, 1, 'x')
	content, _, err := n.copied(d, "start", "disk-1")
	if err != nil || content[1<<20] != 0 || !bytes.HasPrefix(content, TinyDisk()[:512]) {
		t.Fatalf("the copy has %x, %v", content[1<<20], err)
	}
	if _, err := d.Stop(t.Context(), one, hypervisor.Stop{}); err != nil {
		t.Fatal(err)
	}
	if _, _, err := n.copied(d, "start", "disk-1"); !fault.Is(err, fault.WrongState) {
		t.Errorf("of a machine that was stopped: %v", err)
	}
	if _, err := d.Snapshot(t.Context(), one, "start"); !fault.Is(err, fault.WrongState) {
		t.Errorf("a snapshot of a machine that does not run: %v", err)
	}
	if changed, err := d.Release(t.Context(), one, "start"); err != nil || !changed {
		t.Errorf("Release: %t, %v", changed, err)
	}
	spec.Snapshot, spec.StartPaused = "", true
	n.start(d, spec)
	if changed, err := d.Snapshot(t.Context(), one, "paused"); err != nil || !changed {
		t.Fatalf("of a paused one: %t, %v", changed, err)
	}
	n.hasOnly(d, "paused", "disk-1", 1, 'x')
	if i, err := d.Instance(t.Context(), one); err != nil || i.State != hypervisor.Paused {
		t.Errorf("it is %s, %v", i.State, err)
	}
}

// TestASnapshotOutlivesItsDriver: what it kept is copied by the next one, and nothing goes on that the one before began.
func TestASnapshotOutlivesItsDriver(t *testing.T) {
	n := newNode(t)
	d := n.open()
	n.start(d, n.patterned(d))
	n.write(d, 0, 1, 'a')
	if _, err := d.Snapshot(t.Context(), one, "kept"); err != nil {
		t.Fatal(err)
	}
	n.write(d, 0, 1, 'x')
	left, err := os.Create(filepath.Join(t.TempDir(), "left"))
	if err == nil {
		_, _, err = d.things[uuid].beginCopy(t.Context(), "kept", "disk-1", left)
	}
	if err != nil {
		t.Fatal(err)
	}
	d = n.open()
	if j, err := d.things[uuid].running().job(t.Context(), "copy0"); err != nil || j != nil {
		t.Errorf("it still copies: %+v, %v", j, err)
	}
	n.hasOnly(d, "kept", "disk-1", 1, 'a')
	if changed, err := d.Snapshot(t.Context(), one, "kept"); err != nil || changed {
		t.Errorf("it is made anew: %t, %v", changed, err)
	}

	// and now a driver that was killed while the guest stood still
	if err := d.things[uuid].running().do(t.Context(), "stop", nil, nil); err != nil {
		t.Fatal(err)
	}
	d = n.open()
	if i, err := d.Instance(t.Context(), one); err != nil || i.State != hypervisor.Running {
		t.Errorf("it is %s, %v", i.State, err)
	}
	if _, _, err := n.copied(d, "kept", "disk-1"); !fault.Is(err, fault.WrongState) {
		t.Errorf("a snapshot of no one moment is copied: %v", err)
	}
	if changed, err := d.Snapshot(t.Context(), one, "kept"); err != nil || !changed {
		t.Errorf("it is not made anew: %t, %v", changed, err)
	}
	n.hasOnly(d, "kept", "disk-1", 1, 'x')
	if _, err := d.Release(t.Context(), one, "kept"); err != nil {
		t.Fatal(err)
	}
	n.nothingOf(d)
}

// TestASnapshotEnds with its machine, and with whatever changes its devices.
func TestASnapshotEnds(t *testing.T) {
	n := newNode(t)
	d := n.open()
	spec := n.patterned(d)
	n.start(d, spec)
	begin := func() (*process, layer) {
		if _, err := d.Snapshot(t.Context(), one, "id"); err != nil {
			t.Fatal(err)
		}
		to, err := os.Create(filepath.Join(t.TempDir(), "copy"))
		if err != nil {
			t.Fatal(err)
		}
		p, l, err := d.things[uuid].beginCopy(t.Context(), "id", "disk-1", to)
		if err != nil {
			t.Fatal(err)
		}
		return p, l
	}
	quiet := func(int64, int64) {}

	p, l := begin()
	spec.Disks[1].Size = 5
	if changed, err := d.Prepare(t.Context(), one, hypervisor.Mark{}, spec.Disks); err != nil || !changed {
		t.Fatalf("a disk is not grown: %t, %v", changed, err)
	}
	if err := p.awaitCopy(t.Context(), l, quiet); !fault.Is(err, fault.WrongState) {
		t.Errorf("behind a disk that grew: %v", err)
	}
	n.nothingOf(d)

	p, l = begin()
	with := spec
	with.NICs = []hypervisor.NIC{{UUID: "nic-1", MAC: "aa:00:00:00:00:01"}}
	if changed, err := d.Adjust(t.Context(), with); err != nil || !changed {
		t.Fatalf("a card is not plugged in: %t, %v", changed, err)
	}
	if err := p.awaitCopy(t.Context(), l, quiet); !fault.Is(err, fault.WrongState) {
		t.Errorf("behind a card that was plugged in: %v", err)
	}
	n.nothingOf(d)

	p, l = begin()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := p.awaitCopy(ctx, l, quiet); !fault.Is(err, fault.Canceled) {
		t.Errorf("that nobody wants any more: %v", err)
	}
	if _, err := d.Release(t.Context(), one, "id"); err != nil {
		t.Fatal(err)
	}
	n.nothingOf(d)

	p, l = begin()
	if err := p.kill(); err != nil {
		t.Fatal(err)
	}
	if err := p.awaitCopy(t.Context(), l, quiet); !fault.Is(err, fault.WrongState) {
		t.Errorf("of a QEMU that was killed: %v", err)
	}
	if changed, err := d.Release(t.Context(), one, "id"); err != nil || !changed {
		t.Errorf("Release: %t, %v", changed, err)
	}
	if there, _ := filepath.Glob(filepath.Join(d.things[uuid].dir, "scratch*")); len(there) > 0 {
		t.Errorf("there are %v", there)
	}
}

// TestASnapshotWithoutRoom is given up, and what the guest writes is written.
func TestASnapshotWithoutRoom(t *testing.T) {
	n := newNode(t)
	d := n.open()
	n.start(d, n.patterned(d))
	n.write(d, 0, 1, 'a')
	if _, err := d.Snapshot(t.Context(), one, "id"); err != nil {
		t.Fatal(err)
	}
	p := d.things[uuid].running()
	for _, c := range []struct {
		command string
		args    map[string]any
	}{
		{"blockdev-add", map[string]any{"driver": "blkdebug", "node-name": "scratchfull", "image": "scratchfile0", "inject-error": []any{map[string]any{"event": "write_aio", "errno": int(syscall.ENOSPC)}}}},
		{"blockdev-reopen", map[string]any{"options": []any{map[string]any{"driver": "raw", "node-name": "scratch0", "file": "scratchfull", "discard": "unmap", "detect-zeroes": "unmap"}}}},
	} {
		if err := p.do(t.Context(), c.command, c.args, nil); err != nil {
			t.Fatal(err)
		}
	}
	n.write(d, 0, 1, 'x')
	if _, _, err := n.copied(d, "id", "disk-1"); !fault.Is(err, fault.Exhausted) || !strings.Contains(err.Error(), "was given up") {
		t.Errorf("a copy of it: %v", err)
	}
	if i, err := d.Instance(t.Context(), one); err != nil || i.State != hypervisor.Running {
		t.Errorf("the guest is %s, %v", i.State, err)
	}
	f, err := os.Create(filepath.Join(t.TempDir(), "copy"))
	if err == nil {
		defer func() { _ = f.Close() }()
		err = roomForAll(f, 1)
	}
	if err != nil {
		t.Error(err)
	}
	if err := roomForAll(f, 1<<60); !fault.Is(err, fault.Exhausted) {
		t.Errorf("a copy of 2^60 bytes: %v", err)
	}
	for message, code := range map[string]fault.Code{saysFull: fault.Exhausted, saysBroken: fault.Exhausted, "Input/output error": fault.Failed} {
		if err := copyFailed("x", message); !fault.Is(err, code) {
			t.Errorf("%s: %v", message, err)
		}
	}
}

// spied has somebody stand between a driver that comes and the monitor of the machine, who notes what QEMU is told; files are handed on.
func (n *node) spied(d *Driver) (told func() []string) {
	n.Helper()
	dir := d.things[uuid].dir
	_ = d.Close()
	if err := os.Rename(filepath.Join(dir, monitorFile), filepath.Join(dir, "behind")); err != nil {
		n.Fatal(err)
	}
	var l *net.UnixListener
	if err := socket(dir, monitorFile, func(at *net.UnixAddr) (err error) {
		l, err = net.ListenUnix("unix", at)
		return err
	}); err != nil {
		n.Fatal(err)
	}
	l.SetUnlinkOnClose(false) // it goes with its directory
	n.Cleanup(func() { _ = l.Close() })
	var mu sync.Mutex
	var lines []string
	note := func(line []byte) {
		mu.Lock()
		defer mu.Unlock()
		lines = append(lines, string(line))
	}
	go func() {
		for { // a driver that was closed may come once more
			in, err := l.AcceptUnix()
			if err != nil {
				return
			}
			behind, err := dialFreed(n.Context(), dir, "behind")
			if err == nil {
				go func() { _, _ = io.Copy(in, behind) }()
				handOn(in, behind.(*net.UnixConn), note)
				_ = behind.Close()
			}
			_ = in.Close()
		}
	}()
	return func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(lines)
	}
}

// handOn hands on what comes from one end, with the files that come along, until that ends.
func handOn(from, to *net.UnixConn, note func(line []byte)) {
	text, files := make([]byte, 64<<10), make([]byte, 1<<10)
	for {
		t, f, _, _, err := from.ReadMsgUnix(text, files)
		if err != nil || t == 0 {
			return
		}
		note(text[:t])
		_, _, err = to.WriteMsgUnix(text[:t], files[:f], nil)
		handed, _ := syscall.ParseSocketControlMessage(files[:f])
		for i := range handed {
			fds, _ := syscall.ParseUnixRights(&handed[i])
			for _, fd := range fds {
				_ = syscall.Close(fd)
			}
		}
		if err != nil {
			return
		}
	}
}

// TestASnapshotIsOfOneMoment: all disks are written through what puts aside between a stop of the guest and its going on.
func TestASnapshotIsOfOneMoment(t *testing.T) {
	n := newNode(t)
	d := n.open()
	n.start(d, n.patterned(d))
	told := n.spied(d)
	d = n.open()
	if _, err := d.Snapshot(t.Context(), one, "id"); err != nil {
		t.Fatal(err)
	}
	var order []string
	for _, line := range told() {
		for _, command := range []string{"stop", "cont", "qom-set"} {
			if strings.Contains(line, `"execute":"`+command+`"`) {
				order = append(order, command)
			}
		}
	}
	if got := strings.Join(order, " "); got != "stop qom-set qom-set qom-set cont" {
		t.Errorf("it was told %s", got)
	}
}
