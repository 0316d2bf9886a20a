package exec

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/fault"
)

// candidate is a node that a new instance could go to.
type candidate struct {
	node *cluster.Node
	// rank is that of the group's allocation policy: 0 is preferred.
	rank int
	// free is the memory in MiB that is neither used nor promised.
	free int
}

// choose returns the candidate with the most free memory in the best groups,
// and says why. Among equals the first by name wins.
func choose(candidates []candidate, need int) (*cluster.Node, string, error) {
	fitting := slices.DeleteFunc(slices.Clone(candidates), func(c candidate) bool { return c.free < need })
	if len(fitting) == 0 {
		return nil, "", fault.New(fault.Exhausted, "Can't find a node for the instance: of %d candidates none has %d MiB of memory free",
			len(candidates), need)
	}
	best := slices.MinFunc(fitting, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(b.free, a.free), cluster.CompareNames(a.node.Name, b.node.Name))
	})
	return best.node, fmt.Sprintf("most free memory, %d MiB, of %d candidates", best.free, len(fitting)), nil
}

// allocationRanks orders the policies that allow allocation.
var allocationRanks = map[string]int{cluster.AllocPreferred: 0, cluster.AllocLastResort: 1}

// allocate chooses a node for an instance that needs this much memory: any
// node that may take instances, of the named group or of any group.
func (e *Env) allocate(ctx context.Context, snap *cluster.Snapshot, group string, need int) (*cluster.Node, string, error) {
	groups, err := targetGroups(snap, group)
	if err != nil {
		return nil, "", err
	}
	var candidates []candidate
	for _, g := range groups {
		for node := range snap.NodesIn(g.UUID) {
			if hosting(node) != nil {
				continue
			}
			free, err := e.freeMemory(ctx, snap, node)
			if err != nil {
				e.Warnf("Node %s is passed over: %v", node.Name, err)
				continue
			}
			candidates = append(candidates, candidate{node: node, rank: allocationRanks[g.AllocPolicy], free: free})
		}
	}
	return choose(candidates, need)
}

// targetGroups returns the groups to allocate in. One that is named is used
// whatever its policy.
func targetGroups(snap *cluster.Snapshot, name string) ([]*cluster.Group, error) {
	if name != "" {
		g, err := findGroup(name, snap)
		return []*cluster.Group{g}, err
	}
	var out []*cluster.Group
	for g := range snap.Groups() {
		if _, allowed := allocationRanks[g.AllocPolicy]; allowed {
			out = append(out, g)
		}
	}
	return out, nil
}

// freeMemory returns what is left of a node's memory after what is used now
// and after what its instances are promised, whichever is less.
func (e *Env) freeMemory(ctx context.Context, snap *cluster.Snapshot, node *cluster.Node) (int, error) {
	a, err := e.agent(node)
	if err != nil {
		return 0, err
	}
	info, err := a.Info(ctx)
	if err != nil {
		return 0, err
	}
	promised := 0
	for inst := range snap.PrimariesOn(node.UUID) {
		if inst.AdminState != cluster.AdminOffline {
			promised += intParam(snap.Cluster().FillBE(inst), "maxmem")
		}
	}
	return min(info.MemoryFree, info.MemoryTotal-info.MemoryNode-promised), nil
}
