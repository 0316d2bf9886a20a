package sqlite

import (
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/store"
	"github.com/drover-project/drover/internal/store/groupcommit"
	"github.com/drover-project/drover/internal/store/schema"
)

// FileName is the database's name in its directory; SQLite adds -wal and -shm.
const FileName = "drover.db"

// KeepRevisions is how many of the newest revisions stay in the feed, unless Options say
// otherwise. At about 30 bytes each that is 30 MB of disk.
const KeepRevisions store.Revision = 1_000_000

// oldestSQLite is the first version without the WAL reset race, which could lose
// commits: one connection resets the log while another writes to it.
const oldestSQLite = "3.51.3"

// Options adjust a store. The zero value is meant for use.
type Options struct {
	// Now is the clock by which leases expire; nil is the system's.
	Now func() time.Time
	// Keep is how many of the newest revisions the feed keeps at least; zero is KeepRevisions.
	Keep store.Revision
	// BeforeMove is called before a store that is there is moved to a later schema, by its version; its error leaves the store as it
	// is, and unopened.
	BeforeMove func(to int64) error
}

// Store is the store in one directory. It implements store.Store.
type Store struct {
	*groupcommit.Front

	lock    *os.File
	readers *sql.DB
	keep    store.Revision
	writer  *writer
	closing sync.Once
	closed  error
}

var _ store.Store = (*Store)(nil)

// Open opens the store in a directory, and makes both if they are missing. It
// answers fault.Busy while another process, or another Open, has the directory.
func Open(dir string, opts Options) (*Store, error) {
	if opts.Now == nil {
		opts.Now = time.Now
	}
	if opts.Keep == 0 {
		opts.Keep = KeepRevisions
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fault.New(fault.Environment, "cannot make the directory of the store: %w", err)
	}
	lock, err := lockDir(dir)
	if err != nil {
		return nil, err
	}
	s, err := open(dir, opts)
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	s.lock = lock
	go s.writer.run(s.Front)
	return s, nil
}

func open(dir string, opts Options) (*Store, error) {
	file := filepath.Join(dir, FileName)
	if err := notLost(file); err != nil {
		return nil, err
	}
	if err := createPrivate(file); err != nil {
		return nil, err
	}
	c, err := openWriting(file)
	if err != nil {
		return nil, opening(file, err)
	}
	w, err := prepareWriter(c, opts)
	if err != nil {
		return nil, errors.Join(opening(file, err), c.raw.Close())
	}
	if err := w.watchOver(file); err != nil {
		return nil, errors.Join(err, w.sql.close(), c.raw.Close())
	}
	readers, err := sql.Open("sqlite", dsn(file, "query_only(1)"))
	if err != nil {
		return nil, errors.Join(err, w.close())
	}
	// Readers are not limited in number: a listing may read other objects while it goes on.
	const idleReaders = 4
	readers.SetMaxIdleConns(idleReaders)
	s := &Store{readers: readers, keep: opts.Keep, writer: w}
	s.Front = groupcommit.NewFront(w.revision, s.stored)
	return s, nil
}

// opening is the error of a database that could not be opened. That there is no room passes.
func opening(file string, err error) error {
	if noRoom(err) {
		return full(fmt.Errorf("cannot open %s: %w", file, err))
	}
	if _, ok := errors.AsType[*fault.Error](err); ok {
		return fmt.Errorf("cannot open %s: %w", file, err)
	}
	return fault.New(fault.Environment, "cannot open %s: %w", file, err)
}

func openWriting(file string) (*conn, error) {
	return openConn(dsn(file, "journal_mode(wal)", "synchronous(full)", "fullfsync(1)", "cache_size(-16384)"))
}

func prepareWriter(c *conn, opts Options) (*writer, error) {
	if err := checkVersion(c); err != nil {
		return nil, err
	}
	steps, err := schema.Steps(migrationFiles)
	if err != nil {
		return nil, err
	}
	if err := migrate(c, steps, opts.BeforeMove); err != nil {
		return nil, err
	}
	if err := checkFeed(c); err != nil {
		return nil, err
	}
	return newWriter(c, opts)
}

// watchOver gives the writer what it needs to notice that its files were
// damaged before or disappear now.
func (w *writer) watchOver(file string) (err error) {
	w.file = file
	if w.log, err = openLog(file); err != nil {
		return fault.New(fault.Environment, "cannot find the store's log: %w", err)
	}
	if w.place, err = newPlace(file); err != nil {
		return err
	}
	if w.mark, err = openMark(filepath.Dir(file)); err != nil {
		return err
	}
	if err = w.mark.verify(w.revision); err != nil {
		return errors.Join(err, w.mark.file.Close())
	}
	w.mark.set(w.revision)
	return nil
}

func dsn(file string, pragmas ...string) string {
	q := url.Values{"_pragma": append(pragmas, "busy_timeout(10000)")}
	return (&url.URL{Scheme: "file", Opaque: (&url.URL{Path: file}).EscapedPath(), RawQuery: q.Encode()}).String()
}

// notLost refuses to begin anew where there has been a store: its database is
// missing or empty, but what lay beside it is there.
func notLost(file string) error {
	if info, err := os.Stat(file); err == nil && info.Size() > 0 {
		return nil
	}
	if part := filepath.Join(filepath.Dir(file), partName); exists(part) {
		return fault.New(fault.WrongState, "a store was being made in %s, and that did not come to its end", filepath.Dir(file)).
			WithHint("restore the backup once more; to begin with an empty store, remove %s", part)
	}
	for _, beside := range []string{file + "-wal", filepath.Join(filepath.Dir(file), markName)} {
		if info, err := os.Stat(beside); err == nil && info.Size() > 0 {
			return fault.New(fault.WrongState, "the store's database %s is missing or empty, though %s is there", file, filepath.Base(beside)).
				WithHint("put the database back or restore a backup; to begin with an empty store, remove %s", filepath.Dir(file))
		}
	}
	return nil
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// createPrivate makes sure that the database file exists and that nobody but
// its owner can read it: jobs carry secrets. SQLite gives its other files the same mode.
func createPrivate(file string) error {
	const private = 0o600
	f, err := os.OpenFile(file, os.O_RDWR|os.O_CREATE, private)
	if err != nil {
		return fault.New(fault.Environment, "cannot open the store: %w", err)
	}
	err = errors.Join(f.Chmod(private), f.Close(), syncDir(filepath.Dir(file)))
	if err != nil {
		return fault.New(fault.Environment, "cannot prepare %s: %w", file, err)
	}
	return nil
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

func checkVersion(c *conn) error {
	s, err := c.prepare("SELECT sqlite_version()")
	if err != nil {
		return err
	}
	version, err := s.text()
	if err = errors.Join(err, s.raw.Close()); err != nil {
		return err
	}
	return versionError(version)
}

func versionError(version string) error {
	if !olderVersion(version, oldestSQLite) {
		return nil
	}
	return fault.New(fault.Environment, "SQLite %s can lose commits; %s is the oldest that cannot", version, oldestSQLite)
}

// olderVersion compares dotted numbers.
func olderVersion(a, b string) bool {
	as, bs := strings.Split(a, "."), strings.Split(b, ".")
	for i := range min(len(as), len(bs)) {
		an, errA := strconv.Atoi(as[i])
		bn, errB := strconv.Atoi(bs[i])
		if errA != nil || errB != nil || an != bn {
			return errA != nil || an < bn
		}
	}
	return len(as) < len(bs)
}

// Close implements store.Store.
func (s *Store) Close() error {
	s.closing.Do(func() {
		s.CloseQueue()
		<-s.writer.done
		s.CloseFeed(groupcommit.ErrClosed)
		// The writer's connection is the last: it moves all that is in the log into the database,
		// so that the one file is the whole store.
		s.closed = errors.Join(s.readers.Close(), s.writer.close(), s.lock.Close())
	})
	return s.closed
}
