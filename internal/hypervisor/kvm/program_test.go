package kvm

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/hypervisor"
)

// script is a program that is put in QEMU's place, for every user.
func script(t *testing.T, text string) string {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "qemu")
	err := os.WriteFile(path, []byte("#!/bin/sh\n"+text), 0o755)
	if err == nil {
		err = os.Chmod(filepath.Dir(dir), 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// ofVersion is a script that says to be a QEMU of a version, and knows no machine types.
func ofVersion(major, minor string) string {
	return `printf '{"QMP":{"version":{"qemu":{"major":` + major + `,"minor":` + minor + `,"micro":5}}}}\n' >&3
while read -r line <&3; do
	id=${line##*\"id\":\"}
	case $line in *query*) result=[];; *) result={};; esac
	printf '{"return":%s,"id":"%s"}\n' "$result" "${id%%\"*}" >&3
done
`
}

// TestAQEMUThatIsTooOld is refused when the agent starts, and not at each machine.
func TestAQEMUThatIsTooOld(t *testing.T) {
	for version, old := range map[[2]string]bool{{"5", "2"}: true, {"7", "1"}: true, {"7", "2"}: false, {"10", "0"}: false} {
		path := script(t, ofVersion(version[0], version[1]))
		p, err := openProgram(t.Context(), path)
		if !old {
			if err != nil || p.version != version[0]+"."+version[1]+".5" {
				t.Errorf("%v: %v", version, err)
			}
			continue
		}
		text := path + " is QEMU " + version[0] + "." + version[1] + ".5, which is too old: 7.2 or later is needed"
		if !fault.Is(err, fault.Unsupported) || !strings.Contains(err.Error(), text) {
			t.Errorf("%v: %v", version, err)
		}
	}
	if !tooOld("") || !tooOld("devel") {
		t.Error("one that says no version is not refused")
	}
}

// awaitLock waits until nobody has the lock of the machine.
func (n *node) awaitLock() {
	n.Helper()
	held, err := filepath.Glob(filepath.Join(n.dir, "kvm", "*", heldFile))
	if err != nil || len(held) != 1 {
		n.Fatalf("the locks are %q (%v)", held, err)
	}
	f, err := os.Open(held[0])
	if err != nil {
		n.Fatal(err)
	}
	defer func() { _ = f.Close() }() // which gives it up
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		n.Fatal(err)
	}
}

// TestAQEMUThatIsKilledAtItsStart: the error says how it ended, nothing runs, and the next start is as any other.
func TestAQEMUThatIsKilledAtItsStart(t *testing.T) {
	n := newNode(t)
	d := n.open()
	spec, whole := n.guest(d), d.qemu.path
	for how, want := range map[string][]string{
		"kill -9 $$":                {"signal: killed", "journalctl -k"},
		"exit 3":                    {"exit status 3"},
		"echo no such host; exit 1": {"no such host; ", "exit status 1", complainFile},
		"sleep 0.2; kill -9 $$":     {"signal: killed"},
	} {
		d.qemu.path = script(t, how+"\n")
		_, err := d.Start(t.Context(), spec)
		if !fault.Is(err, fault.Failed) {
			t.Errorf("%s: %v", how, err)
		}
		for _, text := range want {
			if err == nil || !strings.Contains(err.Error(), text) {
				t.Errorf("%s: %v, without %q", how, err, text)
			}
		}
		n.is(d, hypervisor.Stopped)
		if Running(n.dir) != 0 {
			t.Errorf("%s: something runs", how)
		}
	}
	// One that says that it is there, and is killed before its guest is let go.
	path, err := exec.LookPath(whole)
	if err != nil {
		t.Fatal(err)
	}
	d.qemu.path = script(t, `(sleep 0.3; kill -9 $$) & exec `+path+` "$@"`+"\n")
	for range 3 {
		if _, err := d.Start(t.Context(), spec); err == nil { // it was quicker
			told := changes(d)
			n.becomes(d, told, hypervisor.Stopped)
		} else if !strings.Contains(err.Error(), "signal: killed") {
			t.Errorf("%v", err)
		}
		n.is(d, hypervisor.Stopped)
		n.awaitLock() // who killed it has that from it, and ends a moment later
	}
	d.qemu.path = whole
	n.start(d, spec)
	n.look(d).await("GUEST-UP")
}
