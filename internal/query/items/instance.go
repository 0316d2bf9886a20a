package items

import (
	"iter"
	"slices"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/qlang"
	"github.com/drover-project/drover/internal/query"
)

type instance = *cluster.Instance

var instanceTable = query.Table[instance]{
	What:      "instance",
	Stored:    true,
	NameField: "name",
	Fields: slices.Concat(
		instanceFields(), beFields(), hvFields(), diskFields(), nicFields(), instanceLiveFields(),
		metaFields(func(i instance) *cluster.Meta { return &i.Meta }),
		lastChangeFields(func(i instance) *cluster.LastChange { return i.Last }),
	),
	Aliases:    instanceAliases(),
	All:        func(v *query.View) iter.Seq[instance] { return v.Inventory.Instances() },
	Named:      instanceNamed,
	Narrow:     instancePaths,
	Size:       func(v *query.View) int { return v.Inventory.InstanceCount() },
	Compare:    compareObjects[instance],
	Touch:      func(i instance) int { return len(i.Name) + len(i.BEParams) + len(i.NICs) },
	TouchParts: touchParts,
	Identity:   func(i instance) string { return i.UUID },
	Nodes:      func(_ *query.View, i instance) string { return i.PrimaryNode },
	Affected:   objectsOf(cluster.KindInstance, instancesThatShow),
	RowsOf:     objectNow((*cluster.Snapshot).Instance),
}.Indexed()

// touchParts reads a word of the name, the tags, and each disk and NIC.
func touchParts(i instance) int {
	sum := 0
	if i.Name != "" {
		sum += int(i.Name[0])
	}
	if len(i.Tags) > 0 {
		sum += len(i.Tags[0])
	}
	for n := range i.Disks {
		sum += int(i.Disks[n].Size)
	}
	for n := range i.NICs {
		sum += len(i.NICs[n].IP)
	}
	return sum
}

func instanceNamed(v *query.View, names []qlang.Value) ([]instance, bool, error) {
	return query.Find(names, v.Inventory.FindInstance)
}

// adminState has its words as values made once: lists of many instances ask for
// one for each.
func adminState(state string) query.Cell {
	switch state {
	case cluster.AdminUp:
		return query.Cell{Value: cluster.AdminUp}
	case cluster.AdminDown:
		return query.Cell{Value: cluster.AdminDown}
	}
	return textOrNoData(state)
}

func instanceFields() []query.Field[instance] {
	return []query.Field[instance]{
		{Def: def("name", "Instance", query.KindText, "Name of the instance"), Mode: query.ModeHostname,
			Get: func(_ *query.View, i instance) query.Cell { return textOrNoData(i.Name) }},
		{Def: def("admin_state", "InstanceState", query.KindText, "Power state that is wanted: up, down or offline"),
			Get: func(_ *query.View, i instance) query.Cell { return adminState(i.AdminState) }},
		{Def: def("admin_state_source", "InstanceStateSource", query.KindText, "Who last set the wanted power state: admin or user"),
			Get: func(_ *query.View, i instance) query.Cell { return textOrNoData(i.AdminStateSource) }},
		{Def: def("admin_up", "Autostart", query.KindBool, "Whether the wanted power state is up"),
			Get: func(_ *query.View, i instance) query.Cell {
				if i.AdminState == "" {
					return query.Cell{Status: query.NoData}
				}
				return truth(i.AdminState == cluster.AdminUp)
			}},
		{Def: def("disks_active", "DisksActive", query.KindBool, "Whether the disks are meant to be active"),
			Get: func(_ *query.View, i instance) query.Cell { return truth(i.DisksActive) }},
		{Def: def("forthcoming", "Forthcoming", query.KindBool, "Whether the instance is only reserved and not made yet"),
			Get: func(_ *query.View, i instance) query.Cell { return truth(i.Forthcoming) }},
		{Def: def("hypervisor", "Hypervisor", query.KindText, "Hypervisor that runs it"),
			Get: func(_ *query.View, i instance) query.Cell { return textOrNoData(i.Hypervisor) }},
		{Def: def("network_port", "Network_port", query.KindOther, "TCP port set aside for its console"),
			Get: func(_ *query.View, i instance) query.Cell {
				if i.NetworkPort == 0 {
					return query.Cell{Status: query.Unavail}
				}
				return known(i.NetworkPort)
			}},
		{Def: def("os", "OS", query.KindText, "Operating system, with its variant after a plus sign"),
			Get: func(_ *query.View, i instance) query.Cell { return textOrNoData(i.OS) }},
		{Def: def("pnode", "Primary_node", query.KindText, "Name of the primary node"), Mode: query.ModeHostname,
			Get: func(v *query.View, i instance) query.Cell { return ofPrimary(v, i, nodeName) }},
		{Def: def("pnode.group", "PrimaryNodeGroup", query.KindText, "Name of the primary node's group"),
			Get: func(v *query.View, i instance) query.Cell { return ofPrimary(v, i, nodeGroup) }},
		{Def: def("pnode.group.uuid", "PrimaryNodeGroupUUID", query.KindText, "UUID of the primary node's group"),
			Get: func(v *query.View, i instance) query.Cell { return ofPrimary(v, i, nodeGroupUUID) }},
		{Def: def("snodes", "Secondary_Nodes", query.KindOther, "Names of the nodes that hold the second copies of its disks"),
			Get: func(v *query.View, i instance) query.Cell { return ofSecondaries(v, i, nodeName) }},
		{Def: def("snodes.group", "SecondaryNodesGroups", query.KindOther, "Names of the secondary nodes' groups"),
			Get: func(v *query.View, i instance) query.Cell { return ofSecondaries(v, i, nodeGroup) }},
		{Def: def("snodes.group.uuid", "SecondaryNodesGroupsUUID", query.KindOther, "UUIDs of the secondary nodes' groups"),
			Get: func(v *query.View, i instance) query.Cell { return ofSecondaries(v, i, nodeGroupUUID) }},
		{Def: def("beparams", "BackendParameters", query.KindOther, "Backend parameters that are in effect"),
			Get: func(v *query.View, i instance) query.Cell {
				if v.Cluster == nil || v.Cluster.BEParams[cluster.DefaultProfile] == nil {
					return query.Cell{Status: query.NoData}
				}
				return known(query.Ordered{Keys: beOrder, Values: v.Cluster.FillBE(i)})
			}},
		{Def: def("custom_beparams", "CustomBackendParameters", query.KindOther, "Backend parameters set on the instance itself"),
			Get: func(_ *query.View, i instance) query.Cell { return orEmpty(i.BEParams) }},
		{Def: def("hvparams", "HypervisorParameters", query.KindOther, "Hypervisor parameters that are in effect, without those of the cluster alone"),
			Get: func(v *query.View, i instance) query.Cell { return known(v.Cluster.FillHV(i)) }},
		{Def: def("custom_hvparams", "CustomHypervisorParameters", query.KindOther, "Hypervisor parameters set on the instance itself"),
			Get: func(_ *query.View, i instance) query.Cell { return orEmpty(i.HVParams) }},
		{Def: def("osparams", "OpSysParameters", query.KindOther, "Parameters of the operating system that are in effect, private ones left out"),
			Get: func(v *query.View, i instance) query.Cell { return known(v.Cluster.FillOS(i)) }},
		{Def: def("custom_osparams", "CustomOpSysParameters", query.KindOther, "Parameters of the operating system set on the instance itself"),
			Get: func(_ *query.View, i instance) query.Cell { return orEmpty(i.OSParams) }},
		{Def: def("custom_nicparams", "CustomNicParameters", query.KindOther, "Parameters set on each network interface itself"),
			Get: func(_ *query.View, i instance) query.Cell { return known(eachNIC(i, ownNICParams)) }},
	}
}

// What instances tell of their nodes.
func nodeName(_ *query.View, n node) query.Cell      { return text(n.Name) }
func nodeGroup(v *query.View, n node) query.Cell     { return groupName(v, n.Group) }
func nodeGroupUUID(_ *query.View, n node) query.Cell { return text(n.Group) }

// ofPrimary looks at the primary node.
func ofPrimary(v *query.View, i instance, get func(*query.View, node) query.Cell) query.Cell {
	n := v.Inventory.Node(i.PrimaryNode)
	if n == nil || i.Name == "" {
		return query.Cell{Status: query.NoData}
	}
	return get(v, n)
}

// ofSecondaries makes a list of a value of each secondary node.
func ofSecondaries(v *query.View, i instance, get func(*query.View, node) query.Cell) query.Cell {
	if i.Name == "" || v.Inventory.Node(i.PrimaryNode) == nil {
		return query.Cell{Status: query.NoData}
	}
	out := []any{}
	for _, uuid := range i.SecondaryNodes() {
		n := v.Inventory.Node(uuid)
		if n == nil {
			return query.Cell{Status: query.NoData}
		}
		c := get(v, n)
		if c.Status != query.Normal {
			return c
		}
		out = append(out, c.Value)
	}
	return known(out)
}

// instanceAliases are the names that the design of the query system gave to
// fields that came to be called otherwise.
func instanceAliases() map[string]string {
	out := map[string]string{
		"mem": "be/maxmem", "memory": "be/maxmem", "disk_size": "disk.size/0", "autostart": "admin_up",
		"pnode_group": "pnode.group", "snode": "snodes", "state": "status", "ram": "oper_ram",
	}
	for n := range maxDisks {
		for _, part := range []string{"size", "name", "uuid", "spindles"} {
			out["disk"+itoa(int64(n))+"."+part] = "disk." + part + "/" + itoa(int64(n))
		}
	}
	for n := range maxNICs {
		for _, part := range []string{"ip", "mac", "mode", "link", "bridge", "vlan", "network", "name", "uuid"} {
			out["nic"+itoa(int64(n))+"."+part] = "nic." + part + "/" + itoa(int64(n))
		}
	}
	return out
}
