package live

import (
	"context"
	"io"
	"time"

	"github.com/drover-project/drover/internal/agent"
	"github.com/drover-project/drover/internal/console"
	"github.com/drover-project/drover/internal/hypervisor"
)

// Node is what queries need of a node. The agent in this process is one.
type Node interface {
	// State returns the newest state that the node reported, and with fresh one
	// from now on; see agent.Agent.
	State(ctx context.Context, fresh bool) (agent.State, error)
	OSes(ctx context.Context) ([]agent.OS, error)
	// ReadConsole and TypeConsole are about the serial line of an instance.
	ReadConsole(ctx context.Context, of hypervisor.Thing, at uint64, wait time.Duration) (console.Piece, error)
	TypeConsole(ctx context.Context, of hypervisor.Thing, keys []byte) error
	// OpenScreen connects to the screen of an instance, until ctx ends.
	OpenScreen(ctx context.Context, of hypervisor.Thing) (io.ReadWriteCloser, error)
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
