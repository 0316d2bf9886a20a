package app

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/drover-project/drover/internal/api/luxi"
	"github.com/drover-project/drover/internal/audit"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/state"
	"github.com/drover-project/drover/internal/store"
)

// A controller that is drained is to lead no more: it gives the lead to one that could have it, and takes it only while no other
// could. That is kept in the store, by its name, so it outlasts its lives. It serves as ever.

const (
	// kindDrained is by name: who is drained.
	kindDrained store.Kind = "controller-drained"
	// drainEvery is how often a controller looks whether it is drained, and one that is, who else could lead.
	drainEvery = time.Second
)

func drainKey(name string) store.Key { return store.Key{Kind: kindDrained, ID: name} }

// errNotItsTurn says that another is to have the lead.
var errNotItsTurn = errors.New("this controller is drained, and another could lead")

// keepDrained has this controller do as the store says, until ctx ends.
func (g *group) keepDrained(ctx context.Context, o Options) error {
	var alone *controller // that leads although it is drained
	return regularly(ctx, drainEvery, func() error {
		g.lookDrained(ctx)
		g.stayKnown(ctx)
		c := g.m.leads()
		if c != nil && g.gives() && !g.handOver(ctx, c, o.StopGrace, false) && alone != c && ctx.Err() == nil {
			alone = c
			g.m.log.Warn("this controller leads although it is drained, for no other could", "name", g.self.Name)
		}
		return nil
	})
}

// gives tells whether this controller is to give the lead away because it is drained, and not because it is leaving.
func (g *group) gives() bool { return g.drained.Load() != nil && g.staying.Err() == nil }

// lookDrained reads whether this controller is drained. While the store does not answer it is as before.
func (g *group) lookDrained(ctx context.Context) {
	is, _, err := readDrain(ctx, g.m.store, g.self.Name)
	if err != nil {
		return
	}
	switch was := g.drained.Swap(is); {
	case was == nil && is != nil:
		select {
		case g.nowDrained <- struct{}{}:
		default: // it is told already
		}
		g.m.log.Info("this controller is drained: it leads only if no other could", "name", g.self.Name, "by", is.Who, "why", is.Why, "since", time.Unix(0, is.At).UTC())
	case was != nil && is == nil:
		g.m.log.Info("this controller is drained no more", "name", g.self.Name)
	}
}

// readDrain reads since when a controller is drained, and by whom; nil if it is not.
func readDrain(ctx context.Context, s store.Store, name string) (*state.Drain, store.Revision, error) {
	o, err := s.Get(ctx, drainKey(name))
	switch {
	case fault.Is(err, fault.NotFound):
		return nil, 0, nil
	case err != nil:
		return nil, 0, err
	}
	d := &state.Drain{}
	if json.Unmarshal(o.Value, d) != nil {
		d = &state.Drain{Who: "somebody", At: 0} // it is drained all the same
	}
	return d, o.Revision, nil
}

// stayKnown puts this controller into the store again if somebody who did not reach it had it forgotten.
func (g *group) stayKnown(ctx context.Context) {
	_, err := g.m.store.Get(ctx, store.Key{Kind: kindPeer, ID: g.self.Name})
	if !fault.Is(err, fault.NotFound) {
		return
	}
	if err := g.register(ctx); err == nil {
		g.m.log.Info("this controller was forgotten although it lives, and is known again", "name", g.self.Name)
	}
}

// able is a controller that could lead, as it says itself.
type able struct {
	peer   peerRecord
	status peerStatus
}

// able asks the others which of them could lead, drained ones among them.
func (g *group) able(ctx context.Context) (all []able, err error) {
	peers, err := g.peers(ctx)
	if err != nil {
		return nil, err
	}
	var mu sync.Mutex
	var asked sync.WaitGroup
	limit, cancel := context.WithTimeout(ctx, successorTime)
	defer cancel()
	for _, p := range peers {
		if p.Instance == g.self.Instance {
			continue
		}
		asked.Go(func() {
			st, err := g.status(limit, p)
			if err == nil && (st.Unfit == "" || st.Drained) {
				mu.Lock()
				defer mu.Unlock()
				all = append(all, able{p, st})
			}
		})
	}
	asked.Wait()
	return all, nil
}

// mayLead tells whether this controller may take the lead.
func (g *group) mayLead(ctx context.Context) bool {
	if g.drained.Load() == nil {
		return true
	}
	others, err := g.able(ctx)
	return err == nil && !slices.ContainsFunc(others, func(a able) bool { return !a.status.Drained })
}

// awaitTurn waits until this process is given the lease, for as long as it may lead: errNotItsTurn when another is to.
func (g *group) awaitTurn(ctx context.Context) (store.Lease, error) {
	turn, end := context.WithCancelCause(ctx)
	var watching sync.WaitGroup
	defer watching.Wait()
	defer end(nil)
	if g.m.ground == nil { // elsewhere nobody is drained
		if !g.mayLead(ctx) {
			return store.Lease{}, errNotItsTurn
		}
		watching.Go(func() { g.watchTurn(turn, end) })
	}
	lease, err := g.m.shared.AwaitLease(turn, leaseName, g.self.holder(), leaseTime, assurance)
	if errors.Is(context.Cause(turn), errNotItsTurn) {
		g.giveBack(ctx)
		return lease, errNotItsTurn
	}
	return lease, err
}

// watchTurn ends the turn of this process as soon as it is drained, and later when another could lead.
func (g *group) watchTurn(turn context.Context, end context.CancelCauseFunc) {
	tick := time.NewTicker(drainEvery)
	defer tick.Stop()
	for {
		select {
		case <-turn.Done():
			return
		case <-g.nowDrained:
			end(errNotItsTurn)
		case <-tick.C:
			if !g.mayLead(turn) {
				end(errNotItsTurn)
			}
		}
	}
}

// giveBack gives up a lease that came to this process when it did not want it any more.
func (g *group) giveBack(ctx context.Context) {
	if l, err := g.m.shared.Lease(ctx, leaseName); err == nil && l.Holder == g.self.holder() {
		_ = g.m.shared.ReleaseLease(ctx, l) // else it expires
	}
}

// drain drains a controller, or ends that. With dry nothing is changed.
func (c *controller) drain(ctx context.Context, name string, on bool, by audit.By, dry bool) (out luxi.ControllerDrain, err error) {
	g := c.group
	peers, err := g.peers(ctx)
	if err != nil {
		return out, err
	}
	was, revision, err := readDrain(ctx, c.store, name)
	if err != nil {
		return out, err
	}
	known := slices.ContainsFunc(peers, func(p peerRecord) bool { return p.Name == name })
	if !known && (on || was == nil) {
		return out, noController(name)
	}
	is := was
	out = luxi.ControllerDrain{Name: name, Drained: on, Changed: (was != nil) != on, Leads: name == g.self.Name}
	if out.Changed {
		is = nil
	}
	if out.Changed && on {
		e := audit.Event{Trail: by.Trail}
		is = &state.Drain{Who: by.Account.String(), Why: e.Why(), At: time.Now().UnixNano()}
	}
	if is != nil {
		out.Why = is.String()
	}
	if on && out.Leads {
		if to, known := g.successor(ctx, false); known {
			out.To = to.Name
		}
	}
	if dry || !out.Changed {
		return out, nil
	}
	tx := store.Tx{Epoch: c.lease.Epoch, Expect: []store.Expect{{Key: drainKey(name), Revision: revision}}}
	what := audit.ControllerUndrain
	if on {
		what = audit.ControllerDrain
		text, err := json.Marshal(is)
		if err != nil {
			return out, err
		}
		tx.Put = []store.Put{{Key: drainKey(name), Value: text}}
	} else {
		tx.Delete = []store.Key{drainKey(name)}
	}
	if err := c.commitNoted(ctx, tx, audit.New(what, name, by)); err != nil {
		return out, err
	}
	if out.Leads {
		g.lookDrained(ctx) // the others look by themselves
	}
	return out, nil
}

// forget removes a controller that is lost. With dry nothing is changed.
func (c *controller) forget(ctx context.Context, name string, by audit.By, dry bool) (out luxi.Forgotten, err error) {
	peers, err := c.group.peers(ctx)
	if err != nil {
		return out, err
	}
	i := slices.IndexFunc(peers, func(p peerRecord) bool { return p.Name == name })
	if i < 0 {
		return out, noController(name)
	}
	p := peers[i]
	if p.Instance == c.group.self.Instance || c.group.runs(ctx, p) {
		return out, fault.New(fault.WrongState, "the controller %s lives, at %s", name, p.Address).WithHint("stop it: then it is no longer among the controllers")
	}
	was, _, err := readDrain(ctx, c.store, name)
	if err != nil {
		return out, err
	}
	out = luxi.Forgotten{Name: name, Address: p.Address, Started: p.Started, Drained: was != nil}
	if dry {
		return out, nil
	}
	key := store.Key{Kind: kindPeer, ID: name}
	tx := store.Tx{Epoch: c.lease.Epoch, Delete: []store.Key{key}, Expect: []store.Expect{{Key: key, Revision: p.revision}}}
	if was != nil {
		tx.Delete = append(tx.Delete, drainKey(name))
	}
	e := audit.New(audit.ControllerForget, name, by)
	if e.Before, err = json.Marshal(out); err != nil {
		return out, err
	}
	return out, c.commitNoted(ctx, tx, e)
}

func noController(name string) error {
	return fault.New(fault.NotFound, "there is no controller %q", fault.Clip(name, 100)).At("name").WithHint("drover cluster masters lists them")
}

// commitNoted makes a change durable with the event that tells of it, and shows that.
func (c *controller) commitNoted(ctx context.Context, tx store.Tx, e audit.Event) error {
	change := &state.Change{Events: []*audit.Event{c.queue.Note(&tx, e)}}
	return c.commitShown(ctx, tx, change)
}
