package opcode

// testOpcodes are the opcodes about tests of the system itself.
var testOpcodes = []*Definition{
	{
		ID:           "OP_TEST_DELAY",
		SummaryField: "duration",
		Doc:          "Waits, for tests of the queue and of locks.",
		Result:       "null",
		Params: []Param{
			required("duration", Float, "seconds to wait"),
			defaulted("on_master", Bool, true, "wait on the master"),
			defaulted("on_nodes", List(NonEmptyString), []any{}, "names of the nodes to wait on"),
			optional("on_node_uuids", List(NonEmptyString), "UUIDs of the nodes to wait on, instead of their names"),
			defaulted("repeat", NonNegative, int64(0), "how often to wait again"),
			defaulted("interruptible", Bool, false, "the wait can be ended early through a socket"),
			defaulted("no_locks", Bool, true, "take no locks"),
		},
	},
	{
		ID:           "OP_TEST_ALLOCATOR",
		SummaryField: "iallocator",
		Doc:          "Asks an allocator, or shows what it would be asked.",
		Result:       "string",
		Params: []Param{
			required("direction", Enum("IAllocatorTestDir", "in", "out"), "in shows what the allocator would be asked, out runs it"),
			required("mode", Enum("IAllocatorMode", "allocate", "allocate-secondary", "multi-allocate", "relocate", "node-evacuate", "change-group"), "which question to ask"),
			required("name", NonEmptyString, "name of the instance to place"),
			optional("nics", List(nicObject), "the network interfaces"),
			optional("disks", List(Any), "the disks"),
			optional("hypervisor", hypervisorKind, "the hypervisor; the default of the cluster if unset"),
			optional("iallocator", NonEmptyString, "allocator that chooses nodes"),
			defaulted("tags", List(NonEmptyString), []any{}, "the tags"),
			optional("memory", NonNegative, "memory in MiB"),
			optional("vcpus", NonNegative, "virtual CPUs"),
			optional("os", NonEmptyString, "operating system"),
			optional("disk_template", diskTemplate, "how disks are made and replicated"),
			optional("instances", List(NonEmptyString), "names of the instances to move"),
			optional("evac_mode", evacuationMode, "which instances to move away"),
			optional("target_groups", List(NonEmptyString), "names or UUIDs of the groups to move to; any if unset"),
			defaulted("spindle_use", NonNegative, int64(1), "how many disk spindles it counts for"),
			defaulted("count", NonNegative, int64(1), "how many instances to try to place"),
			optional("group_name", NonEmptyString, "node group to place in"),
		},
	},
	{
		ID:     "OP_TEST_JQUEUE",
		Doc:    "Exercises the notifications of the job queue.",
		Result: "bool",
		Params: []Param{
			defaulted("notify_waitlock", Bool, false, "tell the test when waiting for locks begins"),
			defaulted("notify_exec", Bool, false, "tell the test when execution begins"),
			defaulted("log_messages", List(String), []any{}, "texts to log"),
			defaulted("fail", Bool, false, "fail in the end"),
		},
	},
	{
		ID:     "OP_TEST_OS_PARAMS",
		Doc:    "Accepts secret parameters, to test how they are handled.",
		Result: "null",
		Params: []Param{
			optional("osparams_secret", MapOf(String, SecretAny), "parameters for the scripts that are not stored"),
		},
	},
	{
		ID:     "OP_TEST_DUMMY",
		Doc:    "Logs, returns, fails or submits jobs as told, to test the queue.",
		Result: "null",
		Params: []Param{
			required("result", Any, "value to return"),
			required("messages", Any, "texts to log"),
			required("fail", Any, "true to fail in the end"),
			required("submit_jobs", nestedJobs, "jobs to submit, each a list of opcodes; null for none"),
		},
	},
}
