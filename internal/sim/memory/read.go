package memory

import (
	"cmp"
	"context"
	"iter"
	"slices"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/store"
	"github.com/drover-project/drover/internal/store/groupcommit"
)

// look takes a question over the line, and returns with the database's mutex held, which
// done gives up.
func (s *Store) look(ctx context.Context) (done func(), err error) {
	switch err := s.cross(ctx, Read); {
	case s.closed.Load():
		return nil, groupcommit.ErrClosed
	case context.Cause(ctx) != nil:
		return nil, context.Cause(ctx)
	case err != nil:
		return nil, fault.New(fault.Unavailable, "cannot read the store: %w", err)
	}
	s.db.mu.Lock()
	return s.db.mu.Unlock, nil
}

// Get implements store.Store.
func (s *Store) Get(ctx context.Context, key store.Key) (store.Object, error) {
	done, err := s.look(ctx)
	if err != nil {
		return store.Object{}, err
	}
	defer done()
	o, there := s.db.objects[key.Kind][key.ID]
	if !there {
		return o, fault.New(fault.NotFound, "%s %q does not exist", key.Kind, key.ID)
	}
	o.Value = slices.Clone(o.Value)
	return o, nil
}

// List implements store.Store.
func (s *Store) List(ctx context.Context, kind store.Kind, opts store.Options) iter.Seq2[store.Object, error] {
	return func(yield func(store.Object, error) bool) {
		found, err := s.list(ctx, kind, opts)
		for _, o := range found {
			if err = context.Cause(ctx); err != nil {
				break
			}
			o.Value = slices.Clone(o.Value)
			if !yield(o, nil) {
				return
			}
		}
		if err != nil {
			yield(store.Object{}, err)
		}
	}
}

// list are the objects of a listing, with values that are still the database's.
func (s *Store) list(ctx context.Context, kind store.Kind, opts store.Options) (found []store.Object, err error) {
	if err := opts.Check(); err != nil {
		return nil, err
	}
	done, err := s.look(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	compare := func(a, b string) int {
		if opts.Desc {
			a, b = b, a
		}
		return store.CompareIDs(a, b)
	}
	for id, o := range s.db.objects[kind] {
		timely := !opts.ByAt || o.At != 0 && (opts.Since == 0 || o.At >= opts.Since) && (opts.Until == 0 || o.At < opts.Until)
		if timely && (opts.After == "" || compare(id, opts.After) > 0) {
			found = append(found, o)
		}
	}
	slices.SortFunc(found, func(a, b store.Object) int {
		if opts.ByAt && a.At != b.At {
			return cmp.Compare(a.At, b.At) * direction(opts.Desc)
		}
		return compare(a.ID, b.ID)
	})
	if opts.Limit > 0 && len(found) > opts.Limit {
		found = found[:opts.Limit]
	}
	return found, nil
}

func direction(desc bool) int {
	if desc {
		return -1
	}
	return 1
}

// Revision implements store.Store.
func (s *Store) Revision(ctx context.Context) (store.Revision, error) {
	done, err := s.look(ctx)
	if err != nil {
		return 0, err
	}
	defer done()
	return s.db.revision, nil
}

// Changes implements store.Store.
func (s *Store) Changes(ctx context.Context, after store.Revision, limit int) ([]store.Change, error) {
	if limit <= 0 {
		return nil, fault.New(fault.Invalid, "the limit of changes is not positive: %d", limit).At("limit")
	}
	changes, _, err := s.stored(ctx, after, limit)
	return changes, err
}

// stored reads the feed with the values of now, and up to which revision it did.
func (s *Store) stored(ctx context.Context, after store.Revision, limit int) ([]store.Change, store.Revision, error) {
	done, err := s.look(ctx)
	if err != nil {
		return nil, 0, err
	}
	defer done()
	db := s.db
	switch {
	case after < db.trimmed:
		return nil, 0, fault.New(fault.Compacted, "the feed after revision %d is no longer kept: it begins with %d", after, db.trimmed+1)
	case after > db.revision:
		return nil, 0, fault.New(fault.Compacted, "the store has not reached revision %d: its newest is %d", after, db.revision)
	}
	changes, last := groupcommit.WholeTransactions(slices.Clone(db.feed[behind(db.feed, after):]), limit, db.revision)
	for i := range changes {
		changes[i].Value = db.objects[changes[i].Kind][changes[i].ID].Value
	}
	return changes, last, nil
}
