package file

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/storage"
	"github.com/drover-project/drover/internal/storage/storagetest"
	"github.com/drover-project/drover/internal/testkit"
)

func TestConformanceOfStorage(t *testing.T) {
	opens := map[string]func(dir string) (*Driver, error){
		"file":       func(dir string) (*Driver, error) { return Open(filepath.Join(dir, "disks")) },
		"sharedfile": OpenShared,
	}
	for template, open := range opens {
		t.Run(template, func(t *testing.T) {
			storagetest.Run(t, func(t *testing.T, dir string) storage.Driver {
				d, err := open(dir)
				if err != nil || d.Template() != template {
					t.Fatal(d, err)
				}
				return d
			})
			if _, err := exec.LookPath("qemu-img"); err != nil {
				testkit.Missingf(t, "qemu-img is not installed")
			}
			storagetest.RunLayered(t, func(t *testing.T, dir string) storage.Driver {
				d, err := open(dir)
				if err != nil {
					t.Fatal(err)
				}
				return d
			})
		})
	}
}

// TestWhatAKillLeaves: between its name and its size a file is nobody's disk, and keeps nobody from making one.
func TestWhatAKillLeaves(t *testing.T) {
	d, err := Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(d.path("one", raw), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if list, err := d.Volumes(t.Context()); err != nil || len(list) != 0 {
		t.Errorf("%v, %v", list, err)
	}
	if v, err := d.Volume(t.Context(), "one"); !fault.Is(err, fault.NotFound) {
		t.Errorf("%v, %v", v, err)
	}
	if made, _, err := d.Ensure(t.Context(), storage.Disk{ID: "one", Size: 3}); err != nil || !made {
		t.Errorf("%v, %v", made, err)
	}
	if v, err := d.Volume(t.Context(), "one"); err != nil || v.Size != 3 {
		t.Errorf("%v, %v", v, err)
	}
}

// TestASharedDirectory is looked at by several nodes, and made by none.
func TestASharedDirectory(t *testing.T) {
	dir := t.TempDir()
	missing := filepath.Join(dir, "unmounted")
	if _, err := OpenShared(missing); !fault.Is(err, fault.Environment) {
		t.Error(err)
	}
	if _, err := os.Lstat(missing); !os.IsNotExist(err) {
		t.Errorf("it was made: %v", err)
	}
	here, err := OpenShared(dir)
	if err != nil {
		t.Fatal(err)
	}
	there, err := OpenShared(dir)
	if err != nil {
		t.Fatal(err)
	}
	if made, _, err := here.Ensure(t.Context(), storage.Disk{ID: "one", Size: 2}); err != nil || !made {
		t.Fatal(made, err)
	}
	if v, err := there.Volume(t.Context(), "one"); err != nil || v.Size != 2 {
		t.Errorf("%v, %v", v, err)
	}
	if made, grown, err := there.Ensure(t.Context(), storage.Disk{ID: "one", Size: 3}); err != nil || made || !grown {
		t.Error(made, grown, err)
	}
	if made, grown, err := here.Ensure(t.Context(), storage.Disk{ID: "one", Size: 3}); err != nil || made || grown {
		t.Error(made, grown, err)
	}
	if err := os.Rename(dir, dir+"-away"); err != nil {
		t.Fatal(err)
	}
	if made, _, err := here.Ensure(t.Context(), storage.Disk{ID: "two", Size: 1}); !fault.Is(err, fault.Environment) {
		t.Error(made, err)
	}
	if err := os.Rename(dir+"-away", dir); err != nil {
		t.Fatal(err)
	}
}

func TestFilesAreTheirOwners(t *testing.T) {
	d, err := Open(filepath.Join(t.TempDir(), "disks"))
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := d.Ensure(t.Context(), storage.Disk{ID: "one", Size: 1}); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]os.FileMode{d.dir: 0o700, d.path("one", raw): 0o600} {
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
	if err := os.Symlink("/etc/passwd", d.path("one", raw)); err != nil {
		t.Fatal(err)
	}
	if v, err := d.Volume(t.Context(), "one"); !fault.Is(err, fault.Environment) {
		t.Errorf("%v, %v", v, err)
	}
	if _, _, err := d.Ensure(t.Context(), storage.Disk{ID: "one", Size: 1}); !fault.Is(err, fault.Environment) {
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
	if _, _, err := d.Ensure(t.Context(), storage.Disk{ID: "one", Size: half}); err != nil {
		t.Fatal(err)
	}
	if _, _, err := d.Ensure(t.Context(), storage.Disk{ID: "two", Size: half}); !fault.Is(err, fault.Exhausted) {
		t.Errorf("room is given out twice: %v", err)
	}
	if _, _, err := d.Ensure(t.Context(), storage.Disk{ID: "one", Size: 2 * half}); !fault.Is(err, fault.Exhausted) {
		t.Errorf("room is given out twice: %v", err)
	}
}

// TestUnits: the directory is told of with the files as they are, and the room that new disks can have.
func TestUnits(t *testing.T) {
	dir := t.TempDir()
	own, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	shared, err := OpenShared(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := own.Ensure(t.Context(), storage.Disk{ID: "one", Size: 3}); err != nil {
		t.Fatal(err)
	}
	for kind, d := range map[storage.Kind]*Driver{storage.Files: own, storage.SharedFiles: shared} {
		units, err := storage.Pools{d}.Units(t.Context(), kind)
		if err != nil || len(units) != 1 || units[0].Name != dir || units[0].Used != 3 || !units[0].Allocatable || units[0].Size <= units[0].Free || units[0].Free <= 0 {
			t.Errorf("%s: %+v, %v", kind, units, err)
		}
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if _, err := own.Units(t.Context(), storage.Files); !fault.Is(err, fault.Environment) {
		t.Errorf("a directory that is gone: %v", err)
	}
}
