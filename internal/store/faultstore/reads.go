package faultstore

import (
	"context"
	"iter"
	"slices"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/store"
)

// ReadFault is a failure of reads, which lasts until it is mended.
type ReadFault struct {
	// When chooses reads by the kind of what is read, and the id where one object
	// is; nil chooses all, those of the feed and of the revision too.
	When func(kind store.Kind, id string) bool
	// Yields is how many objects a listing gives before it fails.
	Yields int
	// Err is what the reader is told; nil is a fault.Unavailable.
	Err error
}

// FailReads makes reads fail from now on; mend ends that.
func (s *Store) FailReads(f ReadFault) (mend func()) {
	if f.Err == nil {
		f.Err = fault.New(fault.Unavailable, "injected failure of a read")
	}
	p := &f
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reads = append(s.reads, p)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.reads = slices.DeleteFunc(s.reads, func(other *ReadFault) bool { return other == p })
	}
}

// failing returns the fault that strikes a read, nil for none.
func (s *Store) failing(kind store.Kind, id string) *ReadFault {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.reads {
		if f.When == nil || f.When(kind, id) {
			return f
		}
	}
	return nil
}

// Get implements store.Store.
func (s *Store) Get(ctx context.Context, key store.Key) (store.Object, error) {
	if f := s.failing(key.Kind, key.ID); f != nil {
		return store.Object{}, f.Err
	}
	return s.Store.Get(ctx, key)
}

// List implements store.Store.
func (s *Store) List(ctx context.Context, kind store.Kind, opts store.Options) iter.Seq2[store.Object, error] {
	f := s.failing(kind, "")
	if f == nil {
		return s.Store.List(ctx, kind, opts)
	}
	return func(yield func(store.Object, error) bool) {
		given := 0
		for o, err := range s.Store.List(ctx, kind, opts) {
			if given == f.Yields {
				break
			}
			if !yield(o, err) || err != nil {
				return
			}
			given++
		}
		yield(store.Object{}, f.Err)
	}
}

// Revision implements store.Store.
func (s *Store) Revision(ctx context.Context) (store.Revision, error) {
	if f := s.failing("", ""); f != nil {
		return 0, f.Err
	}
	return s.Store.Revision(ctx)
}

// Changes implements store.Store.
func (s *Store) Changes(ctx context.Context, after store.Revision, limit int) ([]store.Change, error) {
	if f := s.failing("", ""); f != nil {
		return nil, f.Err
	}
	return s.Store.Changes(ctx, after, limit)
}
