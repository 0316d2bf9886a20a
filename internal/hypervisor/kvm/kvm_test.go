package kvm

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/console"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/hypervisor"
	"github.com/drover-project/drover/internal/hypervisor/hypertest"
	"github.com/drover-project/drover/internal/storage"
	"github.com/drover-project/drover/internal/storage/file"
	"github.com/drover-project/drover/internal/testkit"
)

// needQEMU skips a test where there is none.
func needQEMU(t *testing.T) {
	if _, err := exec.LookPath("qemu-system-x86_64"); err != nil {
		testkit.Missingf(t, "qemu-system-x86_64 is not installed")
	}
}

// node opens drivers of one directory, one after the other, as a node that is started again does.
type node struct {
	*testing.T
	dir   string
	adopt time.Duration
	// pull is Config.pull.
	pull time.Duration
	// user is Config.User.
	user string
	// bridges is Config.Bridges.
	bridges bool
	last    *Driver
}

func newNode(t *testing.T) *node {
	needQEMU(t)
	n := &node{T: t, dir: t.TempDir()}
	t.Cleanup(n.endAll)
	return n
}

// open opens a driver, behind one that was killed: the kernel has closed what that had open.
func (n *node) open() *Driver {
	n.Helper()
	if n.last != nil {
		_ = n.last.Close()
	}
	disks, err := file.Open(n.dir + "/disks")
	if err != nil {
		n.Fatal(err)
	}
	n.last, err = Open(n.Context(), Config{User: n.user, adopt: n.adopt, pull: n.pull, Bridges: n.bridges, Dir: n.dir, Volumes: storage.Pools{disks}, Accelerator: "tcg", OneThread: true, Log: slog.New(slog.NewTextHandler(n.Output(), nil))})
	if err != nil {
		n.Fatal(err)
	}
	return n.last
}

// endAll ends what runs, whoever knows of it; nothing outlives a test.
func (n *node) endAll() {
	held, err := filepath.Glob(n.dir + "/kvm/*/" + heldFile)
	if err != nil {
		n.Error(err)
	}
	for _, path := range held {
		if pid, err := processThatHolds(path, heldFD); err == nil {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

func TestConformanceOfHypervisor(t *testing.T) {
	needQEMU(t)
	var mu sync.Mutex
	nodes := map[string]*node{}
	hypertest.Run(t, func(t *testing.T, dir string) hypervisor.Driver {
		mu.Lock()
		n := nodes[dir]
		if n == nil {
			n = &node{T: t, dir: dir}
			nodes[dir] = n
			t.Cleanup(n.endAll)
		}
		mu.Unlock()
		return n.open()
	})
}

// uuid is the one of the machine in most tests.
const uuid = "11111111-2222-4333-8444-555555555555"

var one = hypervisor.Thing{UUID: uuid, Name: "one.example"}

// guest is a machine with the tiny guest on its disk.
func (n *node) guest(d *Driver) hypervisor.Spec {
	n.Helper()
	disk := hypervisor.Disk{UUID: "disk-1", Size: 1, Template: "file"}
	spec := hypervisor.Spec{Name: one.Name, UUID: uuid, Memory: 64, VCPUs: 1, Disks: []hypervisor.Disk{disk}, Params: map[string]any{"kernel_path": ""}}
	if _, err := d.Prepare(n.Context(), one, hypervisor.Mark{}, spec.Disks); err != nil {
		n.Fatal(err)
	}
	v, err := d.cfg.Volumes.Volume(n.Context(), "file", disk.UUID)
	path := v.Path
	if err == nil {
		err = os.WriteFile(path, TinyDisk(), 0o600)
	}
	if err != nil {
		n.Fatal(err)
	}
	return spec
}

func (n *node) start(d *Driver, spec hypervisor.Spec) {
	n.Helper()
	if changed, err := d.Start(n.Context(), spec); err != nil || !changed {
		n.Fatalf("Start: %v, %v", changed, err)
	}
}

// look begins to look at the machine's serial line.
func (n *node) look(d *Driver) *reading {
	n.Helper()
	line, err := d.Console(one)
	if err != nil {
		n.Fatal(err)
	}
	return &reading{T: n.T, line: line}
}

// reading is what was seen of a serial line.
type reading struct {
	*testing.T
	line *console.Line
	at   uint64
	seen string
}

// await waits until the guest has said something, behind what was waited for before.
func (r *reading) await(want string) {
	r.Helper()
	r.awaitFor(testkit.Patience(), want)
}

func (r *reading) awaitFor(limit time.Duration, want string) {
	r.Helper()
	ctx, cancel := context.WithTimeout(r.Context(), limit)
	defer cancel()
	for {
		if _, rest, found := strings.Cut(r.seen, want); found {
			r.seen = rest
			return
		}
		piece := r.line.Read(ctx, r.at)
		if len(piece.Text) == 0 {
			r.Fatalf("the guest has not said %q; it said %q", want, r.seen)
		}
		r.seen += string(piece.Text)
		r.at = piece.Next
	}
}

func (r *reading) key(keys string) {
	r.Helper()
	if err := r.line.Type([]byte(keys)); err != nil {
		r.Fatal(err)
	}
}

func (n *node) is(d *Driver, want hypervisor.State) {
	n.Helper()
	i, err := d.Instance(n.Context(), one)
	if err != nil || i.State != want {
		n.Fatalf("the machine is %+v, %v; want %s", i, err, want)
	}
}

// changes are told by a driver that watches.
func changes(d *Driver) <-chan struct{} {
	told := make(chan struct{}, 100)
	d.Watch(func() { told <- struct{}{} })
	return told
}

// becomes waits for a state that nobody ordered.
func (n *node) becomes(d *Driver, told <-chan struct{}, want hypervisor.State) {
	n.Helper()
	limit := time.After(testkit.Patience())
	for {
		if i, err := d.Instance(n.Context(), one); err == nil && i.State == want {
			return
		}
		select {
		case <-told:
		case <-limit:
			n.is(d, want)
		}
	}
}

// TestAGuestRuns has a real guest live: it starts, is asked to end and says so itself, starts, is reset, and ends at once.
func TestAGuestRuns(t *testing.T) {
	n := newNode(t)
	d := n.open()
	spec := n.guest(d)
	n.start(d, spec)
	r := n.look(d)
	r.await("GUEST-UP")
	r.key("x")
	r.await("x")
	if changed, err := d.Stop(t.Context(), one, hypervisor.Stop{Timeout: testkit.Patience()}); err != nil || !changed {
		t.Fatalf("Stop: %v, %v", changed, err)
	}
	r.await("BUTTON\r\nBYE")
	n.is(d, hypervisor.Stopped)
	n.start(d, spec)
	r.await("GUEST-UP")
	if err := d.Reboot(t.Context(), one); err != nil {
		t.Fatal(err)
	}
	r.await("GUEST-UP")
	r.key("r") // by the guest
	r.await("GUEST-UP")
	if changed, err := d.Stop(t.Context(), one, hypervisor.Stop{Force: true, Timeout: time.Hour}); err != nil || !changed {
		t.Fatalf("Stop: %v, %v", changed, err)
	}
	if strings.Contains(r.seen, "BUTTON") {
		t.Error("a guest that was to end at once was asked")
	}
	if err := r.line.Type([]byte("x")); err == nil {
		t.Error("there is nobody who takes keys")
	}
}

// TestAGuestThatDoesNotListen is ended when its time is over.
func TestAGuestThatDoesNotListen(t *testing.T) {
	n := newNode(t)
	d := n.open()
	spec := n.guest(d)
	spec.Disks, spec.StartPaused = nil, false // it finds nothing to start from, and has no power button
	n.start(d, spec)
	if changed, err := d.Stop(t.Context(), one, hypervisor.Stop{Timeout: 200 * time.Millisecond}); err != nil || !changed {
		t.Fatalf("Stop: %v, %v", changed, err)
	}
	n.is(d, hypervisor.Stopped)
}

func TestAGuestThatEndsItself(t *testing.T) {
	n := newNode(t)
	d := n.open()
	told := changes(d)
	spec := n.guest(d)
	n.start(d, spec)
	r := n.look(d)
	r.await("GUEST-UP")
	r.key("q")
	r.await("BYE")
	n.becomes(d, told, hypervisor.Stopped)
	n.endedItself(d, true)
	n.start(d, spec) // its process gives way
	r.await("GUEST-UP")

	_ = d.Close() // nobody is there when it ends
	conn, err := dial(d.things[uuid].dir, serialFile)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Write([]byte("q")); err != nil {
		t.Fatal(err)
	}
	if err := awaitText(conn.Read, "BYE"); err != nil {
		t.Fatal(err)
	}
	_ = conn.Close()
	d = n.open()
	n.becomes(d, changes(d), hypervisor.Stopped)
	n.endedItself(d, true)
	if changed, err := d.Stop(t.Context(), one, hypervisor.Stop{Force: true}); err != nil || changed {
		t.Errorf("it has ended already: %v, %v", changed, err)
	}
	n.endedItself(d, false) // somebody has seen to it
	if removed, err := d.Remove(t.Context(), one); err != nil || !removed {
		t.Errorf("Remove: %v, %v", removed, err)
	}
}

func (n *node) endedItself(d *Driver, want bool) {
	n.Helper()
	if i, err := d.Instance(n.Context(), one); err != nil || i.EndedItself != want {
		n.Errorf("%+v, %v: that its guest ended it is not %v", i, err, want)
	}
}

func awaitText(read func([]byte) (int, error), want string) error {
	var heard []byte
	for chunk := make([]byte, 256); !bytes.Contains(heard, []byte(want)); {
		n, err := read(chunk)
		if err != nil {
			return err
		}
		heard = append(heard, chunk[:n]...)
	}
	return nil
}

func TestAdoption(t *testing.T) {
	n := newNode(t)
	d := n.open()
	spec := n.guest(d)
	n.start(d, spec)
	n.look(d).await("GUEST-UP")
	pid := d.things[uuid].running().pid
	for range 2 {
		d = n.open()
		n.is(d, hypervisor.Running)
		if i, err := d.Instance(t.Context(), one); err != nil || i.Memory != 64 || i.VCPUs != 1 {
			t.Errorf("%+v, %v", i, err)
		}
		if is := d.things[uuid].running().pid; is != pid {
			t.Errorf("its process is %d, and was %d", is, pid)
		}
		r := n.look(d)
		r.key("a")
		r.await("a")
	}
	if changed, err := d.Start(t.Context(), spec); err != nil || changed {
		t.Errorf("it runs already: %v, %v", changed, err)
	}
	if count := Running(n.dir); count != 1 {
		t.Errorf("%d machines are said to run", count)
	}
	if changed, err := d.Stop(t.Context(), one, hypervisor.Stop{Timeout: testkit.Patience()}); err != nil || !changed {
		t.Errorf("Stop: %v, %v", changed, err)
	}
	if count := Running(n.dir); count != 0 {
		t.Errorf("%d machines are said to run", count)
	}
}

// TestKilled: a machine whose process is killed has stopped, whoever started it.
func TestKilled(t *testing.T) {
	n := newNode(t)
	d := n.open()
	spec := n.guest(d)
	for range 2 {
		n.start(d, spec)
		d = n.open()
		told := changes(d)
		if err := d.things[uuid].running().kill(); err != nil {
			t.Fatal(err)
		}
		n.becomes(d, told, hypervisor.Stopped)
		n.endedItself(d, false)
	}
	n.start(d, spec)
	n.look(d).await("GUEST-UP")
}

// TestNotLetGo: a driver that is killed between the start of a process and that of its guest has started nothing.
func TestNotLetGo(t *testing.T) {
	n := newNode(t)
	d := n.open()
	spec := n.guest(d)
	spec.StartPaused = true
	n.start(d, spec)
	n.is(d, hypervisor.Paused)
	d = n.open()
	n.is(d, hypervisor.Paused) // it was wanted so
	m := d.things[uuid]
	r := *m.record()
	s := *r.Spec
	s.StartPaused, r.Spec = false, &s
	if err := m.save(&r); err != nil {
		t.Fatal(err)
	}
	d = n.open()
	n.is(d, hypervisor.Stopped)
	spec.StartPaused = false
	n.start(d, spec)
}

// TestAnotherProgramIsAtTheMonitor: a machine that cannot be asked is left alone, and asked again.
func TestAnotherProgramIsAtTheMonitor(t *testing.T) {
	n := newNode(t)
	d := n.open()
	spec := n.guest(d)
	n.start(d, spec)
	n.look(d).await("GUEST-UP")
	pid := d.things[uuid].running().pid
	_ = d.Close()
	conn, err := dial(d.things[uuid].dir, monitorFile)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if err := awaitText(conn.Read, "QMP"); err != nil { // QEMU is busy with us
		t.Fatal(err)
	}
	n.adopt = 100 * time.Millisecond // whoever is at the monitor stays longer
	d = n.open()
	n.is(d, hypervisor.Running)
	if changed, err := d.Start(t.Context(), spec); err != nil || changed {
		t.Errorf("it runs already: %v, %v", changed, err)
	}
	if err := d.Reboot(t.Context(), one); !fault.Is(err, fault.Unavailable) {
		t.Errorf("it cannot be asked: %v", err)
	}
	told := changes(d)
	_ = conn.Close()
	<-told // it answers
	if err := d.Reboot(t.Context(), one); err != nil {
		t.Error(err)
	}
	if is := d.things[uuid].running().pid; is != pid {
		t.Errorf("its process is %d, and was %d", is, pid)
	}
}

func TestOneProcess(t *testing.T) {
	n := newNode(t)
	d := n.open()
	spec := n.guest(d)
	n.start(d, spec)
	n.look(d).await("GUEST-UP")
	m := d.things[uuid]
	p := m.running()
	m.mu.Lock()
	m.process = nil // as if nobody knew of it
	m.mu.Unlock()
	if _, err := d.Start(t.Context(), spec); !fault.Is(err, fault.Busy) {
		t.Errorf("a second process: %v", err)
	}
	m.have(p)
	n.is(d, hypervisor.Running)
}

func TestMachineTypesArePinned(t *testing.T) {
	n := newNode(t)
	d := n.open()
	spec := n.guest(d)
	spec.StartPaused = true
	use := func(asked string) string {
		t.Helper()
		spec.Params = map[string]any{"kernel_path": "", "machine_version": asked}
		n.start(d, spec)
		if _, err := d.Stop(t.Context(), one, hypervisor.Stop{}); err != nil {
			t.Fatal(err)
		}
		d = n.open()
		return d.things[uuid].record().Machine
	}
	first := use("")
	if !strings.HasPrefix(first, "pc-q35-") {
		t.Errorf("a new machine is %s", first)
	}
	d.qemu.types[usualType] = "pc-q35-6.0" // a newer QEMU means something else by the same name
	if again := use(""); again != first {
		t.Errorf("it was %s and is %s", first, again)
	}
	if other := use("pc"); !strings.HasPrefix(other, "pc-i440fx-") {
		t.Errorf("another one was asked for: %s", other)
	}
	spec.Params["machine_version"] = "vax"
	if _, err := d.Start(t.Context(), spec); !fault.Is(err, fault.Unsupported) {
		t.Errorf("%v", err)
	}
}

// TestAGuestHasNoRights looks at the process of a guest.
func TestAGuestHasNoRights(t *testing.T) {
	n := newNode(t)
	d := n.open()
	n.start(d, n.guest(d))
	data, err := os.ReadFile("/proc/" + text(d.things[uuid].running().pid) + "/status")
	if err != nil {
		t.Fatal(err)
	}
	for line, when := range map[string]bool{"Seccomp:\t2": true, "NoNewPrivs:\t1": true, "CapEff:\t0000000000000000": os.Geteuid() == 0, "Uid:\t0": false} {
		if strings.Contains(string(data), line) != when && os.Geteuid() == 0 {
			t.Errorf("%q is %v in\n%s", line, !when, data)
		}
	}
}

// TestGrowing: the guest's disk grows while it runs.
func TestGrowing(t *testing.T) {
	n := newNode(t)
	d := n.open()
	spec := n.guest(d)
	n.start(d, spec)
	grown := spec.Disks[0]
	grown.Size = 5
	if changed, err := d.Prepare(t.Context(), one, hypervisor.Mark{}, []hypervisor.Disk{grown}); err != nil || !changed {
		t.Fatalf("%v, %v", changed, err)
	}
	p := d.things[uuid].running()
	if size, err := p.sizeOf(t.Context(), 0); err != nil || size != 5<<20 {
		t.Errorf("QEMU sees %d, %v", size, err)
	}

	// What grew and was not told is told when it is asked for again, also where a snapshot is in the way.
	for _, step := range []struct {
		size     int
		snapshot string
		want     bool
	}{{7, "", true}, {7, "", false}, {9, "left", true}, {9, "kept", false}} {
		if step.snapshot != "" {
			if _, err := d.Snapshot(t.Context(), one, step.snapshot); err != nil {
				t.Fatal(err)
			}
		}
		grown.Size = step.size
		if _, _, err := d.cfg.Volumes.Ensure(t.Context(), "file", storage.Disk{ID: grown.UUID, Size: step.size}); err != nil {
			t.Fatal(err)
		}
		changed, err := d.Prepare(t.Context(), one, hypervisor.Mark{}, []hypervisor.Disk{grown})
		if err != nil || changed != step.want {
			t.Errorf("%+v: %t, %v", step, changed, err)
		}
		if size, err := p.sizeOf(t.Context(), 0); err != nil || size != int64(step.size)<<20 {
			t.Errorf("%+v: QEMU sees %d, %v", step, size, err)
		}
	}
	if kept := d.things[uuid].record().Snapshot; kept != "kept" {
		t.Errorf("nothing grew, and the snapshot is %q", kept)
	}
}

// TestAProcessThatNobodyFound: nothing is done to the disks of a machine whose process runs on without that the driver knows of it.
func TestAProcessThatNobodyFound(t *testing.T) {
	n := newNode(t)
	d := n.open()
	spec := n.guest(d)
	n.start(d, spec)
	m := d.things[uuid]
	p := m.running()
	knows := func(p *process) {
		m.mu.Lock()
		m.process = p
		m.mu.Unlock()
	}
	knows(nil)
	detached := hypervisor.DetachedDisk("disk-1")
	for what, call := range map[string]func() (bool, error){
		"Start":  func() (bool, error) { return d.Start(t.Context(), spec) },
		"Stop":   func() (bool, error) { return d.Stop(t.Context(), one, hypervisor.Stop{}) },
		"Remove": func() (bool, error) { return d.Remove(t.Context(), one) },
		"Rename": func() (bool, error) { return d.Rename(t.Context(), one, "other.example") },
		"Drop":   func() (bool, error) { return d.Drop(t.Context(), one, []string{"disk-1"}) },
		"Detach": func() (bool, error) { return d.Detach(t.Context(), one, hypervisor.Mark{}, []string{"disk-1"}) },
		"Blank":  func() (bool, error) { return false, d.Blank(t.Context(), one, "disk-1", nil) },
	} {
		if _, err := call(); !fault.Is(err, fault.Busy) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := d.Instance(t.Context(), detached); !fault.Is(err, fault.NotFound) {
		t.Errorf("its disk is detached: %v", err)
	}
	if i, err := d.Instance(t.Context(), one); err != nil || len(i.Disks) != 1 {
		t.Errorf("it has %+v, %v", i.Disks, err)
	}
	knows(p)
	if changed, err := d.Stop(t.Context(), one, hypervisor.Stop{}); err != nil || !changed {
		t.Errorf("Stop of what was found: %t, %v", changed, err)
	}
	if changed, err := d.Remove(t.Context(), one); err != nil || !changed {
		t.Errorf("Remove: %t, %v", changed, err)
	}
}

func TestADiskThatIsUsed(t *testing.T) {
	n := newNode(t)
	d := n.open()
	spec := n.guest(d)
	n.start(d, spec)
	if _, err := d.Drop(t.Context(), one, []string{"disk-1"}); !fault.Is(err, fault.WrongState) {
		t.Errorf("%v", err)
	}
	if _, err := d.Stop(t.Context(), one, hypervisor.Stop{}); err != nil {
		t.Fatal(err)
	}
	if changed, err := d.Drop(t.Context(), one, []string{"disk-1"}); err != nil || !changed {
		t.Errorf("%v, %v", changed, err)
	}
}

// TestWhatQEMUComplainsOf is in the error.
func TestWhatQEMUComplainsOf(t *testing.T) {
	n := newNode(t)
	d := n.open()
	spec := n.guest(d)
	spec.Params = map[string]any{"kernel_path": "/nonexistent/vmlinuz"}
	_, err := d.Start(t.Context(), spec)
	if !fault.Is(err, fault.Environment) || !strings.Contains(err.Error(), "/nonexistent/vmlinuz") {
		t.Errorf("%v", err)
	}
	none := filepath.Join(testkit.OpenDir(t), "none") // a file that is no kernel
	if err := os.WriteFile(none, []byte("no kernel"), 0o644); err != nil {
		t.Fatal(err)
	}
	spec.Params = map[string]any{"kernel_path": none}
	if _, err = d.Start(t.Context(), spec); !fault.Is(err, fault.Failed) || !strings.Contains(err.Error(), "kernel") {
		t.Errorf("%v", err)
	}
	if err := os.Chmod(none, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err = d.Start(t.Context(), spec); !fault.Is(err, fault.Environment) || !strings.Contains(err.Error(), "chmod a+r "+none) {
		if os.Geteuid() == 0 {
			t.Errorf("%v", err)
		}
	}
	if err := errors.Join(os.Chmod(none, 0o644), os.Chmod(filepath.Dir(none), 0o750)); err != nil {
		t.Fatal(err)
	}
	if _, err = d.Start(t.Context(), spec); os.Geteuid() == 0 && (!fault.Is(err, fault.Environment) || !strings.Contains(err.Error(), "chmod a+x "+filepath.Dir(none))) {
		t.Errorf("%v", err)
	}
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o666); err != nil {
		t.Fatal(err)
	}
	spec.Params = map[string]any{"kernel_path": pipe}
	if _, err = d.Start(t.Context(), spec); !fault.Is(err, fault.Environment) || !strings.Contains(err.Error(), "is no file") {
		t.Errorf("%v", err)
	}
	spec.Params = map[string]any{"kernel_path": t.TempDir()}
	if _, err = d.Start(t.Context(), spec); !fault.Is(err, fault.Environment) {
		t.Errorf("%v", err)
	}
	n.is(d, hypervisor.Stopped)
	spec.Params = map[string]any{"kernel_path": ""}
	n.start(d, spec)
}

// TestWhatCannotBeRead is listed as something of which nobody knows what it is and what its disks stand on, and is left alone.
func TestWhatCannotBeRead(t *testing.T) {
	n := newNode(t)
	n.guest(n.open())
	if err := os.WriteFile(filepath.Join(n.dir, "kvm", uuid, recordFile), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	d := n.open()
	if all, err := d.Instances(t.Context()); err != nil || len(all) != 1 || all[0].UUID != "" || all[0].Name != uuid || len(all[0].Disks) > 0 {
		t.Errorf("%+v, %v", all, err)
	}
	if _, err := d.Remove(t.Context(), one); !fault.Is(err, fault.Environment) {
		t.Error(err)
	}
}

func TestNoQEMU(t *testing.T) {
	_, err := Open(t.Context(), Config{Dir: t.TempDir(), QEMU: "/nonexistent/qemu"})
	if !fault.Is(err, fault.Environment) || !strings.Contains(err.Error(), "install") {
		t.Errorf("%v", err)
	}
	_, err = Open(t.Context(), Config{Dir: t.TempDir(), QEMU: "/bin/false"})
	if !fault.Is(err, fault.Environment) {
		t.Errorf("%v", err)
	}
}

// TestAnotherHypervisor: what is of another kind is not run by this one.
func TestAnotherHypervisor(t *testing.T) {
	n := newNode(t)
	d := n.open()
	for kind, want := range map[string]fault.Code{"fake": fault.Unsupported, "xen-pvm": fault.Unsupported, Kind: ""} {
		spec := n.guest(d)
		spec.Hypervisor = kind
		if _, err := d.Start(t.Context(), spec); fault.CodeOf(err) != want {
			t.Errorf("%s: %v", kind, err)
		}
		if _, err := d.Stop(t.Context(), one, hypervisor.Stop{}); err != nil {
			t.Fatal(err)
		}
	}
}

// watched looks at what is written down when a disk is made.
type watched struct {
	Volumes
	dir string
	t   *testing.T
}

func (w watched) Ensure(ctx context.Context, template string, disk storage.Disk) (made, grown bool, err error) {
	r, err := readRecord(filepath.Join(w.dir, "kvm", uuid))
	if err != nil || diskIndex(r.Disks, disk.ID) < 0 {
		w.t.Errorf("disk %s is made before it is written down: %v", disk.ID, err)
	}
	return w.Volumes.Ensure(ctx, template, disk)
}

// TestNothingIsMadeThatNobodyKnows: a driver that is killed while it makes disks leaves none that is not in its files.
func TestNothingIsMadeThatNobodyKnows(t *testing.T) {
	n := newNode(t)
	d := n.open()
	d.cfg.Volumes = watched{d.cfg.Volumes, n.dir, t}
	disks := []hypervisor.Disk{{UUID: "a", Size: 1}, {UUID: "b", Size: 1}}
	if _, err := d.Prepare(t.Context(), one, hypervisor.Mark{}, disks); err != nil {
		t.Fatal(err)
	}
}
