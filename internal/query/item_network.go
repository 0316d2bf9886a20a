package query

import (
	"iter"
	"slices"
	"strings"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/qlang"
)

type network = *cluster.Network

var networkTable = table[network]{
	what:      "network",
	nameField: "name",
	fields: slices.Concat(networkFields(), networkUseFields(),
		metaFields(func(n network) *cluster.Meta { return &n.Meta })),
	all:      func(v *view) iter.Seq[network] { return v.inv.Networks() },
	named:    networkNamed,
	narrow:   networkPaths,
	compare:  compareObjects[network],
	identity: func(n network) string { return n.UUID },
	affected: objectsOf(cluster.KindNetwork, networksThatShow),
	rowsOf:   objectNow((*cluster.Snapshot).Network),
}.indexed()

func networkNamed(v *view, names []qlang.Value) ([]network, bool, error) {
	return find(names, v.inv.FindNetwork)
}

func networkPaths(_ *table[network], v *view, tests []qlang.Node) []path[network] {
	return append(tagPaths(v, cluster.KindNetwork, tests, v.inv.Network), uuidPaths(tests, v.inv.Network)...)
}

func networkFields() []field[network] {
	return []field[network]{
		{Def: Def{"name", "Network", KindText, "Name of the network"},
			get: func(_ *view, n network) Cell { return text(n.Name) }},
		{Def: Def{"network", "Subnet", KindText, "IPv4 subnet, as address and prefix length"},
			get: func(_ *view, n network) Cell { return text(n.Network) }},
		{Def: Def{"gateway", "Gateway", KindOther, "IPv4 gateway"},
			get: func(_ *view, n network) Cell { return textOrUnavail(n.Gateway) }},
		{Def: Def{"network6", "IPv6Subnet", KindOther, "IPv6 subnet, as address and prefix length"},
			get: func(_ *view, n network) Cell { return textOrUnavail(n.Network6) }},
		{Def: Def{"gateway6", "IPv6Gateway", KindOther, "IPv6 gateway"},
			get: func(_ *view, n network) Cell { return textOrUnavail(n.Gateway6) }},
		{Def: Def{"mac_prefix", "MacPrefix", KindOther, "First half of the MAC addresses in it"},
			get: func(_ *view, n network) Cell { return textOrUnavail(n.MACPrefix) }},
		{Def: Def{"free_count", "FreeCount", KindNumber, "How many addresses are free"},
			get: func(_ *view, n network) Cell { return known(int64(n.FreeCount())) }},
		{Def: Def{"reserved_count", "ReservedCount", KindNumber, "How many addresses are taken or set aside"},
			get: func(_ *view, n network) Cell { return known(int64(n.Size() - n.FreeCount())) }},
		{Def: Def{"map", "Map", KindText, "One character for each address: X taken or set aside, a dot free"},
			get: func(_ *view, n network) Cell { return text(n.Map()) }},
		{Def: Def{"external_reservations", "ExternalReservations", KindText, "Addresses that operators set aside"},
			get: func(_ *view, n network) Cell { return text(strings.Join(n.ExternalAddresses(), ", ")) }},
	}
}

func networkUseFields() []field[network] {
	return []field[network]{
		{Def: Def{"group_cnt", "NodeGroups", KindNumber, "How many node groups are connected to it"},
			get: func(v *view, n network) Cell { return known(int64(len(connected(v, n)))) }},
		{Def: Def{"group_list", "GroupList", KindOther, "Connected node groups, each as name, mode, link and VLAN"},
			get: func(v *view, n network) Cell { return known(connected(v, n)) }},
		{Def: Def{"inst_cnt", "Instances", KindNumber, "How many instances have a network interface in it"},
			get: func(v *view, n network) Cell { return known(int64(v.inv.CountInstancesIn(n.UUID))) }},
		{Def: Def{"inst_list", "InstanceList", KindOther, "Names of the instances with a network interface in it, ordered by UUID"},
			get: func(v *view, n network) Cell { return labelsByUUID(v.inv.InstancesIn(n.UUID)) }},
	}
}

// connected lists the groups that a network is connected to, in the order of
// their UUIDs: name, mode, link, VLAN each, "-" for a part that is not set.
func connected(v *view, n network) []any {
	groups := slices.Collect(v.inv.GroupsOn(n.UUID))
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
