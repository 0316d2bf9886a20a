package opcode

// groupOpcodes are the opcodes about node groups.
var groupOpcodes = []*Definition{
	{
		ID:           "OP_GROUP_VERIFY_DISKS",
		SummaryField: "group_name",
		Doc:          "Looks for degraded or missing disks in one node group.",
		Result:       "array[object{string: string}, list of string, object{string: list of list of string}]",
		Params: []Param{
			required("group_name", NonEmptyString, "name or UUID of the node group"),
			defaulted("is_strict", Bool, true, "report faults of offline nodes too"),
		},
	},
	{
		ID:           "OP_GROUP_ADD",
		SummaryField: "group_name",
		Doc:          "Adds a node group.",
		Result:       `(null or object{string: list of array[bool, (string or job id)]} (key "jobs"))`,
		Params: []Param{
			required("group_name", NonEmptyString, "name or UUID of the node group"),
			optional("alloc_policy", allocPolicy, "whether and how gladly new instances are placed here"),
			optional("ndparams", Object, "parameters of nodes"),
			optional("diskparams", MapOf(diskTemplate, Object), "parameters by disk template"),
			optional("hv_state", Object, "hypervisor state by node, as static data for planning"),
			optional("disk_state", Object, "disk state by node, as static data for planning"),
			optional("ipolicy", Object, "limits and standard sizes of instances"),
		},
	},
	{
		ID:           "OP_GROUP_ASSIGN_NODES",
		SummaryField: "group_name",
		Doc:          "Moves nodes into a node group.",
		Result:       "null",
		Params: []Param{
			required("group_name", NonEmptyString, "name or UUID of the node group"),
			defaulted("force", Bool, false, "go on in spite of warnings"),
			required("nodes", List(NonEmptyString), "names of the nodes to move into the group"),
			optional("node_uuids", List(NonEmptyString), "UUIDs of the nodes, instead of their names"),
		},
	},
	{
		ID:           "OP_GROUP_SET_PARAMS",
		SummaryField: "group_name",
		Doc:          "Changes a node group.",
		Result:       "list of array[non-empty string, any]",
		Params: []Param{
			required("group_name", NonEmptyString, "name or UUID of the node group"),
			optional("alloc_policy", allocPolicy, "whether and how gladly new instances are placed here"),
			optional("ndparams", Object, "parameters of nodes"),
			optional("diskparams", MapOf(diskTemplate, Object), "parameters by disk template"),
			optional("hv_state", Object, "hypervisor state by node, as static data for planning"),
			optional("disk_state", Object, "disk state by node, as static data for planning"),
			optional("ipolicy", Object, "limits and standard sizes of instances"),
		},
	},
	{
		ID:           "OP_GROUP_REMOVE",
		SummaryField: "group_name",
		Doc:          "Removes an empty node group.",
		Result:       "null",
		Params: []Param{
			required("group_name", NonEmptyString, "name or UUID of the node group"),
		},
	},
	{
		ID:     "OP_GROUP_RENAME",
		Doc:    "Gives a node group another name.",
		Result: "non-empty string",
		Params: []Param{
			required("group_name", NonEmptyString, "the present name"),
			required("new_name", NonEmptyString, "the new name"),
		},
	},
	{
		ID:           "OP_GROUP_EVACUATE",
		SummaryField: "group_name",
		Doc:          "Submits jobs that move all instances out of a node group.",
		Result:       `object{string: list of array[bool, (string or job id)]} (key "jobs")`,
		Params: []Param{
			required("group_name", NonEmptyString, "name or UUID of the node group"),
			defaulted("early_release", Bool, false, "release locks before disks are in sync, so that other work may start"),
			optional("iallocator", NonEmptyString, "allocator that chooses nodes"),
			optional("target_groups", List(NonEmptyString), "names or UUIDs of the groups to move to; any if unset"),
			defaulted("sequential", Bool, false, "move one instance after the other"),
			defaulted("force_failover", Bool, false, "fail over even where a migration is possible"),
		},
	},
}
