package items

import (
	"iter"
	"slices"
	"strings"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/qlang"
	"github.com/drover-project/drover/internal/query"
)

type network = *cluster.Network

var networkTable = query.Table[network]{
	What:      "network",
	Stored:    true,
	NameField: "name",
	Fields: slices.Concat(networkFields(), networkUseFields(),
		metaFields(func(n network) *cluster.Meta { return &n.Meta })),
	All:      func(v *query.View) iter.Seq[network] { return v.Inventory.Networks() },
	Named:    networkNamed,
	Narrow:   networkPaths,
	Compare:  compareObjects[network],
	Identity: func(n network) string { return n.UUID },
	Affected: objectsOf(cluster.KindNetwork, networksThatShow),
	RowsOf:   objectNow((*cluster.Snapshot).Network),
}.Indexed()

func networkNamed(v *query.View, names []qlang.Value) ([]network, bool, error) {
	return query.Find(names, v.Inventory.FindNetwork)
}

func networkPaths(_ *query.Table[network], v *query.View, tests []qlang.Node) []query.Path[network] {
	return append(tagPaths(v, cluster.KindNetwork, tests, v.Inventory.Network), uuidPaths(tests, v.Inventory.Network)...)
}

func networkFields() []query.Field[network] {
	return []query.Field[network]{
		{Def: def("name", "Network", query.KindText, "Name of the network"),
			Get: func(_ *query.View, n network) query.Cell { return text(n.Name) }},
		{Def: def("network", "Subnet", query.KindText, "IPv4 subnet, as address and prefix length"),
			Get: func(_ *query.View, n network) query.Cell { return text(n.Network) }},
		{Def: def("gateway", "Gateway", query.KindOther, "IPv4 gateway"),
			Get: func(_ *query.View, n network) query.Cell { return textOrUnavail(n.Gateway) }},
		{Def: def("network6", "IPv6Subnet", query.KindOther, "IPv6 subnet, as address and prefix length"),
			Get: func(_ *query.View, n network) query.Cell { return textOrUnavail(n.Network6) }},
		{Def: def("gateway6", "IPv6Gateway", query.KindOther, "IPv6 gateway"),
			Get: func(_ *query.View, n network) query.Cell { return textOrUnavail(n.Gateway6) }},
		{Def: def("mac_prefix", "MacPrefix", query.KindOther, "First half of the MAC addresses in it"),
			Get: func(_ *query.View, n network) query.Cell { return textOrUnavail(n.MACPrefix) }},
		{Def: def("free_count", "FreeCount", query.KindNumber, "How many addresses are free"),
			Get: func(_ *query.View, n network) query.Cell { return known(int64(n.FreeCount())) }},
		{Def: def("reserved_count", "ReservedCount", query.KindNumber, "How many addresses are taken or set aside"),
			Get: func(_ *query.View, n network) query.Cell { return known(int64(n.Size() - n.FreeCount())) }},
		{Def: def("map", "Map", query.KindText, "One character for each address: X taken or set aside, a dot free"),
			Get: func(_ *query.View, n network) query.Cell { return text(n.Map()) }},
		{Def: def("external_reservations", "ExternalReservations", query.KindText, "Addresses that operators set aside"),
			Get: func(_ *query.View, n network) query.Cell { return text(strings.Join(n.ExternalAddresses(), ", ")) }},
	}
}

func networkUseFields() []query.Field[network] {
	return []query.Field[network]{
		{Def: def("group_cnt", "NodeGroups", query.KindNumber, "How many node groups are connected to it"),
			Get: func(v *query.View, n network) query.Cell { return known(int64(len(connected(v, n)))) }},
		{Def: def("group_list", "GroupList", query.KindOther, "Connected node groups, each as name, mode, link and VLAN"),
			Get: func(v *query.View, n network) query.Cell { return known(connected(v, n)) }},
		{Def: def("inst_cnt", "Instances", query.KindNumber, "How many instances have a network interface in it"),
			Get: func(v *query.View, n network) query.Cell { return known(int64(v.Inventory.CountInstancesIn(n.UUID))) }},
		{Def: def("inst_list", "InstanceList", query.KindOther, "Names of the instances with a network interface in it, ordered by UUID"),
			Get: func(v *query.View, n network) query.Cell { return labelsByUUID(v.Inventory.InstancesIn(n.UUID)) }},
	}
}

// connected lists the groups that a network is connected to, in the order of
// their UUIDs: name, mode, link, VLAN each, "-" for a part that is not set.
func connected(v *query.View, n network) []any {
	groups := slices.Collect(v.Inventory.GroupsOn(n.UUID))
	slices.SortFunc(groups, func(a, b group) int { return strings.Compare(a.UUID, b.UUID) })
	out := make([]any, len(groups))
	for i, g := range groups {
		row := []any{g.Name}
		for _, name := range []string{"mode", "link", "vlan"} {
			part, set := g.Networks[n.UUID][name].(string)
			if !set {
				part = "-"
			}
			row = append(row, part)
		}
		out[i] = row
	}
	return out
}
