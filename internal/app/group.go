package app

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/drover-project/drover/internal/api/luxi"
	"github.com/drover-project/drover/internal/api/rapi"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/gate"
	"github.com/drover-project/drover/internal/intake"
	"github.com/drover-project/drover/internal/readlease"
	"github.com/drover-project/drover/internal/state"
	"github.com/drover-project/drover/internal/store"
	"github.com/drover-project/drover/internal/store/format"
	"github.com/drover-project/drover/internal/systemd"
	"github.com/drover-project/drover/internal/version"
)

// group is this process among the controllers that share a store. One of them
// leads; the others forward what they are asked to it, and wait for their turn.
//
// Controllers trust each other by their certificates: each keeps the
// fingerprint of its own in the store, and a connection between two is taken only
// if either end shows one that is there. So whoever can write to the store belongs
// to the group, and nobody else does.
type group struct {
	m *member
	// self is this process, in the store as long as it runs.
	self peerRecord
	cert *rapi.CertificateFile
	// roster is who belongs to the group, and strangers slows down who does not.
	roster    *roster
	strangers *intake.Brake
	// leader speaks to whoever leads.
	leader *leaderClient
	// reading answers what may be answered while another leads; nil while nothing can
	// be.
	reading atomic.Pointer[reader]
	// lessee has the read lease under which that is what the leader would answer, and
	// lessor grants such leases in a term of this process; nil outside of one.
	lessee *readlease.Lessee
	lessor atomic.Pointer[readlease.Lessor]
	// resigning asks the term of this process to end.
	resigning chan resignation
	// keyless is whether the keys of the leader could not be learned. Whoever learns them puts a token into learns meanwhile.
	keyless atomic.Bool
	learns  chan struct{}
	// unfit says why this process cannot lead, nil if it can.
	unfit atomic.Pointer[Problem]
	// drained says by whom this process is drained; nil if it is not.
	drained atomic.Pointer[state.Drain]
	// nowDrained has something when that changed.
	nowDrained chan struct{}
	// registered is the revision of what the store has of this process.
	registered atomic.Int64
	// staying ends when the process is leaving, and takes the lead no more; leaves has it do so.
	staying context.Context //nolint:containedctx // it is a state of the process
	leaves  context.CancelFunc
}

// The kinds of objects that controllers keep of themselves.
const (
	kindPeer   store.Kind = "controller"        // by name: who runs
	kindLeader store.Kind = "controller-leader" // one: who leads
)

var leaderKey = store.Key{Kind: kindLeader, ID: "leader"}

// peerRecord is how a controller is found by others.
type peerRecord struct {
	Name string `json:"name"`
	// Instance tells one life of a controller from all others, also those of another
	// machine with the same name.
	Instance    string    `json:"instance"`
	Address     string    `json:"address"`
	Fingerprint string    `json:"fingerprint"` // SHA-256 of its certificate
	Started     time.Time `json:"started"`
	Version     string    `json:"version"`
	// Formats are those that its program knows; a program of before tells none.
	Formats *format.Program `json:"formats,omitempty"`
	// Agents is where agents of nodes reach it; empty if it takes none in.
	Agents string `json:"agents,omitempty"`
	// Epoch is that of its term, for the one that leads, and Key that with which it seals secrets.
	Epoch int64  `json:"epoch,omitempty"`
	Key   string `json:"key,omitempty"`
	// Functions are the versions of the operator's own functions that it evaluates expressions with, for the one that leads.
	Functions []string `json:"functions,omitempty"`

	// revision is that of the record.
	revision store.Revision
}

// holder is the name under which the controller holds the lease. No two lives of
// controllers have the same.
func (p peerRecord) holder() string { return p.Name + " (" + p.Instance + ")" }

func openGroup(m *member, o Options) (*group, error) {
	if m.shared == nil {
		return nil, fault.New(fault.Invalid, "peer: the embedded store has one controller").At("peer").
			WithHint("name a PostgreSQL database as the store, or leave peer out")
	}
	cert, err := rapi.OpenCertificate(filepath.Join(o.Data, "peer.pem"), time.Now())
	if err != nil {
		return nil, err
	}
	if _, err := cert.Renew(time.Now()); err != nil { // the others look at nothing but what it is
		m.log.Warn("the certificate for other controllers has ended, or will soon", "error", err)
	}
	name := o.Name
	if name == "" {
		if name, err = hostName(); err != nil {
			return nil, err
		}
	}
	g := newGroup(m, name, newUUID())
	g.cert, g.self.Fingerprint = cert, fingerprint(cert.Current().Certificate[0])
	return g, nil
}

// newGroup is a process among others, in a life of its own.
func newGroup(m *member, name, instance string) *group {
	own := format.Own()
	g := &group{m: m, resigning: make(chan resignation), nowDrained: make(chan struct{}, 1), learns: make(chan struct{}, 1), strangers: intake.NewBrake(),
		self: peerRecord{Name: name, Instance: instance, Started: m.started, Version: version.Number, Formats: &own}}
	g.staying, g.leaves = context.WithCancel(context.Background())
	g.roster = newRoster(g.peers)
	g.leader, g.lessee = newLeaderClient(g), readlease.NewLessee(instance)
	return g
}

func fingerprint(der []byte) string {
	sum := sha256.Sum256(der)
	return hex.EncodeToString(sum[:])
}

// run serves as one of the group until ctx ends.
func (g *group) run(stopping context.Context, o Options) error {
	asked, end := g.untilLeft(stopping, o)
	defer end()
	s, err := openSurfaces(asked, o)
	if err != nil {
		return err
	}
	defer s.close()
	g.m.watch(s)
	l, err := gateOf(gate.Peers, o).Listen(asked, o.Peer)
	if err != nil {
		return fault.New(fault.Environment, "cannot listen for other controllers: %w", err).WithHint("choose another address with --peer")
	}
	defer func() { _ = l.Close() }() // its server may have done so
	s.ready.Peer = l.Addr().String()
	if g.self.Address, err = told(l.Addr(), o.PeerAddress, "peer", "peer-address"); err != nil {
		return err
	}
	g.self.Agents = s.ready.AgentAddress
	if err := g.register(asked); err != nil {
		return notBegun(err)
	}
	defer g.unregister()
	return g.serveAndLead(asked, o, s, l, []func(context.Context) error{
		func(ctx context.Context) error {
			return rapi.ServeHandler(ctx, gate.RAPI, s.rapiListener, s.cert, g.front(), o.Log)
		},
		func(ctx context.Context) error { return g.serveLUXI(ctx, s.luxiListener) },
		func(ctx context.Context) error { return s.serveCompute(ctx, g.computeFront(), o.Log) },
		func(ctx context.Context) error { return s.serveWeb(ctx, g.forward(surfaceWeb), o.Log) },
		func(ctx context.Context) error { return g.m.serveAgents(ctx, s) },
		func(ctx context.Context) error { return s.ganeti.serve(ctx) },
		func(context.Context) error { return s.announce(o) },
	})
}

// serveAndLead answers other controllers, and clients by the parts that do so, and stands by and leads in turn until ctx ends.
func (g *group) serveAndLead(asked context.Context, o Options, s *surfaces, l net.Listener, clients []func(context.Context) error) error {
	ctx, stop := context.WithCancelCause(asked)
	defer stop(nil)
	// Other controllers are heard until the term is over: what they were lent is called
	// off at the end of it.
	term, endTerm := context.WithCancel(context.WithoutCancel(ctx))
	var parts sync.WaitGroup
	defer parts.Wait()
	defer endTerm()
	defer stop(nil)
	all := []func(context.Context) error{func(context.Context) error { return g.servePeers(term, l) }, g.leader.followLead}
	all = append(all, clients...)
	if g.m.ground == nil {
		all = append(all, func(ctx context.Context) error { return g.keepDrained(ctx, o) })
	}
	for _, part := range all {
		parts.Go(func() {
			if err := part(ctx); err != nil {
				stop(err)
			}
		})
	}
	err := g.terms(ctx, o, s)
	if asked.Err() != nil {
		return nil
	}
	return err
}

// told is the address that others are told of a controller which listens at one: that which a setting says, or where it listens, if that is an
// address of one machine.
func told(at net.Addr, wanted, listens, says string) (string, error) {
	if tcp, ok := at.(*net.TCPAddr); wanted == "" && ok && tcp.IP.IsUnspecified() {
		return "", fault.New(fault.Invalid, "%s: others do not reach this controller at %s", listens, at).At(listens).
			WithHint("name an address of this machine, or say with %s which one the others are to use", says)
	}
	return cmp.Or(wanted, at.String()), nil
}

// terms stands by and leads in turn until ctx ends.
func (g *group) terms(ctx context.Context, o Options, s *surfaces) error {
	for {
		lease, err := g.standBy(ctx, o, s)
		if err == nil {
			err = g.m.lead(ctx, o, lease, s)
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		_, unfit := errors.AsType[*unfitError](err)
		if err != nil && !fault.Is(err, fault.Fenced) && !passes(err) && !unfit {
			return err
		}
		g.m.log.Warn("this controller no longer leads, and stands by", "why", err)
		if passes(err) { // whoever takes the lead anew at once meets the same
			select {
			case <-ctx.Done():
			case <-time.After(storeTry):
			}
		}
	}
}

// register writes into the store where this controller is. Another that runs
// under the same name is left alone, and this one refused.
func (g *group) register(ctx context.Context) error {
	key := store.Key{Kind: kindPeer, ID: g.self.Name}
	was, err := g.m.store.Get(ctx, key)
	if err != nil && !fault.Is(err, fault.NotFound) {
		return err
	}
	var other peerRecord
	if err == nil && json.Unmarshal(was.Value, &other) == nil && other.Address != g.self.Address {
		if g.runs(ctx, other) {
			return fault.New(fault.Busy, "a controller with the name %s runs already, at %s", other.Name, other.Address).At("name").
				WithHint("give each controller a name of its own")
		}
	}
	text, err := json.Marshal(g.self)
	if err != nil {
		return err
	}
	revision, err := store.Commit(ctx, g.m.store, store.Tx{
		Put: []store.Put{{Key: key, Value: text}}, Expect: []store.Expect{{Key: key, Revision: was.Revision}},
	})
	g.registered.Store(int64(revision))
	return err
}

// runs tells whether a controller is where it said. It need not know this one
// yet, so it is enough that it shows its certificate.
func (g *group) runs(ctx context.Context, p peerRecord) bool {
	conn, err := g.dialTo(ctx, p, statusTime)
	if err != nil {
		return false
	}
	_ = conn.Close() // nothing was said
	return true
}

// dialTLS connects to one controller over the network.
func (g *group) dialTLS(ctx context.Context, p peerRecord) (net.Conn, error) {
	return (&tls.Dialer{Config: g.tlsTo(p)}).DialContext(ctx, "tcp", p.Address)
}

// unregister takes this controller out of the store, unless another has its
// place by now.
func (g *group) unregister() {
	ctx, cancel := context.WithTimeout(context.Background(), statusTime)
	defer cancel()
	key := store.Key{Kind: kindPeer, ID: g.self.Name}
	_, err := store.Commit(ctx, g.m.store, store.Tx{Delete: []store.Key{key}, Expect: []store.Expect{{Key: key, Revision: store.Revision(g.registered.Load())}}})
	if err != nil {
		g.m.log.Warn("this controller is still among those that run", "error", err)
	}
}

// peers returns the controllers of the group.
func (g *group) peers(ctx context.Context) ([]peerRecord, error) {
	var all []peerRecord
	for o, err := range g.m.store.List(ctx, kindPeer, store.Options{}) {
		if err != nil {
			return nil, err
		}
		var p peerRecord
		if err := json.Unmarshal(o.Value, &p); err != nil {
			return nil, fault.New(fault.Internal, "the controller %s cannot be read: %w", o.ID, err)
		}
		p.revision = o.Revision
		all = append(all, p)
	}
	return all, nil
}

// standBy waits until this process is given the lease.
func (g *group) standBy(ctx context.Context, o Options, s *surfaces) (store.Lease, error) {
	here, stop := context.WithCancel(ctx)
	var parts sync.WaitGroup
	defer parts.Wait()
	defer stop()
	parts.Go(func() { _ = g.m.reload(here, o, s.cert) }) // it ends with its context
	parts.Go(func() { _ = g.m.keepCertificate(here) })   // it ends with its context
	parts.Go(func() { g.keepReading(here, o, s) })
	if g.m.ground == nil {
		parts.Go(func() { g.tellLeader(here) })
	}
	g.m.tellManager(systemd.StateReady, systemd.Status("stands by"))
	g.m.watchdog.set(g.m.standsBy())
	if err := g.awaitFormat(here); err != nil {
		return store.Lease{}, err
	}
	return g.awaitLease(here)
}

// awaitLease waits until this process is given the lease. One that is leaving takes it no more, and one that is drained only if no other could.
func (g *group) awaitLease(ctx context.Context) (store.Lease, error) {
	staying, stop := context.WithCancel(ctx)
	defer stop()
	defer context.AfterFunc(g.staying, stop)()
	g.lookDrained(staying)
	for {
		lease, err := g.awaitTurn(staying)
		switch {
		case err == nil:
			return lease, nil
		case staying.Err() != nil:
			<-ctx.Done()
			return lease, context.Cause(ctx)
		case !errors.Is(err, errNotItsTurn):
			return lease, err
		}
		select {
		case <-staying.Done():
		case <-time.After(drainEvery):
		}
	}
}

// proclaim tells the others who leads, and ends the term when it is asked to. A store that fails for a time is waited for.
func (g *group) proclaim(ctx context.Context, c *controller) error {
	me := g.self
	me.Epoch, me.Key, me.Functions = c.lease.Epoch, c.sealed.Ring().ID(), c.rollout.Functions()
	text, err := json.Marshal(me)
	if err != nil {
		return err
	}
	asked, err := g.keepTelling(ctx, store.Tx{Epoch: c.lease.Epoch, Put: []store.Put{{Key: leaderKey, Value: text}}})
	if err != nil || asked == nil {
		return err
	}
	c.successor, c.over = asked.successor, asked.over
	return errResigned
}

// keepTelling stores who leads, and returns why that one is asked to give the lead up; nil when ctx ends.
func (g *group) keepTelling(ctx context.Context, who store.Tx) (*resignation, error) {
	for failures := 0; ; {
		var again <-chan time.Time // nil when it is told
		_, err := store.Commit(ctx, g.m.store, who)
		if ctx.Err() != nil {
			return nil, nil //nolint:nilerr,nilnil // the term is over, and with it what was to be told
		}
		if err != nil {
			if !passes(err) {
				return nil, err
			}
			if failures++; failures == 1 {
				g.m.log.Warn("who leads cannot be stored; it is tried again", "error", err)
			}
			again = time.After(storeTry)
		}
		select {
		case <-again:
		case <-ctx.Done():
			return nil, nil //nolint:nilnil // nobody asked
		case asked := <-g.resigning:
			return &asked, nil
		}
	}
}

// presentLeader reads who leads.
func (g *group) presentLeader(ctx context.Context) (peerRecord, error) {
	var p peerRecord
	o, err := g.m.store.Get(ctx, leaderKey)
	if err == nil {
		err = json.Unmarshal(o.Value, &p)
	}
	return p, err
}

// tlsTo is how to speak to one controller and to no other.
func (g *group) tlsTo(p peerRecord) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{*g.cert.Current()},
		InsecureSkipVerify: true, //nolint:gosec // the certificate itself is known, see below
		VerifyConnection: func(state tls.ConnectionState) error {
			if len(state.PeerCertificates) == 0 || fingerprint(state.PeerCertificates[0].Raw) != p.Fingerprint {
				return fmt.Errorf("%s is not the controller %s", p.Address, p.Name)
			}
			return nil
		},
	}
}

// statusTime bounds how long another controller may take to say how it is.
const statusTime = 10 * time.Second

// What a controller says that it does.
const (
	roleLeader  = "leader"
	roleStandby = "standby"
)

// peerStatus is what a controller says of itself.
type peerStatus struct {
	Instance string `json:"instance"`
	Role     string `json:"role"`
	Revision int64  `json:"revision"`
	// Unfit says why it cannot lead.
	Unfit string `json:"unfit,omitempty"`
	// Drained: that is because it is drained, and it leads if no other can.
	Drained bool `json:"drained,omitempty"`
	// Others are those whom a leader knows: one that is cut off from the store learns from them whom else to ask.
	Others []peerRecord `json:"others,omitempty"`
}

// status asks a controller how it is.
func (g *group) status(ctx context.Context, p peerRecord) (peerStatus, error) {
	var st peerStatus
	err := g.ask(ctx, p, http.MethodGet, "/peer/status", statusTime, &st)
	if err == nil && st.Instance != p.Instance {
		err = fault.New(fault.Unavailable, "another controller is at %s", p.Address)
	}
	return st, err
}

// maxPeerAnswer bounds what another controller answers, in bytes: a few hundred for each controller that it knows.
const maxPeerAnswer = 1 << 20

// ask sends a request to a controller.
func (g *group) ask(ctx context.Context, p peerRecord, method, path string, limit time.Duration, into any) error {
	return g.askMuch(ctx, p, method, path, limit, maxPeerAnswer, into)
}

// askMuch is ask for an answer of at most so many bytes.
func (g *group) askMuch(ctx context.Context, p peerRecord, method, path string, limit time.Duration, most int64, into any) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, "https://"+p.Address+path, http.NoBody)
	if err != nil {
		return err
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true,
		DialTLSContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return g.dialTo(ctx, p, limit) }}}
	answer, err := client.Do(r)
	if err != nil {
		return fault.New(fault.Unavailable, "the controller %s does not answer: %w", p.Name, err)
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK {
		return fault.New(fault.Unavailable, "the controller %s answers %s", p.Name, answer.Status)
	}
	if err := readPeer(answer.Body, most, into); err != nil {
		return fault.New(fault.Unavailable, "the controller %s cannot be understood: %w", p.Name, err)
	}
	return nil
}

// masters tells of all controllers of the group how they are.
func (g *group) masters(ctx context.Context) ([]luxi.Master, error) {
	peers, err := g.peers(ctx)
	if err != nil {
		return nil, err
	}
	out := make([]luxi.Master, len(peers))
	var asked sync.WaitGroup
	for i, p := range peers {
		asked.Go(func() {
			out[i] = luxi.Master{Name: p.Name, Address: p.Address, Role: "unreachable", Started: p.Started, Version: p.Version, Formats: format.Told(p.Formats)}
			if st, err := g.status(ctx, p); err == nil {
				out[i].Role, out[i].Revision, out[i].Note = st.Role, st.Revision, st.Unfit
			}
		})
	}
	asked.Wait()
	return out, nil
}

// failover makes this controller the leader: it asks the present one to end its
// term in good order, and has the lease before anybody else.
func (g *group) failover(ctx context.Context) error {
	switch {
	case g.m.leads() != nil:
		return fault.New(fault.WrongState, "this controller leads already")
	case g.staying.Err() != nil:
		return fault.New(fault.WrongState, "this controller is leaving").WithHint("ask another one: drover cluster masters lists them")
	case g.drained.Load() != nil:
		return fault.New(fault.WrongState, "this controller is %s", g.drained.Load()).WithHint("drover cluster undrain-controller %s", g.self.Name)
	}
	p, err := g.presentLeader(ctx)
	limit := time.After(resignTime)
	for err == nil {
		if err = g.ask(ctx, p, http.MethodPost, "/peer/resign?to="+g.self.Instance, resignTime, new(struct{})); err == nil {
			p, err = g.taken(ctx, p, limit)
		}
		if err == nil && p.Instance == g.self.Instance {
			return nil
		}
	}
	return err
}

// taken waits until the lead that a controller gave up is taken, and returns who has it: another one, if this one was too slow for that on a busy machine.
func (g *group) taken(ctx context.Context, former peerRecord, limit <-chan time.Time) (peerRecord, error) {
	for g.m.leads() == nil {
		select {
		case <-limit:
			return former, fault.New(fault.Unavailable, "the lead was handed over, but not taken in time").WithHint("drover cluster masters tells who leads")
		case <-ctx.Done():
			return former, context.Cause(ctx)
		case <-time.After(10 * time.Millisecond):
		}
		if p, err := g.presentLeader(ctx); err == nil && p.Epoch > former.Epoch && p.Instance != g.self.Instance {
			return p, nil
		}
	}
	return g.self, nil
}

// resignTime bounds how long a leader may take to end its term.
const resignTime = time.Minute
