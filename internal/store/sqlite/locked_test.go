package sqlite

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/store"
)

// locker locks a store's database for writing as another program would.
func locker(t *testing.T, dir string) *conn {
	t.Helper()
	c, err := openConn(dsn(filepath.Join(dir, FileName)))
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

func mustScript(t *testing.T, c *conn, sql string) {
	t.Helper()
	if err := c.script(sql); err != nil {
		t.Fatal(err)
	}
}

// A reader takes the lock of writers for a moment when it finds the head of the log half
// written. The lock is kept here for longer than a commit that does not wait for it takes.
func TestACommitWaitsForTheLock(t *testing.T) {
	dir := t.TempDir()
	s := mustOpen(t, dir, Options{})
	c := locker(t, dir)
	commitJobs(t, s, 2) // a query of the writer's connection is held from here on
	mustScript(t, c, "BEGIN IMMEDIATE")
	failed := make(chan error, 1)
	s.Enqueue(job("3", "2"), func(_ store.Revision, err error) { failed <- err })
	select {
	case err := <-failed:
		t.Errorf("a commit was answered while the database was locked: %v", err)
	case <-time.After(100 * time.Millisecond):
		mustScript(t, c, "ROLLBACK")
		if err := <-failed; err != nil {
			t.Error(err)
		}
	}
	mustClose(t, s)
}

// A database that stays locked is another program's doing, and it may have written.
func TestAStoreGoesOnBehindALock(t *testing.T) {
	dir := t.TempDir()
	s := mustOpen(t, dir, Options{})
	commitJobs(t, s, 2)
	if err := s.writer.conn.script("PRAGMA busy_timeout(0)"); err != nil { // the writer waits for requests
		t.Fatal(err)
	}
	c := locker(t, dir)
	mustScript(t, c, "BEGIN IMMEDIATE")
	if _, err := store.Commit(t.Context(), s, job("3", "2")); !fault.Is(err, fault.Unavailable) {
		t.Errorf("a commit into a locked database: %v", err)
	}
	mustScript(t, c, "DELETE FROM lease; COMMIT")
	before := newestOf(t, s)
	if rev, err := store.Commit(t.Context(), s, job("4", "3")); err != nil || rev != before+1 {
		t.Errorf("after the lock: revision %d behind %d, %v", rev, before, err)
	}
	mustClose(t, s)
	if again := mustOpen(t, dir, Options{}); newestOf(t, again) != before+1 {
		t.Errorf("opened again: revision %d, want %d", newestOf(t, again), before+1)
	}
}
