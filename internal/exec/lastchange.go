package exec

import (
	"fmt"
	"unicode/utf8"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/reason"
)

// Of the trail of an object's last change so much is kept with the object; the
// job has all of it.
const (
	keptHops   = 32
	keptReason = 1024 // bytes
)

// remember has instances and nodes of which a change is counted remember by which job it was made, and why.
func (e *Env) remember(snap *cluster.Snapshot, changes []cluster.Change) {
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
