package query

// Need says what a query wants from nodes; the parts combine by |.
type Need uint16

// What nodes can be asked for.
const (
	NeedNode       Need = 1 << iota // boot id
	NeedHypervisor                  // memory and processors
	NeedStorage                     // disk space and spindles
	NeedInstances                   // what runs there
	NeedConsole                     // how to reach consoles
	NeedExports                     // exports kept there
	NeedOS                          // operating system definitions
	NeedExtStorage                  // external storage providers

	// NeedFresh goes with others: nodes are to be asked now, what they told
	// before will not do.
	NeedFresh
)

// NodeState is what a node answered.
type NodeState struct {
	// Failed says why there is no answer; empty when there is one.
	Failed string
	// AsOf is when the state was taken, ns since the epoch; of a node that does not answer the last one that it told, zero for none.
	AsOf   int64
	BootID string
	// Hypervisor, Storage and Spindles are nil when the node has nothing to
	// tell about them.
	Hypervisor *HypervisorState
	Storage    *Space
	Spindles   *Space
	// Instances are those that the hypervisor reports, by UUID: the active
	// ones, and those that their own user shut down. Of a node that does not answer they are what it reported last.
	Instances map[string]InstanceState
	// Consoles tell, by instance UUID, how to reach the console; also of
	// instances that do not run.
	Consoles map[string]map[string]any
	// Exports are the names of the exports it keeps.
	Exports []string
	// OS are the operating systems defined on it, by name.
	OS map[string]OSState
	// ExtStorage are the providers of external storage on it, by name.
	ExtStorage map[string]ExtStorageState
}

// HypervisorState holds a node's memory in MiB and processors.
type HypervisorState struct {
	MemoryTotal, MemoryNode, MemoryFree      int64
	CPUs, CPUNodes, CPUSockets, CPUsReserved int64
}

// Space is room in MiB, or a number of spindles.
type Space struct{ Total, Free int64 }

// InstanceState is what a node reports about one instance.
type InstanceState struct {
	// Shutdown: its user shut it down; otherwise it runs or is paused.
	Shutdown bool
	Memory   int64 // MiB
	VCPUs    int64
}

// OSState is one operating system definition on one node.
type OSState struct {
	Path        string
	Valid       bool
	Diagnose    string
	Variants    []string
	Parameters  [][2]string // name, help
	APIVersions []int64
	Trusted     bool
}

// ExtStorageState is one provider of external storage on one node.
type ExtStorageState struct {
	Path       string
	Valid      bool
	Diagnose   string
	Parameters [][2]string // name, help
}

// Answers is the nodes' answers, ready for look-ups by row.
type Answers struct {
	Nodes map[string]NodeState
	// places lists, by instance UUID, the nodes that report it.
	places map[string][]Place
}

// Place is a node that reports an instance, with what it says of it.
type Place struct {
	Node  string
	State InstanceState
}

// NewAnswers prepares what nodes said, in the order in which they were asked, for what
// rows need of it.
func NewAnswers(order []string, nodes map[string]NodeState, need Need) *Answers {
	x := &Answers{Nodes: nodes}
	if need&NeedInstances == 0 {
		return x
	}
	x.places = map[string][]Place{}
	for _, node := range order {
		answer := nodes[node]
		if answer.Failed != "" {
			continue
		}
		for uuid, state := range answer.Instances {
			x.places[uuid] = append(x.places[uuid], Place{node, state})
		}
	}
	return x
}

// Of returns a node's answer; ok is false when there is none.
func (x *Answers) Of(node string) (answer NodeState, ok bool) {
	answer, ok = x.Nodes[node]
	return answer, ok && answer.Failed == ""
}

// Instance returns the report on an instance, the one of its primary node if
// that reports it.
func (x *Answers) Instance(uuid, primary string) (p Place, reported bool) {
	places := x.places[uuid]
	for _, p := range places {
		if p.Node == primary {
			return p, true
		}
	}
	if len(places) == 0 {
		return Place{}, false
	}
	return places[0], true
}
