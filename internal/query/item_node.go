package query

import (
	"iter"
	"slices"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/qlang"
)

type node = *cluster.Node

var nodeTable = table[node]{
	what:      "node",
	nameField: "name",
	fields: slices.Concat(nodeFields(), nodeInstanceFields(), nodeParamFields(), nodeLiveFields(),
		metaFields(func(n node) *cluster.Meta { return &n.Meta }),
		lastChangeFields(func(n node) *cluster.LastChange { return n.Last })),
	aliases: map[string]string{"ip": "pip", "primary_ip": "pip", "secondary_ip": "sip", "mem": "mtotal", "pinst": "pinst_list", "sinst": "sinst_list"},
	absent: map[string]string{
		"mused": "a node tells mtotal, mfree and mnode, which is what its own system uses; instances use mtotal - mfree - mnode",
		"dused": "a node tells dtotal and dfree; used is the rest, dtotal - dfree",
	},
	all:      func(v *view) iter.Seq[node] { return v.inv.Nodes() },
	named:    nodeNamed,
	narrow:   nodePaths,
	size:     func(v *view) int { return v.inv.NodeCount() },
	compare:  compareObjects[node],
	identity: func(n node) string { return n.UUID },
	affected: objectsOf(cluster.KindNode, nodesThatShow),
	rowsOf:   objectNow((*cluster.Snapshot).Node),
	nodes: func(v *view, n node) string {
		if v.inv.Group(n.Group) == nil {
			return "" // the reference asks nodes of known groups only
		}
		return n.UUID
	},
}.indexed()

func nodeNamed(v *view, names []qlang.Value) ([]node, bool, error) {
	return find(names, v.inv.FindNode)
}

func nodePaths(t *table[node], v *view, tests []qlang.Node) []path[node] {
	ways := append(tagPaths(v, cluster.KindNode, tests, v.inv.Node), uuidPaths(tests, v.inv.Node)...)
	for _, test := range tests {
		if only(test, "group", "group.uuid") {
			ways = append(ways, groupPath(t, v, test)...)
		}
	}
	return ways
}

// groupPath is the way to the nodes of the groups that a test is about; none if
// it fails for one of them.
func groupPath(t *table[node], v *view, test qlang.Node) []path[node] {
	holds := t.compile(test, false)
	var parts []path[node]
	for group := range v.inv.NodeGroups() {
		verdict, err := holds(v, &cluster.Node{Group: group})
		if err != nil {
			return nil
		}
		if verdict != no {
			parts = append(parts, path[node]{count: v.inv.CountNodesIn(group), rows: v.inv.NodesIn(group), sorted: true})
		}
	}
	return []path[node]{joined("group", parts...)}
}

func nodeFields() []field[node] {
	return []field[node]{
		{Def: Def{"name", "Node", KindText, "Name of the node"}, mode: hostname,
			get: func(_ *view, n node) Cell { return text(n.Name) }},
		{Def: Def{"pip", "PrimaryIP", KindText, "IP address by which it is reached"},
			get: func(_ *view, n node) Cell { return text(n.PrimaryIP) }},
		{Def: Def{"sip", "SecondaryIP", KindText, "IP address that copies of disks go over"},
			get: func(_ *view, n node) Cell { return text(n.SecondaryIP) }},
		{Def: Def{"drained", "Drained", KindBool, "Whether it takes no new instances"},
			get: func(_ *view, n node) Cell { return truth(n.Drained) }},
		{Def: Def{"offline", "Offline", KindBool, "Whether it is marked as offline"},
			get: func(_ *view, n node) Cell { return truth(n.Offline) }},
		{Def: Def{"master", "IsMaster", KindBool, "Whether it is the master at the moment"},
			get: func(v *view, n node) Cell { return truth(n.UUID == v.cluster.MasterNode) }},
		{Def: Def{"master_candidate", "MasterC", KindBool, "Whether it may take over as master"},
			get: func(_ *view, n node) Cell { return truth(n.MasterCandidate) }},
		{Def: Def{"master_capable", "MasterCapable", KindBool, "Whether it may become a master candidate"},
			get: func(_ *view, n node) Cell { return truth(n.MasterCapable) }},
		{Def: Def{"vm_capable", "VMCapable", KindBool, "Whether it may run instances"},
			get: func(_ *view, n node) Cell { return truth(n.VMCapable) }},
		{Def: Def{"role", "Role", KindText, "Role as one letter: M master, C candidate, D drained, O offline, R regular"},
			get: func(v *view, n node) Cell { return text(v.cluster.Role(n)) }},
		{Def: Def{"group", "Group", KindText, "Name of its group"},
			get: nodeGroup},
		{Def: Def{"group.uuid", "GroupUUID", KindText, "UUID of its group"},
			get: nodeGroupUUID},
		{Def: Def{"powered", "Powered", KindBool, "Whether it is recorded as powered on; known only with out-of-band management"}, get: powered},
		{Def: Def{"hv_state", "HypervisorState", KindOther, "Kept for old clients and never filled"},
			get: func(*view, node) Cell { return Cell{Status: Unavail} }},
		{Def: Def{"disk_state", "DiskState", KindOther, "Kept for old clients and never filled"},
			get: func(*view, node) Cell { return Cell{Status: Unavail} }},
	}
}

// powered means something only when there is a program that tells.
func powered(v *view, n node) Cell {
	oob := nodeParam(v, n, "oob_program")
	switch {
	case oob.Status != Normal:
		return oob
	case oob.Value == nil || oob.Value == "":
		return Cell{Status: Unavail}
	}
	return truth(n.Powered)
}

func nodeInstanceFields() []field[node] {
	return []field[node]{
		{Def: Def{"pinst_cnt", "Pinst", KindNumber, "How many instances have it as primary node"},
			get: func(v *view, n node) Cell { return known(int64(v.inv.CountPrimariesOn(n.UUID))) }},
		{Def: Def{"pinst_list", "PriInstances", KindOther, "Names of the instances that have it as primary node"},
			get: func(v *view, n node) Cell { return labels(v.inv.PrimariesOn(n.UUID)) }},
		{Def: Def{"sinst_cnt", "Sinst", KindNumber, "How many instances have it as secondary node"},
			get: func(v *view, n node) Cell { return known(int64(v.inv.CountSecondariesOn(n.UUID))) }},
		{Def: Def{"sinst_list", "SecInstances", KindOther, "Names of the instances that have it as secondary node"},
			get: func(v *view, n node) Cell { return labels(v.inv.SecondariesOn(n.UUID)) }},
	}
}

func nodeParamFields() []field[node] {
	return append(ndFields(nodeParam),
		field[node]{Def: Def{"ndparams", "NodeParameters", KindOther, "Node parameters that are in effect"},
			get: func(v *view, n node) Cell {
				if g := v.inv.Group(n.Group); g != nil {
					return known(ordered{ndOrder, v.cluster.FillND(g, n)})
				}
				return Cell{Status: NoData}
			}},
		field[node]{Def: Def{"custom_ndparams", "CustomNodeParameters", KindOther, "Node parameters set on the node itself"},
			get: func(_ *view, n node) Cell { return orEmpty(n.NDParams) }},
	)
}

func nodeParam(v *view, n node, name string) Cell {
	g := v.inv.Group(n.Group)
	if g == nil {
		return Cell{Status: NoData}
	}
	if value, ok := layered(name, n.NDParams, g.NDParams, v.cluster.NDParams); ok {
		return known(value)
	}
	return Cell{Status: NoData}
}

func nodeLiveFields() []field[node] {
	hv := func(name, title string, kind Kind, doc string, get func(*HypervisorState) int64) field[node] {
		return field[node]{Def: Def{name, title, kind, doc}, from: Live, need: NeedNode | NeedHypervisor,
			get: func(v *view, n node) Cell {
				return nodeAnswer(v, n, func(s NodeState) Cell {
					if s.Hypervisor == nil {
						return Cell{Status: NoData}
					}
					return known(get(s.Hypervisor))
				})
			}}
	}
	space := func(name, title string, kind Kind, doc string, of func(NodeState) *Space, get func(*Space) int64) field[node] {
		return field[node]{Def: Def{name, title, kind, doc}, from: Live, need: NeedNode | NeedStorage,
			get: func(v *view, n node) Cell {
				return nodeAnswer(v, n, func(s NodeState) Cell {
					if of(s) == nil {
						return Cell{Status: NoData}
					}
					return known(get(of(s)))
				})
			}}
	}
	disk := func(s NodeState) *Space { return s.Storage }
	spindles := func(s NodeState) *Space { return s.Spindles }
	total := func(s *Space) int64 { return s.Total }
	free := func(s *Space) int64 { return s.Free }
	return []field[node]{
		{Def: Def{"bootid", "BootID", KindText, "Identity of the node's present run, which changes with every boot"}, from: Live, need: NeedNode,
			get: func(v *view, n node) Cell {
				return nodeAnswer(v, n, func(s NodeState) Cell { return textOrNoData(s.BootID) })
			}},
		hv("mtotal", "MTotal", KindUnit, "Memory of the machine in MiB", func(h *HypervisorState) int64 { return h.MemoryTotal }),
		hv("mnode", "MNode", KindUnit, "Memory in MiB that the node's own system uses", func(h *HypervisorState) int64 { return h.MemoryNode }),
		hv("mfree", "MFree", KindUnit, "Memory in MiB that is free for instances", func(h *HypervisorState) int64 { return h.MemoryFree }),
		hv("ctotal", "CTotal", KindNumber, "Number of logical processors", func(h *HypervisorState) int64 { return h.CPUs }),
		hv("cnodes", "CNodes", KindNumber, "Number of NUMA nodes", func(h *HypervisorState) int64 { return h.CPUNodes }),
		hv("csockets", "CSockets", KindNumber, "Number of processor sockets", func(h *HypervisorState) int64 { return h.CPUSockets }),
		hv("cnos", "CNOs", KindNumber, "Number of logical processors that the node's own system uses", func(h *HypervisorState) int64 { return h.CPUsReserved }),
		space("dtotal", "DTotal", KindUnit, "Disk space for instances in MiB", disk, total),
		space("dfree", "DFree", KindUnit, "Disk space in MiB that is free for instances", disk, free),
		space("sptotal", "SpTotal", KindNumber, "Number of spindles", spindles, total),
		space("spfree", "SpFree", KindNumber, "Number of spindles that are free", spindles, free),
	}
}

// nodeAnswer is a value out of what the node answered.
func nodeAnswer(v *view, n node, get func(NodeState) Cell) Cell {
	if n.Offline {
		return Cell{Status: Offline}
	}
	answer, ok := v.live.of(n.UUID)
	if !ok || v.inv.Group(n.Group) == nil {
		return Cell{Status: NoData}
	}
	return get(answer)
}
