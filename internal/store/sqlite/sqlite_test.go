package sqlite_test

import (
	"testing"

	"github.com/drover-project/drover/internal/store"
	"github.com/drover-project/drover/internal/store/sqlite"
	"github.com/drover-project/drover/internal/store/storetest"
)

func open(tb testing.TB, s storetest.Setting) store.Store {
	tb.Helper()
	db, err := sqlite.Open(s.Dir, sqlite.Options{Now: s.Now, Keep: s.Keep})
	if err != nil {
		tb.Fatal(err)
	}
	return db
}

func TestConformanceOfStore(t *testing.T) { storetest.Run(t, open) }
