package app

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/store"
	"github.com/drover-project/drover/internal/store/sqlite"
)

// onFakeTime runs a test on a store whose time passes while the test waits.
func onFakeTime(t *testing.T, test func(t *testing.T, s store.Store)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s, err := sqlite.Open(t.TempDir(), sqlite.Options{})
		if err != nil {
			t.Fatal(err)
		}
		test(t, s)
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestHolderDoesNotDependOnThePath takes the lease of one embedded store by
// several paths, without giving it up in between.
func TestHolderDoesNotDependOnThePath(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	if err := os.Mkdir("data", 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("data", "link"); err != nil {
		t.Fatal(err)
	}
	holders := map[string]bool{}
	for _, path := range []string{"data", "./data/", "link", filepath.Join(dir, "data")} {
		o := Options{Data: path, Log: slog.New(slog.DiscardHandler)}
		m, err := openMember(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		lease, err := m.acquire(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		holders[lease.Holder] = true
		m.close()
	}
	if len(holders) != 1 {
		t.Errorf("one directory is held as %v", holders)
	}
}

func TestLeaseOfThisMachineIsTakenOverAtOnce(t *testing.T) {
	onFakeTime(t, func(t *testing.T, s store.Store) {
		first, err := acquireLease(t.Context(), s, "here", slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		begun := time.Now()
		second, err := acquireLease(t.Context(), s, "here", slog.New(slog.DiscardHandler))
		if err != nil || second.Epoch <= first.Epoch || !time.Now().Equal(begun) {
			t.Errorf("after %v: %+v, %v", time.Since(begun), second, err)
		}
	})
}

func TestLeaseOfAnotherMachineIsWaitedFor(t *testing.T) {
	onFakeTime(t, func(t *testing.T, s store.Store) {
		if _, err := s.AcquireLease(t.Context(), leaseName, "elsewhere", leaseTime); err != nil {
			t.Fatal(err)
		}
		begun := time.Now()
		got, err := acquireLease(t.Context(), s, "here", slog.New(slog.DiscardHandler))
		if err != nil || got.Holder != "here" || time.Since(begun) < leaseTime || time.Since(begun) > leaseTime+leaseTry {
			t.Errorf("after %v: %+v, %v", time.Since(begun), got, err)
		}
	})
}

func TestLeaseThatIsRenewedElsewhereIsGivenUp(t *testing.T) {
	onFakeTime(t, func(t *testing.T, s store.Store) {
		other, err := s.AcquireLease(t.Context(), leaseName, "elsewhere", leaseTime)
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan struct{})
		renewed := make(chan struct{})
		go func() {
			defer close(renewed)
			for {
				select {
				case <-done:
					return
				case <-time.After(leaseRenew):
					if _, err := s.RenewLease(t.Context(), other, leaseTime); err != nil {
						t.Error(err)
					}
				}
			}
		}()
		if _, err := acquireLease(t.Context(), s, "here", slog.New(slog.DiscardHandler)); !fault.Is(err, fault.Busy) {
			t.Errorf("got %v", err)
		}
		close(done)
		<-renewed
	})
}
