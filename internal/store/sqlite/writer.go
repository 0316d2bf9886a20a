package sqlite

import (
	"fmt"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/store"
)

// writer is the one goroutine that writes, and what it knows: the newest
// revision, the oldest in the feed and the leases, all as they are on disk.
type writer struct {
	conn     *conn
	sql      statements
	keep     store.Revision
	revision store.Revision
	oldest   store.Revision
	leases   *leases
	// broken is the answer to everything, once a commit failed in an unknown way.
	broken error
	// done is closed when the goroutine has ended.
	done chan struct{}
}

// statements are the writer's, prepared once.
type statements struct {
	begin, commit, get, put, remove, log, trim, lease *stmt
}

func (s *statements) prepare(c *conn) error {
	for _, p := range []struct {
		into **stmt
		sql  string
	}{
		{&s.begin, "BEGIN IMMEDIATE"},
		{&s.commit, "COMMIT"},
		{&s.get, "SELECT revision FROM object WHERE kind = ?1 AND place = ?2"},
		{&s.put, "INSERT INTO object (kind, place, revision, at, value) VALUES (?1, ?2, ?3, ?4, ?5) " +
			"ON CONFLICT (kind, place) DO UPDATE SET revision = ?3, at = ?4, value = ?5"},
		{&s.remove, "DELETE FROM object WHERE kind = ?1 AND place = ?2"},
		{&s.log, "INSERT INTO feed (last, first, entries) VALUES (?1, ?2, ?3)"},
		{&s.trim, "DELETE FROM feed WHERE last <= ?1"},
		{&s.lease, "INSERT OR REPLACE INTO lease (name, holder, epoch, expires) VALUES (?1, ?2, ?3, ?4)"},
	} {
		var err error
		if *p.into, err = c.prepare(p.sql); err != nil {
			return err
		}
	}
	return nil
}

func newWriter(c *conn, opts Options) (*writer, error) {
	w := &writer{conn: c, keep: opts.Keep, done: make(chan struct{})}
	newest, err := c.integer("SELECT coalesce(max(last), 0) FROM feed")
	if err != nil {
		return nil, err
	}
	oldest, err := c.integer("SELECT coalesce(min(last), 0) FROM feed")
	if err != nil {
		return nil, err
	}
	w.revision, w.oldest = store.Revision(newest), store.Revision(oldest)
	if w.leases, err = loadLeases(c, opts.Now); err != nil {
		return nil, err
	}
	return w, w.sql.prepare(c)
}

// run commits batch after batch until the queue is closed and empty.
func (w *writer) run(q *queue, f *feed) {
	defer close(w.done)
	buf := make([]*request, 0, maxBatch)
	for {
		requests, more := q.take(buf)
		if !more {
			return
		}
		w.handle(requests, f)
		for _, r := range requests {
			r.done(r.rev, r.err)
		}
		clear(requests)
	}
}

// handle decides and commits a batch and sets every request's answer.
func (w *writer) handle(requests []*request, f *feed) {
	if w.broken != nil {
		refuse(requests, w.broken)
		return
	}
	b := newBatch(w)
	for _, r := range requests {
		b.decide(r)
	}
	if b.err == nil && b.empty() {
		return
	}
	err := b.err
	if err == nil {
		err = w.commit(b)
	}
	if err != nil {
		w.conn.rollback()
		answer, certain := writeError(err)
		if !certain {
			w.broken = answer
			f.close(answer)
		}
		refuse(requests, answer)
		return
	}
	w.revision, w.leases = b.revision, b.leases
	f.publish(span{first: b.first, last: b.revision, changes: b.changes})
}

// refuse answers a whole batch that could not be committed. What was refused on
// its own account keeps that answer only if it did not depend on others; since it
// might, all get the same.
func refuse(requests []*request, err error) {
	for _, r := range requests {
		r.rev, r.err = 0, err
	}
}

// commit writes what the batch comes to and makes it durable.
func (w *writer) commit(b *batch) error {
	if err := w.sql.begin.exec(); err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	for i := range b.writes {
		if err := w.write(&b.writes[i]); err != nil {
			return err
		}
	}
	if err := w.log(b); err != nil {
		return fmt.Errorf("write the feed: %w", err)
	}
	if err := b.leases.save(w.sql.lease); err != nil {
		return fmt.Errorf("write leases: %w", err)
	}
	if err := w.sql.commit.exec(); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	return nil
}

func (w *writer) write(o *write) error {
	kind, at := string(o.key.Kind), place(o.key.ID)
	if o.deleted {
		if err := w.sql.remove.exec(kind, at); err != nil {
			return fmt.Errorf("delete %s %q: %w", kind, o.key.ID, err)
		}
		return nil
	}
	if err := w.sql.put.exec(kind, at, int64(o.revision), o.at, string(o.value)); err != nil {
		return fmt.Errorf("put %s %q: %w", kind, o.key.ID, err)
	}
	return nil
}

// trimParts says how many revisions more than it must keep the feed may hold, as a part
// of those: trimming touches pages that a commit need not touch, so it is done seldom.
const trimParts = 64

// log adds the batch's row to the feed, and trims the feed now and then.
func (w *writer) log(b *batch) error {
	if b.revision < b.first {
		return nil
	}
	var entries []byte
	for i := range b.changes {
		entries = appendEntry(entries, b.first, &b.changes[i])
	}
	if err := w.sql.log.exec(int64(b.revision), int64(b.first), string(entries)); err != nil {
		return err
	}
	if b.revision-w.oldest < w.keep+w.keep/trimParts {
		return nil
	}
	w.oldest = b.revision - w.keep
	return w.sql.trim.exec(int64(w.oldest))
}

// currentRevision reads the committed revision of an object; zero if there is none.
func (w *writer) currentRevision(key store.Key) (store.Revision, error) {
	n, err := w.sql.get.integer(string(key.Kind), place(key.ID))
	if err != nil {
		return 0, fault.New(fault.Unavailable, "cannot read the revision of %s %q: %w", key.Kind, key.ID, err)
	}
	return store.Revision(n), nil
}
