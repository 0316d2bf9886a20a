package kvm

import (
	"testing"
	"time"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/hypervisor"
	"github.com/drover-project/drover/internal/testkit"
	"github.com/drover-project/drover/internal/tinyguest"
	"github.com/drover-project/drover/internal/tinyguest/tinyguesttest"
)

// TestBalloon: a guest with a driver gives memory back and takes it again, which is told, also by a driver that comes later; the boot sector's, which has
// none, has all of it.
func TestBalloon(t *testing.T) {
	guest := tinyguesttest.Guest(t)
	n := newNode(t)
	d := n.open()
	const most, least = tinyguest.MinMemory + 64, tinyguest.MinMemory
	spec := hypervisor.Spec{Name: one.Name, UUID: uuid, Memory: most, MinMemory: least, VCPUs: 1, Params: map[string]any{
		"kernel_path": guest.Kernel, "initrd_path": guest.Initrd, "kernel_args": tinyguest.Arguments}}
	told := changes(d)
	n.start(d, spec)
	n.look(d).awaitFor(4*testkit.Patience(), "GUEST-UP")
	has := func(want int) {
		t.Helper()
		limit := time.After(testkit.Patience())
		for {
			i, err := d.Instance(t.Context(), one)
			if err == nil && i.Memory == want {
				return
			}
			select {
			case <-told:
			case <-limit:
				t.Fatalf("it has %d MiB of memory, %v; want %d", i.Memory, err, want)
			}
		}
	}
	has(most)
	if changed, err := d.Balloon(t.Context(), one, least); err != nil || !changed {
		t.Fatalf("%v, %v", changed, err)
	}
	has(least)
	if changed, err := d.Balloon(t.Context(), one, least); err != nil || changed {
		t.Errorf("once more: %v, %v", changed, err)
	}
	d = n.open()
	told = changes(d)
	has(least)
	if _, err := d.Balloon(t.Context(), one, most); err != nil {
		t.Fatal(err)
	}
	has(most)
}

// TestBalloonThatIsNotThere: a machine that was started without one says so, and is told to have all of its memory.
func TestBalloonThatIsNotThere(t *testing.T) {
	n := newNode(t)
	d := n.open()
	spec := n.guest(d)
	spec.Params["machine_version"] = "pc" // whose own bus lets go of devices
	n.start(d, spec)
	p := d.things[uuid].running()
	if err := p.do(t.Context(), "device_del", map[string]any{"id": "balloon"}, nil); err != nil {
		t.Fatal(err)
	}
	if err := p.do(t.Context(), "system_reset", nil, nil); err != nil { // what the guest was asked to let go of goes with that
		t.Fatal(err)
	}
	for limit := time.After(testkit.Patience()); ; {
		_, err := d.Balloon(t.Context(), one, 32)
		if fault.Is(err, fault.WrongState) {
			break
		}
		select {
		case <-p.pulled:
		case <-limit:
			t.Fatalf("%v", err)
		}
	}
	n.is(d, hypervisor.Running)
	if i, err := d.Instance(t.Context(), one); err != nil || i.Memory != 64 {
		t.Errorf("%+v, %v", i, err)
	}
}
