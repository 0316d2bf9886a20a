package tagsync_test

import (
	"log/slog"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/picture"
	"github.com/drover-project/drover/internal/server"
	"github.com/drover-project/drover/internal/servertag"
	"github.com/drover-project/drover/internal/store"
	"github.com/drover-project/drover/internal/tagsync"
	"github.com/drover-project/drover/internal/testkit"
	"github.com/drover-project/drover/internal/testkit/stores"
)

// TestAFencedEngineWritesNothing: the controller that led before, and does not know yet that another leads, neither makes servers nor changes them: the other
// one would not know of it, and gives the same numbers.
func TestAFencedEngineWritesNothing(t *testing.T) {
	s := stores.Open(t, "")
	defer func() { _ = s.Close() }()
	lease, err := s.AcquireLease(t.Context(), "leader", "me", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	e, err := tagsync.Open(t.Context(), tagsync.Config{Store: s, Epoch: lease.Epoch, Picture: picture.New(), Backends: map[string]tagsync.Backend{"": empty{}},
		Policy: servertag.DefaultPolicy(), Images: server.DefaultImages, Prefix: "snf-", NewUUID: testkit.NewUUID, Now: time.Now, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	e.Close() // so that nothing is done about the server
	wish := &tagsync.Wish{Name: "web", Flavor: server.DefaultFlavors()[0], Image: e.Images()[0]}
	mine, err := e.Create(t.Context(), wish)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.ReleaseLease(t.Context(), lease); err != nil {
		t.Fatal(err)
	}
	if made, err := e.Create(t.Context(), wish); !fault.Is(err, fault.Fenced) {
		t.Errorf("a server of another's term: %+v, %v", made, err)
	}
	if changed, err := e.Begin(mine.ID, server.Delete, servertag.Asked{User: "alice"}); !fault.Is(err, fault.Fenced) {
		t.Errorf("a change in another's term: %+v, %v", changed, err)
	}
	left := 0
	for o, err := range s.List(t.Context(), tagsync.KindServer, store.Options{}) {
		if left++; err != nil || o.ID != mine.ID {
			t.Errorf("stored is %s, %v", o.Key, err)
		}
	}
	if now := e.Servers().Get(mine.ID); left != 1 || e.Servers().Len() != 1 || len(now.Tasks) != 1 {
		t.Errorf("%d servers are stored, %d are shown, and the first is %+v", left, e.Servers().Len(), now)
	}
}
