package agent

import (
	"errors"
	"path/filepath"
	"testing"
	"testing/synctest"

	"github.com/drover-project/drover/internal/hypervisor"
	"github.com/drover-project/drover/internal/hypervisor/fake"
)

// An order that failed may have changed something all the same: states of before are not handed out any more.
func TestAStateKnowsWhatAFailedOrderDid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		driver, err := fake.Open(fake.Config{Dir: filepath.Join(dir, "fake"), Fault: func(c fake.Call) error {
			if c.Method == "start" && c.After {
				return errors.New("the answer was lost")
			}
			return nil
		}})
		if err != nil {
			t.Fatal(err)
		}
		a, err := New(Config{Node: "node1", Dir: dir, Driver: driver})
		if err != nil {
			t.Fatal(err)
		}
		defer a.Close() //nolint:errcheck // it ends the reports
		synctest.Wait()
		if err := a.Start(t.Context(), Order{}, hypervisor.Spec{UUID: "uuid", Name: "one", Memory: 64}, nil); err == nil {
			t.Fatal("the start did not fail")
		}
		if got := stateIn(t, a, "one"); got != hypervisor.Running {
			t.Errorf("the instance is %q after a start whose answer was lost", got)
		}
	})
}

// Jobs of another life of the store have the same ids: their orders are others.
func TestOrdersOfAnotherLifeAreOthers(t *testing.T) {
	a, reboots := counted(t, t.TempDir())
	if err := a.Start(t.Context(), Order{Epoch: 3, Job: 1, Step: 1}, hypervisor.Spec{UUID: "uuid", Name: "one"}, nil); err != nil {
		t.Fatal(err)
	}
	for i, life := range []string{"one", "another"} {
		for range 2 {
			if err := a.RebootSoft(t.Context(), Order{Epoch: 3, Life: life, Job: 7, Step: 1}, theOne, nil); err != nil || reboots() != i+1 {
				t.Errorf("life %s: %v, %d reboots", life, err, reboots())
			}
		}
	}
}
