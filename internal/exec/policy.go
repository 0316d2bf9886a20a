package exec

import (
	"strings"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/placement"
)

// checkPolicy refuses an instance that breaks the policy of its node's group.
func checkPolicy(snap *cluster.Snapshot, node *cluster.Node, inst *cluster.Instance, nics int) error {
	group := snap.Group(node.Group)
	if group == nil {
		return nil
	}
	c := snap.Cluster()
	broken := placement.Violations(c.FillIPolicy(group), c.FillBE(inst), inst, nics)
	if len(broken) == 0 {
		return nil
	}
	texts := make([]string, len(broken))
	for i := range broken {
		texts[i] = broken[i].Text
	}
	return fault.New(fault.Invalid, "Instance allocation to group %s (%s) violates policy: %s", group.UUID, group.Name, strings.Join(texts, ", "))
}
