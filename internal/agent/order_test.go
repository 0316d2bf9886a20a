package agent

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/agent/effect"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/hypervisor"
	"github.com/drover-project/drover/internal/hypervisor/fake"
	"github.com/drover-project/drover/internal/testkit"
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
		if err := a.Start(t.Context(), Order{Epoch: 3, Job: 1, Step: 1}, hypervisor.Spec{UUID: "uuid of " + name, Name: name}, nil); err != nil {
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
		if err := a.RebootSoft(t.Context(), tc.order, hypervisor.Thing{UUID: "uuid of " + tc.on, Name: tc.on}, nil); err != nil {
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
	if err := a.RebootSoft(t.Context(), order, hypervisor.Thing{UUID: "uuid of one", Name: "one"}, nil); !fault.Is(err, fault.WrongState) {
		t.Fatal(err)
	}
	if err := a.Start(t.Context(), Order{Epoch: 1, Job: 7, Step: 2}, hypervisor.Spec{UUID: "uuid", Name: "one"}, nil); err != nil {
		t.Fatal(err)
	}
	if err := a.RebootSoft(t.Context(), order, theOne, nil); err != nil || reboots() != 1 {
		t.Fatalf("%v, %d reboots", err, reboots())
	}
}

// TestOrderOfAnOldEpochIsRefused also after the agent was started anew, and by the
// agent that a former leader still has of the same node.
func TestOrderOfAnOldEpochIsRefused(t *testing.T) {
	dir := t.TempDir()
	former, _ := counted(t, dir)
	a, _ := counted(t, dir)
	spec := hypervisor.Spec{UUID: "uuid", Name: "one"}
	if err := a.Start(t.Context(), Order{Epoch: 5, Job: 1, Step: 1}, spec, nil); err != nil {
		t.Fatal(err)
	}
	again, _ := counted(t, dir)
	for _, a := range []*Agent{a, again, former} {
		err := a.Stop(t.Context(), Order{Epoch: 4, Job: 2, Step: 1}, theOne, hypervisor.Stop{Force: true}, nil)
		if !fault.Is(err, fault.Fenced) {
			t.Errorf("an order of an old epoch: %v", err)
		}
		if i, err := again.Instance(t.Context(), theOne); err != nil || i.State != hypervisor.Running {
			t.Errorf("after it the instance is %+v, %v", i, err)
		}
	}
}

// TestAScriptEndsBeforeTheNextLeaderActs installs an operating system for one leader, and has the next order something else of the
// instance while the script works. Where it is a rename both names are those of the instance.
func TestAScriptEndsBeforeTheNextLeaderActs(t *testing.T) {
	dir := t.TempDir()
	former, _ := counted(t, dir)
	for i, act := range []func(*Agent, Order) error{
		func(a *Agent, o Order) error {
			return a.Stop(t.Context(), o, theOne, hypervisor.Stop{Force: true}, nil)
		},
		func(a *Agent, o Order) error { return a.Rename(t.Context(), o, theOne, "two") },
		func(a *Agent, o Order) error {
			return a.Rename(t.Context(), o, hypervisor.Thing{UUID: "uuid", Name: "two"}, "one")
		},
	} {
		pipe, awaitGone := held(t)
		writeOS(t, former, "os", map[string]string{"ganeti_api_version": "20\n", "create": "#!/bin/sh\nexec 5>" + pipe + "; echo >" + pipe + ".begun; sleep 1000\n"})
		order := Order{Epoch: int64(2*i + 1), Job: 1, Step: 1}
		if err := former.Prepare(t.Context(), order, theOne, []hypervisor.Disk{{UUID: "disk", Size: 4}}); err != nil {
			t.Fatal(err)
		}
		order.Step++
		done := make(chan error, 1)
		go func() {
			done <- former.Install(t.Context(), order, hypervisor.Spec{UUID: "uuid", Name: "one"}, "os", nil, func(string) {})
		}()
		for limit := time.After(testkit.Patience()); ; {
			if _, err := os.Stat(pipe + ".begun"); err == nil {
				break
			}
			select {
			case <-limit:
				t.Fatal("the script never began")
			case <-time.After(10 * time.Millisecond):
			}
		}
		next, _ := counted(t, dir)
		err := act(next, Order{Epoch: order.Epoch + 1, Job: 2, Step: 1})
		if err != nil && !fault.Is(err, fault.NotFound) {
			t.Errorf("the order of the next leader: %v", err)
		}
		awaitGone()
		if err := <-done; !fault.Is(err, fault.Fenced) {
			t.Errorf("the former leader is told: %v", err)
		}
	}
}

// TestADamagedEpochKeepsOrdersAway and costs nothing else: questions are answered.
func TestADamagedEpochKeepsOrdersAway(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "epoch"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	a, _ := counted(t, dir)
	if all, err := a.Instances(t.Context()); err != nil || len(all) != 0 {
		t.Errorf("%v, %v", all, err)
	}
	err := a.Start(t.Context(), Order{Epoch: 5, Job: 1, Step: 1}, hypervisor.Spec{UUID: "uuid", Name: "one"}, nil)
	if !fault.Is(err, fault.Environment) || !strings.Contains(err.Error(), filepath.Join(dir, "epoch")) {
		t.Errorf("an order: %v", err)
	}
	if err := os.Remove(filepath.Join(dir, "epoch")); err != nil {
		t.Fatal(err)
	}
	if err := a.Start(t.Context(), Order{Epoch: 5, Job: 1, Step: 1}, hypervisor.Spec{UUID: "uuid", Name: "one"}, nil); err != nil {
		t.Errorf("an order when it was removed: %v", err)
	}
}

// TestARelativeDirectory is that of the process, and not of the scripts and commands, which run elsewhere.
func TestARelativeDirectory(t *testing.T) {
	t.Chdir(t.TempDir())
	a := tasked(t, "node")
	writeOS(t, a, "os", map[string]string{"ganeti_api_version": "20\n", "create": "#!/bin/sh\npwd\n"})
	if err := a.Install(t.Context(), Order{Epoch: 1}, hypervisor.Spec{UUID: "uuid", Name: "one"}, "os", nil, func(string) {}); err != nil {
		t.Error(err)
	}
	if err := a.RunTask(t.Context(), Order{Epoch: 1}, aTask(1, "shell", map[string]any{"cmd": "true", "cwd": "/"}), func(string) {}); err != nil {
		t.Error(err)
	}
}

// TestARenameHoldsBothNames: nothing else happens to either meanwhile.
func TestARenameHoldsBothNames(t *testing.T) {
	dir := t.TempDir()
	a, _ := counted(t, dir)
	other, _ := counted(t, dir)
	for _, held := range []string{"one", "two"} {
		hold, err := other.fence.Enter(t.Context(), effect.Claim{Order: Order{Epoch: 1}, Of: thing(held), What: "hold it"})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		if err := a.Rename(ctx, Order{Epoch: 1, Job: 1, Step: 1}, theOne, "two"); !fault.Is(err, fault.Canceled) {
			t.Errorf("while %s is held: %v", held, err)
		}
		cancel()
		hold.Leave()
	}
}
