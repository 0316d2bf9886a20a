package agent

import (
	"path/filepath"
	"testing"

	"pgregory.net/rapid"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/hypervisor"
	"github.com/drover-project/drover/internal/hypervisor/fake"
)

// counted is an agent whose driver tells how often it was asked to reboot.
func counted(t *testing.T, dir string) (a *Agent, reboots func() int) {
	t.Helper()
	count := 0
	driver, err := fake.Open(fake.Config{Dir: filepath.Join(dir, "fake"), Fault: func(c fake.Call) error {
		if c.Method == "reboot" && c.After {
			count++
		}
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	a, err = New(Config{Node: "node1", Dir: dir, Driver: driver})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	})
	return a, func() int { return count }
}

// TestRepeatedOrderIsCarriedOutOnce orders reboots, which the driver would
// carry out as often as it is asked to.
func TestRepeatedOrderIsCarriedOutOnce(t *testing.T) {
	a, reboots := counted(t, t.TempDir())
	for _, name := range []string{"one", "two"} {
		if err := a.Start(t.Context(), Order{Epoch: 3, Job: 1, Step: 1}, hypervisor.Spec{Name: name}, nil); err != nil {
			t.Fatal(err)
		}
	}
	for _, tc := range []struct {
		what  string
		on    string
		order Order
		want  int
	}{
		{"an order", "one", Order{Epoch: 3, Job: 7, Opcode: 1, Step: 1}, 1},
		{"the same again", "one", Order{Epoch: 3, Job: 7, Opcode: 1, Step: 1}, 1},
		{"the next step", "one", Order{Epoch: 3, Job: 7, Opcode: 1, Step: 2}, 2},
		{"the first step, late", "one", Order{Epoch: 3, Job: 7, Opcode: 1, Step: 1}, 2},
		{"the same of another instance", "two", Order{Epoch: 3, Job: 7, Opcode: 1, Step: 1}, 3},
		{"another opcode", "one", Order{Epoch: 3, Job: 7, Opcode: 2, Step: 1}, 4},
		{"the first opcode again, behind the other", "one", Order{Epoch: 3, Job: 7, Opcode: 1, Step: 1}, 5},
		{"the same, resumed by the next leader", "one", Order{Epoch: 4, Job: 7, Opcode: 1, Step: 1}, 6},
		{"nobody's", "one", Order{Epoch: 4}, 7},
		{"nobody's again", "one", Order{Epoch: 4}, 8},
	} {
		if err := a.RebootSoft(t.Context(), tc.order, tc.on, nil); err != nil {
			t.Fatalf("%s: %v", tc.what, err)
		}
		if got := reboots(); got != tc.want {
			t.Fatalf("after %s: %d reboots, want %d", tc.what, got, tc.want)
		}
	}
}

func TestFailedOrderMayBeTriedAgain(t *testing.T) {
	a, reboots := counted(t, t.TempDir())
	order := Order{Epoch: 1, Job: 7, Step: 1}
	if err := a.RebootSoft(t.Context(), order, "one", nil); !fault.Is(err, fault.WrongState) {
		t.Fatal(err)
	}
	if err := a.Start(t.Context(), Order{Epoch: 1, Job: 7, Step: 2}, hypervisor.Spec{Name: "one"}, nil); err != nil {
		t.Fatal(err)
	}
	if err := a.RebootSoft(t.Context(), order, "one", nil); err != nil || reboots() != 1 {
		t.Fatalf("%v, %d reboots", err, reboots())
	}
}

// TestOrderOfAnOldEpochIsRefused also after the agent was started anew, and by the
// agent that a former leader still has of the same node.
func TestOrderOfAnOldEpochIsRefused(t *testing.T) {
	dir := t.TempDir()
	former, _ := counted(t, dir)
	a, _ := counted(t, dir)
	spec := hypervisor.Spec{Name: "one"}
	if err := a.Start(t.Context(), Order{Epoch: 5, Job: 1, Step: 1}, spec, nil); err != nil {
		t.Fatal(err)
	}
	again, _ := counted(t, dir)
	for _, a := range []*Agent{a, again, former} {
		err := a.Stop(t.Context(), Order{Epoch: 4, Job: 2, Step: 1}, "one", hypervisor.Stop{Force: true}, nil)
		if !fault.Is(err, fault.Fenced) {
			t.Errorf("an order of an old epoch: %v", err)
		}
		if i, err := again.Instance(t.Context(), "one"); err != nil || i.State != hypervisor.Running {
			t.Errorf("after it the instance is %+v, %v", i, err)
		}
	}
}

// TestLedgerIsBounded gives orders for more instances than are remembered.
func TestLedgerIsBounded(t *testing.T) {
	l, err := openLedger(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.StringMatching("[a-z]{4}").Draw(t, "instance")
		for i := range maxLatest / 10 {
			o := Order{Epoch: 1, Job: 1, Step: i + 1}
			if _, err := l.admit(o, name+string(rune('A'+i)), "start"); err != nil {
				t.Fatal(err)
			}
			l.enter(o, name+string(rune('A'+i)))
		}
		if len(l.latest) > maxLatest || len(l.latest) != len(l.names) {
			t.Fatalf("%d instances, %d names", len(l.latest), len(l.names))
		}
	})
	if len(l.latest) != maxLatest {
		t.Fatalf("only %d instances are remembered", len(l.latest))
	}
}
