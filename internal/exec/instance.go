package exec

import (
	"context"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/fault"
)

// changeInstance alters an instance in the newest inventory. The function
// gets a copy that it may alter; serial number and time are taken care of.
// Changes of other objects that belong to it, such as networks, it returns.
func (e *Env) changeInstance(ctx context.Context, uuid string, alter func(*cluster.Snapshot, *cluster.Instance) ([]cluster.Change, error)) error {
	return e.update(ctx, func(snap *cluster.Snapshot) ([]cluster.Change, error) {
		old := snap.Instance(uuid)
		if old == nil {
			return nil, fault.New(fault.Conflict, "the instance with UUID %s was removed meanwhile", uuid)
		}
		inst := old.Clone()
		others, err := alter(snap, inst)
		if err != nil {
			return nil, err
		}
		inst.Touch(e.nanos())
		return append(others, cluster.Put(inst)), nil
	})
}

// setState records the wanted power state of an instance; one that has it
// already is left alone, but for a note that the opcode did something to it.
func (e *Env) setState(ctx context.Context, uuid, state, source string, did bool) error {
	if inst := e.snapshot().Instance(uuid); inst != nil && inst.AdminState == state && inst.AdminStateSource == source {
		return e.noteIf(ctx, did, uuid)
	}
	return e.changeInstance(ctx, uuid, func(_ *cluster.Snapshot, inst *cluster.Instance) ([]cluster.Change, error) {
		inst.AdminState, inst.AdminStateSource = state, source
		inst.DisksActive = state == cluster.AdminUp
		return nil, nil
	})
}

// connecting returns what wiring needs to know from the opcode.
func (e *Env) connecting() connecting {
	return connecting{now: e.nanos(), newUUID: e.NewUUID, check: e.Op.Bool("conflicts_check")}
}
