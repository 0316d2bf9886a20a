package exec

import (
	"context"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/fault"
)

// clusterRename prepares OP_CLUSTER_RENAME.
func clusterRename(_ context.Context, env *Env) (Plan, error) {
	name, err := cluster.NormalName(env.Op.Str("name"))
	if err != nil {
		return Plan{}, err
	}
	return updatePlan(env, name, func(snap *cluster.Snapshot) ([]cluster.Change, error) {
		if snap.Cluster().Name == name {
			return nil, fault.New(fault.Invalid, "Neither the name nor the IP address of the cluster has changed")
		}
		c := snap.Cluster().Clone()
		c.Name = name
		c.Touch(env.nanos())
		return []cluster.Change{cluster.Put(c)}, nil
	})
}
