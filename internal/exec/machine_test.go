package exec

import (
	"errors"
	"slices"
	"testing"

	"github.com/drover-project/drover/internal/fault"
)

// machine is that of a controller, and what was done there.
type machine struct {
	done  []string
	err   error
	lacks Secret
}

func (m *machine) do(what string) error {
	m.done = append(m.done, what)
	return m.err
}

func (m *machine) WriteFiles() error { return m.do("files") }

// did holds what was done on the machine since the last call.
func (r *rig) did(want ...string) {
	r.Helper()
	if got := r.machine.done; len(got) != len(want) || len(want) > 0 && !slices.Equal(got, want) {
		r.Errorf("on the machine of the controller %q was done, want %q", got, want)
	}
	r.machine.done = nil
}

// That the configuration is sent again counts as a change of the cluster, from which the other controllers learn of it.
func TestRedistribution(t *testing.T) {
	r := newRig(t)
	before := r.keeper.Snapshot().Cluster()
	r.must("null", "OP_CLUSTER_REDIST_CONF", nil)
	if after := r.keeper.Snapshot().Cluster(); after == before || after.Serial != before.Serial+1 {
		t.Errorf("the serial number was %d, and is %d", before.Serial, after.Serial)
	}
	r.did("files")
	r.logged()
	r.machine.err = errors.New("the disk is full")
	if _, err := r.run("OP_CLUSTER_REDIST_CONF", nil); err == nil || err.Error() != "The files for programs of Ganeti cannot be written: the disk is full" {
		t.Errorf("a failure is told as %v", err)
	}
}

func (m *machine) Has(which Secret) error {
	if m.lacks == which {
		return fault.New(fault.WrongState, "there is no %s", which)
	}
	return nil
}

func (m *machine) Renew(which Secret) error { return m.do(string(which)) }
