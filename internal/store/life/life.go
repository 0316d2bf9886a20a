// Package life tells one life of a store from all others. Job ids come again when an
// older state of a store is put back, so whoever keeps for long what a job did (a node, of
// the things that it has) keeps the life beside the job's id: under the same life an id is
// of the same job.
//
// A life begins with the first leader of a store, at a restore of a backup, and when a
// database that was put back by its own means is told to go on (drover store advance). It goes on
// over a copy, which takes the place of its original: what was begun there is ended here. It is
// kept by every program that knows of it, whatever the store's format is; one of before
// neither reads nor changes it.
//
// Invariants:
//   - A leader's life does not change while it leads, nor from one leader to the next
//     (TestALifeGoesOn).
//   - A store that was put back has another one than any that was led before
//     (TestWhatIsPutBackHasANewLife).
package life

import (
	"context"
	"encoding/json"
	"iter"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/store"
)

// Key is where the life is.
var Key = store.Key{Kind: store.KindStore, ID: "life"}

// stored is the object that holds it.
type stored struct {
	Life string `json:"life"`
}

// Open reads the life of a store, and begins one with a new id, under the epoch of who leads, where there is none. One
// that cannot be read is over: nobody could tell what is of it.
func Open(ctx context.Context, s store.Store, epoch int64, newID func() string) (string, error) {
	o, err := s.Get(ctx, Key)
	if err != nil && !fault.Is(err, fault.NotFound) {
		return "", err
	}
	var is stored
	if err == nil && json.Unmarshal(o.Value, &is) == nil && is.Life != "" {
		return is.Life, nil
	}
	id := newID()
	_, err = store.Commit(ctx, s, store.Tx{Epoch: epoch, Put: []store.Put{{Key: Key, Value: encode(id)}}, Expect: []store.Expect{{Key: Key, Revision: o.Revision}}})
	return id, err
}

func encode(id string) []byte {
	text, err := json.Marshal(stored{id})
	if err != nil {
		panic(fault.New(fault.Internal, "a life that cannot be written: %w", err))
	}
	return text
}

// Renew gives the objects of a store another life, if they have one; if not, its first leader begins one.
func Renew(objects iter.Seq2[store.Object, error], id string) iter.Seq2[store.Object, error] {
	return func(yield func(store.Object, error) bool) {
		for o, err := range objects {
			if err == nil && o.Key == Key {
				o.Value = encode(id)
			}
			if !yield(o, err) {
				return
			}
		}
	}
}
