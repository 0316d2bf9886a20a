package postgres

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/store"
	"github.com/drover-project/drover/internal/store/format"
	"github.com/drover-project/drover/internal/store/groupcommit"
	"github.com/drover-project/drover/internal/store/image"
	"github.com/drover-project/drover/internal/store/schema"
)

// connect opens one connection to the store that a URL names, and makes its
// tables where they are missing.
func connect(ctx context.Context, url string) (*pgx.Conn, error) {
	cfg, err := parse(url)
	if err != nil {
		return nil, err
	}
	conn, err := pgx.ConnectConfig(ctx, cfg.ConnConfig)
	if err != nil {
		return nil, unreachable(err)
	}
	if err := migrate(ctx, conn, cfg.ConnConfig.RuntimeParams["search_path"]); err != nil {
		return nil, errors.Join(err, conn.Close(context.Background()))
	}
	return conn, nil
}

// Exists tells whether there is a store in the schema that a URL names.
func Exists(ctx context.Context, url string) (there bool, err error) {
	cfg, err := parse(url)
	if err != nil {
		return false, err
	}
	conn, err := pgx.ConnectConfig(ctx, cfg.ConnConfig)
	if err != nil {
		return false, unreachable(err)
	}
	defer func() { err = errors.Join(err, conn.Close(context.Background())) }()
	table := pgx.Identifier{cfg.ConnConfig.RuntimeParams["search_path"], "schema_version"}.Sanitize()
	if err := conn.QueryRow(ctx, "SELECT to_regclass($1) IS NOT NULL", table).Scan(&there); err != nil {
		return false, readingFailed(err)
	}
	return there, nil
}

// Image hands out what the store that a URL names holds at one moment, also
// while controllers use it: one transaction of the database that only reads.
func Image(ctx context.Context, url string, use func(*image.Image) error) (err error) {
	conn, err := connect(ctx, url)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close(context.Background())) }()
	moment := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	return pgx.BeginTxFunc(ctx, conn, moment, func(tx pgx.Tx) error {
		img := &image.Image{}
		err := tx.QueryRow(ctx, "SELECT revision, (SELECT coalesce(max(epoch), 0) FROM lease) FROM head").Scan(&img.Revision, &img.Epoch)
		if err == nil {
			err = lookFit(ctx, tx, img)
		}
		if err != nil {
			return readingFailed(err)
		}
		img.Objects, img.Feed = allObjects(ctx, tx), allRows(ctx, tx)
		return use(img)
	})
}

// lookFit reads the format, and compares it with the schema.
func lookFit(ctx context.Context, tx pgx.Tx, img *image.Image) error {
	var value []byte
	err := tx.QueryRow(ctx, "SELECT value FROM object WHERE kind = $1 AND place = $2", string(store.FormatKey.Kind), groupcommit.Place(store.FormatKey.ID)).Scan(&value)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		img.Format = format.First
	case err != nil:
		return err
	default:
		img.Format, _ = format.Parse(value) // zero is told
	}
	var have int64
	if err := tx.QueryRow(ctx, schemaVersion).Scan(&have); err != nil {
		return err
	}
	steps, err := schema.Steps(migrationFiles)
	img.Unfit = schema.Agree(steps, have, img.Format)
	return err
}

func readingFailed(err error) error {
	if _, ok := errors.AsType[*fault.Error](err); ok {
		return err
	}
	return fault.New(fault.Unavailable, "cannot read the store: %w", err)
}

// pieceRows is how many rows are fetched at once: one connection serves both the
// objects and the feed, so neither result may be held open.
const pieceRows = 2000

func allObjects(ctx context.Context, tx pgx.Tx) iter.Seq2[store.Object, error] {
	return func(yield func(store.Object, error) bool) {
		kind, place := "", ""
		for {
			rows, err := tx.Query(ctx, "SELECT kind, place, revision, at, value FROM object WHERE (kind, place) > ($1, $2) ORDER BY kind, place LIMIT $3", kind, place, pieceRows)
			if err != nil {
				yield(store.Object{}, readingFailed(err))
				return
			}
			piece, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (o store.Object, err error) {
				err = row.Scan(&o.Kind, &place, &o.Revision, &o.At, &o.Value)
				o.ID = groupcommit.PlaceID(place)
				return o, err
			})
			if err != nil {
				yield(store.Object{}, readingFailed(err))
				return
			}
			for _, o := range piece {
				kind = string(o.Kind)
				if !yield(o, nil) {
					return
				}
			}
			if len(piece) < pieceRows {
				return
			}
		}
	}
}

func allRows(ctx context.Context, tx pgx.Tx) iter.Seq2[image.Row, error] {
	return func(yield func(image.Row, error) bool) {
		var after store.Revision
		for {
			rows, err := tx.Query(ctx, "SELECT last, first, entries FROM feed WHERE last > $1 ORDER BY last LIMIT $2", after, pieceRows)
			if err != nil {
				yield(image.Row{}, readingFailed(err))
				return
			}
			piece, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (r image.Row, err error) {
				var entries string
				if err = row.Scan(&r.Last, &r.First, &entries); err == nil {
					r.Changes, err = groupcommit.ParseEntries(nil, entries, r.First, 0)
				}
				return r, err
			})
			if err != nil {
				yield(image.Row{}, readingFailed(err))
				return
			}
			for _, r := range piece {
				after = r.Last
				if !yield(r, nil) {
					return
				}
			}
			if len(piece) < pieceRows {
				return
			}
		}
	}
}

// Check proves a store consistent, also while controllers use it: feed and
// objects tell one story. That its files are whole is the server's business.
func Check(ctx context.Context, url string) (findings *image.Findings, err error) {
	err = Image(ctx, url, func(img *image.Image) error {
		findings = image.Check(img)
		return nil
	})
	return findings, err
}

// Load fills a store that is empty with the content of an image, all of it or
// nothing. What the store gives out is beyond what the image says was given out.
func Load(ctx context.Context, url string, img *image.Image) (err error) {
	conn, err := connect(ctx, url)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close(context.Background())) }()
	return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		var revision store.Revision
		if err := tx.QueryRow(ctx, "SELECT revision FROM head FOR UPDATE").Scan(&revision); err != nil {
			return readingFailed(err)
		}
		if revision != 0 {
			return fault.New(fault.WrongState, "there is a store already, with revision %d", revision).
				WithHint("name another schema with search_path, or another database")
		}
		to, err := copyObjects(ctx, tx, img)
		if err != nil {
			return err
		}
		if err := raise(ctx, tx, to); err != nil {
			return fault.New(fault.Unavailable, "cannot bring the schema to format %d: %w", to, err)
		}
		return given(ctx, tx, img)
	})
}

// copyObjects writes the objects of an image, and returns the format that is among them.
func copyObjects(ctx context.Context, tx pgx.Tx, img *image.Image) (to int, err error) {
	next, stop := iter.Pull2(img.Objects)
	defer stop()
	to = format.First
	var unfit error // what is wrong with the image itself: the server makes a text of it
	_, err = tx.CopyFrom(ctx, pgx.Identifier{"object"}, []string{"kind", "place", "revision", "at", "value"}, pgx.CopyFromFunc(func() ([]any, error) {
		o, err, more := next()
		if more && err == nil && o.Key == store.FormatKey {
			to, err = store.FormatOf(o.Value)
		}
		if !more || err != nil {
			unfit = err
			return nil, err
		}
		return []any{string(o.Kind), groupcommit.Place(o.ID), int64(o.Revision), o.At, o.Value}, nil
	}))
	switch {
	case unfit != nil:
		return to, unfit
	case err != nil:
		return to, fault.New(fault.Unavailable, "cannot write the store: %w", err)
	}
	return to, nil
}

// given notes what the image's store had given out.
func given(ctx context.Context, tx pgx.Tx, img *image.Image) error {
	batch := &pgx.Batch{}
	// The feed begins anew, with a transaction that changed nothing.
	batch.Queue("INSERT INTO feed (last, first, entries) VALUES ($1, $1, '')", img.Revision+1)
	batch.Queue("UPDATE head SET revision = $1, trimmed = $2", img.Revision+1, img.Revision)
	if img.Epoch > 0 {
		batch.Queue("INSERT INTO lease (name, holder, epoch, expires) VALUES ($1, '', $2, $3)", image.LeaderLease, img.Epoch, time.UnixMicro(0).UnixMicro())
	}
	if err := tx.SendBatch(ctx, batch).Close(); err != nil {
		return fault.New(fault.Unavailable, "cannot write the store: %w", err)
	}
	return nil
}

// Advance has the store that a URL names go on behind what it may have given out after it was
// copied, by other means than Drover's: revisions behind img.Revision, epochs behind img.Epoch, and the objects that
// img has are put in place of those that are there. Errors: fault.Busy while a controller leads, fault.Conflict if the
// store is no longer at the revision was.
func Advance(ctx context.Context, url string, was store.Revision, img *image.Image) (err error) {
	conn, err := connect(ctx, url)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close(context.Background())) }()
	return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		var revision store.Revision
		var led bool
		err := tx.QueryRow(ctx, "SELECT revision FROM head FOR UPDATE").Scan(&revision)
		if err == nil {
			err = tx.QueryRow(ctx, "SELECT EXISTS (SELECT FROM lease WHERE holder <> '' AND expires > extract(epoch FROM clock_timestamp()) * 1000000)").Scan(&led)
		}
		switch {
		case err != nil:
			return readingFailed(err)
		case led:
			return fault.New(fault.Busy, "a controller leads on this store, or did a moment ago").WithHint("stop all of its controllers, and wait a quarter of a minute")
		case revision != was:
			return fault.New(fault.Conflict, "the store changed meanwhile: it is at revision %d, and was at %d", revision, was)
		}
		batch := &pgx.Batch{}
		for o, err := range img.Objects {
			if err != nil {
				return err
			}
			batch.Queue("INSERT INTO object (kind, place, revision, at, value) VALUES ($1, $2, $3, $4, $5) "+
				"ON CONFLICT (kind, place) DO UPDATE SET revision = $3, at = $4, value = $5", string(o.Kind), groupcommit.Place(o.ID), int64(o.Revision), o.At, o.Value)
		}
		batch.Queue("DELETE FROM feed")
		batch.Queue("DELETE FROM lease")
		if err := tx.SendBatch(ctx, batch).Close(); err != nil {
			return fault.New(fault.Unavailable, "cannot write the store: %w", err)
		}
		return given(ctx, tx, img)
	})
}
