package postgres_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/store"
	"github.com/drover-project/drover/internal/store/format"
	"github.com/drover-project/drover/internal/store/image"
	"github.com/drover-project/drover/internal/store/postgres"
	"github.com/drover-project/drover/internal/testkit/pgserver"
)

// raising is the transaction that raises a store to a format, and does something else.
func raising(n int) store.Tx {
	tx := job(99)
	tx.Put = append(tx.Put, store.Put{Key: store.FormatKey, Value: format.Encode(n)})
	return tx
}

// session is one to the database that says nothing of formats, as programs of before do not.
func session(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	db, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close(context.Background()) })
	return db
}

func versionOf(t *testing.T, db *pgx.Conn) (version int64) {
	t.Helper()
	if err := db.QueryRow(t.Context(), "SELECT version FROM schema_version").Scan(&version); err != nil {
		t.Fatal(err)
	}
	return version
}

func TestFormat(t *testing.T) {
	server := pgserver.Start(t, false)
	t.Run("a raise moves the schema", func(t *testing.T) { raiseMovesTheSchema(t, server.URL("moves"), server.URL("elsewhere")) })
	t.Run("a raise is all or nothing", func(t *testing.T) { raiseIsWhole(t, server.URL("whole")) })
	t.Run("who knows of no formats leads no more", func(t *testing.T) { nobodyOfBeforeLeads(t, server.URL("before")) })
	t.Run("an image of later is refused", func(t *testing.T) { imageOfLater(t, server.URL("later")) })
}

func raiseMovesTheSchema(t *testing.T, url, elsewhere string) {
	t.Helper()
	s, db := opened(t, url), session(t, url)
	before := versionOf(t, db)
	lease, err := s.AcquireLease(t.Context(), "leader", "a", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	tx := raising(format.Newest)
	tx.Epoch = lease.Epoch
	if _, err := store.Commit(t.Context(), s, tx); err != nil {
		t.Fatal(err)
	}
	raised := versionOf(t, db)
	if raised <= before {
		t.Errorf("raised, it has version %d, and had %d", raised, before)
	}
	if _, err := s.RenewLease(t.Context(), lease, time.Minute); err != nil {
		t.Errorf("who raised it leads no more: %v", err)
	}
	if _, err := opened(t, url).Get(t.Context(), store.FormatKey); err != nil {
		t.Errorf("opened anew: %v", err)
	}
	err = postgres.Image(t.Context(), url, func(img *image.Image) error {
		if img.Format != format.Newest || img.Unfit != nil {
			t.Errorf("the image is of format %d: %v", img.Format, img.Unfit)
		}
		return postgres.Load(t.Context(), elsewhere, img)
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := versionOf(t, session(t, elsewhere)); got != raised {
		t.Errorf("loaded, it has version %d", got)
	}
	for _, place := range []string{url, elsewhere} {
		if found, err := postgres.Check(t.Context(), place); err != nil || len(found.Problems) > 0 {
			t.Errorf("%+v, %v", found, err)
		}
	}
	if _, err := db.Exec(t.Context(), "UPDATE schema_version SET version = $1", before); err != nil {
		t.Fatal(err)
	}
	if found, err := postgres.Check(t.Context(), url); err != nil || len(found.Problems) != 1 || !strings.Contains(found.Problems[0], fmt.Sprintf("format %d, and its schema version %d", format.Newest, before)) {
		t.Errorf("with the schema of before: %+v, %v", found, err)
	}
}

// raiseIsWhole has a raise fail while somebody reads what it changes, as a backup does: it
// waits for a second, changes nothing, and is no trouble to others.
func raiseIsWhole(t *testing.T, url string) {
	t.Helper()
	s, db := opened(t, url), session(t, url)
	before := versionOf(t, db)
	reading, err := db.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := reading.Exec(t.Context(), "SELECT count(*) FROM lease"); err != nil {
		t.Fatal(err)
	}
	answers := make(chan error, 2)
	s.Enqueue(raising(format.Newest), func(_ store.Revision, err error) { answers <- err })
	s.Enqueue(job(1), func(_ store.Revision, err error) { answers <- err })
	if err := <-answers; !fault.Is(err, fault.Unavailable) || !strings.Contains(err.Error(), "lock timeout") {
		t.Errorf("the raise is answered %v", err)
	}
	if err := <-answers; err != nil {
		t.Errorf("another transaction: %v", err)
	}
	for _, key := range []store.Key{store.FormatKey, {Kind: "job", ID: "99"}} {
		if _, err := s.Get(t.Context(), key); !fault.Is(err, fault.NotFound) {
			t.Errorf("%v is there: %v", key, err)
		}
	}
	if err := reading.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := versionOf(t, db); got != before {
		t.Errorf("the schema has version %d", got)
	}
	if _, err := store.Commit(t.Context(), s, raising(format.Newest)); err != nil {
		t.Errorf("tried again: %v", err)
	}
	if got := versionOf(t, db); got <= before {
		t.Errorf("then the schema has version %d", got)
	}
}

// nobodyOfBeforeLeads writes leases as a program does that has had the store open since
// before it was raised.
func nobodyOfBeforeLeads(t *testing.T, url string) {
	t.Helper()
	s, db := opened(t, url), session(t, url)
	const put = "INSERT INTO lease (name, holder, epoch, expires) VALUES ($1, $2, $3, $4) ON CONFLICT (name) DO UPDATE SET holder = $2, epoch = $3, expires = $4"
	lead := func(holder string, epoch int64) error {
		_, err := db.Exec(t.Context(), put, "leader", holder, epoch, int64(0))
		return err
	}
	if err := lead("old", 1); err != nil {
		t.Fatalf("before the raise: %v", err)
	}
	if _, err := store.Commit(t.Context(), s, raising(format.Newest)); err != nil {
		t.Fatal(err)
	}
	if err := lead("old", 2); err == nil {
		t.Error("it has acquired the lease")
	}
	if _, err := s.AcquireLease(t.Context(), "leader", "new", time.Minute); err != nil {
		t.Error(err)
	}
}

func imageOfLater(t *testing.T, url string) {
	t.Helper()
	err := postgres.Load(t.Context(), url, &image.Image{Revision: 7, Objects: func(yield func(store.Object, error) bool) {
		yield(store.Object{Key: store.FormatKey, Revision: 5, Value: format.Encode(format.Newest + 1)}, nil)
	}})
	if !fault.Is(err, fault.Unsupported) {
		t.Errorf("loaded: %v", err)
	}
}
