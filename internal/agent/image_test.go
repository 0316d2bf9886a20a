package agent

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/hypervisor"
	"github.com/drover-project/drover/internal/hypervisor/fake"
	"github.com/drover-project/drover/internal/qemuimg"
	"github.com/drover-project/drover/internal/testkit"
)

// filed is a driver whose instances have one disk, which is a file, and keep a CD.
type filed struct {
	hypervisor.Driver
	disk string
	// format is that of the disk; empty for one that is as it is.
	format string
	cd     []byte
	// asked is called when somebody asks for an instance; nil for nobody.
	asked func()
}

func (f *filed) Instance(ctx context.Context, of hypervisor.Thing) (hypervisor.Instance, error) {
	i, err := f.Driver.Instance(ctx, of)
	if f.asked != nil {
		f.asked()
	}
	for n := range i.Disks {
		i.Disks[n].Path = f.disk
		if f.format != "" {
			i.Disks[n].File = &qemuimg.File{Path: f.disk, Format: f.format}
		}
	}
	return i, err
}

func (f *filed) Seed(_ context.Context, _ hypervisor.Thing, cd []byte) error {
	f.cd = cd
	return nil
}

// imaged is an agent with an instance on whose disk of 3 MiB something is left of before, and an image of 1 MiB.
type imaged struct {
	*testing.T
	*Agent
	driver *filed
	spec   hypervisor.Spec
	image  Image
	// content is that of the image.
	content []byte
}

func newImaged(t *testing.T) *imaged {
	t.Helper()
	dir := testkit.OpenDir(t)
	pretended, err := fake.Open(fake.Config{Dir: filepath.Join(dir, "fake")})
	if err != nil {
		t.Fatal(err)
	}
	r := &imaged{T: t, driver: &filed{Driver: pretended, disk: filepath.Join(dir, "disk")}, content: bytes.Repeat([]byte{'i'}, 1<<20)}
	if r.Agent, err = New(Config{Node: "node1", Dir: filepath.Join(dir, "agent"), Driver: r.driver}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	r.spec = hypervisor.Spec{Name: "one", UUID: "uuid-1", Disks: []hypervisor.Disk{{UUID: "d1", Size: 3}}}
	source, sum := filepath.Join(dir, "image"), sha256.Sum256(r.content)
	r.image = Image{Name: "tiny", SHA256: hex.EncodeToString(sum[:]), Format: "raw", Source: source, Size: 1 << 20, VirtualSize: 1}
	err = errors.Join(os.WriteFile(source, r.content, 0o644), os.WriteFile(r.driver.disk, bytes.Repeat([]byte{'x'}, 3<<20), 0o600),
		r.Prepare(t.Context(), Order{Epoch: 1, Job: 1, Step: 1}, r.spec.Thing(), r.spec.Disks))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func (r *imaged) install(job int, params map[string]string) error {
	r.Helper()
	if _, err := qemuimg.Program(); err != nil {
		testkit.Missingf(r.T, "qemu-img is not installed")
	}
	return r.InstallImage(r.Context(), Order{Epoch: 1, Job: 1, Opcode: job, Step: 1}, r.spec, r.image, params, func(string) {})
}

// has tells of a disk that does not begin with the content, and reads as zeros behind it.
func (r *imaged) has(content []byte) {
	r.Helper()
	got, err := os.ReadFile(r.driver.disk)
	if err != nil || len(got) != 3<<20 || !bytes.Equal(got[:len(content)], content) || len(bytes.Trim(got[len(content):], "\x00")) > 0 {
		r.Errorf("the disk has %d bytes, begins with %.10q and ends with %.10q, %v", len(got), got[:10], got[len(got)-10:], err)
	}
}

func TestAnImageIsInstalled(t *testing.T) {
	r := newImaged(t)
	if err := r.install(1, map[string]string{cluster.UserData: "#cloud-config\nx: y\n", cluster.SSHKeys: "ssh-ed25519 AAAA\n"}); err != nil {
		t.Fatal(err)
	}
	r.has(r.content)
	for _, want := range []string{"CD001", "#cloud-config\nx: y\n", "instance-id: \"uuid-1\"\nlocal-hostname: \"one\"", "ssh-ed25519 AAAA"} {
		if !bytes.Contains(r.driver.cd, []byte(want)) {
			t.Errorf("its CD lacks %q", want)
		}
	}
}

// TestScriptsWriteOnDisksAsTheyAre, and are not let near others.
func TestScriptsWriteOnDisksAsTheyAre(t *testing.T) {
	r := newImaged(t)
	r.driver.format = "qcow2"
	dir := filepath.Join(r.cfg.Dir, "os", "debian")
	err := errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(filepath.Join(dir, "ganeti_api_version"), []byte("20\n"), 0o644),
		os.WriteFile(filepath.Join(dir, "create"), []byte("#!/bin/sh\necho x >\"$DISK_0_PATH\"\n"), 0o755))
	if err != nil {
		t.Fatal(err)
	}
	err = r.Install(t.Context(), Order{Epoch: 1, Job: 2, Step: 1}, r.spec, "debian", nil, func(string) {})
	if !fault.Is(err, fault.Unsupported) || !strings.Contains(err.Error(), "disk 0 of instance one has the format qcow2") {
		t.Error(err)
	}
	if got, err := os.ReadFile(r.driver.disk); err != nil || got[0] != 'x' || len(got) != 3<<20 {
		t.Errorf("the disk has %d bytes, %v", len(got), err)
	}
}

func TestAnotherSystemForgetsTheSeed(t *testing.T) {
	r := newImaged(t)
	if err := r.install(1, map[string]string{cluster.UserData: "a secret"}); err != nil {
		t.Fatal(err)
	}
	if err := r.install(2, nil); err != nil || bytes.Contains(r.driver.cd, []byte("a secret")) || len(r.driver.cd) == 0 {
		t.Errorf("installed again: %v", err)
	}
	if err := r.Install(t.Context(), Order{Epoch: 1, Job: 9, Step: 1}, r.spec, BuiltinOS, nil, func(string) {}); err != nil || len(r.driver.cd) > 0 {
		t.Errorf("another system: %v, a CD of %d bytes", err, len(r.driver.cd))
	}
}

// TestAnImageThatIsNotWrittenWhole has the program fail in its midst.
func TestAnImageThatIsNotWrittenWhole(t *testing.T) {
	r := newImaged(t)
	bin := t.TempDir()
	for name, script := range map[string]string{
		"fails":    "dd if=/dev/zero bs=1 count=0 2>/dev/null; printf half >\"$last\"; truncate -s 3M \"$last\"; echo 'qemu-img: error while writing: No space left on device' >&2; exit 1",
		"is ended": "printf half >\"$last\"; truncate -s 3M \"$last\"; kill -9 $$",
	} {
		text := "#!/bin/sh\nfor last; do :; done\n" + script + "\n"
		if err := os.WriteFile(filepath.Join(bin, "qemu-img"), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
		t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
		err := r.install(len(name), map[string]string{cluster.UserData: "a secret"})
		if err == nil || !strings.Contains(err.Error(), "image tiny") || name == "fails" && !fault.Is(err, fault.Exhausted) {
			t.Errorf("a program that %s: %v", name, err)
		}
		r.has(nil)
		if len(r.driver.cd) > 0 {
			t.Errorf("behind a program that %s there is a CD", name)
		}
	}
}

// smallRoom has a directory be a file system of its own, of 512 KiB.
func smallRoom(t *testing.T, dir string) {
	t.Helper()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=512k"); err != nil {
		t.Skipf("a small file system takes root: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
}

// hasRoom tells of a file system that has less room than an empty one.
func hasRoom(t *testing.T, dir string) {
	t.Helper()
	var room syscall.Statfs_t
	if err := syscall.Statfs(dir, &room); err != nil || room.Bavail+1 < room.Blocks {
		t.Errorf("of %d blocks %d are free, %v", room.Blocks, room.Bavail, err)
	}
}

// TestADiskThatFillsUp in the midst of a copy: the real program says so, and what it wrote is taken back, so that there is room again.
func TestADiskThatFillsUp(t *testing.T) {
	r := newImaged(t)
	small := t.TempDir()
	smallRoom(t, small)
	r.driver.disk = filepath.Join(small, "disk")
	if err := errors.Join(os.WriteFile(r.driver.disk, nil, 0o600), os.Truncate(r.driver.disk, 3<<20)); err != nil {
		t.Fatal(err)
	}
	err := r.install(1, map[string]string{cluster.UserData: "a secret"})
	if !fault.Is(err, fault.Exhausted) || !strings.Contains(err.Error(), "image tiny") {
		t.Error(err)
	}
	r.has(nil)
	hasRoom(t, small)
	if len(r.driver.cd) > 0 {
		t.Error("there is a CD for a machine that has no system")
	}
}

func TestWhatCannotBeInstalled(t *testing.T) {
	for name, c := range map[string]struct {
		change func(r *imaged)
		params map[string]string
		code   fault.Code
		want   string
	}{
		"a disk that is too small": {func(r *imaged) { r.image.VirtualSize = 4 }, nil, fault.Invalid, "has 3 MiB, and the image tiny needs 4"},
		"no disk":                  {func(r *imaged) { r.spec.Disks = nil }, nil, fault.Invalid, "has no disk"},
		"another disk":             {func(r *imaged) { r.spec.Disks[0].UUID = "d2" }, nil, fault.WrongState, "does not exist"},
		"a disk that is pretended": {func(r *imaged) { r.driver.disk = "" }, nil, fault.Unsupported, "only pretends"},
		"another sum":              {func(r *imaged) { r.image.SHA256 = strings.Repeat("0", 64) }, nil, fault.Failed, "another SHA-256"},
		"a sum that leads away":    {func(r *imaged) { r.image.SHA256 = "../" + r.image.SHA256 }, nil, fault.Invalid, "no SHA-256"},
		"too much to tell":         {nil, map[string]string{cluster.UserData: strings.Repeat("x", 10<<20)}, fault.TooLarge, "user_data has 10485760 bytes"},
		"a private key":            {nil, map[string]string{cluster.SSHKeys: "-----BEGIN OPENSSH PRIVATE KEY-----"}, fault.Invalid, "private key"},
	} {
		r := newImaged(t)
		if c.change != nil {
			c.change(r)
		}
		if err := r.install(1, c.params); !fault.Is(err, c.code) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s: %s", name, err, c.code, c.want)
		}
		if r.driver.disk == "" {
			continue
		}
		if got, err := os.ReadFile(r.driver.disk); err != nil || bytes.Count(got, []byte("x")) != 3<<20 || r.driver.cd != nil {
			t.Errorf("%s: something was done, %v", name, err)
		}
	}
}

func TestWhereThereCanBeNoHoles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "disk")
	if err := os.WriteFile(path, bytes.Repeat([]byte{'x'}, 3<<19), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err == nil {
		err = errors.Join(zero(f, 3<<19), f.Close())
	}
	if got, errRead := os.ReadFile(path); err != nil || errRead != nil || len(got) != 3<<19 || len(bytes.Trim(got, "\x00")) > 0 {
		t.Errorf("%d bytes, %v, %v", len(got), err, errRead)
	}
}

// listed is a node that has what a list says.
type listed struct {
	hypervisor.Driver
	all []hypervisor.Instance
}

func (l listed) Instances(context.Context) ([]hypervisor.Instance, error) { return l.all, nil }

// What images disks stand on is not known while there is something whose record cannot be read: it is listed without its UUID and its disks.
func TestWhatStandsOnImages(t *testing.T) {
	known := hypervisor.Instance{Name: "one", UUID: "uuid-1", Disks: []hypervisor.Disk{{Image: "a"}, {Image: "b"}}}
	if sums, err := stoodOn(listed{all: []hypervisor.Instance{known}})(); err != nil || !sums["a"] || !sums["b"] || sums["c"] {
		t.Errorf("%v, %v", sums, err)
	}
	if _, err := stoodOn(listed{all: []hypervisor.Instance{known, {Name: "uuid-2"}}})(); !fault.Is(err, fault.Environment) || !strings.Contains(err.Error(), "uuid-2") {
		t.Errorf("what nobody can read: %v", err)
	}
}
