package fake

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/hypervisor"
	"github.com/drover-project/drover/internal/hypervisor/hypertest"
)

func open(t *testing.T, cfg Config) *Driver {
	t.Helper()
	d, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func thing(name string) hypervisor.Thing {
	return hypervisor.Thing{UUID: "uuid-of-" + name, Name: name}
}

func spec(name string) hypervisor.Spec { return hypervisor.Spec{UUID: "uuid-of-" + name, Name: name} }

func never() bool { return false }

func TestPort(t *testing.T) {
	hypertest.Run(t, func(t *testing.T, dir string) hypervisor.Driver { return open(t, Config{Dir: dir}) })
}

// TestPortInTheLayoutOfBefore holds that the two layouts are the same to whoever asks.
func TestPortInTheLayoutOfBefore(t *testing.T) {
	hypertest.Run(t, func(t *testing.T, dir string) hypervisor.Driver { return open(t, Config{Dir: dir, ByUUID: never}) })
}

// TestPortWhileItMoves has the layout change in the midst of each case.
func TestPortWhileItMoves(t *testing.T) {
	for after := range 4 {
		t.Run(strconv.Itoa(after), func(t *testing.T) {
			hypertest.Run(t, func(t *testing.T, dir string) hypervisor.Driver {
				asked := 0
				return open(t, Config{Dir: dir, ByUUID: func() bool { asked++; return asked > after }})
			})
		})
	}
}

func TestMemoryRunsOut(t *testing.T) {
	d := open(t, Config{Dir: t.TempDir(), Memory: 1000, MemoryNode: 100})
	start := func(name string) error {
		_, err := d.Start(t.Context(), hypervisor.Spec{Name: name, UUID: "uuid-of-" + name, Memory: 400})
		return err
	}
	for _, name := range []string{"a", "b"} {
		if err := start(name); err != nil {
			t.Fatal(err)
		}
	}
	if err := start("c"); !fault.Is(err, fault.Exhausted) || err.Error() != "not enough memory: 400 MiB needed, 100 MiB free" {
		t.Fatalf("third start: %v", err)
	}
	if _, err := d.Stop(t.Context(), thing("a"), hypervisor.Stop{}); err != nil {
		t.Fatal(err)
	}
	if err := start("c"); err != nil {
		t.Fatal("after one stopped:", err)
	}
	if n, err := d.Node(t.Context()); err != nil || n.MemoryFree != 100 {
		t.Fatalf("node: %+v, %v", n, err)
	}
}

func TestFaultHook(t *testing.T) {
	broken := errors.New("broken")
	var fail Call
	d := open(t, Config{Dir: t.TempDir(), Fault: func(c Call) error {
		if c == fail {
			return broken
		}
		return nil
	}})
	fail = Call{Method: "start", Name: "a"}
	if _, err := d.Start(t.Context(), spec("a")); !errors.Is(err, broken) {
		t.Fatalf("start: %v", err)
	}
	if _, err := d.Instance(t.Context(), thing("a")); !fault.Is(err, fault.NotFound) {
		t.Fatalf("a start that failed before left something: %v", err)
	}
	fail.After = true
	if _, err := d.Start(t.Context(), spec("a")); !errors.Is(err, broken) {
		t.Fatalf("start: %v", err)
	}
	if i, err := d.Instance(t.Context(), thing("a")); err != nil || i.State != hypervisor.Running {
		t.Fatalf("a start that failed after left %+v, %v", i, err)
	}
}

func TestOpenIgnoresHalfWrittenFiles(t *testing.T) {
	for name, byUUID := range map[string]func() bool{former: never, present: nil} {
		dir := t.TempDir()
		open(t, Config{Dir: dir, ByUUID: byUUID})
		if err := os.WriteFile(filepath.Join(dir, name, "a.json.new"), []byte("{"), 0o600); err != nil {
			t.Fatal(err)
		}
		list, err := open(t, Config{Dir: dir, ByUUID: byUUID}).Instances(t.Context())
		if err != nil || len(list) != 0 {
			t.Fatalf("%s: got %v, %v", name, list, err)
		}
	}
}

// TestDirectoriesWithUnusualNames: names that look like patterns, above all.
func TestDirectoriesWithUnusualNames(t *testing.T) {
	for _, name := range []string{"[1]", "a*b?", "back\\slash", "Größe"} {
		dir := filepath.Join(t.TempDir(), name)
		if _, err := open(t, Config{Dir: dir}).Start(t.Context(), spec("one")); err != nil {
			t.Fatal(err)
		}
		if i, err := open(t, Config{Dir: dir}).Instance(t.Context(), thing("one")); err != nil || i.State != hypervisor.Running {
			t.Errorf("in %q, after it was opened again: %+v, %v", name, i, err)
		}
	}
}

// TestUnreadableFileCostsItsOwnInstance only, until it is removed.
func TestUnreadableFileCostsItsOwnInstance(t *testing.T) {
	for what, text := range map[string]string{"empty": "", "cut short": `{"uuid":"u","sta`, "of another kind": "[]", "of another": `{"name":"bad","uuid":"u","state":"stopped"}`} {
		dir := t.TempDir()
		if _, err := open(t, Config{Dir: dir}).Start(t.Context(), spec("good")); err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(dir, present, thing("bad").UUID+suffix)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		d := open(t, Config{Dir: dir})
		list, err := d.Instances(t.Context())
		if err != nil || len(list) != 1 || list[0].Name != "good" {
			t.Errorf("%s: the node has %+v, %v", what, list, err)
		}
		_, errState := d.Instance(t.Context(), thing("bad"))
		_, errStart := d.Start(t.Context(), spec("bad"))
		_, errRename := d.Rename(t.Context(), thing("bad"), "other")
		for _, err := range []error{errState, errStart, errRename} {
			if !fault.Is(err, fault.Environment) {
				t.Errorf("%s: a call for it is answered with %v", what, err)
			}
		}
		if got, err := os.ReadFile(file); err != nil || string(got) != text {
			t.Errorf("%s: the file was changed to %q, %v", what, got, err)
		}
		if changed, err := d.Remove(t.Context(), thing("bad")); err != nil || !changed {
			t.Errorf("%s: removing it: %v, %v", what, changed, err)
		}
		if _, err := d.Start(t.Context(), spec("bad")); err != nil {
			t.Errorf("%s: after it was removed: %v", what, err)
		}
	}
}

// TestCopiesTakeTheirTime: what is copied from another node is behind for as long as the rate says, also for a driver that was opened meanwhile, and
// room elsewhere is none of the node's.
func TestCopiesTakeTheirTime(t *testing.T) {
	now, dir := time.Unix(1000, 0), t.TempDir()
	open := func() *Driver {
		d, err := Open(Config{Dir: dir, Disk: 1000, SyncRate: 10, Now: func() time.Time { return now }})
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	d, of := open(), hypervisor.Thing{UUID: "u", Name: "one"}
	behind := func(want ...int) {
		t.Helper()
		i, err := d.Instance(t.Context(), of)
		if err != nil || len(i.Disks) != len(want) {
			t.Fatalf("%+v, %v", i, err)
		}
		for n := range want {
			if i.Disks[n].Behind != want[n] {
				t.Errorf("disk %d is %d MiB behind, want %d", n, i.Disks[n].Behind, want[n])
			}
		}
	}
	prepare := func(disks ...hypervisor.Disk) {
		t.Helper()
		if _, err := d.Prepare(t.Context(), of, hypervisor.Mark{}, disks); err != nil {
			t.Fatal(err)
		}
	}
	copied := hypervisor.Disk{UUID: "a", Size: 100, Template: "drbd", From: "node1"}
	prepare(copied, hypervisor.Disk{UUID: "b", Size: 100, Template: "drbd"}, hypervisor.Disk{UUID: "c", Size: 5000, Template: "ext"})
	behind(100, 0, 0)
	now = now.Add(4 * time.Second)
	d = open()
	behind(60, 0, 0)
	copied.Size = 150
	prepare(copied)
	behind(110, 0, 0)
	if n, err := d.Node(t.Context()); err != nil || n.DiskFree != 1000-250 {
		t.Errorf("%+v, %v", n, err)
	}
	now = now.Add(time.Hour)
	behind(0, 0, 0)
	for range 2 { // made anew it is copied anew
		if _, err := d.Drop(t.Context(), of, []string{"a"}); err != nil {
			t.Fatal(err)
		}
	}
	prepare(copied)
	behind(0, 0, 150)
}

// A node that was switched off and on is gone for a while, for whoever asks, and tells when it is back.
func TestANodeThatIsSwitchedOffAndOnIsGone(t *testing.T) {
	now := time.Unix(1000, 0)
	d := open(t, Config{Dir: t.TempDir(), Away: 5 * time.Millisecond, Now: func() time.Time { return now }})
	back := make(chan struct{}, 1)
	d.Watch(func() { back <- struct{}{} })
	reset, err := d.Powercycle()
	if err == nil {
		err = reset(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Node(t.Context()); !fault.Is(err, fault.Environment) {
		t.Errorf("it tells its figures: %v", err)
	}
	if _, err := d.Prepare(t.Context(), hypervisor.Thing{UUID: "u", Name: "one"}, hypervisor.Mark{}, nil); !fault.Is(err, fault.Environment) {
		t.Errorf("it makes an instance: %v", err)
	}
	now = now.Add(5 * time.Millisecond)
	if _, err := d.Node(t.Context()); err != nil {
		t.Errorf("it is back: %v", err)
	}
	<-back
}
