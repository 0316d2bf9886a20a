package kvm

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/hypervisor"
	"github.com/drover-project/drover/internal/testkit"
)

var update = flag.Bool("update", false, "write the golden files anew")

func pairs(args []string) (out [][2]string) {
	for i := 0; i+1 < len(args); i++ {
		if args[i] == "-nodefaults" || args[i] == "-no-user-config" || args[i] == "-S" {
			out = append(out, [2]string{args[i], ""})
			continue
		}
		out = append(out, [2]string{args[i], args[i+1]})
		i++
	}
	return out
}

// plugging gives the devices of a machine that was never started their slots.
func plugging(with setup, spec *hypervisor.Spec) setup {
	with.slots = assign(nil, spec, with.seed)
	with.ports = portsFor(with.machine, with.slots)
	return with
}

// TestArguments has the command lines to read.
func TestArguments(t *testing.T) {
	var text strings.Builder
	disks := []hypervisor.Disk{{UUID: "d-1", Size: 1}, {UUID: "d-2", Size: 1, ReadOnly: true}}
	nics := []hypervisor.NIC{{UUID: "n-1", MAC: "aa:00:00:00:00:01", Mode: "bridged", Link: "br0"}}
	for _, c := range []struct {
		what string
		spec hypervisor.Spec
		with setup
	}{
		{"from its disk", hypervisor.Spec{Name: "one.example", UUID: uuid, Memory: 512, VCPUs: 2, Disks: disks, NICs: nics, Params: map[string]any{"kernel_path": ""}}, setup{machine: "pc-q35-7.2", accelerator: "kvm"}},
		{"from a kernel, emulated", hypervisor.Spec{Name: "two,x=y", UUID: "two", Memory: 128, VCPUs: 1, Params: map[string]any{
			"kernel_path": "/boot/vmlinuz", "initrd_path": "/boot/initrd", "root_path": "/dev/vda1", "kernel_args": "ro quiet", "serial_speed": 115200.0, "use_localtime": true,
			"cpu_type": "qemu64,+ssse3", "cpu_cores": 1.0, "acpi": false, "reboot_behavior": "exit"}}, setup{machine: "pc-q35-7.2", accelerator: "tcg", oneThread: true}},
		{"of before, without a serial line", hypervisor.Spec{Name: "three", UUID: uuid, Memory: 128, VCPUs: 1, Disks: disks[:1], NICs: nics, Params: map[string]any{
			"kernel_path": "", "serial_console": false, "disk_cache": "none", "disk_discard": "ignore", "nic_type": "e1000"}}, setup{machine: "pc-i440fx-7.2", accelerator: "tcg"}},
		{"on a bridge", hypervisor.Spec{Name: "four", UUID: uuid, Memory: 128, VCPUs: 1, Disks: disks[:1], NICs: nics, Params: map[string]any{
			"kernel_path": "/boot/vmlinuz", "initrd_path": "/boot/initrd"}}, setup{machine: "pc-q35-7.2", accelerator: "kvm", bridges: true}},
		{"with a seed, on a bridge", hypervisor.Spec{Name: "five", UUID: uuid, Memory: 128, VCPUs: 1, Disks: disks[:1], NICs: nics, Params: map[string]any{
			"kernel_path": ""}}, setup{machine: "pc-q35-7.2", accelerator: "kvm", bridges: true, seed: true}},
		{"from a disc, with a second one", hypervisor.Spec{Name: "six", UUID: uuid, Memory: 128, VCPUs: 1, Disks: disks[:1], NICs: nics, Params: map[string]any{
			"kernel_path": "", "boot_order": "cdrom", "cdrom_image_path": "/a.iso", "cdrom2_image_path": "/b.iso", "disk_aio": "native", "disk_cache": "none"}}, setup{machine: "pc-q35-7.2", accelerator: "kvm", bridges: true, seed: true}},
		{"from a logical volume", hypervisor.Spec{Name: "eight", UUID: uuid, Memory: 128, VCPUs: 1, Disks: []hypervisor.Disk{{UUID: "d-1", Size: 1, Template: "plain"}}, Params: map[string]any{
			"kernel_path": ""}}, setup{machine: "pc-i440fx-7.2", accelerator: "kvm"}},
		{"with a pointer, for another keyboard", hypervisor.Spec{Name: "nine", UUID: uuid, Memory: 128, VCPUs: 1, Params: map[string]any{
			"kernel_path": "", "usb_mouse": "tablet", "keymap": "de-ch"}}, setup{machine: "pc-q35-7.2", accelerator: "kvm"}},
		{"without a screen", hypervisor.Spec{Name: "ten", UUID: uuid, Memory: 128, VCPUs: 1, Params: map[string]any{
			"kernel_path": "", "vga": "none", "usb_mouse": "tablet"}}, setup{machine: "pc-i440fx-7.2", accelerator: "kvm"}},
		{"from the network", hypervisor.Spec{Name: "seven", UUID: uuid, Memory: 128, VCPUs: 1, Disks: disks[:1], NICs: nics, Params: map[string]any{
			"kernel_path": "", "boot_order": "network"}}, setup{machine: "pc-i440fx-7.2", accelerator: "kvm"}},
		{"by secure boot, with a TPM, from a disc", hypervisor.Spec{Name: "nine", UUID: uuid, Memory: 128, VCPUs: 1, Disks: disks[:1], NICs: nics, Params: map[string]any{
			"kernel_path": "", "boot_order": "cdrom", "cdrom_image_path": "/a.iso", "firmware": "uefi-secure", "tpm": "v2.0"}},
			setup{machine: "pc-q35-7.2", accelerator: "kvm", bridges: true, seed: true, firmware: &firmware{kind: "uefi-secure", guarded: true}}},
		{"by UEFI", hypervisor.Spec{Name: "ten", UUID: uuid, Memory: 128, VCPUs: 1, Params: map[string]any{
			"kernel_path": "", "firmware": "uefi", "tpm": "none"}}, setup{machine: "pc-i440fx-7.2", accelerator: "kvm", firmware: &firmware{kind: "uefi"}}},
	} {
		args, err := arguments(&c.spec, plugging(c.with, &c.spec))
		if err != nil {
			t.Fatal(c.what, err)
		}
		text.WriteString("# " + c.what + "\n")
		for _, p := range pairs(args) {
			text.WriteString(strings.TrimSpace(p[0]+" "+p[1]) + "\n")
		}
		text.WriteString("\n")
	}
	testkit.Golden(t, *update, "testdata/arguments.txt", text.String())
}

// TestNothingBecomesAnOption: whatever texts come from elsewhere, the options are the same, and their values are what was meant.
func TestNothingBecomesAnOption(t *testing.T) {
	options := func(args []string) (out []string) {
		for _, p := range pairs(args) {
			out = append(out, p[0])
		}
		return out
	}
	with := setup{machine: "pc-q35-7.2", accelerator: "tcg"}
	build := func(name, uuid, disk, mac, kernel, line, cpu, machine string) ([]string, error) {
		with.machine = machine
		spec := &hypervisor.Spec{Name: name, UUID: uuid, Memory: 64, Disks: []hypervisor.Disk{{UUID: disk}}, NICs: []hypervisor.NIC{{MAC: mac}},
			Params: map[string]any{"kernel_path": kernel, "kernel_args": line, "cpu_type": cpu}}
		return arguments(spec, plugging(with, spec))
	}
	want, err := build("one", uuid, "disk", "aa:00:00:00:00:01", "/vmlinuz", "ro", "qemu64", "pc-q35-7.2")
	if err != nil {
		t.Fatal(err)
	}
	text := rapid.OneOf(rapid.SampledFrom([]string{"x,process=y", "-snapshot", `","id":"x`, ",,", "a b", "-drive file=/etc/shadow", "none,accel=kvm", "\n-monitor stdio"}), rapid.StringN(1, 30, 60))
	rapid.Check(t, func(t *rapid.T) {
		name, disk, line := text.Draw(t, "name"), text.Draw(t, "disk"), text.Draw(t, "line")
		got, err := build(name, text.Draw(t, "uuid"), disk, "aa:00:00:00:00:01", "/vmlinuz", line, "qemu64", "pc-q35-7.2")
		if err != nil {
			t.Fatal(err)
		}
		all := pairs(got)
		if !slices.Equal(options(got), slices.DeleteFunc(options(want), func(o string) bool { return o == "-uuid" })) && !slices.Equal(options(got), options(want)) {
			t.Fatalf("the options are %q", options(got))
		}
		for _, p := range all {
			switch {
			case p[0] == "-name":
				value, rest, _ := strings.Cut(strings.ReplaceAll(p[1], ",,", "\x00"), ",")
				if value != "guest="+strings.ReplaceAll(name, ",", "\x00") || rest != "debug-threads=on" {
					t.Fatalf("the name %q is given as %q", name, p[1])
				}
			case p[0] == "-append" && !strings.Contains(p[1], strings.TrimSpace(line)):
				t.Fatalf("the line %q is given as %q", line, p[1])
			case p[0] == "-device" && strings.Contains(p[1], "virtio-blk"):
				var device map[string]any
				if err := json.Unmarshal([]byte(p[1]), &device); err != nil || len(device) != 5 {
					t.Fatalf("%s: %v", p[1], err)
				}
			}
		}
	})
	for _, bad := range []string{"x,process=y", "-snapshot", "a b", "\n", `"`} {
		if _, err := arguments(&hypervisor.Spec{Name: "one", UUID: uuid, Params: map[string]any{"keymap": bad}}, with); !fault.Is(err, fault.Invalid) {
			t.Errorf("the keymap %q: %v", bad, err)
		}
		if _, err := build("one", uuid, "d", bad, "/vmlinuz", "", "", "pc-q35-7.2"); !fault.Is(err, fault.Invalid) {
			t.Errorf("the MAC address %q: %v", bad, err)
		}
		if _, err := build("one", uuid, "d", "", "/vmlinuz", "", "", bad); !fault.Is(err, fault.Invalid) {
			t.Errorf("the machine type %q: %v", bad, err)
		}
		if _, err := build("one", uuid, "d", "", "/vmlinuz", "", bad, "pc"); !fault.Is(err, fault.Invalid) && bad != "x,process=y" {
			t.Errorf("the processor %q: %v", bad, err)
		}
	}
}

// TestParameters: the table knows what there is, takes the defaults, and refuses what is not done.
func TestParameters(t *testing.T) {
	defaults := cluster.New(cluster.Init{}).HVParams["kvm"]
	for name := range cluster.HVTypes("kvm") {
		if !slices.ContainsFunc(parameters, func(p parameter) bool { return p.name == name }) {
			t.Errorf("%s is not in the table", name)
		}
	}
	if len(parameters) != len(cluster.HVTypes("kvm")) {
		t.Errorf("the table has %d parameters, and there are %d", len(parameters), len(cluster.HVTypes("kvm")))
	}
	if err := params(map[string]any(defaults)).check(); err != nil {
		t.Errorf("the defaults: %v", err)
	}
	for name, value := range map[string]any{"kvm_extra": "-snapshot", "vnc_bind_address": "0.0.0.0", "vnc_password_file": "/etc/vnc", "vnc_tls": true, "vnc_x509_path": "/etc/pki", "vnc_x509_verify": true, "disk_type": "ide", "virtio_net_queues": 4.0, "use_chroot": true, "firmware": "efi", "tpm": "v1.2", "nosuch": 1} {
		err := params(map[string]any{name: value}).check()
		if !fault.Is(err, fault.Unsupported) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s=%v: %v", name, value, err)
		}
	}
	for _, p := range parameters {
		if len(p.takes) == 0 || !slices.Contains(p.takes, "*") && p.why == "" {
			t.Errorf("%s refuses values, and does not say why", p.name)
		}
	}
}

func TestProbe(t *testing.T) {
	n := newNode(t)
	d := n.open()
	if err := d.qemu.bootOnce(t.Context(), "tcg", d.user.asCredential()); err != nil {
		t.Errorf("by emulation: %v", err)
	}
	if err := d.qemu.bootOnce(t.Context(), "nosuch", nil); err == nil || !strings.Contains(err.Error(), "nosuch") {
		t.Errorf("by nothing: %v", err)
	}
	if is, why := d.probe(t.Context()); is != "kvm" && is != "tcg" || why == "" {
		t.Errorf("%q, %q", is, why)
	} else {
		t.Log(is, why)
	}
}

// TestThePageHasTheTable holds docs/compat/kvm.md to the table of parameters.
func TestThePageHasTheTable(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(testkit.Root(t), "docs", "compat", "kvm.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range parameters {
		what := "done"
		switch {
		case p.takes[0] == "*" && p.why != "":
			what = "taken, does nothing"
		case p.takes[0] != "*":
			values := slices.Clone(p.takes)
			for i, v := range values {
				if values[i] = "`" + v + "`"; v == "" {
					values[i] = "empty"
				}
			}
			what = "done: " + strings.Join(values, ", ") + "; others are refused"
		}
		row := "| `" + p.name + "` | " + what + " | " + p.why
		if !strings.Contains(string(page), strings.TrimSpace(row)+" |") {
			t.Errorf("the page lacks the row\n%s |", row)
		}
	}
}
