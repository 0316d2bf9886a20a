package sqlite

import (
	"database/sql/driver"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/store"
	"github.com/drover-project/drover/internal/store/groupcommit"
)

// writer is the one goroutine that writes, and what it knows: the newest
// revision, the oldest in the feed and the leases, all as they are on disk.
type writer struct {
	conn     *conn
	sql      statements
	keep     store.Revision
	revision store.Revision
	oldest   store.Revision
	leases   *groupcommit.Leases
	recent   atomic.Pointer[recent]
	slot     []byte // a row of it, kept for the next one
	held     held
	place    *place
	log      *log
	mark     *mark
	opts     Options
	file     string
	// broken is the answer to everything after a commit failed in an unknown way, until
	// the database could be opened anew; for good if its files are gone.
	broken error
	// done is closed when the goroutine has ended.
	done chan struct{}
}

// statements are the writer's, prepared once.
type statements struct {
	begin, commit, get, put, remove, slot, log, trim, lease, tables *stmt
}

func (s *statements) prepare(c *conn) error {
	for _, p := range []struct {
		into **stmt
		sql  string
	}{
		{&s.begin, "BEGIN IMMEDIATE"},
		{&s.commit, "COMMIT"},
		{&s.get, "SELECT revision FROM object WHERE kind = ?1 AND place = ?2"},
		{&s.put, "INSERT INTO object (kind, place, revision, at, value, sum) VALUES (?1, ?2, ?3, ?4, ?5, ?6) " +
			"ON CONFLICT (kind, place) DO UPDATE SET revision = ?3, at = ?4, value = ?5, sum = ?6"},
		{&s.remove, "DELETE FROM object WHERE kind = ?1 AND place = ?2"},
		{&s.slot, "INSERT OR REPLACE INTO recent (slot, data) VALUES (?1, ?2)"},
		{&s.log, "INSERT INTO feed (last, first, entries, sum) VALUES (?1, ?2, ?3, ?4)"},
		{&s.trim, "DELETE FROM feed WHERE last <= ?1"},
		{&s.lease, "INSERT OR REPLACE INTO lease (name, holder, epoch, expires, sum) VALUES (?1, ?2, ?3, ?4, ?5)"},
		{&s.tables, "SELECT name FROM sqlite_schema"},
	} {
		var err error
		if *p.into, err = c.prepare(p.sql); err != nil {
			return err
		}
	}
	return nil
}

// close ends the statements, without which a connection ends in name only.
func (s *statements) close() error {
	var all []error
	for _, p := range []*stmt{s.begin, s.commit, s.get, s.put, s.remove, s.slot, s.log, s.trim, s.lease, s.tables} {
		if p != nil {
			all = append(all, p.raw.Close())
		}
	}
	*s = statements{}
	return errors.Join(all...)
}

// close ends what the writer has open, once its goroutine has ended.
func (w *writer) close() error { return errors.Join(w.disconnect(), w.mark.file.Close()) }

// disconnect ends the connection, if there is one.
func (w *writer) disconnect() error {
	if w.conn == nil {
		return nil
	}
	err := errors.Join(w.held.end(), w.sql.close(), w.conn.raw.Close())
	w.conn = nil
	return err
}

func newWriter(c *conn, opts Options) (*writer, error) {
	w := &writer{conn: c, keep: opts.Keep, opts: opts, done: make(chan struct{})}
	folded, err := newestRow(c)
	if err != nil {
		return nil, err
	}
	oldest, err := c.integer("SELECT coalesce(min(last), 0) FROM feed")
	if err != nil {
		return nil, err
	}
	r, err := loadRecent(c, folded)
	if err != nil {
		return nil, err
	}
	w.recent.Store(r)
	w.revision, w.oldest = max(folded, r.revision()), store.Revision(oldest)
	if w.leases, err = loadLeases(c, opts.Now); err != nil {
		return nil, err
	}
	return w, w.sql.prepare(c)
}

// run commits batch after batch until the queue is closed and empty.
func (w *writer) run(f *groupcommit.Front) {
	defer close(w.done)
	buf := make([]*groupcommit.Request, 0, groupcommit.MaxBatch)
	for {
		requests, more := f.Take(buf)
		if !more {
			return
		}
		w.handle(requests, f)
		for _, r := range requests {
			r.Answer()
		}
		clear(requests)
	}
}

// handle decides and commits a batch and sets every request's answer.
func (w *writer) handle(requests []*groupcommit.Request, f *groupcommit.Front) {
	if w.broken != nil {
		if err := w.mend(f); err != nil {
			groupcommit.Refuse(requests, w.broken)
			return
		}
	}
	b := groupcommit.Decide(requests, w.revision, w.leases, w.currentRevision)
	if b.Err != nil { // it could not be decided, and nothing was written
		groupcommit.Refuse(requests, b.Err)
		return
	}
	if b.Empty() {
		return
	}
	if err := w.commit(b); err != nil {
		w.conn.rollback()
		_ = w.held.end() // SQLite forgets what failed when nothing of the database is in use
		answer, usable := writeError(err)
		if !usable {
			w.fail(answer, f)
		}
		groupcommit.Refuse(requests, answer)
		return
	}
	w.revision, w.leases = b.Revision, b.Leases
	f.Publish(b.Span())
}

// fail refuses everything from now on. What cannot be mended ends the watches, too.
func (w *writer) fail(answer error, f *groupcommit.Front) {
	w.broken = answer
	if !mendable(answer) {
		f.CloseFeed(answer)
	}
}

// mend opens the database anew after a commit whose outcome is not known, and takes
// what it holds as the truth: what was committed before is there, what failed may be.
//
// The system may have dropped what it could not flush, and still show it. So the
// whole log is copied into the database, with a flush that has to succeed: nothing
// that is committed later rests upon a page that is on no disk.
func (w *writer) mend(f *groupcommit.Front) error {
	if !mendable(w.broken) {
		return w.broken
	}
	_ = w.disconnect() // it failed before
	fresh, err := reopened(w.file, w.opts)
	if err != nil {
		return err
	}
	w.conn, w.sql, w.revision, w.oldest, w.leases = fresh.conn, fresh.sql, fresh.revision, fresh.oldest, fresh.leases
	if err := w.mark.verify(w.revision); err != nil {
		w.fail(&goneError{err}, f)
		return w.broken
	}
	w.recent.Store(fresh.recent.Load())
	w.place.reopened() // the log may be a new file
	w.log.size = 0
	w.mark.set(w.revision)
	w.broken = nil
	f.Advance(w.revision)
	return nil
}

// reopened returns a writer of a database all of which is on the disk.
func reopened(file string, opts Options) (*writer, error) {
	c, err := openWriting(file)
	if err != nil {
		return nil, err
	}
	busy, err := c.integer("PRAGMA wal_checkpoint(TRUNCATE)")
	if err == nil && busy != 0 {
		err = errBusy
	}
	var fresh *writer
	if err == nil {
		fresh, err = newWriter(c, opts)
	}
	if err != nil {
		return nil, errors.Join(err, c.raw.Close())
	}
	return fresh, nil
}

var errBusy = errors.New("somebody reads what the log holds")

// commit writes what the batch comes to and makes it durable.
func (w *writer) commit(b *groupcommit.Batch) error {
	if err := w.begin(); err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	_ = w.log.extend(w.place.logSize) // commits are slower without, and the log has what room there is
	if b.Format > 0 {
		if err := raise(w.conn, b.Format); err != nil {
			return fmt.Errorf("raise the format: %w", err)
		}
	}
	next, err := w.change(b)
	if err != nil {
		return err
	}
	for _, l := range b.Leases.Changed() {
		if err := w.writeLease(l); err != nil {
			return fmt.Errorf("write leases: %w", err)
		}
	}
	if err := w.sql.commit.exec(); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	w.held.next(w.sql.tables, b)
	w.mark.set(b.Revision)
	w.recent.Store(next)
	return w.place.check()
}

// begin takes the lock for writing. Others have it at times for a moment: a reader that finds the
// head of the log half written reads it again under that lock. SQLite waits for it, but not where
// the connection has a query under way.
func (w *writer) begin() error {
	err := w.sql.begin.exec()
	if locked(err) && w.held.rows != nil {
		_ = w.held.end()
		err = w.sql.begin.exec()
	}
	return err
}

// change writes the batch where it belongs, and returns what is recent with it.
func (w *writer) change(b *groupcommit.Batch) (*recent, error) {
	now := w.recent.Load()
	if b.Revision < b.First {
		return now, nil
	}
	if next, err := w.put(now, b); next != nil || err != nil {
		return next, err
	}
	if err := w.fold(now, b); err != nil {
		return nil, err
	}
	return &recent{}, w.trim(b.Revision)
}

func (w *writer) write(o *groupcommit.Write) error {
	kind, at := string(o.Key.Kind), groupcommit.Place(o.Key.ID)
	if o.Deleted {
		if err := w.sql.remove.exec(kind, at); err != nil {
			return fmt.Errorf("delete %s %q: %w", kind, o.Key.ID, err)
		}
		return nil
	}
	if err := w.sql.put.exec(kind, at, int64(o.Revision), o.At, string(o.Value), objectSum(kind, at, int64(o.Revision), o.At, o.Value)); err != nil {
		return fmt.Errorf("put %s %q: %w", kind, o.Key.ID, err)
	}
	return nil
}

func (w *writer) writeLease(l store.Lease) error {
	return w.sql.lease.exec(l.Name, l.Holder, l.Epoch, l.Expires.UnixMicro(), leaseSum(l))
}

func (w *writer) writeRow(last, first store.Revision, entries string) error {
	return w.sql.log.exec(int64(last), int64(first), entries, rowSum(last, first, entries))
}

// trimParts says how many revisions more than it must keep the feed may hold, as a part
// of those: trimming touches pages that a commit need not touch, so it is done seldom.
const trimParts = 64

// trim drops what the feed need not keep, now and then.
func (w *writer) trim(newest store.Revision) error {
	if newest-w.oldest < w.keep+w.keep/trimParts {
		return nil
	}
	w.oldest = newest - w.keep
	return w.sql.trim.exec(int64(w.oldest))
}

// currentRevision reads the committed revision of an object; zero if there is none.
func (w *writer) currentRevision(key store.Key) (store.Revision, error) {
	if o := w.recent.Load().find(key); o != nil {
		if o.Deleted {
			return 0, nil
		}
		return o.Revision, nil
	}
	n, err := w.sql.get.integer(string(key.Kind), groupcommit.Place(key.ID))
	if err != nil {
		return 0, fault.New(fault.Unavailable, "cannot read the revision of %s %q: %w", key.Kind, key.ID, err)
	}
	return store.Revision(n), nil
}

// longestLease is how long a lease may keep others out after a start.
const longestLease = time.Minute

// loadLeases reads the table.
func loadLeases(c *conn, now func() time.Time) (*groupcommit.Leases, error) {
	s, err := c.prepare("SELECT name, holder, epoch, expires, sum FROM lease")
	if err != nil {
		return nil, err
	}
	var stored []store.Lease
	var bad error
	err = s.rows(func(row []driver.Value) {
		name, okName := row[0].(string)
		holder, okHolder := row[1].(string)
		epoch, okEpoch := row[2].(int64)
		expires, okExpires := row[3].(int64)
		has, okSum := row[4].(int64)
		l := store.Lease{Name: name, Holder: holder, Epoch: epoch, Expires: time.UnixMicro(expires)}
		if whole := okName && okHolder && okEpoch && okExpires && okSum; !whole || has != noSum && has != leaseSum(l) {
			bad = damaged("lease", l.Name)
		}
		stored = append(stored, l)
	})
	if err = errors.Join(err, bad); err != nil {
		return nil, errors.Join(err, s.raw.Close())
	}
	// Nobody renews a lease while nobody has the store open. One that seems to last for long was
	// given by a clock that was ahead.
	for i := range stored {
		if limit := now().Add(longestLease); stored[i].Expires.After(limit) {
			stored[i].Expires = limit
		}
	}
	return groupcommit.NewLeases(stored, now), s.raw.Close()
}
