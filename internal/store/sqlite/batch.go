package sqlite

import (
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/store"
)

// batch is a group of requests on their way into one commit. Deciding happens
// in memory, each request upon the outcome of those before it; only the final
// state of each object is then written.
type batch struct {
	w        *writer
	first    store.Revision
	revision store.Revision
	writes   []write
	byKey    map[store.Key]int // index into writes
	changes  []store.Change
	leases   *leases
	// err is a failure to read, which fails the batch.
	err error
}

// write is the final state of an object in the batch.
type write struct {
	key      store.Key
	revision store.Revision
	at       int64
	value    []byte
	deleted  bool
}

func newBatch(w *writer) *batch {
	return &batch{w: w, first: w.revision + 1, revision: w.revision, byKey: map[store.Key]int{}, leases: w.leases.clone()}
}

// empty tells that there is nothing to commit.
func (b *batch) empty() bool { return b.revision < b.first && !b.leases.changed }

// decide sets a request's answer, on the condition that the batch commits.
func (b *batch) decide(r *request) {
	if r.lease != nil {
		r.err = r.lease(b.leases)
		return
	}
	if r.err == nil {
		r.err = b.check(&r.tx)
	}
	if r.err != nil {
		return
	}
	b.revision++
	r.rev = b.revision
	for i := range r.tx.Put {
		p := &r.tx.Put[i]
		b.add(write{key: p.Key, revision: r.rev, at: p.At, value: p.Value})
	}
	for _, key := range r.tx.Delete {
		b.add(write{key: key, revision: r.rev, deleted: true})
	}
}

// check refuses a transaction whose epoch or expectations do not hold.
func (b *batch) check(tx *store.Tx) error {
	if tx.Epoch != 0 && !b.leases.inForce(tx.Epoch) {
		return fenced(tx.Epoch)
	}
	for _, e := range tx.Expect {
		have, err := b.revisionOf(e.Key)
		if err != nil {
			b.err = err
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
func (b *batch) revisionOf(key store.Key) (store.Revision, error) {
	if i, ok := b.byKey[key]; ok {
		if b.writes[i].deleted {
			return 0, nil
		}
		return b.writes[i].revision, nil
	}
	return b.w.currentRevision(key)
}

func (b *batch) add(w write) {
	b.changes = append(b.changes, store.Change{Revision: w.revision, Key: w.key, Deleted: w.deleted, Value: w.value})
	if i, ok := b.byKey[w.key]; ok {
		b.writes[i] = w
		return
	}
	b.byKey[w.key] = len(b.writes)
	b.writes = append(b.writes, w)
}
