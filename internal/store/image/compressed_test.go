package image_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/store/image"
	"github.com/drover-project/drover/internal/testkit"
)

// large is what compresses well.
var large = append(slices.Clone(content), object("c", "1", 4, strings.Repeat(`{"status":"success"}`, 5000)))

func backup(t *testing.T, path string) {
	t.Helper()
	made := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	if _, err := image.Create(path, &image.Image{Revision: 9, Epoch: 4, Objects: all(large...)}, made, false); err != nil {
		t.Fatal(err)
	}
}

// TestCompressed: what zstd makes of a backup is the one that programs of before restore; ours reads both, whatever they are called.
func TestCompressed(t *testing.T) {
	t.Parallel()
	zstd, err := exec.LookPath("zstd")
	if err != nil {
		testkit.Missingf(t, "zstd is not installed")
	}
	dir := t.TempDir()
	plain, packed, renamed := filepath.Join(dir, "plain"), filepath.Join(dir, "packed.zst"), filepath.Join(dir, "renamed")
	backup(t, plain)
	backup(t, packed)
	if err := os.Link(packed, renamed); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{plain, packed, renamed} {
		info, err := os.Stat(path)
		if err != nil || (info.Size() < 10_000) != (path != plain) {
			t.Errorf("%s has %d bytes, %v", path, info.Size(), err)
		}
		f, err := image.Open(path)
		if err != nil || f.Revision != 9 || f.Objects != len(large) || f.Size != info.Size() {
			t.Fatalf("%s: %+v, %v", path, f, err)
		}
		if n, err := image.Compare(f.Image(), &image.Image{Objects: all(large...)}); n != len(large) || err != nil {
			t.Errorf("%s: %d objects are equal: %v", path, n, err)
		}
	}
	got, err := exec.CommandContext(t.Context(), zstd, "-dc", packed).Output()
	if err != nil {
		t.Fatal(err)
	}
	if want, err := os.ReadFile(plain); err != nil || !bytes.Equal(got, want) {
		t.Errorf("zstd makes %d bytes of it, and the other has %d: %v", len(got), len(want), err)
	}
	p, err := image.Prune(dir, 1, "cluster")
	if err != nil || len(p.Keep) != 1 || len(p.Remove) != 2 {
		t.Errorf("of these, %v stay and %v go: %v", pathsOf(p.Keep), pathsOf(p.Remove), err)
	}
}

// TestDamagedFrameIsNoticed: of a compressed one that was changed, cut or lengthened, all is as it was written, or nothing is taken.
func TestDamagedFrameIsNoticed(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "backup.zst")
	backup(t, path)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(rt *rapid.T) {
		text := slices.Clone(whole)
		at, kind := rapid.IntRange(0, len(text)-1).Draw(rt, "at"), rapid.IntRange(0, 2).Draw(rt, "damage")
		switch kind {
		case 0:
			text[at] ^= 1 << rapid.IntRange(0, 7).Draw(rt, "bit")
		case 1:
			text = text[:at]
		case 2:
			text = append(text, whole[:at+1]...)
		}
		if err := os.WriteFile(path, text, 0o600); err != nil {
			rt.Fatal(err)
		}
		f, err := image.Open(path)
		if err != nil {
			if !fault.Is(err, fault.WrongState) {
				rt.Fatalf("opened: %v", err)
			}
			return
		}
		if kind != 0 { // a bit may be one that says how to unpack it, and no more
			rt.Fatalf("%d bytes of %d are taken for a backup", len(text), len(whole))
		}
		if n, err := image.Compare(f.Image(), &image.Image{Objects: all(large...)}); n != len(large) || err != nil {
			rt.Fatalf("%d objects are equal: %v", n, err)
		}
	})
}

// TestWhoseABackupIs: one that root makes is for whom its directory belongs to, and for nobody else.
func TestWhoseABackupIs(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		testkit.Missingf(t, "only root makes what belongs to others")
	}
	dir := t.TempDir()
	if err := os.Chown(dir, 65534, 65533); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(made(t, dir, "a.zst", 1))
	if err != nil {
		t.Fatal(err)
	}
	if owner := info.Sys().(*syscall.Stat_t); owner.Uid != 65534 || owner.Gid != 65533 || info.Mode().Perm() != 0o600 {
		t.Errorf("it belongs to %d, %d, with %v", owner.Uid, owner.Gid, info.Mode())
	}
}

// TestWhereABackupIsMade: in a directory it gets a name by the time, and the newest of one is found by when it was made.
func TestWhereABackupIsMade(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.FixedZone("", 3600))
	if got := image.In(dir, at); got != filepath.Join(dir, "drover-20260102T020405Z.zst") {
		t.Error(got)
	}
	for _, file := range []string{filepath.Join(dir, "none"), made(t, t.TempDir(), "file", 1)} {
		if got := image.In(file, at); got != file {
			t.Errorf("%s is made as %s", file, got)
		}
		if got, err := image.NewestIn(file); err != nil || got != file {
			t.Errorf("%s is taken for %s, %v", file, got, err)
		}
	}
	if got, err := image.NewestIn(dir); !fault.Is(err, fault.NotFound) {
		t.Errorf("the newest of none is %q, %v", got, err)
	}
	made(t, dir, "z", 1)
	want := made(t, dir, "a.zst", 2)
	if got, err := image.NewestIn(dir); err != nil || got != want {
		t.Errorf("the newest is %q, %v", got, err)
	}
}
