package app

import (
	"context"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/store"
	"github.com/drover-project/drover/internal/store/postgres"
	"github.com/drover-project/drover/internal/store/sqlite"
)

// isPostgres tells whether a URL names a store of PostgreSQL.
func isPostgres(url string) bool {
	scheme, _, isURL := strings.Cut(url, "://")
	return isURL && (scheme == "postgres" || scheme == "postgresql")
}

// checkStoreURL refuses a URL that names no kind of store.
func checkStoreURL(url string) error {
	if url == "" || isPostgres(url) {
		return nil
	}
	said := "what is no URL" // and may hold a password: the parameters of a connection, as libpq takes them
	if scheme, _, isURL := strings.Cut(url, "://"); isURL {
		said = strconv.Quote(fault.Clip(scheme, 100) + "://")
	}
	return fault.New(fault.Invalid, "there is no kind of store for %s", said).At("store").
		WithHint("the store is a URL such as postgres://user:password@host/database; without one it is in the data directory")
}

// storeDir is where the embedded store is, in the data directory.
const storeDir = "store"

// openStore opens the store that a URL names: one of PostgreSQL, or without a
// URL the embedded one in the data directory, of which a copy is made before its schema is moved.
func openStore(ctx context.Context, dir, url string, copies *copies) (store.Store, error) {
	if err := checkStoreURL(url); err != nil {
		return nil, err
	}
	// Assigned only on success: an interface that holds a nil pointer is not nil.
	if isPostgres(url) {
		s, err := postgres.Open(ctx, url, postgres.Options{})
		if err != nil {
			return nil, err
		}
		return s, nil
	}
	s, err := sqlite.Open(filepath.Join(dir, storeDir), sqlite.Options{BeforeMove: func(to int64) error { return copies.make(ctx, beforeSchema(to)) }})
	if err != nil {
		return nil, err
	}
	return s, nil
}
