package sqlite

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/store"
)

// breakFlush has the next flush of a file fail, as that of a broken disk does: where this
// process has it open, a device is put in its place that takes everything and
// flushes nothing, until the function is called that it returns.
func breakFlush(t *testing.T, file string) (mend func()) {
	t.Helper()
	device, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = device.Close() }()
	const open = "/proc/self/fd"
	entries, err := os.ReadDir(open)
	if err != nil {
		t.Fatal(err)
	}
	kept := map[int]int{} // what was open there
	for _, e := range entries {
		if at, err := os.Readlink(filepath.Join(open, e.Name())); err != nil || at != file {
			continue
		}
		fd, err := strconv.Atoi(e.Name())
		if err == nil {
			kept[fd], err = syscall.Dup(fd)
		}
		if err == nil {
			err = syscall.Dup3(int(device.Fd()), fd, syscall.O_CLOEXEC)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(kept) == 0 {
		t.Fatalf("%s is not open", file)
	}
	t.Cleanup(func() {
		for _, fd := range kept {
			_ = syscall.Close(fd)
		}
	})
	return func() {
		for fd, was := range kept {
			if err := syscall.Dup3(was, fd, syscall.O_CLOEXEC); err != nil {
				t.Error(err)
			}
		}
	}
}

// A flush that failed costs what was being written, and that only for as long as
// the disk fails: what was acknowledged is there, watches go on.
func TestFailedFlushIsMended(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	seen := make(chan string, 100)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	go func() {
		defer close(seen)
		for changes, err := range s.Watch(ctx, 0) {
			if err != nil {
				return
			}
			for _, c := range changes {
				seen <- c.ID
			}
		}
	}()
	lease, err := s.AcquireLease(ctx, "leader", "one", longestLease)
	if err != nil {
		t.Fatal(err)
	}
	last := store.Revision(0)
	for n := range 5 {
		id := strconv.Itoa(n + 1)
		tx := job(id, id)
		tx.Epoch = lease.Epoch
		revision, err := store.Commit(ctx, s, tx)
		if err != nil || revision <= last {
			t.Fatalf("job %s: revision %d after %d, %v", id, revision, last, err)
		}
		last = revision
		onWriter(s, func() { breakFlush(t, filepath.Join(dir, FileName+"-wal")) })
		if _, err := store.Commit(ctx, s, job("lost", "1")); !fault.Is(err, fault.Unavailable) {
			t.Fatalf("what could not be flushed is answered with %v", err)
		}
		if _, err := s.RenewLease(ctx, lease, longestLease); err != nil {
			t.Fatalf("the disk works again, the store does not: %v", err)
		}
		for m := range n + 1 {
			if _, err := s.Get(ctx, store.Key{Kind: "job", ID: strconv.Itoa(m + 1)}); err != nil {
				t.Errorf("job %d was acknowledged: %v", m+1, err)
			}
		}
	}
	for n := range 5 {
		if got := <-seen; got != strconv.Itoa(n+1) {
			t.Errorf("the feed tells of %q, not of %d", got, n+1)
		}
	}
}

// TestAStoreIsMendedWithANewLog: where nobody else has the database open, the log that could not be flushed goes with the
// connection that failed, and another comes in its place. The store takes that one for its own.
func TestAStoreIsMendedWithANewLog(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	s.readers.SetMaxIdleConns(0) // whoever has read has closed it
	log := filepath.Join(dir, FileName+"-wal")
	if _, err := store.Commit(t.Context(), s, job("1", "1")); err != nil {
		t.Fatal(err)
	}
	for tries, same := 0, true; same; tries++ { // somebody may be reading just then, and the log stays
		if tries > 100 {
			t.Fatal("the log is always the same: the test shows nothing")
		}
		before, err := os.Stat(log)
		if err != nil {
			t.Fatal(err)
		}
		var works func() // the former log stays open, so that none of its name can be taken for it
		onWriter(s, func() { works = breakFlush(t, log) })
		if _, err := store.Commit(t.Context(), s, job("lost", "1")); !fault.Is(err, fault.Unavailable) {
			t.Fatalf("what could not be flushed is answered with %v", err)
		}
		works()
		for _, id := range []string{"2", "3"} {
			if _, err := store.Commit(t.Context(), s, job(id, id)); err != nil {
				t.Errorf("job %s, though the disk works again: %v", id, err)
			}
		}
		after, err := os.Stat(log)
		if err != nil {
			t.Fatal(err)
		}
		same = os.SameFile(before, after)
	}
	for _, id := range []string{"1", "2", "3"} {
		if _, err := s.Get(t.Context(), store.Key{Kind: "job", ID: id}); err != nil {
			t.Errorf("job %s was acknowledged: %v", id, err)
		}
	}
}

// TestWhatAMendedStoreHasLostIsNoticed: the disk that failed to flush has lost what it had flushed before, too. Then nothing
// is acknowledged any more, as if the store had been opened like that.
func TestWhatAMendedStoreHasLostIsNoticed(t *testing.T) {
	dir := t.TempDir()
	mustClose(t, mustOpen(t, dir, Options{})) // its tables are in the database, and not in the log alone
	s := mustOpen(t, dir, Options{})
	s.readers.SetMaxIdleConns(0) // whoever has read has closed it
	log := filepath.Join(dir, FileName+"-wal")
	commitJobs(t, s, 3)
	var works func()
	onWriter(s, func() { works = breakFlush(t, log) })
	if _, err := store.Commit(t.Context(), s, job("lost", "1")); !fault.Is(err, fault.Unavailable) {
		t.Fatalf("what could not be flushed is answered with %v", err)
	}
	works()
	if err := os.Truncate(log, 0); err != nil {
		t.Fatal(err)
	}
	if revision, err := store.Commit(t.Context(), s, job("4", "1")); err == nil {
		t.Errorf("behind a loss revision %d is acknowledged", revision)
	}
	for _, err := range s.Watch(t.Context(), 0) {
		if err == nil {
			t.Error("a watch goes on")
		}
		break
	}
}
