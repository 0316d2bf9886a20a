// Package hypertest is the conformance suite of the hypervisor port: every
// driver passes it, so code above the port needs no case for any of them.
package hypertest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/hypervisor"
)

// Opener gives the suite a driver whose state lives in dir. It is called again
// with the same directory to see what survived, after the driver before was
// closed or left behind.
type Opener func(t *testing.T, dir string) hypervisor.Driver

// Run checks the driver against the contract of package hypervisor.
func Run(t *testing.T, open Opener) {
	cases := []struct {
		name string
		run  func(*suite)
	}{
		{"life", (*suite).life},
		{"idempotent", (*suite).idempotent},
		{"disks", (*suite).disks},
		{"blank", (*suite).blank},
		{"stranger", (*suite).stranger},
		{"startNeedsDisks", (*suite).startNeedsDisks},
		{"reboot", (*suite).reboot},
		{"paused", (*suite).paused},
		{"removeRunning", (*suite).removeRunning},
		{"rename", (*suite).rename},
		{"unknown", (*suite).unknown},
		{"badNames", (*suite).badNames},
		{"memory", (*suite).memory},
		{"survives", (*suite).survives},
		{"canceled", (*suite).canceled},
		{"concurrent", (*suite).concurrent},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			c.run(&suite{T: t, open: open, dir: dir, d: open(t, dir)})
		})
	}
}

type suite struct {
	*testing.T
	open Opener
	dir  string
	d    hypervisor.Driver
}

func spec(name string, disks ...hypervisor.Disk) hypervisor.Spec {
	return hypervisor.Spec{Name: name, UUID: "uuid-of-" + name, Memory: 64, VCPUs: 1, Disks: disks,
		NICs: []hypervisor.NIC{{UUID: "nic-of-" + name, MAC: "aa:00:00:00:00:01", Mode: "bridged", Link: "br0"}}}
}

// do checks one idempotent call: no error, and whether it changed something.
func (s *suite) do(what string, want bool) func(bool, error) {
	s.Helper()
	return func(changed bool, err error) {
		s.Helper()
		if err != nil {
			s.Fatalf("%s: %v", what, err)
		}
		if changed != want {
			s.Fatalf("%s: changed = %v, want %v", what, changed, want)
		}
	}
}

func (s *suite) refused(what string, code fault.Code, err error) {
	s.Helper()
	if !fault.Is(err, code) {
		s.Fatalf("%s: got %v, want an error with code %s", what, err, code)
	}
}

func (s *suite) state(name string, want hypervisor.State) hypervisor.Instance {
	s.Helper()
	i, err := s.d.Instance(s.Context(), name)
	if err != nil {
		s.Fatalf("Instance(%s): %v", name, err)
	}
	if i.State != want {
		s.Fatalf("instance %s is %s, want %s", name, i.State, want)
	}
	return i
}

func (s *suite) node() hypervisor.Node {
	s.Helper()
	n, err := s.d.Node(s.Context())
	if err != nil {
		s.Fatalf("Node: %v", err)
	}
	return n
}

func (s *suite) life() {
	ctx := s.Context()
	if s.d.Kind() == "" {
		s.Fatal("a driver needs a kind")
	}
	disk := hypervisor.Disk{UUID: "d1", Size: 8, Template: "file"}
	i := spec("one.example", disk)
	s.do("Prepare", true)(s.d.Prepare(ctx, i.Name, i.UUID, i.Disks))
	s.state(i.Name, hypervisor.Stopped)
	s.do("Start", true)(s.d.Start(ctx, i))
	got := s.state(i.Name, hypervisor.Running)
	if got.UUID != i.UUID || got.Memory != 64 || got.VCPUs != 1 || !got.Active() {
		s.Fatalf("running instance is %+v", got)
	}
	s.do("Stop", true)(s.d.Stop(ctx, i.Name, hypervisor.Stop{}))
	if got := s.state(i.Name, hypervisor.Stopped); got.Memory != 0 || len(got.Disks) != 1 {
		s.Fatalf("stopped instance is %+v", got)
	}
	s.do("Remove", true)(s.d.Remove(ctx, i.Name))
	_, err := s.d.Instance(ctx, i.Name)
	s.refused("Instance of a removed one", fault.NotFound, err)
}

func (s *suite) idempotent() {
	ctx := s.Context()
	i := spec("one.example")
	s.do("first Prepare", true)(s.d.Prepare(ctx, i.Name, i.UUID, nil))
	s.do("second Prepare", false)(s.d.Prepare(ctx, i.Name, i.UUID, nil))
	s.do("first Start", true)(s.d.Start(ctx, i))
	s.do("second Start", false)(s.d.Start(ctx, i))
	s.do("first Stop", true)(s.d.Stop(ctx, i.Name, hypervisor.Stop{Force: true}))
	s.do("second Stop", false)(s.d.Stop(ctx, i.Name, hypervisor.Stop{Force: true}))
	s.do("first Remove", true)(s.d.Remove(ctx, i.Name))
	s.do("second Remove", false)(s.d.Remove(ctx, i.Name))
}

func (s *suite) disks() {
	ctx := s.Context()
	before := s.node().DiskFree
	a, b := hypervisor.Disk{UUID: "a", Size: 8}, hypervisor.Disk{UUID: "b", Size: 4}
	s.do("Prepare", true)(s.d.Prepare(ctx, "one", "u", []hypervisor.Disk{a}))
	s.do("Prepare of a second disk", true)(s.d.Prepare(ctx, "one", "u", []hypervisor.Disk{a, b}))
	a.Size = 16
	s.do("growing", true)(s.d.Prepare(ctx, "one", "u", []hypervisor.Disk{a}))
	a.Size = 2
	s.do("never shrinking", false)(s.d.Prepare(ctx, "one", "u", []hypervisor.Disk{a}))
	got := s.state("one", hypervisor.Stopped).Disks
	if len(got) != 2 || got[0].UUID != "a" || got[0].Size != 16 || got[1].UUID != "b" || got[1].Size != 4 {
		s.Fatalf("disks are %+v", got)
	}
	s.do("Drop", true)(s.d.Drop(ctx, "one", []string{"a", "unknown"}))
	s.do("second Drop", false)(s.d.Drop(ctx, "one", []string{"a"}))
	if got := s.state("one", hypervisor.Stopped).Disks; len(got) != 1 || got[0].UUID != "b" {
		s.Fatalf("after Drop the disks are %+v", got)
	}
	_, err := s.d.Prepare(ctx, "two", "u2", []hypervisor.Disk{{UUID: "huge", Size: before + 1<<20}})
	s.refused("a disk larger than the node", fault.Exhausted, err)
	_, err = s.d.Instance(ctx, "two")
	s.refused("an instance whose Prepare failed", fault.NotFound, err)
}

func (s *suite) startNeedsDisks() {
	_, err := s.d.Start(s.Context(), spec("one", hypervisor.Disk{UUID: "missing", Size: 1}))
	s.refused("Start without its disk", fault.WrongState, err)
}

func (s *suite) reboot() {
	ctx := s.Context()
	s.refused("Reboot of an unknown instance", fault.WrongState, s.d.Reboot(ctx, "one"))
	s.do("Start", true)(s.d.Start(ctx, spec("one")))
	if err := s.d.Reboot(ctx, "one"); err != nil {
		s.Fatalf("Reboot: %v", err)
	}
	s.state("one", hypervisor.Running)
	s.do("Stop", true)(s.d.Stop(ctx, "one", hypervisor.Stop{}))
	s.refused("Reboot of a stopped instance", fault.WrongState, s.d.Reboot(ctx, "one"))
}

func (s *suite) paused() {
	i := spec("one")
	i.StartPaused = true
	s.do("Start paused", true)(s.d.Start(s.Context(), i))
	if !s.state("one", hypervisor.Paused).Active() {
		s.Fatal("a paused instance is not active")
	}
	s.do("Stop", true)(s.d.Stop(s.Context(), "one", hypervisor.Stop{}))
}

func (s *suite) removeRunning() {
	s.do("Start", true)(s.d.Start(s.Context(), spec("one")))
	_, err := s.d.Remove(s.Context(), "one")
	s.refused("Remove of a running instance", fault.WrongState, err)
	s.state("one", hypervisor.Running)
}

// blank: what Prepare made is blank until somebody keeps or starts it; that survives.
func (s *suite) blank() {
	ctx := s.Context()
	for name, use := range map[string]func(hypervisor.Spec) (bool, error){
		"kept":    func(i hypervisor.Spec) (bool, error) { return s.d.Keep(ctx, i.Name, i.UUID) },
		"started": func(i hypervisor.Spec) (bool, error) { return s.d.Start(ctx, i) },
	} {
		i := spec(name, hypervisor.Disk{UUID: "disk-of-" + name, Size: 8})
		s.do("Prepare", true)(s.d.Prepare(ctx, i.Name, i.UUID, i.Disks))
		s.do("Prepare again", false)(s.d.Prepare(ctx, i.Name, i.UUID, i.Disks))
		s.d = s.open(s.T, s.dir)
		if got := s.state(name, hypervisor.Stopped); !got.Blank {
			s.Errorf("%s: nothing has used it, and it is %+v", name, got)
		}
		s.do(name, true)(use(i))
		s.do(name+" again", false)(use(i))
		s.do("Stop", name == "started")(s.d.Stop(ctx, name, hypervisor.Stop{}))
		s.do("Prepare once more", false)(s.d.Prepare(ctx, i.Name, i.UUID, i.Disks))
		s.d = s.open(s.T, s.dir)
		if got := s.state(name, hypervisor.Stopped); got.Blank {
			s.Errorf("%s, and it is %+v", name, got)
		}
	}
	_, err := s.d.Keep(ctx, "nobody", "u")
	s.refused("Keep of what is not there", fault.NotFound, err)
}

// stranger: what is under a name with another UUID is left alone.
func (s *suite) stranger() {
	ctx := s.Context()
	disk := hypervisor.Disk{UUID: "old", Size: 8}
	s.do("Prepare", true)(s.d.Prepare(ctx, "one", "first", []hypervisor.Disk{disk}))
	_, err := s.d.Prepare(ctx, "one", "second", []hypervisor.Disk{{UUID: "new", Size: 8}})
	s.refused("Prepare of another one", fault.Exists, err)
	_, err = s.d.Keep(ctx, "one", "second")
	s.refused("Keep of another one", fault.Exists, err)
	_, err = s.d.Start(ctx, hypervisor.Spec{Name: "one", UUID: "second", Memory: 64, VCPUs: 1})
	s.refused("Start of another one", fault.Exists, err)
	if got := s.state("one", hypervisor.Stopped); got.UUID != "first" || len(got.Disks) != 1 || got.Disks[0].UUID != "old" || !got.Blank {
		s.Errorf("the first one is %+v", got)
	}
}

func (s *suite) rename() {
	ctx := s.Context()
	_, err := s.d.Rename(ctx, "a", "b")
	s.refused("Rename of an unknown instance", fault.NotFound, err)
	disk := hypervisor.Disk{UUID: "d", Size: 8}
	i := spec("a", disk)
	s.do("Prepare", true)(s.d.Prepare(ctx, i.Name, i.UUID, i.Disks))
	s.do("Prepare", true)(s.d.Prepare(ctx, "taken", "t", nil))
	_, err = s.d.Rename(ctx, "a", "taken")
	s.refused("Rename to a name in use", fault.Exists, err)
	_, err = s.d.Rename(ctx, "a", "../b")
	s.refused("Rename to a bad name", fault.Invalid, err)
	s.do("first Rename", true)(s.d.Rename(ctx, "a", "b"))
	s.do("second Rename", false)(s.d.Rename(ctx, "a", "b"))
	s.d = s.open(s.T, s.dir)
	if got := s.state("b", hypervisor.Stopped); got.Name != "b" || got.UUID != i.UUID || len(got.Disks) != 1 {
		s.Fatalf("renamed instance is %+v", got)
	}
	_, err = s.d.Instance(ctx, "a")
	s.refused("Instance under the old name", fault.NotFound, err)
	i.Name = "b"
	s.do("Start", true)(s.d.Start(ctx, i))
	_, err = s.d.Rename(ctx, "b", "c")
	s.refused("Rename of a running instance", fault.WrongState, err)
}

func (s *suite) unknown() {
	ctx := s.Context()
	s.do("Stop", false)(s.d.Stop(ctx, "one", hypervisor.Stop{}))
	s.do("Drop", false)(s.d.Drop(ctx, "one", []string{"x"}))
	s.do("Remove", false)(s.d.Remove(ctx, "one"))
	list, err := s.d.Instances(ctx)
	if err != nil || len(list) != 0 {
		s.Fatalf("Instances of an empty node: %v, %v", list, err)
	}
}

func (s *suite) badNames() {
	for _, name := range []string{"..", "../x", "a/b", ".hidden", "a\x00b"} {
		_, err := s.d.Start(s.Context(), spec(name))
		s.refused(fmt.Sprintf("Start(%q)", name), fault.Invalid, err)
		_, err = s.d.Remove(s.Context(), name)
		s.refused(fmt.Sprintf("Remove(%q)", name), fault.Invalid, err)
	}
	s.do("a name in another script", true)(s.d.Start(s.Context(), spec("größe.пример")))
}

func (s *suite) memory() {
	ctx := s.Context()
	before := s.node()
	if before.MemoryTotal <= 0 || before.MemoryFree > before.MemoryTotal || before.CPUs <= 0 || before.Version == "" {
		s.Fatalf("node figures are %+v", before)
	}
	i := spec("huge")
	i.Memory = before.MemoryTotal + 1
	_, err := s.d.Start(ctx, i)
	s.refused("Start of an instance larger than the node", fault.Exhausted, err)
	s.do("Start", true)(s.d.Start(ctx, spec("one")))
	list, err := s.d.Instances(ctx)
	if err != nil || len(list) != 1 || list[0].Name != "one" {
		s.Fatalf("Instances: %v, %v", list, err)
	}
}

// survives leaves the first driver behind without closing it, as a killed
// process does.
func (s *suite) survives() {
	ctx := s.Context()
	disk := hypervisor.Disk{UUID: "d", Size: 8}
	s.do("Prepare", true)(s.d.Prepare(ctx, "b", "uuid-of-b", []hypervisor.Disk{disk}))
	s.do("Start", true)(s.d.Start(ctx, spec("b", disk)))
	s.do("Prepare", true)(s.d.Prepare(ctx, "a", "uuid-of-a", nil))
	s.do("Prepare", true)(s.d.Prepare(ctx, "c", "uuid-of-c", nil))
	s.do("Remove", true)(s.d.Remove(ctx, "c"))
	free := s.node()
	s.d = s.open(s.T, s.dir)
	if b := s.state("b", hypervisor.Running); b.UUID != "uuid-of-b" || b.Memory != 64 || len(b.Disks) != 1 || b.Disks[0] != disk {
		s.Fatalf("after reopening: %+v", b)
	}
	s.state("a", hypervisor.Stopped)
	list, err := s.d.Instances(ctx)
	if err != nil || len(list) != 2 || list[0].Name != "a" || list[1].Name != "b" {
		s.Fatalf("Instances after reopening: %v, %v", list, err)
	}
	if again := s.node(); again.MemoryTotal != free.MemoryTotal || again.DiskTotal != free.DiskTotal {
		s.Fatalf("node figures changed: %+v and %+v", free, again)
	}
	s.do("Stop", true)(s.d.Stop(ctx, "b", hypervisor.Stop{}))
	if err := s.d.Close(); err != nil {
		s.Fatalf("Close: %v", err)
	}
}

func (s *suite) canceled() {
	ctx, cancel := context.WithCancel(s.Context())
	cancel()
	if changed, err := s.d.Start(ctx, spec("one")); err == nil || changed {
		s.Fatalf("Start with a cancelled context: %v, %v", changed, err)
	}
	_, err := s.d.Instance(s.Context(), "one")
	s.refused("Instance after a cancelled Start", fault.NotFound, err)
}

// concurrent starts and stops many instances at once; each ends as its own
// last call left it.
func (s *suite) concurrent() {
	ctx := s.Context()
	const count = 16
	failures := make([]error, count)
	var all sync.WaitGroup
	for n := range count {
		all.Go(func() {
			i := spec(fmt.Sprintf("i%02d", n))
			_, err1 := s.d.Start(ctx, i)
			_, err2 := s.d.Stop(ctx, i.Name, hypervisor.Stop{Force: true})
			var err3 error
			if n%2 == 0 {
				_, err3 = s.d.Start(ctx, i)
			}
			failures[n] = errors.Join(err1, err2, err3)
		})
	}
	all.Wait()
	if err := errors.Join(failures...); err != nil {
		s.Fatal(err)
	}
	for n := range count {
		want := hypervisor.Stopped
		if n%2 == 0 {
			want = hypervisor.Running
		}
		s.state(fmt.Sprintf("i%02d", n), want)
	}
}
