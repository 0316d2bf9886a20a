package identity_test

import (
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/identity"
	"github.com/drover-project/drover/internal/rights"
	"github.com/drover-project/drover/internal/store"
)

// administer makes a user who administers in a project of the same name.
func (r *rig) administer(t *testing.T, name string) identity.User {
	t.Helper()
	p, err := r.AddProject(t.Context(), identity.ProjectEdit{Name: &name})
	check(t, err)
	u, err := r.AddUser(t.Context(), identity.UserEdit{Name: &name, Password: new("opensesame")})
	check(t, err)
	check(t, r.SetRole(t.Context(), u.ID, p.ID, identity.Admin, true))
	return u
}

// undoings are the ways to make of an administrator one that is none.
var undoings = map[string]func(*testing.T, *rig) error{
	"the user is removed": func(t *testing.T, r *rig) error { return r.RemoveUser(t.Context(), "root") },
	"the user is disabled": func(t *testing.T, r *rig) error {
		_, err := r.EditUser(t.Context(), "root", identity.UserEdit{Enabled: new(false)})
		return err
	},
	"the role is taken": func(t *testing.T, r *rig) error {
		return r.SetRole(t.Context(), "root", "root", identity.Admin, false)
	},
	"the project is removed": func(t *testing.T, r *rig) error { return r.RemoveProject(t.Context(), "root") },
	"the project is disabled": func(t *testing.T, r *rig) error {
		_, err := r.EditProject(t.Context(), "root", identity.ProjectEdit{Enabled: new(false)})
		return err
	},
}

// others are users who do not administer, whatever they look like.
var others = map[string]func(*testing.T, *rig){
	"members": func(*testing.T, *rig) {},
	"an administrator who is disabled": func(t *testing.T, r *rig) {
		r.administer(t, "old")
		_, err := r.EditUser(t.Context(), "old", identity.UserEdit{Enabled: new(false)})
		check(t, err)
	},
	"an administrator of a project that is disabled": func(t *testing.T, r *rig) {
		r.administer(t, "old")
		_, err := r.EditProject(t.Context(), "old", identity.ProjectEdit{Enabled: new(false)})
		check(t, err)
	},
	"an administrator who has no password": func(t *testing.T, r *rig) {
		u, err := r.AddUser(t.Context(), identity.UserEdit{Name: new("new")})
		check(t, err)
		check(t, r.SetRole(t.Context(), u.ID, r.home.ID, identity.Admin, true))
	},
}

// TestTheLastAdministratorStays: whatever is done to make of him none, and whoever
// else there is, until there is another one.
func TestTheLastAdministratorStays(t *testing.T) {
	for how := range undoings {
		t.Run(how, func(t *testing.T) { lastAdministrator(t, how, "members") })
	}
	for who := range others {
		t.Run("beside "+who, func(t *testing.T) { lastAdministrator(t, "the role is taken", who) })
	}
}

func lastAdministrator(t *testing.T, how, who string) {
	t.Helper()
	r := newRig(t)
	r.administer(t, "root")
	others[who](t, r)
	if err := undoings[how](t, r); !fault.Is(err, fault.Conflict) {
		t.Fatalf("got %v", err)
	}
	if s, err := r.Session(r.log(t, identity.Login{User: "root", Password: "opensesame"})); err != nil || s.Account().May(rights.Administer, rights.Of{}) != rights.Allowed {
		t.Errorf("root administers no more: %v", err)
	}
	r.administer(t, "second")
	check(t, undoings[how](t, r))
}

// TestWithoutAdministratorsAccountsCanBeChanged: as on a cluster that has none.
func TestWithoutAdministratorsAccountsCanBeChanged(t *testing.T) {
	r := newRig(t)
	check(t, r.SetRole(t.Context(), "alice", "home", identity.Member, false))
	check(t, r.RemoveUser(t.Context(), "alice"))
	check(t, r.RemoveProject(t.Context(), "home"))
}

// TestAProjectWithServersStays: as nobody could reach them any more.
func TestAProjectWithServersStays(t *testing.T) {
	r := newRig(t)
	r.servers[r.home.ID] = 3
	token := r.log(t, alice)
	if err := r.RemoveProject(t.Context(), "home"); !fault.Is(err, fault.Conflict) {
		t.Errorf("it is removed: %v", err)
	}
	if _, err := r.Session(token); err != nil {
		t.Errorf("its sessions ended: %v", err)
	}
	r.servers[r.home.ID] = 0
	check(t, r.RemoveProject(t.Context(), "home"))
	if _, err := r.Keep(r.home.ID); !fault.Is(err, fault.Denied) {
		t.Errorf("what is removed can be kept: %v", err)
	}
}

// TestNothingIsMadeForAProjectThatGoes: between the moment at which its servers
// are counted and that at which it is gone.
func TestNothingIsMadeForAProjectThatGoes(t *testing.T) {
	r := newRig(t)
	kept := make(chan error, 1)
	r.counting = func() {
		go func() {
			release, err := r.Keep(r.home.ID)
			if err == nil {
				release()
			}
			kept <- err
		}()
		for range 1000 { // it would be done by then
			runtime.Gosched()
		}
	}
	check(t, r.RemoveProject(t.Context(), "home"))
	if err := <-kept; !fault.Is(err, fault.Denied) {
		t.Errorf("something is made for it: %v", err)
	}
}

// TestAProjectStaysWhileSomethingIsMadeForIt: what it owns is counted when that is there.
func TestAProjectStaysWhileSomethingIsMadeForIt(t *testing.T) {
	r := newRig(t)
	release, err := r.Keep(r.home.ID)
	check(t, err)
	var made atomic.Bool
	r.counting = func() {
		if !made.Load() {
			t.Error("what it owns is counted while something is made for it")
		}
	}
	removed := make(chan error, 1)
	go func() { removed <- r.RemoveProject(t.Context(), "home") }()
	select { // it would be done by then
	case err := <-removed:
		t.Fatalf("it is removed while something is made for it: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	made.Store(true)
	release()
	check(t, <-removed)
}

// TestNothingStaysOfAUser: no session, and no credential, whose secret nobody would look after.
func TestNothingStaysOfAUser(t *testing.T) {
	r := newRig(t)
	cred, secret, err := r.AddCredential(t.Context(), identity.Credential{Name: "ci", User: r.user.ID, Project: r.home.ID}, "")
	check(t, err)
	r.log(t, alice)
	r.log(t, identity.Login{Credential: cred.ID, Secret: secret})
	check(t, r.RemoveUser(t.Context(), "alice"))
	for _, kind := range []store.Kind{identity.KindUser, identity.KindCredential, identity.KindToken} {
		for o, err := range r.store.List(t.Context(), kind, store.Options{}) {
			check(t, err)
			t.Errorf("of a user who is removed there is still %s %s", kind, o.Value)
		}
	}
	r.open(t)
	if left := r.Credentials(r.user.ID); len(left) > 0 {
		t.Errorf("and, read anew, %+v", left)
	}
}

// TestAUserGoesAtOnce: a store that takes one write more and no other leaves no credential without its user.
func TestAUserGoesAtOnce(t *testing.T) {
	r := newRig(t)
	_, _, err := r.AddCredential(t.Context(), identity.Credential{Name: "ci", User: r.user.ID, Project: r.home.ID}, "")
	check(t, err)
	r.log(t, alice)
	before, err := r.store.Revision(t.Context())
	check(t, err)
	check(t, r.RemoveUser(t.Context(), "alice"))
	if after, err := r.store.Revision(t.Context()); err != nil || after != before+1 {
		t.Errorf("it took the store from revision %d to %d: %v", before, after, err)
	}
}

// TestASecondChanceIsNoOldSession: who was disabled has to log in again.
func TestASecondChanceIsNoOldSession(t *testing.T) {
	r := newRig(t)
	token := r.log(t, alice)
	for _, yes := range []bool{false, true} {
		_, err := r.EditUser(t.Context(), "alice", identity.UserEdit{Enabled: &yes})
		check(t, err)
	}
	r.over(t, "of before", token)
}
