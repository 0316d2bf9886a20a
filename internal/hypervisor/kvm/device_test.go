package kvm

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/hypervisor"
	"github.com/drover-project/drover/internal/storage"
	"github.com/drover-project/drover/internal/storage/ext"
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

func (d *devices) Ensure(ctx context.Context, disk storage.Disk) (made, grown bool, err error) {
	id := disk.ID
	if made, grown, err = d.Driver.Ensure(ctx, disk); err != nil {
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

// needLoops skips a test where there are no loop devices.
func needLoops(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("losetup"); err != nil || os.Getuid() != 0 {
		testkit.Missingf(t, "losetup is not installed, or this is not root")
	}
	if out, err := exec.CommandContext(t.Context(), "losetup", "--find").CombinedOutput(); err != nil {
		testkit.Missingf(t, "there are no loop devices here: %s", out)
	}
}

// TestADiskThatIsABlockDevice: a machine starts from it, and sees that it grows.
func TestADiskThatIsABlockDevice(t *testing.T) {
	needLoops(t)
	n := newNode(t)
	files, err := file.Open(n.dir + "/disks")
	if err != nil {
		t.Fatal(err)
	}
	n.livesOn(&devices{files, t, map[string]string{}}, hypervisor.Disk{UUID: "disk-1", Size: 1, Template: "plain"})
}

// TestADiskOfAProvider is a block device that an operator's scripts make.
func TestADiskOfAProvider(t *testing.T) {
	needLoops(t)
	n := newNode(t)
	providers, volumes := t.TempDir(), t.TempDir()
	for name, text := range map[string]string{
		"parameters.list": "",
		"create":          `truncate -s "${VOL_SIZE}M" "$at"`,
		"attach":          `[ -e "$at" ] || exit 1; losetup --find --show "$at" | tee "$at.device"; [ -s "$at.device" ]`,
		"detach":          `losetup --detach "$(cat "$at.device")"; rm "$at.device"`,
		"remove":          `rm "$at"`,
		"grow":            `truncate -s "${VOL_NEW_SIZE}M" "$at"; losetup --set-capacity "$(cat "$at.device")"`,
		"setinfo":         "", "verify": "",
	} {
		if name == "attach" { // it is as it was for who asks again
			text = `[ ! -s "$at.device" ] || exec cat "$at.device"` + "\n" + text
		}
		path := filepath.Join(providers, "loops", name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte("#!/bin/sh\nat="+volumes+"/$VOL_NAME\n"+text+"\n"), 0o700)); err != nil {
			t.Fatal(err)
		}
	}
	d, err := ext.Open(n.dir+"/ext", providers)
	if err != nil {
		t.Fatal(err)
	}
	n.livesOn(d, hypervisor.Disk{UUID: "disk-1", Size: 1, Template: "ext", External: &hypervisor.External{Provider: "loops", Name: "u.ext.disk0"}})
	if left, err := os.ReadDir(volumes); err != nil || len(left) > 0 {
		t.Errorf("the provider still has %v, %v", left, err)
	}
}

// livesOn has a machine start from a disk that is a block device, which grows while it runs, and removes it.
func (n *node) livesOn(volumes storage.Driver, disk hypervisor.Disk) {
	n.Helper()
	ctx := n.Context()
	d, err := Open(ctx, Config{Dir: n.dir, Volumes: storage.Pools{volumes}, Accelerator: "tcg", OneThread: true, Log: slog.New(slog.NewTextHandler(n.Output(), nil))})
	if err != nil {
		n.Fatal(err)
	}
	defer func() { _ = d.Close() }()
	spec := hypervisor.Spec{Name: one.Name, UUID: uuid, Memory: 64, VCPUs: 1, Disks: []hypervisor.Disk{disk}, Params: map[string]any{"kernel_path": ""}}
	if _, err := d.Prepare(ctx, one, hypervisor.Mark{}, spec.Disks); err != nil {
		n.Fatal(err)
	}
	v, err := volumes.Volume(ctx, disk.UUID)
	if err == nil {
		err = os.WriteFile(v.Path, TinyDisk(), 0)
	}
	if err != nil {
		n.Fatal(err)
	}
	n.start(d, spec)
	n.look(d).await("GUEST-UP")
	disk.Size = 2
	if changed, err := d.Prepare(ctx, one, hypervisor.Mark{}, []hypervisor.Disk{disk}); err != nil || !changed {
		n.Fatalf("growing: %v, %v", changed, err)
	}
	var drives []struct {
		Medium struct {
			Image struct {
				Size int64 `json:"virtual-size"`
			} `json:"image"`
		} `json:"inserted"`
	}
	if err := d.things[uuid].running().do(ctx, "query-block", nil, &drives); err != nil || len(drives) != 1 || drives[0].Medium.Image.Size != 2<<20 {
		n.Errorf("QEMU sees %+v, %v", drives, err)
	}
	n.write(d, 0, 1, 'a')
	if _, err := d.Snapshot(ctx, one, "id"); err != nil {
		n.Fatal(err)
	}
	n.write(d, 0, 1, 'x')
	if content, _, err := n.copied(d, "id", disk.UUID); err != nil || len(content) != 2<<20 || content[1<<20] != 'a' || content[2<<20-1] != 'a' {
		n.Errorf("a copy of the snapshot has %d bytes, %v", len(content), err)
	}
	if _, err := d.Release(ctx, one, "id"); err != nil {
		n.Fatal(err)
	}
	n.nothingOf(d)
	if _, err := d.Remove(ctx, one); err == nil {
		n.Error("a machine that runs was removed")
	}
	if _, err := d.Stop(ctx, one, hypervisor.Stop{}); err != nil {
		n.Fatal(err)
	}
	if _, err := d.Remove(ctx, one); err != nil {
		n.Error(err)
	}
}
