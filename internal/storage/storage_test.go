package storage_test

import (
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/storage"
	"github.com/drover-project/drover/internal/storage/file"
)

func TestPoolsGoByTemplate(t *testing.T) {
	ctx := t.Context()
	d, err := file.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	pools := storage.Pools{d}
	if made, _, err := pools.Ensure(ctx, "", storage.Disk{ID: "one", Size: 1}); err != nil || !made {
		t.Errorf("no template is that of files: %v", err)
	}
	v, err := pools.Volume(ctx, "file", "one")
	if err != nil || v.Path == "" || v.Format != "raw" {
		t.Errorf("%+v, %v", v, err)
	}
	if err := pools.Fits(ctx, "file", 1<<40); !fault.Is(err, fault.Exhausted) {
		t.Error(err)
	}
	if err := pools.Blank(ctx, "file", "one", nil); !fault.Is(err, fault.Unsupported) {
		t.Error(err)
	}
	if _, free, err := pools.Space(ctx); err != nil || free <= 0 {
		t.Errorf("%d, %v", free, err)
	}
	_, _, err1 := pools.Ensure(ctx, "drbd", storage.Disk{ID: "two", Size: 1})
	_, err2 := pools.Remove(ctx, "drbd", "two")
	_, err3 := pools.Volume(ctx, "drbd", "two")
	for _, err := range []error{err1, err2, err3, pools.Blank(ctx, "drbd", "two", nil), pools.Fits(ctx, "drbd", 1)} {
		if !fault.Is(err, fault.Unsupported) || !strings.Contains(err.Error(), "drbd") || !strings.Contains(err.Error(), "file") {
			t.Errorf("another template: %v", err)
		}
	}
	if removed, err := pools.Remove(ctx, "file", "one"); err != nil || !removed {
		t.Error(err)
	}
}

// TestBackingOfPools: what no driver of a node has is refused, with what the node has instead.
func TestBackingOfPools(t *testing.T) {
	ctx := t.Context()
	d, err := file.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	var b storage.Backing = storage.Pools{d}
	if units, err := b.Units(ctx, storage.Files); err != nil || len(units) != 1 {
		t.Errorf("%+v, %v", units, err)
	}
	_, err1 := b.Units(ctx, storage.VolumeGroups)
	_, err2 := b.LogicalVolumes(ctx)
	_, err3 := b.SetAllocatable(ctx, "/dev/sda", true)
	_, err4 := b.Repair(ctx, "vg")
	for i, err := range []error{err1, err2, err3, err4} {
		if !fault.Is(err, fault.Unsupported) || !strings.Contains(err.Error(), []string{"lvm-vg", "volume group", "volume group", "volume group"}[i]) {
			t.Errorf("%d: %v", i, err)
		}
	}
	if found, err := b.Providers(ctx); err != nil || len(found) != 0 {
		t.Errorf("%+v, %v", found, err)
	}
}
