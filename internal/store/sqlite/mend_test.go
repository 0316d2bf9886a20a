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
// flushes nothing.
func breakFlush(t *testing.T, file string) {
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
	broken := 0
	for _, e := range entries {
		if at, err := os.Readlink(filepath.Join(open, e.Name())); err != nil || at != file {
			continue
		}
		fd, err := strconv.Atoi(e.Name())
		if err == nil {
			err = syscall.Dup3(int(device.Fd()), fd, syscall.O_CLOEXEC)
		}
		if err != nil {
			t.Fatal(err)
		}
		broken++
	}
	if broken == 0 {
		t.Fatalf("%s is not open", file)
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
