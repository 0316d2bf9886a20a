package kvm

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/hypervisor"
	"github.com/drover-project/drover/internal/testkit"
	"github.com/drover-project/drover/internal/tinyguest/tinyguesttest"
)

// q35 is a machine type that all firmware below is for.
const q35 = "pc-q35-7.2"

// firmwares writes descriptors, with the files that they name, and returns their directory.
func firmwares(t *testing.T, descriptors map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	put := func(name, content string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range descriptors {
		put(name+".json", strings.ReplaceAll(text, "DIR", dir))
	}
	for _, name := range []string{"code", "code-2", "variables"} {
		put(name, name)
	}
	return dir
}

// described is a descriptor of firmware whose code is in a file.
func described(code, machines, features string) string {
	return `{"interface-types": ["uefi"], "mapping": {"device": "flash", "executable": {"filename": "DIR/` + code + `", "format": "raw"},
		"nvram-template": {"filename": "DIR/variables", "format": "raw"}},
		"targets": [{"architecture": "x86_64", "machines": [` + machines + `]}], "features": [` + features + `]}`
}

// TestFindFirmware: the kind and the machine type decide, then the name; an operator's descriptor takes the place of a package's.
func TestFindFirmware(t *testing.T) {
	const secure = `"secure-boot", "requires-smm"`
	packages := firmwares(t, map[string]string{
		"10-broken": "{", "20-missing": described("nosuch", `"pc-q35-*"`, ""), "30-relative": strings.ReplaceAll(described("code", `"pc-q35-*"`, ""), "DIR/", ""),
		"40-keys": described("code-2", `"pc-q35-*"`, secure+`, "enrolled-keys"`), "50-empty": described("code-2", `"pc-q35-*"`, secure),
		"55-qcow2": strings.ReplaceAll(described("code", `"pc-q35-*"`, ""), "raw", "qcow2"),
		"60-plain": described("code", `"pc-i440fx-*", "pc-q35-*"`, `"acpi-s3"`), "70-plain": described("code-2", `"pc-q35-*"`, ""),
		"80-arm": strings.ReplaceAll(described("code", `"pc-q35-*"`, ""), "x86_64", "aarch64"),
	})
	own := firmwares(t, map[string]string{"70-plain": "{}", "90-own": described("code-2", `"pc-q35-*"`, "")})
	names := func(dirs []string, kind, machine string) string {
		var all []string
		for _, f := range findFirmware(dirs, kind, machine) {
			if f.kind != kind || f.guarded != (kind == "uefi-secure") || filepath.Base(f.template) != "variables" {
				t.Errorf("%s is %+v", kind, f)
			}
			all = append(all, filepath.Base(f.code))
		}
		return strings.Join(all, " ")
	}
	for _, c := range []struct {
		dirs                []string
		kind, machine, want string
	}{
		{[]string{packages}, "uefi", q35, "code code-2"},
		{[]string{packages}, "uefi", "pc-i440fx-7.2", "code"},
		{[]string{packages}, "uefi-secure", q35, "code-2"},
		{[]string{packages}, "uefi-secure", "pc-i440fx-7.2", ""},
		{[]string{own, packages}, "uefi", q35, "code code-2"}, // 70-plain is the operator's, and says nothing
		{[]string{own}, "uefi", q35, "code-2"},
		{[]string{"/nonexistent"}, "uefi", q35, ""},
	} {
		if got := names(c.dirs, c.kind, c.machine); got != c.want {
			t.Errorf("%s for %s of %d directories: %q, want %q", c.kind, c.machine, len(c.dirs), got, c.want)
		}
	}
}

// needFirmware skips a test where there is no firmware.
func needFirmware(t *testing.T) {
	if len(findFirmware(firmwareDirs(), "uefi", q35)) == 0 || len(findFirmware(firmwareDirs(), "uefi-secure", q35)) == 0 {
		testkit.Missingf(t, "there is no firmware (Debian's package ovmf)")
	}
}

func needTPM(t *testing.T) {
	if _, err := findTPM(); err != nil {
		testkit.Missingf(t, "there is no TPM (Debian's package swtpm)")
	}
}

// TestFirmwareIsKept: what a machine's firmware wrote is there at each start, of each kind its own, over another name and another driver, and goes
// with the machine.
func TestFirmwareIsKept(t *testing.T) {
	needFirmware(t)
	n := newNode(t)
	d := n.open()
	spec := n.guest(d)
	spec.StartPaused = true
	with := func(kind string) {
		t.Helper()
		d = n.open()
		spec.Params = map[string]any{"kernel_path": "", "firmware": kind}
		n.start(d, spec)
		if _, err := d.Stop(t.Context(), one, hypervisor.Stop{}); err != nil {
			t.Fatal(err)
		}
	}
	path := func(kind string) string { return filepath.Join(n.dir, "kvm", uuid, kind+".variables") }
	mark := func(kind string) { // as the firmware would
		t.Helper()
		content, err := os.ReadFile(path(kind))
		if err == nil {
			err = os.WriteFile(path(kind), append(content[:len(content)-4], kind[:4]...), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	kept := func(kind string) {
		t.Helper()
		content, err := os.ReadFile(path(kind))
		if info, err2 := os.Stat(path(kind)); err != nil || err2 != nil || !bytes.HasSuffix(content, []byte(kind[:4])) || info.Mode().Perm() != 0o600 {
			t.Errorf("the variables of %s: %v, %v", kind, err, info.Mode())
		}
	}
	with("bios")
	if all, err := filepath.Glob(path("*")); err != nil || len(all) != 0 {
		t.Errorf("without a firmware there is %q, %v", all, err)
	}
	with("uefi")
	mark("uefi")
	with("uefi-secure") // has variables of its own: without the keys it would be secure in name alone
	mark("uefi-secure")
	if _, err := d.Rename(t.Context(), one, "another.example"); err != nil {
		t.Fatal(err)
	}
	spec.Name = "another.example"
	for _, kind := range []string{"bios", "uefi", "uefi-secure"} {
		with(kind)
	}
	kept("uefi")
	kept("uefi-secure")

	d.cfg.firmware = []string{firmwares(t, map[string]string{"x": described("code", `"pc-q35-*"`, "")})} // of another package
	spec.Params = map[string]any{"kernel_path": "", "firmware": "uefi"}
	if _, err := d.Start(t.Context(), spec); !fault.Is(err, fault.Environment) || !strings.Contains(err.Error(), "OVMF_CODE") {
		t.Errorf("with code that the variables were not made for: %v", err)
	}
	if _, err := d.Remove(t.Context(), spec.Thing()); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path("uefi")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("behind the removal: %v", err)
	}
}

// TestANodeWithout: a node that lacks what is asked for says so before it makes anything.
func TestANodeWithout(t *testing.T) {
	n := newNode(t)
	d := n.open()
	d.cfg.firmware = []string{t.TempDir()}
	t.Setenv("PATH", t.TempDir())
	for _, c := range []struct{ name, value, want string }{
		{"firmware", "uefi", "apt-get install ovmf"}, {"firmware", "uefi-secure", "pc-q35"}, {"tpm", "v2.0", "apt-get install swtpm"},
	} {
		spec := hypervisor.Spec{Name: one.Name, UUID: uuid, Memory: 64, VCPUs: 1, Params: map[string]any{"kernel_path": "", c.name: c.value}}
		_, err := d.Start(t.Context(), spec)
		if !fault.Is(err, fault.Environment) || !strings.Contains(err.Error(), c.name+"="+c.value) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s=%s: %v", c.name, c.value, err)
		}
		if _, err := os.Stat(filepath.Join(n.dir, "kvm", uuid)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s=%s left something: %v", c.name, c.value, err)
		}
	}
}

// TestSecureBoot has Debian's signed kernel start by secure boot, and find a TPM.
func TestSecureBoot(t *testing.T) {
	needFirmware(t)
	needTPM(t)
	guest := tinyguesttest.Guest(t)
	n := newNode(t)
	d := n.open()
	n.start(d, hypervisor.Spec{Name: one.Name, UUID: uuid, Memory: 512, VCPUs: 1, Params: map[string]any{
		"kernel_path": guest.Kernel, "initrd_path": guest.Initrd, "kernel_args": "panic=1", "serial_console": true,
		"firmware": "uefi-secure", "tpm": "v2.0"}})
	r := n.look(d)
	for _, said := range []string{"Secure boot enabled", "2.0 TPM", "GUEST-UP"} {
		r.awaitFor(4*testkit.Patience(), said) // a firmware that is emulated takes its time
	}
}
