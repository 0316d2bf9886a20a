// Package nodedriver puts together what runs the instances of a node: the hypervisor driver of the kind that is set, over the storage that it
// needs. A new kind is an entry in the table.
//
// Invariant: a directory stays that of one kind; with another it is not opened, for the machines in it would be nobody's
// (TestADirectoryIsOfOneKind).
package nodedriver

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/hypervisor"
	"github.com/drover-project/drover/internal/hypervisor/fake"
	"github.com/drover-project/drover/internal/hypervisor/kvm"
	"github.com/drover-project/drover/internal/storage"
	"github.com/drover-project/drover/internal/storage/ext"
	"github.com/drover-project/drover/internal/storage/file"
	"github.com/drover-project/drover/internal/storage/lvm"
)

// Settings are what an operator can say about how the instances of a node are run, and what else may be run there.
type Settings struct {
	Hypervisor  string `toml:"hypervisor"`
	QEMU        string `toml:"qemu"`
	Accelerator string `toml:"accelerator"`
	GuestUser   string `toml:"guest-user"`
	Network     string `toml:"network"`
	VolumeGroup string `toml:"volume-group"`
	SharedDir   string `toml:"shared-directory"`
	Providers   string `toml:"storage-providers"`
	Commands    string `toml:"restricted-commands"`
	Powercycle  string `toml:"powercycle"`
}

// Defaults are the settings of who says nothing: instances are pretended.
func Defaults() Settings { return Settings{Hypervisor: fake.Kind} }

// Register makes a flag of each setting; what the settings are is the default.
func (s *Settings) Register(f *pflag.FlagSet) {
	f.StringVar(&s.Hypervisor, "hypervisor", s.Hypervisor, "what runs instances: kvm (QEMU, virtual machines) or fake (nothing: they are pretended)")
	f.StringVar(&s.QEMU, "qemu", s.QEMU, "kvm: the program (default: qemu-system-x86_64 of the search path)")
	f.StringVar(&s.Accelerator, "accelerator", s.Accelerator, "kvm: what QEMU runs guests by, kvm or tcg (default: kvm, if a guest that is tried comes up by it)")
	f.StringVar(&s.GuestUser, "guest-user", s.GuestUser, "kvm: user that QEMU runs as, who should own nothing, or FIRST-LAST: each machine as another user with a number of these (default: nobody where this runs as root, else the same)")
	f.StringVar(&s.Network, "network", s.Network, "kvm: what network cards are joined to: bridge (of the node, that their links name; takes root) or user (a network of its own each; default)")
	f.StringVar(&s.VolumeGroup, "volume-group", s.VolumeGroup, "kvm: LVM's volume group that has the disks of template plain (takes root; default: the node has none)")
	f.StringVar(&s.SharedDir, "shared-directory", s.SharedDir, "kvm: directory that several nodes reach, and that has the disks of template sharedfile (default: the node has none)")
	f.StringVar(&s.Providers, "storage-providers", s.Providers, "directory of the scripts that make disks of template ext, a directory for each provider, as Ganeti has them; where instances are pretended none is run (default: the node has none)")
	f.StringVar(&s.Commands, "restricted-commands", s.Commands, "directory of the commands that may be run on the node by name, without arguments, as Ganeti's /etc/ganeti/restricted-commands; they run with the agent's rights (default: none)")
	f.StringVar(&s.Powercycle, "powercycle", s.Powercycle, "kvm: how the machine is switched off and on when a job asks for it: path of a program, or sysrq, which has the kernel do it at once (takes root; default: such jobs are refused)")
}

// Arguments are the settings as flags, for another process that is to run instances likewise.
func (s *Settings) Arguments() (args []string) {
	f := pflag.NewFlagSet("", pflag.ContinueOnError)
	copied := *s
	copied.Register(f)
	f.VisitAll(func(flag *pflag.Flag) {
		if value := flag.Value.String(); value != "" {
			args = append(args, "--"+flag.Name, value)
		}
	})
	return args
}

// networks are what network cards can be joined to.
var networks = []string{"user", "bridge"}

// Values are those that a setting takes, for settings that take few.
func Values() map[string][]string {
	return map[string][]string{"hypervisor": kinds(), "accelerator": {"kvm", "tcg"}, "network": networks}
}

// Node is where a node is, for its driver.
type Node struct {
	// Dir is the node's directory.
	Dir string
	// ByUUID tells whether files may be laid out in a way that programs of before do not know; nil is always.
	ByUUID func() bool
	Log    *slog.Logger
}

// kind is one kind of hypervisor.
type kind struct {
	name string
	// holds are directories of a node in which the kind keeps instances.
	holds []string
	open  func(ctx context.Context, s Settings, n Node) (hypervisor.Driver, error)
	// params are parameters of new clusters that differ from the reference's defaults.
	params cluster.Params
}

// table has all kinds; the first is the default.
var table = []kind{
	{fake.Kind, []string{"hypervisor", "instances"}, openFake, nil},
	{kvm.Kind, []string{"kvm"}, openKVM, cluster.Params{"kernel_path": ""}}, // the reference's is a file that no system has
}

func kinds() (names []string) {
	for _, k := range table {
		names = append(names, k.name)
	}
	return names
}

// Kind is the kind of hypervisor that is set.
func (s *Settings) Kind() string { return cmp.Or(s.Hypervisor, table[0].name) }

// Present refuses settings whose program, volume group or shared directory is not on this machine.
func (s *Settings) Present(ctx context.Context) error {
	if s.Kind() != kvm.Kind {
		return nil
	}
	_, err := kvm.Find(s.QEMU)
	if err == nil && s.VolumeGroup != "" {
		_, err = lvm.Open(ctx, s.VolumeGroup)
	}
	if err == nil && s.SharedDir != "" {
		_, err = file.OpenShared(s.SharedDir)
	}
	return err
}

// Running tells how many virtual machines of a node run, without whoever runs them.
func Running(dir string) int { return kvm.Running(dir) }

// Params are the hypervisor parameters of new clusters that differ from the reference's defaults.
func (s *Settings) Params() cluster.Params {
	k, _ := s.kind()
	return k.params
}

func (s *Settings) kind() (kind, error) {
	i := slices.IndexFunc(table, func(k kind) bool { return k.name == s.Kind() })
	if i < 0 {
		return kind{}, fault.New(fault.Invalid, "hypervisor: there is no %q", s.Hypervisor).At("hypervisor").WithHint("one of: %s", strings.Join(kinds(), ", "))
	}
	return table[i], nil
}

// Check refuses settings that cannot be meant.
func (s *Settings) Check() error {
	if _, err := s.kind(); err != nil {
		return err
	}
	if s.Kind() != kvm.Kind {
		for name, value := range map[string]string{"qemu": s.QEMU, "accelerator": s.Accelerator, "guest-user": s.GuestUser, "network": s.Network, "volume-group": s.VolumeGroup, "shared-directory": s.SharedDir, "powercycle": s.Powercycle} {
			if value != "" {
				return fault.New(fault.Invalid, "%s: it is about hypervisor kvm, and would have no effect with %s", name, s.Kind()).At(name)
			}
		}
	}
	if err := kvm.CheckUser(s.GuestUser); err != nil {
		return err
	}
	if s.VolumeGroup != "" {
		if err := lvm.CheckGroup(s.VolumeGroup); err != nil {
			return fault.New(fault.Invalid, "volume-group: %w", err).At("volume-group")
		}
	}
	for name, path := range map[string]string{"shared-directory": s.SharedDir, "storage-providers": s.Providers, "restricted-commands": s.Commands} {
		if path != "" && !filepath.IsAbs(path) {
			return fault.New(fault.Invalid, "%s: %.200q is no whole path", name, path).At(name)
		}
	}
	if s.Powercycle != "" && s.Powercycle != sysrq && !filepath.IsAbs(s.Powercycle) {
		return fault.New(fault.Invalid, "powercycle: %.200q is neither sysrq nor the whole path of a program", s.Powercycle).At("powercycle")
	}
	if s.Network != "" && !slices.Contains(networks, s.Network) {
		return fault.New(fault.Invalid, "network: there is no %q", s.Network).At("network").WithHint("one of: %s", strings.Join(networks, ", "))
	}
	if !slices.Contains([]string{"", "kvm", "tcg"}, s.Accelerator) {
		return fault.New(fault.Invalid, "accelerator: there is no %q", s.Accelerator).At("accelerator").WithHint("one of: kvm, tcg; or leave it out, and a guest is tried")
	}
	return nil
}

// Open opens the driver of a node.
func (s *Settings) Open(ctx context.Context, n Node) (hypervisor.Driver, error) {
	mine, err := s.kind()
	if err != nil {
		return nil, err
	}
	for _, other := range table {
		for _, dir := range other.holds {
			if other.name != mine.name && hasAny(filepath.Join(n.Dir, dir)) {
				return nil, fault.New(fault.WrongState, "%s has instances of the hypervisor %s, and %s is set", n.Dir, other.name, mine.name).At("hypervisor").
					WithHint("start it with hypervisor %s, or name another directory", other.name)
			}
		}
	}
	return mine.open(ctx, *s, n)
}

// hasAny reports whether a directory has anything in it; one that cannot be read is told by who needs it.
func hasAny(dir string) bool {
	entries, err := os.ReadDir(dir)
	return err == nil && len(entries) > 0 || err != nil && !errors.Is(err, fs.ErrNotExist) && !isFile(dir)
}

func isFile(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && !info.IsDir()
}

func openFake(_ context.Context, s Settings, n Node) (hypervisor.Driver, error) {
	cfg := fake.Config{Dir: n.Dir, ByUUID: n.ByUUID, SyncRate: syncRate, Away: awayTime, Group: pretendedGroup}
	if s.Providers != "" {
		if err := ext.CheckDirectory(s.Providers); err != nil {
			return nil, err
		}
		cfg.Providers = func() ([]storage.Provider, error) { return ext.Providers(s.Providers) }
	}
	return fake.Open(cfg)
}

func openKVM(ctx context.Context, s Settings, n Node) (hypervisor.Driver, error) {
	pools, err := openPools(ctx, s, n, func(ctx context.Context, group string) (storage.Driver, error) { return lvm.Open(ctx, group) })
	if err != nil {
		return nil, err
	}
	return kvm.Open(ctx, kvm.Config{
		Dir: n.Dir, Volumes: pools, QEMU: s.QEMU, Accelerator: s.Accelerator, User: s.GuestUser, Bridges: s.Network == "bridge", Powercycle: powercycle(s.Powercycle, sysrqTrigger), Log: cmp.Or(n.Log, slog.New(slog.DiscardHandler)),
	})
}

// openPools opens where the disks of a node are. A node with a volume group is known for the room of that, as in Ganeti.
func openPools(ctx context.Context, s Settings, n Node, openGroup func(ctx context.Context, group string) (storage.Driver, error)) (pools storage.Pools, err error) {
	if s.VolumeGroup != "" {
		group, err := openGroup(ctx, s.VolumeGroup)
		if err != nil {
			return nil, err
		}
		pools = append(pools, group)
	}
	files, err := file.Open(filepath.Join(n.Dir, "disks"))
	if err != nil {
		return nil, err
	}
	pools = append(pools, files)
	if s.SharedDir != "" {
		shared, err := file.OpenShared(s.SharedDir)
		if err != nil {
			return nil, err
		}
		pools = append(pools, shared)
	}
	if s.Providers != "" {
		provided, err := ext.Open(filepath.Join(n.Dir, "ext"), s.Providers)
		if err != nil {
			return nil, err
		}
		pools = append(pools, provided)
	}
	return pools, nil
}

// Templates are the disk templates that new clusters enable beside diskless.
func (s *Settings) Templates() []string {
	if s.Kind() == fake.Kind {
		return []string{cluster.DiskFile, cluster.DiskDRBD, cluster.DiskPlain, cluster.DiskSharedFile, cluster.DiskExt}
	}
	out := []string{cluster.DiskFile}
	if s.VolumeGroup != "" {
		out = append(out, cluster.DiskPlain)
	}
	if s.SharedDir != "" {
		out = append(out, cluster.DiskSharedFile)
	}
	if s.Providers != "" {
		out = append(out, cluster.DiskExt)
	}
	return out
}

// pretendedGroup is the volume group where volumes are pretended.
const pretendedGroup = "xenvg"

// Group is the volume group of new clusters: that of the nodes, or a name where volumes are pretended.
func (s *Settings) Group() string {
	if s.Kind() == fake.Kind {
		return pretendedGroup
	}
	return s.VolumeGroup
}

// syncRate is how many MiB of a mirrored disk are copied in a second where that is pretended: long enough to be seen, and no more.
const syncRate = 4096

// awayTime is how long a pretended node is gone when it is switched off and on.
const awayTime = 5 * time.Second
