package kvm

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/hypervisor"
	"github.com/drover-project/drover/internal/storage"
	"github.com/drover-project/drover/internal/testkit"
)

// image keeps an image that the tiny guest starts from on a node, raw or qcow2.
func (n *node) image(format string) *storage.Base {
	n.Helper()
	path := filepath.Join(n.dir, "images", "new")
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		n.Fatal(err)
	}
	if err := os.WriteFile(path, TinyDisk(), 0o600); err != nil {
		n.Fatal(err)
	}
	if format != "raw" {
		if out, err := exec.CommandContext(n.Context(), "qemu-img", "convert", "-f", "raw", "-O", format, path, path+"2").CombinedOutput(); err != nil {
			n.Fatalf("%v\n%s", err, out)
		}
		path += "2"
	}
	content, err := os.ReadFile(path)
	if err != nil {
		n.Fatal(err)
	}
	sum := sha256.Sum256(content)
	b := &storage.Base{SHA256: hex.EncodeToString(sum[:]), Format: format}
	b.Path = filepath.Join(n.dir, "images", b.SHA256)
	if err := os.Rename(path, b.Path); err != nil {
		n.Fatal(err)
	}
	return b
}

// TestAGuestStandsOnAnImage: it starts from what the image has, its disk grows while it runs, one that stands on the same image is plugged in, and the image
// stays what it was. An agent that comes behind finds all that.
func TestAGuestStandsOnAnImage(t *testing.T) { //nolint:gocognit // one life of a machine, told in order
	if _, err := exec.LookPath("qemu-img"); err != nil {
		testkit.Missingf(t, "qemu-img is not installed")
	}
	for _, format := range []string{"raw", "qcow2"} {
		t.Run(format, func(t *testing.T) {
			n := newNode(t)
			d := n.open()
			base := n.image(format)
			before, err := os.ReadFile(base.Path)
			if err != nil {
				t.Fatal(err)
			}
			disk := hypervisor.Disk{UUID: "disk-1", Size: 1, Template: "file", Format: "qcow2"}
			other := disk
			other.UUID = "disk-2"
			spec := hypervisor.Spec{Name: one.Name, UUID: uuid, Memory: 64, VCPUs: 1, Disks: []hypervisor.Disk{disk}, Params: map[string]any{"kernel_path": ""}}
			if _, err := d.Prepare(t.Context(), one, hypervisor.Mark{}, []hypervisor.Disk{disk, other}); err != nil {
				t.Fatal(err)
			}
			for _, disk := range []string{"disk-1", "disk-2"} {
				if err := d.Blank(t.Context(), one, disk, base); err != nil {
					t.Fatal(err)
				}
			}
			n.start(d, spec)
			n.look(d).await("GUEST-UP")
			disk.Size = 5
			if changed, err := d.Prepare(t.Context(), one, hypervisor.Mark{}, []hypervisor.Disk{disk}); err != nil || !changed {
				t.Fatal(changed, err)
			}
			with := spec
			with.Disks = append(slices.Clone(spec.Disks), other)
			if _, err := d.Adjust(t.Context(), with); err != nil {
				t.Fatal(err)
			}
			d = n.open()
			i, err := d.Instance(t.Context(), one)
			if err != nil || i.State != hypervisor.Running || len(i.Disks) != 2 || i.Disks[0].Image != base.SHA256 || i.Disks[0].File.Base == nil {
				t.Fatalf("%+v, %v", i, err)
			}
			if v, err := d.cfg.Volumes.Volume(t.Context(), "file", "disk-1"); err != nil || v.Size != 5 {
				t.Errorf("%+v, %v", v, err)
			}
			p := d.things[uuid].running()
			if there, err := p.devices(t.Context()); err != nil || !there["disk1"] {
				t.Errorf("plugged in are %v, %v", there, err)
			}
			if after, err := os.ReadFile(base.Path); err != nil || !bytes.Equal(before, after) {
				t.Errorf("the image has changed, %v", err)
			}
			if _, err := d.Stop(t.Context(), one, hypervisor.Stop{}); err != nil {
				t.Fatal(err)
			}
			if err := os.Rename(base.Path, base.Path+"-away"); err != nil {
				t.Fatal(err)
			}
			if _, err := d.Start(t.Context(), spec); !fault.Is(err, fault.WrongState) || !strings.Contains(err.Error(), base.SHA256) {
				t.Errorf("without its image it starts: %v", err)
			}
			if err := d.Blank(t.Context(), one, "disk-1", nil); err != nil {
				t.Fatal(err)
			}
			if i, err = d.Instance(t.Context(), one); err != nil || i.Disks[0].Image != "" {
				t.Errorf("%+v, %v", i, err)
			}
		})
	}
}
