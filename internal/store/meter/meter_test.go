package meter_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/store"
	"github.com/drover-project/drover/internal/store/faultstore"
	"github.com/drover-project/drover/internal/store/meter"
	"github.com/drover-project/drover/internal/store/sqlite"
	"github.com/drover-project/drover/internal/store/storetest"
)

func TestConformanceOfMeteredStore(t *testing.T) {
	storetest.Run(t, func(tb testing.TB, s storetest.Setting) store.Store {
		tb.Helper()
		db, err := sqlite.Open(s.Dir, sqlite.Options{Now: s.Now, Keep: s.Keep})
		if err != nil {
			tb.Fatal(err)
		}
		return meter.New(db, prometheus.NewRegistry(), slog.New(slog.DiscardHandler))
	})
}

// TestTroubleBeginsAndEnds with the failures of writes and of reads, and is
// logged once each time.
func TestTroubleBeginsAndEnds(t *testing.T) {
	db, err := sqlite.Open(t.TempDir(), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	beneath := faultstore.New(db)
	defer func() {
		if err := beneath.Close(); err != nil {
			t.Error(err)
		}
	}()
	var logged strings.Builder
	figures := prometheus.NewRegistry()
	m := meter.New(beneath, figures, slog.New(slog.NewTextHandler(&logged, nil)))
	key := store.Key{Kind: "job", ID: "1"}
	commit := func() error {
		_, err := store.Commit(t.Context(), m, store.Tx{Put: []store.Put{{Key: key, Value: []byte("1")}}})
		return err
	}
	conflict := store.Tx{Expect: []store.Expect{{Key: key, Revision: 77}}}
	if _, err := store.Commit(t.Context(), m, conflict); !fault.Is(err, fault.Conflict) || m.Trouble() != nil {
		t.Errorf("a refusal: %v, %v", err, m.Trouble())
	}
	for range 3 {
		beneath.Inject(faultstore.Fault{Do: faultstore.FailBefore})
		if err := commit(); err == nil || m.Trouble() == nil {
			t.Errorf("a failed write: %v, %v", err, m.Trouble())
		}
	}
	mend := beneath.FailReads(faultstore.ReadFault{})
	if _, err := m.Get(t.Context(), key); err == nil {
		t.Error("the read did not fail")
	}
	if err := commit(); err != nil || m.Trouble() == nil {
		t.Errorf("writes again, reads not: %v, %v", err, m.Trouble())
	}
	mend()
	if _, err := m.Get(t.Context(), key); err != nil || m.Trouble() != nil {
		t.Errorf("mended: %v, %v", err, m.Trouble())
	}
	for text, want := range map[string]int{"cannot be written": 1, "can be written again": 1, "cannot be read": 1, "can be read again": 1} {
		if got := strings.Count(logged.String(), text); got != want {
			t.Errorf("%q is logged %d times:\n%s", text, got, &logged)
		}
	}
	err = testutil.GatherAndCompare(figures, strings.NewReader(`
# HELP drover_store_transactions_total Transactions handed to the store, by outcome: committed, refused on their own account, or failed.
# TYPE drover_store_transactions_total counter
drover_store_transactions_total{outcome="committed"} 1
drover_store_transactions_total{outcome="failed"} 3
drover_store_transactions_total{outcome="refused"} 1
`), "drover_store_transactions_total")
	if err != nil {
		t.Error(err)
	}
}

// TestTroubleWithReadingEndsByItself: a controller in trouble is sent no requests, whose
// reads would show that the store is well again.
func TestTroubleWithReadingEndsByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		beneath := &failing{}
		beneath.away.Store(true)
		m := meter.New(beneath, prometheus.NewRegistry(), slog.New(slog.DiscardHandler))
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		go m.Retry(ctx)
		if _, err := m.Revision(ctx); err == nil || m.Trouble() == nil {
			t.Fatalf("a failed read: %v, %v", err, m.Trouble())
		}
		time.Sleep(3 * time.Second)
		if m.Trouble() == nil {
			t.Error("the trouble is over, and the store is not")
		}
		beneath.away.Store(false)
		time.Sleep(2 * time.Second)
		if m.Trouble() != nil {
			t.Errorf("the store is well, and said to be in trouble: %v", m.Trouble())
		}
	})
}

// failing is a store that cannot be read while it is away.
type failing struct {
	store.Store
	away atomic.Bool
}

func (f *failing) Revision(context.Context) (store.Revision, error) {
	if f.away.Load() {
		return 0, errors.New("away")
	}
	return 1, nil
}
