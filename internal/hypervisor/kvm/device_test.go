package kvm

import (
	"context"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/hypervisor"
	"github.com/drover-project/drover/internal/storage"
	"github.com/drover-project/drover/internal/storage/file"
	"github.com/drover-project/drover/internal/testkit"
)

// devices are volumes of template plain: files that are block devices, by loops.
type devices struct {
	storage.Driver
	t     *testing.T
	loops map[string]string
}

func (d *devices) Template() string { return "plain" }

func (d *devices) Volume(ctx context.Context, id string) (storage.Volume, error) {
	v, err := d.Driver.Volume(ctx, id)
	if err == nil {
		v.Path = d.loops[id]
	}
	return v, err
}

// losetup runs that tool.
func (d *devices) losetup(args ...string) string {
	out, err := exec.Command("losetup", args...).Output()
	if err != nil {
		d.t.Errorf("losetup %q: %v", args, err)
	}
	return strings.TrimSpace(string(out))
}

func (d *devices) Ensure(ctx context.Context, id string, size int) (made, grown bool, err error) {
	if made, grown, err = d.Driver.Ensure(ctx, id, size); err != nil {
		return made, grown, err
	}
	v, err := d.Driver.Volume(ctx, id)
	switch {
	case err != nil:
	case made:
		d.loops[id] = d.losetup("--find", "--show", v.Path)
		d.t.Cleanup(func() { d.losetup("--detach", d.loops[id]) })
	case grown:
		d.losetup("--set-capacity", d.loops[id])
	}
	return made, grown, err
}

// TestADiskThatIsABlockDevice: a machine starts from it, and sees that it grows.
func TestADiskThatIsABlockDevice(t *testing.T) {
	if _, err := exec.LookPath("losetup"); err != nil || os.Getuid() != 0 {
		testkit.Missingf(t, "losetup is not installed, or this is not root")
	}
	if out, err := exec.CommandContext(t.Context(), "losetup", "--find").CombinedOutput(); err != nil {
		testkit.Missingf(t, "there are no loop devices here: %s", out)
	}
	n := newNode(t)
	files, err := file.Open(n.dir + "/disks")
	if err != nil {
		t.Fatal(err)
	}
	volumes := &devices{files, t, map[string]string{}}
	d, err := Open(t.Context(), Config{Dir: n.dir, Volumes: storage.Pools{volumes}, Accelerator: "tcg", OneThread: true, Log: slog.New(slog.NewTextHandler(t.Output(), nil))})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = d.Close() }()
	disk := hypervisor.Disk{UUID: "disk-1", Size: 1, Template: "plain"}
	spec := hypervisor.Spec{Name: one.Name, UUID: uuid, Memory: 64, VCPUs: 1, Disks: []hypervisor.Disk{disk}, Params: map[string]any{"kernel_path": ""}}
	if _, err := d.Prepare(t.Context(), one, hypervisor.Mark{}, spec.Disks); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(volumes.loops[disk.UUID], TinyDisk(), 0); err != nil {
		t.Fatal(err)
	}
	n.start(d, spec)
	n.look(d).await("GUEST-UP")
	disk.Size = 2
	if changed, err := d.Prepare(t.Context(), one, hypervisor.Mark{}, []hypervisor.Disk{disk}); err != nil || !changed {
		t.Fatalf("growing: %v, %v", changed, err)
	}
	var drives []struct {
		Medium struct {
			Image struct {
				Size int64 `json:"virtual-size"`
			} `json:"image"`
		} `json:"inserted"`
	}
	if err := d.things[uuid].running().do(t.Context(), "query-block", nil, &drives); err != nil || len(drives) != 1 || drives[0].Medium.Image.Size != 2<<20 {
		t.Errorf("QEMU sees %+v, %v", drives, err)
	}
	if _, err := d.Remove(t.Context(), one); err == nil {
		t.Error("a machine that runs was removed")
	}
	if _, err := d.Stop(t.Context(), one, hypervisor.Stop{}); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Remove(t.Context(), one); err != nil {
		t.Error(err)
	}
}
