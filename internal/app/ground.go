package app

import (
	"context"
	"maps"
	"net"
	"time"

	"github.com/drover-project/drover/internal/agent"
	"github.com/drover-project/drover/internal/agent/effect"
	"github.com/drover-project/drover/internal/events"
	"github.com/drover-project/drover/internal/exec"
	"github.com/drover-project/drover/internal/inventory"
	"github.com/drover-project/drover/internal/picture"
	"github.com/drover-project/drover/internal/queue"
	"github.com/drover-project/drover/internal/reason"
	"github.com/drover-project/drover/internal/rollout"
	"github.com/drover-project/drover/internal/sealed"
	"github.com/drover-project/drover/internal/store"
	"github.com/drover-project/drover/internal/tagsync"
)

// Ground is what a controller of a group stands on that runs within another program, as those do whose whole group is simulated
// (internal/sim): what is a machine's otherwise. Its clients are that program, over Member.
type Ground struct {
	// Store is shared with the others of the group.
	Store store.Shared
	// Listener takes the connections of the others, and Dial connects to one by its address: who is at the other end is known, and
	// nobody else can be.
	Listener net.Listener
	Dial     func(ctx context.Context, address string) (net.Conn, error)
	// Agent opens the agent of a node for a term, under a lead that ends with it.
	Agent func(t *Term, node string, lead *effect.Lead) (*agent.Agent, error)
	// Nodes stands between executors and nodes.
	Nodes func(t *Term, nodes exec.Nodes) exec.Nodes
	// Servers are further clusters of servers, by name; the one without a name takes the place of the group's own.
	Servers map[string]tagsync.Backend
	// Publish takes an event; nil where nobody is told of any.
	Publish func(ctx context.Context, m events.Message) error
	NewUUID func() string
	// Keys are those with which texts are told apart; nothing is sealed with them, so that the store can be read.
	Keys *sealed.Ring
	// Leads is told of each term when clients may be answered, and Ends when they are not any more, before it is closed.
	Leads, Ends func(t *Term)
}

// Member is a controller of a group that runs within another program.
type Member struct {
	g *group
	o Options
}

// Join makes a controller of a group on a ground. Of the options those count that are not a machine's: Name, Nodes, Tasks, StopGrace, Log.
// The store is the caller's still.
func Join(o Options, on *Ground) *Member {
	if o.ArchiveAfter == 0 {
		o.ArchiveAfter = DefaultArchiveAfter
	}
	o.NoCopy = true // the store is not an embedded one in a directory
	m := newMember(on.Store, o)
	m.ground = on
	m.sealed = sealed.Over(m.meter, on.Keys, nil)
	m.store = m.sealed
	m.group = newGroup(m, o.Name, on.NewUUID())
	m.group.self.Address = on.Listener.Addr().String()
	return &Member{g: m.group, o: o}
}

// Run is the controller's life: it stands by and leads in turn until ctx ends.
func (m *Member) Run(ctx context.Context) error {
	if err := m.g.register(ctx); err != nil {
		return err
	}
	defer m.g.unregister()
	return m.g.serveAndLead(ctx, m.o, &surfaces{}, m.g.m.ground.Listener, nil)
}

// ServeLUXI answers a client on a connection until it goes or ctx ends, as on the control socket.
func (m *Member) ServeLUXI(ctx context.Context, conn net.Conn, by reason.Account) {
	m.g.answerLUXI(ctx, conn, by)
}

// Term is the time in which a controller leads, as who runs it sees it.
type Term struct {
	Lease     store.Lease
	Picture   *picture.Picture
	Inventory *inventory.Keeper
	Queue     *queue.Queue
	Rollout   *rollout.Engine
	Servers   *tagsync.Engine
}

// onGround tells whoever runs the controller that the term is there; what is returned tells the end of it.
func (c *controller) onGround() (ended func()) {
	if c.ground == nil {
		return func() {}
	}
	t := &c.seen
	t.Inventory, t.Queue, t.Rollout, t.Servers = c.keeper, c.queue, c.rollout, c.servers
	c.ground.Leads(t)
	return func() { c.ground.Ends(t) }
}

// nodes are those that executors reach.
func (c *controller) nodes() exec.Nodes {
	local := exec.Local(c.fleet)
	if c.ground == nil {
		return func(node string) (exec.Node, error) {
			switch at, is, err := c.elsewhere(node); {
			case err != nil:
				return nil, err
			case is:
				return c.awayNode(at), nil
			}
			return local(node)
		}
	}
	return c.ground.Nodes(&c.seen, local)
}

// serversOn are the clusters of servers.
func (c *controller) serversOn() map[string]tagsync.Backend {
	backends := map[string]tagsync.Backend{"": tagsync.Local{Queue: c.queue, Picture: c.picture, Store: c.store}}
	for name, remote := range c.remotes {
		backends[name] = remote
	}
	if c.ground != nil {
		maps.Copy(backends, c.ground.Servers)
	}
	return backends
}

// newUUID returns a random UUID, or the next of the ground.
func (m *member) newUUID() string {
	if m.ground != nil {
		return m.ground.NewUUID()
	}
	return newUUID()
}

// dialTo connects to one controller, and to no other.
func (g *group) dialTo(ctx context.Context, p peerRecord, limit time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if on := g.m.ground; on != nil {
		return on.Dial(ctx, p.Address)
	}
	return g.dialTLS(ctx, p)
}
