package app

import (
	"context"
	"path/filepath"
	"strings"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/store"
	"github.com/drover-project/drover/internal/store/postgres"
	"github.com/drover-project/drover/internal/store/sqlite"
)

// openStore opens the store that a URL names: one of PostgreSQL, or without a
// URL the embedded one in the data directory.
func openStore(ctx context.Context, dir, url string) (store.Store, error) {
	scheme, _, isURL := strings.Cut(url, "://")
	switch {
	case url == "":
		// Assigned only on success: an interface that holds a nil pointer is not nil.
		s, err := sqlite.Open(filepath.Join(dir, "store"), sqlite.Options{})
		if err != nil {
			return nil, err
		}
		return s, nil
	case isURL && (scheme == "postgres" || scheme == "postgresql"):
		s, err := postgres.Open(ctx, url, postgres.Options{})
		if err != nil {
			return nil, err
		}
		return s, nil
	}
	return nil, fault.New(fault.Invalid, "there is no kind of store for %q", url).At("store").
		WithHint("the store is a URL such as postgres://user:password@host/database; without one it is in the data directory")
}
