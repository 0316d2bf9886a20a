package exec

import (
	"context"
	"time"

	"github.com/drover-project/drover/internal/agent"
	"github.com/drover-project/drover/internal/hypervisor"
	"github.com/drover-project/drover/internal/reason"
)

// Node is what executors need of a node. The agent in this process is one; an
// agent elsewhere is reached by an adapter.
//
// What changes something takes an order, and is carried out once however often
// it arrives. Errors carry codes of package fault: Unavailable when it is not
// known what became of a call, Fenced when the node follows a newer leader.
type Node interface {
	// Node is the node's name.
	Node() string

	Instance(ctx context.Context, name string) (hypervisor.Instance, error)
	Instances(ctx context.Context) ([]hypervisor.Instance, error)
	Info(ctx context.Context) (hypervisor.Node, error)
	FindOS(ctx context.Context, name string, force bool) (agent.OS, error)
	Delay(ctx context.Context, d time.Duration) error

	Prepare(ctx context.Context, order agent.Order, name, uuid string, disks []hypervisor.Disk) error
	Keep(ctx context.Context, order agent.Order, name, uuid string) error
	Drop(ctx context.Context, order agent.Order, name string, disks []string) error
	Install(ctx context.Context, order agent.Order, spec hypervisor.Spec, os string, params map[string]string) error
	Start(ctx context.Context, order agent.Order, spec hypervisor.Spec, trail reason.Trail) error
	Stop(ctx context.Context, order agent.Order, name string, how hypervisor.Stop, trail reason.Trail) error
	RebootSoft(ctx context.Context, order agent.Order, name string, trail reason.Trail) error
	RebootHard(ctx context.Context, order agent.Order, spec hypervisor.Spec, how hypervisor.Stop, trail reason.Trail) error
	Rename(ctx context.Context, order agent.Order, name, to string) error
	Remove(ctx context.Context, order agent.Order, name string) error

	// RunTask carries a task of a deployment out, and hands its output over line by line.
	RunTask(ctx context.Context, order agent.Order, task agent.Task, log func(line string)) error
}

// Nodes finds a node by its name; Unavailable when it does not answer.
type Nodes func(node string) (Node, error)

// Local finds the nodes whose agents live in this process.
func Local(fleet *agent.Fleet) Nodes {
	return func(node string) (Node, error) {
		a, err := fleet.Agent(node)
		if err != nil {
			return nil, err // and no interface that holds a nil pointer
		}
		return a, nil
	}
}

// Order is the next order that the opcode gives.
func (e *Env) Order() agent.Order {
	return agent.Order{Epoch: e.Epoch, Job: e.Job, Opcode: e.Index, Step: int(e.steps.Add(1))}
}
