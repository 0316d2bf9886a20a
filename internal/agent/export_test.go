package agent

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/agent/exports"
	"github.com/drover-project/drover/internal/export"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/qemuimg"
	"github.com/drover-project/drover/internal/testkit"
)

// TestTheContentOfADisk goes into a dump, and comes from it on a disk on which something else was before.
func TestTheContentOfADisk(t *testing.T) {
	r := newImaged(t)
	d := Dump{Place: exports.Place{ID: "id", File: "d0"}, Form: export.Raw}
	content := append(bytes.Repeat([]byte{'d'}, 1<<20), make([]byte, 2<<20)...)
	if err := os.WriteFile(r.driver.disk, content, 0o600); err != nil {
		t.Fatal(err)
	}
	order := func(step int) Order { return Order{Epoch: 1, Job: 2, Step: step} }
	if err := r.DumpDisk(t.Context(), order(1), r.spec, d, nil, func(string) {}); err != nil {
		t.Fatal(err)
	}
	for step := 2; step < 4; step++ {
		if err := os.WriteFile(r.driver.disk, bytes.Repeat([]byte{'x'}, 3<<20), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := r.ImportDisk(t.Context(), order(step), r.spec, d, nil, func(string) {}); err != nil {
			t.Fatal(err)
		}
		r.has(content[:1<<20])
	}
	d.Disk = 1
	if err := r.DumpDisk(t.Context(), order(4), r.spec, d, nil, func(string) {}); !fault.Is(err, fault.Invalid) {
		t.Errorf("a disk that is not there: %v", err)
	}
}

// TestAPackedDump has what is on the disk, and takes no room for what is not; what a guest wrote at the beginning of a disk is not read as the format of a file.
func TestAPackedDump(t *testing.T) {
	program, err := qemuimg.Program()
	if err != nil {
		testkit.Missingf(t, "%v", err)
	}
	r := newImaged(t)
	content := append(bytes.Repeat([]byte("QFI\xfb"), 1<<18), make([]byte, 2<<20)...)
	if err := os.WriteFile(r.driver.disk, content, 0o600); err != nil {
		t.Fatal(err)
	}
	d := Dump{Place: exports.Place{ID: "id", File: "d0"}, Form: export.Packed}
	for step := 1; step < 3; step++ { // once more it begins anew
		if err := r.DumpDisk(t.Context(), Order{Epoch: 1, Job: 2, Step: step}, r.spec, d, nil, func(string) {}); err != nil {
			t.Fatal(err)
		}
	}
	packed := filepath.Join(r.cfg.Dir, exportsDir, ".staged", "id", "d0")
	info, err := os.Stat(packed)
	if err != nil || info.Size() > 2<<20 || info.Mode().Perm() != 0o600 {
		t.Fatalf("the dump is %+v, %v", info, err)
	}
	whole := filepath.Join(t.TempDir(), "whole")
	if out, err := exec.CommandContext(t.Context(), program, "convert", "-f", "qcow2", "-O", "raw", packed, whole).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if got, err := os.ReadFile(whole); err != nil || !bytes.Equal(got, content) {
		t.Errorf("%d bytes come of it, %v; want %d", len(got), err, len(content))
	}
}

// TestADumpThatIsNotWrittenWhole leaves zeros.
func TestADumpThatIsNotWrittenWhole(t *testing.T) {
	r := newImaged(t)
	d := Dump{Place: exports.Place{ID: "id", File: "d0"}, Form: export.Raw}
	if err := r.DumpDisk(t.Context(), Order{Epoch: 1, Job: 2, Step: 1}, r.spec, d, nil, func(string) {}); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	r.driver.asked = func() { // the hold is had by then
		if err := os.Truncate(filepath.Join(r.cfg.Dir, exportsDir, ".staged", "id", "d0"), 4<<20); err != nil {
			t.Error(err)
		}
	}
	if err := r.ImportDisk(ctx, Order{Epoch: 1, Job: 2, Step: 2}, r.spec, d, nil, func(string) {}); !fault.Is(err, fault.Invalid) {
		t.Errorf("a dump that is too large: %v", err)
	}
	r.has(nil)
	r.driver.asked = stop
	if err := r.ImportDisk(ctx, Order{Epoch: 1, Job: 2, Step: 3}, r.spec, d, nil, func(string) {}); err == nil {
		t.Error("nobody wanted it any more")
	}
	r.has(nil)
}

// TestADumpThatFillsTheDisk fails and says which file there was no room for; when what there is of the export is discarded there is room again.
func TestADumpThatFillsTheDisk(t *testing.T) {
	r := newImaged(t)
	dir := filepath.Join(r.cfg.Dir, exportsDir)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	smallRoom(t, dir)
	d := Dump{Place: exports.Place{ID: "id", File: "d0"}, Form: export.Raw}
	err := r.DumpDisk(t.Context(), Order{Epoch: 1, Job: 2, Step: 1}, r.spec, d, nil, func(string) {})
	if !fault.Is(err, fault.Exhausted) || !strings.Contains(err.Error(), filepath.Join(dir, ".staged", "id", "d0")) {
		t.Error(err)
	}
	if err := r.DiscardExport(t.Context(), Order{Epoch: 1, Job: 2, Step: 2}, "id"); err != nil {
		t.Error(err)
	}
	hasRoom(t, dir)
	if left, err := os.ReadDir(filepath.Join(dir, ".staged")); err != nil || len(left) > 0 {
		t.Errorf("there is %v, %v", left, err)
	}
}
