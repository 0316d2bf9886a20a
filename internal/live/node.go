package live

import (
	"context"
	"io"
	"sync"
	"time"

	"github.com/drover-project/drover/internal/agent"
	"github.com/drover-project/drover/internal/console"
	"github.com/drover-project/drover/internal/hypervisor"
	"github.com/drover-project/drover/internal/storage"
)

// Node is what queries need of a node. The agent in this process is one.
type Node interface {
	// State returns the newest state that the node reported, and with fresh one
	// from now on; see agent.Agent. With an error comes what it told last, if that is known.
	State(ctx context.Context, fresh bool) (agent.State, error)
	OSes(ctx context.Context) ([]agent.OS, error)
	// Exports lists the exports of instances that the node keeps.
	Exports(ctx context.Context) ([]string, error)
	// Providers lists what may be storage providers of the node.
	Providers(ctx context.Context) ([]storage.Provider, error)
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

// bell rings when nodes tell something new.
type bell struct {
	mu    sync.Mutex
	rang  uint64        // how often
	rings chan struct{} // closed when it rings; nil while nobody waits
}

func (b *bell) ring() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.rang++; b.rings != nil {
		close(b.rings)
		b.rings = nil
	}
}

// heard is how often it has rung, and what is closed when it does again.
func (b *bell) heard() (times uint64, rings <-chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.rings == nil {
		b.rings = make(chan struct{})
	}
	return b.rang, b.rings
}

// NodeTold takes note that a node has told something else of its instances than before, or is away.
func (q *Querier) NodeTold() { q.nodes.ring() }

// HearNodes has watches look again at what only nodes know whenever a node has told something new, until ctx ends. What it tells is not stored, and is
// given a revision, so that who asks again each time misses nothing; nothing is written while nobody watches.
func (q *Querier) HearNodes(ctx context.Context) error {
	for last := uint64(0); ; {
		times, rings := q.nodes.heard()
		if times == last {
			select {
			case <-ctx.Done():
				return nil
			case <-rings:
			}
			continue
		}
		last = times
		if !q.watches.live() {
			continue
		}
		if err := q.Queue.CatchUp(ctx); err != nil && ctx.Err() == nil {
			q.Log.Warn("what a node told is shown with the next change", "error", err)
		}
	}
}
