package sqlite

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/store"
)

func mustOpen(t *testing.T, dir string, opts Options) *Store {
	t.Helper()
	s, err := Open(dir, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() }) // a second time, unless the test failed
	return s
}

// large is a value that has no room in the table recent.
var large = `"` + strings.Repeat("x", slotSize) + `"`

func mustClose(t *testing.T, s *Store) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

func commitJobs(t *testing.T, s *Store, count int) {
	t.Helper()
	for i := range count {
		if _, err := store.Commit(t.Context(), s, job(strconv.Itoa(i+1), strconv.Itoa(i))); err != nil {
			t.Fatal(err)
		}
	}
}

func newestOf(t *testing.T, s *Store) store.Revision {
	t.Helper()
	rev, err := s.Revision(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return rev
}

func TestCleanStopLeavesAllInOneFile(t *testing.T) {
	dir := t.TempDir()
	s := mustOpen(t, dir, Options{})
	const count = 50
	commitJobs(t, s, count)
	mustClose(t, s)
	if _, err := os.Stat(filepath.Join(dir, FileName+"-wal")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the log after a clean stop: %v", err)
	}
	database, err := os.ReadFile(filepath.Join(dir, FileName))
	if err != nil {
		t.Fatal(err)
	}
	elsewhere := t.TempDir()
	if err := os.WriteFile(filepath.Join(elsewhere, FileName), database, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := newestOf(t, mustOpen(t, elsewhere, Options{})); got != count {
		t.Errorf("a copy of the database ends with revision %d of %d", got, count)
	}
}

// killed returns a directory as a process leaves it that is killed behind some
// commits, and its log.
func killed(t *testing.T, commits int) (dir string, log []byte) {
	t.Helper()
	dir = t.TempDir()
	s := mustOpen(t, dir, Options{})
	commitJobs(t, s, commits)
	var files [2][]byte
	for i, name := range []string{FileName, FileName + "-wal"} {
		var err error
		if files[i], err = os.ReadFile(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	mustClose(t, s)
	if err := os.WriteFile(filepath.Join(dir, FileName), files[0], 0o600); err != nil { // in the same inode
		t.Fatal(err)
	}
	return dir, written(files[1])
}

// written is the part of a log that holds commits: behind it are zeros.
func written(log []byte) []byte {
	const header, frame = 32, 24 + 4096
	n := len(bytes.TrimRight(log, "\x00")) - header
	return log[:header+(n+frame-1)/frame*frame]
}

func TestLostEndOfTheLogIsNoticed(t *testing.T) {
	const commits = 40
	for _, tc := range []struct {
		what   string
		damage func(log []byte) []byte // nil for no log
		lost   bool
	}{
		{"nothing", func(log []byte) []byte { return log }, false},
		{"a log that is missing", func([]byte) []byte { return nil }, true},
		{"an empty log", func([]byte) []byte { return []byte{} }, true},
		{"one bit", func(log []byte) []byte { log[len(log)/2] ^= 1; return log }, true},
		{"one bit of the last commit", func(log []byte) []byte { log[len(log)-100] ^= 1; return log }, true},
		{"a log cut short", func(log []byte) []byte { return log[:len(log)-5000] }, true},
	} {
		dir, log := killed(t, commits)
		if log = tc.damage(log); log != nil {
			if err := os.WriteFile(filepath.Join(dir, FileName+"-wal"), log, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		s, err := Open(dir, Options{})
		switch {
		case err == nil && tc.lost:
			t.Errorf("%s: opened at revision %d of %d", tc.what, newestOf(t, s), commits)
		case err != nil && (!tc.lost || !fault.Is(err, fault.WrongState)):
			t.Errorf("%s: %v", tc.what, err)
		}
		if err == nil {
			mustClose(t, s)
			continue
		}
		// As the hint says.
		if err := os.Remove(filepath.Join(dir, markName)); err != nil {
			t.Fatal(err)
		}
		mustClose(t, mustOpen(t, dir, Options{}))
	}
}

// TestACopyIsAsOldAsItsMark: a copy of the files that lacks what was committed is refused as the
// original is, and goes on without that when a person says so.
func TestACopyIsAsOldAsItsMark(t *testing.T) {
	const commits = 10
	for _, tc := range []struct {
		what   string
		damage func(database, log []byte) (copiedDatabase, copiedLog []byte)
		lost   bool
	}{
		{"all of it", func(d, l []byte) ([]byte, []byte) { return d, l }, false},
		{"without the log", func(d, _ []byte) ([]byte, []byte) { return d, nil }, true},
		{"with a log that ends sooner", func(d, l []byte) ([]byte, []byte) { return d, l[:len(l)-5000] }, true},
		{"with a log that is damaged", func(d, l []byte) ([]byte, []byte) { l[len(l)/2] ^= 1; return d, l }, true},
	} {
		dir, log := killed(t, commits)
		copied := t.TempDir()
		database, err := os.ReadFile(filepath.Join(dir, FileName))
		if err != nil {
			t.Fatal(err)
		}
		mark, err := os.ReadFile(filepath.Join(dir, markName))
		if err != nil {
			t.Fatal(err)
		}
		database, log = tc.damage(database, log)
		for name, data := range map[string][]byte{FileName: database, FileName + "-wal": log, markName: mark} {
			if data == nil {
				continue
			}
			if err := os.WriteFile(filepath.Join(copied, name), data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		s, err := Open(copied, Options{})
		if err == nil {
			if tc.lost {
				t.Errorf("%s: opened at revision %d of %d", tc.what, newestOf(t, s), commits)
			}
			mustClose(t, s)
			continue
		}
		if !tc.lost || !fault.Is(err, fault.WrongState) {
			t.Errorf("%s: %v", tc.what, err)
		}
		if err := os.Remove(filepath.Join(copied, markName)); err != nil { // as the hint says
			t.Fatal(err)
		}
		mustClose(t, mustOpen(t, copied, Options{}))
	}
}

// TestMarksOfEarlierVersions had the number of the database's file behind the revision.
func TestMarksOfEarlierVersions(t *testing.T) {
	for text, want := range map[string]store.Revision{
		"00000000000000000042 00000000000000001234\n": 42, "00000000000000000043\n0000000000000001234\n": 43, "": 0, "000000": 0, "not a number at all, no": 0,
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, markName), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := markOf(dir); err != nil || got != want {
			t.Errorf("%q: revision %d, %v", text, got, err)
		}
	}
	if got, err := markOf(t.TempDir()); err != nil || got != 0 {
		t.Errorf("no mark: revision %d, %v", got, err)
	}
}

func TestGapInTheFeedIsNoticed(t *testing.T) {
	dir := t.TempDir()
	s := mustOpen(t, dir, Options{})
	for i := range 20 { // each too large to be recent
		if _, err := store.Commit(t.Context(), s, job(strconv.Itoa(i), large)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(s.writer.held.end(), s.writer.conn.script("DELETE FROM feed WHERE last = 7")); err != nil {
		t.Fatal(err)
	}
	mustClose(t, s)
	if _, err := Open(dir, Options{}); !fault.Is(err, fault.WrongState) {
		t.Errorf("opened with a gap: %v", err)
	}
}

// TestNothingIsAcknowledgedIntoTheVoid removes the store's files, or puts
// others in their place, while it is in use.
func TestNothingIsAcknowledgedIntoTheVoid(t *testing.T) {
	for what, harm := range map[string]func(dir string) error{
		"removed":     os.RemoveAll,
		"log removed": func(dir string) error { return os.Remove(filepath.Join(dir, FileName+"-wal")) },
		"moved":       func(dir string) error { return os.Rename(dir, dir+"-old") },
		"replaced": func(dir string) error {
			if err := os.Rename(dir, dir+"-old"); err != nil {
				return err
			}
			other, err := Open(dir, Options{})
			if err != nil {
				return err
			}
			t.Cleanup(func() { _ = other.Close() })
			_, err = store.Commit(t.Context(), other, job("1", "1"))
			return err
		},
	} {
		dir := filepath.Join(t.TempDir(), "store")
		s := mustOpen(t, dir, Options{})
		commitJobs(t, s, 3)
		if err := harm(dir); err != nil {
			t.Fatal(what, err)
		}
		for range 2 {
			if _, err := store.Commit(t.Context(), s, job("9", "9")); !fault.Is(err, fault.Unavailable) {
				t.Errorf("%s: a commit was answered with %v", what, err)
			}
		}
		_ = s.Close() // what it says about files that are gone is of no interest
	}
}

func TestLeaseOfAClockThatWasAhead(t *testing.T) {
	dir := t.TempDir()
	now := time.Unix(1000, 0)
	clock := func() time.Time { return now }
	s := mustOpen(t, dir, Options{Now: func() time.Time { return now.Add(5 * time.Hour) }})
	if _, err := s.AcquireLease(t.Context(), "leader", "a", 15*time.Second); err != nil {
		t.Fatal(err)
	}
	mustClose(t, s)
	s = mustOpen(t, dir, Options{Now: clock})
	if _, err := s.AcquireLease(t.Context(), "leader", "b", 15*time.Second); !fault.Is(err, fault.Busy) {
		t.Errorf("at once: %v", err)
	}
	now = now.Add(longestLease)
	if _, err := s.AcquireLease(t.Context(), "leader", "b", 15*time.Second); err != nil {
		t.Errorf("after %v: %v", longestLease, err)
	}
	mustClose(t, s)
}

// TestStoreThatMayNotWriteRecovers lets SQLite refuse to write for a time.
func TestStoreThatMayNotWriteRecovers(t *testing.T) {
	s := mustOpen(t, t.TempDir(), Options{})
	commitJobs(t, s, 1)
	if err := s.writer.conn.script("PRAGMA query_only = 1"); err != nil { // the writer waits for work
		t.Fatal(err)
	}
	if _, err := store.Commit(t.Context(), s, job("2", "2")); !fault.Is(err, fault.Unavailable) {
		t.Errorf("written: %v", err)
	}
	if err := s.writer.conn.script("PRAGMA query_only = 0"); err != nil {
		t.Fatal(err)
	}
	rev, err := store.Commit(t.Context(), s, job("2", "2"))
	if err != nil || rev != 2 {
		t.Errorf("after it recovered: revision %d, %v", rev, err)
	}
	mustClose(t, s)
}
