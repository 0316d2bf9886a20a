package groupcommit

import (
	"context"
	"iter"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/store"
)

// Front is the part of a store that takes requests and tells of changes; the
// adapter's writer takes batches from it and publishes what it committed.
type Front struct {
	queue *queue
	feed  *feed
	// stored reads the feed from the database after a revision: about limit
	// changes, and the revision up to which it read, which need not have changed
	// anything.
	stored func(ctx context.Context, after store.Revision, limit int) ([]store.Change, store.Revision, error)
}

// NewFront returns the front of a store that is at a revision. stored reads the
// feed from the database, see store.Store.Changes; it also tells up to which
// revision it read.
func NewFront(newest store.Revision, stored func(ctx context.Context, after store.Revision, limit int) ([]store.Change, store.Revision, error)) *Front {
	return &Front{queue: newQueue(), feed: newFeed(newest), stored: stored}
}

// ErrClosed answers what comes after Close.
var ErrClosed error = fault.New(fault.Unavailable, "the store is closed")

// Take waits for requests and moves the next batch into buf; false when the
// front is closed and everything was taken.
func (f *Front) Take(buf []*Request) ([]*Request, bool) { return f.queue.take(buf) }

// Publish tells those who watch of a commit.
func (f *Front) Publish(s Span) { f.feed.publish(s) }

// Advance tells those who watch of commits that another process made.
func (f *Front) Advance(newest store.Revision) { f.feed.advance(newest) }

// CloseQueue takes no more requests; those that are there can still be taken.
func (f *Front) CloseQueue() { f.queue.close() }

// CloseFeed ends all watches with an error; the first one counts.
func (f *Front) CloseFeed(err error) { f.feed.close(err) }

// Enqueue implements store.Store.
func (f *Front) Enqueue(tx store.Tx, done func(store.Revision, error)) {
	if done == nil {
		done = func(store.Revision, error) {}
	}
	r := &Request{tx: tx, done: done, err: tx.Check()}
	for i := range tx.Put {
		r.size += len(tx.Put[i].Value)
		r.alone = r.alone || tx.Put[i].Key == store.FormatKey
	}
	if !f.queue.add(r) {
		go done(0, ErrClosed)
	}
}

// lease hands over an operation on leases, in its order among the
// transactions, and waits for its outcome.
func (f *Front) lease(ctx context.Context, op leaseOp) (store.Lease, error) {
	answer := make(chan error, 1)
	r := &Request{lease: op, done: func(_ store.Revision, err error) { answer <- err }}
	if !f.queue.add(r) {
		return store.Lease{}, ErrClosed
	}
	select {
	case err := <-answer:
		if err != nil {
			return store.Lease{}, err
		}
		return r.leased, nil
	case <-ctx.Done():
		return store.Lease{}, context.Cause(ctx)
	}
}

// watchChunk is how many changes a watch reads from the database at a time, roughly.
const watchChunk = 1024

// Watch implements store.Store.
func (f *Front) Watch(ctx context.Context, after store.Revision) iter.Seq2[[]store.Change, error] {
	return func(yield func([]store.Change, error) bool) {
		for p, err := range f.Follow(ctx, after) {
			if (err != nil || len(p.Changes) > 0) && !yield(p.Changes, err) {
				return
			}
		}
	}
}

// Follow implements store.Shared.
func (f *Front) Follow(ctx context.Context, after store.Revision) iter.Seq2[store.Progress, error] {
	return func(yield func(store.Progress, error) bool) {
		for {
			changes, last, err := f.follow(ctx, after)
			if err != nil {
				yield(store.Progress{}, err)
				return
			}
			if last > after && !yield(store.Progress{Revision: last, Changes: changes}, nil) {
				return
			}
			after = last
		}
	}
}

// follow waits for changes after a revision; last is where to go on, and the
// changes may be none.
func (f *Front) follow(ctx context.Context, after store.Revision) (changes []store.Change, last store.Revision, err error) {
	if err := context.Cause(ctx); err != nil {
		return nil, 0, err
	}
	p, err := f.feed.after(after)
	switch {
	case err != nil:
		return nil, 0, err
	case p.stored:
		return f.stored(ctx, after, watchChunk)
	case p.wait == nil:
		return p.changes, p.last, nil
	}
	select {
	case <-p.wait:
	case <-ctx.Done():
	}
	return nil, after, nil
}
