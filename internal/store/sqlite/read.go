package sqlite

import (
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
	select {
	case <-s.writer.done:
		return groupcommit.ErrClosed
	default:
		return fault.New(fault.Unavailable, "cannot read the store: %w", err)
	}
}

// Get implements store.Store.
func (s *Store) Get(ctx context.Context, key store.Key) (store.Object, error) {
	o, place := store.Object{Key: key}, groupcommit.Place(key.ID)
	row := s.readers.QueryRowContext(ctx, "SELECT revision, at, value, sum FROM object WHERE kind = ?1 AND place = ?2", string(key.Kind), place)
	var has int64
	err := row.Scan(&o.Revision, &o.At, &o.Value, &has)
	if errors.Is(err, sql.ErrNoRows) {
		return store.Object{}, fault.New(fault.NotFound, "%s %q does not exist", key.Kind, key.ID)
	}
	if err != nil {
		return store.Object{}, s.readError(ctx, err)
	}
	if err := checkObject(&o, place, has); err != nil {
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
		query, args := listQuery(kind, opts)
		rows, err := s.readers.QueryContext(ctx, query, args...)
		if err != nil {
			yield(store.Object{}, s.readError(ctx, err))
			return
		}
		more, err := eachObject(rows, kind, yield)
		if err = errors.Join(err, rows.Close()); err != nil && more {
			yield(store.Object{}, s.readError(ctx, err))
		}
	}
}

// eachObject yields the rows; more is false when the consumer has had enough.
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
	var newest store.Revision
	if err := s.readers.QueryRowContext(ctx, "SELECT coalesce(max(last), 0) FROM feed").Scan(&newest); err != nil {
		return 0, s.readError(ctx, err)
	}
	return newest, nil
}

// Changes implements store.Store.
func (s *Store) Changes(ctx context.Context, after store.Revision, limit int) ([]store.Change, error) {
	if limit <= 0 {
		return nil, fault.New(fault.Invalid, "the limit of changes is not positive: %d", limit).At("limit")
	}
	changes, _, err := s.stored(ctx, after, limit)
	return changes, err
}

// stored reads the feed from the database, as at one moment. last is the
// revision up to which it read, which need not have changed anything.
func (s *Store) stored(ctx context.Context, after store.Revision, limit int) (changes []store.Change, last store.Revision, err error) {
	tx, err := s.readers.BeginTx(ctx, nil)
	if err != nil {
		return nil, 0, s.readError(ctx, err)
	}
	defer func() { _ = tx.Rollback() }() // it only read
	if err := s.checkKept(ctx, tx, after); err != nil {
		return nil, 0, err
	}
	changes, last, err = readFeed(ctx, tx, after, limit)
	if err == nil {
		err = readValues(ctx, tx, changes)
	}
	if err != nil {
		return nil, 0, s.readError(ctx, err)
	}
	return changes, last, nil
}

// checkKept refuses a revision after which transactions are missing.
func (s *Store) checkKept(ctx context.Context, tx *sql.Tx, after store.Revision) error {
	var oldest, newest store.Revision
	err := tx.QueryRowContext(ctx, "SELECT coalesce((SELECT first FROM feed ORDER BY last LIMIT 1), 1), coalesce(max(last), 0) FROM feed").Scan(&oldest, &newest)
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
	changes, last = groupcommit.WholeTransactions(changes, limit, last)
	return changes, last, nil
}

// readValues fills in the newest value of every object that was changed.
func readValues(ctx context.Context, tx *sql.Tx, changes []store.Change) error {
	get, err := tx.PrepareContext(ctx, "SELECT revision, at, value, sum FROM object WHERE kind = ?1 AND place = ?2")
	if err != nil {
		return err
	}
	values := make(map[store.Key][]byte, len(changes))
	for i := range changes {
		c := &changes[i]
		value, known := values[c.Key]
		if !known {
			o, place := store.Object{Key: c.Key}, groupcommit.Place(c.ID)
			var has int64
			err := get.QueryRowContext(ctx, string(c.Kind), place).Scan(&o.Revision, &o.At, &o.Value, &has)
			if err == nil {
				err = checkObject(&o, place, has)
			}
			if err != nil && !errors.Is(err, sql.ErrNoRows) {
				return errors.Join(err, get.Close())
			}
			value = o.Value
			values[c.Key] = value
		}
		c.Value = value
	}
	return get.Close()
}
