package exec

import (
	"context"

	"github.com/drover-project/drover/internal/agent"
	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/work"
)

// The verbs about disks that no instance has.
const (
	detachDisks = "detach-disks" // have disks of an instance be of none
	attachDisks = "attach-disks" // have disks that no instance has be those of one
	forgetDisk  = "forget-disk"  // take one out of the inventory
)

var detachedVerbs = map[string]verb{
	detachDisks: ordering(func(ctx context.Context, _ *Env, node Node, order agent.Order, s *work.Step, a dropArgs) error {
		return node.Detach(ctx, order, thing(s, a.Name), a.Disks)
	}),
	attachDisks: ordering(func(ctx context.Context, _ *Env, node Node, order agent.Order, s *work.Step, a dropArgs) error {
		return node.Attach(ctx, order, thing(s, a.Name), a.Disks)
	}),
	forgetDisk: changing(func(_ *Env, snap *cluster.Snapshot, s *work.Step, _ struct{}) ([]cluster.Change, any, error) {
		if snap.Disk(s.Of) == nil {
			return nil, nil, nil
		}
		return []cluster.Change{cluster.Delete(cluster.KindDisk, s.Of)}, nil, nil
	}),
}
