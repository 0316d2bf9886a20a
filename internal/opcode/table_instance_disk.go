package opcode

// instanceDiskOpcodes are the opcodes about the disks of instances.
var instanceDiskOpcodes = []*Definition{
	{
		ID:           "OP_INSTANCE_REPLACE_DISKS",
		Since:        5,
		SummaryField: "instance_name",
		Doc:          "Replaces disks of a replicated instance, or its secondary node.",
		Result:       "null",
		Params: []Param{
			required("instance_name", String, "name of the instance"),
			optional("instance_uuid", NonEmptyString, "UUID of the instance, instead of its name"),
			defaulted("early_release", Bool, false, "release locks before disks are in sync, so that other work may start"),
			defaulted("ignore_ipolicy", Bool, false, "accept what breaks the policy of the node group"),
			required("mode", Enum("ReplaceDisksMode", "replace_on_primary", "replace_on_secondary", "replace_new_secondary", "replace_auto"), "which side to replace"),
			defaulted("disks", List(DiskIndex), []any{}, "indexes of the disks; all if empty"),
			optional("remote_node", NonEmptyString, "the new secondary node"),
			optional("remote_node_uuid", NonEmptyString, "UUID of the new secondary node, instead of its name"),
			optional("iallocator", NonEmptyString, "allocator that chooses nodes"),
		},
	},
	{
		ID:           "OP_INSTANCE_ACTIVATE_DISKS",
		SummaryField: "instance_name",
		Doc:          "Makes a stopped instance's disks available on its node.",
		Result:       "list of array[non-empty string, non-empty string, (null or non-empty string)]",
		Params: []Param{
			required("instance_name", String, "name of the instance"),
			optional("instance_uuid", NonEmptyString, "UUID of the instance, instead of its name"),
			defaulted("ignore_size", Bool, false, "do not compare disk sizes with the recorded ones"),
			defaulted("wait_for_sync", Bool, false, "wait until disks are in sync"),
		},
	},
	{
		ID:           "OP_INSTANCE_DEACTIVATE_DISKS",
		SummaryField: "instance_name",
		Doc:          "Releases a stopped instance's disks.",
		Result:       "null",
		Params: []Param{
			required("instance_name", String, "name of the instance"),
			optional("instance_uuid", NonEmptyString, "UUID of the instance, instead of its name"),
			defaulted("force", Bool, false, "go on in spite of warnings"),
		},
	},
	{
		ID:           "OP_INSTANCE_RECREATE_DISKS",
		SummaryField: "instance_name",
		Doc:          "Makes lost disks of an instance again, empty.",
		Result:       "null",
		Params: []Param{
			required("instance_name", String, "name of the instance"),
			optional("instance_uuid", NonEmptyString, "UUID of the instance, instead of its name"),
			defaulted("disks", diskSelection, []any{}, "which disks, all if empty; with new parameters where given"),
			defaulted("nodes", List(NonEmptyString), []any{}, "new nodes for the instance"),
			optional("node_uuids", List(NonEmptyString), "UUIDs of new nodes for the instance, instead of their names"),
			optional("iallocator", NonEmptyString, "allocator that chooses nodes"),
		},
	},
	{
		ID:           "OP_INSTANCE_GROW_DISK",
		SummaryField: "instance_name",
		Doc:          "Makes a disk of an instance larger.",
		Result:       "null",
		Params: []Param{
			required("instance_name", String, "name of the instance"),
			optional("instance_uuid", NonEmptyString, "UUID of the instance, instead of its name"),
			defaulted("wait_for_sync", Bool, true, "wait until disks are in sync"),
			required("disk", DiskIndex, "index of the disk"),
			required("amount", NonNegative, "MiB to add, or the new size when absolute is set"),
			defaulted("absolute", Bool, false, "amount is the new size instead of what to add"),
			defaulted("ignore_ipolicy", Bool, false, "accept what breaks the policy of the node group"),
		},
	},
	{
		ID:           "OP_DISK_REMOVE",
		Since:        6,
		SummaryField: "disk",
		Doc:          "Removes a disk that no instance has, with its data.",
		Result:       "null",
		Params: []Param{
			required("disk", NonEmptyString, "UUID of the disk, or its name"),
			defaulted("ignore_failures", Bool, false, "forget the disk although a node that has it is offline, or fails"),
		},
	},
}
