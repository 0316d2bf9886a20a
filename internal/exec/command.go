package exec

import (
	"context"
	"strings"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/lock"
	"github.com/drover-project/drover/internal/opcode"
	"github.com/drover-project/drover/internal/work"
)

// commandNodes are the nodes on which a restricted command is to run, each once.
func commandNodes(op *opcode.Opcode, snap *cluster.Snapshot) (nodes []*cluster.Node, err error) {
	listed, err := listedNodes(op, snap)
	return eachOnce(listed), err
}

// commandLocks share the nodes of a restricted command, or have them alone.
func commandLocks(op *opcode.Opcode, snap *cluster.Snapshot) (request lock.Request, err error) {
	nodes, err := commandNodes(op, snap)
	mode := lock.Shared
	if op.Bool("use_locking") {
		mode = lock.Exclusive
	}
	for _, n := range nodes {
		request = append(request, want(lock.Node, n.UUID, mode))
	}
	return request, err
}

// restrictedCommand prepares OP_RESTRICTED_COMMAND. What is wrong with the command is told by each node, which alone knows what may run there.
func restrictedCommand(_ context.Context, env *Env) (Plan, error) {
	nodes, err := commandNodes(env.Op, env.snapshot())
	if err != nil {
		return Plan{}, err
	}
	args, names := commandArgs{Command: env.Op.Str("command"), Nodes: make([]string, len(nodes))}, make([]string, len(nodes))
	for i, n := range nodes {
		args.Nodes[i], names[i] = n.UUID, n.Name
	}
	if len(nodes) == 0 {
		return answer([]any{}), nil
	}
	step := onNode(runCommand, args.Nodes[0], "", "run the restricted command "+args.Command+" on "+fault.Clip(strings.Join(names, ", "), 200), args) // it is shown with the first of them
	return Plan{Work: &work.Work{Steps: []work.Step{step}}}, nil
}

// nodePowercycle prepares OP_NODE_POWERCYCLE. It waits for nothing that is done on the node: it is the last resort.
func nodePowercycle(_ context.Context, env *Env) (Plan, error) {
	snap := env.snapshot()
	node, err := findNode(env.Op, "node", snap)
	if err != nil {
		return Plan{}, err
	}
	if node.UUID == snap.Cluster().MasterNode && !env.Op.Bool("force") {
		return Plan{}, fault.New(fault.Invalid, "The node is the master and the force parameter was not set").At("force")
	}
	if _, err := env.agent(node); err != nil {
		return Plan{}, err
	}
	return Plan{Work: &work.Work{Steps: []work.Step{onNode(powercycleNode, node.UUID, "", "switch node "+node.Name+" off and on", nil)}}}, nil
}
