package postgres

import (
	"context"
	"embed"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/readlease"
	"github.com/drover-project/drover/internal/store"
	"github.com/drover-project/drover/internal/store/format"
	"github.com/drover-project/drover/internal/store/groupcommit"
	"github.com/drover-project/drover/internal/store/schema"
)

// KeepRevisions is how many of the newest revisions stay in the feed, unless
// Options say otherwise.
const KeepRevisions store.Revision = 1_000_000

// DefaultSchema holds the tables where the URL names no search_path.
const DefaultSchema = "drover"

// Options adjust a store. The zero value is meant for use.
type Options struct {
	// Now is the clock by which leases expire; nil is the server's.
	Now func() time.Time
	// Keep is how many of the newest revisions the feed keeps at least; zero is
	// KeepRevisions.
	Keep store.Revision
}

// Store is the store in one schema of a database. It implements store.Shared.
type Store struct {
	*groupcommit.Front

	// points serves single reads, lists the ones that are held open: a list may
	// read other objects while it goes on, and must not wait for itself.
	points, lists *pgxpool.Pool
	writer        *writer
	listener      *listener
	settle        time.Duration // groupcommit.SettleTime, but in tests
	closing       sync.Once
	closed        error
}

var _ store.Shared = (*Store)(nil)

//go:embed migrations/*.sql
var migrationFiles embed.FS

// How many connections readers may have at the most; a controller has two more.
const (
	maxPoints = 4
	maxLists  = 16
)

// openTime bounds how long the server may take to be ready at the start.
const openTime = 30 * time.Second

// Open opens the store that a URL names (postgres://user:password@host/database,
// with the parameters that pgx knows), and makes its tables where they are
// missing. The tables are in the schema that search_path names, by default
// DefaultSchema.
func Open(ctx context.Context, url string, opts Options) (_ *Store, err error) {
	if opts.Keep == 0 {
		opts.Keep = KeepRevisions
	}
	cfg, err := parse(url)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, openTime)
	defer cancel()
	conn, err := pgx.ConnectConfig(ctx, cfg.ConnConfig)
	if err != nil {
		return nil, opening(err)
	}
	s := &Store{settle: groupcommit.SettleTime}
	defer func() {
		if err != nil {
			s.release(conn)
		}
	}()
	if err := migrate(ctx, conn, cfg.ConnConfig.RuntimeParams["search_path"]); err != nil {
		return nil, opening(err)
	}
	if err := prepare(ctx, conn); err != nil {
		return nil, opening(fmt.Errorf("cannot prepare to write: %w", err))
	}
	var newest store.Revision
	if err := conn.QueryRow(ctx, "SELECT revision FROM head").Scan(&newest); err != nil {
		return nil, opening(fmt.Errorf("cannot read the newest revision: %w", err))
	}
	s.Front = groupcommit.NewFront(newest, s.stored)
	if s.points, err = pool(ctx, cfg, maxPoints); err != nil {
		return nil, err
	}
	if s.lists, err = pool(ctx, cfg, maxLists); err != nil {
		return nil, err
	}
	s.writer = newWriter(conn, cfg.ConnConfig, opts, newest)
	if s.listener, err = listen(ctx, cfg.ConnConfig, s.Front, s.writer); err != nil {
		return nil, err
	}
	go s.writer.run(s.Front)
	return s, nil
}

// Lend implements store.Shared.
func (s *Store) Lend(l *readlease.Lessor) { s.writer.lessor.Store(l) }

// sessionParams are those of every session, unless the URL says otherwise. A controller that is paused, or cut off, in
// the midst of a transaction keeps the lock that orders the writers, and nobody else could lead: the server is to end
// its session before the writers of others have lost patience, and a connection to nobody before a lease expires.
//
// A store that has a format takes leases from sessions alone that say which formats they know
// (migrations/0003_format_2.sql).
var sessionParams = map[string]string{
	"drover.format":                       strconv.Itoa(format.Newest),
	"search_path":                         DefaultSchema,
	"application_name":                    "drover",
	"idle_in_transaction_session_timeout": "3s",
	"tcp_keepalives_idle":                 "5",
	"tcp_keepalives_interval":             "2",
	"tcp_keepalives_count":                "3",
}

// parse reads the URL of a store.
func parse(url string) (*pgxpool.Config, error) {
	cfg, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, fault.New(fault.Invalid, "the URL of the store cannot be read: %w", err).
			WithHint("it looks like postgres://user:password@host:5432/database")
	}
	params := cfg.ConnConfig.RuntimeParams
	for name, value := range sessionParams {
		if params[name] == "" {
			params[name] = value
		}
	}
	return cfg, nil
}

// release lets go of what an Open that failed had.
func (s *Store) release(conn *pgx.Conn) {
	for _, p := range []*pgxpool.Pool{s.points, s.lists} {
		if p != nil {
			p.Close()
		}
	}
	_ = conn.Close(context.Background()) // nothing is under way
}

func pool(ctx context.Context, cfg *pgxpool.Config, most int32) (*pgxpool.Pool, error) {
	c := cfg.Copy()
	c.MaxConns = most
	p, err := pgxpool.NewWithConfig(ctx, c)
	if err != nil {
		return nil, unreachable(err)
	}
	return p, nil
}

// migrate brings the schema up to date. Several controllers may start at once:
// an advisory lock lets one go first.
func migrate(ctx context.Context, conn *pgx.Conn, name string) error {
	steps, err := schema.Steps(migrationFiles)
	if err != nil {
		return err
	}
	return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		quoted := pgx.Identifier{name}.Sanitize()
		for _, statement := range []string{
			"SELECT pg_advisory_xact_lock(hashtextextended('drover schema ' || current_database(), 0))",
			"CREATE SCHEMA IF NOT EXISTS " + quoted,
			"CREATE TABLE IF NOT EXISTS " + quoted + ".schema_version (one bool PRIMARY KEY CHECK (one), version bigint NOT NULL)",
		} {
			if _, err := tx.Exec(ctx, statement); err != nil {
				if answer, certain := refusal(err); !certain || fault.Is(answer, fault.Exhausted) {
					return err
				}
				return fault.New(fault.Environment, "cannot prepare the schema %s: %w", name, err).
					WithHint("the user needs the right to make a schema in the database, or to use the one that search_path names")
			}
		}
		var have int64
		if err := tx.QueryRow(ctx, schemaVersion).Scan(&have); err != nil {
			return err
		}
		missing, err := schema.Missing(steps, have)
		if err != nil {
			return err
		}
		return apply(ctx, tx, missing)
	})
}

// transaction is one that is open.
type transaction interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// apply takes steps of the schema.
func apply(ctx context.Context, tx transaction, steps []schema.Step) error {
	for _, step := range steps {
		if _, err := tx.Exec(ctx, step.SQL); err != nil {
			return fmt.Errorf("migration %s: %w", step.Name, err)
		}
		if _, err := tx.Exec(ctx, "INSERT INTO schema_version VALUES (true, $1) ON CONFLICT (one) DO UPDATE SET version = $1", step.Version); err != nil {
			return fmt.Errorf("migration %s: %w", step.Name, err)
		}
	}
	return nil
}

// raise takes the steps of a format, within a transaction that writes. A table that is
// being read, for a backup say, is not waited for long: nobody could write meanwhile.
func raise(ctx context.Context, tx transaction, to int) error {
	steps, err := schema.Steps(migrationFiles)
	if err != nil {
		return err
	}
	var have int64
	if err := tx.QueryRow(ctx, schemaVersion).Scan(&have); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, "SET LOCAL lock_timeout = '1s'"); err != nil {
		return err
	}
	return apply(ctx, tx, schema.Raise(steps, have, to))
}

const schemaVersion = "SELECT coalesce(max(version), 0) FROM schema_version"

// Close implements store.Store.
func (s *Store) Close() error {
	s.closing.Do(func() {
		s.CloseQueue()
		s.writer.end()
		s.listener.end()
		s.CloseFeed(groupcommit.ErrClosed)
		s.points.Close()
		s.lists.Close()
		s.closed = s.writer.close()
	})
	return s.closed
}
