package sealed

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/store"
)

// kindState is what is known of the sealing as a whole.
const kindState store.Kind = "sealing"

// stateKey is what says that all is sealed, under which key and by which table.
var stateKey = store.Key{Kind: kindState, ID: "done"}

// At most so much is written again in one transaction.
const (
	mostObjects = 200
	mostBytes   = 4 << 20
)

// Reseal seals, under the key that seals, what the store has in clear or under an earlier key, and returns how many objects it
// wrote; under an earlier epoch than the present leader's it writes nothing. Where all was sealed before it reads one object.
// Nobody else may write meanwhile. forgotten are the keys that open nothing any more.
func (s *Store) Reseal(ctx context.Context, epoch int64) (count int, forgotten []string, err error) {
	present := s.Ring().ID()
	want, err := json.Marshal(map[string]any{"key": present, "parts": s.parts})
	if err != nil {
		return 0, nil, err
	}
	keys, err := KeysOf(ctx, s.Store)
	if err != nil {
		return 0, nil, err
	}
	state, err := s.Store.Get(ctx, stateKey)
	if err != nil && !fault.Is(err, fault.NotFound) {
		return 0, nil, err
	}
	earlier := slices.DeleteFunc(keys, func(id string) bool { return id == present })
	if bytes.Equal(state.Value, want) && len(earlier) == 0 {
		return 0, nil, nil
	}
	for kind := range s.parts {
		n, err := s.resealKind(ctx, kind, epoch)
		count += n
		if err != nil {
			return count, nil, err
		}
	}
	last := store.Tx{Epoch: epoch, Put: []store.Put{{Key: stateKey, Value: want}}}
	for _, id := range earlier {
		last.Delete = append(last.Delete, store.Key{Kind: KindKey, ID: id})
	}
	_, err = store.Commit(ctx, s.Store, last)
	return count, earlier, err
}

// resealKind does so for the objects of a kind, a piece at a time.
func (s *Store) resealKind(ctx context.Context, kind store.Kind, epoch int64) (count int, err error) {
	for after := ""; ; {
		tx := store.Tx{Epoch: epoch}
		seen, size := 0, 0
		for o, err := range s.Store.List(ctx, kind, store.Options{After: after, Limit: mostObjects}) {
			if err != nil {
				return count, err
			}
			seen++
			after = o.ID
			if !s.behind(o) {
				continue
			}
			plain, _, err := s.open(o.Key, o.Value)
			if err != nil {
				continue // it stays as it is, and is told when it is read
			}
			tx.Put = append(tx.Put, store.Put{Key: o.Key, At: o.At, Value: plain})
			if size += len(plain); size > mostBytes {
				break
			}
		}
		if len(tx.Put) > 0 {
			if _, err := store.Commit(ctx, s, tx); err != nil {
				return count, err
			}
			count += len(tx.Put)
		}
		if seen == 0 {
			return count, nil
		}
	}
}

// behind tells whether an object has something in clear that is to be sealed, or sealed under another key.
func (s *Store) behind(o store.Object) bool {
	names, present := s.parts[o.Kind], s.Ring().ID()
	stale := func(value []byte) bool {
		closed, is := sealedIn(value)
		return !is && !empty(value) || is && closed.Sealed != present
	}
	if _, whole := sealedIn(o.Value); whole || len(names) == 0 {
		return stale(o.Value)
	}
	if !mentions(o.Value, names) {
		return false
	}
	found := false
	_, err := splice(o.Value, names, func(_ string, value []byte) ([]byte, error) {
		found = found || stale(value)
		return nil, nil
	})
	return found || err != nil
}
