package agent

import (
	"errors"
	"sync"

	"github.com/drover-project/drover/internal/fault"
)

// Fleet holds the agents of the nodes that live in this process. An agent is
// opened when it is first asked for.
type Fleet struct {
	open func(node string) (*Agent, error)

	mu     sync.Mutex
	agents map[string]*Agent
	closed bool
}

// NewFleet returns an empty fleet; open makes the agent of a node by name.
func NewFleet(open func(node string) (*Agent, error)) *Fleet {
	return &Fleet{open: open, agents: map[string]*Agent{}}
}

// Agent returns the agent of a node. Unavailable when it cannot be opened or
// the fleet is closed.
func (f *Fleet) Agent(node string) (*Agent, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if a := f.agents[node]; a != nil {
		return a, nil
	}
	if f.closed {
		return nil, fault.New(fault.Unavailable, "node %s does not answer: its agent is shut down", node)
	}
	a, err := f.open(node)
	if err != nil {
		return nil, fault.New(fault.Unavailable, "node %s does not answer: %w", node, err)
	}
	f.agents[node] = a
	return a, nil
}

// Close closes all agents. Instances keep running.
func (f *Fleet) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	var all []error
	for node, a := range f.agents {
		all = append(all, a.Close())
		delete(f.agents, node)
	}
	return errors.Join(all...)
}
