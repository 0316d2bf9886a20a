package ganeti

import (
	"encoding/pem"
	"log/slog"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/api/rapi"
	"github.com/drover-project/drover/internal/tagsync/backendtest"
	"github.com/drover-project/drover/internal/testkit/controller"
)

// TestConformanceOfARemoteCluster runs the suite on a Drover that is reached over its remote API.
func TestConformanceOfARemoteCluster(t *testing.T) {
	backendtest.Run(t, func(t *testing.T) backendtest.World {
		t.Helper()
		core := controller.New(t, controller.Options{Memory: 1 << 20})
		users := filepath.Join(t.TempDir(), "users")
		if err := os.WriteFile(users, []byte("drover secret write\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		log := slog.New(slog.DiscardHandler)
		s := httptest.NewTLSServer(rapi.New(rapi.Config{Queue: core.Queue, Querier: core.Querier, Users: rapi.OpenUsers(users, log), Now: time.Now, Log: log}))
		t.Cleanup(s.Close)
		c, err := Open(Config{URL: s.URL, User: "drover", Password: "secret", CA: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}),
			Every: 10 * time.Millisecond, All: 20 * time.Millisecond, Log: log})
		if err != nil {
			t.Fatal(err)
		}
		return backendtest.World{Backend: c, Name: "far", Core: core}
	})
}
