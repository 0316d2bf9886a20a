package kvm

import (
	"os"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/hypervisor"
	"github.com/drover-project/drover/internal/testkit"
)

// TestEachGuestHasItsUser: of a range of users each machine has one that no other has, keeps it behind the driver, and gives it back when it is removed.
func TestEachGuestHasItsUser(t *testing.T) {
	if os.Geteuid() != 0 {
		testkit.Missingf(t, "only root may give its rights up")
	}
	n := newNode(t)
	n.user = "200000-200001"
	d := n.open()
	var specs []hypervisor.Spec
	for _, name := range []string{"a", "b", "c"} {
		specs = append(specs, hypervisor.Spec{Name: name, UUID: "uuid-of-" + name, Memory: 64, VCPUs: 1, Params: map[string]any{"kernel_path": ""}})
	}
	runsAs := func(uuid string) string {
		t.Helper()
		data, err := os.ReadFile("/proc/" + text(d.things[uuid].running().pid) + "/status")
		if err != nil {
			t.Fatal(err)
		}
		_, line, _ := strings.Cut(string(data), "Uid:\t")
		number, _, _ := strings.Cut(line, "\t")
		return number
	}
	n.start(d, specs[0])
	n.start(d, specs[1])
	if a, b := runsAs(specs[0].UUID), runsAs(specs[1].UUID); a != "200000" || b != "200001" {
		t.Errorf("they run as %s and %s", a, b)
	}
	if _, err := d.Start(t.Context(), specs[2]); !fault.Is(err, fault.Exhausted) {
		t.Errorf("a third one: %v", err)
	}
	d = n.open()
	stop := hypervisor.Stop{Force: true}
	for _, s := range specs[:2] {
		if _, err := d.Stop(t.Context(), s.Thing(), stop); err != nil {
			t.Fatal(err)
		}
	}
	n.start(d, specs[1])
	if b := runsAs(specs[1].UUID); b != "200001" {
		t.Errorf("behind another driver it runs as %s", b)
	}
	if _, err := d.Remove(t.Context(), specs[0].Thing()); err != nil {
		t.Fatal(err)
	}
	n.start(d, specs[2])
	if c := runsAs(specs[2].UUID); c != "200000" {
		t.Errorf("who comes behind one that was removed runs as %s", c)
	}
}

// TestRangesOfUsers: who could be somebody, or nobody, is no guest's user.
func TestRangesOfUsers(t *testing.T) {
	for _, bad := range []string{"0-10", "999-2000", "2000-1000", "1000-4294967295", "1000-99999999999"} {
		if _, err := Open(t.Context(), Config{Dir: t.TempDir(), User: bad, Accelerator: "tcg"}); !fault.Is(err, fault.Invalid) {
			t.Errorf("%s: %v", bad, err)
		}
	}
	if _, is, err := rangeOf("www-data"); is || err != nil {
		t.Errorf("a name: %t, %v", is, err)
	}
}
