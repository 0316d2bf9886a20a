package exec

import (
	"context"

	"github.com/drover-project/drover/internal/agent"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/work"
)

// runCommand has nodes run a restricted command, beside one another.
const runCommand = "run-command"

type commandArgs struct {
	Command string   `json:"command"`
	Nodes   []string `json:"nodes"` // by UUID
}

// powercycleNode has the machine of a node switched off and on.
const powercycleNode = "powercycle"

var commandVerbs = map[string]verb{
	powercycleNode: {act: func(ctx context.Context, env *Env, order agent.Order, s *work.Step) (any, error) {
		if env.Kept != nil {
			return nil, fault.New(fault.Failed, "it is not known whether the node was switched off and on, for the controller ended meanwhile; it is not done again").
				WithHint("look at the node, and submit another job if it was not")
		}
		node, err := env.nodeByUUID(s.Node)
		if err != nil {
			return nil, err
		}
		said, err := node.Powercycle(ctx, order)
		if err != nil {
			return nil, failed(err, "Failed to schedule the reboot")
		}
		return said, nil
	}},
	runCommand: {act: func(ctx context.Context, env *Env, order agent.Order, s *work.Step) (any, error) {
		args, err := arguments[commandArgs](s)
		switch {
		case err != nil:
			return nil, err
		case env.Kept != nil:
			return nil, fault.New(fault.Failed, "it is not known on which nodes the command '%s' has run, for the controller ended meanwhile; it is not run again", args.Command).
				WithHint("look at the nodes, and submit another job for those where it has not")
		}
		return env.runCommand(ctx, order, args)
	}},
}

// runCommand returns what each node came to: whether the command did what it was to, and what it said.
func (e *Env) runCommand(ctx context.Context, order agent.Order, args commandArgs) (any, error) {
	results, errs := make([][2]any, len(args.Nodes)), make([]error, len(args.Nodes))
	beside(len(args.Nodes), len(args.Nodes), func(i int) {
		uuid := args.Nodes[i]
		var said string
		said, errs[i] = e.runCommandOn(ctx, uuid, order, args.Command)
		results[i] = [2]any{true, said}
		if errs[i] != nil {
			results[i] = [2]any{false, fault.New(fault.Failed, "Command '%s' on node '%s' failed: %w", args.Command, nodeName(e.snapshot(), uuid), errs[i]).Error()}
		}
	})
	for _, err := range errs {
		if err != nil && (ctx.Err() != nil || e.over() || fault.Is(err, fault.Fenced)) {
			return nil, err
		}
	}
	return results, nil
}

// runCommandOn has one node run a restricted command. One that is away is not waited for.
func (e *Env) runCommandOn(ctx context.Context, uuid string, order agent.Order, command string) (string, error) {
	n := e.snapshot().Node(uuid)
	switch {
	case n == nil:
		return "", fault.New(fault.NotFound, "it was removed from the cluster meanwhile")
	case n.Offline:
		return "", fault.New(fault.WrongState, "Node is marked offline")
	}
	node, err := e.nearAgent(n)
	if err != nil {
		return "", err
	}
	return node.RunCommand(ctx, order, command)
}
