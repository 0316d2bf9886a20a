package inventory

import (
	"context"
	"fmt"
	"time"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/fault"
)

// Setup describes a cluster to be made.
type Setup struct {
	// Name of the cluster.
	Name string
	// Nodes by name; the first is the master. At least one, at most 250.
	Nodes []string
	// Hypervisors and DiskTemplates that are enabled; the first hypervisor is
	// the default.
	Hypervisors   []string
	DiskTemplates []string
	// VolumeGroup is LVM's for disks of template plain; empty for none.
	VolumeGroup string
	// HVParams are parameters of the default hypervisor that differ from the reference's; none for none.
	HVParams cluster.Params
	// Elsewhere says that the nodes have agents in processes of their own.
	Elsewhere bool
	// Now is the time of creation; NewUUID makes identities.
	Now     time.Time
	NewUUID func() string
}

// Bootstrap makes the first inventory: the cluster, the group "default" and
// the nodes. WrongState when the keeper has one already.
func (k *Keeper) Bootstrap(ctx context.Context, setup Setup) error {
	return k.Update(ctx, func(snap *cluster.Snapshot) ([]cluster.Change, error) {
		if c := snap.Cluster(); c != nil {
			return nil, fault.New(fault.WrongState, "there is a cluster already: %s", c.Name)
		}
		return First(setup)
	})
}

// First returns the objects of a new cluster. The nodes get addresses in
// 127.0.0.0/8, from 127.0.0.1 on.
func First(setup Setup) ([]cluster.Change, error) {
	const most = 250
	if len(setup.Nodes) == 0 || len(setup.Nodes) > most {
		return nil, fault.New(fault.Invalid, "a new cluster must have 1 to %d nodes, not %d", most, len(setup.Nodes)).At("nodes")
	}
	now := setup.Now.UnixNano()
	group := cluster.NewGroup(setup.NewUUID(), cluster.DefaultGroup, now)
	changes := []cluster.Change{cluster.Put(group)}
	settings := cluster.New(cluster.Init{
		Name: setup.Name, UUID: setup.NewUUID(), Time: now, MasterIP: "127.0.0.254",
		Hypervisors: setup.Hypervisors, DiskTemplates: setup.DiskTemplates, VolumeGroup: setup.VolumeGroup,
	})
	if len(setup.HVParams) > 0 {
		hv := setup.Hypervisors[0]
		settings.HVParams[hv] = cluster.Fill(settings.HVParams[hv], setup.HVParams)
	}
	for i, name := range setup.Nodes {
		node := cluster.NewNode(setup.NewUUID(), name, fmt.Sprintf("127.0.0.%d", i+1), group.UUID, now)
		node.MasterCandidate = int64(i) < settings.PoolSize
		if setup.Elsewhere {
			node.Agent = &cluster.NodeAgent{}
		}
		if i == 0 {
			settings.MasterNode = node.UUID
		}
		changes = append(changes, cluster.Put(node))
	}
	return append(changes, cluster.Put(settings)), nil
}
