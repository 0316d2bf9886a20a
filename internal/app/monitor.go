package app

import (
	"context"
	"errors"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/drover-project/drover/internal/api/mond"
	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/gate"
	"github.com/drover-project/drover/internal/hypervisor"
	"github.com/drover-project/drover/internal/reason"
)

// monitors are the monitoring agents of the nodes in this process, one
// listener for each node.
type monitors struct {
	c    *controller
	gate *gate.Gate
	host string
	port int // of the first node, the others follow; 0 picks a free one for each

	changed chan struct{} // a node may have come or gone
	serving map[string]*gate.Listener
	parts   sync.WaitGroup
}

// listenMonitors opens the monitoring agents of all nodes; none with an empty
// address.
func (c *controller) listenMonitors(ctx context.Context, s *surfaces, o Options) error {
	if o.Mond == "" {
		s.serveMonitors = func(context.Context) error { return nil }
		return nil
	}
	host, port, err := net.SplitHostPort(o.Mond)
	if err != nil {
		return fault.New(fault.Invalid, "the address of the monitoring agents cannot be read: %w", err).At("mond").
			WithHint("write it as HOST:PORT; port 0 picks a free one for each node")
	}
	m := &monitors{c: c, host: host, changed: make(chan struct{}, 1), serving: map[string]*gate.Listener{}, gate: gateOf(gate.Monitors, o)}
	if m.port, err = strconv.Atoi(port); err != nil {
		return fault.New(fault.Invalid, "the port of the monitoring agents is no number: %q", port).At("mond")
	}
	s.monitors = m
	if err := m.follow(ctx); err != nil {
		return err
	}
	s.ready.Mond = map[string]string{}
	for node, l := range m.serving {
		s.ready.Mond[node] = "http://" + l.Addr().String()
	}
	c.keeper.OnChange(func(*cluster.Snapshot) {
		select {
		case m.changed <- struct{}{}:
		default:
		}
	})
	s.serveMonitors = m.serve
	return nil
}

// follow opens a listener for each node that has none, and closes those of
// nodes that are gone.
func (m *monitors) follow(ctx context.Context) error {
	snap := m.c.keeper.Snapshot()
	for name, l := range m.serving {
		if snap.NodeNamed(name) == nil {
			_ = l.Close() // its server ends with it
			delete(m.serving, name)
		}
	}
	for node := range snap.Nodes() {
		if m.serving[node.Name] != nil {
			continue
		}
		l, err := m.gate.Listen(ctx, net.JoinHostPort(m.host, strconv.Itoa(m.freePort())))
		if err != nil {
			return fault.New(fault.Environment, "cannot listen for the monitoring agent of %s: %w", node.Name, err).
				WithHint("choose another address with --mond; port 0 picks a free one for each node")
		}
		m.serving[node.Name] = l
		m.parts.Go(func() { m.answer(ctx, node.Name, l) })
	}
	return nil
}

// freePort is the first, from the one that was named, at which no node of the cluster is served; 0 if none was named.
// A node that was removed leaves a gap, and those behind it keep theirs.
func (m *monitors) freePort() int {
	if m.port == 0 {
		return 0
	}
	taken := map[string]bool{}
	for _, l := range m.serving {
		_, port, _ := net.SplitHostPort(l.Addr().String())
		taken[port] = true
	}
	port := m.port
	for taken[strconv.Itoa(port)] {
		port++
	}
	return port
}

// answer serves one node until ctx ends or its listener is closed.
func (m *monitors) answer(ctx context.Context, node string, l *gate.Listener) {
	n := mond.Node{
		Name: node, Inventory: m.c.keeper.Snapshot, Log: m.c.log,
		Hypervisor: func() string { return m.c.keeper.Snapshot().Cluster().EnabledHypervisors[0] },
		Instances: func(ctx context.Context) ([]hypervisor.Instance, time.Time, error) {
			return m.c.instancesOn(ctx, node)
		},
		Reason: func(instance string) reason.Trail { return m.c.reasonOn(ctx, node, instance) },
	}
	if err := n.Serve(ctx, l); err != nil && !errors.Is(err, net.ErrClosed) {
		m.c.log.Error("the monitoring agent of a node ended", "node", node, "error", err)
	}
}

// instancesOn returns what the hypervisor of a node last reported.
func (c *controller) instancesOn(ctx context.Context, node string) ([]hypervisor.Instance, time.Time, error) {
	a, err := c.liveNodes()(node)
	if err != nil {
		return nil, time.Now(), err
	}
	state, err := a.State(ctx, false)
	if err == nil {
		err = state.Err
	}
	return state.Instances, state.At, err
}

// reasonOn is why an instance of a node changed its state last; nil if nobody knows.
func (c *controller) reasonOn(ctx context.Context, node, instance string) reason.Trail {
	if away, is, err := c.elsewhere(node); is {
		if err != nil || !c.agents.hub.Linked(node) {
			return nil
		}
		trail, _ := away.Reason(ctx, instance) // nobody knows
		return trail
	}
	a, err := c.fleet.Agent(node)
	if err != nil {
		return nil
	}
	return a.Reason(instance)
}

// serve follows the nodes until ctx ends.
func (m *monitors) serve(ctx context.Context) error {
	defer m.parts.Wait()
	defer m.close()
	for {
		select {
		case <-m.changed:
			if err := m.follow(ctx); err != nil {
				m.c.log.Error("a node has no monitoring agent", "error", err)
			}
		case <-ctx.Done():
			return nil
		}
	}
}

func (m *monitors) close() {
	for _, l := range m.serving {
		_ = l.Close()
	}
}
