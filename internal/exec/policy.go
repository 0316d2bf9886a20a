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

// checkOtherGroup refuses an instance that comes from a node to one of another group whose policy it breaks; where that is to be ignored, it is said.
func (e *Env) checkOtherGroup(inst *cluster.Instance, from, to *cluster.Node) error {
	group, c := e.snapshot().Group(to.Group), e.snapshot().Cluster()
	if group == nil || to.Group == from.Group {
		return nil
	}
	broken := placement.Violations(c.FillIPolicy(group), c.FillBE(inst), inst, len(inst.NICs))
	if len(broken) == 0 {
		return nil
	}
	texts := make([]string, len(broken))
	for i := range broken {
		texts[i] = broken[i].Text
	}
	err := fault.New(fault.Invalid, "Instance does not meet target node group's (%s) instance policy: %s", group.Name, strings.Join(texts, ", "))
	if e.Op.Bool("ignore_ipolicy") {
		e.Warnf("%v", err)
		return nil
	}
	return err
}
