package kvm

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/hypervisor"
	"github.com/drover-project/drover/internal/testkit"
)

// disc is a CD that a machine starts the tiny guest from, in the form that BIOSes know (El Torito): a boot record that leads to a catalog, and that
// to what is started.
func disc() []byte {
	const (
		sector                   = 2048
		volume, record, last     = 16, 17, 18
		catalog, program, length = 19, 20, 40
	)
	out := make([]byte, length*sector)
	at := func(n int) []byte { return out[n*sector : (n+1)*sector] }
	for n, kind := range map[int]byte{volume: 1, record: 0, last: 255} {
		at(n)[0] = kind
		copy(at(n)[1:], "CD001\x01")
	}
	copy(at(record)[7:], "EL TORITO SPECIFICATION")
	binary.LittleEndian.PutUint32(at(record)[0x47:], catalog)
	entry := at(catalog)
	entry[0], entry[0x1e], entry[0x1f] = 1, 0x55, 0xaa
	binary.LittleEndian.PutUint16(entry[0x1c:], 0x10000-0xaa55-1) // all words of it add up to nothing
	entry[0x20] = 0x88
	binary.LittleEndian.PutUint16(entry[0x26:], 4)
	binary.LittleEndian.PutUint32(entry[0x28:], program)
	copy(at(program), TinyDisk()[:512])
	return out
}

// TestAMachineStartsFromADisc: what an installer's disc is for. It is left when the disk's turn comes, and the guest cannot write on it.
func TestAMachineStartsFromADisc(t *testing.T) {
	n := newNode(t)
	d := n.open()
	spec := n.guest(d)
	path := filepath.Join(testkit.OpenDir(t), "disc.iso")
	if err := os.WriteFile(path, disc(), 0o444); err != nil {
		t.Fatal(err)
	}
	v, err := d.cfg.Volumes.Volume(t.Context(), "file", "disk-1")
	if err == nil {
		err = os.WriteFile(v.Path, make([]byte, 1<<20), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	spec.Params = map[string]any{"kernel_path": "", "boot_order": "cdrom", "cdrom_image_path": path, "cdrom2_image_path": path}
	n.start(d, spec)
	n.look(d).await("GUEST-UP")
	var drives []struct {
		Device string `json:"qdev"`
		Medium *struct {
			RO bool `json:"ro"`
		} `json:"inserted"`
	}
	if err := d.things[uuid].running().do(t.Context(), "query-block", nil, &drives); err != nil {
		t.Fatal(err)
	}
	discs := 0
	for _, drive := range drives {
		if strings.HasPrefix(drive.Device, "cd") && drive.Medium != nil && drive.Medium.RO {
			discs++
		}
	}
	if discs != 2 {
		t.Errorf("there are %d discs in %+v", discs, drives)
	}
	if _, err := d.Stop(t.Context(), one, hypervisor.Stop{}); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(v.Path, TinyDisk(), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, 0); err != nil { // nothing to start from is on it
		t.Fatal(err)
	}
	n.start(d, spec)
	n.look(d).await("GUEST-UP")
}

// TestDiscsThatAreNone are refused before anything runs, by the name of the parameter.
func TestDiscsThatAreNone(t *testing.T) {
	n := newNode(t)
	d := n.open()
	spec := n.guest(d)
	for _, tc := range []struct {
		what   string
		params map[string]any
		want   fault.Code
	}{
		{"cdrom_image_path", map[string]any{"cdrom_image_path": "relative.iso"}, fault.Invalid},
		{"cdrom_image_path", map[string]any{"cdrom_image_path": "http://example.org/a.iso"}, fault.Invalid},
		{"cdrom2_image_path", map[string]any{"cdrom2_image_path": "/nosuch/file.iso"}, fault.Environment},
		{"cdrom_image_path", map[string]any{"cdrom_image_path": t.TempDir()}, fault.Environment},
		{"boot_order", map[string]any{"boot_order": "cdrom"}, fault.Invalid},
		{"boot_order", map[string]any{"boot_order": "network"}, fault.Invalid},
		{"boot_order", map[string]any{"boot_order": "floppy"}, fault.Unsupported},
		{"cdrom_disk_type", map[string]any{"cdrom_disk_type": "scsi"}, fault.Unsupported},
		{"disk_aio", map[string]any{"disk_aio": "native"}, fault.Invalid},
		{"cpu_mask", map[string]any{"cpu_mask": "0:1"}, fault.Invalid},
		{"cpu_mask", map[string]any{"cpu_mask": "1-0"}, fault.Invalid},
		{"cpu_mask", map[string]any{"cpu_mask": "x"}, fault.Invalid},
		{"cpu_mask", map[string]any{"cpu_mask": "1024"}, fault.Invalid},
	} {
		tc.params["kernel_path"] = ""
		spec.Params = tc.params
		_, err := d.Start(t.Context(), spec)
		if !fault.Is(err, tc.want) || !strings.Contains(err.Error(), tc.what) {
			t.Errorf("%v: %v", tc.params, err)
		}
		n.is(d, hypervisor.Stopped)
	}
	secret := filepath.Join(testkit.OpenDir(t), "secret.iso")
	if err := os.WriteFile(secret, disc(), 0o600); err != nil {
		t.Fatal(err)
	}
	spec.Params = map[string]any{"kernel_path": "", "cdrom_image_path": secret}
	if _, err := d.Start(t.Context(), spec); d.user != nil && (!fault.Is(err, fault.Environment) || !strings.Contains(err.Error(), "not everybody may read")) {
		t.Errorf("a file that is the node's own: %v", err)
	}
}
