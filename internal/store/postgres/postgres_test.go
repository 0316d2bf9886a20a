package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/store"
	"github.com/drover-project/drover/internal/store/postgres"
	"github.com/drover-project/drover/internal/store/storetest"
	"github.com/drover-project/drover/internal/testkit/pgserver"
)

// schemaOf names the schema of a store that a test knows by a directory.
func schemaOf(dir string) string {
	h := fnv.New64a()
	_, _ = h.Write([]byte(dir)) // never fails
	return fmt.Sprintf("s%x", h.Sum64())
}

func TestConformanceOfStore(t *testing.T) {
	server := pgserver.Start(t, false)
	storetest.Run(t, func(tb testing.TB, s storetest.Setting) store.Store {
		tb.Helper()
		return open(tb, server.URL(schemaOf(s.Dir)), postgres.Options{Now: s.Now, Keep: s.Keep})
	})
}

func TestConformanceOfSharedStore(t *testing.T) {
	server := pgserver.Start(t, false)
	storetest.RunShared(t, func(tb testing.TB, name string) store.Shared {
		tb.Helper()
		return open(tb, server.URL(schemaOf(name)), postgres.Options{})
	})
}

func open(tb testing.TB, url string, opts postgres.Options) *postgres.Store {
	tb.Helper()
	s, err := postgres.Open(context.Background(), url, opts)
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

// opened is a store that is closed when the test ends.
func opened(tb testing.TB, url string) *postgres.Store {
	tb.Helper()
	s := open(tb, url, postgres.Options{})
	tb.Cleanup(func() {
		if err := s.Close(); err != nil {
			tb.Error(err)
		}
	})
	return s
}

func job(id int) store.Tx {
	return store.Tx{Put: []store.Put{{Key: store.Key{Kind: "job", ID: strconv.Itoa(id)}, Value: []byte("1")}}}
}

// TestACrashOfTheServerLosesNothing: commits go on over crashes and restarts of
// the server; each is either answered and there, or refused and not there.
func TestACrashOfTheServerLosesNothing(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	server := pgserver.Start(t, true)
	s := opened(t, server.URL("crash"))
	var acknowledged atomic.Int64
	half, done := make(chan struct{}), make(chan []error)
	const jobs, crashAt = 200, 60
	go func() {
		answers := make([]error, jobs)
		for i := range jobs {
			tx := job(i)
			tx.Expect = []store.Expect{{Key: tx.Put[0].Key}} // twice would be a conflict
			_, answers[i] = store.Commit(ctx, s, tx)
			if answers[i] == nil && acknowledged.Add(1) == crashAt {
				close(half)
			}
		}
		done <- answers
	}()
	<-half
	server.Kill(syscall.SIGQUIT)
	server.Up()
	for i, err := range <-done {
		_, got := s.Get(ctx, store.Key{Kind: "job", ID: strconv.Itoa(i)})
		switch {
		case err == nil && got != nil:
			t.Errorf("job %d was acknowledged and is not there: %v", i, got)
		case err != nil && !fault.Is(err, fault.Unavailable):
			t.Errorf("job %d: %v", i, err)
		}
	}
	var last store.Revision
	for after := store.Revision(0); ; {
		changes, err := s.Changes(ctx, after, 100)
		if err != nil {
			t.Fatal(err)
		}
		if len(changes) == 0 {
			break
		}
		for _, c := range changes {
			if c.Revision != last+1 {
				t.Errorf("revision %d follows %d", c.Revision, last)
			}
			last = c.Revision
		}
		after = last
	}
}

// TestACutConnectionIsLookedUp ends the writer's connection from the server's
// side while it commits: no commit is lost, and none is made twice.
func TestACutConnectionIsLookedUp(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	server := pgserver.Start(t, false)
	s := opened(t, server.URL("cut"))
	admin, err := pgx.Connect(ctx, server.URL("cut"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = admin.Close(ctx) }()
	const jobs, every = 300, 25
	for i := range jobs {
		answer := make(chan error, 1)
		tx := job(i)
		tx.Expect = []store.Expect{{Key: tx.Put[0].Key}}
		s.Enqueue(tx, func(_ store.Revision, err error) { answer <- err })
		if i%every == 0 {
			if _, err := admin.Exec(ctx, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'drover'"); err != nil {
				t.Fatal(err)
			}
		}
		if err := <-answer; err != nil {
			t.Fatalf("job %d: %v", i, err)
		}
	}
	n := 0
	for _, err := range s.List(ctx, "job", store.Options{}) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	if rev, err := s.Revision(ctx); err != nil || n != jobs || rev != jobs {
		t.Errorf("%d jobs at revision %d (%v), want %d of both", n, rev, err, jobs)
	}
}

func TestOpenSaysWhatIsWrong(t *testing.T) {
	server := pgserver.Start(t, false)
	s := open(t, server.URL("newer"), postgres.Options{})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Errorf("closed twice: %v", err)
	}
	if _, err := store.Commit(t.Context(), s, job(1)); !fault.Is(err, fault.Unavailable) {
		t.Errorf("a closed store answers %v", err)
	}
	admin, err := pgx.Connect(t.Context(), server.URL("newer"))
	if err != nil {
		t.Fatal(err)
	}
	_, errExec := admin.Exec(t.Context(), "UPDATE schema_version SET version = 99")
	if err := errors.Join(errExec, admin.Close(t.Context())); err != nil {
		t.Fatal(err)
	}
	for url, want := range map[string]string{
		server.URL("newer"):                    "schema version 99",
		"postgres://nobody@127.0.0.1:1/nosuch": "cannot be reached",
		"postgres://%zz":                       "cannot be read",
		strings.Replace(server.URL("x"), "dbname=postgres", "dbname=nosuch", 1): "has no such database",
	} {
		if _, err := postgres.Open(t.Context(), url, postgres.Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q in it", url, err, want)
		} else if fault.Is(err, fault.Unavailable) != (want == "cannot be reached") {
			t.Errorf("%s: %v: it may pass, or may not", url, err)
		}
	}
}
