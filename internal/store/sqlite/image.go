package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/scratch"
	"github.com/drover-project/drover/internal/store"
	"github.com/drover-project/drover/internal/store/format"
	"github.com/drover-project/drover/internal/store/groupcommit"
	"github.com/drover-project/drover/internal/store/image"
	"github.com/drover-project/drover/internal/store/schema"
)

// Image hands out what the store in a directory holds at one moment, also while
// a controller uses it. SQLite makes a copy first (VACUUM INTO), in the
// first of the places that has room for it and for the store to grow meanwhile: that takes the writer no time, where a long
// reading would keep its log from being emptied. Errors: fault.WrongState for a store that is damaged, fault.Exhausted where there is no room.
func Image(ctx context.Context, dir string, places []string, use func(*image.Image) error) (err error) {
	file := filepath.Join(dir, FileName)
	if _, err := os.Stat(file); err != nil {
		return fault.New(fault.NotFound, "there is no store in %s: %w", dir, err)
	}
	committed, err := markOf(dir)
	if err != nil {
		return err
	}
	place, err := roomIn(file, places)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, place.Remove()) }()
	copied := filepath.Join(place.Path, FileName)
	if err = vacuum(ctx, file, copied); err == nil {
		err = foldCopy(copied)
	}
	if err != nil {
		return unreadable(err)
	}
	db, err := sql.Open("sqlite", dsn(copied, "query_only(1)"))
	if err != nil {
		return unreadable(err)
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	img := &image.Image{Objects: allObjects(ctx, db), Feed: allRows(ctx, db)}
	err = db.QueryRowContext(ctx, "SELECT (SELECT coalesce(max(last), 0) FROM feed), (SELECT coalesce(max(epoch), 0) FROM lease)").Scan(&img.Revision, &img.Epoch)
	if err == nil {
		err = lookFit(ctx, db, img)
	}
	if err != nil {
		return unreadable(err)
	}
	if img.Revision < committed {
		return fault.New(fault.WrongState, "the store ends with revision %d, and revision %d was committed; its log %s-wal is damaged or missing", img.Revision, committed, FileName)
	}
	return use(img)
}

// imageMark begins the names of directories with copies that are read.
const imageMark = ".drover-image-"

// roomIn makes a directory for a copy of a database in the first place that has room for it. The error is that of the first one. Copies of processes that were
// killed, which may be what the room is missing for, go first.
func roomIn(database string, places []string) (dir *scratch.Dir, err error) {
	for _, place := range places {
		scratch.Clear(place, imageMark)
		why := haveRoom(database, place)
		if why == nil {
			if dir, why = scratch.NewDir(place, imageMark); why == nil {
				return dir, nil
			}
		}
		if err == nil {
			err = copyError(why)
		}
	}
	if full, ok := errors.AsType[*fault.Error](err); ok && full.Code == fault.Exhausted {
		err = full.WithHint("make room, or name a directory that has it: TMPDIR")
	}
	return nil, err
}

// lookFit reads the format, and compares it with the schema.
func lookFit(ctx context.Context, db *sql.DB, img *image.Image) error {
	o, err := object(ctx, db, store.FormatKey)
	switch {
	case fault.Is(err, fault.NotFound):
		img.Format = format.First
	case err != nil:
		return err
	default:
		img.Format, _ = format.Parse(o.Value) // zero is told
	}
	var have int64
	if err := db.QueryRowContext(ctx, schemaVersion).Scan(&have); err != nil {
		return err
	}
	steps, err := schema.Steps(migrationFiles)
	img.Unfit = schema.Agree(steps, have, img.Format)
	return err
}

func vacuum(ctx context.Context, from, to string) error {
	db, err := sql.Open("sqlite", dsn(from))
	if err != nil {
		return err
	}
	_, err = db.ExecContext(ctx, "VACUUM INTO ?", to)
	return errors.Join(err, db.Close())
}

// foldCopy has the tables of a copy take in what is recent, so that they are the
// whole store.
func foldCopy(file string) error {
	c, err := openConn(dsn(file, "synchronous(off)"))
	if err != nil {
		return err
	}
	w, err := prepareWriter(c, Options{Now: time.Now})
	if err != nil {
		return errors.Join(err, c.raw.Close())
	}
	if r := w.recent.Load(); len(r.commits) > 0 {
		nothing := &groupcommit.Batch{First: w.revision + 1, Revision: w.revision}
		if err = w.sql.begin.exec(); err == nil {
			err = w.fold(r, nothing)
		}
		if err == nil {
			err = w.sql.commit.exec()
		}
	}
	return errors.Join(err, w.sql.close(), c.raw.Close())
}

// unreadable is the error of a copy that could not be made or read: fault.WrongState, if that is because of what the store holds, and what it is otherwise.
func unreadable(err error) error {
	if _, ok := errors.AsType[*fault.Error](err); ok || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	code := 0
	if e, ok := errors.AsType[*sqlite.Error](err); ok {
		code = e.Code()
	}
	switch {
	case noRoom(err):
		return fault.New(fault.Exhausted, "there was no room for a copy of the store: %w", err).WithHint("make room, or name a directory that has it: TMPDIR")
	case locked(err):
		return fault.New(fault.Unavailable, "another program keeps the store's database locked: %w", err).WithHint("end what has %s open", FileName)
	case code&0xff == sqlite3.SQLITE_INTERRUPT:
		return fault.New(fault.Canceled, "the store was not read to its end: %w", err)
	case slices.Contains(passing, code&0xff) && code != sqlite3.SQLITE_IOERR_SHORT_READ:
		return fault.New(fault.Environment, "the store cannot be read: %w", err).WithHint("see to the disk, and to who may read and write there")
	}
	return fault.New(fault.WrongState, "the store cannot be read: %w", err).WithHint("restore a backup")
}

// passing are the errors of SQLite that are about the machine, and not about what a database holds.
var passing = []int{sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_AUTH}

func allObjects(ctx context.Context, db *sql.DB) func(func(store.Object, error) bool) {
	return func(yield func(store.Object, error) bool) {
		rows, err := db.QueryContext(ctx, "SELECT kind, place, revision, at, value, sum FROM object ORDER BY kind, place")
		if err != nil {
			yield(store.Object{}, unreadable(err))
			return
		}
		defer func() { _ = rows.Close() }() // what it has to say is asked of Err
		for rows.Next() {
			var o store.Object
			var place string
			var has int64
			err := rows.Scan(&o.Kind, &place, &o.Revision, &o.At, &o.Value, &has)
			if err == nil {
				o.ID = groupcommit.PlaceID(place)
				err = checkObject(&o, place, has)
			}
			if err != nil {
				err = unreadable(err)
			}
			if !yield(o, err) {
				return
			}
		}
		if err := rows.Err(); err != nil {
			yield(store.Object{}, unreadable(err))
		}
	}
}

func allRows(ctx context.Context, db *sql.DB) func(func(image.Row, error) bool) {
	return func(yield func(image.Row, error) bool) {
		rows, err := db.QueryContext(ctx, "SELECT last, first, entries, sum FROM feed ORDER BY last")
		if err != nil {
			yield(image.Row{}, unreadable(err))
			return
		}
		defer func() { _ = rows.Close() }() // what it has to say is asked of Err
		for rows.Next() {
			var r image.Row
			var entries string
			var has int64
			err := rows.Scan(&r.Last, &r.First, &entries, &has)
			if err == nil {
				err = checkRow(r.Last, r.First, entries, has)
			}
			if err == nil {
				r.Changes, err = groupcommit.ParseEntries(nil, entries, r.First, 0)
			}
			if err != nil {
				err = unreadable(err)
			}
			if !yield(r, err) {
				return
			}
		}
		if err := rows.Err(); err != nil {
			yield(image.Row{}, unreadable(err))
		}
	}
}

// Check proves a store consistent, also while a controller uses it: SQLite's own
// structure, the sums of all rows, and that feed and objects tell one story.
func Check(ctx context.Context, dir string, places []string) (findings *image.Findings, err error) {
	own, err := integrity(ctx, filepath.Join(dir, FileName))
	if err != nil {
		return nil, err
	}
	err = Image(ctx, dir, places, func(img *image.Image) error {
		findings = image.Check(img)
		return nil
	})
	if fault.Is(err, fault.WrongState) {
		findings, err = &image.Findings{Problems: []string{err.Error()}}, nil
	}
	if err != nil {
		return nil, err
	}
	findings.Problems = append(own, findings.Problems...)
	return findings, nil
}

// integrity asks SQLite what is wrong with its database: the structure of its
// trees, and whether its indexes are those of its tables.
func integrity(ctx context.Context, file string) (problems []string, err error) {
	if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
		return nil, fault.New(fault.NotFound, "there is no store at %s", file)
	}
	db, err := sql.Open("sqlite", dsn(file, "query_only(1)"))
	if err != nil {
		return nil, fault.New(fault.Environment, "cannot open the store: %w", err)
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	rows, err := db.QueryContext(ctx, "PRAGMA integrity_check")
	if err != nil {
		return notRead(nil, err)
	}
	defer func() { _ = rows.Close() }() // what it has to say is asked of Err
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			return nil, err
		}
		if text != "ok" {
			problems = append(problems, "SQLite: "+strings.TrimSpace(text))
		}
	}
	if err := rows.Err(); err != nil {
		return notRead(problems, err)
	}
	return problems, nil
}

// notRead adds that a database cannot be read to what is wrong with it, if that is because of what it holds.
func notRead(problems []string, err error) ([]string, error) {
	if why := unreadable(err); !fault.Is(why, fault.WrongState) {
		return nil, why
	}
	return append(problems, fmt.Sprintf("SQLite cannot read it: %v", err)), nil
}

// Load makes a store in a directory that has none, with the content of an image.
// What it gives out is beyond what the image says was given out. The proof is asked of the directory in which the store is
// made, before that has its place; its error leaves all as it was. What is left in the place of a store of before, its log
// above all, would be taken for the new one's: it is put into the directory that is returned.
func Load(dir string, img *image.Image, proof func(made string) error) (aside string, err error) {
	if _, err := os.Lstat(filepath.Join(dir, FileName)); err == nil {
		return "", fault.New(fault.WrongState, "there is a store in %s already", dir).WithHint("name another place, or move it away")
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fault.New(fault.Environment, "cannot make the directory of the store: %w", err)
	}
	lock, err := lockDir(dir)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	// What is not finished has another name, so that nobody takes it for the store.
	part := filepath.Join(dir, partName)
	if err := os.RemoveAll(part); err != nil {
		return "", fault.New(fault.Environment, "cannot prepare the store: %w", err)
	}
	if err := os.Mkdir(part, 0o700); err != nil {
		return "", fault.New(fault.Environment, "cannot prepare the store: %w", err)
	}
	err = fill(part, img)
	if err == nil {
		err = proof(part)
	}
	if err == nil {
		err = giveToOwner(dir, part, lock.Name(), filepath.Join(part, FileName))
	}
	if err == nil {
		aside, err = putAside(dir)
	}
	if err != nil {
		return "", errors.Join(err, os.RemoveAll(part))
	}
	err = os.Rename(filepath.Join(part, FileName), filepath.Join(dir, FileName))
	if err = errors.Join(err, os.RemoveAll(part), syncDir(dir)); err != nil {
		return aside, fault.New(fault.Environment, "cannot put the store in its place: %w", err)
	}
	return aside, nil
}

// asideName is the directory of what was left of a store whose database was lost, below its own.
const asideName = "left-behind"

// putAside moves what belongs to a database that is lost out of the way of another one: SQLite plays a log, and a
// journal, over whatever database lies beside it. It returns where to; empty if there was nothing.
func putAside(dir string) (string, error) {
	aside := filepath.Join(dir, asideName)
	moved := ""
	for _, name := range []string{FileName + "-wal", FileName + "-shm", FileName + "-journal", markName} {
		from, to := filepath.Join(dir, name), filepath.Join(aside, name)
		if !exists(from) {
			continue
		}
		if exists(to) {
			return "", fault.New(fault.WrongState, "%s is what was left of a store, and so is %s", to, from).WithHint("move one of them away")
		}
		err := os.MkdirAll(aside, 0o700)
		if err == nil {
			err = giveToOwner(dir, aside)
		}
		if err == nil {
			err = os.Rename(from, to)
		}
		if err != nil {
			return "", fault.New(fault.Environment, "cannot put aside what was left of a store: %w", err)
		}
		moved = aside
	}
	if moved == "" {
		return "", nil
	}
	if err := errors.Join(syncDir(aside), syncDir(dir)); err != nil {
		return "", fault.New(fault.Environment, "cannot put aside what was left of a store: %w", err)
	}
	return moved, nil
}

// partName is the directory of a store that is being made, below its own.
const partName = "part"

// giveToOwner gives what root has made to whom the directory around it belongs: the service
// that is to open it may run as another user.
func giveToOwner(dir string, made ...string) error {
	info, err := os.Stat(filepath.Dir(dir))
	if err != nil {
		return fault.New(fault.Environment, "cannot tell to whom the store belongs: %w", err)
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	if !ok || os.Geteuid() != 0 || owner.Uid == 0 {
		return nil
	}
	for _, path := range append(made, dir) {
		if err := os.Lchown(path, int(owner.Uid), int(owner.Gid)); err != nil {
			return fault.New(fault.Environment, "cannot give the store to its owner: %w", err)
		}
	}
	return nil
}

// fill writes an image into a new database, which is whole in one file when it
// returns.
func fill(dir string, img *image.Image) error {
	file := filepath.Join(dir, FileName)
	if err := createPrivate(file); err != nil {
		return err
	}
	c, err := openConn(dsn(file, "journal_mode(wal)", "synchronous(full)", "fullfsync(1)"))
	if err != nil {
		return fault.New(fault.Environment, "cannot open %s: %w", file, err)
	}
	w, err := prepareWriter(c, Options{Now: time.Now})
	if err != nil {
		return errors.Join(err, c.raw.Close())
	}
	if err := w.sql.begin.exec(); err != nil {
		return errors.Join(err, w.sql.close(), c.raw.Close())
	}
	err = w.fill(img)
	if err == nil {
		err = w.sql.commit.exec()
	}
	if err != nil {
		c.rollback()
		if _, ok := errors.AsType[*fault.Error](err); !ok {
			err, _ = writeError(err)
		}
	}
	return errors.Join(err, w.sql.close(), c.raw.Close())
}

// fillFormat brings the schema to the format of an image.
func (w *writer) fillFormat(value []byte) error {
	to, err := store.FormatOf(value)
	if err != nil {
		return err
	}
	return raise(w.conn, to)
}

func (w *writer) fill(img *image.Image) error {
	for o, err := range img.Objects {
		if err != nil {
			return err
		}
		if o.Key == store.FormatKey {
			if err := w.fillFormat(o.Value); err != nil {
				return err
			}
		}
		if err := w.write(&groupcommit.Write{Key: o.Key, Revision: o.Revision, At: o.At, Value: o.Value}); err != nil {
			return err
		}
	}
	if img.Epoch > 0 {
		if err := w.writeLease(store.Lease{Name: image.LeaderLease, Epoch: img.Epoch, Expires: time.UnixMicro(0)}); err != nil {
			return err
		}
	}
	// The feed begins anew, with a transaction that changed nothing.
	return w.writeRow(img.Revision+1, img.Revision+1, "")
}
