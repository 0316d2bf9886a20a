package tagsync_test

import (
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/audit"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/reason"
	"github.com/drover-project/drover/internal/server"
	"github.com/drover-project/drover/internal/store"
	"github.com/drover-project/drover/internal/store/faultstore"
	"github.com/drover-project/drover/internal/tagsync"
)

// storedLock is what is stored of the lock of a server; empty for nothing.
func (r *rig) storedLock(id string) string {
	r.Helper()
	o, err := r.store.Get(r.ctx, store.Key{Kind: tagsync.KindLock, ID: id})
	if fault.Is(err, fault.NotFound) {
		return ""
	}
	r.check(err)
	return string(o.Value)
}

// TestLocksLast: a lock is there when the controller was started again, and goes with its server. It is an object of its own, so a
// program of before that writes the server forgets nothing of it.
func TestLocksLast(t *testing.T) {
	r := newRig(t)
	s, other := r.create("a"), r.create()
	_, err := r.engine.Lock(s.ID, server.Lock{Reason: "mine", Asked: r.asked()})
	r.check(err)
	_, err = r.engine.Want(s.ID, user, []string{"b"}, r.asked()) // whatever else is written of it
	r.check(err)
	r.settled(s.ID)
	text, err := r.engine.Servers().Get(s.ID).Encode()
	r.check(err)
	if strings.Contains(string(text), "mine") || !strings.Contains(r.storedLock(s.ID), `"reason":"mine"`) {
		t.Errorf("the lock is %q beside %s", r.storedLock(s.ID), text)
	}
	r.stop()
	r.start()
	s = r.settled(s.ID)
	if s.Lock == nil || s.Lock.Reason != "mine" || s.Lock.Asked.User != "alice" || r.engine.Servers().Get(other.ID).Lock != nil {
		t.Fatalf("started again it has the lock %+v", s.Lock)
	}
	_, err = r.engine.Unlock(s.ID, false, r.asked())
	r.check(err)
	if r.storedLock(s.ID) != "" || r.engine.Servers().Get(s.ID).Lock != nil {
		t.Error("it is still locked")
	}
	_, err = r.engine.Lock(s.ID, server.Lock{Asked: r.asked()})
	r.check(err)
	_, err = r.engine.Begin(s.ID, server.Delete, r.asked()) // as an operator does
	r.check(err)
	r.until(s.ID, "is gone", func(s *server.Server) bool { return s == nil })
	if got := r.storedLock(s.ID); got != "" {
		t.Errorf("the server is gone, and its lock is %s", got)
	}
}

// TestLocksThatWereLeft: by a program that knows none those of servers that are gone are removed, and one that cannot be read
// is an operator's.
func TestLocksThatWereLeft(t *testing.T) {
	r := newRig(t)
	s := r.create()
	for id, text := range map[string]string{"nosuch": `{"operator":true}`, s.ID: `[`} {
		_, err := store.Commit(t.Context(), r.store, store.Tx{Put: []store.Put{{Key: store.Key{Kind: tagsync.KindLock, ID: id}, Value: []byte(text)}}})
		r.check(err)
	}
	r.stop()
	r.start()
	if got := r.storedLock("nosuch"); got != "" {
		t.Errorf("the lock of no server is %s", got)
	}
	if s = r.settled(s.ID); s.Lock == nil || !s.Lock.Operator || len(r.engine.Unreadable()) != 1 {
		t.Errorf("the lock that cannot be read is %+v, and told is %q", s.Lock, r.engine.Unreadable())
	}
	_, err := r.engine.Unlock(s.ID, true, r.asked())
	r.check(err)
	if r.storedLock(s.ID) != "" {
		t.Error("it is still stored")
	}
}

// TestTheLockOfAServerThatIsSetAside: one whose object cannot be read is not gone. When that is mended the lock is there, as before.
func TestTheLockOfAServerThatIsSetAside(t *testing.T) {
	r := newRig(t)
	s := r.create()
	_, err := r.engine.Lock(s.ID, server.Lock{Operator: true, Reason: "audit", Asked: r.asked()})
	r.check(err)
	s = r.settled(s.ID)
	whole, err := r.store.Get(r.ctx, store.Key{Kind: tagsync.KindServer, ID: s.ID})
	r.check(err)
	for _, text := range []string{"[", string(whole.Value)} {
		_, err = store.Commit(t.Context(), r.store, store.Tx{Put: []store.Put{{Key: whole.Key, At: whole.At, Value: []byte(text)}}})
		r.check(err)
		r.stop()
		r.start()
		if got := r.storedLock(s.ID); !strings.Contains(got, `"reason":"audit"`) {
			t.Errorf("with %.20s as the server its lock is %q", text, got)
		}
	}
	if s = r.settled(s.ID); s.Lock == nil || s.Lock.Reason != "audit" {
		t.Errorf("the lock of the server that is mended is %+v", s.Lock)
	}
}

// TestALockThatCannotBeReadHoldsUpNoOperator: it stays an operator's when its server is read anew, for the store did not say what became of a change; and an
// operator takes it away.
func TestALockThatCannotBeReadHoldsUpNoOperator(t *testing.T) {
	r := newRig(t)
	s := r.create()
	_, err := store.Commit(t.Context(), r.store, store.Tx{Put: []store.Put{{Key: store.Key{Kind: tagsync.KindLock, ID: s.ID}, Value: []byte(`[`)}}})
	r.check(err)
	r.stop()
	r.start()
	r.check(r.engine.Attend(t.Context(), s.ID)) // nothing else is written of it then
	r.store.Inject(faultstore.Fault{Do: faultstore.FailBefore, When: writes("wished")})
	if _, err := r.engine.Want(s.ID, user, []string{"wished"}, r.asked()); !fault.Is(err, fault.Unavailable) {
		t.Fatal(err)
	}
	if _, err := r.engine.Unlock(s.ID, false, r.asked()); !fault.Is(err, fault.Denied) {
		t.Errorf("its user unlocks it: %v", err)
	}
	_, err = r.engine.Unlock(s.ID, true, r.asked())
	r.check(err)
	if r.storedLock(s.ID) != "" {
		t.Error("it is still stored")
	}
}

// TestALockOfWhichNobodyHeard: when the store does not say what became of a change, the lock is read again with its server.
func TestALockOfWhichNobodyHeard(t *testing.T) {
	r := newRig(t)
	s := r.create()
	r.store.Inject(faultstore.Fault{Do: faultstore.FailAfter, Err: fault.New(fault.Unavailable, "no answer"), When: func(tx store.Tx) bool { return len(tx.Put) == 2 && tx.Put[1].Kind == tagsync.KindLock }})
	if _, err := r.engine.Lock(s.ID, server.Lock{Asked: r.asked()}); !fault.Is(err, fault.Unavailable) {
		t.Fatal(err)
	}
	r.until(s.ID, "is locked", func(s *server.Server) bool { return s.Lock != nil })
}

// TestOperatorsLock: whoever may use the socket takes any lock away, and events tell of it.
func TestOperatorsLock(t *testing.T) {
	r := newRig(t)
	s := r.create()
	by := audit.By{Account: reason.Account{Name: "root", Surface: "luxi"}}
	for _, c := range []struct {
		locked, dry bool
		reason      string
		changed     bool
		lock        string
	}{
		{false, false, "", false, ""}, {true, true, "moved", true, ""}, {true, false, "moved", true, "moved"}, {true, false, "moved", false, "moved"},
		{true, false, "again", true, "again"}, {false, true, "", true, "again"}, {false, false, "", true, ""},
	} {
		changed, err := r.engine.HoldServer(s.ID, c.locked, c.reason, c.dry, by)
		now := r.engine.Servers().Get(s.ID).Lock
		if err != nil || changed != c.changed || (now == nil) != (c.lock == "") || now != nil && (now.Reason != c.lock || !now.Operator || now.Asked.User != "root") {
			t.Errorf("%+v: changed %v (%v), and the lock is %+v", c, changed, err, now)
		}
	}
	if _, err := r.engine.HoldServer("nosuch", true, "", false, by); !fault.Is(err, fault.NotFound) {
		t.Errorf("no server: %v", err)
	}
	if _, err := r.engine.HoldServer(s.ID, true, "a\nb", false, by); !fault.Is(err, fault.Invalid) {
		t.Errorf("a reason of two lines: %v", err)
	}
	var told []string
	for o, err := range r.store.List(t.Context(), "event", store.Options{}) {
		r.check(err)
		e, err := audit.Decode(o.Value)
		r.check(err)
		if e.Object == s.ID {
			told = append(told, string(e.What)+" "+string(e.Before)+" "+string(e.After)+" by "+e.Who)
		}
	}
	want := `server.lock  {"operator":true,"reason":"moved"} by root
server.lock {"operator":true,"reason":"moved"} {"operator":true,"reason":"again"} by root
server.unlock {"operator":true,"reason":"again"}  by root`
	if got := strings.Join(told, "\n"); got != want {
		t.Errorf("events are\n%s", got)
	}
}
