package placement

import (
	"maps"

	"github.com/drover-project/drover/internal/cluster"
)

// DecideAll decides where several instances go, one after the other: each decision counts those before it as done. One that fits nowhere takes nothing
// from those behind it.
func DecideAll(w World, requests []Request) []Decision {
	w.Reports = maps.Clone(w.Reports)
	decisions := make([]Decision, len(requests))
	for i, r := range requests {
		decisions[i] = Decide(w, r)
		if d := &decisions[i]; d.UUID != "" {
			w.put(r.Instance, d)
		}
	}
	return decisions
}

// put has an instance be where it was decided, and its nodes have so much less free.
func (w *World) put(inst *cluster.Instance, d *Decision) {
	placed := inst.Clone()
	placed.PrimaryNode = d.UUID
	nodes := []string{d.UUID}
	if second := d.SecondUUID(); second != "" {
		nodes = append(nodes, second)
	}
	for i := range placed.Disks {
		placed.Disks[i].Nodes = nodes
	}
	w.Inventory = w.Inventory.With(cluster.Put(placed))
	for i, node := range nodes {
		r := w.Reports[node]
		if r.DiskFree -= d.Need.Disk; i == 0 {
			r.MemoryFree -= d.Need.Memory
		}
		w.Reports[node] = r
	}
}
