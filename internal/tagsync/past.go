package tagsync

import (
	"context"
	"time"

	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/server"
	"github.com/drover-project/drover/internal/state"
	"github.com/drover-project/drover/internal/store"
)

// What is kept of servers that are done with.

// keepPast is for how long, and forgottenAtOnce how many are forgotten in one transaction.
const (
	keepPast        = 30 * 24 * time.Hour
	forgottenAtOnce = 500
)

func pastKey(id string) store.Key { return store.Key{Kind: KindPast, ID: id} }

// keeping puts what is kept of a server into the transaction that removes it; nothing where none is removed.
func keeping(past **server.Past) func(*store.Tx, *state.Change) {
	return func(tx *store.Tx, _ *state.Change) {
		if p := *past; p != nil {
			tx.Put = append(tx.Put, store.Put{Key: pastKey(p.ID), At: int64(p.Deleted), Value: p.Encode()})
		}
	}
}

// Past returns what is kept of a server that is done with; NotFound when nothing is.
func (e *Engine) Past(ctx context.Context, id string) (*server.Past, error) {
	o, err := e.cfg.Store.Get(ctx, pastKey(id))
	if err != nil {
		return nil, err
	}
	return server.DecodePast(o.Value)
}

// forgetPast forgets the servers that are done with for so long that nothing is kept of them any more, some at a time.
func (e *Engine) forgetPast(ctx context.Context) error {
	until := e.Now() - job.Time(keepPast.Microseconds())
	tx := store.Tx{}
	for o, err := range e.cfg.Store.List(ctx, KindPast, store.Options{ByAt: true, Until: int64(until), Limit: forgottenAtOnce}) {
		if err != nil {
			return err
		}
		tx.Delete = append(tx.Delete, o.Key)
	}
	if len(tx.Delete) == 0 {
		return nil
	}
	return e.commit(tx, &state.Change{})
}
