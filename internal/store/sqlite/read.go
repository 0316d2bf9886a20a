package sqlite

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"iter"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/store"
	"github.com/drover-project/drover/internal/store/groupcommit"
)

// readError gives an error of a reader its code.
func (s *Store) readError(ctx context.Context, err error) error {
	if _, ok := errors.AsType[*fault.Error](err); ok {
		return err
	}
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	if malformed(err) {
		return damagedFile(err)
	}
	select {
	case <-s.writer.done:
		return groupcommit.ErrClosed
	default:
		return fault.New(fault.Unavailable, "cannot read the store: %w", err)
	}
}

// Get implements store.Store.
func (s *Store) Get(ctx context.Context, key store.Key) (store.Object, error) {
	if w := s.writer.recent.Load().find(key); w != nil {
		folded, err := s.folded(ctx, s.readers)
		if err != nil {
			return store.Object{}, err
		}
		if w.Revision > folded {
			return recentObject(w)
		}
	}
	o, err := object(ctx, s.readers, key)
	if err != nil {
		return store.Object{}, s.readError(ctx, err)
	}
	return o, nil
}

func noObject(key store.Key) error {
	return fault.New(fault.NotFound, "%s %q does not exist", key.Kind, key.ID)
}

// recentObject is the object as a write left it.
func recentObject(w *groupcommit.Write) (store.Object, error) {
	if w.Deleted {
		return store.Object{}, noObject(w.Key)
	}
	return store.Object{Key: w.Key, Revision: w.Revision, At: w.At, Value: bytes.Clone(w.Value)}, nil
}

// reader is a connection to read with, or a transaction.
type reader interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// folded is the revision up to which the tables have everything.
func (s *Store) folded(ctx context.Context, from reader) (newest store.Revision, err error) {
	if err = from.QueryRowContext(ctx, "SELECT coalesce(max(last), 0) FROM feed").Scan(&newest); err != nil {
		return 0, s.readError(ctx, err)
	}
	return newest, nil
}

// object reads an object of the tables.
func object(ctx context.Context, from reader, key store.Key) (store.Object, error) {
	place := groupcommit.Place(key.ID)
	return scanObject(from.QueryRowContext(ctx, selectObject, string(key.Kind), place), key, place)
}

const selectObject = "SELECT revision, at, value, sum FROM object WHERE kind = ?1 AND place = ?2"

func scanObject(row *sql.Row, key store.Key, place string) (store.Object, error) {
	o := store.Object{Key: key}
	var has int64
	err := row.Scan(&o.Revision, &o.At, &o.Value, &has)
	if errors.Is(err, sql.ErrNoRows) {
		err = noObject(key)
	}
	if err == nil {
		err = checkObject(&o, place, has)
	}
	if err != nil {
		return store.Object{}, err
	}
	return o, nil
}

// List implements store.Store.
func (s *Store) List(ctx context.Context, kind store.Kind, opts store.Options) iter.Seq2[store.Object, error] {
	return func(yield func(store.Object, error) bool) {
		if err := opts.Check(); err != nil {
			yield(store.Object{}, err)
			return
		}
		var more bool
		var err error
		if r := s.writer.recent.Load(); r.has(kind) {
			more, err = s.listBoth(ctx, r, kind, opts, yield)
		} else {
			more, err = list(ctx, s.readers, kind, opts, yield)
		}
		if err != nil && more {
			yield(store.Object{}, s.readError(ctx, err))
		}
	}
}

// listBoth lists the tables with the recent commits laid over them.
func (s *Store) listBoth(ctx context.Context, r *recent, kind store.Kind, opts store.Options, yield func(store.Object, error) bool) (more bool, err error) {
	tx, err := s.readers.BeginTx(ctx, nil)
	if err != nil {
		return true, err
	}
	defer func() { _ = tx.Rollback() }() // it only read
	folded, err := s.folded(ctx, tx)
	if err != nil {
		return true, err
	}
	over := newOverlay(r.after(folded), kind, opts, yield)
	if opts.Limit > 0 {
		opts.Limit += len(over.hides) // for so many rows may not count
	}
	if more, err = list(ctx, tx, kind, opts, over.row); more && err == nil {
		over.rest()
	}
	return more, err
}

// list yields the rows; more is false when the consumer has had enough.
func list(ctx context.Context, from reader, kind store.Kind, opts store.Options, yield func(store.Object, error) bool) (more bool, err error) {
	query, args := listQuery(kind, opts)
	rows, err := from.QueryContext(ctx, query, args...)
	if err != nil {
		return true, err
	}
	more, err = eachObject(rows, kind, yield)
	return more, errors.Join(err, rows.Close())
}

// eachObject is list for rows that are there.
func eachObject(rows *sql.Rows, kind store.Kind, yield func(store.Object, error) bool) (more bool, err error) {
	for rows.Next() {
		o := store.Object{Key: store.Key{Kind: kind}}
		var at string
		var has int64
		if err := rows.Scan(&at, &o.Revision, &o.At, &o.Value, &has); err != nil {
			return true, err
		}
		o.ID = groupcommit.PlaceID(at)
		if err := checkObject(&o, at, has); err != nil {
			return true, err
		}
		if !yield(o, nil) {
			return false, nil
		}
	}
	return true, rows.Err()
}

func listQuery(kind store.Kind, opts store.Options) (query string, args []any) {
	query, args = "SELECT place, revision, at, value, sum FROM object WHERE kind = ?", []any{string(kind)}
	bound := func(condition string, value any) {
		query += " AND " + condition
		args = append(args, value)
	}
	if opts.After != "" {
		bound(map[bool]string{false: "place > ?", true: "place < ?"}[opts.Desc], groupcommit.Place(opts.After))
	}
	if opts.ByAt {
		query += " AND at <> 0"
	}
	if opts.Since != 0 {
		bound("at >= ?", opts.Since)
	}
	if opts.Until != 0 {
		bound("at < ?", opts.Until)
	}
	direction := map[bool]string{false: " ASC", true: " DESC"}[opts.Desc]
	query += " ORDER BY "
	if opts.ByAt {
		query += "at" + direction + ", "
	}
	query += "place" + direction
	if opts.Limit > 0 {
		query += " LIMIT ?"
		args = append(args, opts.Limit)
	}
	return query, args
}

// Revision implements store.Store.
func (s *Store) Revision(ctx context.Context) (store.Revision, error) {
	newest := s.writer.recent.Load().revision()
	folded, err := s.folded(ctx, s.readers)
	return max(newest, folded), err
}

// Changes implements store.Store.
func (s *Store) Changes(ctx context.Context, after store.Revision, limit int) ([]store.Change, error) {
	if limit <= 0 {
		return nil, fault.New(fault.Invalid, "the limit of changes is not positive: %d", limit).At("limit")
	}
	changes, _, err := s.stored(ctx, after, limit)
	return changes, err
}

// stored reads the feed, as at one moment: its rows and then what is recent. last is the
// revision up to which it read, which need not have changed anything.
func (s *Store) stored(ctx context.Context, after store.Revision, limit int) (changes []store.Change, last store.Revision, err error) {
	r := s.writer.recent.Load()
	tx, err := s.readers.BeginTx(ctx, nil)
	if err != nil {
		return nil, 0, s.readError(ctx, err)
	}
	defer func() { _ = tx.Rollback() }() // it only read
	folded, err := s.folded(ctx, tx)
	if err != nil {
		return nil, 0, err
	}
	r = r.after(folded)
	if err := s.checkKept(ctx, tx, after, max(folded, r.revision())); err != nil {
		return nil, 0, err
	}
	changes, last, err = readFeed(ctx, tx, after, limit)
	if err == nil {
		changes, last = r.follow(changes, last, limit)
		changes, last = groupcommit.WholeTransactions(changes, limit, last)
		err = readValues(ctx, tx, r, changes)
	}
	if err != nil {
		return nil, 0, s.readError(ctx, err)
	}
	return changes, last, nil
}

// checkKept refuses a revision after which transactions are missing; newest is the
// one that the store has reached.
func (s *Store) checkKept(ctx context.Context, tx *sql.Tx, after, newest store.Revision) error {
	var oldest store.Revision
	err := tx.QueryRowContext(ctx, "SELECT coalesce((SELECT first FROM feed ORDER BY last LIMIT 1), 1)").Scan(&oldest)
	switch {
	case err != nil:
		return s.readError(ctx, err)
	case after < oldest-1:
		return fault.New(fault.Compacted, "the feed after revision %d is no longer kept: it begins with %d", after, oldest)
	case after > newest:
		return fault.New(fault.Compacted, "the store has not reached revision %d: its newest is %d", after, newest)
	}
	return nil
}

// readFeed reads rows of the feed until they have more changes than the limit.
func readFeed(ctx context.Context, tx *sql.Tx, after store.Revision, limit int) (changes []store.Change, last store.Revision, err error) {
	last = after
	rows, err := tx.QueryContext(ctx, "SELECT last, first, entries, sum FROM feed WHERE last > ?1 ORDER BY last", int64(after))
	if err != nil {
		return nil, 0, err
	}
	for len(changes) < limit && rows.Next() {
		var first store.Revision
		var entries string
		var has int64
		if err = rows.Scan(&last, &first, &entries, &has); err == nil {
			err = checkRow(last, first, entries, has)
		}
		if err == nil {
			changes, err = groupcommit.ParseEntries(changes, entries, first, after)
		}
		if err != nil {
			return nil, 0, errors.Join(err, rows.Close())
		}
	}
	if err = errors.Join(rows.Err(), rows.Close()); err != nil {
		return nil, 0, err
	}
	return changes, last, nil
}

// readValues fills in the newest value of every object that was changed.
func readValues(ctx context.Context, tx *sql.Tx, r *recent, changes []store.Change) error {
	get, err := tx.PrepareContext(ctx, selectObject)
	if err != nil {
		return err
	}
	values := make(map[store.Key][]byte, len(changes))
	for i := range changes {
		c := &changes[i]
		value, known := values[c.Key]
		if !known {
			if value, err = readValue(ctx, get, r, c.Key); err != nil {
				return errors.Join(err, get.Close())
			}
			values[c.Key] = value
		}
		c.Value = value
	}
	return get.Close()
}

// readValue returns the newest value of an object, nil if it was deleted.
func readValue(ctx context.Context, get *sql.Stmt, r *recent, key store.Key) ([]byte, error) {
	if w := r.find(key); w != nil {
		return w.Value, nil
	}
	place := groupcommit.Place(key.ID)
	o, err := scanObject(get.QueryRowContext(ctx, string(key.Kind), place), key, place)
	if fault.Is(err, fault.NotFound) {
		return nil, nil
	}
	return o.Value, err
}
