package exec

import (
	"context"
	"sync"

	"github.com/drover-project/drover/internal/agent"
	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/hooks"
	"github.com/drover-project/drover/internal/work"
)

// The verbs of opcodes with hooks.
const (
	runHooks   = "run-hooks"   // have nodes run the scripts of a phase
	makeChange = "make-change" // make the one change of the inventory that the opcode is
	carryOut   = "carry-out"   // do what is neither steps nor a change
)

// hookArgs are about the scripts of a phase.
type hookArgs struct {
	Phase hooks.Phase `json:"phase"`
	// Nodes are those that had scripts when it was planned, by UUID.
	Nodes []string `json:"nodes"`
	// Told is what was so when the opcode began, and About, by UUID, what is looked at again behind it.
	Told  map[string]string `json:"told"`
	About about             `json:"about,omitzero"`
}

// about is a subject as it is kept.
type about struct {
	Instance string   `json:"instance,omitempty"`
	Node     string   `json:"node,omitempty"`
	Target   string   `json:"target,omitempty"`
	Group    string   `json:"group,omitempty"`
	Network  string   `json:"network,omitempty"`
	Groups   []string `json:"groups,omitempty"`
}

var hookVerbs = map[string]verb{
	runHooks: {act: func(ctx context.Context, env *Env, order agent.Order, s *work.Step) (any, error) {
		args, err := arguments[hookArgs](s)
		if err != nil {
			return nil, err
		}
		failed, err := env.runHooks(ctx, order, args)
		switch {
		case err != nil:
			return nil, err
		case args.Phase == hooks.Post:
			return env.tellFailed(failed), nil
		case len(failed) > 0:
			for _, f := range failed { // clients show the UUIDs of nodes with the error
				env.Infof("It was refused on node %s by the hook %s", nodeName(env.snapshot(), f.Node), f.Script)
			}
			return nil, &hooks.AbortError{Refusals: failed}
		}
		return nil, nil
	}},
	makeChange: {change: func(env *Env, snap *cluster.Snapshot, _ *work.Step) ([]cluster.Change, any, error) {
		return env.change(snap)
	}},
	carryOut: {act: func(ctx context.Context, env *Env, _ agent.Order, _ *work.Step) (any, error) { return env.do(ctx) }},
}

// runHooks has nodes run scripts, beside one another, and returns those that failed. A node that cannot be asked refuses nothing, as in the reference: it is
// told.
func (e *Env) runHooks(ctx context.Context, order agent.Order, args hookArgs) (failed []hooks.Refusal, err error) {
	h := hooks.Of(e.Op.ID)
	if h == nil {
		return nil, fault.New(fault.Internal, "%s has no hooks", e.Op.ID)
	}
	var now map[string]string
	if args.Phase == hooks.Post {
		now = e.toldNow(h, &args)
	}
	asked := agent.Hooks{Dir: hooks.Dir(h.Path, args.Phase), Env: h.Environment(e.snapshot(), args.Phase, args.Told, now, hooksData)}
	results, errs := make([][]hooks.Result, len(args.Nodes)), make([]error, len(args.Nodes))
	var all sync.WaitGroup
	for i, uuid := range args.Nodes {
		all.Go(func() {
			results[i], errs[i] = e.runHooksOn(ctx, uuid, order, asked)
		})
	}
	all.Wait()
	for i, uuid := range args.Nodes {
		switch {
		case errs[i] == nil:
		case ctx.Err() != nil || e.over() || fault.Is(errs[i], fault.Fenced):
			return nil, errs[i]
		default:
			e.Warnf("Communication failure to node %s: %v", uuid, errs[i])
		}
		for _, r := range results[i] {
			if r.Failed {
				failed = append(failed, hooks.Refusal{Node: uuid, Result: r})
			}
		}
	}
	return failed, nil
}

// runHooksOn has one node run scripts, which need no lock of it. One that is away is not waited for.
func (e *Env) runHooksOn(ctx context.Context, uuid string, order agent.Order, asked agent.Hooks) ([]hooks.Result, error) {
	n := e.snapshot().Node(uuid)
	if n == nil {
		return nil, nil // it was removed by what the scripts are about
	}
	node, err := e.Nodes(n.Name)
	switch {
	case err != nil:
		return nil, err
	case node.Away() > 0:
		return nil, fault.New(fault.Environment, "it is away")
	}
	return node.RunHooks(ctx, order, asked)
}

// hooksData is where scripts find what is known of the cluster, if it is kept there.
const hooksData = "/var/lib/ganeti"

// toldNow is what is told behind the opcode: what is so now, or was before if what it is about is gone.
func (e *Env) toldNow(h *hooks.Hooks, args *hookArgs) map[string]string {
	if h.Same {
		return args.Told
	}
	snap, a := e.snapshot(), args.About
	m := &hooks.Moment{Op: e.Op, Snap: snap, Subject: hooks.Subject{
		Instance: snap.Instance(a.Instance), Node: snap.Node(a.Node), Target: snap.Node(a.Target), Group: snap.Group(a.Group), Network: snap.Network(a.Network), Groups: a.Groups,
	}}
	if aboutOf(&m.Subject).lacks(&a) {
		return args.Told
	}
	return h.Told(m)
}

// tellFailed tells of scripts that failed behind the opcode, and returns the opcode's result if that says so.
func (e *Env) tellFailed(failed []hooks.Refusal) any {
	for _, f := range failed {
		output := f.Output
		if output == "" {
			output = "(no output)"
		}
		e.Warnf("On %s script %s failed, output: %s", f.Node, f.Script, output)
	}
	if e.heed == nil {
		return nil
	}
	return e.heed(failed)
}
