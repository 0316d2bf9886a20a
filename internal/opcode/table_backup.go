package opcode

// backupOpcodes are the opcodes about exports.
var backupOpcodes = []*Definition{
	{
		ID:           "OP_BACKUP_PREPARE",
		SummaryField: "instance_name",
		Doc:          "Prepares an export and returns what the receiver needs to know.",
		Result:       "(null or object)",
		Params: []Param{
			required("instance_name", String, "name of the instance"),
			optional("instance_uuid", NonEmptyString, "UUID of the instance, instead of its name"),
			required("mode", exportMode, "to a node of this cluster, or to another cluster"),
		},
	},
	{
		ID:           "OP_BACKUP_EXPORT",
		SummaryField: "instance_name",
		Doc:          "Exports an instance.",
		Result:       "array[bool, list of bool]",
		Params: []Param{
			required("instance_name", String, "name of the instance"),
			optional("instance_uuid", NonEmptyString, "UUID of the instance, instead of its name"),
			defaulted("compress", String, "none", "compression tool for moving data; none for none"),
			defaulted("shutdown_timeout", NonNegative, int64(120), "seconds until an instance that does not stop is switched off"),
			required("target_node", exportTarget, "the node for a local export, or [[host, port, magic], ...] for a remote one"),
			optional("target_node_uuid", NonEmptyString, "UUID of the node to move to, instead of its name"),
			defaulted("shutdown", Bool, true, "stop the instance for the export"),
			defaulted("remove_instance", Bool, false, "remove the instance after the export"),
			defaulted("ignore_remove_failures", Bool, false, "go on if the instance cannot be removed after the export"),
			defaulted("mode", exportMode, "local", "to a node of this cluster, or to another cluster"),
			optional("x509_key_name", List(Any), "key of the sending side, for remote exports"),
			optional("destination_x509_ca", NonEmptyString, "certificate of the receiving side, for remote exports"),
			defaulted("zero_free_space", Bool, false, "overwrite free space with zeros first"),
			optional("zeroing_timeout_fixed", Int, "seconds for zeroing besides those by size"),
			optional("zeroing_timeout_per_mib", Float, "seconds for zeroing per MiB"),
			defaulted("long_sleep", Bool, false, "allow for a long wait while the VM zeroes its disks"),
		},
	},
	{
		ID:           "OP_BACKUP_REMOVE",
		SummaryField: "instance_name",
		Doc:          "Removes the export of an instance.",
		Result:       "null",
		Params: []Param{
			required("instance_name", String, "name of the instance"),
			optional("instance_uuid", NonEmptyString, "UUID of the instance, instead of its name"),
		},
	},
}
