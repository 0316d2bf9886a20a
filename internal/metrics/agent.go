package metrics

// AgentTable is the table of what the agent of a node shows, in the order in which it is read.
func AgentTable() []Figure { return agentTable }

var agentTable = []Figure{
	{
		Name: "drover_agent_linked", Kind: Gauge, Unit: "1 or 0",
		Help:   "1 while the agent is connected to the controller that leads.",
		Advice: "0 for longer than seconds: its log says whom it tries and why it is refused, or whether nobody answers.",
	},
	{
		Name: "drover_agent_certificate_not_after_seconds", Kind: Gauge, Unit: "seconds since 1970",
		Help:   "When the certificate of the agent ends, in seconds since 1970.",
		Advice: "It is renewed eight hours before. Later than that: the log says why not; an agent whose certificate has ended renews it when it is back.",
	},
	{
		Name: "drover_agent_instance_running", Kind: Gauge, Unit: "1 or 0", Labels: []string{"instance"},
		Help:   "1 while an instance of the node runs, or is paused.",
		Advice: "0 of one that is to run: `drover instance list` says what it is to do, and the log of its last job why it does not.",
	},
	{
		Name: "drover_agent_instance_memory_bytes", Kind: Gauge, Unit: "bytes", Labels: []string{"instance"},
		Help:   "Memory that an instance of the node has.",
		Advice: "The sum beside the memory of the node: what is left for further instances.",
	},
	{
		Name: "drover_agent_build_info", Kind: Gauge, Unit: "1", Labels: []string{"version", "revision", "go"},
		Help:   "1, with the version that runs.",
		Advice: "More than one version among the nodes for longer than an upgrade takes: one was forgotten.",
	},
}
