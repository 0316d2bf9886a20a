package query

import (
	"cmp"
	"iter"
	"slices"
	"strings"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/qlang"
)

type group = *cluster.Group

var groupTable = table[group]{
	what:      "group",
	nameField: "name",
	fields: slices.Concat(groupFields(), groupMemberFields(), ndFields(groupParam),
		metaFields(func(g group) *cluster.Meta { return &g.Meta })),
	all:      func(v *view) iter.Seq[group] { return v.inv.Groups() },
	named:    groupNamed,
	narrow:   groupPaths,
	compare:  compareObjects[group],
	identity: func(g group) string { return g.UUID },
	affected: objectsOf(cluster.KindGroup, groupsThatShow),
	rowsOf:   objectNow((*cluster.Snapshot).Group),
}.indexed()

func groupNamed(v *view, names []qlang.Value) ([]group, bool, error) {
	return find(names, v.inv.FindGroup)
}

func groupPaths(_ *table[group], v *view, tests []qlang.Node) []path[group] {
	return append(tagPaths(v, cluster.KindGroup, tests, v.inv.Group), uuidPaths(tests, v.inv.Group)...)
}

func groupFields() []field[group] {
	return []field[group]{
		{Def: Def{"name", "Group", KindText, "Name of the group"},
			get: func(_ *view, g group) Cell { return text(g.Name) }},
		{Def: Def{"alloc_policy", "AllocPolicy", KindText, "Whether new instances go there: preferred, last_resort or unallocable"},
			get: func(_ *view, g group) Cell { return text(g.AllocPolicy) }},
		{Def: Def{"ndparams", "NDParams", KindOther, "Node parameters that are in effect in the group"},
			get: func(v *view, g group) Cell { return known(ordered{ndOrder, v.cluster.FillND(g, nil)}) }},
		{Def: Def{"custom_ndparams", "CustomNDParams", KindOther, "Node parameters set on the group itself"},
			get: func(_ *view, g group) Cell { return orEmpty(g.NDParams) }},
		{Def: Def{"ipolicy", "InstancePolicy", KindOther, "Bounds for instances that are in effect in the group"},
			get: func(v *view, g group) Cell { return known(v.cluster.FillIPolicy(g)) }},
		{Def: Def{"custom_ipolicy", "CustomInstancePolicy", KindOther, "Bounds for instances set on the group itself"},
			get: func(_ *view, g group) Cell { return orEmpty(g.IPolicy) }},
		{Def: Def{"diskparams", "DiskParameters", KindOther, "Disk parameters that are in effect in the group, by disk template"},
			get: func(v *view, g group) Cell { return known(v.cluster.FillDisk(g)) }},
		{Def: Def{"custom_diskparams", "CustomDiskParameters", KindOther, "Disk parameters set on the group itself, by disk template"},
			get: func(_ *view, g group) Cell { return known(g.DiskParams) }},
	}
}

func groupMemberFields() []field[group] {
	return []field[group]{
		{Def: Def{"node_cnt", "Nodes", KindNumber, "How many nodes it has"},
			get: func(v *view, g group) Cell { return known(int64(v.inv.CountNodesIn(g.UUID))) }},
		{Def: Def{"node_list", "NodeList", KindOther, "Names of its nodes, ordered by UUID"},
			get: func(v *view, g group) Cell { return labelsByUUID(v.inv.NodesIn(g.UUID)) }},
		{Def: Def{"pinst_cnt", "Instances", KindNumber, "How many instances have their primary node in it"},
			get: func(v *view, g group) Cell {
				total := 0
				for n := range v.inv.NodesIn(g.UUID) {
					total += v.inv.CountPrimariesOn(n.UUID)
				}
				return known(int64(total))
			}},
		{Def: Def{"pinst_list", "InstanceList", KindOther, "Names of the instances that have their primary node in it"},
			get: func(v *view, g group) Cell {
				names, _ := labels(instancesOfGroup(v, g)).Value.([]string)
				slices.SortStableFunc(names, cluster.CompareNames)
				return known(names)
			}},
	}
}

func instancesOfGroup(v *view, g group) iter.Seq[instance] {
	return func(yield func(instance) bool) {
		for n := range v.inv.NodesIn(g.UUID) {
			for i := range v.inv.PrimariesOn(n.UUID) {
				if !yield(i) {
					return
				}
			}
		}
	}
}

func groupParam(v *view, g group, name string) Cell {
	if value, ok := layered(name, g.NDParams, v.cluster.NDParams); ok {
		return known(value)
	}
	return Cell{Status: NoData}
}

// labels lists names in the order they come.
func labels[T cluster.Object](seq iter.Seq[T]) Cell {
	out := []string{}
	for o := range seq {
		out = append(out, o.Label())
	}
	return known(out)
}

// labelsByUUID lists names in the order of the objects' UUIDs, as the reference
// does in two of its fields.
func labelsByUUID[T cluster.Object](seq iter.Seq[T]) Cell {
	list := slices.Collect(seq)
	slices.SortFunc(list, func(a, b T) int {
		return cmp.Or(strings.Compare(a.Identity(), b.Identity()), strings.Compare(a.Label(), b.Label()))
	})
	return labels(slices.Values(list))
}
