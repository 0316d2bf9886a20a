package app

import (
	"context"
	"io"
	"sync"
	"time"

	"github.com/drover-project/drover/internal/agent"
	"github.com/drover-project/drover/internal/agentwire"
	"github.com/drover-project/drover/internal/console"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/hypervisor"
)

// Nodes that are elsewhere tell their state whenever it changes: one question to each of them is always open. What they told last answers queries and
// creations, so that a list of all instances asks nobody.

// lastState is what a node told last.
type lastState struct {
	mu    sync.Mutex
	state agent.State
	// came is when it did, by our own clock, and changes is how many changes had been made when it was asked.
	came    time.Time
	changes uint64
	// told says that the node tells what changes.
	told bool
}

// Times of states of nodes that are elsewhere.
const (
	// stateTime is how long a node may take whose last state may be shown.
	stateTime = 500 * time.Millisecond
	// stateAge is how old that may be: as old as that of a node in this process.
	stateAge = 15 * time.Second
	// untoldPause is the pause before a node is asked again to tell its state by itself that did not.
	untoldPause = 10 * time.Second
)

// at is the last state, if it is not too old, and nothing was changed since. Newest says that the node would have told of any other.
func (l *lastState) at(changes uint64) (s agent.State, usable, newest bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	usable = l.changes == changes && time.Since(l.came) < stateAge
	return l.state, usable, usable && l.told
}

// put takes a state in, unless a newer one came before, and returns the one before.
func (l *lastState) put(s agent.State, changes uint64, told bool) (before agent.State) {
	l.mu.Lock()
	defer l.mu.Unlock()
	before = l.state
	l.told = l.told || told
	if s.At.After(l.state.At) || told {
		l.state, l.came, l.changes = s, time.Now(), changes
	}
	return before
}

// silent notes that the node does not tell what changes any more.
func (l *lastState) silent() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.told = false
}

// lastOf is what a node told last.
func (a *agents) lastOf(node string) *lastState {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.states[node] == nil {
		a.states[node] = &lastState{}
	}
	return a.states[node]
}

// listeners are the nodes that are listened to.
type listeners struct {
	c   *controller
	all sync.WaitGroup
	mu  sync.Mutex
	to  map[string]bool
}

// listen listens to each node whose agent is connected, until it is not, or ctx ends.
func (l *listeners) listen(ctx context.Context) {
	for _, node := range l.c.agents.hub.Nodes() {
		l.mu.Lock()
		if !l.to[node] {
			l.to[node] = true
			l.all.Go(func() {
				l.hear(ctx, node)
				l.mu.Lock()
				defer l.mu.Unlock()
				delete(l.to, node)
			})
		}
		l.mu.Unlock()
	}
}

// hear takes in what a node tells, until it is away.
func (l *listeners) hear(ctx context.Context, node string) {
	at, _, err := l.c.elsewhere(node)
	if err != nil || at == nil {
		return // it is gone, or will be
	}
	last := l.c.agents.lastOf(node)
	defer last.silent()
	for number := uint64(0); l.c.agents.hub.Linked(node); {
		changes := at.Changes()
		s, err := at.Next(ctx, number)
		if err != nil {
			last.silent()
			select { // it is not asked without a pause, whatever it answers
			case <-ctx.Done():
				return
			case <-time.After(untoldPause):
			}
			continue
		}
		number = s.Number
		if before := last.put(s, changes, true); !s.Shows(&before) {
			l.c.querier.NodeTold()
		}
	}
	l.c.querier.NodeTold() // that it is away
}

// away is a node that is elsewhere, to those who look: they do not wait for one that is not connected, and not long for one that may not be any more.
type away struct {
	*agentwire.Client
	hub  *agentwire.Hub
	last *lastState
}

func (a away) linked() error {
	if !a.hub.Linked(a.Node()) {
		return fault.New(fault.Unavailable, "node %s is away: its agent is not connected", a.Node())
	}
	return nil
}

// State implements live.Node. With the error about a node that is away comes what it told last.
func (a away) State(ctx context.Context, fresh bool) (agent.State, error) {
	changes := a.Changes()
	last, usable, newest := a.last.at(changes)
	if err := a.linked(); err != nil {
		return last, err
	}
	if newest && !fresh {
		return last, nil
	}
	limit := ctx
	if usable = usable && !fresh; usable {
		var cancel context.CancelFunc
		limit, cancel = context.WithTimeout(ctx, stateTime)
		defer cancel()
	}
	s, err := a.Client.State(limit, fresh)
	switch {
	case err == nil:
		a.last.put(s, changes, false)
	case usable:
		return last, nil
	}
	return s, err
}

// OSes implements live.Node.
func (a away) OSes(ctx context.Context) ([]agent.OS, error) {
	if err := a.linked(); err != nil {
		return nil, err
	}
	return a.Client.OSes(ctx)
}

// Exports implements live.Node.
func (a away) Exports(ctx context.Context) ([]string, error) {
	if err := a.linked(); err != nil {
		return nil, err
	}
	return a.Client.Exports(ctx)
}

// ReadConsole implements live.Node.
func (a away) ReadConsole(ctx context.Context, of hypervisor.Thing, at uint64, wait time.Duration) (console.Piece, error) {
	if err := a.linked(); err != nil {
		return console.Piece{}, err
	}
	return a.Client.ReadConsole(ctx, of, at, wait)
}

// TypeConsole implements live.Node.
func (a away) TypeConsole(ctx context.Context, of hypervisor.Thing, keys []byte) error {
	if err := a.linked(); err != nil {
		return err
	}
	return a.Client.TypeConsole(ctx, of, keys)
}

// OpenScreen implements live.Node.
func (a away) OpenScreen(ctx context.Context, of hypervisor.Thing) (io.ReadWriteCloser, error) {
	if err := a.linked(); err != nil {
		return nil, err
	}
	return a.Client.OpenScreen(ctx, of)
}
