package app

import (
	"context"
	"encoding/json"
	"iter"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/api/rapi"
	"github.com/drover-project/drover/internal/backoff"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/readlease"
	"github.com/drover-project/drover/internal/sealed"
	"github.com/drover-project/drover/internal/store"
	"github.com/drover-project/drover/internal/store/sqlite"
	"github.com/drover-project/drover/internal/testkit"
)

// latecomer is a store of which somebody takes the lead just before it is read whole. Its feed tells of nothing.
type latecomer struct {
	store.Store
	sharing

	once  sync.Once
	takes func()
	// fails: the store cannot be read when somebody has just taken the lead.
	fails bool
}

// sharing is the rest of a store that is shared.
type sharing interface {
	Lease(ctx context.Context, name string) (store.Lease, error)
	AwaitLease(ctx context.Context, name, holder string, ttl, linger time.Duration) (store.Lease, error)
	HandLease(ctx context.Context, lease store.Lease, to string, ttl time.Duration) error
	Lend(l *readlease.Lessor)
}

func (l *latecomer) Clock(context.Context) (time.Time, error) { return time.Now(), nil }

func (l *latecomer) Revision(ctx context.Context) (store.Revision, error) {
	l.once.Do(l.takes)
	if l.fails {
		return 0, fault.New(fault.Unavailable, "the store is away")
	}
	return l.Store.Revision(ctx)
}

func (*latecomer) Follow(ctx context.Context, _ store.Revision) iter.Seq2[store.Progress, error] {
	return func(func(store.Progress, error) bool) { <-ctx.Done() }
}

// TestKeysOfALatecomerAreLearned: whoever takes the lead while a standby reads the store tells it the keys as anybody else does, also
// where it cannot when it is asked first. A standby without them could not take the lead.
func TestKeysOfALatecomerAreLearned(t *testing.T) {
	again := readAgain
	readAgain = backoff.Pauses{First: time.Hour, Longest: time.Hour} // who leads may have ended by then
	defer func() { readAgain = again }()
	for name, fails := range map[string]bool{"the store is read": false, "the store cannot be read": true} {
		t.Run(name, func(t *testing.T) { keysOfALatecomerAreLearned(t, fails) })
	}
}

func keysOfALatecomerAreLearned(t *testing.T, fails bool) {
	dir := t.TempDir()
	below, err := sqlite.Open(filepath.Join(dir, "store"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ring, err := sealed.NewRing()
	if err != nil {
		t.Fatal(err)
	}
	var asked atomic.Int32
	leader := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != keysPath || asked.Add(1) == 1 && !fails {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		_ = json.NewEncoder(w).Encode(string(ring.Text()))
	}))
	defer leader.Close()
	s := &latecomer{Store: below, fails: fails}
	s.takes = func() {
		text, err := json.Marshal(peerRecord{Name: "c2", Instance: "other", Address: leader.Listener.Addr().String(), Fingerprint: fingerprint(leader.Certificate().Raw), Key: ring.ID()})
		if err == nil {
			_, err = store.Commit(t.Context(), below, store.Tx{Put: []store.Put{{Key: leaderKey, Value: text}}})
		}
		if err != nil {
			t.Error(err)
		}
	}
	o := Options{Data: dir, Name: "c1", Log: slog.New(slog.DiscardHandler)}
	m := newMember(s, o)
	m.keyFile, m.sealed = filepath.Join(dir, keyName), sealed.Over(m.meter, nil, sealedParts())
	m.store, m.shared = m.sealed, s
	m.group = newGroup(m, "c1", newUUID())
	if m.group.cert, err = rapi.OpenCertificate(filepath.Join(dir, "peer.pem"), time.Now()); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var reading sync.WaitGroup
	reading.Go(func() { m.group.keepReading(ctx, o, &surfaces{}) })
	for began := time.Now(); m.sealed.Ring() == nil && time.Since(began) < testkit.Patience(); {
		time.Sleep(10 * time.Millisecond) // between looks
	}
	if got := m.sealed.Ring(); got == nil || got.ID() != ring.ID() {
		t.Errorf("the key %s was not learned", ring.ID())
	}
	stop()
	reading.Wait()
	if _, err := os.Stat(m.keyFile); err != nil {
		t.Errorf("the key is not kept: %v", err)
	}
	m.close()
}
