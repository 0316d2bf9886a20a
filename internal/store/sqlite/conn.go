package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"syscall"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/drover-project/drover/internal/fault"
)

// conn is the writer's connection. It speaks to the driver without
// database/sql in between, which would cost more than the statements do.
// Only one goroutine may use it.
type conn struct {
	raw driver.Conn
}

func openConn(dsn string) (*conn, error) {
	raw, err := new(sqlite.Driver).Open(dsn)
	if err != nil {
		return nil, err
	}
	return &conn{raw: raw}, nil
}

// script runs any number of statements without parameters.
func (c *conn) script(sql string) error {
	_, err := c.raw.(driver.ExecerContext).ExecContext(context.Background(), sql, nil)
	return err
}

// rollback ends a transaction if one is open. Its own failure says nothing that
// the error which led here does not: there may be none to end.
func (c *conn) rollback() { _ = c.script("ROLLBACK") }

func (c *conn) prepare(sql string) (*stmt, error) {
	raw, err := c.raw.Prepare(sql)
	if err != nil {
		return nil, fmt.Errorf("cannot prepare %q: %w", sql, err)
	}
	return &stmt{raw: raw}, nil
}

// integer runs a query for one integer.
func (c *conn) integer(sql string) (int64, error) {
	s, err := c.prepare(sql)
	if err != nil {
		return 0, err
	}
	n, err := s.integer()
	return n, errors.Join(err, s.raw.Close())
}

// stmt is a prepared statement with room for its arguments.
type stmt struct {
	raw  driver.Stmt
	args []driver.NamedValue
}

func (s *stmt) bind(args []any) []driver.NamedValue {
	for len(s.args) < len(args) {
		s.args = append(s.args, driver.NamedValue{Ordinal: len(s.args) + 1})
	}
	for i, arg := range args {
		s.args[i].Value = arg
	}
	return s.args[:len(args)]
}

// exec runs a statement that gives no rows. Arguments are int64 or string.
func (s *stmt) exec(args ...any) error {
	_, err := s.raw.(driver.StmtExecContext).ExecContext(context.Background(), s.bind(args))
	return err
}

// rows runs a query and calls each with the values of every row.
func (s *stmt) rows(each func(row []driver.Value), args ...any) error {
	rows, err := s.raw.(driver.StmtQueryContext).QueryContext(context.Background(), s.bind(args))
	if err != nil {
		return err
	}
	row := make([]driver.Value, len(rows.Columns()))
	for {
		err := rows.Next(row)
		if err == nil {
			each(row)
			continue
		}
		if errors.Is(err, io.EOF) {
			err = nil
		}
		return errors.Join(err, rows.Close())
	}
}

// integer runs a query for one integer; zero if there is no row.
func (s *stmt) integer(args ...any) (n int64, err error) {
	whole := true
	err = s.rows(func(row []driver.Value) { n, whole = row[0].(int64) }, args...)
	if err == nil && !whole { // columns have no types but by custom
		err = damaged("a number", "of its own")
	}
	return n, err
}

// text runs a query for one text; empty if there is no row.
func (s *stmt) text() (text string, err error) {
	err = s.rows(func(row []driver.Value) { text = row[0].(string) })
	return text, err
}

// writeError turns an error of the writer's connection into the one that is answered, and
// tells whether the writer may go on as it is: it may when SQLite took back what it could not
// write, so that what the writer knows is what the database holds. It may not after anything
// else, above all after a failed flush: the system may have dropped what it could not write.
func writeError(err error) (answer error, usable bool) {
	code := 0
	if e, ok := errors.AsType[*sqlite.Error](err); ok {
		code = e.Code()
	}
	switch {
	case code&0xff == sqlite3.SQLITE_FULL:
		return full(err), true
	case code == sqlite3.SQLITE_IOERR_WRITE, code&0xff == sqlite3.SQLITE_READONLY:
		return fault.New(fault.Unavailable, "the store could not write: %w", err), true
	}
	if gone, ok := errors.AsType[*goneError](err); ok {
		return fault.New(fault.Unavailable, "the store stopped, since what it writes would be lost: %w", gone), false
	}
	if malformed(err) {
		return damagedFile(err), false
	}
	if locked(err) {
		return fault.New(fault.Unavailable, "another program keeps the store's database locked: %w", err).
			WithHint("end what has drover.db open; the store goes on by itself"), false
	}
	if mendable(err) {
		return fault.New(fault.Unavailable, "whether the store has what it was writing shows when it can be opened anew: %w", err).WithHint("see to the disk"), false
	}
	return fault.New(fault.Unavailable, "the store stopped: whether it has what it was writing shows when it is opened again: %w", err).
		WithHint("see to the disk, then start again"), false
}

// full is the error of a store whose disk has no room.
func full(err error) error {
	return fault.New(fault.Exhausted, "the disk of the store is full: %w", err).WithHint("make room; the store goes on by itself")
}

// noRoom reports whether a failure is that of a full disk: as SQLite says it when it writes, when it
// makes its shared memory longer, or as the system says it.
func noRoom(err error) bool {
	if e, ok := errors.AsType[*sqlite.Error](err); ok {
		return e.Code()&0xff == sqlite3.SQLITE_FULL || e.Code() == sqlite3.SQLITE_IOERR_SHMSIZE
	}
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// mendable reports whether the database can be opened anew after a failure: a disk
// that failed may work again, and who locked it may be gone, and may have written.
func mendable(err error) bool {
	e, ok := errors.AsType[*sqlite.Error](err)
	return ok && e.Code()&0xff == sqlite3.SQLITE_IOERR || locked(err)
}

// locked reports whether somebody else had the lock that was asked for, for as long as SQLite waited.
func locked(err error) bool {
	e, ok := errors.AsType[*sqlite.Error](err)
	return ok && e.Code()&0xff == sqlite3.SQLITE_BUSY
}
