// Package stores lets a test hold on every kind of store that a controller can
// keep its state in.
package stores

import (
	"testing"

	"github.com/drover-project/drover/internal/store"
	"github.com/drover-project/drover/internal/store/postgres"
	"github.com/drover-project/drover/internal/store/sqlite"
	"github.com/drover-project/drover/internal/testkit/pgserver"
)

// Each runs a test for each kind of store, with the URL that a controller is
// given for an empty store of that kind: none for the embedded one. The server of
// the other does not flush what it commits, so it must not be killed.
func Each(t *testing.T, test func(t *testing.T, url string)) {
	t.Helper()
	t.Run("embedded", func(t *testing.T) { test(t, "") })
	t.Run("PostgreSQL", func(t *testing.T) { test(t, pgserver.Start(t, false).URL("drover")) })
}

// Open opens the store that a URL names; an embedded one is in a directory of
// the test. Who asks for it closes it.
func Open(t testing.TB, url string) store.Store {
	t.Helper()
	if url == "" {
		s, err := sqlite.Open(t.TempDir(), sqlite.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	s, err := postgres.Open(t.Context(), url, postgres.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}
