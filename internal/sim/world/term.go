package world

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/drover-project/drover/internal/agent"
	"github.com/drover-project/drover/internal/agent/effect"
	"github.com/drover-project/drover/internal/exec"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/inventory"
	"github.com/drover-project/drover/internal/live"
	"github.com/drover-project/drover/internal/picture"
	"github.com/drover-project/drover/internal/query"
	"github.com/drover-project/drover/internal/queue"
	"github.com/drover-project/drover/internal/rollout"
	"github.com/drover-project/drover/internal/sim/check"
	"github.com/drover-project/drover/internal/sim/memory"
	"github.com/drover-project/drover/internal/sim/plan"
	"github.com/drover-project/drover/internal/store"
	"github.com/drover-project/drover/internal/tagsync"
)

// How the lead is kept, as a controller of a group does.
const (
	leaseName  = "leader"
	leaseTime  = 15 * time.Second
	leaseRenew = 5 * time.Second
	linger     = 300 * time.Millisecond
)

// live stands by and leads in turn, until the life ends.
func (l *life) live() {
	defer close(l.over)
	s := l.w.db.Open(memory.Handle{Name: l.id, Line: l, Keep: l.w.keep()})
	l.set(func() { l.store = s })
	defer func() { _ = s.Close() }() // it never fails
	for l.ctx.Err() == nil {
		lease, err := s.AwaitLease(l.ctx, leaseName, l.id, leaseTime, linger)
		if err != nil {
			time.Sleep(time.Second)
			continue
		}
		l.w.follows(lease.Epoch)
		bar := fmt.Sprintf("term %d", lease.Epoch)
		l.tellAlive(Event{Mark: Opens, Bar: bar, Text: fmt.Sprintf("leads with epoch %d", lease.Epoch)})
		err = l.lead(s, lease)
		l.haunt(s, lease.Epoch)
		l.tellAlive(Event{Mark: Closes, Bar: bar, Text: fmt.Sprintf("leads no more: %s", fault.CodeOf(err))})
	}
}

// haunt has something that a term left behind go on writing for a while, under its epoch: it is
// refused as soon as that is not in force any more, also in the midst of what is written
// then.
func (l *life) haunt(s *memory.Store, epoch int64) {
	const times = 40
	left := times
	var again func(store.Revision, error)
	again = func(_ store.Revision, err error) {
		if left--; left > 0 && !l.isDead() && !fault.Is(err, fault.Fenced) {
			s.Enqueue(store.Tx{Epoch: epoch}, again)
		}
	}
	s.Enqueue(store.Tx{Epoch: epoch}, again)
}

// tellAlive adds an event of this life; what a dead one does nobody sees.
func (l *life) tellAlive(e Event) {
	if !l.isDead() {
		e.Lane = l.name
		l.w.tell(e)
	}
}

// term is the time in which a life leads.
type term struct {
	life   *life
	lease  store.Lease
	shown  *picture.Picture
	keeper *inventory.Keeper
	fleet  *agent.Fleet
	queue  *queue.Queue
	held   *effect.Lead
	// rollout and servers are nil where nobody deploys and there are no servers.
	rollout *rollout.Engine
	servers *tagsync.Engine
	// interrupted counts the jobs that ran when the term began.
	interrupted int

	mu sync.Mutex
	// fenced is when the store first told the queue that another leads, and failed when it
	// last failed to write something; zero for never.
	fenced, failed time.Time
}

// watched is the store of a queue, which notes when that is fenced.
type watched struct {
	store.Store
	term *term
}

// Enqueue implements store.Store.
func (s watched) Enqueue(tx store.Tx, done func(store.Revision, error)) {
	s.Store.Enqueue(tx, func(rev store.Revision, err error) {
		s.term.note(err)
		if done != nil {
			done(rev, err)
		}
	})
}

// note takes in how something was answered that was to be stored.
func (t *term) note(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if fault.Is(err, fault.Fenced) && t.fenced.IsZero() {
		t.fenced = time.Now()
	}
	if fault.Is(err, fault.Unavailable) {
		t.failed = time.Now()
	}
}

// bar is what a term is called in the lane of its controller.
func (t *term) bar() string { return fmt.Sprintf("term %d", t.lease.Epoch) }

// againTime is how long the queue may take to write something again.
const againTime = time.Second

// writesAgain tells whether the queue may be about to write something again that failed.
func (t *term) writesAgain() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return !t.failed.IsZero() && time.Since(t.failed) < againTime
}

// stopTime is how long a leader may take to stop once the store told it that another
// leads.
const stopTime = time.Second

// stopped checks how long it took, without the time for which it stood still.
func (t *term) stopped() {
	t.life.mu.Lock()
	wentOn := t.life.wentOn
	t.life.mu.Unlock()
	t.mu.Lock()
	defer t.mu.Unlock()
	since := t.fenced
	if wentOn.After(since) {
		since = wentOn
	}
	if took := time.Since(since); !t.fenced.IsZero() && took > stopTime && !t.life.isDead() {
		t.life.w.verdict.Breakf(check.FencedStops, "%s goes on for %v in its term of epoch %d", t.life.id, took, t.lease.Epoch)
	}
}

// lead is a term: it lasts until the life ends, the lease is lost or the queue fails.
func (l *life) lead(s *memory.Store, lease store.Lease) error {
	ctx, stop := context.WithCancelCause(l.ctx)
	defer stop(nil)
	t := &term{life: l, lease: lease, shown: picture.New(), held: &effect.Lead{}}
	t.held.Extend(lease.Expires)
	if err := t.open(ctx, s); err != nil {
		t.close()
		return err
	}
	l.set(func() { l.term = t })
	go func() { stop(t.queue.Failed(ctx)) }()
	go t.keepLease(ctx, s, stop)
	var parts sync.WaitGroup
	if l.w.plan.Has(plan.Events) {
		parts.Go(func() { t.publishAll(ctx, s, stop) })
	}
	<-ctx.Done()
	parts.Wait()
	t.stopped()
	l.set(func() { l.term = nil })
	t.held.Lose(context.Cause(ctx))
	t.close()
	_ = s.ReleaseLease(context.WithoutCancel(ctx), lease) // or it expires
	return context.Cause(ctx)
}

// lifeOfStore is the life of the store, of which nothing is restored.
const lifeOfStore = "life"

// clusterName is the name of the group's cluster.
const clusterName = "cluster.example"

// open opens the parts of a controller, and makes a cluster where there is none.
func (t *term) open(ctx context.Context, s store.Store) (err error) {
	w, log := t.life.w, slog.New(slog.DiscardHandler)
	if t.keeper, err = inventory.Open(ctx, s, t.lease.Epoch, t.shown); err != nil {
		return err
	}
	if t.keeper.Snapshot().Cluster() == nil {
		if err := t.keeper.Bootstrap(ctx, w.setup()); err != nil {
			return err
		}
	}
	t.fleet = agent.NewFleet(func(name string) (*agent.Agent, error) {
		n := w.node(name)
		return agent.New(agent.Config{Node: name, Dir: n.dir, Driver: driver{n, t.life, t.lease.Epoch}, Host: host{n, t.life, t}, Lead: t.held, Tasks: t.rollout != nil})
	})
	if err := t.openRollout(ctx, s, log); err != nil {
		return err
	}
	querier := &live.Querier{Picture: t.shown, Store: s, Nodes: live.Local(t.fleet), Log: log, Runtime: query.Runtime{SoftwareVersion: "1"}}
	executors := exec.All(querier.Source, exec.Names{})
	if t.rollout != nil {
		querier.Deployments = t.rollout.Reader
		maps.Copy(executors, t.rollout.Executors())
	}
	t.queue, err = queue.Open(ctx, queue.Config{Store: watched{s, t}, Epoch: t.lease.Epoch, Life: lifeOfStore, Inventory: t.keeper, Picture: t.shown, Executors: executors,
		Nodes: t.reach, Now: time.Now, NewUUID: w.newUUID, Log: log})
	if err != nil {
		return err
	}
	t.interrupted = interrupted(t.queue.Jobs().All(), t.keeper.Snapshot(), w.Reached)
	querier.Queue = t.queue
	t.queue.Run()
	if t.rollout != nil {
		t.rollout.Run(t.queue)
	}
	return t.openServers(ctx, s, log)
}

// reach finds a node for executors.
func (t *term) reach(name string) (exec.Node, error) {
	n, err := exec.Local(t.fleet)(name)
	if err != nil {
		return nil, err
	}
	return sender{n, t.life, t}, nil
}

// keepLease renews the lease until ctx ends; stop is told when it is lost.
func (t *term) keepLease(ctx context.Context, s store.Store, stop context.CancelCauseFunc) {
	tick := time.NewTicker(leaseRenew)
	defer tick.Stop()
	for ctx.Err() == nil {
		sent := time.Now()
		if _, err := s.RenewLease(ctx, t.lease, leaseTime); err == nil {
			t.held.Extend(sent.Add(leaseTime))
		} else if fault.Is(err, fault.Fenced) {
			stop(err)
		}
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
}

// close ends the parts that were opened.
func (t *term) close() {
	if t.servers != nil {
		t.servers.Close()
	}
	if t.rollout != nil {
		t.rollout.Close()
	}
	if t.queue != nil {
		t.queue.Close()
	}
	if t.keeper != nil {
		t.keeper.Close()
	}
	if t.fleet != nil {
		_ = t.fleet.Close() // nothing of it can fail
	}
}

// node is the node of a name.
func (w *world) node(name string) *node {
	for _, n := range w.nodes {
		if n.full() == name || strings.TrimSuffix(n.full(), ".example") == name {
			return n
		}
	}
	panic("there is no node " + name)
}

// newUUID draws a UUID.
func (w *world) newUUID() string {
	part := func(bits int) int { return w.streams.IntN("uuids", 1<<bits) }
	return fmt.Sprintf("%08x-%04x-4%03x-8%03x-%06x%06x", part(32), part(16), part(12), part(12), part(24), part(24))
}
