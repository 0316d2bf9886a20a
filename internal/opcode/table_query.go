package opcode

// queryOpcodes are the opcodes about queries inside jobs.
var queryOpcodes = []*Definition{
	{
		ID:           "OP_QUERY",
		SummaryField: "what",
		Doc:          "Runs a query inside a job.",
		Result:       "query response",
		Params: []Param{
			required("what", queryKind, "kind of items"),
			defaulted("use_locking", Bool, false, "kept for old clients; queries take no locks"),
			required("fields", List(NonEmptyString), "fields to return"),
			optional("qfilter", List(Any), "filter in the query language"),
		},
	},
	{
		ID:           "OP_QUERY_FIELDS",
		SummaryField: "what",
		Doc:          "Returns the fields that a kind of item has.",
		Result:       "query fields response",
		Params: []Param{
			required("what", queryKind, "kind of items"),
			optional("fields", List(NonEmptyString), "fields to return"),
		},
	},
	{
		ID:     "OP_OS_DIAGNOSE",
		Doc:    "Lists the operating systems that nodes can install.",
		Result: "list of list of any",
		Params: []Param{
			required("output_fields", List(NonEmptyString), "fields to return"),
			defaulted("names", List(NonEmptyString), []any{}, "names of operating systems; all if empty"),
		},
	},
	{
		ID:     "OP_EXT_STORAGE_DIAGNOSE",
		Doc:    "Lists the external storage providers of nodes.",
		Result: "list of list of any",
		Params: []Param{
			required("output_fields", List(NonEmptyString), "fields to return"),
			defaulted("names", List(NonEmptyString), []any{}, "names of providers; all if empty"),
		},
	},
}
