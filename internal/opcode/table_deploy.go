package opcode

// deployOpcodes are the opcodes of deployments. The reference has none like them.
var deployOpcodes = []*Definition{
	{
		ID:           "OP_DEPLOY_TASK",
		SummaryField: "task",
		Doc:          "Carries out one task of a deployment on one node. Deployments make jobs of it, and nobody else can.",
		MadeBy:       "deployments (drover deploy run)",
		Result:       "map of status and, of a failure that the task tolerates, error",
		Params: []Param{
			required("deployment", Positive, "number of the deployment"),
			required("step", NonNegative, "place of the task in the plan of the deployment"),
			required("attempt", Positive, "how often the deployment was begun, resumed or retried"),
			required("environment", NonEmptyString, "name of the environment"),
			required("task", NonEmptyString, "id of the task"),
			required("task_type", NonEmptyString, "type of the task"),
			required("node", NonEmptyString, "UID of the node in the environment"),
			required("node_name", NonEmptyString, "name of the node of the cluster that carries it out"),
			defaulted("roles", List(NonEmptyString), []any{}, "roles of the node"),
		},
	},
}
