package items

import (
	"encoding/json"

	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/placement"
	"github.com/drover-project/drover/internal/query"
)

// Placement is how the node of a new instance was chosen, as clients see it.
type Placement struct {
	// Node and UUID are those of the chosen node; empty if none fits. Why is why.
	Node string `json:"node"`
	UUID string `json:"uuid"`
	Why  string `json:"why"`
	// Memory and Disk (MiB) and VCPUs are what the instance takes.
	Memory int64 `json:"memory"`
	Disk   int64 `json:"disk"`
	VCPUs  int64 `json:"vcpus"`
	// Nodes are those that fit by rank, then the others by name.
	Nodes []PlacementVerdict `json:"nodes"`
	// Mirror is the decision about the second copy of mirrored disks; nil for other disks.
	Mirror *Placement `json:"mirror,omitempty"`
}

// PlacementVerdict is what was said of one node.
type PlacementVerdict struct {
	Node string `json:"node"`
	// Rank is its place among those that fit, from 1; 0 for one that does not. Fails is the first constraint that it breaks.
	Rank  int    `json:"rank"`
	Fails string `json:"fails"`
	// Need and Have are in the unit of the constraint, Margin what would be left, or below zero what is missing.
	Need   int64  `json:"need"`
	Have   int64  `json:"have"`
	Margin int64  `json:"margin"`
	Text   string `json:"text"`
}

// PlacementOf is a decision that a job has kept, as clients see it; nil for none. One that cannot be read says so.
func PlacementOf(kept json.RawMessage) *Placement {
	if kept == nil {
		return nil
	}
	d, err := placement.Decode(kept)
	if err != nil {
		return &Placement{Why: err.Error(), Nodes: []PlacementVerdict{}}
	}
	return placementOf(d)
}

func placementOf(d *placement.Decision) *Placement {
	p := &Placement{Node: d.Node, UUID: d.UUID, Why: d.Why, Memory: d.Need.Memory, Disk: d.Need.Disk, VCPUs: d.Need.VCPUs, Nodes: make([]PlacementVerdict, len(d.Nodes))}
	for i, v := range d.Nodes {
		p.Nodes[i] = PlacementVerdict{Node: v.Node, Rank: v.Rank, Fails: string(v.Fails), Need: v.Need, Have: v.Have, Margin: v.Margin(), Text: v.Text()}
	}
	if d.Mirror != nil {
		p.Mirror = placementOf(d.Mirror)
	}
	return p
}

// jobPlacementFields are fields of our own: how the nodes of new instances were chosen.
func jobPlacementFields() []query.Field[jobRow] {
	return []query.Field[jobRow]{
		{Def: def("opplacement", "OpCode_placement", query.KindOther, "How the node of a new instance was chosen, for each opcode or null: node, why, and of each node rank, fails, need, have, margin, text"), From: query.InMemory, Led: true,
			Get: ofWhole(eachOp(func(op *job.Op) *Placement { return PlacementOf(op.Placement) }))},
	}
}
