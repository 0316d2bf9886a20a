package opcode

// meantInstance says which instance is meant, whoever has its name by now.
var meantInstance = ours(optional("instance_uuid", NonEmptyString, "UUID of the instance, which counts before its name"))

// tagOpcodes are the opcodes about tags.
var tagOpcodes = []*Definition{
	{
		ID:           "OP_TAGS_GET",
		SummaryField: "name",
		Doc:          "Returns tags.",
		Result:       "list of non-empty string",
		Params: []Param{
			required("kind", tagKind, "what carries the tags"),
			defaulted("use_locking", Bool, false, "kept for old clients; queries take no locks"),
			optional("name", String, "name of what carries the tags; unset for the cluster"),
		},
	},
	{
		ID:           "OP_TAGS_SEARCH",
		SummaryField: "pattern",
		Doc:          "Finds everything that carries a matching tag.",
		Result:       "list of array[non-empty string, non-empty string]",
		Params: []Param{
			required("pattern", NonEmptyString, "regular expression that tags must match"),
		},
	},
	{
		ID:     "OP_TAGS_SET",
		Doc:    "Adds tags.",
		Result: "null",
		Params: []Param{
			required("kind", tagKind, "what carries the tags"),
			required("tags", List(String), "tags to add"),
			optional("name", String, "name of what carries the tags; unset for the cluster"),
			meantInstance,
		},
	},
	{
		ID:     "OP_TAGS_DEL",
		Doc:    "Removes tags.",
		Result: "null",
		Params: []Param{
			required("kind", tagKind, "what carries the tags"),
			required("tags", List(String), "tags to remove"),
			optional("name", String, "name of what carries the tags; unset for the cluster"),
			meantInstance,
		},
	},
}
