package sqlite

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/store"
	"github.com/drover-project/drover/internal/store/schema"
)

func TestOldSQLiteIsRefused(t *testing.T) {
	for version, refused := range map[string]bool{
		"3.51.2": true, "3.51.3": false, "3.51.10": false, "3.53.4": false, "3.9.0": true, "4.0": false, "3.51": true, "x": true,
	} {
		if err := versionError(version); (err != nil) != refused || (refused && !fault.Is(err, fault.Environment)) {
			t.Errorf("%s: %v", version, err)
		}
	}
}

func openTest(t *testing.T) *conn {
	t.Helper()
	c, err := openConn(dsn(filepath.Join(t.TempDir(), FileName)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.raw.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

func TestMigrateStepByStep(t *testing.T) {
	c := openTest(t)
	one := schema.Step{Version: 1, Name: "0001_a.sql", SQL: "CREATE TABLE a (x); INSERT INTO a VALUES (7)"}
	two := schema.Step{Version: 2, Name: "0002_b.sql", SQL: "UPDATE a SET x = x + 1; CREATE TABLE b (y)"}
	bad := schema.Step{Version: 3, Name: "0003_c.sql", SQL: "UPDATE a SET x = 100; CREATE TABLE b (y)"}
	want := func(name string, x, version int64) {
		t.Helper()
		gotX, errX := c.integer("SELECT x FROM a")
		gotV, errV := c.integer("SELECT version FROM schema_version")
		if err := errors.Join(errX, errV); err != nil || gotX != x || gotV != version {
			t.Errorf("%s: x %d version %d (%v), want %d and %d", name, gotX, gotV, err, x, version)
		}
	}
	for _, tc := range []struct {
		name       string
		steps      []schema.Step
		x, version int64
		err        string
	}{
		{"first", []schema.Step{one}, 7, 1, ""},
		{"again", []schema.Step{one}, 7, 1, ""},
		{"second", []schema.Step{one, two}, 8, 2, ""},
		{"failing step leaves no trace", []schema.Step{one, two, bad}, 8, 2, "0003_c.sql"},
		{"older program", []schema.Step{one}, 8, 2, "schema version 2"},
	} {
		err := migrate(c, tc.steps, nil)
		if (err == nil) != (tc.err == "") || (err != nil && !strings.Contains(err.Error(), tc.err)) {
			t.Errorf("%s: %v", tc.name, err)
		}
		want(tc.name, tc.x, tc.version)
	}
}

func TestOneProcessPerDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "made", "by", "open")
	s, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = Open(dir, Options{})
	if !fault.Is(err, fault.Busy) || !strings.Contains(err.Error(), strconv.Itoa(os.Getpid())) {
		t.Errorf("opened twice: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s, err = Open(dir, Options{})
	if err != nil {
		t.Fatalf("opened after close: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestFilesArePrivate(t *testing.T) {
	dir := t.TempDir()
	const loose = 0o644
	if err := os.WriteFile(filepath.Join(dir, FileName), nil, loose); err != nil {
		t.Fatal(err)
	}
	s, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	if _, err := store.Commit(t.Context(), s, store.Tx{}); err != nil {
		t.Fatal(err)
	}
	files, err := os.ReadDir(dir)
	if err != nil || len(files) < 3 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, f := range files {
		info, err := f.Info()
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v (%v)", f.Name(), info.Mode(), err)
		}
	}
}

func TestDirectoriesWithUnusualNames(t *testing.T) {
	for _, name := range []string{"with space", "100%41?x=1&y#z", "Größe 世界", "a;b'c\"d\\e", "file:x"} {
		dir := filepath.Join(t.TempDir(), name)
		s, err := Open(dir, Options{})
		if err != nil {
			t.Errorf("%q: %v", name, err)
			continue
		}
		if _, err := store.Commit(t.Context(), s, job("1", "1")); err != nil {
			t.Errorf("%q: %v", name, err)
		}
		if _, err := s.Get(t.Context(), store.Key{Kind: "job", ID: "1"}); err != nil {
			t.Errorf("%q: %v", name, err)
		}
		if err := s.Close(); err != nil {
			t.Errorf("%q: %v", name, err)
		}
		if _, err := os.Stat(filepath.Join(dir, FileName)); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func TestUnusableDirectories(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, []byte("this is not a database, but it is long enough to be read as one"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(file, Options{}); !fault.Is(err, fault.Environment) {
		t.Errorf("a file as directory: %v", err)
	}
	if err := os.Rename(file, filepath.Join(dir, FileName)); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir, Options{}); err == nil {
		t.Error("a file that is no database was opened")
	}
}

func TestOpenSetsDurability(t *testing.T) {
	s := openStore(t)
	for pragma, want := range map[string]int64{"synchronous": 2, "fullfsync": 1} {
		if got, err := s.writer.conn.integer("PRAGMA " + pragma); err != nil || got != want {
			t.Errorf("%s is %d (%v), want %d", pragma, got, err, want)
		}
	}
	mode, err := s.writer.conn.prepare("PRAGMA journal_mode")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := mode.text(); err != nil || got != "wal" {
		t.Errorf("journal_mode is %s (%v)", got, err)
	}
	if err := mode.raw.Close(); err != nil {
		t.Error(err)
	}
}

func openStore(t *testing.T) *Store {
	t.Helper()
	s, err := Open(t.TempDir(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() }) // the tests of failure break the connection
	return s
}

func job(id, value string) store.Tx {
	return store.Tx{Put: []store.Put{{Key: store.Key{Kind: "job", ID: id}, Value: []byte(value)}}}
}

// onWriter runs a function on the writer's goroutine.
func onWriter(s *Store, f func()) {
	done := make(chan struct{})
	s.Enqueue(store.Tx{}, func(store.Revision, error) { f(); close(done) })
	<-done
}

func pageLimit(t *testing.T, s *Store, pages string) {
	t.Helper()
	onWriter(s, func() {
		if err := s.writer.conn.script("PRAGMA max_page_count = " + pages); err != nil {
			t.Error(err)
		}
	})
}

func TestFullDiskRefusesAndRecovers(t *testing.T) {
	s := openStore(t)
	first, err := store.Commit(t.Context(), s, job("1", "1"))
	if err != nil {
		t.Fatal(err)
	}
	pageLimit(t, s, "30")
	big := `"` + strings.Repeat("x", 200_000) + `"`
	if _, err := store.Commit(t.Context(), s, job("2", big)); !fault.Is(err, fault.Exhausted) {
		t.Fatalf("on a full disk: %v", err)
	}
	if _, err := s.Get(t.Context(), store.Key{Kind: "job", ID: "2"}); !fault.Is(err, fault.NotFound) {
		t.Errorf("what was refused is there: %v", err)
	}
	pageLimit(t, s, "1000000")
	rev, err := store.Commit(t.Context(), s, job("2", big))
	if err != nil || rev <= first {
		t.Fatalf("after space was made: revision %d, %v", rev, err)
	}
	changes, err := s.Changes(t.Context(), 0, 100)
	if err != nil || len(changes) != 2 || changes[1].Revision != rev {
		t.Errorf("the feed has %d changes, %v", len(changes), err)
	}
}

// TestTheLogIsEmptied: though the writer holds its locks from one commit to the next, the log does
// not grow with the number of commits.
func TestTheLogIsEmptied(t *testing.T) {
	s := openStore(t)
	value := strings.Repeat("x", 2000)
	for i := range 3000 {
		s.Enqueue(job(strconv.Itoa(i), value), nil)
		if i%10 == 9 { // one commit after the other
			if _, err := store.Commit(t.Context(), s, job("0", "1")); err != nil {
				t.Fatal(err)
			}
		}
	}
	const pages, page = 1500, 4096 + 24
	log, err := os.Stat(s.writer.file + "-wal")
	if err != nil {
		t.Fatal(err)
	}
	if log.Size() > pages*page {
		t.Errorf("the log of 6 MB of values has %d pages", log.Size()/page)
	}
}

// TestFewCommitsMakeTheLogLonger: most are written over what is there.
func TestFewCommitsMakeTheLogLonger(t *testing.T) {
	dir := t.TempDir()
	s := mustOpen(t, dir, Options{})
	longer, size := 0, int64(0)
	const commits = 300
	for range commits {
		commitJobs(t, s, 1)
		if now := logSize(t, dir); now != size {
			longer, size = longer+1, now
		}
	}
	if longer > commits/10 {
		t.Errorf("%d of %d commits made the log longer", longer, commits)
	}
}

// TestTheLogDoesNotGrowWithEachKill opens what kills leave, over and over.
func TestTheLogDoesNotGrowWithEachKill(t *testing.T) {
	dir := t.TempDir()
	s := mustOpen(t, dir, Options{})
	commitJobs(t, s, 2)
	size := logSize(t, dir)
	for range 5 {
		killed := t.TempDir()
		if err := os.CopyFS(killed, os.DirFS(dir)); err != nil {
			t.Fatal(err)
		}
		mustClose(t, s)
		dir, s = killed, mustOpen(t, killed, Options{})
		commitJobs(t, s, 2)
	}
	if now := logSize(t, dir); now > size {
		t.Errorf("the log has %d bytes, and had %d", now, size)
	}
}

func logSize(t *testing.T, dir string) int64 {
	t.Helper()
	log, err := os.Stat(filepath.Join(dir, FileName+"-wal"))
	if err != nil {
		t.Fatal(err)
	}
	return log.Size()
}

func TestUnknownOutcomeStopsTheStore(t *testing.T) {
	s := openStore(t)
	if _, err := store.Commit(t.Context(), s, job("1", "1")); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	following := make(chan struct{})
	go func() {
		for changes, err := range s.Watch(context.Background(), 0) {
			if err != nil {
				ended <- err
				return
			}
			if changes[0].ID == "1" {
				close(following)
			}
		}
	}()
	<-following
	onWriter(s, func() {
		if err := errors.Join(s.writer.held.end(), s.writer.conn.script("DROP TABLE feed; DROP TABLE recent")); err != nil {
			t.Error(err)
		}
	})
	for range 2 {
		if _, err := store.Commit(t.Context(), s, job("2", "2")); !fault.Is(err, fault.Unavailable) {
			t.Errorf("a broken store answers %v", err)
		}
	}
	if err := <-ended; !fault.Is(err, fault.Unavailable) {
		t.Errorf("the watch ended with %v", err)
	}
	if _, err := s.Get(t.Context(), store.Key{Kind: "job", ID: "2"}); !fault.Is(err, fault.NotFound) {
		t.Errorf("half a transaction is there: %v", err)
	}
}
