package app

import (
	"context"
	"sync"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/store"
)

// termStore is the store as one term writes into it. The first write that is refused because another controller leads ends the term, whoever
// wrote it: to wait for the next renewal of the lease may take as long as the store is away.
type termStore struct {
	store.Store

	epoch  int64
	once   sync.Once
	fenced chan struct{} // closed when a write was refused
}

func newTermStore(s store.Store, epoch int64) *termStore {
	return &termStore{Store: s, epoch: epoch, fenced: make(chan struct{})}
}

// Enqueue implements store.Store.
func (s *termStore) Enqueue(tx store.Tx, done func(store.Revision, error)) {
	s.Store.Enqueue(tx, func(rev store.Revision, err error) {
		if tx.Epoch == s.epoch && fault.Is(err, fault.Fenced) {
			s.once.Do(func() { close(s.fenced) })
		}
		if done != nil {
			done(rev, err)
		}
	})
}

// wait returns an error when a write of the term was refused because another controller leads, and nil when ctx ends first.
func (s *termStore) wait(ctx context.Context) error {
	select {
	case <-s.fenced:
		return fault.New(fault.Fenced, "another controller has taken the lead: a change was refused under epoch %d", s.epoch)
	case <-ctx.Done():
		return nil
	}
}
