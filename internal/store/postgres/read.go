package postgres

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/jackc/pgx/v5"

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
	o := store.Object{Key: key}
	err := s.points.QueryRow(ctx, "SELECT revision, at, value FROM object WHERE kind = $1 AND place = $2", string(key.Kind), groupcommit.Place(key.ID)).
		Scan(&o.Revision, &o.At, &o.Value)
	if errors.Is(err, pgx.ErrNoRows) {
		return store.Object{}, fault.New(fault.NotFound, "%s %q does not exist", key.Kind, key.ID)
	}
	if err != nil {
		return store.Object{}, s.readError(ctx, err)
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
		// The end of the listing ends the query, also where rows are left.
		listing, stop := context.WithCancel(ctx)
		defer stop()
		query, args := listQuery(kind, opts)
		rows, err := s.lists.Query(listing, query, args...)
		if err != nil {
			yield(store.Object{}, s.readError(ctx, err))
			return
		}
		more, err := eachObject(rows, kind, yield)
		if !more {
			stop()
		}
		rows.Close()
		if err = errors.Join(err, rows.Err()); err != nil && more {
			yield(store.Object{}, s.readError(ctx, err))
		}
	}
}

// eachObject yields the rows; more is false when the consumer has had enough.
func eachObject(rows pgx.Rows, kind store.Kind, yield func(store.Object, error) bool) (more bool, err error) {
	for rows.Next() {
		o := store.Object{Key: store.Key{Kind: kind}}
		var place string
		if err := rows.Scan(&place, &o.Revision, &o.At, &o.Value); err != nil {
			return true, err
		}
		o.ID = groupcommit.PlaceID(place)
		if !yield(o, nil) {
			return false, nil
		}
	}
	return true, nil
}

func listQuery(kind store.Kind, opts store.Options) (query string, args []any) {
	query, args = "SELECT place, revision, at, value FROM object WHERE kind = $1", []any{string(kind)}
	bound := func(condition string, value any) {
		args = append(args, value)
		query += fmt.Sprintf(" AND "+condition, len(args))
	}
	compare, direction := "place > $%d", " ASC"
	if opts.Desc {
		compare, direction = "place < $%d", " DESC"
	}
	if opts.After != "" {
		bound(compare, groupcommit.Place(opts.After))
	}
	if opts.ByAt {
		query += " AND at <> 0"
	}
	if opts.Since != 0 {
		bound("at >= $%d", opts.Since)
	}
	if opts.Until != 0 {
		bound("at < $%d", opts.Until)
	}
	query += " ORDER BY "
	if opts.ByAt {
		query += "at" + direction + ", "
	}
	query += "place" + direction
	if opts.Limit > 0 {
		args = append(args, opts.Limit)
		query += fmt.Sprintf(" LIMIT $%d", len(args))
	}
	return query, args
}

// Revision implements store.Store.
func (s *Store) Revision(ctx context.Context) (store.Revision, error) {
	var newest store.Revision
	if err := s.points.QueryRow(ctx, "SELECT revision FROM head").Scan(&newest); err != nil {
		return 0, s.readError(ctx, err)
	}
	return newest, nil
}

// Clock implements store.Shared.
func (s *Store) Clock(ctx context.Context) (now time.Time, err error) {
	if err = s.points.QueryRow(ctx, "SELECT clock_timestamp()").Scan(&now); err != nil {
		return now, s.readError(ctx, err)
	}
	return now, nil
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
	moment := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	err = pgx.BeginTxFunc(ctx, s.points, moment, func(tx pgx.Tx) error {
		newest, err := checkKept(ctx, tx, after)
		if err != nil {
			return err
		}
		if changes, last, err = readFeed(ctx, tx, after, newest, limit); err != nil {
			return err
		}
		return readValues(ctx, tx, changes)
	})
	if err != nil {
		return nil, 0, s.readError(ctx, err)
	}
	return changes, last, nil
}

// checkKept refuses a revision after which transactions are missing, and
// returns the newest there is.
func checkKept(ctx context.Context, tx pgx.Tx, after store.Revision) (newest store.Revision, err error) {
	var oldest store.Revision
	err = tx.QueryRow(ctx, "SELECT coalesce((SELECT first FROM feed ORDER BY last LIMIT 1), 1), revision FROM head").Scan(&oldest, &newest)
	switch {
	case err != nil:
		return 0, err
	case after < oldest-1:
		return 0, fault.New(fault.Compacted, "the feed after revision %d is no longer kept: it begins with %d", after, oldest)
	case after > newest:
		return 0, fault.New(fault.Compacted, "the store has not reached revision %d: its newest is %d", after, newest)
	}
	return newest, nil
}

// readFeed reads rows until there are enough changes or none are left; a row
// need not hold any.
func readFeed(ctx context.Context, tx pgx.Tx, after, newest store.Revision, limit int) (changes []store.Change, last store.Revision, err error) {
	last = after
	for last < newest && len(changes) < limit {
		rows, err := tx.Query(ctx, "SELECT last, first, entries FROM feed WHERE last > $1 ORDER BY last LIMIT $2", last, limit)
		if err != nil {
			return nil, 0, err
		}
		var first store.Revision
		var entries string
		tag, err := pgx.ForEachRow(rows, []any{&last, &first, &entries}, func() (err error) {
			changes, err = groupcommit.ParseEntries(changes, entries, first, after)
			return err
		})
		if err != nil {
			return nil, 0, err
		}
		if tag.RowsAffected() == 0 {
			break // the newest revisions were skipped
		}
	}
	changes, last = groupcommit.WholeTransactions(changes, limit, last)
	return changes, last, nil
}

// readValues fills in the newest value of every object that was changed.
func readValues(ctx context.Context, tx pgx.Tx, changes []store.Change) error {
	values := make(map[store.Key][]byte, len(changes))
	var kinds, places []string
	for i := range changes {
		if _, seen := values[changes[i].Key]; !seen {
			values[changes[i].Key] = nil
			kinds, places = append(kinds, string(changes[i].Kind)), append(places, groupcommit.Place(changes[i].ID))
		}
	}
	rows, err := tx.Query(ctx, "SELECT kind, place, value FROM object JOIN unnest($1::text[], $2::text[]) AS e (kind, place) USING (kind, place)", kinds, places)
	if err != nil {
		return err
	}
	for rows.Next() {
		var kind, place string
		var value []byte
		if err := rows.Scan(&kind, &place, &value); err != nil {
			rows.Close()
			return err
		}
		values[store.Key{Kind: store.Kind(kind), ID: groupcommit.PlaceID(place)}] = value
	}
	for i := range changes {
		changes[i].Value = values[changes[i].Key]
	}
	return rows.Err()
}
