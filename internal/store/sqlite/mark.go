package sqlite

import (
	"database/sql/driver"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/store"
)

// markName is the file beside the database that says up to which revision it was
// committed. What SQLite finds damaged at the end of its log it takes for the trace of a
// crash, and drops without a word, and a log that is missing it takes for
// one that was empty. The mark tells such a loss from a crash.
const markName = "revision"

// mark is the open file. It counts for whatever database is beside it: a copy, or one that was put
// there from a backup of the files, that is older than its mark lacks what was committed, too.
//
// Each commit writes it without waiting for the disk. After the death of
// the process it is exact, and after that of the machine it may be older than the
// database, never newer.
type mark struct {
	file *os.File
}

const markFormat = "%020d\n"

func openMark(dir string) (*mark, error) {
	file, err := os.OpenFile(filepath.Join(dir, markName), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fault.New(fault.Environment, "cannot open the store's mark: %w", err)
	}
	return &mark{file: file}, nil
}

// markOf reads the mark of a store that may be another's: nothing is made.
func markOf(dir string) (store.Revision, error) {
	file, err := os.Open(filepath.Join(dir, markName))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fault.New(fault.Environment, "cannot read the store's mark: %w", err)
	}
	revision := (&mark{file: file}).read()
	return revision, file.Close()
}

// read returns the revision that the mark names, zero if it says nothing: one that is
// new, or was cut short by a crash.
func (m *mark) read() store.Revision {
	var revision store.Revision
	text := make([]byte, len(fmt.Sprintf(markFormat, 0))-1) // earlier versions had more behind it
	if _, err := m.file.ReadAt(text, 0); err != nil {
		return 0
	}
	if _, err := fmt.Sscanf(string(text), "%d", &revision); err != nil {
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
	return fault.New(fault.WrongState, "the store has lost its newest changes: it ends with revision %d, and revision %d was committed; "+
		"its log %s-wal is damaged or missing, or this is a copy that was made while it went on", newest, revision, FileName).
		WithHint("put the log back or restore a backup (drover backup restore); to go on without what is lost, remove %s", m.file.Name())
}

// set writes the mark. A failure is left alone: the mark is then older than the
// database, and less of a loss would be noticed.
func (m *mark) set(newest store.Revision) {
	_, _ = m.file.WriteAt(fmt.Appendf(nil, markFormat, newest), 0)
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
