package nodedriver

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/hypervisor"
	"github.com/drover-project/drover/internal/storage"
	"github.com/drover-project/drover/internal/testkit"
)

func TestADirectoryIsOfOneKind(t *testing.T) {
	if _, err := exec.LookPath("qemu-system-x86_64"); err != nil {
		testkit.Missingf(t, "qemu-system-x86_64 is not installed")
	}
	for _, first := range table {
		for _, second := range table {
			dir := t.TempDir()
			a, b := Settings{Hypervisor: first.name}, Settings{Hypervisor: second.name}
			if first.name == "kvm" {
				a.Accelerator = "tcg"
			}
			d, err := a.Open(t.Context(), Node{Dir: dir})
			if err != nil {
				t.Fatal(err)
			}
			if d.Kind() != first.name {
				t.Errorf("%s is %s", first.name, d.Kind())
			}
			if _, err := d.Prepare(t.Context(), hypervisor.Thing{UUID: "u", Name: "one"}, hypervisor.Mark{}, nil); err != nil {
				t.Fatal(err)
			}
			if err := d.Close(); err != nil {
				t.Fatal(err)
			}
			d, err = b.Open(t.Context(), Node{Dir: dir})
			switch {
			case first.name == second.name && err == nil:
				_ = d.Close()
			case first.name == second.name || !fault.Is(err, fault.WrongState) || !strings.Contains(err.Error(), first.name):
				t.Errorf("%s behind %s: %v", second.name, first.name, err)
			}
		}
	}
}

func TestSettings(t *testing.T) {
	for _, good := range []Settings{{}, Defaults(), {Hypervisor: "kvm"}, {Hypervisor: "kvm", Accelerator: "tcg", GuestUser: "nobody", QEMU: "/usr/bin/kvm", Network: "bridge", VolumeGroup: "vg0"}, {Hypervisor: "kvm", Powercycle: "sysrq"}, {Powercycle: "/sbin/reset", Hypervisor: "kvm"}, {Commands: "/srv/commands"}, {Hypervisor: "fake", Providers: "/srv"}} {
		if err := good.Check(); err != nil {
			t.Errorf("%+v: %v", good, err)
		}
	}
	for _, bad := range []Settings{{Hypervisor: "xen"}, {Hypervisor: "fake", QEMU: "x"}, {Hypervisor: "fake", Accelerator: "tcg"}, {Hypervisor: "fake", GuestUser: "x"}, {Hypervisor: "kvm", Accelerator: "hvf"}, {Hypervisor: "kvm", Network: "wifi"}, {Hypervisor: "kvm", GuestUser: "0-5"}, {Hypervisor: "fake", Network: "bridge"}, {Hypervisor: "fake", VolumeGroup: "vg0"}, {Hypervisor: "kvm", VolumeGroup: "-x"}, {Hypervisor: "kvm", SharedDir: "disks"}, {Hypervisor: "fake", SharedDir: "/srv"}, {Hypervisor: "kvm", Providers: "ext"}, {Hypervisor: "fake", Providers: "srv"}, {Hypervisor: "fake", Powercycle: "sysrq"}, {Hypervisor: "kvm", Powercycle: "reboot"}, {Hypervisor: "fake", Commands: "commands"}} {
		if err := bad.Check(); !fault.Is(err, fault.Invalid) {
			t.Errorf("%+v: %v", bad, err)
		}
	}
}

// TestPretendedNodesHaveProviders: those of the directory that is set, which has to be there.
func TestPretendedNodesHaveProviders(t *testing.T) {
	dir := t.TempDir()
	s := Settings{Providers: filepath.Join(dir, "providers")}
	if _, err := s.Open(t.Context(), Node{Dir: dir}); !fault.Is(err, fault.Environment) {
		t.Errorf("a directory that is not there: %v", err)
	}
	if err := os.MkdirAll(filepath.Join(s.Providers, "shelf"), 0o700); err != nil {
		t.Fatal(err)
	}
	d, err := s.Open(t.Context(), Node{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	if found, err := d.Backing().Providers(t.Context()); err != nil || len(found) != 1 || found[0].Name != "shelf" || found[0].Problem == "" {
		t.Errorf("%+v, %v", found, err)
	}
	units, err := d.Backing().Units(t.Context(), storage.VolumeGroups)
	if err != nil || len(units) != 1 || units[0].Name != s.Group() {
		t.Errorf("its volume group is %+v, and that of new clusters %s, %v", units, s.Group(), err)
	}
}

func TestArguments(t *testing.T) {
	want := Settings{Hypervisor: "kvm", Accelerator: "tcg", QEMU: "/usr/bin/q", VolumeGroup: "vg0", SharedDir: "/srv/disks", Providers: "/srv/ext", Commands: "/srv/commands", Powercycle: "sysrq"}
	var got Settings
	f := pflag.NewFlagSet("", pflag.ContinueOnError)
	got.Register(f)
	if err := f.Parse(want.Arguments()); err != nil || got != want {
		t.Errorf("%+v becomes %v, and that %+v, %v", want, want.Arguments(), got, err)
	}
}

func TestPresent(t *testing.T) {
	for s, want := range map[Settings]fault.Code{
		{Hypervisor: "kvm", QEMU: "/bin/sh"}: "", {Hypervisor: "kvm", QEMU: "/nonexistent/qemu"}: fault.Environment,
		{Hypervisor: "kvm", QEMU: "/bin/sh", VolumeGroup: "drover-no-such-group"}: fault.Environment,
		{Hypervisor: "kvm", QEMU: "/bin/sh", SharedDir: "/nonexistent/disks"}:     fault.Environment,
	} {
		if err := s.Present(t.Context()); fault.CodeOf(err) != want {
			t.Errorf("%+v: %v", s, err)
		}
	}
	s := Defaults()
	if err := s.Present(t.Context()); err != nil {
		t.Errorf("what pretends needs nothing: %v", err)
	}
}

// TestParamsAreParameters: what new clusters get is known to the reference.
func TestParamsAreParameters(t *testing.T) {
	for _, k := range table {
		known := cluster.New(cluster.Init{}).HVParams[k.name]
		for name := range k.params {
			if _, is := known[name]; !is {
				t.Errorf("%s has no parameter %s", k.name, name)
			}
		}
	}
}

// TestASharedDirectory has a pool of its own, behind that of the node, and new clusters use it. A node where it is missing has no disks at all.
func TestASharedDirectory(t *testing.T) {
	s := Settings{Hypervisor: "kvm", SharedDir: t.TempDir()}
	pools, err := openPools(t.Context(), s, Node{Dir: t.TempDir()}, nil)
	if want := []string{"file", "sharedfile"}; err != nil || !slices.Equal(pools.Templates(), want) || !slices.Equal(s.Templates(), want) {
		t.Errorf("%v, %v, %v", pools.Templates(), s.Templates(), err)
	}
	s.Providers = t.TempDir()
	if pools, err = openPools(t.Context(), s, Node{Dir: t.TempDir()}, nil); err != nil || !slices.Equal(pools.Templates(), []string{"file", "sharedfile", "ext"}) || !slices.Equal(s.Templates(), pools.Templates()) {
		t.Errorf("%v, %v, %v", pools.Templates(), s.Templates(), err)
	}
	s.SharedDir += "/missing"
	if _, err := openPools(t.Context(), s, Node{Dir: t.TempDir()}, nil); !fault.Is(err, fault.Environment) {
		t.Error(err)
	}
}

// group is a volume group that has a size alone.
type group struct{ storage.Driver }

func (group) Template() string { return cluster.DiskPlain }
func (group) Space(context.Context) (storage.Space, error) {
	return storage.Space{Total: 7, Free: 5}, nil
}

// TestAVolumeGroup is asked for by its name. The node is then known for its room, files go on to be there beside it, and new clusters use both.
func TestAVolumeGroup(t *testing.T) {
	asked := ""
	opens := func(_ context.Context, name string) (storage.Driver, error) {
		asked = name
		return group{}, nil
	}
	for _, tc := range []struct {
		s         Settings
		templates []string
	}{{Settings{Hypervisor: "kvm"}, []string{"file"}}, {Settings{Hypervisor: "kvm", VolumeGroup: "vg0"}, []string{"file", "plain"}}} {
		asked = ""
		pools, err := openPools(t.Context(), tc.s, Node{Dir: t.TempDir()}, opens)
		if err != nil || asked != tc.s.VolumeGroup || !slices.Equal(tc.s.Templates(), tc.templates) || len(pools) != len(tc.templates) {
			t.Fatalf("%+v: %v, %v, %q, %v", tc.s, pools, err, asked, tc.s.Templates())
		}
		if total, _, err := pools.Space(t.Context()); err != nil || (total == 7) != (asked != "") {
			t.Errorf("%+v: the node has %d MiB, %v", tc.s, total, err)
		}
		if made, _, err := pools.Ensure(t.Context(), "", storage.Disk{ID: "of before", Size: 1}); err != nil || !made {
			t.Errorf("%+v: a disk for which nobody says a template: %v", tc.s, err)
		}
		if _, err := pools.Volume(t.Context(), "file", "of before"); err != nil {
			t.Errorf("%+v: it is no file: %v", tc.s, err)
		}
	}
}
