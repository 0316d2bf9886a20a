package postgres

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/store"
	"github.com/drover-project/drover/internal/testkit/pgserver"
)

// long is a time to live that no test outlives: what comes earlier does not
// come because a lease has expired.
const long = time.Hour

// waits begins to wait for the lease and returns where it will come.
func waits(t *testing.T, s *Store, holder string) chan store.Lease {
	t.Helper()
	got := make(chan store.Lease, 1)
	go func() {
		l, err := s.AwaitLease(t.Context(), "leader", holder, long, 0)
		if err == nil {
			got <- l
		}
	}()
	return got
}

// seated waits until a number of connections wait for a seat.
func seated(t *testing.T, s *Store, waiting int) {
	t.Helper()
	for n := -1; n != waiting; {
		if err := s.points.QueryRow(t.Context(), "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted AND classid = hashtext('drover ' || current_schema())::oid").Scan(&n); err != nil {
			t.Fatal(err)
		}
	}
}

func openAt(t *testing.T, url string) *Store {
	t.Helper()
	s, err := Open(t.Context(), url, Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() }) // a second time, unless the test failed
	return s
}

func TestAwaitLease(t *testing.T) {
	server := pgserver.Start(t, false)
	t.Run("the holder's connection ends", func(t *testing.T) { connectionEnds(t, server.URL("ends")) })
	t.Run("the lease is handed over", func(t *testing.T) { handedOver(t, server.URL("handed")) })
	t.Run("the waiter's connection ends", func(t *testing.T) { waiterReturns(t, server, server.URL("returns")) })
}

// connectionEnds kills the connection of a
// holder, as the kernel does when its process dies: who waits has the lease at
// once, and the former holder is fenced.
func connectionEnds(t *testing.T, url string) {
	t.Helper()
	first, second, third := openAt(t, url), openAt(t, url), openAt(t, url)
	held, err := first.AwaitLease(t.Context(), "leader", "first", long, 0)
	if err != nil {
		t.Fatal(err)
	}
	got := waits(t, second, "second")
	seated(t, third, 1)
	if _, err := third.points.Exec(t.Context(), "SELECT pg_terminate_backend($1)", int64(first.writer.pid.Load())); err != nil {
		t.Fatal(err)
	}
	if l := <-got; l.Holder != "second" || l.Epoch <= held.Epoch {
		t.Errorf("the lease is now %+v", l)
	}
	if _, err := store.Commit(t.Context(), first, store.Tx{Epoch: held.Epoch}); !fault.Is(err, fault.Fenced) {
		t.Errorf("the former holder commits: %v", err)
	}
	if _, err := first.RenewLease(t.Context(), held, long); !fault.Is(err, fault.Fenced) {
		t.Errorf("the former holder renews: %v", err)
	}
}

// handedOver: a lease that is released goes to one who
// waits, one that is handed over to the one who was named.
func handedOver(t *testing.T, url string) {
	t.Helper()
	first, second, third := openAt(t, url), openAt(t, url), openAt(t, url)
	held, err := first.AwaitLease(t.Context(), "leader", "first", long, 0)
	if err != nil {
		t.Fatal(err)
	}
	got := waits(t, second, "second")
	seated(t, third, 1)
	if err := first.ReleaseLease(t.Context(), held); err != nil {
		t.Fatal(err)
	}
	held = <-got
	stranger := waits(t, first, "first")
	seated(t, third, 1)
	if err := second.HandLease(t.Context(), held, "third", long); err != nil {
		t.Fatal(err)
	}
	seated(t, third, 1) // also on the lease that is meant for another
	if _, err := first.AcquireLease(t.Context(), "leader", "first", long); !fault.Is(err, fault.Busy) {
		t.Errorf("somebody else got it: %v", err)
	}
	taken, err := third.AwaitLease(t.Context(), "leader", "third", long, 0)
	if err != nil || taken.Epoch <= held.Epoch {
		t.Errorf("who was named has %+v, %v", taken, err)
	}
	select {
	case l := <-stranger:
		t.Errorf("somebody else got %+v", l)
	default:
	}
	if err := second.HandLease(t.Context(), held, "second", long); !fault.Is(err, fault.Fenced) {
		t.Errorf("it was handed over twice: %v", err)
	}
	// When the new holder dies, the stranger notices, although it began to wait for another's seat.
	if err := third.Close(); err != nil {
		t.Fatal(err)
	}
	if l := <-stranger; l.Holder != "first" || l.Epoch <= taken.Epoch {
		t.Errorf("after the death of who was named the lease is %+v", l)
	}
}

// waiterReturns: whoever lost its own connection waits for the holder's seat again as
// soon as it sees the holder there, or the holder sits down again.
func waiterReturns(t *testing.T, server *pgserver.Server, url string) {
	t.Helper()
	first, second, third := openAt(t, url), openAt(t, url), openAt(t, url)
	second.settle = long
	held, err := first.AwaitLease(t.Context(), "leader", "first", long, 0)
	if err != nil {
		t.Fatal(err)
	}
	got := waits(t, second, "second")
	for _, lose := range []func(){
		func() { // both connections, and neither comes back before the other is lost
			server.Kill(os.Interrupt)
			server.Up()
			third = openAt(t, url)
		},
		func() { // the waiter's alone
			if _, err := third.points.Exec(t.Context(), "SELECT pg_terminate_backend(pid, 60000) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"+
				" AND classid = hashtext('drover ' || current_schema())::oid"); err != nil {
				t.Fatal(err)
			}
		},
	} {
		seated(t, third, 1)
		lose()
		if held, err = first.RenewLease(t.Context(), held, long); err != nil {
			t.Fatal(err)
		}
	}
	seated(t, third, 1)
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if l := <-got; l.Holder != "second" || l.Epoch <= held.Epoch {
		t.Errorf("the lease is now %+v", l)
	}
}

// TestAPausedWriterHoldsUpNobody: a controller that stands still in the midst of a transaction loses it, and with it the
// lock that orders the writers.
func TestAPausedWriterHoldsUpNobody(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	server := pgserver.Start(t, false)
	paused, going := openAt(t, server.URL("paused")), openAt(t, server.URL("paused"))
	conn := paused.writer.conn // its goroutine does not use it before it is asked to write
	for _, statement := range []string{"BEGIN", "SELECT revision FROM head FOR UPDATE"} {
		if _, err := conn.Exec(ctx, statement); err != nil {
			t.Fatal(err)
		}
	}
	tx := store.Tx{Put: []store.Put{{Key: store.Key{Kind: "job", ID: "1"}, Value: []byte("1")}}}
	if _, err := store.Commit(ctx, going, tx); err != nil {
		t.Errorf("the other was held up: %v", err)
	}
	if _, err := conn.Exec(ctx, "COMMIT"); err == nil {
		t.Error("the paused one went on with a transaction that the other did not wait for")
	}
	if _, err := store.Commit(ctx, paused, tx); err != nil {
		t.Errorf("the paused one does not connect anew: %v", err)
	}
}
