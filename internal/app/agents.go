package app

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/drover-project/drover/internal/agentwire"
	"github.com/drover-project/drover/internal/authority"
	"github.com/drover-project/drover/internal/backoff"
	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/exec"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/gate"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/joining"
	"github.com/drover-project/drover/internal/live"
	"github.com/drover-project/drover/internal/schedule"
	"github.com/drover-project/drover/internal/store"
	"github.com/drover-project/drover/internal/store/format"
)

// kindAuthority is who signs the certificates of agents and controllers: one, with its key, sealed.
const kindAuthority store.Kind = "agent-authority"

var authorityKey = store.Key{Kind: kindAuthority, ID: "authority"}

// agents are those of nodes that are elsewhere, as a controller has them all its life.
type agents struct {
	m   *member
	hub *agentwire.Hub // shut while another controller leads
	// patience is for how long work waits for a node that is away.
	patience time.Duration
	// taken says that agents are taken in here, and at is where.
	taken bool
	at    string

	mu        sync.Mutex
	authority *authority.Authority // nil until it was read, or made
	own       *tls.Certificate     // what agents are shown
	clients   map[string]*agentwire.Client
	states    map[string]*lastState
}

func newAgents(m *member, o Options) *agents {
	return &agents{patience: cmp.Or(o.agentPatience, agentwire.Away), m: m, hub: agentwire.NewHub(o.Log), taken: o.AgentAddress != "", clients: map[string]*agentwire.Client{}, states: map[string]*lastState{}}
}

// listenAgents opens the address at which agents connect.
func (s *surfaces) listenAgents(ctx context.Context, o Options) (err error) {
	if o.AgentAddress == "" {
		return nil
	}
	if s.agentListener, err = gateOf(gate.Agents, o).Listen(ctx, o.AgentAddress); err != nil {
		return fault.New(fault.Environment, "cannot listen for agents: %w", err).WithHint("choose another address with --agent-address; port 0 picks a free one")
	}
	s.ready.AgentAddress, err = told(s.agentListener.Addr(), o.AgentAdvertise, "agent-address", "agent-advertise")
	return err
}

func checkAgentAddress(o Options) error {
	if err := checkAddress(o.AgentAddress); err != nil || o.AgentAddress == "" {
		return err
	}
	host, _, _ := net.SplitHostPort(o.AgentAddress) // checked
	_, err := told(&net.TCPAddr{IP: unlessNamed(host)}, o.AgentAdvertise, "agent-address", "agent-advertise")
	return err
}

// serveAgents takes connections of agents until ctx ends.
func (m *member) serveAgents(ctx context.Context, s *surfaces) error {
	l := s.agentListener
	if l == nil {
		return nil
	}
	defer context.AfterFunc(ctx, func() { _ = l.Close() })()
	return m.agents.hub.Serve(l, &tls.Config{
		MinVersion: tls.VersionTLS13, ClientAuth: tls.RequestClientCert, NextProtos: []string{"h2"}, // who it is, is asked behind that
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return m.agents.certificate(ctx) },
	})
}

// certificate is what agents are shown.
func (a *agents) certificate(ctx context.Context) (*tls.Certificate, error) {
	ca, err := a.signer(ctx)
	if err != nil {
		return nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if now := time.Now(); a.own == nil || now.After(a.own.Leaf.NotAfter.Add(joining.RenewAfter-joining.CertificateTime)) {
		if a.own, err = ca.Controller(now); err != nil {
			return nil, err
		}
	}
	return a.own, nil
}

// forgetCertificate has another one made, with another key, for the next agent that comes.
func (a *agents) forgetCertificate() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.own = nil
}

// signer is the authority, from the store. NotFound while there is none.
func (a *agents) signer(ctx context.Context) (*authority.Authority, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.authority != nil {
		return a.authority, nil
	}
	o, err := a.m.store.Get(ctx, authorityKey)
	if err != nil {
		return nil, err
	}
	a.authority, err = authority.Parse(o.Value)
	return a.authority, err
}

// madeSigner is the authority, made if there is none.
func (c *controller) madeSigner(ctx context.Context) (*authority.Authority, error) {
	ca, err := c.agents.signer(ctx)
	if !fault.Is(err, fault.NotFound) {
		return ca, err
	}
	made, err := authority.New(time.Now())
	if err != nil {
		return nil, err
	}
	text, err := made.Text()
	if err != nil {
		return nil, err
	}
	_, err = store.Commit(ctx, c.store, store.Tx{
		Epoch: c.lease.Epoch, Put: []store.Put{{Key: authorityKey, Value: text}}, Expect: []store.Expect{{Key: authorityKey}},
	})
	if err != nil && !fault.Is(err, fault.Conflict) {
		return nil, err
	}
	return c.agents.signer(ctx)
}

// joinAccess is what agents are told of this cluster in their tokens.
func (c *controller) joinAccess(ctx context.Context) (access exec.JoinAccess, err error) {
	if !c.agents.taken {
		return access, fault.New(fault.WrongState, "this controller takes no agents in").WithHint("start it with an address for them: drover serve --agent-address HOST:PORT")
	}
	ca, err := c.madeSigner(ctx)
	if err != nil {
		return access, err
	}
	c.openDoor(ca)
	return exec.JoinAccess{Addresses: c.agentPlaces(ctx), Authority: ca.Fingerprint()}, nil
}

// agentPlaces are the addresses at which controllers take agents in, this one's first.
func (c *controller) agentPlaces(ctx context.Context) []string {
	if c.group == nil {
		return []string{c.agents.address()}
	}
	places := []string{c.group.self.Agents}
	peers, err := c.group.peers(ctx)
	if err != nil {
		c.log.Warn("agents are not told of the other controllers", "error", err)
	}
	for _, p := range peers {
		if p.Agents != "" && !slices.Contains(places, p.Agents) {
			places = append(places, p.Agents)
		}
	}
	return places
}

func (a *agents) address() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.at
}

// takeAgents opens the door to agents, which stays open until opcodes have ended.
func (c *controller) takeAgents(s *surfaces) {
	if !c.agents.taken {
		return
	}
	c.agents.mu.Lock()
	c.agents.at = s.ready.AgentAddress
	c.agents.mu.Unlock()
	ctx, stop := context.WithCancel(context.Background())
	news := make(chan struct{}, 1)
	c.keeper.OnChange(func(*cluster.Snapshot) {
		select {
		case news <- struct{}{}:
		default:
		}
	})
	var following sync.WaitGroup
	following.Go(func() { c.followNodes(ctx, news) })
	signer := c.agents.signer
	if c.format.Format() >= format.Agents {
		signer = c.madeSigner // otherwise the first token makes it, when the format was raised
	}
	trying := c.openOnceSigned(ctx, signer)
	c.shutAgents = func() {
		stop()
		trying.Wait() // or the door might open behind its shutting
		c.agents.hub.Shut()
		following.Wait()
	}
}

// signAgain is how long the store is left alone after it did not tell who signs the certificates of agents.
var signAgain = backoff.Pauses{First: time.Second, Longest: time.Minute}

// openOnceSigned opens the door as soon as the store tells who signs, until ctx ends: one answer of the store that was an error does not
// keep agents out for a term. What is returned waits for the end of that.
func (c *controller) openOnceSigned(ctx context.Context, signer func(context.Context) (*authority.Authority, error)) (trying *sync.WaitGroup) {
	trying = &sync.WaitGroup{}
	if c.tryDoor(ctx, signer) {
		return trying
	}
	trying.Go(func() {
		for failures := 1; ; failures++ {
			select {
			case <-ctx.Done():
				return
			case <-time.After(signAgain.After(failures)):
			}
			if c.tryDoor(ctx, signer) {
				return
			}
		}
	})
	return trying
}

// tryDoor opens the door, if there is a signer. It tells whether that is all that is to be done: without one, the first token opens it.
func (c *controller) tryDoor(ctx context.Context, signer func(context.Context) (*authority.Authority, error)) (done bool) {
	ca, err := signer(ctx)
	switch {
	case err == nil:
		c.openDoor(ca)
	case !fault.Is(err, fault.NotFound) && ctx.Err() == nil:
		c.log.Error("agents are not taken in: it cannot be read who signs their certificates; it is tried again", "error", err)
		return false
	}
	return true
}

// openDoor takes agents in from now on, for as long as the term lasts.
func (c *controller) openDoor(ca *authority.Authority) {
	c.doorOpens.Do(func() {
		c.agents.hub.Open(&authority.Door{
			Authority: ca, Now: time.Now, Term: c.lease.Epoch, Node: func(name string) *cluster.Node { return c.keeper.Snapshot().NodeNamed(name) }, Update: c.updateAgent,
			Places: func() []string {
				ctx, cancel := context.WithTimeout(context.Background(), statusTime)
				defer cancel()
				return c.agentPlaces(ctx)
			},
		})
	})
}

// lookEvery is the pause between two looks at who is linked: with many agents it takes a millisecond, the inventory changes with each job, and at the
// beginning of a term all agents come at once.
const lookEvery = 100 * time.Millisecond

// followNodes ends the links of agents whose node is gone, or was given to another, has opcodes wait for nodes that are away, and listens to those that
// are there.
func (c *controller) followNodes(ctx context.Context, changed <-chan struct{}) {
	nodes := &listeners{c: c, to: map[string]bool{}}
	defer nodes.all.Wait()
	for {
		linked := c.agents.hub.News()
		now := time.Now()
		snap := c.keeper.Snapshot()
		c.agents.hub.Keep(func(node string, shown *x509.Certificate) bool {
			return joining.Admit(snap.NodeNamed(node), shown, now) == nil
		})
		away, patience := c.waitedFor(now)
		c.queue.Await(away)
		nodes.listen(ctx)
		over := time.NewTimer(patience)
		select {
		case <-ctx.Done():
			return
		case <-changed:
		case <-linked:
		case <-over.C:
		}
		over.Stop()
		select {
		case <-ctx.Done():
		case <-time.After(lookEvery):
		}
	}
}

// waitedFor are the nodes whose agents are waited for, by UUID: those that have joined, do not follow this controller, and have not been away for
// too long. Patience is until when that is so.
func (c *controller) waitedFor(now time.Time) (away map[string]*schedule.Absence, patience time.Duration) {
	away, patience = map[string]*schedule.Absence{}, c.agents.patience
	for n := range c.keeper.Snapshot().Nodes() {
		if n.Agent == nil || n.Agent.Serial == "" || n.Offline {
			continue
		}
		since, lost, is := c.awaySince(n.Name)
		left := c.agents.patience - now.Sub(since)
		if is && left > 0 {
			away[n.UUID] = &schedule.Absence{Node: n.Name, UUID: n.UUID, Since: job.At(since), Lost: lost}
			patience = min(patience, left)
		}
	}
	return away, patience
}

// awaySince tells since when the agent of a node is away, if it is. It is in memory: of one that has not been connected in this term that is since the term began.
func (c *controller) awaySince(node string) (since time.Time, lost, is bool) {
	if since, lost = c.agents.hub.Away(node); since.IsZero() && !c.agents.hub.Linked(node) {
		since = c.begun
	}
	return since, lost, !since.IsZero()
}

// awayAt is a node that is elsewhere; nil if there is none of that name, or it lives in the controller's process.
func awayAt(snap *cluster.Snapshot, name string) *cluster.Node {
	if n := snap.NodeNamed(name); n != nil && n.Agent != nil {
		return n
	}
	return nil
}

// updateAgent changes what a node keeps of its agent.
func (c *controller) updateAgent(ctx context.Context, name string, decide func(*cluster.Node) (*cluster.NodeAgent, error)) error {
	return c.keeper.Update(ctx, func(snap *cluster.Snapshot) ([]cluster.Change, error) {
		n := snap.NodeNamed(name)
		of, err := decide(n)
		if err != nil {
			return nil, err
		}
		n = n.Clone()
		n.Agent = of
		return []cluster.Change{cluster.Put(n)}, nil
	})
}

// elsewhere is the node of a name, if its agent is elsewhere.
func (c *controller) elsewhere(node string) (away *agentwire.Client, is bool, err error) {
	n := awayAt(c.keeper.Snapshot(), node)
	switch {
	case n == nil:
		return nil, false, nil
	case !c.agents.taken:
		return nil, true, fault.New(fault.Unavailable, "node %s has an agent of its own, and this controller takes none in", node).
			WithHint("start it with an address for them: drover serve --agent-address HOST:PORT")
	case n.Agent.Serial == "":
		return nil, true, fault.New(fault.Unavailable, "node %s has no agent yet", node).WithHint("an agent joins with a token: drover node token %s", node)
	}
	a := c.agents
	if since, _, is := c.awaySince(node); is && time.Since(since) > c.agents.patience {
		return nil, true, fault.New(fault.Unavailable, "node %s is away: its agent has not been connected for %s", node, time.Since(since).Round(time.Second)).
			WithHint("see whether its agent runs and reaches the controller")
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if away = a.clients[node]; away == nil {
		away = agentwire.NewClient(node, a.hub.Conn(node), a.patience)
		a.clients[node] = away
	}
	return away, true, nil
}

// agentsAway says of how many nodes in service the agent is not connected; empty if of none. Everybody may read it, so it has no names.
func (c *controller) agentsAway() string {
	missing := 0
	for n := range c.keeper.Snapshot().Nodes() {
		if n.Agent != nil && !n.Offline && !c.agents.hub.Linked(n.Name) {
			missing++
		}
	}
	if missing == 0 {
		return ""
	}
	return fmt.Sprintf("nodes whose agents are not connected: %d (drover node list shows them with ?)", missing)
}

// awayNode is a node that is elsewhere.
func (c *controller) awayNode(at *agentwire.Client) away {
	return away{at, c.agents.hub, c.agents.lastOf(at.Node())}
}

// liveNodes are those that queries reach.
func (c *controller) liveNodes() live.Nodes {
	local := live.Local(c.fleet)
	return func(node string) (live.Node, error) {
		at, is, err := c.elsewhere(node)
		switch {
		case err != nil:
			return nil, err
		case is:
			return c.awayNode(at), nil
		}
		return local(node)
	}
}
