package rollout

import (
	"context"

	"github.com/drover-project/drover/internal/deploy/course"
	"github.com/drover-project/drover/internal/store"
)

// keyed is what digests begin with that only who has the key can make. Those of earlier versions, which anybody can make of a text that
// he guesses, are hexadecimal digits alone: they come before them in lists.
const keyed = "k"

// digest names a part of a state.
func (e *Engine) digest(text []byte) course.Digest { return course.Digest(keyed + e.cfg.Digest(text)) }

// mostRenamed is how many parts are looked at together.
const mostRenamed = 50

// rename gives the parts that an earlier version named other names, once. The old ones go in the transaction that has everything
// refer to the new ones; what nothing refers to goes, too.
func (e *Engine) rename(ctx context.Context) error {
	before, err := e.namedBefore(ctx)
	if err != nil || !before {
		return err
	}
	old, err := e.referring(ctx)
	if err != nil {
		return err
	}
	uses := map[course.Digest]bool{}
	old.eachDigest(func(d *course.Digest) { uses[*d] = true })
	next := map[course.Digest]course.Digest{}
	last := store.Tx{Epoch: e.cfg.Epoch}
	for after := ""; after < keyed; {
		tx := store.Tx{Epoch: e.cfg.Epoch}
		seen := 0
		for o, err := range e.cfg.Store.List(ctx, KindPart, store.Options{After: after, Limit: mostRenamed}) {
			if err != nil {
				return err
			}
			after = o.ID
			if after >= keyed {
				break
			}
			seen++
			last.Delete = append(last.Delete, o.Key)
			if old := course.Digest(o.ID); uses[old] {
				next[old] = e.digest(o.Value)
				tx.Put = append(tx.Put, store.Put{Key: store.Key{Kind: KindPart, ID: string(next[old])}, Value: o.Value})
			}
		}
		if seen == 0 {
			break
		}
		if _, err := store.Commit(ctx, e.cfg.Store, tx); err != nil {
			return err
		}
	}
	old.refer(next, &last)
	_, err = store.Commit(ctx, e.cfg.Store, last)
	e.cfg.Log.Info("states of environments have names that tell nothing of what they hold", "parts", len(next), "error", err)
	return err
}

// namedBefore tells whether there are parts that an earlier version named.
func (e *Engine) namedBefore(ctx context.Context) (bool, error) {
	for o, err := range e.cfg.Store.List(ctx, KindPart, store.Options{Limit: 1}) {
		return err == nil && o.ID < keyed, err
	}
	return false, nil
}

// referring are what refers to parts of states.
type referring struct {
	environments []*course.Environment
	deployments  []*course.Deployment
}

// referring reads all that refers to parts of states.
func (e *Engine) referring(ctx context.Context) (*referring, error) {
	r := &referring{}
	for x, err := range all[course.Environment](ctx, e.Reader, KindEnvironment) {
		if err != nil {
			return nil, err
		}
		r.environments = append(r.environments, x)
	}
	for d, err := range all[course.Deployment](ctx, e.Reader, KindDeployment) {
		if err != nil {
			return nil, err
		}
		r.deployments = append(r.deployments, d)
	}
	return r, nil
}

// refer has environments and deployments refer to parts by their new names, and written so.
func (r *referring) refer(next map[course.Digest]course.Digest, tx *store.Tx) {
	r.eachDigest(func(d *course.Digest) {
		if to, known := next[*d]; known {
			*d = to
		}
	})
	for _, x := range r.environments {
		tx.Put = append(tx.Put, put(KindEnvironment, x.Name, x))
	}
	for _, d := range r.deployments {
		tx.Put = append(tx.Put, put(KindDeployment, d.Key(), d))
	}
}

// eachDigest calls f with all references.
func (r *referring) eachDigest(f func(*course.Digest)) {
	for _, x := range r.environments {
		eachDigest(f, &x.Common, x.Nodes)
	}
	for _, d := range r.deployments {
		eachDigest(f, &d.Common, d.Nodes, d.Absent)
	}
}

// eachDigest calls f with all digests of a state.
func eachDigest(f func(*course.Digest), common *course.Digest, nodes ...[]course.Node) {
	f(common)
	for _, some := range nodes {
		for i := range some {
			f(&some[i].Part)
		}
	}
}
