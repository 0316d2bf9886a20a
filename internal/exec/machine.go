package exec

import (
	"context"

	"github.com/drover-project/drover/internal/agent"
	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/work"
)

// Machine is the machine of the controller that leads, as far as opcodes do something there.
type Machine interface {
	// WriteFiles writes the files anew that programs of Ganeti read there, whether or not they differ. It returns when they are there; nothing is done where
	// none are kept.
	WriteFiles() error
	// Has refuses what the controller has not, or not of its own, so that it cannot be renewed.
	Has(which Secret) error
	// Renew makes one anew, which alone counts for who comes from then on.
	Renew(which Secret) error
	// KeepsAddress refuses where the address of the cluster is not cared for.
	KeepsAddress() error
	// Address brings the cluster's address up there, or takes it away, until another controller leads.
	Address(ctx context.Context, c *cluster.Cluster, up bool) error
	// Meet makes a socket there, says which, and returns when somebody has connected to it and hung up; Failed if nobody comes, or stays.
	Meet(ctx context.Context, say func(socket string)) error
}

// Secret is something of a controller that proves who somebody is.
type Secret string

// What a controller has.
const (
	// AgentsCertificate is shown to the agents of nodes, RAPICertificate to clients.
	AgentsCertificate Secret = "the certificate that agents are shown"
	RAPICertificate   Secret = "the certificate of RAPI"
	// ConfdKey signs what programs of Ganeti ask.
	ConfdKey Secret = "the key of confd"
)

// The verbs of what is done on the machine of the controller.
const (
	touchCluster = "touch-cluster" // count a change of the cluster that changes nothing, so that every controller writes its files anew
	writeFiles   = "write-files"   // write those of this controller
)

var machineVerbs = map[string]verb{
	touchCluster: changing(func(env *Env, snap *cluster.Snapshot, _ *work.Step, _ struct{}) ([]cluster.Change, any, error) {
		c := snap.Cluster().Clone()
		c.Touch(env.nanos())
		return []cluster.Change{cluster.Put(c)}, nil, nil
	}),
	writeFiles: {act: func(_ context.Context, env *Env, _ agent.Order, _ *work.Step) (any, error) {
		if env.machine == nil {
			return nil, nil //nolint:nilnil // there is nothing to write, and nothing to tell
		}
		if err := env.machine.WriteFiles(); err != nil {
			return nil, failed(err, "The files for programs of Ganeti cannot be written")
		}
		return nil, nil //nolint:nilnil // that they are there is all
	}},
}

// redistribute prepares OP_CLUSTER_REDIST_CONF. Controllers read the one store, and agents ask; what is sent again are the files that programs of Ganeti read.
func redistribute(_ context.Context, env *Env) (Plan, error) {
	return again(
		inInventory(touchCluster, env.snapshot().Cluster().UUID, "have the other controllers write their files anew", nil),
		work.Step{Verb: writeFiles, Text: "write the files for programs of Ganeti anew"},
	), nil
}
