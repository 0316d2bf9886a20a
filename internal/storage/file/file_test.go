package file

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/storage"
	"github.com/drover-project/drover/internal/storage/storagetest"
)

func TestConformanceOfStorage(t *testing.T) {
	storagetest.Run(t, func(t *testing.T, dir string) storage.Driver {
		d, err := Open(filepath.Join(dir, "disks"))
		if err != nil {
			t.Fatal(err)
		}
		return d
	})
}

func TestWhatAKillLeaves(t *testing.T) {
	dir := t.TempDir()
	left := filepath.Join(dir, halfMade+"17")
	if err := os.WriteFile(left, make([]byte, 1000), 0o600); err != nil {
		t.Fatal(err)
	}
	d, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if list, err := d.Volumes(t.Context()); err != nil || len(list) != 0 {
		t.Errorf("%v, %v", list, err)
	}
	if _, err := os.Lstat(left); !os.IsNotExist(err) {
		t.Errorf("it is still there: %v", err)
	}
}

func TestFilesAreTheirOwners(t *testing.T) {
	d, err := Open(filepath.Join(t.TempDir(), "disks"))
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := d.Ensure(t.Context(), "one", 1); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]os.FileMode{d.dir: 0o700, d.path("one"): 0o600} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v", path, info.Mode(), err)
		}
	}
}

// TestNoLinks: what somebody has put in the place of a volume leads nowhere.
func TestNoLinks(t *testing.T) {
	d, err := Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc/passwd", d.path("one")); err != nil {
		t.Fatal(err)
	}
	if v, err := d.Volume(t.Context(), "one"); !fault.Is(err, fault.Environment) {
		t.Errorf("%v, %v", v, err)
	}
	if _, _, err := d.Ensure(t.Context(), "one", 1); !fault.Is(err, fault.Environment) {
		t.Error(err)
	}
}

// TestRoomThatIsPromised: a volume takes its room when it is made, and not when something is written.
func TestRoomThatIsPromised(t *testing.T) {
	d, err := Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	before, err := d.Space(t.Context())
	if err != nil || before.Free < 4096 {
		t.Skipf("this machine has %d MiB of room, %v", before.Free, err)
	}
	half := before.Free/2 + 1024
	if _, _, err := d.Ensure(t.Context(), "one", half); err != nil {
		t.Fatal(err)
	}
	if _, _, err := d.Ensure(t.Context(), "two", half); !fault.Is(err, fault.Exhausted) {
		t.Errorf("room is given out twice: %v", err)
	}
	if _, _, err := d.Ensure(t.Context(), "one", 2*half); !fault.Is(err, fault.Exhausted) {
		t.Errorf("room is given out twice: %v", err)
	}
}
