package sqlite

import (
	"database/sql/driver"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/store"
)

// markName is the file beside the database that says up to which revision it was
// committed. What SQLite finds damaged at the end of its log it takes for the trace of a
// crash, and drops without a word, and a log that is missing it takes for
// one that was empty. The mark tells such a loss from a crash.
const markName = "revision"

// mark is the open file. It names the database by its inode too: a copy of a
// store may have been made while the store went on, and be older than its mark.
//
// Each commit writes it without waiting for the disk. After the death of
// the process it is exact, and after that of the machine it may be older than the
// database, never newer.
type mark struct {
	file     *os.File
	database uint64
}

const markFormat = "%020d %020d\n"

func openMark(dir string) (*mark, error) {
	file, err := os.OpenFile(filepath.Join(dir, markName), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fault.New(fault.Environment, "cannot open the store's mark: %w", err)
	}
	info, err := os.Stat(filepath.Join(dir, FileName))
	if err != nil {
		return nil, errors.Join(fault.New(fault.Environment, "cannot find the store's database: %w", err), file.Close())
	}
	m := &mark{file: file}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		m.database = stat.Ino
	}
	return m, nil
}

// read returns the revision that the mark names, zero if it says nothing: one that is
// new, or was cut short by a crash, or belongs to another file.
func (m *mark) read() store.Revision {
	var revision store.Revision
	var database uint64
	text := make([]byte, len(fmt.Sprintf(markFormat, 0, 0)))
	if _, err := m.file.ReadAt(text, 0); err != nil {
		return 0
	}
	if _, err := fmt.Sscanf(string(text), markFormat, &revision, &database); err != nil || database != m.database {
		return 0
	}
	return revision
}

// verify compares the mark with the newest revision of the database. WrongState
// when the database has lost what was committed to it.
func (m *mark) verify(newest store.Revision) error {
	revision := m.read()
	if newest >= revision {
		return nil
	}
	return fault.New(fault.WrongState, "the store has lost its newest changes: it ends with revision %d, and revision %d was committed; its log %s-wal is damaged or missing",
		newest, revision, FileName).
		WithHint("put the log back or restore a backup; to go on without what is lost, remove %s", m.file.Name())
}

// set writes the mark. A failure is left alone: the mark is then older than the
// database, and less of a loss would be noticed.
func (m *mark) set(newest store.Revision) {
	_, _ = m.file.WriteAt(fmt.Appendf(nil, markFormat, newest, m.database), 0)
}

// checkFeed looks for gaps among the newest rows of the feed. Revisions follow
// each other, so where one is missing a part of the database is.
func checkFeed(c *conn) error {
	missing, err := c.integer(`SELECT coalesce(max(before + 1), 0) FROM (
		SELECT first, lag(last) OVER (ORDER BY last) AS before FROM (SELECT first, last FROM feed ORDER BY last DESC LIMIT 10000)
	) WHERE before IS NOT NULL AND first <> before + 1`)
	if err != nil {
		return err
	}
	if missing != 0 {
		return fault.New(fault.WrongState, "the store is damaged: its feed lacks revision %d", missing).WithHint("restore a backup")
	}
	return nil
}

// newestRow returns the revision that the feed ends with, zero if it has no row.
func newestRow(c *conn) (store.Revision, error) {
	s, err := c.prepare("SELECT last, first, entries, sum FROM feed ORDER BY last DESC LIMIT 1")
	if err != nil {
		return 0, err
	}
	var newest store.Revision
	var bad error
	err = s.rows(func(row []driver.Value) {
		last, okLast := row[0].(int64)
		first, okFirst := row[1].(int64)
		entries, okEntries := row[2].(string)
		has, okSum := row[3].(int64)
		newest = store.Revision(last)
		if bad = checkRow(newest, store.Revision(first), entries, has); !okLast || !okFirst || !okEntries || !okSum {
			bad = damaged("the feed at revision", last)
		}
	})
	if err = errors.Join(err, s.raw.Close()); err == nil {
		err = bad
	}
	return newest, err
}
