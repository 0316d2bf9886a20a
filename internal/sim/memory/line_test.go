package memory_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/readlease"
	"github.com/drover-project/drover/internal/sim/memory"
	"github.com/drover-project/drover/internal/store"
)

// line loses messages that a test names, and holds up those that it names.
type line struct {
	mu   sync.Mutex
	lost map[memory.Message]bool
	slow map[memory.Message]time.Duration
}

func (l *line) set(change func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change()
}

func (l *line) Cross(ctx context.Context, m memory.Message) error {
	l.mu.Lock()
	lost, slow := l.lost[m], l.slow[m]
	l.mu.Unlock()
	if slow > 0 {
		select {
		case <-time.After(slow):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	if lost {
		return fault.New(fault.Unavailable, "the %s is lost", m)
	}
	return nil
}

// TestLines has messages lost in the midst of a commit.
func TestLines(t *testing.T) {
	tx := store.Tx{Put: []store.Put{{Key: store.Key{Kind: "job", ID: "1"}, Value: []byte("1")}}}
	for _, tc := range []struct {
		name     string
		lost     []memory.Message
		heals    time.Duration
		answered bool // that it took effect
		stored   bool
		known    bool // leases are still granted
	}{
		{"nothing", nil, 0, true, true, true},
		{"the beginning, for a while", []memory.Message{memory.Begin}, 2 * time.Second, true, true, true},
		{"the beginning, for long", []memory.Message{memory.Begin}, 20 * time.Second, false, false, true},
		{"the commit, for a while", []memory.Message{memory.Commit}, 2 * time.Second, true, true, true},
		{"the answer", []memory.Message{memory.Answer}, 20 * time.Second, true, true, true},
		{"the answer, and what asks for it", []memory.Message{memory.Answer, memory.Lookup}, 2 * time.Second, true, true, true},
		{"the answer, and for long what asks for it", []memory.Message{memory.Answer, memory.Lookup}, 20 * time.Second, false, true, false},
		{"the commit, and for long what asks for it", []memory.Message{memory.Commit, memory.Lookup}, 20 * time.Second, false, false, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := &line{lost: map[memory.Message]bool{}}
				db := memory.New(memory.Options{})
				s := db.Open(memory.Handle{Line: l})
				defer s.Close() //nolint:errcheck // it never fails
				lessor := readlease.NewLessor(func() time.Time { return time.Now().Add(time.Hour) }, func() {})
				s.Lend(lessor)
				for _, m := range tc.lost {
					l.lost[m] = true
				}
				time.AfterFunc(tc.heals, func() { l.set(func() { clear(l.lost) }) })
				_, err := store.Commit(t.Context(), s, tx)
				if (err == nil) != tc.answered || err != nil && !fault.Is(err, fault.Unavailable) {
					t.Errorf("answered %v", err)
				}
				time.Sleep(time.Minute)
				if _, err := s.Get(t.Context(), tx.Put[0].Key); (err == nil) != tc.stored {
					t.Errorf("stored: %v", err)
				}
				_, err = store.Commit(t.Context(), s, store.Tx{}) // so that the lessor knows a revision
				a := lessor.Answer(t.Context(), readlease.NewLessee("a").Request(time.Now()))
				if err != nil || (a.For > 0) != tc.known {
					t.Errorf("a lease is granted for %v (%v), want one: %v", a.For, err, tc.known)
				}
			})
		})
	}
}

// TestOneThatStandsStillHoldsUpNobody: a writer that is paused in the midst of a
// transaction loses it, and with it the lock that orders the writers.
func TestOneThatStandsStillHoldsUpNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := memory.New(memory.Options{})
		l := &line{slow: map[memory.Message]time.Duration{memory.Commit: 4 * time.Second}}
		paused, going := db.Open(memory.Handle{Line: l}), db.Open(memory.Handle{})
		defer paused.Close() //nolint:errcheck // it never fails
		defer going.Close()  //nolint:errcheck // nor this
		first := make(chan store.Revision, 1)
		paused.Enqueue(store.Tx{}, func(rev store.Revision, _ error) { first <- rev })
		synctest.Wait()
		begun := time.Now()
		rev, err := store.Commit(t.Context(), going, store.Tx{})
		if took := time.Since(begun); err != nil || rev != 1 || took == 0 || took >= 4*time.Second {
			t.Errorf("the other committed %d after %v: %v", rev, took, err)
		}
		l.set(func() { clear(l.slow) })
		if rev := <-first; rev != 2 {
			t.Errorf("the paused one committed %d", rev)
		}
	})
}

// TestADeadHoldersSeatIsFree: who waits has the lease as soon as the database sees that
// the connection of the holder has ended, and one that comes back sits down again.
func TestADeadHoldersSeatIsFree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := memory.New(memory.Options{})
		a, b := db.Open(memory.Handle{}), db.Open(memory.Handle{})
		defer a.Close() //nolint:errcheck // it never fails
		defer b.Close() //nolint:errcheck // nor this
		held, err := a.AwaitLease(t.Context(), "leader", "a", time.Hour, 0)
		if err != nil {
			t.Fatal(err)
		}
		a.Disconnect()
		if _, err := a.RenewLease(t.Context(), held, time.Hour); err != nil { // before anybody saw it
			t.Fatal(err)
		}
		got := make(chan store.Lease, 1)
		go func() {
			l, _ := b.AwaitLease(t.Context(), "leader", "b", time.Hour, 0)
			got <- l
		}()
		time.Sleep(time.Minute)
		if len(got) > 0 {
			t.Fatal("the lease was taken from one that came back")
		}
		a.Disconnect()
		synctest.Wait()
		if len(got) == 0 {
			t.Fatal("who waits was not told")
		}
		if l := <-got; l.Holder != "b" {
			t.Errorf("the lease is %+v", l)
		}
	})
}
