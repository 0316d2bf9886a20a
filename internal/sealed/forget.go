package sealed

import (
	"context"

	"github.com/drover-project/drover/internal/store"
)

// Forget gives up what is sealed in a store with a key that is lost: null takes its place. It returns how many objects
// that is about; unless it is sure, it only counts them. Nobody else may write meanwhile.
func Forget(ctx context.Context, s store.Store, epoch int64, id string, parts Parts, sure bool) (count int, err error) {
	for kind, names := range parts {
		for after, more := "", true; more; {
			more = false
			tx := store.Tx{Epoch: epoch}
			for o, err := range s.List(ctx, kind, store.Options{After: after, Limit: mostObjects}) {
				if err != nil {
					return count, err
				}
				after, more = o.ID, true
				value, held := without(o.Value, names, id)
				if !held {
					continue
				}
				count++
				tx.Put = append(tx.Put, store.Put{Key: o.Key, At: o.At, Value: value})
			}
			if len(tx.Put) == 0 || !sure {
				continue
			}
			if _, err := store.Commit(ctx, s, tx); err != nil {
				return count, err
			}
		}
	}
	if sure {
		_, err = store.Commit(ctx, s, store.Tx{Epoch: epoch, Delete: []store.Key{{Kind: KindKey, ID: id}}})
	}
	return count, err
}

// without is a value without what a key sealed in it, if there is such a thing.
func without(value []byte, names []string, id string) (out []byte, held bool) {
	if whole, is := sealedIn(value); is {
		return []byte(`null`), whole.Sealed == id
	}
	if len(names) == 0 || !mentions(value, names) {
		return value, false
	}
	out, err := splice(value, names, func(_ string, part []byte) ([]byte, error) {
		if closed, is := sealedIn(part); is && closed.Sealed == id {
			held = true
			return []byte(`null`), nil
		}
		return nil, nil
	})
	return out, held && err == nil
}
