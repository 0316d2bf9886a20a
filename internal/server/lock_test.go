package server_test

import (
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/server"
)

// TestLocks: who keeps whom from having something done to a server, and who takes that away.
func TestLocks(t *testing.T) {
	s := &server.Server{ID: "s1"}
	lock := func(s *server.Server, operator bool, reason string) *server.Server {
		t.Helper()
		next, err := s.Locked(server.Lock{Operator: operator, Reason: reason, Asked: bob})
		if err != nil {
			t.Fatal(err)
		}
		return next
	}
	users := lock(s, false, "mine")
	operators := lock(users, true, "")
	told := lock(s, true, "being moved")
	for what, c := range map[string]struct {
		server *server.Server
		user   string // what a user is told who has something done to it
		unlock bool   // whether a user may take the lock away
	}{
		"without a lock": {s, "", true}, "a user's": {users, "unlock it first", true}, "an operator's in place of a user's": {operators, "an operator", false},
		"an operator's with a reason":   {told, "an operator locked it: being moved", false},
		"a user's beside an operator's": {lock(told, false, "mine"), "being moved", false}, "another reason of an operator": {lock(told, true, "again"), "again", false},
	} {
		if err := c.server.Unlocked(true); err != nil {
			t.Errorf("%s holds up an operator: %v", what, err)
		}
		if err := c.server.Unlocked(false); (err == nil) != (c.user == "") || err != nil && (!fault.Is(err, fault.WrongState) || !strings.Contains(err.Error(), "Instance s1 is locked") || !strings.Contains(err.Error(), c.user)) {
			t.Errorf("%s: a user is told %v", what, err)
		}
		next, err := c.server.Unlock(false, alice)
		if (err == nil) != c.unlock || err != nil && !fault.Is(err, fault.Denied) || err == nil && next.Lock != nil {
			t.Errorf("%s: a user takes it away: %v", what, err)
		}
		if next, err := c.server.Unlock(true, alice); err != nil || next.Lock != nil {
			t.Errorf("%s: an operator takes it away: %v", what, err)
		}
	}
	if lock(users, false, "other") != users || lock(told, true, "being moved") != told {
		t.Error("a lock that is there is changed")
	}
	for _, reason := range []string{strings.Repeat("é", 256), "a\nb"} {
		if _, err := s.Locked(server.Lock{Reason: reason}); !fault.Is(err, fault.Invalid) {
			t.Errorf("the reason %.10q: %v", reason, err)
		}
	}
	lock(s, false, strings.Repeat("é", 255))
	open, err := operators.Unlock(true, alice)
	if err != nil {
		t.Fatal(err)
	}
	var done []string
	for _, a := range open.Acts() {
		if a.Ended == 0 || a.Job != 0 {
			t.Errorf("what was done is not over: %+v", a)
		}
		done = append(done, string(a.Do)+" by "+a.Asked.User)
	}
	if got := strings.Join(done, ", "); got != "lock by bob, lock by bob, unlock by alice" || open.Serial != 3 {
		t.Errorf("what was done is %s", got)
	}
}
