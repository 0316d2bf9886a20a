package exec

import (
	"testing"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/lock"
	"github.com/drover-project/drover/internal/work"
)

// TestARenameStays: once the inventory has the new name the node keeps it too, also where the job is killed while the system is told.
func TestARenameStays(t *testing.T) {
	inst := &cluster.Instance{Meta: cluster.NewMeta("uuid", 1), Name: "one"}
	w := renaming(inst, []*cluster.Node{{Meta: cluster.NewMeta("node", 1), Name: "node1"}}, "two")
	w.Steps = append(w.Steps, tellName(&cluster.Node{Name: "node1"}, inst, "one", "two"))
	for done, want := range []bool{false, false, true} {
		if got := w.Stays(work.Progress{Done: done}); got != want {
			t.Errorf("behind %d steps everything stays: %v", done, got)
		}
	}
}

// TestTheWordForAllIsNoName: a request that names it takes no lock of everything.
func TestTheWordForAllIsNoName(t *testing.T) {
	if got := typed(lock.Instance, lock.All, lock.Exclusive); len(got) != 0 {
		t.Errorf("it locks %v", got)
	}
	if got := typed(lock.Instance, "web1", lock.Exclusive); len(got) != 1 || got[0] != want(lock.Instance, "web1", lock.Exclusive) {
		t.Errorf("a name locks %v", got)
	}
}
