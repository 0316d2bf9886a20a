package items

import (
	"iter"
	"slices"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/qlang"
	"github.com/drover-project/drover/internal/query"
)

type node = *cluster.Node

var nodeTable = query.Table[node]{
	What:      "node",
	Stored:    true,
	NameField: "name",
	Fields: slices.Concat(nodeFields(), nodeInstanceFields(), nodeParamFields(), nodeLiveFields(),
		metaFields(func(n node) *cluster.Meta { return &n.Meta }),
		lastChangeFields(func(n node) *cluster.LastChange { return n.Last })),
	Aliases: map[string]string{"ip": "pip", "primary_ip": "pip", "secondary_ip": "sip", "mem": "mtotal", "pinst": "pinst_list", "sinst": "sinst_list"},
	Absent: map[string]string{
		"mused": "a node tells mtotal, mfree and mnode, which is what its own system uses; instances use mtotal - mfree - mnode",
		"dused": "a node tells dtotal and dfree; used is the rest, dtotal - dfree",
	},
	All:      func(v *query.View) iter.Seq[node] { return v.Inventory.Nodes() },
	Named:    nodeNamed,
	Narrow:   nodePaths,
	Size:     func(v *query.View) int { return v.Inventory.NodeCount() },
	Compare:  compareObjects[node],
	Identity: func(n node) string { return n.UUID },
	Affected: objectsOf(cluster.KindNode, nodesThatShow),
	RowsOf:   objectNow((*cluster.Snapshot).Node),
	Nodes: func(v *query.View, n node) string {
		if v.Inventory.Group(n.Group) == nil {
			return "" // the reference asks nodes of known groups only
		}
		return n.UUID
	},
}.Indexed()

func nodeNamed(v *query.View, names []qlang.Value) ([]node, bool, error) {
	return query.Find(names, v.Inventory.FindNode)
}

func nodePaths(t *query.Table[node], v *query.View, tests []qlang.Node) []query.Path[node] {
	ways := append(tagPaths(v, cluster.KindNode, tests, v.Inventory.Node), uuidPaths(tests, v.Inventory.Node)...)
	for _, test := range tests {
		if only(test, "group", "group.uuid") {
			ways = append(ways, groupPath(t, v, test)...)
		}
	}
	return ways
}

// groupPath is the way to the nodes of the groups that a test is about; none if
// it fails for one of them.
func groupPath(t *query.Table[node], v *query.View, test qlang.Node) []query.Path[node] {
	holds := t.Compile(test, false)
	var parts []query.Path[node]
	for group := range v.Inventory.NodeGroups() {
		verdict, err := holds(v, &cluster.Node{Group: group})
		if err != nil {
			return nil
		}
		if verdict != query.No {
			parts = append(parts, query.Path[node]{Count: v.Inventory.CountNodesIn(group), Rows: v.Inventory.NodesIn(group), Sorted: true})
		}
	}
	return []query.Path[node]{query.Join("group", parts...)}
}

func nodeFields() []query.Field[node] {
	return []query.Field[node]{
		{Def: def("name", "Node", query.KindText, "Name of the node"), Mode: query.ModeHostname,
			Get: func(_ *query.View, n node) query.Cell { return text(n.Name) }},
		{Def: def("pip", "PrimaryIP", query.KindText, "IP address by which it is reached"),
			Get: func(_ *query.View, n node) query.Cell { return text(n.PrimaryIP) }},
		{Def: def("sip", "SecondaryIP", query.KindText, "IP address that copies of disks go over"),
			Get: func(_ *query.View, n node) query.Cell { return text(n.SecondaryIP) }},
		{Def: def("drained", "Drained", query.KindBool, "Whether it takes no new instances"),
			Get: func(_ *query.View, n node) query.Cell { return truth(n.Drained) }},
		{Def: def("offline", "Offline", query.KindBool, "Whether it is marked as offline"),
			Get: func(_ *query.View, n node) query.Cell { return truth(n.Offline) }},
		{Def: def("master", "IsMaster", query.KindBool, "Whether it is the master at the moment"),
			Get: func(v *query.View, n node) query.Cell { return truth(n.UUID == v.Cluster.MasterNode) }},
		{Def: def("master_candidate", "MasterC", query.KindBool, "Whether it may take over as master"),
			Get: func(_ *query.View, n node) query.Cell { return truth(n.MasterCandidate) }},
		{Def: def("master_capable", "MasterCapable", query.KindBool, "Whether it may become a master candidate"),
			Get: func(_ *query.View, n node) query.Cell { return truth(n.MasterCapable) }},
		{Def: def("vm_capable", "VMCapable", query.KindBool, "Whether it may run instances"),
			Get: func(_ *query.View, n node) query.Cell { return truth(n.VMCapable) }},
		{Def: def("role", "Role", query.KindText, "Role as one letter: M master, C candidate, D drained, O offline, R regular"),
			Get: func(v *query.View, n node) query.Cell { return text(v.Cluster.Role(n)) }},
		{Def: def("group", "Group", query.KindText, "Name of its group"),
			Get: nodeGroup},
		{Def: def("group.uuid", "GroupUUID", query.KindText, "UUID of its group"),
			Get: nodeGroupUUID},
		{Def: def("powered", "Powered", query.KindBool, "Whether it is recorded as powered on; known only with out-of-band management"), Get: powered},
		{Def: def("hv_state", "HypervisorState", query.KindOther, "Kept for old clients and never filled"),
			Get: func(*query.View, node) query.Cell { return query.Cell{Status: query.Unavail} }},
		{Def: def("disk_state", "DiskState", query.KindOther, "Kept for old clients and never filled"),
			Get: func(*query.View, node) query.Cell { return query.Cell{Status: query.Unavail} }},
	}
}

// powered means something only when there is a program that tells.
func powered(v *query.View, n node) query.Cell {
	oob := nodeParam(v, n, "oob_program")
	switch {
	case oob.Status != query.Normal:
		return oob
	case oob.Value == nil || oob.Value == "":
		return query.Cell{Status: query.Unavail}
	}
	return truth(n.Powered)
}

func nodeInstanceFields() []query.Field[node] {
	return []query.Field[node]{
		{Def: def("pinst_cnt", "Pinst", query.KindNumber, "How many instances have it as primary node"),
			Get: func(v *query.View, n node) query.Cell { return known(int64(v.Inventory.CountPrimariesOn(n.UUID))) }},
		{Def: def("pinst_list", "PriInstances", query.KindOther, "Names of the instances that have it as primary node"),
			Get: func(v *query.View, n node) query.Cell { return labels(v.Inventory.PrimariesOn(n.UUID)) }},
		{Def: def("sinst_cnt", "Sinst", query.KindNumber, "How many instances have it as secondary node"),
			Get: func(v *query.View, n node) query.Cell { return known(int64(v.Inventory.CountSecondariesOn(n.UUID))) }},
		{Def: def("sinst_list", "SecInstances", query.KindOther, "Names of the instances that have it as secondary node"),
			Get: func(v *query.View, n node) query.Cell { return labels(v.Inventory.SecondariesOn(n.UUID)) }},
	}
}

func nodeParamFields() []query.Field[node] {
	return append(ndFields(nodeParam),
		query.Field[node]{Def: def("ndparams", "NodeParameters", query.KindOther, "Node parameters that are in effect"),
			Get: func(v *query.View, n node) query.Cell {
				if g := v.Inventory.Group(n.Group); g != nil {
					return known(query.Ordered{Keys: ndOrder, Values: v.Cluster.FillND(g, n)})
				}
				return query.Cell{Status: query.NoData}
			}},
		query.Field[node]{Def: def("custom_ndparams", "CustomNodeParameters", query.KindOther, "Node parameters set on the node itself"),
			Get: func(_ *query.View, n node) query.Cell { return orEmpty(n.NDParams) }},
	)
}

func nodeParam(v *query.View, n node, name string) query.Cell {
	g := v.Inventory.Group(n.Group)
	if g == nil {
		return query.Cell{Status: query.NoData}
	}
	if value, ok := layered(name, n.NDParams, g.NDParams, v.Cluster.NDParams); ok {
		return known(value)
	}
	return query.Cell{Status: query.NoData}
}

func nodeLiveFields() []query.Field[node] {
	hv := func(name, title string, kind query.Kind, doc string, get func(*query.HypervisorState) int64) query.Field[node] {
		return query.Field[node]{Def: def(name, title, kind, doc), From: query.Live, Need: query.NeedNode | query.NeedHypervisor,
			Get: func(v *query.View, n node) query.Cell {
				return nodeAnswer(v, n, func(s query.NodeState) query.Cell {
					if s.Hypervisor == nil {
						return query.Cell{Status: query.NoData}
					}
					return known(get(s.Hypervisor))
				})
			}}
	}
	space := func(name, title string, kind query.Kind, doc string, of func(query.NodeState) *query.Space, get func(*query.Space) int64) query.Field[node] {
		return query.Field[node]{Def: def(name, title, kind, doc), From: query.Live, Need: query.NeedNode | query.NeedStorage,
			Get: func(v *query.View, n node) query.Cell {
				return nodeAnswer(v, n, func(s query.NodeState) query.Cell {
					if of(s) == nil {
						return query.Cell{Status: query.NoData}
					}
					return known(get(of(s)))
				})
			}}
	}
	disk := func(s query.NodeState) *query.Space { return s.Storage }
	spindles := func(s query.NodeState) *query.Space { return s.Spindles }
	total := func(s *query.Space) int64 { return s.Total }
	free := func(s *query.Space) int64 { return s.Free }
	return []query.Field[node]{
		{Def: def("bootid", "BootID", query.KindText, "Identity of the node's present run, which changes with every boot"), From: query.Live, Need: query.NeedNode,
			Get: func(v *query.View, n node) query.Cell {
				return nodeAnswer(v, n, func(s query.NodeState) query.Cell { return textOrNoData(s.BootID) })
			}},
		{Def: def("told_at", "ToldAt", query.KindTimestamp, "When the node told its state last, also if it does not answer now"), From: query.Live, Need: query.NeedNode, Get: nodeTold},
		hv("mtotal", "MTotal", query.KindUnit, "Memory of the machine in MiB", func(h *query.HypervisorState) int64 { return h.MemoryTotal }),
		hv("mnode", "MNode", query.KindUnit, "Memory in MiB that the node's own system uses", func(h *query.HypervisorState) int64 { return h.MemoryNode }),
		hv("mfree", "MFree", query.KindUnit, "Memory in MiB that is free for instances", func(h *query.HypervisorState) int64 { return h.MemoryFree }),
		hv("ctotal", "CTotal", query.KindNumber, "Number of logical processors", func(h *query.HypervisorState) int64 { return h.CPUs }),
		hv("cnodes", "CNodes", query.KindNumber, "Number of NUMA nodes", func(h *query.HypervisorState) int64 { return h.CPUNodes }),
		hv("csockets", "CSockets", query.KindNumber, "Number of processor sockets", func(h *query.HypervisorState) int64 { return h.CPUSockets }),
		hv("cnos", "CNOs", query.KindNumber, "Number of logical processors that the node's own system uses", func(h *query.HypervisorState) int64 { return h.CPUsReserved }),
		space("dtotal", "DTotal", query.KindUnit, "Disk space for instances in MiB", disk, total),
		space("dfree", "DFree", query.KindUnit, "Disk space in MiB that is free for instances", disk, free),
		space("sptotal", "SpTotal", query.KindNumber, "Number of spindles", spindles, total),
		space("spfree", "SpFree", query.KindNumber, "Number of spindles that are free", spindles, free),
	}
}

// nodeTold is when a node told its state last, also of one that is away.
func nodeTold(v *query.View, n node) query.Cell {
	if answer := v.Answers.Nodes[n.UUID]; answer.AsOf != 0 {
		return since(job.Time(answer.AsOf / 1000))
	}
	return query.Cell{Status: query.NoData}
}

// nodeAnswer is a value out of what the node answered.
func nodeAnswer(v *query.View, n node, get func(query.NodeState) query.Cell) query.Cell {
	if n.Offline {
		return query.Cell{Status: query.Offline}
	}
	answer, ok := v.Answers.Of(n.UUID)
	if !ok || v.Inventory.Group(n.Group) == nil {
		return query.Cell{Status: query.NoData}
	}
	return get(answer)
}
