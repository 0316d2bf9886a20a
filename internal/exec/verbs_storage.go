package exec

import (
	"context"

	"github.com/drover-project/drover/internal/agent"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/work"
)

// The verbs of storage units.
const (
	setAllocatable = "set-allocatable" // have new disks be made on a device of a node, or not
	repairUnit     = "repair-storage"  // have a volume group do without the devices that are gone
)

type storageArgs struct {
	Name string `json:"name"` // of the unit
	May  bool   `json:"may,omitempty"`
}

var storageVerbs = map[string]verb{
	setAllocatable: ordering(func(ctx context.Context, env *Env, node Node, order agent.Order, s *work.Step, a storageArgs) error {
		return ofUnit(env, node.SetAllocatable(ctx, order, a.Name, a.May), "modify", s, a)
	}),
	repairUnit: ordering(func(ctx context.Context, env *Env, node Node, order agent.Order, s *work.Step, a storageArgs) error {
		env.Logf("Repairing storage unit '%s' on %s ...", a.Name, nodeName(env.snapshot(), s.Node))
		return ofUnit(env, node.RepairStorage(ctx, order, a.Name), "repair", s, a)
	}),
}

// ofUnit says of an error which unit was to be changed; one that says that the opcode was interrupted stays what it is.
func ofUnit(env *Env, err error, what string, s *work.Step, a storageArgs) error {
	if err == nil || fault.Is(err, fault.Canceled) || fault.Is(err, fault.Unavailable) || fault.Is(err, fault.Fenced) {
		return err
	}
	return failed(err, "Failed to %s storage unit '%s' on %s", what, a.Name, nodeName(env.snapshot(), s.Node))
}
