package inventory

import (
	"bytes"
	"context"
	"slices"
	"time"

	"github.com/drover-project/drover/internal/backoff"
	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/state"
	"github.com/drover-project/drover/internal/store"
)

// How the outcome of a transaction is looked up: again after a pause, until it is
// known. Updates wait for that no longer than the patience.
const (
	longestPause = time.Second
	patience     = 30 * time.Second
)

func pauses() backoff.Pauses {
	return backoff.Pauses{First: 10 * time.Millisecond, Longest: longestPause}
}

// lookUp finds out what became of a transaction of which the store cannot say so,
// and shows what there is. It answers the updates of the transaction if it was
// made, and those that wait no longer; it returns those that are to be carried out
// again, for it was not.
func (k *Keeper) lookUp(tx store.Tx, batch []*update, cause error) []*update {
	begun := time.Now()
	for tries := 1; ; tries++ {
		made, err := k.wasMade(tx)
		switch {
		case err == nil && made:
			answerAll(batch, nil)
			return nil
		case err == nil:
			return batch
		case store.Refused(err): // another controller leads, and knows
			answerAll(batch, unknown(cause))
			return nil
		}
		over := time.Since(begun) >= patience
		batch = slices.DeleteFunc(batch, func(u *update) bool {
			givesUp := over || u.ctx.Err() != nil
			if givesUp {
				u.answer <- unknown(cause)
			}
			return givesUp
		})
		if over {
			k.refuseWaiting(err)
		}
		select {
		case <-time.After(pauses().After(tries)):
		case <-k.ending:
			answerAll(batch, unknown(cause))
			return nil
		}
	}
}

func unknown(cause error) error {
	return fault.New(fault.Unavailable, "it is not known whether the change of the inventory was stored: %w", cause)
}

// refuseWaiting answers the updates whose turn has not come.
func (k *Keeper) refuseWaiting(cause error) {
	k.mu.Lock()
	waiting := k.waiting
	k.waiting = nil
	k.mu.Unlock()
	answerAll(waiting, fault.New(fault.Unavailable, "the change of the inventory was not begun: %w", cause))
}

// refresh reads the inventory anew, behind all that was handed to the store before,
// and shows it under a revision of its own.
func (k *Keeper) refresh() ([]cluster.Stored, error) {
	ctx := context.Background()
	if _, err := store.Commit(ctx, k.store, store.Tx{Epoch: k.epoch}); err != nil {
		return nil, err
	}
	stored, err := list(ctx, k.store)
	if err != nil {
		return nil, err
	}
	fresh, err := k.read(stored)
	if err != nil {
		return nil, err
	}
	return stored, k.commit(store.Tx{}, &state.Change{Inventory: fresh})
}

// wasMade reads the inventory anew and reports whether what is stored is what a transaction made of it. Nobody else
// writes what is in it, so either all of it is there or nothing.
func (k *Keeper) wasMade(tx store.Tx) (bool, error) {
	stored, err := k.refresh()
	if err != nil {
		return false, err
	}
	by := make(map[store.Key][]byte, len(stored))
	for _, st := range stored {
		by[store.Key{Kind: store.Kind(st.Kind), ID: st.UUID}] = st.Data
	}
	for i := range tx.Put {
		if key := tx.Put[i].Key; !Has(key.Kind) {
			o, err := k.store.Get(context.Background(), key)
			if err != nil && !fault.Is(err, fault.NotFound) {
				return false, err
			}
			by[key] = o.Value
		}
		if !bytes.Equal(by[tx.Put[i].Key], tx.Put[i].Value) {
			return false, nil
		}
	}
	return !slices.ContainsFunc(tx.Delete, func(key store.Key) bool {
		_, there := by[key]
		return there
	}), nil
}
