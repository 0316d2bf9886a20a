package kvm

import (
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/hypervisor"
)

// TestSlots: whatever comes and goes, a device keeps its slot, no two have the same, and the first that are free are taken.
func TestSlots(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		have := slots{}
		for range rapid.IntRange(1, 6).Draw(t, "changes") {
			spec := &hypervisor.Spec{}
			for _, uuid := range rapid.SliceOfDistinct(rapid.SampledFrom([]string{"a", "b", "c", "d", "e"}), rapid.ID[string]).Draw(t, "disks") {
				spec.Disks = append(spec.Disks, hypervisor.Disk{UUID: uuid})
			}
			for _, uuid := range rapid.SliceOfDistinct(rapid.SampledFrom([]string{"x", "y", "z"}), rapid.ID[string]).Draw(t, "nics") {
				spec.NICs = append(spec.NICs, hypervisor.NIC{UUID: uuid})
			}
			next := assign(have, spec, false)
			for key, slot := range next {
				if was, had := have[key]; had && was != slot {
					t.Fatalf("%s was in slot %d and is in %d", key, was, slot)
				}
			}
			taken := slices.Sorted(maps.Values(next))
			if len(next) != len(spec.Disks)+len(spec.NICs) || len(slices.Compact(taken)) != len(next) {
				t.Fatalf("%v have the slots %v", spec, next)
			}
			for key, slot := range next {
				if _, had := have[key]; !had && slices.Index(taken, slot) != slot {
					t.Fatalf("slot %d is taken behind a free one: %v, before %v", slot, next, have)
				}
			}
			have = next
		}
	})
}

// second is a disk that is plugged into a machine that runs.
var second = hypervisor.Disk{UUID: "disk-2", Size: 1, Template: "file"}

// TestAGuestThatDoesNotLetGo: a disk that the guest keeps is kept, and told of; when the guest has let go it is gone, and its slot is free.
func TestAGuestThatDoesNotLetGo(t *testing.T) {
	n := newNode(t)
	n.pull = 50 * time.Millisecond
	d := n.open()
	without := n.guest(d)
	n.start(d, without)
	guest := n.look(d)
	guest.await("GUEST-UP") // before, its firmware has not found its slots, and QEMU asks nobody
	if _, err := d.Prepare(t.Context(), one, hypervisor.Mark{}, []hypervisor.Disk{second}); err != nil {
		t.Fatal(err)
	}
	with := without
	with.Disks = append(slices.Clone(without.Disks), second)
	with.NICs = []hypervisor.NIC{{UUID: "nic-1", MAC: "aa:00:00:00:00:01"}}
	if changed, err := d.Adjust(t.Context(), with); err != nil || !changed {
		t.Fatalf("plugging in: %t, %v", changed, err)
	}
	p := d.things[uuid].running()
	there, err := p.devices(t.Context())
	if err != nil || !there["disk1"] || !there["nic2"] {
		t.Fatalf("plugged in are %v, %v", there, err)
	}
	for range 2 { // asking again is no other answer
		without.NICs = with.NICs
		if _, err := d.Adjust(t.Context(), without); !fault.Is(err, fault.Busy) {
			t.Fatalf("a guest without an operating system has let go: %v", err)
		}
		if _, err := d.Drop(t.Context(), one, []string{second.UUID}); !fault.Is(err, fault.WrongState) {
			t.Fatalf("the disk was removed beneath the guest: %v", err)
		}
	}
	if err := d.Reboot(t.Context(), one); err != nil { // which has QEMU take out what was asked for
		t.Fatal(err)
	}
	if _, err := d.Adjust(t.Context(), without); err != nil {
		t.Fatal(err)
	}
	if changed, err := d.Drop(t.Context(), one, []string{second.UUID}); err != nil || !changed {
		t.Fatalf("the disk that the guest has let go of: %t, %v", changed, err)
	}
	var nodes []struct {
		Name string `json:"node-name"`
	}
	if err := p.do(t.Context(), "query-named-block-nodes", map[string]any{"flat": true}, &nodes); err != nil || len(nodes) != 2 {
		t.Errorf("QEMU has open %v, %v", nodes, err)
	}
	var sets []struct{}
	if err := p.do(t.Context(), "query-fdsets", nil, &sets); err != nil || len(sets) != 1 {
		t.Errorf("QEMU holds %d files, %v", len(sets), err)
	}
	if got := d.things[uuid].record().Slots; !maps.Equal(got, slots{"disk-1": 0, "nic-1": 2}) {
		t.Errorf("the devices are in %v", got)
	}
	// A card that is to be another one comes into the slot that it had, though one before it is free.
	guest.await("GUEST-UP")
	without.NICs = []hypervisor.NIC{{UUID: "nic-1", MAC: "aa:00:00:00:00:02"}}
	if _, err := d.Adjust(t.Context(), without); !fault.Is(err, fault.Busy) {
		t.Fatalf("a guest without an operating system has let go of its card: %v", err)
	}
	if err := d.Reboot(t.Context(), one); err != nil {
		t.Fatal(err)
	}
	if changed, err := d.Adjust(t.Context(), without); err != nil || !changed || d.things[uuid].record().Slots["nic-1"] != 2 {
		t.Errorf("another card: %t, %v, %v", changed, err, d.things[uuid].record().Slots)
	}
	// The free slot is the next one's.
	third := hypervisor.Disk{UUID: "disk-3", Size: 1, Template: "file"}
	if _, err := d.Prepare(t.Context(), one, hypervisor.Mark{}, []hypervisor.Disk{third}); err != nil {
		t.Fatal(err)
	}
	without.Disks = append(slices.Clone(without.Disks), third)
	if changed, err := d.Adjust(t.Context(), without); err != nil || !changed || d.things[uuid].record().Slots["disk-3"] != 1 {
		t.Errorf("plugging in: %t, %v, %v", changed, err, d.things[uuid].record().Slots)
	}
}

// TestATryThatNobodyFinished: what a driver had begun to plug in when it was killed is plugged in by the next.
func TestATryThatNobodyFinished(t *testing.T) {
	n := newNode(t)
	d := n.open()
	spec := n.guest(d)
	n.start(d, spec)
	if _, err := d.Prepare(t.Context(), one, hypervisor.Mark{}, []hypervisor.Disk{second}); err != nil {
		t.Fatal(err)
	}
	spec.Disks = append(spec.Disks, second)
	m := d.things[uuid]
	a := adjustment{machine: m, process: m.running(), there: map[string]bool{}, spec: &spec}
	next := *m.record()
	next.Slots, next.Spec = assign(next.Slots, &spec, false), &spec
	if err := m.save(&next); err != nil {
		t.Fatal(err)
	}
	f, err := m.openDisk(t.Context(), 1, second, false)
	if err != nil {
		t.Fatal(err)
	}
	parts := diskParts(&second, params(spec.Params), a.setup())
	if err := a.doWith(t.Context(), f, "add-fd", map[string]any{"fdset-id": parts.set}, nil); err != nil {
		t.Fatal(err)
	}
	if err := a.do(t.Context(), "blockdev-add", parts.nodes[0], nil); err != nil {
		t.Fatal(err)
	}
	_ = f.Close()
	d = n.open()
	if changed, err := d.Adjust(t.Context(), spec); err != nil || !changed {
		t.Fatalf("the next driver: %t, %v", changed, err)
	}
}

// TestTooManyDevices: what there is no slot for is refused, and a machine has the slots that its bus has.
func TestTooManyDevices(t *testing.T) {
	spec := &hypervisor.Spec{}
	for i := range mostSlots {
		spec.Disks = append(spec.Disks, hypervisor.Disk{UUID: string(rune('A' + i))})
	}
	with := plugging(setup{machine: "pc-q35-7.2"}, spec)
	if err := with.fits(); err != nil || with.ports != mostSlots {
		t.Errorf("%d devices: %v, %d ports", mostSlots, err, with.ports)
	}
	spec.NICs = []hypervisor.NIC{{UUID: "nic"}}
	with = plugging(with, spec)
	if err := with.fits(); !fault.Is(err, fault.Exhausted) {
		t.Errorf("one more: %v", err)
	}
}
