package exec

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/fault"
)

// machine is that of a controller, and what was done there.
type machine struct {
	done  []string
	err   error
	lacks Secret
	// refuses is why it has nothing to do with the cluster's address.
	refuses error
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

func (m *machine) KeepsAddress() error { return m.refuses }

func (m *machine) Address(_ context.Context, c *cluster.Cluster, up bool) error {
	return m.do(fmt.Sprintf("%s %v", c.MasterIP, up))
}

func TestMasterAddress(t *testing.T) {
	r := newRig(t)
	r.must("null", "OP_CLUSTER_SET_PARAMS", params{"master_ip": "192.0.2.7"})
	r.did() // whoever leads follows the inventory
	r.must("null", "OP_CLUSTER_DEACTIVATE_MASTER_IP", nil)
	r.must("null", "OP_CLUSTER_ACTIVATE_MASTER_IP", nil)
	r.did("192.0.2.7 false", "192.0.2.7 true")
	for _, ip := range []string{"nosuch", "0.0.0.0", "224.0.0.1", "::1", "::ffff:192.0.2.1", "fe80::1%eth0", "192.0.2.0/24"} {
		if _, err := r.run("OP_CLUSTER_SET_PARAMS", params{"master_ip": ip}); !fault.Is(err, fault.Invalid) {
			t.Errorf("%s is taken: %v", ip, err)
		}
	}
	r.machine.err = errors.New("it is elsewhere")
	for id, want := range map[string]string{"OP_CLUSTER_ACTIVATE_MASTER_IP": "Could not activate the master IP: it is elsewhere", "OP_CLUSTER_DEACTIVATE_MASTER_IP": "Could not deactivate the master IP: it is elsewhere"} {
		if _, err := r.run(id, nil); err == nil || err.Error() != want {
			t.Errorf("%s fails with %v", id, err)
		}
	}
	r.machine.refuses = fault.New(fault.WrongState, "nobody cares for it")
	r.machine.done = nil
	r.refuses("OpPrereqError", "nobody cares for it", "OP_CLUSTER_ACTIVATE_MASTER_IP", nil)
	r.refuses("OpPrereqError", "nobody cares for it", "OP_CLUSTER_DEACTIVATE_MASTER_IP", nil)
	r.did()
}

func (m *machine) Meet(_ context.Context, say func(string)) error {
	say("/socket")
	return m.do("meet")
}
