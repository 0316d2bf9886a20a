package faultstore_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/store"
	"github.com/drover-project/drover/internal/store/faultstore"
	"github.com/drover-project/drover/internal/store/sqlite"
	"github.com/drover-project/drover/internal/store/storetest"
)

func TestConformanceOfStoreWithoutFaults(t *testing.T) {
	storetest.Run(t, func(tb testing.TB, s storetest.Setting) store.Store {
		tb.Helper()
		db, err := sqlite.Open(s.Dir, sqlite.Options{Now: s.Now, Keep: s.Keep})
		if err != nil {
			tb.Fatal(err)
		}
		return faultstore.New(db)
	})
}

func open(t *testing.T) *faultstore.Store {
	t.Helper()
	db, err := sqlite.Open(t.TempDir(), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s := faultstore.New(db)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func job(id string) store.Tx {
	return store.Tx{Put: []store.Put{{Key: store.Key{Kind: "job", ID: id}, Value: []byte("1")}}}
}

func named(id string) func(store.Tx) bool {
	return func(tx store.Tx) bool { return len(tx.Put) > 0 && tx.Put[0].ID == id }
}

func stored(t *testing.T, s store.Store) []string {
	t.Helper()
	ids := []string{}
	for o, err := range s.List(t.Context(), "job", store.Options{}) {
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, o.ID)
	}
	return ids
}

func TestFaults(t *testing.T) {
	own := errors.New("own error")
	// Each case commits the jobs 1 to 5 one by one.
	for _, tc := range []struct {
		name   string
		fault  faultstore.Fault
		failed []string
		stored []string
		err    error
	}{
		{"before", faultstore.Fault{Do: faultstore.FailBefore, When: named("2")}, []string{"2"}, []string{"1", "3", "4", "5"}, nil},
		{"after", faultstore.Fault{Do: faultstore.FailAfter, When: named("2"), Err: own}, []string{"2"}, []string{"1", "2", "3", "4", "5"}, own},
		{"the third call", faultstore.Fault{Do: faultstore.FailBefore, Skip: 2, Err: own}, []string{"3"}, []string{"1", "2", "4", "5"}, own},
		{"crash before", faultstore.Fault{Do: faultstore.CrashBefore, When: named("3")}, []string{"3", "4", "5"}, []string{"1", "2"}, nil},
		{"crash after", faultstore.Fault{Do: faultstore.CrashAfter, When: named("3")}, []string{"3", "4", "5"}, []string{"1", "2", "3"}, nil},
		{"never", faultstore.Fault{Do: faultstore.FailBefore, When: named("9")}, nil, []string{"1", "2", "3", "4", "5"}, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := open(t)
			struck := s.Inject(tc.fault)
			var failed []string
			for _, id := range []string{"1", "2", "3", "4", "5"} {
				rev, err := store.Commit(t.Context(), s, job(id))
				if err == nil {
					continue
				}
				failed = append(failed, id)
				if rev != 0 || (tc.err != nil && !errors.Is(err, tc.err)) || (tc.err == nil && !fault.Is(err, fault.Unavailable)) {
					t.Errorf("job %s: revision %d and %v", id, rev, err)
				}
			}
			if !slices.Equal(failed, tc.failed) {
				t.Errorf("failed: %v, want %v", failed, tc.failed)
			}
			if got := stored(t, s); !slices.Equal(got, tc.stored) {
				t.Errorf("stored: %v, want %v", got, tc.stored)
			}
			select {
			case <-struck:
			default:
				if tc.failed != nil {
					t.Error("the fault did not tell that it struck")
				}
			}
		})
	}
}

func TestHoldKeepsAnswersInOrder(t *testing.T) {
	s := open(t)
	gate := make(chan struct{})
	struck := s.Inject(faultstore.Fault{Do: faultstore.Hold, When: named("2"), Gate: gate})
	answers := make(chan string, 3)
	for _, id := range []string{"1", "2", "3"} {
		s.Enqueue(job(id), func(_ store.Revision, err error) {
			if err != nil {
				t.Error(err)
			}
			answers <- id
		})
	}
	<-struck
	if got := []string{<-answers}; got[0] != "1" || len(answers) != 0 {
		t.Errorf("answered %v and %d more while held", got, len(answers))
	}
	close(gate)
	if second, third := <-answers, <-answers; second != "2" || third != "3" {
		t.Errorf("answered %s and %s", second, third)
	}
}

func TestFaultsCountEachForItself(t *testing.T) {
	s := open(t)
	s.Inject(faultstore.Fault{Do: faultstore.FailBefore, When: named("1")})
	s.Inject(faultstore.Fault{Do: faultstore.FailBefore, Skip: 1})
	s.Inject(faultstore.Fault{Do: faultstore.FailBefore, When: named("3")})
	var got []bool
	for _, id := range []string{"1", "2", "3", "4"} {
		_, err := store.Commit(t.Context(), s, job(id))
		got = append(got, err == nil)
	}
	if want := []bool{false, false, false, true}; !slices.Equal(got, want) {
		t.Errorf("accepted %v, want %v", got, want)
	}
}

func TestCrashedStoreGivesNoLease(t *testing.T) {
	s := open(t)
	lease, err := s.AcquireLease(t.Context(), "leader", "a", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	s.Inject(faultstore.Fault{Do: faultstore.CrashBefore})
	if _, err := store.Commit(t.Context(), s, store.Tx{}); !fault.Is(err, fault.Unavailable) {
		t.Error(err)
	}
	_, acquire := s.AcquireLease(t.Context(), "leader", "a", time.Minute)
	_, renew := s.RenewLease(t.Context(), lease, time.Minute)
	for _, err := range []error{acquire, renew, s.ReleaseLease(t.Context(), lease)} {
		if !fault.Is(err, fault.Unavailable) {
			t.Errorf("got %v", err)
		}
	}
}
