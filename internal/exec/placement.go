package exec

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/hypervisor"
)

// candidate is a node that a new instance could go to.
type candidate struct {
	node *cluster.Node
	// rank is that of the group's allocation policy: 0 is preferred.
	rank int
	// info are the node's figures when it was asked.
	info hypervisor.Node
	// free is the memory in MiB that is neither used, nor promised, nor chosen by
	// another creation.
	free int
}

// choose returns the candidate with the most free memory in the best groups,
// and says why. Among equals the first by name wins.
func choose(candidates []candidate, need int) (candidate, string, error) {
	fitting := slices.DeleteFunc(slices.Clone(candidates), func(c candidate) bool { return c.free < need })
	if len(fitting) == 0 {
		return candidate{}, "", fault.New(fault.Exhausted, "Can't find a node for the instance: of %d candidates none has %d MiB of memory free",
			len(candidates), need)
	}
	best := slices.MinFunc(fitting, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(b.free, a.free), cluster.CompareNames(a.node.Name, b.node.Name))
	})
	return best, fmt.Sprintf("most free memory, %d MiB, of %d candidates", best.free, len(fitting)), nil
}

// allocationRanks orders the policies that allow allocation.
var allocationRanks = map[string]int{cluster.AllocPreferred: 0, cluster.AllocLastResort: 1}

// candidates returns the nodes that an instance could go to: those that may take
// instances, of the named group or of any group, and answer.
func (e *Env) candidates(ctx context.Context, group string) ([]candidate, error) {
	snap := e.snapshot()
	groups, err := targetGroups(snap, group)
	if err != nil {
		return nil, err
	}
	var out []candidate
	for _, g := range groups {
		for node := range snap.NodesIn(g.UUID) {
			if hosting(node) != nil {
				continue
			}
			info, err := e.info(ctx, node)
			if err != nil {
				e.Warnf("Node %s is passed over: %v", node.Name, err)
				continue
			}
			out = append(out, candidate{node: node, rank: allocationRanks[g.AllocPolicy], info: info})
		}
	}
	return out, nil
}

func (e *Env) info(ctx context.Context, node *cluster.Node) (hypervisor.Node, error) {
	a, err := e.agent(node)
	if err != nil {
		return hypervisor.Node{}, err
	}
	return a.Info(ctx)
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
