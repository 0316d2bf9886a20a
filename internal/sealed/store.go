package sealed

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/store"
)

// KindKey are notes of the keys under which the store has sealed values, by their ids.
const KindKey store.Kind = "sealing-key"

// Store is a store whose secrets are sealed. What it does not change is that of the store below.
type Store struct {
	store.Store

	keys  atomic.Pointer[Ring]
	parts Parts
	noted atomic.Pointer[key] // of which the store below has the note
}

// Over returns a store with the secrets of its values sealed: those that parts names. Until it is told to Use one the ring may
// be nil: then nothing that is sealed can be read, and nothing that is to be sealed may be written.
func Over(below store.Store, ring *Ring, parts Parts) *Store {
	s := &Store{Store: below, parts: parts}
	s.keys.Store(ring)
	return s
}

// Use has other keys used from now on.
func (s *Store) Use(ring *Ring) { s.keys.Store(ring) }

// Ring are the keys in use.
func (s *Store) Ring() *Ring { return s.keys.Load() }

// KeysOf returns the ids of the keys under which a store has sealed values.
func KeysOf(ctx context.Context, s store.Store) ([]string, error) {
	var ids []string
	for o, err := range s.List(ctx, KindKey, store.Options{}) {
		if err != nil {
			return nil, err
		}
		ids = append(ids, o.ID)
	}
	return ids, nil
}

// Check refuses a store that has values which the ring, from a file of that name, cannot open. Nil is no file.
func Check(ctx context.Context, s store.Store, r *Ring, file string) error {
	ids, err := KeysOf(ctx, s)
	if err != nil {
		return err
	}
	lacking := slices.DeleteFunc(ids, r.Has)
	if len(lacking) == 0 {
		return nil
	}
	what := "which the key file " + file + " does not have"
	if r == nil {
		what = "and there is no key file " + file
	}
	return fault.New(fault.WrongState, "secrets of the store are sealed with the key %s, %s", strings.Join(lacking, ", "), what).WithHint("%s", hint)
}

// Enqueue implements store.Store.
func (s *Store) Enqueue(tx store.Tx, done func(store.Revision, error)) {
	var puts []store.Put
	ring := s.Ring()
	for i := range tx.Put {
		value, is := s.seal(ring, tx.Put[i].Key, tx.Put[i].Value)
		if !is {
			continue
		}
		if puts == nil {
			puts = slices.Clone(tx.Put)
		}
		puts[i].Value = value
	}
	if puts == nil {
		s.Store.Enqueue(tx, done)
		return
	}
	tx.Put = puts
	first := ring.keys[0]
	if s.noted.Load() != first {
		tx.Put = append(tx.Put, store.Put{Key: store.Key{Kind: KindKey, ID: first.id}, Value: []byte(`{}`)})
	}
	s.Store.Enqueue(tx, func(r store.Revision, err error) {
		if err == nil {
			s.noted.Store(first)
		}
		if done != nil {
			done(r, err)
		}
	})
}

// Get implements store.Store.
func (s *Store) Get(ctx context.Context, key store.Key) (store.Object, error) {
	o, err := s.Store.Get(ctx, key)
	if err != nil {
		return o, err
	}
	o.Value, _, err = s.open(key, o.Value)
	return o, of(key, err)
}

// of says which object an error is about.
func of(key store.Key, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("a secret of %s %q cannot be read: %w", key.Kind, key.ID, err)
}

// opened is the value of one of many objects. One that was changed since it was sealed is a text that says so, which nobody takes
// for the value: it costs itself, and not those around it.
func (s *Store) opened(key store.Key, value []byte) ([]byte, error) {
	out, missing, err := s.open(key, value)
	if err == nil || missing {
		return out, of(key, err)
	}
	text, err := json.Marshal(of(key, err).Error())
	return text, err
}

// List implements store.Store.
func (s *Store) List(ctx context.Context, kind store.Kind, opts store.Options) iter.Seq2[store.Object, error] {
	if _, ours := s.parts[kind]; !ours {
		return s.Store.List(ctx, kind, opts)
	}
	return func(yield func(store.Object, error) bool) {
		for o, err := range s.Store.List(ctx, kind, opts) {
			if err == nil {
				o.Value, err = s.opened(o.Key, o.Value)
			}
			if !yield(o, err) || err != nil {
				return
			}
		}
	}
}

// Changes implements store.Store.
func (s *Store) Changes(ctx context.Context, after store.Revision, limit int) ([]store.Change, error) {
	changes, err := s.Store.Changes(ctx, after, limit)
	if err != nil {
		return nil, err
	}
	return s.openedAll(changes)
}

// openedAll opens the values of changes, which others may read at the same time.
func (s *Store) openedAll(changes []store.Change) ([]store.Change, error) {
	secret := func(c store.Change) bool { return c.Value != nil && bytes.Contains(c.Value, []byte(beginning)) }
	if !slices.ContainsFunc(changes, secret) {
		return changes, nil
	}
	out := slices.Clone(changes)
	for i, c := range changes {
		var err error
		if out[i].Value, err = s.opened(c.Key, c.Value); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Watch implements store.Store.
func (s *Store) Watch(ctx context.Context, after store.Revision) iter.Seq2[[]store.Change, error] {
	return func(yield func([]store.Change, error) bool) {
		for changes, err := range s.Store.Watch(ctx, after) {
			if err == nil {
				changes, err = s.openedAll(changes)
			}
			if !yield(changes, err) || err != nil {
				return
			}
		}
	}
}

// Feed is store.Shared's Follow, or another feed of the store below.
type Feed = func(ctx context.Context, after store.Revision) iter.Seq2[store.Progress, error]

// Opened returns a feed of the store below with its values opened.
func (s *Store) Opened(feed Feed) Feed {
	return func(ctx context.Context, after store.Revision) iter.Seq2[store.Progress, error] {
		return func(yield func(store.Progress, error) bool) {
			for p, err := range feed(ctx, after) {
				if err == nil {
					p.Changes, err = s.openedAll(p.Changes)
				}
				if !yield(p, err) || err != nil {
					return
				}
			}
		}
	}
}
