package file

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/diskimage"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/storage"
	"github.com/drover-project/drover/internal/testkit"
)

// withImage is a driver of a node that has an image of 1 MiB.
func withImage(t *testing.T) (*Driver, *storage.Base) {
	t.Helper()
	if _, err := exec.LookPath("qemu-img"); err != nil {
		testkit.Missingf(t, "qemu-img is not installed")
	}
	dir := t.TempDir()
	d, err := Open(filepath.Join(dir, "disks"))
	if err == nil {
		err = os.Mkdir(filepath.Join(dir, "images"), 0o700)
	}
	base := &storage.Base{SHA256: strings.Repeat("ab", 32), Format: diskimage.Raw}
	base.Path = filepath.Join(dir, "images", base.SHA256)
	if err == nil {
		err = os.WriteFile(base.Path, bytes.Repeat([]byte{'i'}, mib), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return d, base
}

// content is what a volume reads as.
func content(t *testing.T, v storage.Volume) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "content")
	if out, err := exec.CommandContext(t.Context(), "qemu-img", "convert", "--image-opts", "-O", "raw", v.File().Options(), path).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// TestADiskStandsOnAnImage: it takes no room of its own, keeps its size, grows, and is whole or what it was before whenever it is made anew.
func TestADiskStandsOnAnImage(t *testing.T) {
	d, base := withImage(t)
	ctx := t.Context()
	if _, _, err := d.Ensure(ctx, storage.Disk{ID: "one", Size: 3, Format: "qcow2"}); err != nil {
		t.Fatal(err)
	}
	if err := d.Blank(ctx, "one", base); err != nil {
		t.Fatal(err)
	}
	if _, grown, err := d.Ensure(ctx, storage.Disk{ID: "one", Size: 4}); err != nil || !grown {
		t.Fatal(grown, err)
	}
	v, err := d.Volume(ctx, "one")
	if err != nil || v.Size != 4 || v.Base == nil || *v.Base != *base {
		t.Fatalf("%+v, %+v, %v", v, v.Base, err)
	}
	if got := content(t, v); len(got) != 4*mib || got[0] != 'i' || got[mib-1] != 'i' || len(bytes.Trim(got[mib:], "\x00")) > 0 {
		t.Errorf("it reads as %d bytes that begin with %.4q", len(got), got)
	}
	if info, err := os.Stat(v.Path); err != nil || info.Size() > mib || info.Mode().Perm() != 0o600 {
		t.Errorf("its file is %+v, %v", info, err)
	}
	if err := os.WriteFile(filepath.Join(d.dir, half+"one"+layered), []byte("half"), 0o600); err != nil { // what a kill leaves
		t.Fatal(err)
	}
	if list, err := d.Volumes(ctx); err != nil || len(list) != 1 {
		t.Errorf("%+v, %v", list, err)
	}
	if err := d.Blank(ctx, "one", nil); err != nil {
		t.Fatal(err)
	}
	if v, err = d.Volume(ctx, "one"); err != nil || v.Base != nil || v.Size != 4 {
		t.Errorf("%+v, %v", v, err)
	}
	if removed, err := d.Remove(ctx, "one"); err != nil || !removed {
		t.Error(removed, err)
	}
	if left, err := os.ReadDir(d.dir); err != nil || len(left) > 0 {
		t.Errorf("it leaves %v, %v", left, err)
	}
}

// TestWhatLeadsElsewhere is no disk, wherever it leads: neither by its name nor by its format.
func TestWhatLeadsElsewhere(t *testing.T) {
	d, base := withImage(t)
	for name, args := range map[string][]string{
		"another file":        {"-b", "/etc/hostname", "-F", "raw"},
		"above the images":    {"-b", "../images/../../x", "-F", "raw"},
		"a format of no disk": {"-b", "../images/" + base.SHA256, "-F", "vmdk"},
		"a web address":       {"-b", "nbd://127.0.0.1/x", "-F", "raw"},
		"data elsewhere":      {"-o", "data_file=" + filepath.Join(t.TempDir(), "data")},
	} {
		path := d.path("one", layered)
		if out, err := exec.CommandContext(t.Context(), "qemu-img", append(append([]string{"create", "-u", "-f", "qcow2"}, args...), path, "1M")...).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", name, err, out)
		}
		if v, err := d.Volume(t.Context(), "one"); !fault.Is(err, fault.Environment) {
			t.Errorf("%s: %+v, %v", name, v, err)
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := d.Ensure(t.Context(), storage.Disk{ID: "one", Size: 1, Format: "vmdk"}); !fault.Is(err, fault.Unsupported) {
		t.Error(err)
	}
	if _, _, err := d.Ensure(t.Context(), storage.Disk{ID: "raw", Size: 1}); err != nil {
		t.Fatal(err)
	}
	if err := d.Blank(t.Context(), "raw", base); !fault.Is(err, fault.Unsupported) {
		t.Error(err)
	}
	if _, _, err := d.Ensure(t.Context(), storage.Disk{ID: "two", Size: 1, Format: "qcow2"}); err != nil {
		t.Fatal(err)
	}
	elsewhere := *base
	elsewhere.Path = "/etc/" + base.SHA256
	if err := d.Blank(t.Context(), "two", &elsewhere); !fault.Is(err, fault.Invalid) {
		t.Error(err)
	}
}
