package kvm

import (
	"fmt"
	"os"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/hypervisor"
)

// pinned are the processors that each thread of the machine's QEMU may run on.
func (n *node) pinned(d *Driver) map[int]unix.CPUSet {
	n.Helper()
	pid := d.things[uuid].running().pid
	tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		n.Fatal(err)
	}
	out := map[int]unix.CPUSet{}
	for _, task := range tasks {
		thread, err := strconv.Atoi(task.Name())
		var set unix.CPUSet
		if err == nil {
			err = unix.SchedGetaffinity(thread, &set)
		}
		if err != nil {
			n.Fatal(err)
		}
		out[thread] = set
	}
	return out
}

// TestAMachineIsPinned: all of it, one of its processors, or none, also behind a driver that comes later.
func TestAMachineIsPinned(t *testing.T) {
	n := newNode(t)
	d := n.open()
	d.cfg.OneThread = false
	spec := n.guest(d)
	var all, last unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil {
		t.Fatal(err)
	}
	var number int
	for number = mostCPUs - 1; !all.IsSet(number); number-- {
		continue
	}
	last.Set(number)
	spec.VCPUs = 2
	for _, tc := range []struct {
		mask  string
		least int // threads that are pinned
		every bool
	}{{"all", 0, false}, {strconv.Itoa(number), 2, true}, {"all:" + strconv.Itoa(number), 1, false}, {strconv.Itoa(number) + ":all", 1, false}} {
		spec.Params = map[string]any{"kernel_path": "", "cpu_mask": tc.mask}
		n.start(d, spec)
		threads, found := n.pinned(d), 0
		for _, set := range threads {
			if set == last {
				found++
			}
		}
		if all.Count() > 1 && (found < tc.least || tc.least == 0 && found > 0 || tc.every && found != len(threads) || !tc.every && found > tc.least) {
			t.Errorf("cpu_mask=%s: %d of %d threads are pinned", tc.mask, found, len(threads))
		}
		if _, err := d.Stop(t.Context(), one, hypervisor.Stop{}); err != nil {
			t.Fatal(err)
		}
	}
	spec.Params["cpu_mask"] = "0-1023"
	if _, err := d.Start(t.Context(), spec); !fault.Is(err, fault.Environment) {
		t.Errorf("processors that are not there: %v", err)
	}
	n.is(d, hypervisor.Stopped)
}

// TestMasks has the form of the reference.
func TestMasks(t *testing.T) {
	for _, tc := range []struct {
		text string
		want string
	}{
		{"all", "[all]"}, {"0", "[0]"}, {"0-2,5", "[0 1 2 5]"}, {"1:2", "[1][2]"}, {"1-2:all", "[1 2][all]"},
	} {
		sets, err := parseMask(tc.text, 2)
		if err != nil {
			t.Fatal(err)
		}
		text := ""
		for _, set := range sets {
			if set == nil {
				text += "[all]"
				continue
			}
			var cpus []int
			for cpu := range mostCPUs {
				if set.IsSet(cpu) {
					cpus = append(cpus, cpu)
				}
			}
			text += fmt.Sprint(cpus)
		}
		if text != tc.want {
			t.Errorf("%s: %s", tc.text, text)
		}
	}
}
