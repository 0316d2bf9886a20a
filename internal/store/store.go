package store

import (
	"context"
	"iter"
	"time"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/store/format"
)

// Revision numbers the accepted transactions of a store, from 1. Zero stands
// for "before all".
type Revision int64

// Kind groups objects, for example "job", "archived-job" or "instance".
type Kind string

// Key names one object. Ids are ordered as CompareIDs says: decimal numbers
// come first and in numeric order, so job ids can be written as plain text.
type Key struct {
	Kind Kind
	ID   string
}

// Object is one stored object.
type Object struct {
	Key
	// Revision is that of the transaction that wrote the object last.
	Revision Revision
	// At is an optional time in microseconds since the epoch by which the objects
	// of a kind can be listed; zero is none.
	At int64
	// Value is JSON text. The reader owns it.
	Value []byte
}

// Put writes an object, new or not.
type Put struct {
	Key
	// At is the object's place in its kind's order by time; zero is none.
	At int64
	// Value is JSON text in UTF-8, of at most MaxValue bytes. The store does not parse it.
	Value []byte
}

// Expect makes a transaction depend on the revision an object is at. It is
// checked against the state just before the transaction, with all earlier
// transactions in effect.
type Expect struct {
	Key
	// Revision is that of the object; zero means that it must not exist.
	Revision Revision
}

// Tx is a transaction: what is put and deleted takes effect as one, provided
// that all expectations hold. No key may be changed twice in it. Deleting what
// does not exist is no error. A transaction that changes nothing is allowed: it
// serves as a barrier, or as a test of expectations and epoch.
type Tx struct {
	// Epoch is that of the lease under which the transaction is made; zero if it
	// needs none. With any other epoch than that of a lease now in force the
	// transaction is refused as fault.Fenced.
	Epoch  int64
	Put    []Put
	Delete []Key
	Expect []Expect
}

// Change is what the feed says about one object of one transaction.
type Change struct {
	Revision Revision
	Key
	// Deleted tells that this transaction deleted the object.
	Deleted bool
	// Value is the object's text as of this revision or a later one, whichever the
	// store has at hand; nil if the object is deleted by now. A reader that follows
	// to the end always ends with the newest. It is shared: do not write to it.
	Value []byte
}

// Progress is one step of a reader of the feed: it has seen all transactions up to
// the revision. The changes are those of whole transactions, and may be none.
type Progress struct {
	Revision Revision
	Changes  []Change
}

// Options chooses what List gives, and in which order.
type Options struct {
	// After leaves out everything up to and including this id, in the order of the
	// listing; empty begins at the start. Not together with ByAt.
	After string
	// ByAt lists by At, then by id, and only the objects that have an At.
	ByAt bool
	// Since and Until bound At with ByAt: Since <= At < Until; zero is no bound.
	Since, Until int64
	// Limit is the greatest number of objects; zero is no limit.
	Limit int
	// Desc turns the order around.
	Desc bool
}

// Lease is the right to be the only one, for a time. Its epoch grows each time
// it is acquired, over all leases of a store, and never comes twice.
type Lease struct {
	Name   string
	Holder string
	Epoch  int64
	// Expires is when others may take the lease over, by the store's clock. Until
	// somebody does, its epoch stays in force and it can still be renewed.
	Expires time.Time
}

// Store is the port. All methods may be called from any goroutine. A closed or
// broken store answers with fault.Unavailable, and one that finds what it is asked for
// damaged with fault.WrongState: to ask again is of no use.
type Store interface {
	// Enqueue hands over a transaction and returns without waiting. Transactions
	// take effect in the order of the calls. The caller must not write to what it
	// handed over until done was called.
	//
	// done (which may be nil) is called exactly once: after the change is durable,
	// with its revision, or after it was refused: fault.Invalid or fault.TooLarge for a transaction
	// that breaks the rules of Tx, fault.Conflict for an expectation that does not
	// hold, fault.Fenced for an epoch that is not in force. A refusal leaves the
	// transactions around it alone. Any other error means that the outcome is known only to the
	// store: look before trying again. The calls are made in the order of the
	// transactions, one at a time, on the goroutine that writes: done must be quick, and may
	// call Enqueue, but must not wait for another transaction.
	Enqueue(tx Tx, done func(Revision, error))

	// Get reads one object; fault.NotFound if there is none.
	Get(ctx context.Context, key Key) (Object, error)

	// List reads the objects of a kind as they are at one moment, by id unless the
	// options say otherwise. It is meant to be consumed at once: a listing that is held open keeps
	// the store from tidying up. An error ends the sequence.
	List(ctx context.Context, kind Kind, opts Options) iter.Seq2[Object, error]

	// Revision is that of the newest transaction. To read a state and follow it:
	// take the revision, list, then watch after that revision; changes between the
	// two are then seen twice, and none is missed.
	Revision(ctx context.Context) (Revision, error)

	// Changes reads the feed after a revision: whole transactions in order, about
	// limit changes but at least one transaction; empty when nothing is newer. When
	// the store no longer keeps the transactions after that revision, or has never reached it, the
	// answer is fault.Compacted: read the state anew.
	Changes(ctx context.Context, after Revision, limit int) ([]Change, error)

	// Watch reads the feed after a revision and then follows it: each element is the
	// changes of one or several whole transactions, as soon as they are durable. It is woken by
	// commits and does not poll. A reader may be as slow as it likes: nothing is queued for it, it
	// continues from the stored feed where it was, until what it has not read is older
	// than the store keeps, which ends the sequence with fault.Compacted. The end of ctx and
	// Close end the sequence with an error too.
	Watch(ctx context.Context, after Revision) iter.Seq2[[]Change, error]

	// AcquireLease takes a lease that is free, has expired, or belongs to the same
	// holder (which thereby fences its own earlier life); fault.Busy, naming the holder, if not. What
	// was enqueued before under the old epoch still commits, nothing after.
	AcquireLease(ctx context.Context, name, holder string, ttl time.Duration) (Lease, error)

	// RenewLease extends a lease from now on; fault.Fenced if its epoch is no longer
	// in force.
	RenewLease(ctx context.Context, lease Lease, ttl time.Duration) (Lease, error)

	// ReleaseLease gives a lease up, so that another need not wait for it to expire; its epoch is
	// out of force. Releasing a lease that is lost already does nothing.
	ReleaseLease(ctx context.Context, lease Lease) error

	// Close commits what is enqueued, answers it, and ends all watches.
	Close() error
}

// PresentFormat reads the format of a store, and at which revision it was written: the first one and
// zero where the store names none. It may be one that this program does not know.
func PresentFormat(ctx context.Context, s Store) (n int, at Revision, err error) {
	o, err := s.Get(ctx, FormatKey)
	switch {
	case fault.Is(err, fault.NotFound):
		return format.First, 0, nil
	case err != nil:
		return 0, 0, err
	}
	n, err = format.Parse(o.Value)
	return n, o.Revision, err
}

// Refused tells an error by which a store says that it has not made a transaction, and will not make it: nothing is to be looked up.
func Refused(err error) bool {
	switch fault.CodeOf(err) {
	case fault.Invalid, fault.TooLarge, fault.Conflict, fault.Fenced:
		return true
	}
	return false
}

// Commit enqueues a transaction and waits for its outcome. When ctx ends first the outcome is
// unknown, and the transaction may still commit.
func Commit(ctx context.Context, s Store, tx Tx) (Revision, error) {
	type outcome struct {
		rev Revision
		err error
	}
	answer := make(chan outcome, 1)
	s.Enqueue(tx, func(rev Revision, err error) { answer <- outcome{rev, err} })
	select {
	case o := <-answer:
		return o.rev, o.err
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
}
