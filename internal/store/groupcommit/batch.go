package groupcommit

import (
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/store"
	"github.com/drover-project/drover/internal/store/format"
)

// Batch is a group of requests on their way into one commit. Deciding happens
// in memory, each request upon the outcome of those before it; only the final
// state of each object is then written.
type Batch struct {
	// First and Revision are the revisions that the batch gives out; it gives
	// none when Revision is less than First.
	First, Revision store.Revision
	// Writes are the final states of the objects that change.
	Writes []Write
	// Leases are the leases as they are after the batch.
	Leases *Leases
	// Format is what the batch raises the store to; zero if it does not.
	Format int
	// Err is a failure to read, which fails the batch.
	Err error

	byKey   map[store.Key]int // index into Writes
	changes []store.Change
	stored  func(store.Key) (store.Revision, error)
}

// Write is the final state of an object in a batch.
type Write struct {
	Key      store.Key
	Revision store.Revision
	At       int64
	Value    []byte
	Deleted  bool
}

// Decide sets the requests' answers, on the condition that the batch which it
// returns commits. The store is at a revision and has these leases; stored tells
// the revision of an object there, zero if it does not exist.
func Decide(requests []*Request, newest store.Revision, leases *Leases, stored func(store.Key) (store.Revision, error)) *Batch {
	size := 0
	for _, r := range requests {
		size += len(r.tx.Put) + len(r.tx.Delete)
	}
	b := &Batch{First: newest + 1, Revision: newest, Leases: leases.clone(), stored: stored,
		byKey: make(map[store.Key]int, size), changes: make([]store.Change, 0, size), Writes: make([]Write, 0, size)}
	for _, r := range requests {
		b.decide(r)
	}
	return b
}

// Empty tells that there is nothing to commit.
func (b *Batch) Empty() bool { return b.Revision < b.First && !b.Leases.changed }

// Span is what the feed gets when the batch is committed.
func (b *Batch) Span() Span { return Span{first: b.First, last: b.Revision, changes: b.changes} }

// Changes are what the batch changed, in the order of revisions.
func (b *Batch) Changes() []store.Change { return b.changes }

// decide sets a request's answer, upon the outcome of those before it.
func (b *Batch) decide(r *Request) {
	if r.lease != nil {
		r.leased, r.err = r.lease(b.Leases)
		return
	}
	if r.err == nil {
		r.err = b.check(&r.tx)
	}
	if r.err != nil {
		return
	}
	b.Revision++
	r.rev = b.Revision
	for i := range r.tx.Put {
		p := &r.tx.Put[i]
		if p.Key == store.FormatKey {
			b.Format, _ = format.Parse(p.Value) // it was checked
		}
		b.add(Write{Key: p.Key, Revision: r.rev, At: p.At, Value: p.Value})
	}
	for _, key := range r.tx.Delete {
		b.add(Write{Key: key, Revision: r.rev, Deleted: true})
	}
}

// check refuses a transaction whose epoch or expectations do not hold.
func (b *Batch) check(tx *store.Tx) error {
	if tx.Epoch != 0 && !b.Leases.inForce(tx.Epoch) {
		return fenced(tx.Epoch)
	}
	for _, e := range tx.Expect {
		have, err := b.revisionOf(e.Key)
		if err != nil {
			b.Err = err
			return err
		}
		if have != e.Revision {
			return conflict(e, have)
		}
	}
	return nil
}

func conflict(e store.Expect, have store.Revision) error {
	switch {
	case have == 0:
		return fault.New(fault.Conflict, "%s %q does not exist, expected revision %d", e.Kind, e.ID, e.Revision)
	case e.Revision == 0:
		return fault.New(fault.Conflict, "%s %q exists already, at revision %d", e.Kind, e.ID, have)
	}
	return fault.New(fault.Conflict, "%s %q is at revision %d, expected %d", e.Kind, e.ID, have, e.Revision)
}

// revisionOf is an object's revision with the batch so far in effect.
func (b *Batch) revisionOf(key store.Key) (store.Revision, error) {
	if i, ok := b.byKey[key]; ok {
		if b.Writes[i].Deleted {
			return 0, nil
		}
		return b.Writes[i].Revision, nil
	}
	return b.stored(key)
}

func (b *Batch) add(w Write) {
	b.changes = append(b.changes, store.Change{Revision: w.Revision, Key: w.Key, Deleted: w.Deleted, Value: w.Value})
	if i, ok := b.byKey[w.Key]; ok {
		b.Writes[i] = w
		return
	}
	b.byKey[w.Key] = len(b.Writes)
	b.Writes = append(b.Writes, w)
}
