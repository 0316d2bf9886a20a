package exec

import (
	"context"
	"fmt"
	"unicode/utf8"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/inventory"
	"github.com/drover-project/drover/internal/reason"
)

// Of the trail of an object's last change so much is kept with the object; the
// job has all of it.
const (
	keptHops   = 32
	keptReason = 1024 // bytes
)

// update changes the inventory. Instances and nodes of which a change is counted
// remember by which job it was made, and why.
func (e *Env) update(ctx context.Context, change inventory.Change) error {
	return e.Inventory.Update(ctx, func(snap *cluster.Snapshot) ([]cluster.Change, error) {
		changes, err := change(snap)
		if err != nil {
			return nil, err
		}
		for _, c := range changes {
			switch o := c.Put.(type) {
			case *cluster.Instance:
				if old := snap.Instance(o.UUID); old == nil || old.Serial != o.Serial {
					o.Last = e.lastChange()
				}
			case *cluster.Node:
				if old := snap.Node(o.UUID); old == nil || old.Serial != o.Serial {
					o.Last = e.lastChange()
				}
			}
		}
		return changes, nil
	})
}

// noteIf notes that the opcode changed what an instance does, if it did.
func (e *Env) noteIf(ctx context.Context, did bool, uuid string) error {
	if !did {
		return nil
	}
	return e.acted(ctx, uuid)
}

// acted notes that the opcode changed what an instance does, though nothing of
// its settings.
func (e *Env) acted(ctx context.Context, uuid string) error {
	return e.Inventory.Update(ctx, func(snap *cluster.Snapshot) ([]cluster.Change, error) {
		old := snap.Instance(uuid)
		if old == nil {
			return nil, nil
		}
		inst := old.Clone()
		inst.Last = e.lastChange()
		return []cluster.Change{cluster.Put(inst)}, nil
	})
}

func (e *Env) lastChange() *cluster.LastChange {
	trail := e.Op.Reason
	over := len(trail) - keptHops
	if over > 0 {
		trail = append(trail[:keptHops/2:keptHops/2], trail[keptHops/2+over:]...)
	}
	kept := make(reason.Trail, len(trail))
	for i, hop := range trail {
		hop.Source, hop.Reason = shorten(hop.Source), shorten(hop.Reason)
		kept[i] = hop
	}
	if over > 0 {
		kept[keptHops/2-1].Reason += fmt.Sprintf(" (%d hops are left out here)", over)
	}
	return &cluster.LastChange{At: e.nanos(), Job: int64(e.Job), Trail: kept}
}

func shorten(text string) string {
	if len(text) <= keptReason {
		return text
	}
	end := keptReason
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return fmt.Sprintf("%s ... (%d more bytes)", text[:end], len(text)-end)
}
