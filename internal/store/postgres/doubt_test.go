package postgres

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/readlease"
	"github.com/drover-project/drover/internal/store"
	"github.com/drover-project/drover/internal/testkit/pgserver"
)

// doubtTime bounds a test that waits for what may never come.
const doubtTime = time.Minute

// one is a transaction that could be made twice.
func one(id string) store.Tx {
	return store.Tx{Put: []store.Put{{Key: store.Key{Kind: "job", ID: id}, Value: []byte("1")}}}
}

// session is one that no store knows.
func session(ctx context.Context, t *testing.T, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

// enqueued hands a transaction over and returns where its answers come: its revision, zero for an error.
func enqueued(s *Store, tx store.Tx) <-chan error {
	answers := make(chan error, 2) // one more than there may be
	s.Enqueue(tx, func(_ store.Revision, err error) { answers <- err })
	return answers
}

// heard waits until something was said.
func heard(ctx context.Context, t *testing.T, what <-chan struct{}) {
	t.Helper()
	select {
	case <-what:
	case <-ctx.Done():
		t.Fatal("it was not said")
	}
}

// standsAt has a store that nobody disturbs make a transaction, which comes behind all that were begun: it shows how many
// there were.
func standsAt(ctx context.Context, t *testing.T, url string, before store.Revision) {
	t.Helper()
	if revision, err := store.Commit(ctx, openAt(t, url), one("last")); err != nil || revision != before+1 {
		t.Errorf("the next transaction is %d, %v; want %d", revision, err, before+1)
	}
}

// TestACommitThatWasNotAnsweredIsLookedUp cuts the writer's connection just behind a commit. What became of it is asked for,
// never guessed: it is made once, whether the server has committed it, is about to, or gives it up.
func TestACommitThatWasNotAnsweredIsLookedUp(t *testing.T) {
	server := pgserver.Start(t, false)
	t.Run("it is done", func(t *testing.T) { cutWhenDone(t, server.URL("done")) })
	t.Run("it is under way", func(t *testing.T) { cutUnderWay(t, server.URL("way"), "SELECT pg_advisory_unlock(1)") })
	t.Run("it is given up", func(t *testing.T) {
		cutUnderWay(t, server.URL("given"), "SELECT pg_terminate_backend(pid, 60000) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted AND objid = 1",
			"SELECT pg_advisory_unlock(1)")
	})
	t.Run("nobody can tell", func(t *testing.T) { cutForGood(t, server.URL("good")) })
}

func cutWhenDone(t *testing.T, url string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), doubtTime)
	defer cancel()
	w := newWire(t, url)
	s := openAt(t, w.url)
	asked := w.hears("pg_xact_status")
	const times = 3
	for i := range times {
		cut := w.cutNext(false)
		revision, err := store.Commit(ctx, s, one("again"))
		if err != nil || revision != store.Revision(i+1) {
			t.Errorf("commit %d is answered with revision %d, %v", i+1, revision, err)
		}
		heard(ctx, t, cut)
		heard(ctx, t, asked)
	}
	standsAt(ctx, t, url, times)
}

// blocking has commits wait for the lock 1.
const blocking = `CREATE FUNCTION waits() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_advisory_xact_lock_shared(1); RETURN NULL; END $$`

// cutUnderWay cuts the connection while the server is at the commit, and has that end by statements once the writer has
// asked for it and was told nothing.
func cutUnderWay(t *testing.T, url string, end ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), doubtTime)
	defer cancel()
	w := newWire(t, url)
	s, gate := openAt(t, w.url), session(ctx, t, url)
	for _, statement := range []string{
		blocking,
		"CREATE CONSTRAINT TRIGGER waits AFTER INSERT ON feed DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION waits()",
		"SELECT pg_advisory_lock(1)",
	} {
		if _, err := gate.Exec(ctx, statement); err != nil {
			t.Fatal(err)
		}
	}
	cut, ended := w.cutNext(false), w.hears("X\x00\x00\x00\x04")
	answers := enqueued(s, one("1"))
	heard(ctx, t, cut)
	heard(ctx, t, ended) // a connection over which it has asked
	for n := 0; n == 0; {
		if err := gate.QueryRow(ctx, "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted AND objid = 1").Scan(&n); err != nil {
			t.Fatal(err)
		}
	}
	select {
	case err := <-answers:
		t.Errorf("it is answered with %v while it is under way", err)
	default:
	}
	for _, statement := range end {
		if _, err := gate.Exec(ctx, statement); err != nil {
			t.Fatal(err)
		}
	}
	if err := <-answers; err != nil {
		t.Errorf("it is answered with %v", err)
	}
	standsAt(ctx, t, url, 1)
}

// cutForGood has the server be away until the writer has lost patience: it says so once, tries nothing again, and grants no
// read lease any more.
func cutForGood(t *testing.T, url string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), doubtTime)
	defer cancel()
	w := newWire(t, url)
	s := openAt(t, w.url)
	lessor := readlease.NewLessor(func() time.Time { return time.Now().Add(long) }, func() {})
	s.Lend(lessor)
	if err := <-enqueued(s, one("1")); err != nil {
		t.Fatal(err)
	}
	if a := lessor.Answer(ctx, readlease.Request{Holder: "standby", Serial: 1}); a.For <= 0 || a.Revision != 1 {
		t.Fatalf("before all this a read lease is %+v", a)
	}
	cut := w.cutNext(true)
	answers := enqueued(s, one("2"))
	heard(ctx, t, cut)
	s.writer.stop() // it has waited long enough
	if err := <-answers; !fault.Is(err, fault.Unavailable) {
		t.Errorf("it is answered with %v", err)
	}
	w.back()
	if a := lessor.Answer(ctx, readlease.Request{Holder: "standby", Serial: 2}); a.For > 0 {
		t.Errorf("in doubt a read lease is %+v", a)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if n := len(answers); n > 0 {
		t.Errorf("it is answered %d times more", n)
	}
	heard(ctx, t, w.ended) // the server was told of the commit, which it may not have come to yet
	standsAt(ctx, t, url, 2)
}

// TestWhatTookLongIsTakenAsItIs: neither a controller that stood still, nor a notification that it missed, nor a lock that
// it waited for leads it astray.
func TestWhatTookLongIsTakenAsItIs(t *testing.T) {
	server := pgserver.Start(t, false)
	t.Run("a missed notification", func(t *testing.T) { missed(t, server.URL("missed")) })
	t.Run("a transaction that stood still", func(t *testing.T) { stoodStill(t, server.URL("still")) })
	t.Run("a lease that expired meanwhile", func(t *testing.T) { expiredMeanwhile(t, server.URL("expired")) })
}

// missed has another commit while nothing is heard: that is found when the connection is there again.
func missed(t *testing.T, url string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), doubtTime)
	defer cancel()
	w := newWire(t, url)
	s := openAt(t, w.url)
	w.leave()
	if _, err := store.Commit(ctx, openAt(t, url), one("1")); err != nil {
		t.Fatal(err)
	}
	w.back()
	for changes, err := range s.Watch(ctx, 0) {
		if err != nil || changes[0].ID != "1" {
			t.Errorf("the feed tells of %v, %v", changes, err)
		}
		break
	}
}

// stoodStill has the server end the session of a writer that does not go on with its transaction: that is tried again.
func stoodStill(t *testing.T, url string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), doubtTime)
	defer cancel()
	w := newWire(t, url+"&idle_in_transaction_session_timeout=100ms")
	s := openAt(t, w.url)
	w.holdNext()
	if revision, err := store.Commit(ctx, s, one("1")); err != nil || revision != 1 {
		t.Errorf("it is answered with revision %d, %v", revision, err)
	}
	standsAt(ctx, t, url, 1)
}

// expiredMeanwhile has a stranger hold up who asks for a lease until it is over: the time counts at which it is judged.
func expiredMeanwhile(t *testing.T, url string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), doubtTime)
	defer cancel()
	first, second, stranger := openAt(t, url), openAt(t, url), session(ctx, t, url)
	held, err := first.AcquireLease(ctx, "leader", "first", time.Second)
	if err != nil {
		t.Fatal(err)
	}
	for _, statement := range []string{"BEGIN", "SELECT revision FROM head FOR UPDATE"} {
		if _, err := stranger.Exec(ctx, statement); err != nil {
			t.Fatal(err)
		}
	}
	answer := make(chan error, 1)
	go func() {
		_, err := second.AcquireLease(ctx, "leader", "second", long)
		answer <- err
	}()
	for n := 0; n == 0; {
		if err := stranger.QueryRow(ctx, "SELECT count(*) FROM pg_stat_activity WHERE pid = $1 AND wait_event_type = 'Lock'", int64(second.writer.pid.Load())).Scan(&n); err != nil {
			t.Fatal(err)
		}
		if _, err := stranger.Exec(ctx, "SELECT pg_stat_clear_snapshot()"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := stranger.Exec(ctx, "SELECT pg_sleep(greatest(0, extract(epoch FROM $1::timestamptz - clock_timestamp())))", held.Expires); err != nil {
		t.Fatal(err)
	}
	if _, err := stranger.Exec(ctx, "ROLLBACK"); err != nil {
		t.Fatal(err)
	}
	if err := <-answer; err != nil {
		t.Errorf("a lease that is over is not had: %v", err)
	}
}
