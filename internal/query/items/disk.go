package items

import (
	"iter"
	"slices"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/qlang"
	"github.com/drover-project/drover/internal/query"
)

type disk = *cluster.DetachedDisk

var diskTable = query.Table[disk]{
	What:      "disk",
	Stored:    true,
	NameField: "name",
	Fields:    slices.Concat(detachedFields(), metaFields(func(d disk) *cluster.Meta { return &d.Meta })),
	All:       func(v *query.View) iter.Seq[disk] { return v.Inventory.Disks() },
	Named:     diskNamed,
	Compare:   compareObjects[disk],
	Identity:  func(d disk) string { return d.UUID },
	Affected:  objectsOf(cluster.KindDisk, map[cluster.Kind]spread{cluster.KindNode: disksThatShow}),
	RowsOf:    objectNow((*cluster.Snapshot).Disk),
}.Indexed()

func diskNamed(v *query.View, names []qlang.Value) ([]disk, bool, error) {
	return query.Find(names, v.Inventory.FindDisk)
}

// disksThatShow are the disks that show the name of a node.
func disksThatShow(s *cluster.Snapshot, node string, add func(string)) { addAll(s.DisksOn(node), add) }

func detachedFields() []query.Field[disk] {
	return []query.Field[disk]{
		{Def: def("name", "Disk", query.KindText, "Name of the disk"),
			Get: func(_ *query.View, d disk) query.Cell { return textOrUnavail(d.Disk.Name) }},
		{Def: def("size", "Size", query.KindUnit, "Size of the disk"),
			Get: func(_ *query.View, d disk) query.Cell { return known(d.Disk.Size) }},
		{Def: def("template", "Template", query.KindText, "Its disk template: instances of that, or without disks, can have it"),
			Get: func(_ *query.View, d disk) query.Cell { return text(d.Disk.Type) }},
		{Def: def("mode", "Mode", query.KindText, "How instances have it: rw or ro"),
			Get: func(_ *query.View, d disk) query.Cell { return text(d.Disk.Mode) }},
		{Def: def("nodes", "Nodes", query.KindOther, "Nodes that keep it, the primary one of its instance first"),
			Get: func(v *query.View, d disk) query.Cell { return known(nodesOf(v, d)) }},
		{Def: def("former", "Former", query.KindText, "Name that the instance had which had it last"),
			Get: func(_ *query.View, d disk) query.Cell { return textOrUnavail(d.Former) }},
	}
}

// nodesOf are the names of the nodes of a disk; the UUID of one that there is not.
func nodesOf(v *query.View, d disk) []string {
	out := slices.Clone(d.Disk.Nodes)
	for i, uuid := range out {
		if n := v.Inventory.Node(uuid); n != nil {
			out[i] = n.Name
		}
	}
	return out
}
