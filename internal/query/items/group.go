package items

import (
	"cmp"
	"iter"
	"slices"
	"strings"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/qlang"
	"github.com/drover-project/drover/internal/query"
)

type group = *cluster.Group

var groupTable = query.Table[group]{
	What:      "group",
	Stored:    true,
	NameField: "name",
	Fields: slices.Concat(groupFields(), groupMemberFields(), ndFields(groupParam),
		metaFields(func(g group) *cluster.Meta { return &g.Meta })),
	All:      func(v *query.View) iter.Seq[group] { return v.Inventory.Groups() },
	Named:    groupNamed,
	Narrow:   groupPaths,
	Compare:  compareObjects[group],
	Identity: func(g group) string { return g.UUID },
	Affected: objectsOf(cluster.KindGroup, groupsThatShow),
	RowsOf:   objectNow((*cluster.Snapshot).Group),
}.Indexed()

func groupNamed(v *query.View, names []qlang.Value) ([]group, bool, error) {
	return query.Find(names, v.Inventory.FindGroup)
}

func groupPaths(_ *query.Table[group], v *query.View, tests []qlang.Node) []query.Path[group] {
	return append(tagPaths(v, cluster.KindGroup, tests, v.Inventory.Group), uuidPaths(tests, v.Inventory.Group)...)
}

func groupFields() []query.Field[group] {
	return []query.Field[group]{
		{Def: def("name", "Group", query.KindText, "Name of the group"),
			Get: func(_ *query.View, g group) query.Cell { return text(g.Name) }},
		{Def: def("alloc_policy", "AllocPolicy", query.KindText, "Whether new instances go there: preferred, last_resort or unallocable"),
			Get: func(_ *query.View, g group) query.Cell { return text(g.AllocPolicy) }},
		{Def: def("ndparams", "NDParams", query.KindOther, "Node parameters that are in effect in the group"),
			Get: func(v *query.View, g group) query.Cell {
				return known(query.Ordered{Keys: ndOrder, Values: v.Cluster.FillND(g, nil)})
			}},
		{Def: def("custom_ndparams", "CustomNDParams", query.KindOther, "Node parameters set on the group itself"),
			Get: func(_ *query.View, g group) query.Cell { return orEmpty(g.NDParams) }},
		{Def: def("ipolicy", "InstancePolicy", query.KindOther, "Bounds for instances that are in effect in the group"),
			Get: func(v *query.View, g group) query.Cell { return known(v.Cluster.FillIPolicy(g)) }},
		{Def: def("custom_ipolicy", "CustomInstancePolicy", query.KindOther, "Bounds for instances set on the group itself"),
			Get: func(_ *query.View, g group) query.Cell { return orEmpty(g.IPolicy) }},
		{Def: def("diskparams", "DiskParameters", query.KindOther, "Disk parameters that are in effect in the group, by disk template"),
			Get: func(v *query.View, g group) query.Cell { return known(v.Cluster.FillDisk(g)) }},
		{Def: def("custom_diskparams", "CustomDiskParameters", query.KindOther, "Disk parameters set on the group itself, by disk template"),
			Get: func(_ *query.View, g group) query.Cell { return known(g.DiskParams) }},
	}
}

func groupMemberFields() []query.Field[group] {
	return []query.Field[group]{
		{Def: def("node_cnt", "Nodes", query.KindNumber, "How many nodes it has"),
			Get: func(v *query.View, g group) query.Cell { return known(int64(v.Inventory.CountNodesIn(g.UUID))) }},
		{Def: def("node_list", "NodeList", query.KindOther, "Names of its nodes, ordered by UUID"),
			Get: func(v *query.View, g group) query.Cell { return labelsByUUID(v.Inventory.NodesIn(g.UUID)) }},
		{Def: def("pinst_cnt", "Instances", query.KindNumber, "How many instances have their primary node in it"),
			Get: func(v *query.View, g group) query.Cell {
				total := 0
				for n := range v.Inventory.NodesIn(g.UUID) {
					total += v.Inventory.CountPrimariesOn(n.UUID)
				}
				return known(int64(total))
			}},
		{Def: def("pinst_list", "InstanceList", query.KindOther, "Names of the instances that have their primary node in it"),
			Get: func(v *query.View, g group) query.Cell {
				names, _ := labels(instancesOfGroup(v, g)).Value.([]string)
				slices.SortStableFunc(names, cluster.CompareNames)
				return known(names)
			}},
	}
}

func instancesOfGroup(v *query.View, g group) iter.Seq[instance] {
	return func(yield func(instance) bool) {
		for n := range v.Inventory.NodesIn(g.UUID) {
			for i := range v.Inventory.PrimariesOn(n.UUID) {
				if !yield(i) {
					return
				}
			}
		}
	}
}

func groupParam(v *query.View, g group, name string) query.Cell {
	if value, ok := layered(name, g.NDParams, v.Cluster.NDParams); ok {
		return known(value)
	}
	return query.Cell{Status: query.NoData}
}

// labels lists names in the order they come.
func labels[T cluster.Object](seq iter.Seq[T]) query.Cell {
	out := []string{}
	for o := range seq {
		out = append(out, o.Label())
	}
	return known(out)
}

// labelsByUUID lists names in the order of the objects' UUIDs, as the reference
// does in two of its fields.
func labelsByUUID[T cluster.Object](seq iter.Seq[T]) query.Cell {
	list := slices.Collect(seq)
	slices.SortFunc(list, func(a, b T) int {
		return cmp.Or(strings.Compare(a.Identity(), b.Identity()), strings.Compare(a.Label(), b.Label()))
	})
	return labels(slices.Values(list))
}
