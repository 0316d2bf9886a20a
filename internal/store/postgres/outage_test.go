package postgres

import (
	"context"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/store"
	"github.com/drover-project/drover/internal/testkit/pgserver"
)

// execute runs statements on the server, in sessions that are none of the store's.
func execute(t *testing.T, s *Store, statements ...string) {
	t.Helper()
	conn, err := s.points.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	for _, statement := range append([]string{"SET default_transaction_read_only = off"}, statements...) {
		if _, err := conn.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
}

// full is a table that the server cannot extend, by the code of its answer.
const full = `CREATE OR REPLACE FUNCTION no_room() RETURNS trigger LANGUAGE plpgsql AS
	$$ BEGIN RAISE EXCEPTION 'could not extend file' USING ERRCODE = 'disk_full'; END $$`

// outage is one way in which a server is of no use for a while.
type outage struct {
	name         string
	begin, end   func(t *testing.T, server *pgserver.Server, s *Store)
	disconnected bool
}

func outages() []outage {
	return []outage{
		{"no room", func(t *testing.T, _ *pgserver.Server, s *Store) {
			execute(t, s, full, "CREATE TRIGGER full_lease BEFORE INSERT OR UPDATE ON lease EXECUTE FUNCTION no_room()",
				"CREATE TRIGGER full_feed BEFORE INSERT ON feed EXECUTE FUNCTION no_room()")
		}, func(t *testing.T, _ *pgserver.Server, s *Store) {
			execute(t, s, "DROP TRIGGER full_lease ON lease", "DROP TRIGGER full_feed ON feed")
		}, false},
		{"read only", func(t *testing.T, _ *pgserver.Server, s *Store) {
			execute(t, s, "ALTER SYSTEM SET default_transaction_read_only = on", "SELECT pg_reload_conf()")
		}, func(t *testing.T, _ *pgserver.Server, s *Store) {
			execute(t, s, "ALTER SYSTEM RESET default_transaction_read_only", "SELECT pg_reload_conf()")
		}, false},
		{"away", func(_ *testing.T, server *pgserver.Server, _ *Store) { server.Kill(os.Interrupt) },
			func(_ *testing.T, server *pgserver.Server, _ *Store) { server.Up() }, true},
	}
}

// TestAnOutageLeavesTheLeadWhereItIs has a server refuse changes, or be away, for longer
// than a lease lasts: the holder has it still when that is over, and nobody else took it meanwhile.
func TestAnOutageLeavesTheLeadWhereItIs(t *testing.T) { //nolint:gocognit // one story
	server := pgserver.Start(t, false)
	for _, of := range outages() {
		t.Run(of.name, func(t *testing.T) {
			const ttl, settle = 500 * time.Millisecond, 4 * time.Second
			url := server.URL("outage_" + string(of.name[0]))
			first, second := openAt(t, url), openAt(t, url)
			second.settle = settle
			held, err := first.AwaitLease(t.Context(), "leader", "first", ttl, 0)
			if err != nil {
				t.Fatal(err)
			}
			renewing, stop := context.WithCancel(t.Context())
			var parts sync.WaitGroup
			defer parts.Wait()
			defer stop()
			renewed := make(chan error, 1000)
			parts.Go(func() {
				for renewing.Err() == nil {
					_, err := first.RenewLease(renewing, held, ttl)
					renewed <- err
					time.Sleep(ttl / 10)
				}
			})
			waiting := make(chan error, 1)
			parts.Go(func() {
				_, err := second.AwaitLease(renewing, "leader", "second", ttl, 0)
				waiting <- err
			})
			for range 3 {
				if err := <-renewed; err != nil {
					t.Fatal(err)
				}
			}
			seat := first.writer.pid.Load()
			of.begin(t, server, first)
			for begun := time.Now(); time.Since(begun) < 4*ttl; { // refused all the time
				if err := <-renewed; err == nil {
					begun = time.Now()
				} else if !fault.Is(err, fault.Unavailable) && !fault.Is(err, fault.Exhausted) {
					t.Fatalf("a renewal during the outage: %v", err)
				}
			}
			of.end(t, server, first)
			for err := <-renewed; err != nil; err = <-renewed {
				if fault.Is(err, fault.Fenced) {
					t.Fatalf("the lead was lost: %v", err)
				}
			}
			if now := first.writer.pid.Load(); (now == seat) != !of.disconnected {
				t.Errorf("the holder's connection, and with it its seat, was %d and is %d", seat, now)
			}
			if _, err := store.Commit(t.Context(), first, store.Tx{Epoch: held.Epoch}); err != nil {
				t.Errorf("after the outage: %v", err)
			}
			select {
			case err := <-waiting:
				t.Fatalf("who waits ended with %v", err)
			default:
			}
			// Who dies in an outage is followed all the same.
			of.begin(t, server, second)
			stop()
			parts.Wait()
			second.settle = ttl
			_ = first.Close()
			got := make(chan error, 1)
			go func() {
				l, err := second.AwaitLease(t.Context(), "leader", "second", ttl, 0)
				// It may have taken it in the moment when it was told to wait no longer, too.
				if err == nil && (l.Holder != "second" || l.Epoch <= held.Epoch) {
					t.Errorf("the lease is %+v after %+v", l, held)
				}
				got <- err
			}()
			of.end(t, server, second)
			if err := <-got; err != nil {
				t.Error(err)
			}
		})
	}
}
