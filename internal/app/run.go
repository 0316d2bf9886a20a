package app

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/drover-project/drover/internal/api/rapi"
	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/daemon"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/forwarded"
	"github.com/drover-project/drover/internal/gate"
	"github.com/drover-project/drover/internal/nodedriver"
	"github.com/drover-project/drover/internal/store"
	"github.com/drover-project/drover/internal/systemd"
)

// Options are the settings of a controller.
type Options struct {
	// Data is the directory of everything that lasts.
	Data string
	// Driver says what runs the instances of nodes that live in this process, and which hypervisor a new cluster has.
	Driver nodedriver.Settings
	// HVParams are parameters of that hypervisor that a new cluster has, beside those that the driver wants.
	HVParams cluster.Params
	// RAPI is the address to listen on; port 0 picks a free one.
	RAPI string
	// Certificate is the file with RAPI's certificate and key, and Users that with
	// its accounts; empty for those in the data directory, which are made when they
	// are missing.
	Certificate, Users string
	// RequireAuthentication lets nobody read over RAPI without an account.
	RequireAuthentication bool
	// LUXI is the path of the socket; empty for one in the data directory.
	LUXI string
	// LUXIGroup is the group whose members may open it, by name or number; empty for the process's user alone.
	LUXIGroup string
	// GanetiDir is kept as programs of Ganeti expect their directory (package ssconf), and Confd is the address at which their questions are answered
	// (package confd); empty for none.
	GanetiDir, Confd string
	// ClusterName is that of a new cluster; empty for one that says it is for trying.
	ClusterName string
	// Store is the URL of the store; empty for the embedded one below Data.
	Store string
	// KeyFile is the file with the keys that secrets are sealed with in the store; empty for
	// one below Data. It is made where there is none and the store has nothing sealed.
	KeyFile string
	// Health is the address of a listener for health and figures alone; empty for none.
	Health    string
	healthURL string // where that is
	// Mond is the address of the nodes' monitoring agents, of the first one if its
	// port is not 0; empty for none.
	Mond string
	// Name tells this controller from others that share its store; empty for the
	// name of the machine.
	Name string
	// Peer is the address at which other controllers reach this one; empty for a
	// controller that is alone.
	Peer string
	// PeerAddress is the one that the others are told; empty for that of Peer.
	PeerAddress string
	// AgentAddress is where agents of nodes that are elsewhere connect; empty for none. AgentAdvertise is the one that they are told; empty for that one.
	AgentAddress, AgentAdvertise string
	// agentPatience is for how long work waits for a node that is away; zero for agentwire.Away. Tests are in a hurry.
	agentPatience time.Duration
	// waitsEvery is how often it is looked what jobs wait for; zero for waitsEvery.
	waitsEvery time.Duration
	// files is how many files the process may open; zero for what the system says. Tests have few.
	files int
	// clock is that of the machine, by which it is told how old and how far off things are; nil for the system's. Tests move it on.
	clock func() time.Time
	// gates are those of the process.
	gates *gate.Gates
	// Agents has the nodes of a new cluster as processes of their own, over that address.
	Agents bool
	// NodeData is the directory of the nodes that live in the process of the
	// leader; empty for one below Data.
	NodeData string
	// Events is the URL of a RabbitMQ broker that is told how opcodes ended; empty
	// for none.
	Events string
	// ServerEffects is the file with the effects of servers' tags; empty for none.
	ServerEffects string
	// ServerClusters is the file with further clusters for servers; empty for none.
	ServerClusters string
	// FirstServerNumber is the least number of a new server; 0 for 1.
	FirstServerNumber int64
	// Nodes is how many nodes a new cluster gets.
	Nodes int
	// Tasks lets deployments run tasks on the nodes that live in the process.
	Tasks bool
	// Compute is the address of the Compute API, with identity and images; empty
	// for none.
	Compute string
	// Web is the address of the page; empty for none. It is plain HTTP on loopback, and elsewhere over TLS with RAPI's certificate. WebURL is where people reach
	// it, if that is another address.
	Web    string
	WebURL *url.URL
	// Keystone is the URL of the identity service, with /v3, whose tokens the Compute
	// API takes; empty for accounts of its own. KeystoneCA is the file with who vouches
	// for its certificate; empty for those that the machine trusts.
	Keystone, KeystoneCA string
	// ComputeTLS serves it over TLS, with RAPI's certificate.
	ComputeTLS bool
	// PublicURL is where clients reach the Compute API and what belongs to it, without
	// a slash at its end; empty for what requests say, and the headers of
	// TrustedProxies.
	PublicURL      string
	TrustedProxies []netip.Prefix
	// ProxyProtocol are the keys of the surfaces that TrustedProxies alone connect to, which tell by the PROXY protocol for whom.
	ProxyProtocol []string
	// Functions is the directory of the operator's own functions for expressions of
	// tasks; empty for none.
	Functions string
	// OutOfBand are the directories, separated by colons, of programs that ask management controllers of nodes; empty for none.
	OutOfBand string
	// Allocators are the directories, separated by colons, of programs that may choose nodes; empty for none.
	Allocators string
	// Demo fills a new cluster with instances, jobs and rules to look at.
	Demo bool
	// ReadyFile is written when everything listens, beside the one in the data
	// directory; empty for none.
	ReadyFile string
	// StopGrace is how long running opcodes may go on when the controller stops;
	// then they are ended, and resumed or marked as lost at the next start. Zero
	// ends them at once.
	StopGrace time.Duration
	// ShutdownDelay is how long a controller of a group goes on serving when it is to stop, so that others see that it is leaving.
	ShutdownDelay time.Duration
	// MasterIPSetup is the program that brings the cluster's address up and takes it away; empty for none.
	MasterIPSetup string
	// AutoFinalize raises the format of the store as soon as all controllers can keep a newer
	// one; otherwise an operator does.
	AutoFinalize bool
	// NoCopy moves an embedded store to a later schema or format without a copy of it first.
	NoCopy bool
	// WatchEvery is how often it is looked for instances that are to run and do not (package watcher); zero for never.
	WatchEvery time.Duration
	// ArchiveAfter is how long ended jobs stay before they move to the archive;
	// zero is DefaultArchiveAfter.
	ArchiveAfter time.Duration
	// ArchiveKeep is what stays in the archive; all of it if it says nothing.
	ArchiveKeep Keep
	// Backups is a directory with backups of the store; empty for none that is looked at.
	Backups string
	// Uploads is the directory of the images that users upload; empty for one in the data directory of an embedded store, and of any other for none.
	Uploads string
	// Manager is the service manager that wants to know how it goes.
	Manager systemd.Manager
	// Hangup asks for what can be read anew while it runs: Reread, which may be
	// nil, and the certificate. Nil when nobody asks.
	Hangup <-chan os.Signal
	Reread func() error
	// Out gets the same for a person, with passwords if TellPasswords is set.
	Out           io.Writer
	TellPasswords bool
	Log           *slog.Logger
	// Recent is what is kept of that log, nil for nothing, and Settings are these as a file, without passwords: both for a bundle.
	Recent   *daemon.Recent
	Settings string
}

// Run runs a controller with its cluster until ctx ends: its store, the
// nodes that live in its process, RAPI and LUXI. One of several controllers
// stands by while another leads.
func Run(ctx context.Context, o Options) (err error) {
	// What runs on nodes runs in directories of its own.
	for _, dir := range []*string{&o.Data, &o.NodeData} {
		if *dir == "" {
			continue
		}
		if *dir, err = filepath.Abs(*dir); err != nil {
			return fault.New(fault.Environment, "cannot tell where the directory %s is: %w", *dir, err)
		}
	}
	o.gates = newGates(o)
	if err := o.tryAddresses(ctx); err != nil {
		return err
	}
	if err := os.MkdirAll(o.Data, 0o700); err != nil {
		return fault.New(fault.Environment, "cannot make the data directory: %w", err)
	}
	if o.ArchiveAfter == 0 {
		o.ArchiveAfter = DefaultArchiveAfter
	}
	defer spareGarbage()()
	o.tellStart()
	defer context.AfterFunc(ctx, func() { o.Log.Info("the controller stops", "why", "it was told to") })()
	defer o.tellEnd(ctx, &err)
	watched, err := openHealthListener(o)
	if err != nil {
		return err
	}
	defer watched.close()
	o.healthURL = watched.url
	for {
		err := runOnce(ctx, o, watched)
		if _, early := errors.AsType[*notBegunError](err); !early || !passes(err) {
			return err
		}
		if err := (&room{o: o, health: watched}).await(ctx, err); err != nil || ctx.Err() != nil {
			return err
		}
	}
}

// tryAddresses listens for a moment where a new controller is to, before anything is made for it: one that cannot begin
// leaves no store, account and certificate behind, which are root's where somebody tried it by hand.
func (o Options) tryAddresses(ctx context.Context) error {
	if _, err := os.Stat(filepath.Join(o.Data, storeDir)); err == nil {
		return nil
	}
	if err := checkGanetiDir(o); err != nil {
		return err
	}
	for _, at := range []struct {
		of                        gate.Surface
		surface, setting, address string
	}{
		{gate.RAPI, "RAPI", "rapi", o.RAPI}, {gate.Compute, "the Compute API", "compute", o.Compute}, {gate.Web, "the page", "web", o.Web},
		{gate.Health, "health and figures", "health", o.Health}, {gate.Agents, "agents of nodes", "agent-address", o.AgentAddress},
		{gate.Peers, "other controllers", "peer", o.Peer}, {gate.Monitors, "the monitoring agents", "mond", o.Mond},
	} {
		if at.address == "" {
			continue
		}
		l, err := gateOf(at.of, o).Listen(ctx, at.address)
		if err != nil {
			return fault.New(fault.Environment, "cannot listen for %s: %w", at.surface, err).
				WithHint("choose another address with --%s; port 0 picks a free one", at.setting)
		}
		defer l.Close() //nolint:errcheck // it took nobody; and it stays open until the others are tried, of which one may name the same address
	}
	if o.Confd == "" {
		return nil
	}
	conn, err := listenConfd(ctx, o)
	if err != nil {
		return err
	}
	return conn.Close()
}

// runOnce runs a controller until ctx ends, or it cannot begin or go on.
func runOnce(ctx context.Context, o Options, watched *healthListener) error {
	dog := newWatchdog(o)
	dog.set(opensStore())
	living, die := context.WithCancel(context.WithoutCancel(ctx))
	var life sync.WaitGroup
	defer life.Wait()
	defer die()
	life.Go(func() { dog.keep(living) })
	m, err := openMember(ctx, o)
	if err != nil {
		return notBegun(err)
	}
	m.watchdog = dog
	dog.set(m.begins())
	defer m.close()
	defer dog.set(nil)
	watched.show(m.pages())
	defer watched.show(inPlaceOfPages("the controller is stopping"))
	retrying, unwatch := context.WithCancel(ctx)
	var watch sync.WaitGroup
	watch.Go(func() { m.meter.Retry(retrying) })
	watch.Go(func() { _ = m.keepClock(retrying) }) // it ends with its context
	defer watch.Wait()
	defer unwatch()
	if m.group != nil {
		return m.group.run(ctx, o)
	}
	lease, err := m.acquire(ctx, o)
	if err != nil {
		return notBegun(err)
	}
	return m.lead(ctx, o, lease, nil)
}

// lead is the term of a leader: it lasts until ctx ends, which is in good order,
// or the lease is lost or another part fails. The surfaces are opened when
// the controller is there, unless they are open already.
func (m *member) lead(asked context.Context, o Options, lease store.Lease, s *surfaces) error {
	m.watchdog.set(m.begins())
	c, err := m.openController(asked, o, lease)
	if err != nil {
		return notBegun(err)
	}
	defer c.close()
	if s == nil {
		if s, err = openSurfaces(asked, o); err != nil {
			return err
		}
		defer s.close()
		m.watch(s)
	}
	if err := c.serveOn(asked, s, o); err != nil {
		return err
	}
	ctx, stop := context.WithCancelCause(context.WithoutCancel(asked))
	defer stop(nil)
	// Who waits for an answer when the controller stops is told so.
	defer context.AfterFunc(asked, func() {
		m.stopping.Store(true)
		stop(errStopping)
	})()
	clients, endClients := context.WithCancelCause(context.WithoutCancel(asked))
	defer context.AfterFunc(ctx, func() { endClients(c.overFor(context.Cause(ctx))) })()
	c.term, c.endTerm = clients, stop
	defer c.onGround()()
	c.takeAgents(s)
	m.leading.Store(c)
	var parts sync.WaitGroup
	for _, part := range m.parts(c, o, s) {
		parts.Go(func() {
			if err := part(ctx); err != nil {
				stop(err)
			}
		})
	}
	if m.group == nil && !o.Agents {
		if err := s.announce(o); err != nil {
			stop(err)
		}
	}
	c.report(systemd.StateReady)
	m.watchdog.set(c.leadsOn())
	c.tellBeginning()
	<-ctx.Done()
	m.watchdog.set(c.ends(o.StopGrace))
	m.leading.Store(nil) // what comes now waits for the next leader
	if asked.Err() != nil {
		c.report(systemd.StateStopping)
	}
	parts.Wait()
	// Who was taken before is answered by now, and may have needed what is closed next for it.
	<-clients.Done()
	if cause := context.Cause(ctx); cause != errStopping { //nolint:errorlint // only itself ends in good order
		return cause
	}
	return nil
}

// overFor notes why a term is over, and returns what clients are told. Of a change that is being stored when the lead is lost nobody
// here knows whether it took effect, so they are told no more than that.
func (c *controller) overFor(cause error) error {
	switch {
	case !fault.Is(cause, fault.Fenced):
		return cause
	case errors.Is(cause, errResigned): // who asked for the lead waits until it is given up
		c.leading.CompareAndSwap(c, nil)
		c.owed.close()
	default:
		c.lead.Lose(cause)
	}
	return errNotLeading
}

// parts are what a leader does at once, each until its context ends; the error of one ends the term. One that is alone serves its
// surfaces itself; in a group they stay open from term to term.
func (m *member) parts(c *controller, o Options, s *surfaces) []func(context.Context) error {
	all := []func(context.Context) error{
		c.keepLease, c.store.wait, c.queue.Failed, func(ctx context.Context) error { return c.keepTidy(ctx, o.ArchiveAfter) },
		func(ctx context.Context) error { return keepWithin(ctx, o.ArchiveKeep, c.log, c.queue.Prune) },
		func(ctx context.Context) error { return keepEvents(ctx, o.ArchiveKeep, c.log, c.queue.PruneEvents) }, c.journal,
		func(ctx context.Context) error { return keepDeployments(ctx, o.ArchiveKeep, c.log, c.rollout.Prune) },
		func(ctx context.Context) error { return c.tellWaits(ctx, cmp.Or(o.waitsEvery, waitsEvery)) },
		s.serveMonitors, c.reconcile, m.keepCertificate, func(ctx context.Context) error { return m.reload(ctx, o, s.cert) },
		c.keepFormat, c.querier.HearNodes, func(ctx context.Context) error { return s.ganeti.keep(ctx, c.picture) },
		func(ctx context.Context) error { return c.keepWatch(ctx, o.WatchEvery) },
		func(ctx context.Context) error { return m.masterIP.keep(ctx, c.picture) },
	}
	all = append(all, c.eventParts()...)
	if o.Demo && c.fresh && !o.Agents { // they are to be there first
		all = append(all, c.seed)
	}
	if m.group != nil {
		return append(all, func(ctx context.Context) error { return m.group.proclaim(ctx, c) }, c.keepAssured)
	}
	if o.Agents {
		all = append(all, func(ctx context.Context) error { return c.keepAgents(ctx, s, o) })
	}
	return append(all,
		func(ctx context.Context) error {
			return rapi.ServeHandler(ctx, gate.RAPI, s.rapiListener, s.cert, c.rapi, o.Log)
		},
		func(ctx context.Context) error { return c.luxi.Serve(ctx, s.luxiListener) },
		func(ctx context.Context) error { return s.serveCompute(ctx, c.compute, o.Log) },
		func(ctx context.Context) error { return s.serveWeb(ctx, c.page, o.Log) },
		func(ctx context.Context) error { return m.serveAgents(ctx, s) },
		func(ctx context.Context) error { return s.ganeti.serve(ctx) },
	)
}

// errStopping is what clients are told whose requests a stop ends.
var errStopping error = fault.New(fault.Unavailable, "the controller is stopping").WithHint("ask again when it runs")

// errResigned ends a term that is given up in favour of another controller's.
var errResigned error = fault.New(fault.Fenced, "another controller was asked to lead")

// errNotLeading is what clients are told whose requests end with a term.
var errNotLeading error = fault.New(fault.Unavailable, "this controller no longer leads").WithHint("ask again: another does, or will")

// surfaces are the interfaces of a controller.
type surfaces struct {
	ready Ready
	cert  *rapi.CertificateFile
	users *rapi.UsersFile

	rapiListener, luxiListener *gate.Listener
	computeListener            *gate.Listener        // nil without the Compute API
	computeCert                *rapi.CertificateFile // nil while that is plain HTTP

	webListener *gate.Listener        // nil without the page
	webCert     *rapi.CertificateFile // nil while that is plain HTTP

	agentListener *gate.Listener // nil where no agents are taken in

	ganeti *ganetiDir // nil where no programs of Ganeti are made to feel at home

	monitors      *monitors
	serveMonitors func(context.Context) error
}

// listen opens a listener of a surface: for everybody, or for the proxies before it.
func listen(ctx context.Context, s gate.Surface, address string, o Options) (*gate.Listener, error) {
	l, err := gateOf(s, o).Listen(ctx, address)
	if err == nil && slices.Contains(o.ProxyProtocol, s.Key) {
		l.Behind(o.TrustedProxies)
	}
	return l, err
}

// behindProxies has requests come from whom trusted proxies say that they are.
func behindProxies(o Options, h http.Handler) http.Handler {
	if o.TrustedProxies == nil {
		return h
	}
	trust := forwarded.Trust{Scheme: "https", Proxies: o.TrustedProxies}
	return trust.Handler(h)
}

// gateOf is the gate of a surface.
func gateOf(s gate.Surface, o Options) *gate.Gate { return o.gates.Of(s) }

// newGates are the gates of a process. In a group a request takes two connections: that of the client, and that to the leader.
func newGates(o Options) *gate.Gates {
	files := cmp.Or(o.files, gate.Files())
	if o.Peer != "" {
		files /= 2
	}
	return gate.NewGates(files, o.Log)
}

// openSurfaces opens the interfaces, so that clients can connect from now on.
func openSurfaces(ctx context.Context, o Options) (s *surfaces, err error) {
	s = &surfaces{ready: Ready{PID: os.Getpid(), Hypervisor: o.Driver.Kind(), Health: o.healthURL}}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	if err = os.MkdirAll(filepath.Join(o.Data, "rapi"), 0o700); err != nil {
		return s, fault.New(fault.Environment, "cannot make the directory of RAPI's files: %w", err)
	}
	var login account
	if login, s.users, err = openUsers(o); err != nil {
		return s, err
	}
	s.ready.RAPIUser, s.ready.RAPIPassword = login.name, login.password
	if s.cert, err = openCertificate(o); err != nil {
		return s, err
	}
	if s.rapiListener, err = listen(ctx, gate.RAPI, o.RAPI, o); err != nil {
		return s, fault.New(fault.Environment, "cannot listen for RAPI: %w", err).WithHint("choose another address with --rapi; port 0 picks a free one")
	}
	s.ready.RAPI = "https://" + s.rapiListener.Addr().String()
	if s.luxiListener, s.ready.LUXI, err = listenLUXI(o); err != nil {
		return s, err
	}
	if s.ganeti, err = openGanetiDir(ctx, o, &s.ready); err != nil {
		return s, err
	}
	if err = s.listenAgents(ctx, o); err != nil {
		return s, err
	}
	if err = s.listenWeb(ctx, o); err != nil {
		return s, err
	}
	return s, s.listenCompute(ctx, o)
}

// serveOn prepares the interfaces to serve what a controller has.
func (c *controller) serveOn(ctx context.Context, s *surfaces, o Options) error {
	c.rapi = behindProxies(o, rapi.New(rapi.Config{Queue: c.queue, Querier: c.querier, Rollout: c.rollout, Servers: c.servers, Format: c.format.Format, Users: s.users,
		RequireAuthentication: o.RequireAuthentication, Now: time.Now, Log: o.Log,
		Beside: c.pages(), Observe: c.figures.observe("rapi", o.Log), NewID: c.requestIDs.Next}))
	c.accountsAPI = c.newIdentity()
	c.web = c.newWeb(s, o)
	c.page = behindProxies(o, c.web)
	c.luxi = c.newLUXI(s, o)
	c.compute = c.newCompute(o)
	if err := c.openAccounts(ctx, s, o); err != nil {
		return err
	}
	return c.listenMonitors(ctx, s, o)
}

// openUsers opens the accounts of RAPI: those that an operator keeps, or those
// in the data directory, with the one that the first start made.
func openUsers(o Options) (login account, users *rapi.UsersFile, err error) {
	if o.Users != "" {
		return account{}, rapi.OpenUsers(o.Users, o.Log), nil
	}
	if login, err = openAccount(filepath.Join(o.Data, "rapi")); err != nil {
		return login, nil, err
	}
	users = rapi.OpenUsers(login.usersFile, o.Log)
	if !users.Current().Verify(login.name, login.password) {
		o.Log.Warn("the RAPI users file does not hold this program's own account with the password that is kept beside it; no account is announced",
			"users", login.usersFile)
		login.name, login.password = "", ""
	}
	return login, users, nil
}

// announce says where the controller can be reached, now that it has started.
func (s *surfaces) announce(o Options) error {
	for _, path := range []string{filepath.Join(o.Data, readyName), o.ReadyFile} {
		if path == "" {
			continue
		}
		if err := writeReady(path, s.ready); err != nil {
			return err
		}
	}
	told := announcement{Ready: s.ready, passwords: o.TellPasswords, data: o.Data, users: o.Users, guest: o.Demo && o.HVParams != nil}
	if err := told.write(o.Out); err != nil {
		return err
	}
	debug.FreeOSMemory() // to hash a password takes 19 MiB
	if err := giveBackStart(); err != nil {
		o.Log.Debug("what only the start touched stays in memory", "error", err)
	}
	return nil
}

// close closes what listens; what serves already has done so.
func (s *surfaces) close() {
	for _, l := range []*gate.Listener{s.rapiListener, s.luxiListener, s.computeListener, s.webListener, s.agentListener} {
		if l != nil {
			_ = l.Close()
		}
	}
	if s.monitors != nil {
		s.monitors.close()
	}
	s.ganeti.close()
}
