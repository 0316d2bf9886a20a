package app

import (
	"cmp"
	"context"
	"encoding/json"
	"iter"
	"net/http"
	"path/filepath"
	"time"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/queue"
	"github.com/drover-project/drover/internal/rollout"
	"github.com/drover-project/drover/internal/sealed"
	"github.com/drover-project/drover/internal/store"
	"github.com/drover-project/drover/internal/tagsync"
)

// sealedParts are the parts of stored objects that hold secrets: states of environments and what is made of them, the files
// of task graphs, parameters of operating systems that are not shown, and what machines are told at their first start.
func sealedParts() sealed.Parts {
	params := []string{"osparams_private", "osparams_private_cluster"}
	return sealed.Parts{
		kindAuthority:                    nil,
		rollout.KindPart:                 nil,
		rollout.KindEnvironment:          {"settings"},
		rollout.KindDeployment:           {"settings"},
		rollout.KindGraph:                {"files"},
		rollout.KindPlan:                 {"hidden", "parameters"},
		store.Kind(cluster.KindCluster):  params,
		store.Kind(cluster.KindInstance): params,
		tagsync.KindServer:               {"user_data"},
		queue.KindJob:                    params,
		queue.KindArchived:               params,
		queue.KindPart:                   params,
	}
}

// keyName is the file of keys in the data directory.
const keyName = "key"

// openKeys has the secrets of the store sealed with the keys of a file. A controller of a group may lack them until it leads,
// or another does who has them (learnKeys).
func (m *member) openKeys(ctx context.Context, o Options) error {
	m.keyFile = cmp.Or(o.KeyFile, filepath.Join(o.Data, keyName))
	ring, err := sealed.ReadRing(m.keyFile)
	if err != nil && !fault.Is(err, fault.NotFound) {
		return err
	}
	m.sealed = sealed.Over(m.meter, ring, sealedParts())
	m.store = m.sealed
	if o.Peer != "" {
		return nil
	}
	return m.needKeys(ctx)
}

// needKeys refuses a store with secrets that cannot be read, and makes a key where there was none.
func (m *member) needKeys(ctx context.Context) error {
	if err := sealed.Check(ctx, m.meter, m.sealed.Ring(), m.keyFile); err != nil || m.sealed.Ring() != nil {
		return err
	}
	ring, err := sealed.MakeRing(m.keyFile)
	if err != nil {
		return err
	}
	m.log.Info("a key was made, with which secrets are sealed in the store; keep a copy of it", "file", m.keyFile, "key", ring.ID())
	m.sealed.Use(ring)
	return nil
}

// seal has everything sealed that is secret, with the key that is to seal, before anything is read that may be. In a store of before
// secrets stand in clear.
func (c *controller) seal(ctx context.Context) error {
	if c.ground != nil {
		return nil
	}
	if err := c.needKeys(ctx); err != nil {
		return err
	}
	defer c.keepOn()() // with very many objects it takes longer than a lease
	n, forgotten, err := c.sealed.Reseal(ctx, c.lease.Epoch)
	if n > 0 {
		c.log.Info("secrets that stood in the store in clear, or under an earlier key, are sealed", "objects", n, "key", c.sealed.Ring().ID())
	}
	for _, id := range forgotten {
		c.log.Info("nothing in the store is sealed with this key any more; backups may be", "key", id)
	}
	return err
}

// keysPath is where the leader of a group tells the others its keys.
const keysPath = "/peer/keys"

// tellKeys answers another controller of the group. Whoever belongs to it can write to the store, and may take the lead.
func (g *group) tellKeys(w http.ResponseWriter, _ *http.Request) {
	ring := g.m.sealed.Ring()
	if g.m.leads() == nil || ring == nil {
		notLeading(w)
		return
	}
	if err := json.NewEncoder(w).Encode(string(ring.Text())); err != nil {
		g.m.log.Debug("another controller did not wait for the answer", "error", err)
	}
}

// learnKeys asks the leader for the key that it seals with, if it is not known here, and keeps it in the file.
func (g *group) learnKeys(ctx context.Context) error {
	p, err := g.presentLeader(ctx)
	if fault.Is(err, fault.NotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	mine := g.m.sealed.Ring()
	if p.Key == "" || p.Instance == g.self.Instance || mine.Has(p.Key) {
		return nil
	}
	var text string
	if err := g.ask(ctx, p, http.MethodGet, keysPath, statusTime, &text); err != nil {
		return err
	}
	theirs, err := sealed.ParseRing([]byte(text))
	if err != nil {
		return err
	}
	ring := mine.Joined(theirs)
	if err := ring.Write(g.m.keyFile); err != nil {
		g.m.log.Warn("the keys of the leader are known until this controller ends", "error", err)
	}
	g.m.log.Info("secrets are sealed with the key of the leader", "leader", p.Name, "key", ring.ID(), "file", g.m.keyFile)
	g.m.sealed.Use(ring)
	return nil
}

// learning is a feed of the store that has the keys of whoever leads anew learned, and who else belongs to the group.
func (g *group) learning(feed sealed.Feed) sealed.Feed {
	return g.m.sealed.Opened(func(ctx context.Context, after store.Revision) iter.Seq2[store.Progress, error] {
		return func(yield func(store.Progress, error) bool) {
			for p, err := range feed(ctx, after) {
				for i := range p.Changes {
					switch {
					case p.Changes[i].Key == leaderKey:
						g.tryKeys(ctx)
					case p.Changes[i].Kind == kindPeer:
						g.remember(ctx)
					}
				}
				if !yield(p, err) {
					return
				}
			}
		}
	})
}

// remember reads who belongs to the group, for when the store cannot be asked. If that fails those are known who were before.
func (g *group) remember(ctx context.Context) { _ = g.roster.refresh(ctx, time.Now()) }

// tryKeys learns the keys of the leader, or says why not; keepKeys tries again.
func (g *group) tryKeys(ctx context.Context) {
	select {
	case g.learns <- struct{}{}:
	case <-ctx.Done():
		return
	}
	defer func() { <-g.learns }()
	err := g.learnKeys(ctx)
	if before := g.keyless.Swap(err != nil); err != nil && !before && ctx.Err() == nil {
		g.m.log.Warn("the keys of the leader, with which secrets are sealed, are not known yet", "error", err)
	}
}

// keepKeys tries again, until ctx ends, to learn what could not be: nothing else may come that has it tried, and whoever takes the
// lead without the keys can only give it up.
func (g *group) keepKeys(ctx context.Context) {
	const pause = 200 * time.Millisecond // nobody may have led yet when the first try was made, and whoever leads may end at any moment
	again := time.NewTicker(pause)
	defer again.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-again.C:
			if g.keyless.Load() || g.m.sealed.Ring() == nil {
				g.tryKeys(ctx)
			}
		}
	}
}
