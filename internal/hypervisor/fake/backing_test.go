package fake

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/hypervisor"
	"github.com/drover-project/drover/internal/storage"
)

// A volume group whose device is not allocatable has no new disks, also behind a restart; what is there stays as it is, and disks elsewhere are made.
func TestAVolumeGroupThatGivesOutNoRoom(t *testing.T) {
	dir := t.TempDir()
	d := open(t, Config{Dir: dir, Group: "vg7"})
	of := hypervisor.Thing{UUID: "u", Name: "one"}
	prepare := func(disks ...hypervisor.Disk) error {
		_, err := d.Prepare(t.Context(), of, hypervisor.Mark{}, disks)
		return err
	}
	if err := prepare(hypervisor.Disk{UUID: "a", Size: 8, Template: "plain"}); err != nil {
		t.Fatal(err)
	}
	for i, may := range []bool{false, false} {
		if changed, err := d.Backing().SetAllocatable(t.Context(), device, may); err != nil || changed != (i == 0) {
			t.Errorf("%d: %v, %v", i, changed, err)
		}
	}
	d = open(t, Config{Dir: dir, Group: "vg7"})
	for _, disk := range []hypervisor.Disk{{UUID: "b", Size: 8, Template: "drbd"}, {UUID: "a", Size: 16, Template: "plain"}} {
		if err := prepare(disk); !fault.Is(err, fault.Exhausted) || !strings.Contains(err.Error(), "vg7") {
			t.Errorf("%+v: %v", disk, err)
		}
	}
	if err := prepare(hypervisor.Disk{UUID: "a", Size: 8, Template: "plain"}, hypervisor.Disk{UUID: "c", Size: 8, Template: "file"}); err != nil {
		t.Error(err)
	}
	if _, err := d.Backing().SetAllocatable(t.Context(), device, true); err != nil {
		t.Fatal(err)
	}
	if err := prepare(hypervisor.Disk{UUID: "a", Size: 16, Template: "plain"}); err != nil {
		t.Error(err)
	}
	if err := os.WriteFile(filepath.Join(dir, groupFile), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(Config{Dir: dir}); !fault.Is(err, fault.Environment) || !strings.Contains(err.Error(), groupFile) {
		t.Errorf("what is kept of it cannot be read: %v", err)
	}
}

// Where a node has providers, disks are made by those alone; where it says nothing of them, by any.
func TestProviders(t *testing.T) {
	d := open(t, Config{Dir: t.TempDir()})
	disk := func(of string) hypervisor.Disk {
		return hypervisor.Disk{UUID: of, Size: 1, Template: "ext", External: &hypervisor.External{Provider: of}}
	}
	for i, providers := range []func() ([]storage.Provider, error){
		nil,
		func() ([]storage.Provider, error) {
			return []storage.Provider{{Name: "good"}, {Name: "bad", Problem: "it has no scripts"}}, nil
		},
		func() ([]storage.Provider, error) { return nil, errors.New("nothing can be read") },
	} {
		d.cfg.Providers = providers
		for name, words := range map[string][]string{"good": {"", "", "nothing"}, "bad": {"", "no scripts", "nothing"}, "other": {"", "no storage provider other", "nothing"}} {
			_, err := d.Prepare(t.Context(), hypervisor.Thing{UUID: name, Name: name}, hypervisor.Mark{}, []hypervisor.Disk{disk(name)})
			if (err != nil) != (words[i] != "") || err != nil && !strings.Contains(err.Error(), words[i]) {
				t.Errorf("%d, %s: %v", i, name, err)
			}
			if _, err := d.Remove(t.Context(), hypervisor.Thing{UUID: name, Name: name}); err != nil {
				t.Fatal(err)
			}
		}
	}
}
