package kvm

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/hypervisor"
	"github.com/drover-project/drover/internal/testkit"
)

// withTPM is a machine with a TPM, which is started and whose guest does not run.
func (n *node) withTPM(d *Driver) hypervisor.Spec {
	n.Helper()
	spec := n.guest(d)
	spec.StartPaused = true
	spec.Params = map[string]any{"kernel_path": "", "tpm": "v2.0"}
	n.start(d, spec)
	return spec
}

// awaitGone waits for the end of a TPM.
func awaitGone(t *testing.T, of *tpm) {
	t.Helper()
	select {
	case <-of.gone:
	case <-time.After(testkit.Patience()):
		t.Fatal("the TPM does not end")
	}
}

// TestTPM: a TPM runs beside its machine without rights, ends with it however that ends, is found by the next driver, and keeps its state until
// the machine is removed.
func TestTPM(t *testing.T) {
	needTPM(t)
	n := newNode(t)
	d := n.open()
	spec := n.withTPM(d)
	state := filepath.Join(n.dir, "kvm", uuid, tpmDir, "tpm2-00.permall")
	first, err := os.ReadFile(state)
	if err != nil {
		t.Fatal(err)
	}
	process := d.things[uuid].running()
	status, err := os.ReadFile("/proc/" + text(process.tpm.pid) + "/status")
	if err != nil {
		t.Fatal(err)
	}
	for line, when := range map[string]bool{"Seccomp:\t2": true, "CapEff:\t0000000000000000": true, "Uid:\t0": false} {
		if strings.Contains(string(status), line) != when && os.Geteuid() == 0 {
			t.Errorf("%q is %v in\n%s", line, !when, status)
		}
	}
	for _, path := range []string{state, filepath.Dir(state)} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s: %v, %v", path, info.Mode(), err)
		}
	}
	for _, end := range []func() error{
		func() error { return syscall.Kill(process.pid, syscall.SIGKILL) },
		func() error { _, err := d.Stop(t.Context(), one, hypervisor.Stop{}); return err },
	} {
		d = n.open()
		adopted := d.things[uuid].running()
		if adopted.tpm.pid != process.tpm.pid {
			t.Errorf("its process is %d, and was %d", adopted.tpm.pid, process.tpm.pid)
		}
		told := changes(d)
		if err := end(); err != nil {
			t.Fatal(err)
		}
		awaitGone(t, adopted.tpm)
		n.becomes(d, told, hypervisor.Stopped)
		n.trouble(d, "")
		n.start(d, spec)
		process = d.things[uuid].running()
	}
	if again, err := os.ReadFile(state); err != nil || string(again) != string(first) {
		t.Errorf("its state is another one: %v", err)
	}
	if _, err := d.Stop(t.Context(), one, hypervisor.Stop{}); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Remove(t.Context(), one); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(state); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("behind the removal: %v", err)
	}
}

func (n *node) trouble(d *Driver, want string) {
	n.Helper()
	i, err := d.Instance(n.Context(), one)
	if err != nil || !strings.Contains(i.Trouble, want) || (want == "") != (i.Trouble == "") {
		n.Errorf("its trouble is %q, %v; want %q", i.Trouble, err, want)
	}
}

// TestTPMIsLost: that a TPM ended before its machine is told, also by a driver that comes later, until the machine is started anew.
func TestTPMIsLost(t *testing.T) {
	needTPM(t)
	n := newNode(t)
	d := n.open()
	spec := n.withTPM(d)
	told := changes(d)
	if err := syscall.Kill(d.things[uuid].running().tpm.pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	lost := func() {
		t.Helper()
		limit := time.After(testkit.Patience())
		for {
			if i, err := d.Instance(t.Context(), one); err == nil && i.Trouble != "" {
				break
			}
			select {
			case <-told:
			case <-limit:
				n.trouble(d, "TPM")
				return
			}
		}
		n.is(d, hypervisor.Paused)
	}
	lost()
	d = n.open()
	told = changes(d)
	lost()
	if _, err := d.Stop(t.Context(), one, hypervisor.Stop{}); err != nil {
		t.Fatal(err)
	}
	n.start(d, spec)
	n.trouble(d, "")
}

// TestATPMThatIsLeft: one that does not end with its machine is ended before the next begins, and no TPM is left by a QEMU that does not start.
func TestATPMThatIsLeft(t *testing.T) {
	needTPM(t)
	n := newNode(t)
	d := n.open()
	spec := n.withTPM(d)
	stuck := d.things[uuid].running()
	if err := syscall.Kill(stuck.tpm.pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	told := changes(d)
	if err := syscall.Kill(stuck.pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	n.becomes(d, told, hypervisor.Stopped)
	n.start(d, spec)
	awaitGone(t, stuck.tpm)
	last := d.things[uuid].running().tpm
	if _, err := d.Stop(t.Context(), one, hypervisor.Stop{}); err != nil {
		t.Fatal(err)
	}
	awaitGone(t, last)

	spec.Params["cpu_type"] = "nosuch"
	if _, err := d.Start(t.Context(), spec); !fault.Is(err, fault.Failed) || !strings.Contains(err.Error(), "nosuch") {
		t.Errorf("%v", err)
	}
	if held, err := lockFile(filepath.Join(n.dir, "kvm", uuid, tpmHeldFile)); err != nil {
		t.Errorf("behind a QEMU that did not start: %v", err)
	} else {
		_ = held.Close()
	}
}

// TestATPMsStateIsHandedOver: the state goes to the user that the machine runs as since, and what leads elsewhere goes to nobody.
func TestATPMsStateIsHandedOver(t *testing.T) {
	if os.Geteuid() != 0 {
		testkit.Missingf(t, "only root gives files away")
	}
	m := &machine{dir: t.TempDir()}
	user := func(id uint32) *syscall.Credential { return &syscall.Credential{Uid: id, Gid: id} }
	owner := func(path string) uint32 {
		t.Helper()
		var is syscall.Stat_t
		if err := syscall.Lstat(path, &is); err != nil {
			t.Fatal(err)
		}
		return is.Uid
	}
	open := func(id uint32) error {
		dir, err := m.openTPM(user(id))
		if err == nil {
			err = dir.Close()
		}
		return err
	}
	state, elsewhere := filepath.Join(m.dir, tpmDir, "state"), filepath.Join(t.TempDir(), "elsewhere")
	for _, step := range []func() error{
		func() error { return open(200001) },
		func() error { return os.WriteFile(state, nil, 0o600) },
		func() error { return os.WriteFile(elsewhere, nil, 0o600) },
		func() error { return open(200002) },
	} {
		if err := step(); err != nil {
			t.Fatal(err)
		}
	}
	if a, b := owner(state), owner(filepath.Dir(state)); a != 200002 || b != 200002 {
		t.Errorf("they are %d's and %d's", a, b)
	}
	for what, link := range map[string]func(string, string) error{"symbolic": os.Symlink, "hard": os.Link} {
		trap := filepath.Join(m.dir, tpmDir, what)
		if err := link(elsewhere, trap); err != nil {
			t.Fatal(err)
		}
		if err := open(200003); err == nil || owner(elsewhere) != 0 || owner(filepath.Dir(state)) != 200002 {
			t.Errorf("a %s link: %v; what it leads to is %d's", what, err, owner(elsewhere))
		}
		if err := os.Remove(trap); err != nil {
			t.Fatal(err)
		}
	}
}
