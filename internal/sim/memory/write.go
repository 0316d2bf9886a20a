package memory

import (
	"context"
	"slices"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/readlease"
	"github.com/drover-project/drover/internal/store"
	"github.com/drover-project/drover/internal/store/groupcommit"
)

// write commits batch after batch until the front is closed and empty.
func (s *Store) write() {
	defer close(s.wrote)
	var buf []*groupcommit.Request
	for {
		requests, more := s.Take(buf)
		if !more {
			return
		}
		lessor := s.lessor.Load()
		lessor.Begin()
		known := s.handle(requests, lessor)
		for _, r := range requests {
			r.Answer()
		}
		lessor.End(int64(s.known), known)
		clear(requests)
		buf = requests
	}
}

// errUnknown is the error of a commit of which nobody can tell whether it took effect.
var errUnknown error = fault.New(fault.Unavailable, "the database does not tell what became of a commit")

// handle commits a batch, again and again while the connection breaks before it is
// certain, and sets every request's answer. It returns false if nobody can tell whether
// the batch took effect.
func (s *Store) handle(requests []*groupcommit.Request, lessor *readlease.Lessor) (known bool) {
	ctx, cancel := context.WithTimeout(s.ctx, patience)
	defer cancel()
	for {
		err := s.try(ctx, requests, lessor)
		switch {
		case err == nil:
			return true
		case err == errUnknown: //nolint:errorlint // it is never wrapped
			groupcommit.Refuse(requests, err)
			return false
		case ctx.Err() != nil:
			groupcommit.Refuse(requests, unreachable(err))
			return true
		}
		groupcommit.Pause(ctx, retryPause)
	}
}

// try decides and commits a batch once. With any error but errUnknown nothing of the
// batch took effect.
func (s *Store) try(ctx context.Context, requests []*groupcommit.Request, lessor *readlease.Lessor) error {
	if err := s.cross(ctx, Begin); err != nil {
		return err
	}
	s.db.sit(s)
	t, err := s.db.begin(ctx, s)
	if err != nil {
		return err
	}
	b, newest := t.decide(requests)
	if newest != s.known {
		s.Advance(newest)
		s.known = newest
	}
	if b.Empty() {
		t.abort()
		return nil
	}
	lessor.Await() // it has been called off while the transaction began
	err = s.cross(ctx, Commit)
	if err == nil && !t.commit(b, requests) {
		return fault.New(fault.Unavailable, "the database has ended the transaction")
	}
	if err == nil {
		err = s.cross(ctx, Answer)
	}
	if err != nil {
		if err := s.settle(t, err); err != nil {
			return err
		}
	}
	s.known = b.Revision
	s.Publish(b.Span())
	return nil
}

// settle turns the error of a commit into what it means for the batch: nil if it took
// effect all the same.
func (s *Store) settle(t *transaction, err error) error {
	ctx, cancel := context.WithTimeout(s.ctx, patience)
	defer cancel()
	for {
		if s.cross(ctx, Lookup) == nil {
			switch took, over := t.outcome(); {
			case took:
				return nil
			case over:
				return err
			}
		}
		if ctx.Err() != nil {
			return errUnknown
		}
		groupcommit.Pause(ctx, retryPause)
	}
}

// outcome tells what became of a transaction.
func (t *transaction) outcome() (took, over bool) {
	t.db.mu.Lock()
	defer t.db.mu.Unlock()
	return t.took, t.over
}

// tell says that another has committed. The caller holds the database's mutex.
func (s *Store) tell() {
	select {
	case s.news <- struct{}{}:
	default:
	}
}

// listen hears of the commits of others until the handle is closed.
func (s *Store) listen() {
	defer close(s.heard)
	for {
		select {
		case <-s.ctx.Done():
			return
		case <-s.news:
		}
		for s.cross(s.ctx, Notice) != nil && s.ctx.Err() == nil {
			groupcommit.Pause(s.ctx, retryPause)
		}
		s.Advance(s.db.newest())
	}
}

func (db *Database) newest() store.Revision {
	db.mu.Lock()
	defer db.mu.Unlock()
	return db.revision
}

// forget takes a handle that is closed out of the database.
func (db *Database) forget(s *Store) {
	db.mu.Lock()
	defer db.mu.Unlock()
	db.handles = slices.DeleteFunc(db.handles, func(h *Store) bool { return h == s })
}
