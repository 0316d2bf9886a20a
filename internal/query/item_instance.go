package query

import (
	"iter"
	"slices"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/qlang"
)

type instance = *cluster.Instance

var instanceTable = table[instance]{
	what:      "instance",
	nameField: "name",
	fields: slices.Concat(
		instanceFields(), beFields(), hvFields(), diskFields(), nicFields(), instanceLiveFields(),
		metaFields(func(i instance) *cluster.Meta { return &i.Meta }),
		lastChangeFields(func(i instance) *cluster.LastChange { return i.Last }),
	),
	aliases:    instanceAliases(),
	all:        func(v *view) iter.Seq[instance] { return v.inv.Instances() },
	named:      instanceNamed,
	narrow:     instancePaths,
	size:       func(v *view) int { return v.inv.InstanceCount() },
	compare:    compareObjects[instance],
	touch:      func(i instance) int { return len(i.Name) + len(i.BEParams) + len(i.NICs) },
	touchParts: touchParts,
	identity:   func(i instance) string { return i.UUID },
	nodes:      func(_ *view, i instance) string { return i.PrimaryNode },
	affected:   objectsOf(cluster.KindInstance, instancesThatShow),
	rowsOf:     objectNow((*cluster.Snapshot).Instance),
}.indexed()

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

func instanceNamed(v *view, names []qlang.Value) ([]instance, bool, error) {
	return find(names, v.inv.FindInstance)
}

// adminState has its words as values made once: lists of many instances ask for
// one for each.
func adminState(state string) Cell {
	switch state {
	case cluster.AdminUp:
		return Cell{Value: cluster.AdminUp}
	case cluster.AdminDown:
		return Cell{Value: cluster.AdminDown}
	}
	return textOrNoData(state)
}

func instanceFields() []field[instance] {
	return []field[instance]{
		{Def: Def{"name", "Instance", KindText, "Name of the instance"}, mode: hostname,
			get: func(_ *view, i instance) Cell { return textOrNoData(i.Name) }},
		{Def: Def{"admin_state", "InstanceState", KindText, "Power state that is wanted: up, down or offline"},
			get: func(_ *view, i instance) Cell { return adminState(i.AdminState) }},
		{Def: Def{"admin_state_source", "InstanceStateSource", KindText, "Who last set the wanted power state: admin or user"},
			get: func(_ *view, i instance) Cell { return textOrNoData(i.AdminStateSource) }},
		{Def: Def{"admin_up", "Autostart", KindBool, "Whether the wanted power state is up"},
			get: func(_ *view, i instance) Cell {
				if i.AdminState == "" {
					return Cell{Status: NoData}
				}
				return truth(i.AdminState == cluster.AdminUp)
			}},
		{Def: Def{"disks_active", "DisksActive", KindBool, "Whether the disks are meant to be active"},
			get: func(_ *view, i instance) Cell { return truth(i.DisksActive) }},
		{Def: Def{"forthcoming", "Forthcoming", KindBool, "Whether the instance is only reserved and not made yet"},
			get: func(_ *view, i instance) Cell { return truth(i.Forthcoming) }},
		{Def: Def{"hypervisor", "Hypervisor", KindText, "Hypervisor that runs it"},
			get: func(_ *view, i instance) Cell { return textOrNoData(i.Hypervisor) }},
		{Def: Def{"network_port", "Network_port", KindOther, "TCP port set aside for its console"},
			get: func(_ *view, i instance) Cell {
				if i.NetworkPort == 0 {
					return Cell{Status: Unavail}
				}
				return known(i.NetworkPort)
			}},
		{Def: Def{"os", "OS", KindText, "Operating system, with its variant after a plus sign"},
			get: func(_ *view, i instance) Cell { return textOrNoData(i.OS) }},
		{Def: Def{"pnode", "Primary_node", KindText, "Name of the primary node"}, mode: hostname,
			get: func(v *view, i instance) Cell { return ofPrimary(v, i, nodeName) }},
		{Def: Def{"pnode.group", "PrimaryNodeGroup", KindText, "Name of the primary node's group"},
			get: func(v *view, i instance) Cell { return ofPrimary(v, i, nodeGroup) }},
		{Def: Def{"pnode.group.uuid", "PrimaryNodeGroupUUID", KindText, "UUID of the primary node's group"},
			get: func(v *view, i instance) Cell { return ofPrimary(v, i, nodeGroupUUID) }},
		{Def: Def{"snodes", "Secondary_Nodes", KindOther, "Names of the nodes that hold the second copies of its disks"},
			get: func(v *view, i instance) Cell { return ofSecondaries(v, i, nodeName) }},
		{Def: Def{"snodes.group", "SecondaryNodesGroups", KindOther, "Names of the secondary nodes' groups"},
			get: func(v *view, i instance) Cell { return ofSecondaries(v, i, nodeGroup) }},
		{Def: Def{"snodes.group.uuid", "SecondaryNodesGroupsUUID", KindOther, "UUIDs of the secondary nodes' groups"},
			get: func(v *view, i instance) Cell { return ofSecondaries(v, i, nodeGroupUUID) }},
		{Def: Def{"beparams", "BackendParameters", KindOther, "Backend parameters that are in effect"},
			get: func(v *view, i instance) Cell {
				if v.cluster == nil || v.cluster.BEParams[cluster.DefaultProfile] == nil {
					return Cell{Status: NoData}
				}
				return known(ordered{beOrder, v.cluster.FillBE(i)})
			}},
		{Def: Def{"custom_beparams", "CustomBackendParameters", KindOther, "Backend parameters set on the instance itself"},
			get: func(_ *view, i instance) Cell { return orEmpty(i.BEParams) }},
		{Def: Def{"hvparams", "HypervisorParameters", KindOther, "Hypervisor parameters that are in effect, without those of the cluster alone"},
			get: func(v *view, i instance) Cell { return known(v.cluster.FillHV(i)) }},
		{Def: Def{"custom_hvparams", "CustomHypervisorParameters", KindOther, "Hypervisor parameters set on the instance itself"},
			get: func(_ *view, i instance) Cell { return orEmpty(i.HVParams) }},
		{Def: Def{"osparams", "OpSysParameters", KindOther, "Parameters of the operating system that are in effect, private ones left out"},
			get: func(v *view, i instance) Cell { return known(v.cluster.FillOS(i)) }},
		{Def: Def{"custom_osparams", "CustomOpSysParameters", KindOther, "Parameters of the operating system set on the instance itself"},
			get: func(_ *view, i instance) Cell { return orEmpty(i.OSParams) }},
		{Def: Def{"custom_nicparams", "CustomNicParameters", KindOther, "Parameters set on each network interface itself"},
			get: func(_ *view, i instance) Cell { return known(eachNIC(i, ownNICParams)) }},
	}
}

// What instances tell of their nodes.
func nodeName(_ *view, n node) Cell      { return text(n.Name) }
func nodeGroup(v *view, n node) Cell     { return groupName(v, n.Group) }
func nodeGroupUUID(_ *view, n node) Cell { return text(n.Group) }

// ofPrimary looks at the primary node.
func ofPrimary(v *view, i instance, get func(*view, node) Cell) Cell {
	n := v.inv.Node(i.PrimaryNode)
	if n == nil || i.Name == "" {
		return Cell{Status: NoData}
	}
	return get(v, n)
}

// ofSecondaries makes a list of a value of each secondary node.
func ofSecondaries(v *view, i instance, get func(*view, node) Cell) Cell {
	if i.Name == "" || v.inv.Node(i.PrimaryNode) == nil {
		return Cell{Status: NoData}
	}
	out := []any{}
	for _, uuid := range i.SecondaryNodes() {
		n := v.inv.Node(uuid)
		if n == nil {
			return Cell{Status: NoData}
		}
		c := get(v, n)
		if c.Status != Normal {
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
