// Package hypertest is the conformance suite of the hypervisor port: every
// driver passes it, so code above the port needs no case for any of them.
package hypertest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"

	"github.com/drover-project/drover/internal/diskimage"
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
		{"lostDisk", (*suite).lostDisk},
		{"madeBy", (*suite).madeBy},
		{"stranger", (*suite).stranger},
		{"namesakes", (*suite).namesakes},
		{"detached", (*suite).detached},
		{"startNeedsDisks", (*suite).startNeedsDisks},
		{"devices", (*suite).devices},
		{"handedOver", (*suite).handedOver},
		{"reboot", (*suite).reboot},
		{"seed", (*suite).seed},
		{"blank", (*suite).blank},
		{"snapshot", (*suite).snapshot},
		{"paused", (*suite).paused},
		{"removeRunning", (*suite).removeRunning},
		{"rename", (*suite).rename},
		{"unknown", (*suite).unknown},
		{"badNames", (*suite).badNames},
		{"memory", (*suite).memory},
		{"balloon", (*suite).balloon},
		{"survives", (*suite).survives},
		{"powercycle", (*suite).powercycle},
		{"backing", (*suite).backing},
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

// thing is what spec describes.
func thing(name string) hypervisor.Thing {
	return hypervisor.Thing{UUID: "uuid-of-" + name, Name: name}
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
	i, err := s.d.Instance(s.Context(), thing(name))
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
	s.do("Prepare", true)(s.d.Prepare(ctx, i.Thing(), mark, i.Disks))
	s.state(i.Name, hypervisor.Stopped)
	s.do("Start", true)(s.d.Start(ctx, i))
	got := s.state(i.Name, hypervisor.Running)
	if got.UUID != i.UUID || got.Memory != 64 || got.VCPUs != 1 || !got.Active() {
		s.Fatalf("running instance is %+v", got)
	}
	s.do("Stop", true)(s.d.Stop(ctx, i.Thing(), hypervisor.Stop{}))
	if got := s.state(i.Name, hypervisor.Stopped); got.Memory != 0 || len(got.Disks) != 1 {
		s.Fatalf("stopped instance is %+v", got)
	}
	s.do("Remove", true)(s.d.Remove(ctx, i.Thing()))
	_, err := s.d.Instance(ctx, i.Thing())
	s.refused("Instance of a removed one", fault.NotFound, err)
}

func (s *suite) idempotent() {
	ctx := s.Context()
	i := spec("one.example")
	s.do("first Prepare", true)(s.d.Prepare(ctx, i.Thing(), mark, nil))
	s.do("second Prepare", false)(s.d.Prepare(ctx, i.Thing(), mark, nil))
	s.do("first Start", true)(s.d.Start(ctx, i))
	s.do("second Start", false)(s.d.Start(ctx, i))
	s.do("first Stop", true)(s.d.Stop(ctx, i.Thing(), hypervisor.Stop{Force: true}))
	s.do("second Stop", false)(s.d.Stop(ctx, i.Thing(), hypervisor.Stop{Force: true}))
	s.do("first Remove", true)(s.d.Remove(ctx, i.Thing()))
	s.do("second Remove", false)(s.d.Remove(ctx, i.Thing()))
}

func (s *suite) disks() {
	ctx := s.Context()
	before := s.node().DiskFree
	a, b := hypervisor.Disk{UUID: "a", Size: 8}, hypervisor.Disk{UUID: "b", Size: 4}
	s.do("Prepare", true)(s.d.Prepare(ctx, thing("one"), mark, []hypervisor.Disk{a}))
	s.do("Prepare of a second disk", true)(s.d.Prepare(ctx, thing("one"), mark, []hypervisor.Disk{a, b}))
	a.Size = 16
	s.do("growing", true)(s.d.Prepare(ctx, thing("one"), mark, []hypervisor.Disk{a}))
	a.Size = 2
	s.do("never shrinking", false)(s.d.Prepare(ctx, thing("one"), mark, []hypervisor.Disk{a}))
	got := s.state("one", hypervisor.Stopped).Disks
	if len(got) != 2 || got[0].UUID != "a" || got[0].Size != 16 || got[1].UUID != "b" || got[1].Size != 4 {
		s.Fatalf("disks are %+v", got)
	}
	s.do("Drop", true)(s.d.Drop(ctx, thing("one"), []string{"a", "unknown"}))
	s.do("second Drop", false)(s.d.Drop(ctx, thing("one"), []string{"a"}))
	if got := s.state("one", hypervisor.Stopped).Disks; len(got) != 1 || got[0].UUID != "b" {
		s.Fatalf("after Drop the disks are %+v", got)
	}
	_, err := s.d.Prepare(ctx, thing("two"), mark, []hypervisor.Disk{{UUID: "huge", Size: before + 1<<20}})
	s.refused("a disk larger than the node", fault.Exhausted, err)
	_, err = s.d.Instance(ctx, thing("two"))
	s.refused("an instance whose Prepare failed", fault.NotFound, err)
}

// lostDisk: a disk whose content is gone is none of those that the instance has, and is made anew when it is prepared, as large as it is to be then. Pretended disks have none to lose.
func (s *suite) lostDisk() {
	ctx := s.Context()
	disks := []hypervisor.Disk{{UUID: "a", Size: 8}, {UUID: "b", Size: 4}}
	s.do("Prepare", true)(s.d.Prepare(ctx, thing("one"), mark, disks))
	lost := s.state("one", hypervisor.Stopped).Disks[0]
	if lost.Path == "" {
		return
	}
	if err := os.Truncate(lost.Path, 12<<20); err != nil {
		s.Fatal(err)
	}
	if got := s.state("one", hypervisor.Stopped).Disks[0]; got.Size != 8 || got.Has() != 12 {
		s.Fatalf("a disk that somebody else let grow is %+v", got)
	}
	if err := os.Remove(lost.Path); err != nil {
		s.Fatal(err)
	}
	if got := s.state("one", hypervisor.Stopped).Disks; len(got) != 1 || got[0].UUID != "b" {
		s.Fatalf("without its first disk it has %+v", got)
	}
	_, err := s.d.Start(ctx, spec("one", disks...))
	s.refused("Start without its disk", fault.WrongState, err)
	disks[0].Size = 2
	s.do("Prepare of what is lost", true)(s.d.Prepare(ctx, thing("one"), mark, disks))
	if got := s.state("one", hypervisor.Stopped).Disks; len(got) != 2 || got[0].Size != 2 {
		s.Fatalf("made anew it has %+v", got)
	}
}

// detached: a disk that no instance has is a thing of its own, which the one that had it does not take along, and which another takes over as it is.
func (s *suite) detached() {
	ctx, by := s.Context(), hypervisor.Mark{Life: "this-life", Job: 9}
	a, b := hypervisor.Disk{UUID: "a", Size: 8, Template: "file"}, hypervisor.Disk{UUID: "b", Size: 4, Template: "file"}
	one, two, alone := spec("one", a, b), spec("two"), hypervisor.DetachedDisk("a")
	has := func(of hypervisor.Thing, want ...string) hypervisor.Instance {
		s.Helper()
		got, err := s.d.Instance(ctx, of)
		var disks []string
		for _, d := range got.Disks {
			disks = append(disks, d.UUID)
		}
		if err != nil || !slices.Equal(disks, want) {
			s.Fatalf("%s has %q, %v, want %q", of.Name, disks, err, want)
		}
		return got
	}
	s.do("Prepare", true)(s.d.Prepare(ctx, one.Thing(), mark, one.Disks))
	s.do("Start", true)(s.d.Start(ctx, one))
	_, err := s.d.Detach(ctx, one.Thing(), by, []string{"a"})
	s.refused("Detach of a disk in use", fault.WrongState, err)
	_, err = s.d.Detach(ctx, one.Thing(), by, []string{"nosuch"})
	s.refused("Detach of a disk that there is not", fault.NotFound, err)
	_, err = s.d.Attach(ctx, two.Thing(), by, []string{"a"})
	s.refused("Attach of another's disk", fault.NotFound, err)
	for _, of := range []hypervisor.Thing{alone, hypervisor.DetachedDisk("nosuch"), two.Thing()} {
		_, err = s.d.Instance(ctx, of)
		s.refused("what a refused call has left under "+of.Name, fault.NotFound, err)
	}
	s.do("Stop", true)(s.d.Stop(ctx, one.Thing(), hypervisor.Stop{Force: true}))

	s.do("Detach", true)(s.d.Detach(ctx, one.Thing(), by, []string{"a"}))
	s.do("second Detach", false)(s.d.Detach(ctx, one.Thing(), by, []string{"a"}))
	s.d = s.open(s.T, s.dir)
	s.do("Detach behind another driver", false)(s.d.Detach(ctx, one.Thing(), by, []string{"a"}))
	has(one.Thing(), "b")
	if got := has(alone, "a"); !got.Detached() || got.MadeBy != by || got.Disks[0].Size != 8 || got.Disks[0].Template != "file" {
		s.Errorf("the detached disk is %+v", got)
	}
	_, err = s.d.Start(ctx, one)
	s.refused("Start with a detached disk", fault.WrongState, err)
	s.do("Remove of who had it", true)(s.d.Remove(ctx, one.Thing()))
	has(alone, "a")

	s.do("Attach", true)(s.d.Attach(ctx, two.Thing(), by, []string{"a"}))
	s.do("second Attach", false)(s.d.Attach(ctx, two.Thing(), by, []string{"a"}))
	s.d = s.open(s.T, s.dir)
	if got := has(two.Thing(), "a"); got.Detached() || got.MadeBy != by || got.Disks[0].Size != 8 {
		s.Errorf("who took it over is %+v", got)
	}
	_, err = s.d.Instance(ctx, alone)
	s.refused("the attached disk of its own", fault.NotFound, err)
	s.do("Start with it", true)(s.d.Start(ctx, spec("two", a)))
	s.do("Stop", true)(s.d.Stop(ctx, two.Thing(), hypervisor.Stop{Force: true}))
	s.do("Detach", true)(s.d.Detach(ctx, two.Thing(), by, []string{"a"}))
	s.do("Remove of the disk", true)(s.d.Remove(ctx, alone))
	_, err = s.d.Attach(ctx, two.Thing(), by, []string{"a"})
	s.refused("Attach of what was removed", fault.NotFound, err)
	s.do("Remove", true)(s.d.Remove(ctx, two.Thing()))
}

func (s *suite) startNeedsDisks() {
	_, err := s.d.Start(s.Context(), spec("one", hypervisor.Disk{UUID: "missing", Size: 1}))
	s.refused("Start without its disk", fault.WrongState, err)
}

// devices are plugged into what runs, once; what does not run has them when it is started.
func (s *suite) devices() {
	ctx := s.Context()
	a, b := hypervisor.Disk{UUID: "a", Size: 1, Template: "file"}, hypervisor.Disk{UUID: "b", Size: 1, Template: "file"}
	with := spec("one", a, b)
	with.NICs = append(with.NICs, hypervisor.NIC{UUID: "second-nic-of-one", MAC: "aa:00:00:00:00:02", Mode: "bridged", Link: "br0"})
	if !s.node().Hotplug {
		_, err := s.d.Adjust(ctx, with)
		s.refused("Adjust", fault.Unsupported, err)
		return
	}
	s.do("Adjust of nothing", false)(s.d.Adjust(ctx, with))
	s.do("Prepare", true)(s.d.Prepare(ctx, thing("one"), hypervisor.Mark{}, []hypervisor.Disk{a}))
	s.do("Adjust of what does not run", false)(s.d.Adjust(ctx, with))
	s.do("Start", true)(s.d.Start(ctx, spec("one", a)))
	_, err := s.d.Adjust(ctx, with)
	s.refused("Adjust with a disk that is not there", fault.WrongState, err)
	s.do("Prepare", true)(s.d.Prepare(ctx, thing("one"), hypervisor.Mark{}, []hypervisor.Disk{b}))
	s.do("Adjust", true)(s.d.Adjust(ctx, with))
	s.do("second Adjust", false)(s.d.Adjust(ctx, with))
	_, err = s.d.Drop(ctx, thing("one"), []string{"b"})
	s.refused("Drop of a disk that was plugged in", fault.WrongState, err)
	s.d = s.open(s.T, s.dir)
	_, err = s.d.Drop(ctx, thing("one"), []string{"b"})
	s.refused("Drop behind another driver", fault.WrongState, err)
	s.do("Adjust behind another driver", false)(s.d.Adjust(ctx, with))
	s.do("Prepare of a larger one", true)(s.d.Prepare(ctx, thing("one"), hypervisor.Mark{}, []hypervisor.Disk{{UUID: "b", Size: 2, Template: "file"}}))
	s.do("Stop", true)(s.d.Stop(ctx, thing("one"), hypervisor.Stop{Force: true}))
	s.do("Drop", true)(s.d.Drop(ctx, thing("one"), []string{"b"}))
}

// handedOver is what one driver sends and another receives: it is active on neither until it is started, at most once, and keeps the memory
// where it is waited for.
func (s *suite) handedOver() {
	ctx, disk := s.Context(), hypervisor.Disk{UUID: "a", Size: 1, Template: "file"}
	i := spec("one", disk)
	if !s.node().Migrates {
		_, err := s.d.Receive(ctx, i)
		s.refused("Receive", fault.Unsupported, err)
		_, err = s.d.Send(ctx, i.Thing())
		s.refused("Send", fault.Unsupported, err)
		return
	}
	dir := s.TempDir()
	other := s.open(s.T, dir)
	s.do("Send of nothing", false)(s.d.Send(ctx, i.Thing()))
	_, err := other.Receive(ctx, i)
	s.refused("Receive without its disk", fault.WrongState, err)
	for _, d := range []hypervisor.Driver{s.d, other} {
		s.do("Prepare", true)(d.Prepare(ctx, i.Thing(), mark, i.Disks))
	}
	s.do("Start", true)(s.d.Start(ctx, i))
	huge := i
	huge.Memory = s.node().MemoryFree + 1<<20
	_, err = other.Receive(ctx, huge)
	s.refused("Receive of more than there is", fault.Exhausted, err)
	s.do("Receive", true)(other.Receive(ctx, i))
	s.do("second Receive", false)(other.Receive(ctx, i))
	other = s.open(s.T, dir)
	got, err := other.Instance(ctx, i.Thing())
	if err != nil || got.State != hypervisor.Incoming || got.Active() || got.Memory != 64 {
		s.Fatalf("what waits is %+v, %v", got, err)
	}
	s.refused("Reboot of what waits", fault.WrongState, other.Reboot(ctx, i.Thing()))
	_, err = other.Remove(ctx, i.Thing())
	s.refused("Remove of what waits", fault.WrongState, err)
	s.do("Send", true)(s.d.Send(ctx, i.Thing()))
	s.do("second Send", false)(s.d.Send(ctx, i.Thing()))
	s.state("one", hypervisor.Stopped)
	s.do("Start of what waits", true)(other.Start(ctx, i))
	s.do("Receive of what runs", false)(other.Receive(ctx, i))
	if got, err = other.Instance(ctx, i.Thing()); err != nil || got.State != hypervisor.Running {
		s.Fatalf("what was received is %+v, %v", got, err)
	}
	s.do("Receive where it was", true)(s.d.Receive(ctx, i))
	s.do("Stop of what waits", true)(s.d.Stop(ctx, i.Thing(), hypervisor.Stop{}))
	s.state("one", hypervisor.Stopped)
}

func (s *suite) reboot() {
	ctx := s.Context()
	s.refused("Reboot of an unknown instance", fault.WrongState, s.d.Reboot(ctx, thing("one")))
	s.do("Start", true)(s.d.Start(ctx, spec("one")))
	if err := s.d.Reboot(ctx, thing("one")); err != nil {
		s.Fatalf("Reboot: %v", err)
	}
	s.state("one", hypervisor.Running)
	s.do("Stop", true)(s.d.Stop(ctx, thing("one"), hypervisor.Stop{}))
	s.refused("Reboot of a stopped instance", fault.WrongState, s.d.Reboot(ctx, thing("one")))
}

func (s *suite) paused() {
	i := spec("one")
	i.StartPaused = true
	s.do("Start paused", true)(s.d.Start(s.Context(), i))
	if !s.state("one", hypervisor.Paused).Active() {
		s.Fatal("a paused instance is not active")
	}
	s.do("Stop", true)(s.d.Stop(s.Context(), thing("one"), hypervisor.Stop{}))
}

func (s *suite) removeRunning() {
	s.do("Start", true)(s.d.Start(s.Context(), spec("one")))
	_, err := s.d.Remove(s.Context(), thing("one"))
	s.refused("Remove of a running instance", fault.WrongState, err)
	s.state("one", hypervisor.Running)
}

// mark is by whom the suite makes things.
var mark = hypervisor.Mark{Life: "this-life", Job: 7, Opcode: 1}

func (s *suite) unknown() {
	ctx := s.Context()
	_, err := s.d.Instance(ctx, thing("one"))
	s.refused("Instance", fault.NotFound, err)
	s.do("Stop", false)(s.d.Stop(ctx, thing("one"), hypervisor.Stop{}))
	s.do("Drop", false)(s.d.Drop(ctx, thing("one"), []string{"x"}))
	s.do("Remove", false)(s.d.Remove(ctx, thing("one")))
	list, err := s.d.Instances(ctx)
	if err != nil || len(list) != 0 {
		s.Fatalf("Instances of an empty node: %v, %v", list, err)
	}
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

// balloon has an instance give memory back, and have it again. When its guest does so, and whether, is the guest's.
func (s *suite) balloon() {
	ctx := s.Context()
	_, err := s.d.Balloon(ctx, thing("one"), 64)
	s.refused("Balloon of what is not there", fault.WrongState, err)
	i := spec("one")
	i.MinMemory = 32
	has := func(what string, least, most int) {
		s.Helper()
		if got := s.state("one", hypervisor.Running); got.Memory < least || got.Memory > most {
			s.Fatalf("%s it has %d MiB of memory", what, got.Memory)
		}
	}
	s.do("Start", true)(s.d.Start(ctx, i))
	has("where there is room for all of it", 64, 64)
	for _, bad := range []int{0, -1, 65} {
		_, err := s.d.Balloon(ctx, thing("one"), bad)
		s.refused(fmt.Sprintf("Balloon to %d", bad), fault.Invalid, err)
	}
	s.do("Balloon to what it has", false)(s.d.Balloon(ctx, thing("one"), 64))
	s.do("Balloon", true)(s.d.Balloon(ctx, thing("one"), 48))
	has("behind the first", 48, 64)
	s.d = s.open(s.T, s.dir)
	has("behind another driver", 48, 64)
	if _, err := s.d.Balloon(ctx, thing("one"), 64); err != nil {
		s.Fatalf("Balloon back: %v", err)
	}
	has("behind the second", 48, 64)
	_, err = s.d.Balloon(ctx, hypervisor.Thing{UUID: "another", Name: "one"}, 64)
	s.refused("Balloon of a stranger", fault.Exists, err)
	s.do("Stop", true)(s.d.Stop(ctx, thing("one"), hypervisor.Stop{Force: true}))
	_, err = s.d.Balloon(ctx, thing("one"), 64)
	s.refused("Balloon of what was stopped", fault.WrongState, err)
	i.Memory, i.MinMemory = s.node().MemoryFree+1, 32
	s.do("Start with as much as there is", true)(s.d.Start(ctx, i))
	has("where there is not room for all of it", 32, i.Memory)
}

// survives leaves the first driver behind without closing it, as a killed
// process does.
func (s *suite) survives() {
	ctx := s.Context()
	disk := hypervisor.Disk{UUID: "d", Size: 8}
	s.do("Prepare", true)(s.d.Prepare(ctx, thing("b"), mark, []hypervisor.Disk{disk}))
	s.do("Start", true)(s.d.Start(ctx, spec("b", disk)))
	s.do("Prepare", true)(s.d.Prepare(ctx, thing("a"), mark, nil))
	s.do("Prepare", true)(s.d.Prepare(ctx, thing("c"), mark, nil))
	s.do("Remove", true)(s.d.Remove(ctx, thing("c")))
	free := s.node()
	s.d = s.open(s.T, s.dir)
	if b := s.state("b", hypervisor.Running); b.UUID != "uuid-of-b" || b.Memory != 64 || len(b.Disks) != 1 || b.Disks[0].UUID != disk.UUID || b.Disks[0].Size != disk.Size {
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
	s.do("Stop", true)(s.d.Stop(ctx, thing("b"), hypervisor.Stop{}))
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
	_, err := s.d.Instance(s.Context(), thing("one"))
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
			_, err2 := s.d.Stop(ctx, i.Thing(), hypervisor.Stop{Force: true})
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

// seed gives an instance a CD, where the driver runs machines.
func (s *suite) seed() {
	ctx := s.Context()
	i := spec("one.example")
	cd := make([]byte, 64<<10)
	if err := s.d.Seed(ctx, i.Thing(), nil); err != nil {
		s.Fatalf("taking a seed from what is not there: %v", err)
	}
	s.do("Prepare", true)(s.d.Prepare(ctx, i.Thing(), mark, nil))
	err := s.d.Seed(ctx, i.Thing(), cd)
	if fault.Is(err, fault.Unsupported) {
		return
	}
	if err != nil {
		s.Fatalf("Seed: %v", err)
	}
	s.refused("a seed for what is not there", fault.NotFound, s.d.Seed(ctx, thing("two.example"), cd))
	s.do("Start with a seed", true)(s.d.Start(ctx, i))
	s.refused("another seed for what runs", fault.WrongState, s.d.Seed(ctx, i.Thing(), cd))
	s.do("Stop", true)(s.d.Stop(ctx, i.Thing(), hypervisor.Stop{}))
	for range 2 {
		if err := s.d.Seed(ctx, i.Thing(), nil); err != nil {
			s.Fatalf("taking a seed away: %v", err)
		}
	}
	s.do("Start without a seed", true)(s.d.Start(ctx, i))
	s.do("Stop", true)(s.d.Stop(ctx, i.Thing(), hypervisor.Stop{}))
}

// blank has a disk of the format qcow2 begin anew, where the driver has such disks.
func (s *suite) blank() {
	ctx := s.Context()
	i := spec("one.example")
	i.Disks = []hypervisor.Disk{{UUID: "layers", Size: 1, Template: "file", Format: diskimage.QCOW2}, {UUID: "plain", Size: 1, Template: "file"}}
	s.do("Prepare", true)(s.d.Prepare(ctx, i.Thing(), mark, i.Disks))
	err := s.d.Blank(ctx, i.Thing(), "layers", nil)
	if fault.Is(err, fault.Unsupported) {
		return
	}
	if err != nil {
		s.Fatalf("Blank: %v", err)
	}
	s.refused("a disk that is as it is", fault.Unsupported, s.d.Blank(ctx, i.Thing(), "plain", nil))
	s.refused("a disk that is not there", fault.WrongState, s.d.Blank(ctx, i.Thing(), "none", nil))
	s.refused("an instance that is not there", fault.NotFound, s.d.Blank(ctx, thing("two.example"), "layers", nil))
	s.do("Start", true)(s.d.Start(ctx, i))
	s.refused("what runs", fault.WrongState, s.d.Blank(ctx, i.Thing(), "layers", nil))
	s.do("Stop", true)(s.d.Stop(ctx, i.Thing(), hypervisor.Stop{}))
	s.do("Remove", true)(s.d.Remove(ctx, i.Thing()))
}
