package world

import (
	"context"
	"log/slog"
	"time"

	"github.com/drover-project/drover/internal/agent"
	"github.com/drover-project/drover/internal/agent/effect"
	"github.com/drover-project/drover/internal/app"
	"github.com/drover-project/drover/internal/exec"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/inventory"
	"github.com/drover-project/drover/internal/picture"
	"github.com/drover-project/drover/internal/sealed"
	"github.com/drover-project/drover/internal/sim/memory"
	"github.com/drover-project/drover/internal/sim/plan"
	"github.com/drover-project/drover/internal/store"
	"github.com/drover-project/drover/internal/tagsync"
)

// A history with plan.Group has whole controllers, as the program runs them: they stand
// by, grant each other read leases, forward what they are asked, and are certain of the
// lead before they answer. All others have what leads alone (term.go), which costs a
// fifth.

// make makes the cluster, for controllers that would make another one.
func (w *world) make() {
	s := w.db.Open(memory.Handle{Name: "setup"})
	defer func() { _ = s.Close() }() // it never fails
	k, err := inventory.Open(context.Background(), s, 0, picture.New())
	if err == nil {
		err = k.Bootstrap(context.Background(), w.setup())
		k.Close()
	}
	if err != nil {
		panic(err) // the store is empty, and works
	}
}

// setup is the cluster that there is.
func (w *world) setup() inventory.Setup {
	setup := inventory.Setup{Name: clusterName, Hypervisors: []string{"fake"}, DiskTemplates: []string{"diskless", "file"}, Now: time.Now(), NewUUID: w.newUUID}
	for _, n := range w.nodes {
		setup.Nodes = append(setup.Nodes, n.full())
	}
	return setup
}

// liveWhole is the life of a whole controller.
func (l *life) liveWhole() {
	defer close(l.over)
	s := l.w.db.Open(memory.Handle{Name: l.id, Line: l, Keep: l.w.keep()})
	l.set(func() { l.store = s })
	defer func() { _ = s.Close() }() // it never fails
	for l.ctx.Err() == nil {
		on := &ground{life: l, terms: map[*app.Term]*term{}}
		x := l.w.listen(l)
		m := app.Join(app.Options{Name: l.name, Tasks: true, AutoFinalize: true, Log: slog.New(slog.DiscardHandler)}, on.ground(watchedGroup{s, on}, x))
		l.set(func() { l.member = m })
		err := m.Run(l.ctx)
		_ = x.Close()
		l.set(func() { l.member = nil })
		l.tellAlive(Event{Text: "ends: " + string(fault.CodeOf(err))})
		_ = l.rest(l.ctx, time.Second) // as its service manager starts it anew
	}
}

// ground is what a whole controller stands on.
type ground struct {
	life *life
	// Guarded by the process's mutex:
	terms map[*app.Term]*term
	now   *term
}

// keys are those of all controllers. No history draws any.
var keys = func() *sealed.Ring {
	ring, err := sealed.ParseRing([]byte("ZHJvdmVyIGhpc3RvcmllcyBoYXZlIG9uZSBrZXkgLi4="))
	if err != nil {
		panic(err)
	}
	return ring
}()

func (g *ground) ground(s store.Shared, x *listener) *app.Ground {
	l := g.life
	on := &app.Ground{
		Store: s, Listener: x, Dial: l.dial, NewUUID: l.w.newUUID, Keys: keys,
		Agent: func(t *app.Term, name string, lead *effect.Lead) (*agent.Agent, error) {
			n, of := l.w.node(name), g.of(t)
			return agent.New(agent.Config{Node: name, Dir: n.dir, Driver: driver{n, l, of.lease.Epoch}, Host: host{n, l, of}, Lead: lead, Tasks: true})
		},
		Nodes: func(t *app.Term, nodes exec.Nodes) exec.Nodes {
			of := g.of(t)
			return func(name string) (exec.Node, error) {
				n, err := nodes(name)
				if err != nil {
					return nil, err
				}
				return sender{n, l, of}, nil
			}
		},
		Servers: map[string]tagsync.Backend{},
		Leads:   g.leads, Ends: g.ends,
	}
	if l.w.plan.Has(plan.Servers) {
		on.Servers[""] = ofCluster{l.w.cluster, l}
	}
	if l.w.plan.Has(plan.Events) {
		on.Publish = (&term{life: l}).publish
	}
	return on
}

// of is the term as others here see it.
func (g *ground) of(t *app.Term) *term {
	l := g.life
	l.mu.Lock()
	defer l.mu.Unlock()
	if g.terms[t] == nil {
		g.terms[t] = &term{life: l, lease: t.Lease, shown: t.Picture}
		g.now = g.terms[t]
		shown := t.Picture.Load()
		g.now.interrupted = interrupted(shown.Jobs.All(), shown.Inventory, l.w.Reached)
	}
	return g.terms[t]
}

// leads takes in that a term answers clients from now on.
func (g *ground) leads(t *app.Term) {
	of := g.of(t)
	of.keeper, of.queue, of.rollout, of.servers = t.Inventory, t.Queue, t.Rollout, t.Servers
	g.life.set(func() { g.life.term = of })
	g.life.w.follows(of.lease.Epoch)
	g.life.tellAlive(Event{Mark: Opens, Bar: of.bar(), Text: "leads: " + of.bar()})
}

func (g *ground) ends(t *app.Term) {
	of := g.of(t)
	of.stopped()
	g.life.set(func() {
		g.life.term = nil
		delete(g.terms, t)
	})
	g.life.tellAlive(Event{Mark: Closes, Bar: of.bar(), Text: "leads no more: " + of.bar()})
}

// watchedGroup is the store of a whole controller, which notes when its present term is
// fenced.
type watchedGroup struct {
	store.Shared
	on *ground
}

// Enqueue implements store.Store.
func (s watchedGroup) Enqueue(tx store.Tx, done func(store.Revision, error)) {
	s.Shared.Enqueue(tx, func(rev store.Revision, err error) {
		s.on.life.mu.Lock()
		t := s.on.now
		s.on.life.mu.Unlock()
		if t != nil && tx.Epoch == t.lease.Epoch {
			t.note(err)
		}
		if done != nil {
			done(rev, err)
		}
	})
}
